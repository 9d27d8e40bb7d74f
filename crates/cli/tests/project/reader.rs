//! Somebody who follows a page to the letter: types what is in its console blocks, and edits what its diffs show.
//!
//! trycmd runs the commands and compares what they print. What only a shell can do is done here: `cd`, `export`, programs
//! that stay (in terminals of their own), and Ctrl-C. Invariant: nothing of the machine's own homes, clusters and
//! settings is seen, and all that is written is in the reader's home.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use crate::generated::{cargo, copy, environment, lock, sdk};
use crate::page::{Block, Typed, change, typed};
use crate::program::Program;

/// Commands that stay. What they print first must be shown, since that is what is waited for.
const STAY: [&str; 2] = ["homeostat run", "homeostat up"];

/// Where the reader is.
pub(crate) struct Reader {
    /// Those that stay, in the order in which they were started. They end before the home goes.
    programs: Vec<Program>,
    home: Rc<tempfile::TempDir>,
    kubectl: PathBuf,
    folder: PathBuf,
    environment: BTreeMap<String, String>,
}

/// The environment of a terminal that has just been opened.
fn variables(home: &Path) -> BTreeMap<String, String> {
    let mut variables = environment();
    // Where these are follows from the home, unless it is said.
    for (name, place) in [("CARGO_HOME", ".cargo"), ("RUSTUP_HOME", ".rustup")] {
        if let (None, Some(there)) = (std::env::var_os(name), std::env::home_dir()) {
            variables.insert(name.to_owned(), there.join(place).to_string_lossy().into_owned());
        }
    }
    variables.insert("HOME".to_owned(), home.to_string_lossy().into_owned());
    variables.insert("HOMEOSTAT_SDK_PATH".to_owned(), sdk());
    // As good as none.
    variables.insert("KUBECONFIG".to_owned(), String::new());
    variables
}

impl Reader {
    /// Somebody with a new home.
    pub(crate) fn new(kubectl: PathBuf) -> Self {
        let home = Rc::new(tempfile::tempdir().expect("a folder"));
        let folder = home.path().canonicalize().expect("a home");
        Self { programs: Vec::new(), kubectl, environment: variables(&folder), folder, home }
    }

    /// The same person in the same folder, with another page and new terminals.
    pub(crate) fn beside(&self) -> Self {
        let home = self.home.path().canonicalize().expect("a home");
        Self {
            programs: Vec::new(),
            home: Rc::clone(&self.home),
            kubectl: self.kubectl.clone(),
            folder: self.folder.clone(),
            environment: variables(&home),
        }
    }

    /// The same, with a copy of the folder, to change it.
    pub(crate) fn with_a_copy(&self) -> Self {
        let mut beside = self.beside();
        let there = tempfile::tempdir_in(self.home.path()).expect("a folder").keep();
        copy(&self.folder, &there);
        beside.folder = there;
        beside
    }

    /// Does what the blocks say.
    pub(crate) fn follow(&mut self, blocks: &[Block]) {
        for block in blocks {
            match block.language.as_str() {
                "console" => self.console(block),
                "diff" => self.edit(block),
                _ => {}
            }
        }
    }

    fn edit(&self, diff: &Block) {
        let file = diff.file.as_ref();
        let file = self.folder.join(file.unwrap_or_else(|| panic!("{}: of which file?", diff.place)));
        let text =
            fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {}: {e}", diff.place, file.display()));
        fs::write(&file, change(diff, &text)).expect("a file");
    }

    fn console(&mut self, block: &Block) {
        // Commands of one folder and one environment, which trycmd runs in one go.
        let mut together = String::new();
        for typed in typed(block) {
            let (word, rest) = typed.command.split_once(' ').unwrap_or((&typed.command, ""));
            let stays = STAY.iter().any(|s| typed.command.starts_with(s));
            if stays || ["cd", "export", "^C"].contains(&word) {
                self.run(&block.place, &std::mem::take(&mut together));
            }
            match word {
                _ if stays => {
                    let said = self.start(block, &typed);
                    let cat = Typed { command: format!("cat {}", said.display()), shown: typed.shown };
                    together = cat.transcript(|line| self.there(line));
                }
                "cd" => self.folder.push(rest),
                "export" => {
                    let (name, value) = rest.split_once('=').expect("export NAME=VALUE");
                    self.environment.insert(name.to_owned(), value.to_owned());
                }
                "^C" => {
                    let program =
                        self.programs.pop().unwrap_or_else(|| panic!("{}: nothing runs", block.place));
                    let status = program.interrupt();
                    assert!(status.success(), "{}: after Ctrl-C: {status}", block.place);
                }
                _ => together.push_str(&typed.transcript(|line| self.there(line))),
            }
        }
        self.run(&block.place, &together);
    }

    /// A line of a page with the folders that there are; trycmd has a word of its own for the one it runs in.
    fn there(&self, line: &str) -> String {
        let home = self.home.path().canonicalize().expect("a home");
        line.replace("/home/you", &home.to_string_lossy()).replace(&*self.folder.to_string_lossy(), "[CWD]")
    }

    /// A file of the reader's that is no part of what a page is about.
    fn note(&self) -> PathBuf {
        let folder = tempfile::Builder::new().prefix("note-").tempdir_in(self.home.path()).expect("a folder");
        folder.keep()
    }

    fn prepare(&self) {
        if self.folder.join("homeostat.toml").is_file() {
            lock(&self.folder);
        }
    }

    /// Starts what stays; the file with what it has printed once that is as long as what is shown.
    fn start(&mut self, block: &Block, typed: &Typed) -> PathBuf {
        assert!(!typed.shown.is_empty(), "{}: show what {} prints", block.place, typed.command);
        self.prepare();
        let mut command = Command::new(env!("CARGO_BIN_EXE_homeostat"));
        command.args(typed.command.split(' ').skip(1)).current_dir(&self.folder).envs(&self.environment);
        let (program, text) = Program::start(&mut command, typed.shown.len());
        self.programs.push(program);
        let said = self.note().join("said");
        fs::write(&said, text).expect("a file");
        said
    }

    /// Runs commands in the folder as it is, with the environment as it is.
    fn run(&self, place: &str, transcript: &str) {
        if transcript.is_empty() {
            return;
        }
        self.prepare();
        let note = self.note();
        let name = place.replace(['/', ':'], "-");
        let case = note.join(format!("{name}.md"));
        fs::write(&case, format!("```console\n{transcript}```\n")).expect("a file");
        // This is how trycmd is told where to run it.
        let folder = self.folder.to_str().expect("UTF-8");
        fs::write(note.join(format!("{name}.in")), folder).expect("a file");
        let cases = trycmd::TestCases::new();
        for (bin, path) in
            [("kubectl", self.kubectl.as_path()), ("cargo", &cargo()), ("cat", Path::new("/bin/cat"))]
        {
            cases.register_bin(bin, path);
        }
        for (name, value) in &self.environment {
            cases.env(name, value);
        }
        cases.case(case);
        cases.run();
    }
}
