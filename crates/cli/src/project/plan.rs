//! What the generator is about to write: planned whole, merged with what a person has changed, then written or refused.
//!
//! Beside each generated file stands the text that was generated last (`.homeostat/generated/`, committed). With it,
//! the file as it is now and the new text, a three-way merge keeps a person's edits. Invariant: either everything of a
//! plan is written or, where one file conflicts, nothing is.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use crate::complaint::Complaint;

/// Where the generated texts are kept.
pub(crate) const MEMORY: &str = ".homeostat/generated";

/// What becomes of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Step {
    /// Written; `base` is what was generated.
    Write { text: String, base: String },
    /// Left as it is; only the memory changes.
    Remember { base: String },
    /// Removed, and forgotten.
    Remove,
    /// Nothing to do.
    Leave,
}

/// What was done, for the person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A file that wasn't there.
    Created,
    /// A file that nobody had edited.
    Updated,
    /// A file in which edits were kept.
    Merged,
    /// No longer generated.
    Removed,
    /// A person had removed it, so it stays away.
    StaysAway,
    /// No longer generated, but edited, so it stays.
    Kept,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Merged => "merged",
            Self::Removed => "removed",
            Self::StaysAway => "not written",
            Self::Kept => "kept",
        }
    }

    fn note(self) -> &'static str {
        match self {
            Self::Merged => " (your edits are in it)",
            Self::StaysAway => " (you removed it)",
            Self::Kept => " (you edited it; remove it if you don't need it)",
            _ => "",
        }
    }
}

/// Files to be generated in one go.
pub(crate) struct Plan {
    root: PathBuf,
    steps: BTreeMap<String, Step>,
    outcomes: Vec<(String, Outcome)>,
    conflicts: Vec<String>,
    /// Write conflicts into the files, with markers as git's, rather than refuse them.
    mark: bool,
}

/// The text of a file; `None` where there is none.
fn read(path: &Path) -> Result<Option<String>, Complaint> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(Complaint::new(format!("cannot read {}: {e}", path.display()))),
    }
}

impl Plan {
    /// Nothing planned for the project in `root`. With `mark`, conflicts are written into the files.
    pub(crate) fn new(root: &Path, mark: bool) -> Self {
        Self {
            root: root.to_owned(),
            steps: BTreeMap::new(),
            outcomes: Vec::new(),
            conflicts: Vec::new(),
            mark,
        }
    }

    fn memory(&self, path: &str) -> PathBuf {
        self.root.join(MEMORY).join(path)
    }

    /// Plans that `path` holds `text`, beside what a person has made of it.
    pub(crate) fn generate(&mut self, path: &str, text: String) -> Result<(), Complaint> {
        within(path)?;
        let now = read(&self.root.join(path))?;
        let base = read(&self.memory(path))?;
        let mut outcome = |o: Outcome| self.outcomes.push((path.to_owned(), o));
        let step = match (now, base) {
            (None, None) => {
                outcome(Outcome::Created);
                Step::Write { base: text.clone(), text }
            }
            (None, Some(base)) if base == text => {
                outcome(Outcome::StaysAway);
                Step::Leave
            }
            (None, Some(_)) => {
                outcome(Outcome::StaysAway);
                Step::Remember { base: text }
            }
            (Some(now), None) if now == text => Step::Remember { base: text },
            (Some(_), None) => {
                self.conflicts.push(format!("{path} exists and was not generated here"));
                Step::Leave
            }
            (Some(now), Some(base)) if now == text && base == text => Step::Leave,
            (Some(_), Some(base)) if base == text => Step::Leave,
            (Some(now), Some(_)) if now == text => Step::Remember { base: text },
            (Some(now), Some(base)) if now == base => {
                outcome(Outcome::Updated);
                Step::Write { base: text.clone(), text }
            }
            (Some(now), Some(base)) => match diffy::merge(&base, &now, &text) {
                Ok(merged) if merged == now => Step::Remember { base: text },
                Ok(merged) => {
                    outcome(Outcome::Merged);
                    Step::Write { text: merged, base: text }
                }
                Err(marked) if self.mark => {
                    outcome(Outcome::Merged);
                    Step::Write { text: marked, base: text }
                }
                Err(_) => {
                    self.conflicts
                        .push(format!("{path}: your edits and the new text are about the same lines"));
                    Step::Leave
                }
            },
        };
        self.steps.insert(path.to_owned(), step);
        Ok(())
    }

    /// As [`generate`](Self::generate), for what isn't kept with the source: where it is missing, it is written again.
    pub(crate) fn produce(&mut self, path: &str, text: String) -> Result<(), Complaint> {
        within(path)?;
        if read(&self.root.join(path))?.is_some() {
            return self.generate(path, text);
        }
        self.outcomes.push((path.to_owned(), Outcome::Created));
        self.steps.insert(path.to_owned(), Step::Write { base: text.clone(), text });
        Ok(())
    }

