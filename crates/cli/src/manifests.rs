//! `homeostat manifests`: `config/` from the project's Rust types.
//!
//! The project's own program knows its types, so it is compiled and asked (`cargo run -- manifests`,
//! docs/decisions/0007-manifests-from-the-program.md); what it answers is written here, beside a person's edits.

use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;

use crate::complaint::Complaint;
use crate::create::{HINT, Merge};
use crate::project::Project;
use crate::project::plan::{Plan, report};

/// Flags of `manifests`.
#[derive(clap::Args)]
#[command(after_help = "Example:\n  homeostat manifests && git diff config/")]
pub(crate) struct Args {
    /// Write nothing; fail when config/ isn't what the types say, for CI
    #[arg(long)]
    check: bool,
    #[command(flatten)]
    merge: Merge,
}

/// A file as the program prints it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct File {
    /// Relative to `config/`.
    pub(crate) path: String,
    pub(crate) documents: Vec<Value>,
}

impl File {
    /// As YAML, several documents in one stream.
    pub(crate) fn yaml(&self) -> Result<String, Complaint> {
        yaml(&self.documents)
    }
}

/// Documents as a YAML stream.
pub(crate) fn yaml(documents: &[Value]) -> Result<String, Complaint> {
    let mut texts = Vec::new();
    for document in documents {
        let mut text = serde_saphyr::to_string(document)?;
        if !text.ends_with('\n') {
            text.push('\n');
        }
        texts.push(text);
    }
    Ok(texts.join("---\n"))
}

/// Compiles the project's program; its path.
pub(crate) fn compile(root: &Path, project: &Project) -> Result<std::path::PathBuf, Complaint> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(&cargo)
        .current_dir(root)
        .args(["build", "--quiet", "--message-format=json-render-diagnostics", "--bin", &project.name])
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|e| Complaint::new(format!("cannot run {}: {e}; is Rust installed?", cargo.display())))?;
    if !output.status.success() {
        return Err(Complaint::new("the project doesn't compile; see above"));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let found = text.lines().filter_map(|l| serde_json::from_str::<Value>(l).ok()).find_map(|m| {
        let ours = m["reason"] == "compiler-artifact" && m["target"]["name"] == project.name.as_str();
        m["executable"].as_str().filter(|_| ours).map(Into::into)
    });
    found.ok_or_else(|| {
        Complaint::new(format!("cargo made no program {}; is src/main.rs there?", project.name))
    })
}

/// What the project's program says is to be applied for it.
pub(crate) fn ask(program: &Path, project: &Project, image: Option<&str>) -> Result<Vec<File>, Complaint> {
    let mut command = Command::new(program);
    command.arg("manifests");
    if project.namespaced {
        command.arg("--namespaced");
    }
    if let Some(image) = image {
        command.args(["--image", image]);
    }
    let output = command
        .stdin(Stdio::null())
        .output()
        .map_err(|e| Complaint::new(format!("cannot run {}: {e}", program.display())))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().trim_start_matches(&format!("{}: ", project.name));
        return Err(Complaint::new(if said.is_empty() {
            format!("{} gave no manifests ({})", project.name, output.status)
        } else {
            said.to_owned()
        }));
    }
    serde_json::from_slice(&output.stdout).map_err(|e| {
        Complaint::new(format!(
            "{} doesn't print its manifests ({e}); does src/main.rs end in `program().main()`?",
            project.name
        ))
    })
}

/// Writes `config/`, or only checks it.
pub(crate) fn run(args: &Args) -> Result<(), Complaint> {
    write(&args.merge, args.check)
}

/// Writes `config/`; with `check` only says whether that would change anything.
pub(crate) fn write(merge: &Merge, check: bool) -> Result<(), Complaint> {
    let (root, project) = Project::find(&merge.path)?;
    let files = ask(&compile(&root, &project)?, &project, None)?;
    let mut plan = Plan::new(&root, merge.mark_conflicts);
    for file in &files {
        plan.generate(&format!("config/{}", file.path), file.yaml()?)?;
    }
    // The samples belong to `create api`.
    for folder in ["config/crd", "config/rbac", "config/manager", "config/webhook", "config/prometheus"] {
        plan.retire(folder)?;
    }
    if check {
        let stale = plan.changes();
        if stale.is_empty() {
            return Ok(());
        }
        return Err(Complaint::new(format!(
            "config/ isn't what the types say: {}; run `homeostat manifests`",
            stale.join(", ")
        )));
    }
    let outcomes = plan.apply(HINT)?;
    report(&outcomes);
    if outcomes.is_empty() {
        println!("config/ is what the types say");
    }
    Ok(())
}
