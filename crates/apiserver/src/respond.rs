//! Answers: status, headers and body of what a handler returns, in the form that was negotiated.
//!
//! Handlers return [`Answer`]s or [`Status`] errors; only this module makes HTTP responses of them.
//! Invariant: every error that leaves is a `Status` object in the client's format.

use std::io::Write as _;

use bytes::{Bytes, BytesMut};
use flate2::Compression;
use flate2::write::GzEncoder;
use futures::{Stream, StreamExt, stream};
use homeostat_model::Status;
use http::header::{self, HeaderMap, HeaderName, HeaderValue};
use http::{Response, StatusCode};
use serde_json::Value;

use crate::body::Body;
use crate::negotiate::Format;
use crate::object;

/// Answers of more bytes are compressed where the client takes it.
pub const GZIP_ABOVE: usize = 128 * 1024;

/// What a handler returns.
pub struct Answer {
    /// HTTP status.
    pub code: StatusCode,
    /// Extra headers.
    pub headers: HeaderMap,
    /// The body.
    pub content: Content,
    /// Texts of `Warning` headers.
    pub warnings: Vec<String>,
}

/// Body of an answer before it is written.
pub enum Content {
    /// JSON bytes as they are.
    Json(Bytes),
    /// A value, to be written in the negotiated format.
    Value(Value),
    /// JSON in chunks.
    Chunks(Body),
    /// Anything else, with its content type.
    Raw(&'static str, Body),
}

impl Answer {
    /// 200 with JSON bytes.
    pub fn json(bytes: Bytes) -> Self {
        Self::new(StatusCode::OK, Content::Json(bytes))
    }

    /// 200 with a value.
    pub fn value(value: Value) -> Self {
        Self::new(StatusCode::OK, Content::Value(value))
    }

    /// Text.
    pub fn text(code: u16, text: impl Into<Bytes>) -> Self {
        let mut a = Self::new(
            StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            Content::Raw("text/plain; charset=utf-8", Body::full(text)),
        );
        a.headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
        a
    }

    /// The answer of a path that nobody serves.
    pub fn page_not_found() -> Self {
        Self::text(404, "404 page not found\n")
    }

    /// Any content.
    pub fn new(code: StatusCode, content: Content) -> Self {
        Self { code, headers: HeaderMap::new(), content, warnings: Vec::new() }
    }

    /// With another code.
    #[must_use]
    pub fn with_code(mut self, code: StatusCode) -> Self {
        self.code = code;
        self
    }

    /// With warnings.
    #[must_use]
    pub fn with_warnings(mut self, warnings: Vec<String>) -> Self {
        self.warnings = warnings;
        self
    }

    /// With a header.
    #[must_use]
    pub fn with_header(mut self, name: HeaderName, value: &str) -> Self {
        if let Ok(v) = HeaderValue::from_str(value) {
            self.headers.insert(name, v);
        }
        self
    }
}

/// A text of a `Warning` header for a request, and what the reference does to long ones.
pub fn warning_header(text: &str) -> Option<HeaderValue> {
    let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    let quoted = clean.replace('\\', "\\\\").replace('"', "\\\"");
    HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()).ok()
}

/// Most characters of one warning once they no longer all fit.
const WARNING_CUT: usize = 256;
/// Most bytes of all warnings.
const WARNINGS_LIMIT: usize = 4 * 1024;

/// Adds `Warning` headers: repeated texts once; when all together exceed 4 KiB each is cut to 256 characters and
/// what still does not fit is left out.
pub fn add_warnings(headers: &mut HeaderMap, warnings: &[String]) {
    let mut seen: Vec<&str> = Vec::new();
    for w in warnings {
        if !seen.contains(&w.as_str()) {
            seen.push(w);
        }
    }
    let total: usize = seen.iter().map(|w| w.len()).sum();
    let mut spent = 0;
    for w in seen {
        let text: String =
            if total > WARNINGS_LIMIT { w.chars().take(WARNING_CUT).collect() } else { w.to_owned() };
        spent += text.len();
        if spent > WARNINGS_LIMIT {
            break;
        }
        if let Some(v) = warning_header(&text) {
            headers.append(header::WARNING, v);
        }
    }
}

/// What of the request shapes the response.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Format negotiated.
    pub format: Format,
    /// Whether gzip is welcome.
    pub gzip: bool,
    /// `HEAD`: no body.
    pub head: bool,
}