    /// Plans that `path` goes. An edited file is in the way unless `force`.
    pub(crate) fn remove(&mut self, path: &str, force: bool) -> Result<(), Complaint> {
        within(path)?;
        let now = read(&self.root.join(path))?;
        let base = read(&self.memory(path))?;
        let step = match (now, base) {
            (None, None) => return Ok(()),
            (None, Some(_)) => Step::Remove,
            (Some(now), base) if force || base.as_ref() == Some(&now) => {
                self.outcomes.push((path.to_owned(), Outcome::Removed));
                Step::Remove
            }
            (Some(_), _) => {
                self.conflicts.push(format!("{path} has edits of yours that would be lost"));
                Step::Leave
            }
        };
        self.steps.insert(path.to_owned(), step);
        Ok(())
    }

    /// Plans that what was once generated under `folder`, and is no longer in the plan, goes; edited files stay.
    pub(crate) fn retire(&mut self, folder: &str) -> Result<(), Complaint> {
        for path in remembered(&self.root)? {
            if !path.starts_with(&format!("{folder}/")) || self.steps.contains_key(&path) {
                continue;
            }
            let (now, base) = (read(&self.root.join(&path))?, read(&self.memory(&path))?);
            if now.is_none() || now == base {
                self.remove(&path, false)?;
            } else {
                self.outcomes.push((path.clone(), Outcome::Kept));
                self.steps.insert(path, Step::Leave);
            }
        }
        Ok(())
    }

    /// What stands in the way.
    pub(crate) fn conflicts(&self) -> &[String] {
        &self.conflicts
    }

    /// The paths that writing would change, or can't.
    pub(crate) fn changes(&self) -> Vec<String> {
        let changes = |s: &Step| matches!(s, Step::Write { .. } | Step::Remove);
        let mut paths: Vec<String> =
            self.steps.iter().filter(|(_, s)| changes(s)).map(|(p, _)| p.clone()).collect();
        paths.extend(self.conflicts.iter().cloned());
        paths
    }

    /// Writes everything, or refuses with all conflicts; `hint` says what to do about them.
    pub(crate) fn apply(self, hint: &str) -> Result<Vec<(String, Outcome)>, Complaint> {
        if !self.conflicts.is_empty() {
            return Err(Complaint::new(format!(
                "nothing was written: {}; {hint}",
                self.conflicts.join("; ")
            )));
        }
        for (path, step) in &self.steps {
            let (file, memory) = (self.root.join(path), self.memory(path));
            match step {
                Step::Write { text, base } => {
                    write(&file, text)?;
                    write(&memory, base)?;
                }
                Step::Remember { base } => write(&memory, base)?,
                Step::Remove => {
                    remove(&self.root, &file)?;
                    remove(&self.root, &memory)?;
                }
                Step::Leave => {}
            }
        }
        Ok(self.outcomes)
    }
}

/// Tells the person what happened to which file.
pub(crate) fn report(outcomes: &[(String, Outcome)]) {
    for (path, outcome) in outcomes {
        println!("{:>12}  {path}{}", outcome.word(), outcome.note());
    }
}

/// All paths that have been generated, in order.
pub(crate) fn remembered(root: &Path) -> Result<Vec<String>, Complaint> {
    fn walk(folder: &Path, top: &Path, out: &mut Vec<String>) -> std::io::Result<()> {
        for entry in fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                walk(&path, top, out)?;
            } else if let Ok(relative) = path.strip_prefix(top) {
                out.push(relative.to_string_lossy().into_owned());
            }
        }
        Ok(())
    }
    let top = root.join(MEMORY);
    let mut out = Vec::new();
    if top.is_dir() {
        walk(&top, &top, &mut out)
            .map_err(|e| Complaint::new(format!("cannot read {}: {e}", top.display())))?;
    }
    out.sort();
    Ok(out)
}

/// A path inside of the project. What a program prints is not trusted with more.
fn within(path: &str) -> Result<(), Complaint> {
    let normal = Path::new(path).components().all(|c| matches!(c, Component::Normal(_)));
    if normal && !path.is_empty() {
        return Ok(());
    }
    Err(Complaint::new(format!("{path:?} is not a path inside of the project")))
}

fn write(path: &Path, text: &str) -> Result<(), Complaint> {
    let fail = |e: std::io::Error| Complaint::new(format!("cannot write {}: {e}", path.display()));
    if let Some(folder) = path.parent() {
        fs::create_dir_all(folder).map_err(fail)?;
    }
    // Renamed into place, so that a reader sees the old text or the new one; the mode of what was there stays.
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}", std::process::id()));
    let partial = PathBuf::from(partial);
    let put = || {
        fs::write(&partial, text)?;
        if let Ok(there) = fs::metadata(path) {
            fs::set_permissions(&partial, there.permissions())?;
        }
        fs::rename(&partial, path)
    };
    put().map_err(|e| {
        let _ = fs::remove_file(&partial);
        fail(e)
    })
}

