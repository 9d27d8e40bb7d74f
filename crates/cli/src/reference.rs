//! The reference of the command line in the book, which is what `--help` says.
//!
//! Test only: it compares `docs/book/src/reference/cli.md` with the commands, and writes it anew where `UPDATE_BOOK` is
//! set.

use clap::{Command, CommandFactory as _};

/// The page.
fn page() -> String {
    let mut out = String::from(
        "# The command line\n\nThis is what `--help` says, verb by verb. `homeostat completion` makes shells complete it.\n",
    );
    let mut command = crate::Cli::command();
    command.build();
    for verb in command.get_subcommands().filter(|c| c.get_name() != "help") {
        section(verb, &mut out);
    }
    out
}

fn section(command: &Command, out: &mut String) {
    let path = command.get_bin_name().unwrap_or_default().to_owned();
    let help = command.clone().term_width(100).render_help().to_string();
    out.push_str(&format!("\n## {path}\n\n```text\n{}\n```\n", help.trim_end()));
    for inner in command.get_subcommands().filter(|c| c.get_name() != "help") {
        section(inner, out);
    }
}

#[test]
fn the_book_has_the_command_line_as_it_is() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/reference/cli.md");
    let page = page();
    if std::env::var_os("UPDATE_BOOK").is_some() {
        std::fs::write(path, &page).expect("the book can be written");
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        written == page,
        "docs/book/src/reference/cli.md is not what --help says; run this test with UPDATE_BOOK=1"
    );
}

/// Each verb shows how it is used.
#[test]
fn every_verb_has_an_example() {
    fn check(command: &Command) {
        let help = command.clone().render_help().to_string();
        let leaf = !command.has_subcommands();
        assert!(
            !leaf || help.contains("Example:\n  homeostat ") || help.contains("Example:\n  source"),
            "{help}"
        );
        command.get_subcommands().filter(|c| c.get_name() != "help").for_each(check);
    }
    let mut command = crate::Cli::command();
    command.build();
    command.get_subcommands().filter(|c| c.get_name() != "help").for_each(check);
}
