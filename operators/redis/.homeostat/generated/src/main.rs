//! The program: `redis-operator --help` says what it takes.

use std::process::ExitCode;

fn main() -> ExitCode {
    redis_operator::program().main()
}
