//! Bodies of answers and of requests: whole, or streamed in chunks that are made when the client takes them.
//!
//! Nothing here knows objects. Invariant: a request's body is never read beyond its limit, and a stream holds no
//! more than the chunk it is making.

use std::any::Any;
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures::Stream;
use homeostat_model::Status;
use homeostat_model::status::Result;
use http_body::{Frame, SizeHint};
use http_body_util::BodyExt;

/// Most bytes of a request's body, as the reference has it.
pub const LIMIT: usize = 3 * 1024 * 1024;

type BoxStream = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// Most bytes of a body beyond its limit that are read before the connection is given up.
const FORGOTTEN: usize = 4 * LIMIT;

/// Body of an answer.
pub struct Body {
    kind: Kind,
    /// What ends with the body, such as its place among the requests under way.
    held: Option<Box<dyn Any + Send>>,
}

enum Kind {
    Full(Bytes),
    Stream(BoxStream),
}

impl Body {
    /// No bytes.
    pub fn empty() -> Self {
        Self { kind: Kind::Full(Bytes::new()), held: None }
    }

    /// All at once.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self { kind: Kind::Full(bytes.into()), held: None }
    }

    /// Chunk by chunk; each is made when the connection can take it.
    pub fn stream(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Self {
        Self { kind: Kind::Stream(Box::pin(chunks)), held: None }
    }

    /// With something that is dropped when the last of it has gone, or nobody wants it any more.
    #[must_use]
    pub fn holding(mut self, guard: impl Send + 'static) -> Self {
        self.held = Some(match self.held.take() {
            None => Box::new(guard),
            Some(held) => Box::new((held, guard)),
        });
        self
    }

    /// The bytes, if they are all there.
    pub fn as_full(&self) -> Option<&Bytes> {
        match &self.kind {
            Kind::Full(b) => Some(b),
            Kind::Stream(_) => None,
        }
    }
}

impl Default for Body {
    fn default() -> Self {
        Self::empty()
    }
}

impl std::fmt::Debug for Body {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.kind {
            Kind::Full(b) => write!(f, "Body({} bytes)", b.len()),
            Kind::Stream(_) => f.write_str("Body(stream)"),
        }
    }
}

impl http_body::Body for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<std::result::Result<Frame<Bytes>, Infallible>>> {
        match &mut self.kind {
            Kind::Full(b) if b.is_empty() => Poll::Ready(None),
            Kind::Full(b) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(b))))),
            Kind::Stream(s) => s.as_mut().poll_next(cx).map(|c| c.map(|b| Ok(Frame::data(b)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(&self.kind, Kind::Full(b) if b.is_empty())
    }

    fn size_hint(&self) -> SizeHint {
        match &self.kind {
            Kind::Full(b) => SizeHint::with_exact(b.len() as u64),
            Kind::Stream(_) => SizeHint::default(),
        }
    }
}

/// Error of a transport's body.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Body of a request, whatever transport it came through.
pub struct Incoming(Pin<Box<dyn http_body::Body<Data = Bytes, Error = BoxError> + Send>>);

impl Incoming {
    /// Boxes a transport's body.
    pub fn new<B>(body: B) -> Self
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        Self(Box::pin(body.map_err(Into::into)))
    }

    /// The 413. Some of what is still coming is read and forgotten, so that a client that is writing gets to read it.
    async fn too_large(&mut self, mut read: usize) -> Status {
        while read < FORGOTTEN {
            match self.0.frame().await {
                Some(Ok(frame)) => read += frame.into_data().map_or(0, |d| d.len()),
                _ => break,
            }
        }
        Status::too_large(format!("Request entity too large: limit is {LIMIT}"))
    }

    /// Reads all of it; 413 beyond [`LIMIT`], 400 where the client breaks off.
    pub async fn read(mut self) -> Result<Bytes> {
        let hint = self.0.size_hint().lower();
        if hint > LIMIT as u64 {
            return Err(self.too_large(0).await);
        }
        let mut first: Option<Bytes> = None;
        let mut all = BytesMut::new();
        while let Some(frame) = self.0.frame().await {
            let frame =
                frame.map_err(|e| Status::bad_request(format!("unable to read the request's body: {e}")))?;
            let Ok(data) = frame.into_data() else { continue };
            if all.is_empty() && first.is_none() {
                first = Some(data);
                continue;
            }
            if let Some(f) = first.take() {
                all.extend_from_slice(&f);
            }
            all.extend_from_slice(&data);
            if all.len() > LIMIT {
                return Err(self.too_large(all.len()).await);
            }
        }
        match first {
            Some(f) if f.len() > LIMIT => Err(self.too_large(f.len()).await),
            Some(f) => Ok(f),
            None => Ok(all.freeze()),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::{Full, StreamBody};

    use super::*;

    async fn read(chunks: Vec<usize>) -> std::result::Result<usize, u16> {
        let frames = stream::iter(
            chunks.into_iter().map(|n| Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b'x'; n])))),
        );
        Incoming::new(StreamBody::new(frames)).read().await.map(|b| b.len()).map_err(|s| s.code)
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_its_limit() {
        assert_eq!(read(vec![]).await, Ok(0));
        assert_eq!(read(vec![5]).await, Ok(5));
        assert_eq!(read(vec![5, 0, 6]).await, Ok(11));
        assert_eq!(read(vec![LIMIT]).await, Ok(LIMIT));
        assert_eq!(read(vec![LIMIT + 1]).await, Err(413));
        assert_eq!(read(vec![LIMIT, 1]).await, Err(413));
        let known = Incoming::new(Full::new(Bytes::from(vec![0; LIMIT + 1]))).read().await;
        assert_eq!(known.unwrap_err().code, 413);
    }
}
