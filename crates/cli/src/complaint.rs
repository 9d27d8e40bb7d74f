//! What went wrong, in one line, with what to do about it.

use std::process::ExitCode;

/// An error for the person at the keyboard.
#[derive(Debug)]
pub(crate) struct Complaint {
    text: String,
    code: u8,
}

impl Complaint {
    /// A failure (exit code 1).
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: 1 }
    }

    /// A mistake on the command line (exit code 2), clap's report folded into one line.
    pub(crate) fn usage(error: &clap::Error) -> Self {
        let report = error.to_string();
        let mut lines = report.lines().map(str::trim).filter(|l| !l.is_empty());
        let mut text = lines.next().unwrap_or("bad usage").trim_start_matches("error: ").to_owned();
        for line in lines {
            if line.starts_with("Usage:") || line.starts_with("For more information") {
                break;
            }
            text.push(if text.ends_with(':') { ' ' } else { ';' });
            text.push_str(if text.ends_with(' ') { "" } else { " " });
            text.push_str(line.trim_start_matches("tip: "));
        }
        text.push_str("; see --help");
        Self { text, code: 2 }
    }

    /// A mistake on the command line that clap can't see (exit code 2).
    pub(crate) fn usage_text(text: String) -> Self {
        Self { text, code: 2 }
    }

    /// Prints it and gives the exit code.
    pub(crate) fn report(&self) -> ExitCode {
        eprintln!("homeostat: {}", self.text.replace('\n', " "));
        ExitCode::from(self.code)
    }

    /// The text, for what goes on in spite of it.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }
}

impl<E: std::error::Error> From<E> for Complaint {
    fn from(error: E) -> Self {
        let mut text = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            let cause_text = cause.to_string();
            if !text.contains(&cause_text) {
                text.push_str(": ");
                text.push_str(&cause_text);
            }
            source = cause.source();
        }
        Self::new(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    #[track_caller]
    fn check(args: &[&str], want: &str) {
        let error = crate::Cli::try_parse_from(args).err().expect("a usage error");
        let complaint = Complaint::usage(&error);
        assert!(!complaint.text().contains('\n'));
        assert!(complaint.text().contains(want), "{}", complaint.text());
        assert!(complaint.text().ends_with("see --help"));
    }

    #[test]
    fn usage_errors_are_one_line() {
        check(
            &["homeostat", "up", "--prot", "1"],
            "unexpected argument '--prot' found; a similar argument exists: '--port'",
        );
        check(&["homeostat", "up", "--port", "lots"], "invalid value 'lots' for '--port <PORT>'");
        check(&["homeostat", "pu"], "unrecognized subcommand 'pu'");
    }
}
