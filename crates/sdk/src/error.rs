//! The error of a reconcile: anything that was in the way, with what the runner must know to go on.
//!
//! Like `anyhow::Error` it takes any error through `?` and therefore is no `std::error::Error` itself. It is not an
//! enum of causes: whoever reconciles decides by [`Error::status`] and the `is_…` questions, the runner only by
//! [`Error::is_terminal`].

use std::fmt;

use kube::core::Status;

/// The result of a reconcile or of a call on [`Context`](crate::Context).
pub type Result<T, E = Error> = std::result::Result<T, E>;

type Source = Box<dyn std::error::Error + Send + Sync + 'static>;

/// What was in the way.
pub struct Error {
    terminal: bool,
    source: Source,
}

impl Error {
    /// An error with only a text.
    pub fn msg(text: impl Into<String>) -> Self {
        Self { terminal: false, source: text.into().into() }
    }

    /// Marks this error as one that trying again cannot mend: the key rests until something it depends on changes.
    #[must_use]
    pub fn terminal(mut self) -> Self {
        self.terminal = true;
        self
    }

    /// Whether the key rests until something changes.
    pub fn is_terminal(&self) -> bool {
        self.terminal
    }

    /// The API server's answer, where the error is one.
    pub fn status(&self) -> Option<&Status> {
        match self.source.downcast_ref::<kube::Error>() {
            Some(kube::Error::Api(status)) => Some(status),
            _ => None,
        }
    }

    /// The object, or the kind, is not there.
    pub fn is_not_found(&self) -> bool {
        self.status().is_some_and(|s| s.code == 404)
    }

    /// The object changed since it was read, or another manager owns a field.
    pub fn is_conflict(&self) -> bool {
        self.status().is_some_and(|s| s.code == 409 && s.reason != "AlreadyExists")
    }

    /// An object of this name exists already.
    pub fn is_already_exists(&self) -> bool {
        self.status().is_some_and(|s| s.reason == "AlreadyExists")
    }

    /// The client may not do this.
    pub fn is_forbidden(&self) -> bool {
        self.status().is_some_and(|s| s.code == 403)
    }

    /// The error inside, where it is an `E`.
    pub fn downcast_ref<E: std::error::Error + 'static>(&self) -> Option<&E> {
        self.source.downcast_ref()
    }

    /// The error inside.
    pub fn into_source(self) -> Box<dyn std::error::Error + Send + Sync + 'static> {
        self.source
    }
}

impl<E: std::error::Error + Send + Sync + 'static> From<E> for Error {
    fn from(source: E) -> Self {
        Self { terminal: false, source: Box::new(source) }
    }
}

/// `kube::Error` prints a `Status` twice over, as text and as a structure; only the first is for people.
fn text(e: &(dyn std::error::Error + 'static)) -> String {
    match e.downcast_ref::<kube::Error>() {
        Some(kube::Error::Api(status)) if !status.message.is_empty() => status.message.clone(),
        _ => e.to_string(),
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = text(&*self.source);
        f.write_str(&last)?;
        let mut next = self.source.source();
        while let Some(e) = next {
            let t = text(e);
            if !last.contains(&t) {
                write!(f, ": {t}")?;
                last = t;
            }
            next = e.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terminal { write!(f, "terminal: {:?}", self.source) } else { write!(f, "{:?}", self.source) }
    }
}
