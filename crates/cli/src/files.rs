//! Files that flags name.

use std::fmt::Display;
use std::path::Path;

use crate::complaint::Complaint;

/// The text of a file that a flag names; `what` it should be.
pub(crate) fn read(file: &Path, what: &str) -> Result<String, Complaint> {
    std::fs::read_to_string(file)
        .map_err(|e| Complaint::new(format!("cannot read {}: {e}; name {what}", file.display())))
}

/// What is wrong with such a file.
pub(crate) fn wrong(file: &Path, why: impl Display) -> Complaint {
    Complaint::new(format!("{}: {why}", file.display()))
}
