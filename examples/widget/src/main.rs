//! The program: `widget-operator --help` says what it takes.

use std::process::ExitCode;

fn main() -> ExitCode {
    widget_operator::program().main()
}
