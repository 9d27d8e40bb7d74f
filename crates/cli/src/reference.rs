//! The reference of the command line in the book, which is what `--help` says.
//!
//! Test only: it compares `docs/book/src/reference/cli.md` with the commands, and writes it anew where `UPDATE_BOOK` is
//! set. What other pages mention in passing must at least be a command; what they have their reader type is run
//! (`tests/project/book.rs`).

use std::path::Path;

use clap::error::ErrorKind;
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

/// The commands of ours in a text: in `code`, and in indented lines.
fn mentioned(text: &str) -> Vec<&str> {
    let code = text.split('`').skip(1).step_by(2);
    let typed = text.lines().filter_map(|line| line.strip_prefix("    ")).flat_map(|line| line.split(" && "));
    let ours = |command: &str| command.starts_with("homeostat ") && !command.contains('\n');
    let plain = |command: &'_ str| command.find(['#', '&']).unwrap_or(command.len());
    code.chain(typed).map(str::trim).filter(|c| ours(c)).map(|c| &c[..plain(c)]).collect()
}

#[test]
fn commands_that_are_mentioned_exist() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut files, mut folders) =
        (vec![root.join("README.md"), root.join("README.ko.md")], vec![root.join("docs")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|x| x == "md") {
                files.push(path);
            }
        }
    }
    let (mut found, mut faults) = (0, Vec::new());
    // A verb may be named without what it takes.
    let named = [
        ErrorKind::DisplayHelp,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
        ErrorKind::MissingRequiredArgument,
    ];
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a page").replace("\\\n", "");
        for command in mentioned(&text) {
            found += 1;
            if let Err(e) = crate::Cli::command().try_get_matches_from(command.split_whitespace())
                && !named.contains(&e.kind())
            {
                faults.push(format!("{}: {command}: {e}", file.display()));
            }
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    assert!(found > 30, "only {found} were found");
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