/// Removes a file, and the folders above it that are left empty.
fn remove(root: &Path, path: &Path) -> Result<(), Complaint> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != ErrorKind::NotFound => {
            return Err(Complaint::new(format!("cannot remove {}: {e}", path.display())));
        }
        _ => {}
    }
    let mut folder = path.parent();
    while let Some(here) = folder.filter(|f| *f != root && f.starts_with(root)) {
        // Not empty, or gone: either way there is nothing to do.
        if fs::remove_dir(here).is_err() {
            break;
        }
        folder = here.parent();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: &str = "a\nb\nc\nd\ne\n";
    const SECOND: &str = "a\nb\nc\nd\nE\n";

    struct Here(tempfile::TempDir);

    impl Here {
        fn generate(&self, text: &str) -> Result<Vec<(String, Outcome)>, Complaint> {
            let mut plan = Plan::new(self.0.path(), false);
            plan.generate("x/file", text.into())?;
            plan.apply("do something")
        }

        fn edit(&self, text: Option<&str>) {
            let path = self.0.path().join("x/file");
            match text {
                Some(text) => write(&path, text).unwrap(),
                None => fs::remove_file(path).unwrap(),
            }
        }

        fn text(&self) -> Option<String> {
            read(&self.0.path().join("x/file")).unwrap()
        }
    }

    /// Generates FIRST, lets a person edit it, generates SECOND: `outcome` and the text that is there then.
    #[track_caller]
    fn check(edited: Option<&str>, outcome: Option<Outcome>, expect: Option<&str>) {
        let here = Here(tempfile::tempdir().unwrap());
        assert_eq!(here.generate(FIRST).unwrap(), [("x/file".to_owned(), Outcome::Created)]);
        assert_eq!(here.generate(FIRST).unwrap(), [], "a second time changes nothing");
        here.edit(edited);
        let outcomes: Vec<Outcome> = here.generate(SECOND).unwrap().into_iter().map(|(_, o)| o).collect();
        assert_eq!(outcomes, outcome.into_iter().collect::<Vec<_>>());
        assert_eq!(here.text().as_deref(), expect);
        let again = here.generate(SECOND).unwrap();
        assert!(again.iter().all(|(_, o)| *o == Outcome::StaysAway), "{again:?}");
        assert_eq!(here.text().as_deref(), expect, "a second time changes nothing");
    }

    #[test]
    fn edits_are_kept() {
        check(Some(FIRST), Some(Outcome::Updated), Some(SECOND));
        check(Some("A\nb\nc\nd\ne\n"), Some(Outcome::Merged), Some("A\nb\nc\nd\nE\n"));
        check(Some(SECOND), None, Some(SECOND));
        check(None, Some(Outcome::StaysAway), None);
    }

    #[test]
    fn a_conflict_writes_nothing() {
        let here = Here(tempfile::tempdir().unwrap());
        here.generate(FIRST).unwrap();
        here.edit(Some("a\nb\nc\nd\nmine\n"));
        let refusal = here.generate(SECOND).unwrap_err();
        assert!(refusal.text().contains("x/file: your edits"), "{}", refusal.text());
        assert_eq!(here.text().as_deref(), Some("a\nb\nc\nd\nmine\n"));
        let mut plan = Plan::new(here.0.path(), true);
        plan.generate("x/file", SECOND.into()).unwrap();
        plan.apply("").unwrap();
        assert!(here.text().unwrap().contains("<<<<<<<"), "marked on request");
    }

    #[test]
    fn what_others_wrote_is_not_overwritten() {
        let here = Here(tempfile::tempdir().unwrap());
        here.edit(Some("theirs"));
        assert!(here.generate(FIRST).unwrap_err().text().contains("was not generated here"));
        assert_eq!(here.text().as_deref(), Some("theirs"));
    }

    #[test]
    fn what_is_no_longer_generated_goes_unless_edited() {
        let folder = tempfile::tempdir().unwrap();
        let mut plan = Plan::new(folder.path(), false);
        for path in ["config/a", "config/b", "src/c"] {
            plan.generate(path, "text\n".into()).unwrap();
        }
        plan.apply("").unwrap();
        write(&folder.path().join("config/b"), "edited\n").unwrap();
        let mut plan = Plan::new(folder.path(), false);
        plan.retire("config").unwrap();
        assert_eq!(
            plan.apply("").unwrap(),
            [("config/a".to_owned(), Outcome::Removed), ("config/b".to_owned(), Outcome::Kept)]
        );
        assert!(!folder.path().join("config/a").exists() && folder.path().join("src/c").exists());
    }

    #[test]
    fn what_is_not_kept_with_the_source_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dist/a");
        for (edited, expect) in [(None, "text\n"), (Some("mine\n"), "mine\n")] {
            for text in [None, edited] {
                if let Some(text) = text {
                    write(&path, text).unwrap();
                }
                let mut plan = Plan::new(folder.path(), false);
                plan.produce("dist/a", "text\n".into()).unwrap();
                plan.apply("").unwrap();
            }
            assert_eq!(fs::read_to_string(&path).unwrap(), expect);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn paths_stay_within_the_project() {
        let folder = tempfile::tempdir().unwrap();
        for path in ["../x", "/etc/x", "", "a/../../x"] {
            let mut plan = Plan::new(folder.path(), false);
            assert!(plan.generate(path, String::new()).is_err(), "{path}");
        }
    }
}
