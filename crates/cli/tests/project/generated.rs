//! A project in a folder of its own, as a person would have it, and where its compiler finds things.
//!
//! What is compiled here shares the target folder and the profile with this repository, so that most dependencies are
//! there already. Invariant: nothing outside of the folder and the target folder is written, and nothing is asked of the
//! network.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the repository")
}

/// The folder that projects find the SDK in.
pub(crate) fn sdk() -> String {
    repository().join("crates/homeostat").to_str().expect("UTF-8").to_owned()
}

/// cargo, as this test was compiled by it.
pub(crate) fn cargo() -> PathBuf {
    std::env::var_os("CARGO").map_or_else(|| "cargo".into(), PathBuf::from)
}

/// So that what this repository has compiled is used.
pub(crate) fn environment() -> BTreeMap<String, String> {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target folder");
    let mut variables = BTreeMap::new();
    let mut set = |name: &str, value: &str| variables.insert(name.to_owned(), value.to_owned());
    set("CARGO_TARGET_DIR", target.to_str().expect("UTF-8"));
    set("CARGO_NET_OFFLINE", "true");
    // As in .cargo/config.toml, which counts only here.
    set("AWS_LC_SYS_NO_JITTER_ENTROPY", "1");
    set("RUSTFLAGS", "");
    variables
}

/// Gives `project` this repository's lock, unless it has one: then it needs no other packages.
pub(crate) fn lock(project: &Path) {
    let lock = project.join("Cargo.lock");
    if !lock.exists() {
        fs::copy(repository().join("Cargo.lock"), lock).expect("a lock");
    }
}

/// The right to compile whole projects, for as long as it is kept. Those who do take turns: otherwise cargo's own lock
/// makes one wait in the middle of something with a time limit.
pub(crate) fn turn() -> fs::File {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("projects.turn");
    let file = fs::File::create(path).expect("a file in the target folder");
    file.lock().expect("a turn");
    file
}

/// A project.
pub(crate) struct Project {
    folder: tempfile::TempDir,
}

impl Project {
    /// A folder for one.
    pub(crate) fn empty() -> Self {
        Self { folder: tempfile::tempdir().expect("a folder") }
    }

    /// `homeostat init`.
    pub(crate) fn new(name: &str) -> Self {
        let project = Self::empty();
        project.run(&["init", "--domain", "example.com", "--name", name, "--sdk-path", &sdk()]);
        project
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    fn start(&self, program: &Path, args: &[&str]) -> Output {
        let mut command = Command::new(program);
        command.envs(environment()).env_remove("HOMEOSTAT_SDK_PATH");
        command.current_dir(self.path()).args(args).output().expect("it starts")
    }

    fn verb(&self, args: &[&str]) -> Output {
        self.start(Path::new(env!("CARGO_BIN_EXE_homeostat")), args)
    }

    /// Runs a verb that must succeed; what it prints.
    #[track_caller]
    pub(crate) fn run(&self, args: &[&str]) -> String {
        let output = self.verb(args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{args:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// Runs a verb that must fail; what it says.
    #[track_caller]
    pub(crate) fn refused(&self, args: &[&str]) -> String {
        let output = self.verb(args);
        assert!(!output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stdout));
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    /// cargo in the project. Warnings are errors: what is generated has none.
    #[track_caller]
    pub(crate) fn cargo(&self, args: &[&str]) -> String {
        lock(self.path());
        let output = self.start(&cargo(), args);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "cargo {args:?}: {error}\n{}",
            String::from_utf8_lossy(&output.stdout)
        );
        assert!(!error.contains("warning"), "cargo {args:?}: {error}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.path().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
    }

    /// As a person with an editor.
    #[track_caller]
    pub(crate) fn edit(&self, path: &str, from: &str, to: &str) {
        let text = self.read(path);
        assert!(text.contains(from), "{path} has no {from:?}:\n{text}");
        fs::write(self.path().join(path), text.replacen(from, to, 1)).expect("a file");
    }

    /// All files and their texts, but what cargo makes.
    pub(crate) fn tree(&self) -> BTreeMap<String, String> {
        let mut out = BTreeMap::new();
        tree(self.path(), self.path(), &mut out);
        out.remove("Cargo.lock");
        out
    }
}

fn tree(folder: &Path, top: &Path, out: &mut BTreeMap<String, String>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.strip_prefix(top).expect("inside").to_string_lossy().into_owned();
        if path.is_dir() {
            // An empty folder counts, too.
            out.insert(format!("{name}/"), String::new());
            tree(&path, top, out);
        } else {
            out.insert(name, fs::read_to_string(&path).expect("text"));
        }
    }
}

/// Copies what is in `from` into the folder `to`.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let path = entry.expect("an entry").path();
        let target = to.join(path.file_name().expect("a name"));
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).expect("a copy");
        }
    }
}
