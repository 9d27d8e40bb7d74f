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

    /// The object's namespace is being deleted, so nothing new may be made in it.
    pub fn is_namespace_terminating(&self) -> bool {
        let causes = self.status().and_then(|s| s.details.as_ref()).map(|d| &d.causes);
        causes.into_iter().flatten().any(|c| c.reason == "NamespaceTerminating")
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

impl fmt::Display for Error {
    /// The error and its causes, each text once; of an API server's answer only its message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(status) = self.status()
            && !status.message.is_empty()
        {
            return f.write_str(&status.message);
        }
        let mut said = self.source.to_string();
        f.write_str(&said)?;
        let mut next = self.source.source();
        while let Some(cause) = next {
            let text = cause.to_string();
            if !said.contains(&text) {
                write!(f, ": {text}")?;
                said = text;
            }
            next = cause.source();
        }
        Ok(())
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.terminal { write!(f, "terminal: {:?}", self.source) } else { write!(f, "{:?}", self.source) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(error: impl Into<Error>, expect: &str) {
        assert_eq!(error.into().to_string(), expect);
    }

    #[derive(Debug, thiserror::Error)]
    #[error("can't reach redis-0")]
    struct Unreachable(#[source] std::io::Error);

    #[test]
    fn errors_read_as_one_sentence() {
        let status = Status::failure("pods \"a\" is forbidden: no", "Forbidden").with_code(403);
        check(kube::Error::Api(status.boxed()), "pods \"a\" is forbidden: no");
        check(Unreachable(std::io::Error::other("no route")), "can't reach redis-0: no route");
        check(Error::msg("plain").terminal(), "plain");
    }

    #[test]
    fn answers_of_the_server_are_told_apart() {
        let error =
            |code, reason| Error::from(kube::Error::Api(Status::failure("", reason).with_code(code).boxed()));
        assert!(error(404, "NotFound").is_not_found());
        assert!(error(403, "Forbidden").is_forbidden());
        assert!(error(409, "Conflict").is_conflict());
        assert!(error(409, "AlreadyExists").is_already_exists());
        assert!(!error(409, "AlreadyExists").is_conflict());
        assert!(!Error::msg("x").is_not_found());
    }
}
