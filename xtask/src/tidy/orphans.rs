//! Finds source files that no target is made of: those that neither a `mod` nor an `include!` reaches.
//!
//! It reads text, not Rust: a declaration stands on a line of its own, as rustfmt leaves it, and not in an inline module.
//! What a test gives to a program (`*.in`) is part of no target.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Of `files`, those that are not reached from the roots of targets.
pub(super) fn orphans(
    files: &[PathBuf],
    roots: BTreeSet<PathBuf>,
    read: impl Fn(&Path) -> Option<String>,
) -> Vec<PathBuf> {
    let given = |file: &&PathBuf| {
        let mut folders = file.components().map(|c| Path::new(c.as_os_str()));
        folders.any(|folder| folder.extension().is_some_and(|x| x == "in"))
    };
    let own = files.iter().filter(|file| !given(file));
    let known: BTreeMap<PathBuf, &PathBuf> = own.map(|file| (plain(file), file)).collect();
    let mut reached: BTreeSet<PathBuf> = roots.iter().map(|root| plain(root)).collect();
    let mut left: Vec<(PathBuf, bool)> = reached.iter().map(|root| (root.clone(), true)).collect();
    while let Some((file, root)) = left.pop() {
        let Some(text) = read(&file) else { continue };
        for (path, whole) in children(&file, root, &text) {
            let path = plain(&path);
            // What is included stands where the including file does.
            if known.contains_key(&path) && reached.insert(path.clone()) {
                left.push((path, whole));
            }
        }
    }
    known.into_iter().filter(|(path, _)| !reached.contains(path)).map(|(_, file)| file.clone()).collect()
}

/// A path without `.` and `..`.
fn plain(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(out.pop()),
            part => out.push(part),
        }
    }
    out
}

/// Where the modules of a file may be, and whether theirs are beside them, as with a target's root.
fn children(file: &Path, root: bool, text: &str) -> Vec<(PathBuf, bool)> {
    let folder = file.parent().unwrap_or(Path::new(""));
    let stem = file.file_stem().unwrap_or_default();
    let beside = root || stem == "mod";
    let own = if beside { folder.to_owned() } else { folder.join(stem) };
    let mut out = Vec::new();
    let mut path = None;
    for line in text.lines().map(str::trim) {
        if let Some(rest) = line.strip_prefix("#[path = \"") {
            path = rest.split('"').next();
        } else if let Some(name) = declared(line) {
            match path.take() {
                Some(path) => out.push((folder.join(path), true)),
                None => {
                    out.push((own.join(format!("{name}.rs")), false));
                    out.push((own.join(name).join("mod.rs"), false));
                }
            }
        } else if !line.starts_with("#[") {
            path = None;
        }
        if let Some((_, rest)) = line.split_once("include!(\"") {
            out.extend(rest.split('"').next().map(|included| (folder.join(included), beside)));
        }
    }
    out
}

/// The name of a module that a line declares to be in a file of its own.
fn declared(line: &str) -> Option<&str> {
    let line = line.strip_suffix(';')?;
    let line = match line.strip_prefix("pub") {
        Some(rest) => rest.trim_start_matches(|c: char| c != ' ' && c != 'm').trim_start(),
        None => line,
    };
    let name = line.strip_prefix("mod ")?;
    name.chars().all(|c| c.is_alphanumeric() || c == '_').then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_no_mod_reaches_is_found() {
        let texts = BTreeMap::from([
            ("c/src/lib.rs", "//! x\nmod a;\npub(crate) mod b;\n// mod gone;\n"),
            ("c/src/a.rs", "mod deep;\ninclude!(\"made.rs\");"),
            ("c/src/a/deep.rs", ""),
            ("c/src/made.rs", ""),
            ("c/src/b/mod.rs", "#[cfg(test)]\nmod tests;"),
            ("c/src/b/tests.rs", ""),
            ("c/src/gone.rs", ""),
            ("c/tests/one.rs", "#[path = \"shared/far.rs\"]\nmod near;"),
            ("c/tests/shared/far.rs", ""),
            ("c/tests/cases/case.in/main.rs", ""),
            ("c/tests/shared/other.rs", "mod gone;"),
        ]);
        let files: Vec<PathBuf> = texts.keys().map(PathBuf::from).collect();
        let roots = ["c/src/lib.rs", "c/tests/one.rs"].into_iter().map(PathBuf::from).collect();
        let read = |file: &Path| texts.get(file.to_str()?).map(|text| (*text).to_owned());
        let found = orphans(&files, roots, read);
        assert_eq!(found, ["c/src/gone.rs", "c/tests/shared/other.rs"].map(PathBuf::from));
    }
}
