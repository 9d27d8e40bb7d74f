//! The book's commands do what it says: they are typed and compared, in a project that is made as the book makes it.
//!
//! Rust is compiled elsewhere (`docs/book/lib.rs`). Invariant: each block of each page is either followed here or in
//! [`ELSEWHERE`], with the place that looks after it.

use std::collections::BTreeSet;
use std::fs;

use crate::generated::{repository, turn};
use crate::kubectls;
use crate::page::{Block, blocks};
use crate::reader::Reader;

/// The page that the others go on from.
const FIRST: &str = "first-operator.md";
/// Where it begins to take the project back: the others come before.
const END: &str = "Take it back";
/// Pages that leave the project's source as it is, and go on in its folder.
const BESIDE: &[&str] = &["recipes/packaging.md"];
/// Pages that change it, each with a copy.
const APART: &[&str] = &["recipes/webhooks.md", "recipes/versions.md", "from/kubebuilder.md"];

/// Blocks that are not followed here: page (`*` is any), language, and what looks after them.
const ELSEWHERE: &[(&str, &str, &str)] = &[
    ("*", "rust", "compiled as documentation tests: docs/book/lib.rs"),
    ("first-operator.ko.md", "console", "the same as in English: docs/book/tests/pages.rs"),
    ("first-operator.ko.md", "diff", "the same as in English: docs/book/tests/pages.rs"),
    ("recipes/tracing.md", "toml", "the feature is there: docs/book/tests/pages.rs"),
    ("recipes/tracing.md", "yaml", "the variable is read: docs/book/tests/pages.rs"),
    ("reference/cli.md", "text", "what --help says: crates/cli/src/reference.rs"),
];

/// All pages and their blocks.
fn pages() -> Vec<(String, Vec<Block>)> {
    let top = repository().join("docs/book/src");
    let (mut folders, mut pages) = (vec![top.clone()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(&top).expect("inside").to_string_lossy().into_owned();
                pages.push((name.clone(), blocks(&name, &fs::read_to_string(&path).expect("a page"))));
            }
        }
    }
    pages
}

fn page(name: &str) -> Vec<Block> {
    let (_, blocks) =
        pages().into_iter().find(|(n, _)| n == name).unwrap_or_else(|| panic!("no page {name}"));
    blocks
}

#[test]
fn every_block_is_looked_after() {
    let followed: Vec<&str> = [FIRST].iter().chain(BESIDE).chain(APART).copied().collect();
    let (mut used, mut typed) = (BTreeSet::new(), BTreeSet::new());
    for (page, blocks) in pages() {
        for block in blocks {
            let elsewhere = ELSEWHERE
                .iter()
                .position(|(p, language, _)| (*p == "*" || *p == page) && *language == block.language);
            match elsewhere {
                Some(at) => drop(used.insert(at)),
                None => {
                    assert!(
                        followed.contains(&page.as_str())
                            && ["console", "diff"].contains(&block.language.as_str()),
                        "{}: nothing looks after this {} block",
                        block.place,
                        block.language
                    );
                    typed.insert(page.clone());
                }
            }
        }
    }
    for (at, entry) in ELSEWHERE.iter().enumerate() {
        assert!(used.contains(&at), "there is no such block: {entry:?}");
    }
    for page in followed {
        assert!(typed.contains(page), "{page} has nothing to follow");
    }
}

/// One project for all of it: compiling is what takes long.
#[test]
fn a_reader_of_the_book_gets_what_it_shows() {
    let Some(kubectl) = kubectls::or_skip(kubectls::kubectls().pop()) else { return };
    let _turn = turn();
    let first = page(FIRST);
    let end = first.iter().position(|block| block.heading == END).expect("its last chapter");
    let mut reader = Reader::new(kubectl);
    reader.follow(&first[..end]);
    for name in BESIDE {
        reader.beside().follow(&page(name));
    }
    for name in APART {
        reader.with_a_copy().follow(&page(name));
    }
    // Not of the book: the verbs against a control plane of its own, with all their refusals.
    reader.beside().follow(&blocks("cluster.md", include_str!("cluster.md")));
    reader.follow(&first[end..]);
}
