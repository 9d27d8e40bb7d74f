//! Patches of documents: JSON patch (RFC 6902), JSON merge patch (RFC 7386) and strategic merge patch.
//!
//! Each takes a document and a patch as values and gives the new document; what it must fit is decided later by
//! decoding and validation. Where the reference's libraries differ from the RFCs, clients have come to rely on
//! the libraries, so they are followed. Invariant: work is bounded by the sizes of document and patch.

mod json;
mod merge;
mod strategic;

use homeostat_model::Status;
use homeostat_model::status::Details;

pub use json::{MAX_OPERATIONS, json, unknown_fields};
pub use merge::merge;
pub use strategic::strategic;

/// Why a patch isn't applied.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// The patch is not of the expected form: 400.
    #[error("{0}")]
    Malformed(String),
    /// An operation doesn't apply: 422, with a text that says nothing of why. This text is for logs.
    #[error("{0}")]
    Rejected(String),
    /// A `test` found another value than it asks for; to clients the same as [`PatchError::Rejected`].
    #[error("testing value {0} failed")]
    TestFailed(String),
    /// Too many operations: 413.
    #[error("The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {0}")]
    TooMany(usize),
    /// Everything else, which the reference answers with 500 and no reason.
    #[error("{0}")]
    Failed(String),
}

impl PatchError {
    /// The answer to the client.
    pub fn status(&self) -> Status {
        match self {
            Self::Malformed(why) => Status::bad_request(why.clone()),
            Self::Rejected(_) | Self::TestFailed(_) => {
                let text = "the server rejected our request due to an error in our request";
                let mut status = Status::new(422, "Invalid", text);
                status.details = Some(Box::new(Details::default()));
                status
            }
            Self::TooMany(_) => Status::too_large(format!("Request entity too large: {self}")),
            Self::Failed(why) => Status::new(500, "", why.clone()),
        }
    }
}

impl From<PatchError> for Status {
    fn from(error: PatchError) -> Self {
        error.status()
    }
}

/// A JSON type as Go's decoder names it.
fn json_type(value: &serde_json::Value) -> &'static str {
    use serde_json::Value;
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
