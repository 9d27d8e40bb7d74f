//! Why an apply is refused, and the `Status` that tells the client.

use std::fmt;

use homeostat_model::Status;
use homeostat_model::field::quote;
use homeostat_model::status::{Cause, Details};

use super::entries::{Entry, Operation};
use crate::fields::Path;

/// A field that another manager owns with another value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conflict {
    /// The owner.
    pub manager: String,
    /// The version in which it updated the field; empty if it applied it.
    pub version: String,
    /// The subresource through which it did; empty for the object itself.
    pub subresource: String,
    /// The field.
    pub path: Path,
}

impl Conflict {
    pub(super) fn new(owner: &Entry<'_>, path: Path) -> Self {
        Self {
            manager: owner.manager.clone(),
            version: if owner.operation == Operation::Update {
                owner.api_version.clone()
            } else {
                String::new()
            },
            subresource: owner.subresource.clone(),
            path,
        }
    }

    /// `"m" with subresource "status" using v1`.
    fn owner(&self) -> String {
        let mut out = quote(&self.manager);
        if !self.subresource.is_empty() {
            out.push_str(" with subresource ");
            out.push_str(&quote(&self.subresource));
        }
        if !self.version.is_empty() {
            out.push_str(" using ");
            out.push_str(&self.version);
        }
        out
    }
}

/// Why an apply is refused.
#[derive(Clone, Debug, PartialEq)]
pub enum ApplyError {
    /// Others own fields that it would change: force, or leave them out.
    Conflicts(Vec<Conflict>),
    /// The request can't be served as it is.
    BadRequest(String),
    /// The configuration or the live object doesn't fit the schema; the reference answers 500 without a reason.
    Failed(String),
}

impl ApplyError {
    /// The answer to the client.
    pub fn status(&self) -> Status {
        match self {
            Self::Conflicts(conflicts) => {
                let causes = conflicts
                    .iter()
                    .map(|c| Cause {
                        reason: "FieldManagerConflict".to_owned(),
                        message: format!("conflict with {}", c.owner()),
                        field: c.path.to_string(),
                    })
                    .collect();
                let mut status = Status::new(409, "Conflict", self.to_string());
                status.details = Some(Box::new(Details { causes, ..Details::default() }));
                status
            }
            Self::BadRequest(why) => Status::bad_request(why.clone()),
            Self::Failed(why) => Status::new(500, "", why.clone()),
        }
    }
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conflicts = match self {
            Self::Conflicts(conflicts) => conflicts,
            Self::BadRequest(why) | Self::Failed(why) => return f.write_str(why),
        };
        if let [one] = conflicts.as_slice() {
            return write!(f, "Apply failed with 1 conflict: conflict with {}: {}", one.owner(), one.path);
        }
        write!(f, "Apply failed with {} conflicts: ", conflicts.len())?;
        // Conflicts come owner by owner.
        let mut owner = None;
        for conflict in conflicts {
            let name = conflict.owner();
            if owner.as_ref() != Some(&name) {
                let newline = if owner.is_some() { "\n" } else { "" };
                write!(f, "{newline}conflicts with {name}:")?;
                owner = Some(name);
            }
            write!(f, "\n- {}", conflict.path)?;
        }
        Ok(())
    }
}

impl std::error::Error for ApplyError {}

impl From<ApplyError> for Status {
    fn from(error: ApplyError) -> Self {
        error.status()
    }
}
