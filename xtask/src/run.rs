//! Runs outside programs, and says so when one is missing.

use std::process::{Command, Stdio};

/// Whether the run is CI's, where a missing program is a failure.
pub(crate) fn ci() -> bool {
    std::env::var("CI").is_ok_and(|v| v == "true")
}

/// Runs a command with our output; an error names it.
pub(crate) fn run(command: &mut Command) -> Result<(), String> {
    let shown = show(command);
    println!("$ {shown}");
    match command.stdin(Stdio::null()).status() {
        Ok(s) if s.success() => Ok(()),
        Ok(s) => Err(format!("{shown}: {s}")),
        Err(e) => Err(format!("{shown}: {e}")),
    }
}

/// Runs a command and returns what it prints.
pub(crate) fn output(command: &mut Command) -> Result<String, String> {
    let shown = show(command);
    let out = command.stdin(Stdio::null()).output().map_err(|e| format!("{shown}: {e}"))?;
    if out.status.success() {
        Ok(String::from_utf8_lossy(&out.stdout).into_owned())
    } else {
        Err(format!("{shown}: {}\n{}", out.status, String::from_utf8_lossy(&out.stderr)))
    }
}

fn show(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for arg in command.get_args() {
        text.push(' ');
        text.push_str(&arg.to_string_lossy());
    }
    text
}

/// The cargo that runs us.
pub(crate) fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// The workspace's root.
pub(crate) fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().map(Into::into).unwrap_or_default()
}
