//! The book's pages hang together: all are in the summary, all Rust is compiled, and the Korean pages are in step with
//! the English ones.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// All pages, relative to `src/`.
fn pages() -> Vec<String> {
    fn walk(folder: &Path, top: &Path, out: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, top, out);
            } else {
                out.push(path.strip_prefix(top).unwrap().to_string_lossy().into_owned());
            }
        }
    }
    let mut out = Vec::new();
    let top = root().join("src");
    walk(&top, &top, &mut out);
    out.sort();
    out
}

#[test]
fn every_page_is_in_the_summary_and_every_link_leads_to_a_page() {
    let pages = pages();
    let summary = read(&root().join("src/SUMMARY.md"));
    let linked: Vec<&str> =
        summary.split("](").skip(1).map(|rest| rest.split(')').next().unwrap_or_default()).collect();
    for page in pages.iter().filter(|p| *p != "SUMMARY.md") {
        assert!(linked.contains(&page.as_str()), "{page} is not in the summary");
    }
    for link in linked {
        assert!(pages.iter().any(|p| p == link), "the summary links {link}");
    }
    for page in &pages {
        let path = root().join("src").join(page);
        let text = read(&path);
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            if link.starts_with("http") || link.starts_with('#') {
                continue;
            }
            let file = link.split('#').next().unwrap_or(link);
            assert!(path.parent().unwrap().join(file).exists(), "{page} links {link}");
        }
    }
}

/// That the feature does what the page says is tested in `crates/homeostat/tests/opentelemetry`.
#[test]
fn the_page_on_tracing_names_what_there_is() {
    let page = read(&root().join("src/recipes/tracing.md"));
    let block = |language: &str| {
        let (_, rest) = page.split_once(&format!("```{language}\n")).expect(language);
        rest.split("```").next().unwrap_or_default()
    };
    let crates = root().join("../../crates");
    let facade = read(&crates.join("homeostat/Cargo.toml"));
    let features = block("toml").split_once("features = [").expect("features").1.split('"');
    for feature in features.skip(1).step_by(2) {
        assert!(facade.contains(&format!("\n{feature} = [")), "there is no feature {feature}");
    }
    let settings = read(&crates.join("program/src/export/settings.rs"));
    let variables: Vec<&str> =
        block("yaml").lines().filter_map(|l| l.split_once("- name: ")).map(|l| l.1).collect();
    assert!(!variables.is_empty());
    for variable in variables {
        assert!(settings.contains(&format!("\"{variable}\"")), "nothing reads {variable}");
    }
}

#[test]
fn all_rust_is_compiled() {
    let compiled = read(&root().join("lib.rs"));
    // The Korean chapter has the blocks of the English one: see below.
    for page in pages().iter().filter(|p| !p.ends_with(".ko.md")) {
        let text = read(&root().join("src").join(page));
        assert!(!text.contains("```rust,ignore"), "{page} has a block that is not compiled");
        if text.contains("```rust") {
            assert!(compiled.contains(&format!("\"src/{page}\"")), "{page} has Rust that is not compiled");
        }
    }
}

/// The levels of the headings, in order.
fn headings(text: &str) -> Vec<usize> {
    let mut fenced = false;
    let mut levels = Vec::new();
    for line in text.lines() {
        fenced ^= line.starts_with("```");
        let level = line.chars().take_while(|c| *c == '#').count();
        if !fenced && level > 0 {
            levels.push(level);
        }
    }
    levels
}

/// Code: fenced blocks with what they are of, and indented lines.
fn code(text: &str) -> Vec<&str> {
    let mut fenced = false;
    let mut code = Vec::new();
    for line in text.lines() {
        let fence = line.starts_with("```");
        if fence || fenced || line.starts_with("    ") {
            // What is said beside a command is in the reader's language.
            code.push(
                line.split("  #").next().unwrap_or(line).split("   // ").next().unwrap_or(line).trim_end(),
            );
        }
        fenced ^= fence;
    }
    code
}

#[test]
fn the_korean_pages_are_in_step() {
    let repository = root().join("../..");
    for (english, korean) in [
        (root().join("src/first-operator.md"), root().join("src/first-operator.ko.md")),
        (repository.join("README.md"), repository.join("README.ko.md")),
    ] {
        let (a, b) = (read(&english), read(&korean));
        assert_eq!(headings(&a), headings(&b), "headings of {}", korean.display());
        for (line, (a, b)) in code(&a).iter().zip(code(&b)).enumerate() {
            assert_eq!(*a, b, "code line {line} of {}", korean.display());
        }
        assert_eq!(code(&a).len(), code(&b).len(), "code of {}", korean.display());
    }
}