/// The response of an answer.
pub async fn response(answer: Answer, shape: Shape) -> Response<Body> {
    let mut headers = answer.headers;
    add_warnings(&mut headers, &answer.warnings);
    let mut code = answer.code;
    let (kind, body) = match answer.content {
        Content::Raw(kind, body) => (kind, body),
        content if shape.format == Format::Protobuf => {
            let packed = match content {
                Content::Value(v) => crate::protobuf::body(&v),
                Content::Json(bytes) => crate::protobuf::body_of_json(&bytes),
                Content::Chunks(body) | Content::Raw(_, body) => {
                    crate::protobuf::body_of_json(&collect(body).await)
                }
            };
            match packed {
                Ok(bytes) => (shape.format.content_type(), Body::full(bytes)),
                Err(status) => {
                    code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                    (Format::Json.content_type(), Body::full(write(&status.to_value(), Format::Json)))
                }
            }
        }
        Content::Json(bytes) if shape.format == Format::Json => ("application/json", Body::full(bytes)),
        Content::Value(v) => (shape.format.content_type(), Body::full(write(&v, shape.format))),
        Content::Json(bytes) => (shape.format.content_type(), Body::full(rewrite(&bytes, shape.format))),
        Content::Chunks(body) if shape.format == Format::Json => ("application/json", body),
        Content::Chunks(body) => {
            let bytes = collect(body).await;
            (shape.format.content_type(), Body::full(rewrite(&bytes, shape.format)))
        }
    };
    if !kind.is_empty() {
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
    }
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-cache, private"));
    let body = if shape.head {
        Body::empty()
    } else if shape.gzip {
        compress(body, &mut headers).await
    } else {
        body
    };
    let mut r = Response::new(body);
    *r.status_mut() = code;
    *r.headers_mut() = headers;
    r
}

/// The response of an error.
pub async fn error(status: &Status, shape: Shape) -> Response<Body> {
    let mut answer = Answer::value(status.to_value());
    answer.code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(d) = &status.details
        && d.retry_after_seconds > 0
    {
        answer.headers.insert(header::RETRY_AFTER, HeaderValue::from(d.retry_after_seconds));
    }
    response(answer, shape).await
}

/// A value in a format.
pub fn write(value: &Value, format: Format) -> Bytes {
    match format {
        // Protobuf is written by its own module, which can fail.
        Format::Json | Format::Protobuf => object::to_bytes(value),
        Format::PrettyJson => {
            let mut out = serde_json::to_vec_pretty(value).unwrap_or_default();
            out.push(b'\n');
            out.into()
        }
        Format::Yaml => crate::yaml::write(value).into(),
    }
}

fn rewrite(json: &[u8], format: Format) -> Bytes {
    write(&serde_json::from_slice(json).unwrap_or_default(), format)
}

pub(crate) async fn collect(body: Body) -> Bytes {
    use http_body_util::BodyExt;
    body.collect().await.map(|c| c.to_bytes()).unwrap_or_default()
}

/// Compresses what exceeds [`GZIP_ABOVE`]; a stream is looked at until it does.
async fn compress(body: Body, headers: &mut HeaderMap) -> Body {
    if let Some(bytes) = body.as_full() {
        if bytes.len() <= GZIP_ABOVE {
            return body;
        }
        mark(headers);
        let mut z = GzEncoder::new(Vec::new(), Compression::fast());
        let done = z.write_all(bytes).and_then(|()| z.finish());
        return done.map(Body::full).unwrap_or(body);
    }
    let mut chunks = Box::pin(data(body));
    let mut head = BytesMut::new();
    while head.len() <= GZIP_ABOVE {
        match chunks.next().await {
            Some(c) => head.extend_from_slice(&c),
            None => return Body::full(head.freeze()),
        }
    }
    mark(headers);
    let state = Some((
        stream::once(async move { head.freeze() }).chain(chunks).boxed(),
        GzEncoder::new(Vec::new(), Compression::fast()),
    ));
    Body::stream(stream::unfold(state, |state| async move {
        let (mut chunks, mut z) = state?;
        loop {
            let Some(c) = chunks.next().await else {
                return z.finish().ok().map(|tail| (Bytes::from(tail), None));
            };
            // Writing to memory does not fail.
            let _ = z.write_all(&c);
            if z.get_ref().len() >= 16 * 1024 {
                let out = std::mem::take(z.get_mut());
                return Some((out.into(), Some((chunks, z))));
            }
        }
    }))
}

fn mark(headers: &mut HeaderMap) {
    headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    headers.append(header::VARY, HeaderValue::from_static("Accept-Encoding"));
}

fn data(body: Body) -> impl Stream<Item = Bytes> + Send {
    use http_body_util::BodyExt;
    stream::unfold(body, |mut body| async move {
        loop {
            match body.frame().await {
                Some(Ok(frame)) => {
                    if let Ok(d) = frame.into_data() {
                        return Some((d, body));
                    }
                }
                _ => return None,
            }
        }
    })
}
