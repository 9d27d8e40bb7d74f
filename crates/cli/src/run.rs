//! `homeostat run`: the project's program, compiled and running, and again on every change.
//!
//! It runs against the cluster of the kubeconfig or, where there is none, against a control plane of its own, into which
//! the project's definitions are put. A program that doesn't compile leaves the last one running.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use homeostat_cluster::{Cluster, ClusterOptions, kubeconfig};
use notify::{RecursiveMode, Watcher as _};
use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::complaint::Complaint;
use crate::manifests::{File, ask, compile};
use crate::project::Project;
use crate::remote::{Definitions, Remote, Where};
use crate::{signals, up};

/// Flags of `run`.
#[derive(clap::Args)]
#[command(after_help = "Example:
  homeostat run                                  # KUBECONFIG's cluster, or an embedded one
  homeostat run --embedded -- --log debug")]
pub(crate) struct Args {
    #[command(flatten)]
    cluster: Where,
    /// An embedded control plane, whatever KUBECONFIG says
    #[arg(long, conflicts_with_all = ["kubeconfig", "context"])]
    embedded: bool,
    /// Simulated nodes of the embedded control plane
    #[arg(long, default_value_t = 1, value_name = "N")]
    nodes: usize,
    /// Don't start it again when the source changes
    #[arg(long)]
    once: bool,
    /// The project's folder
    #[arg(long, default_value = ".", value_name = "FOLDER")]
    path: PathBuf,
    /// Flags for the program
    #[arg(last = true, value_name = "FLAGS")]
    flags: Vec<String>,
}

/// How long after a change more changes are waited for: editors write files in several steps.
const QUIET: Duration = Duration::from_millis(200);
/// How long the program has to finish: what its reconciles have, and a little.
const GRACE: Duration = Duration::from_secs(35);

/// The control plane that comes along.
struct Embedded {
    cluster: Cluster,
    kubeconfig: PathBuf,
}

impl Embedded {
    async fn start(root: &Path, nodes: usize) -> Result<Self, Complaint> {
        let listener = up::listen(([127, 0, 0, 1], 0).into()).await?;
        let advertise = Some(listener.local_addr()?);
        let cluster = Cluster::with(ClusterOptions { nodes, advertise, ..ClusterOptions::default() }).await?;
        let endpoint = cluster.serve(listener).await?;
        let path = root.join(".homeostat/kubeconfig");
        kubeconfig::write(&path, &endpoint.kubeconfig())?;
        println!("An embedded control plane is up: {}", endpoint.url());
        println!("  export KUBECONFIG={}", path.display());
        Ok(Self { cluster, kubeconfig: path })
    }
}

/// Whether there is a kubeconfig to be found.
fn has_kubeconfig(args: &Args) -> bool {
    let home = || std::env::var_os("HOME").map(|h| Path::new(&h).join(".kube/config"));
    args.cluster.kubeconfig.is_some()
        || std::env::var_os("KUBECONFIG").is_some_and(|k| !k.is_empty())
        || home().is_some_and(|path| path.is_file())
}

/// Runs until stopped.
pub(crate) async fn run(args: Args) -> Result<(), Complaint> {
    let (root, project) = Project::find(&args.path)?;
    let embedded = if args.embedded || !has_kubeconfig(&args) {
        Some(Embedded::start(&root, args.nodes).await?)
    } else {
        // Says at once what is wrong with it, before anything is compiled.
        args.cluster.connect().await?;
        None
    };
    let mut running = None;
    let result = tokio::select! {
        biased;
        () = signals::stop() => Ok(()),
        result = follow(&args, &root, &project, embedded.as_ref(), &mut running) => result,
    };
    if let Some(child) = running {
        stop(child).await;
    }
    if let Some(embedded) = embedded {
        embedded.cluster.stop(up::DRAIN).await;
    }
    result
}

/// Compiles and runs, again and again.
async fn follow(
    args: &Args,
    root: &Path,
    project: &Project,
    embedded: Option<&Embedded>,
    running: &mut Option<Child>,
) -> Result<(), Complaint> {
    let (changes, mut changed) = mpsc::channel(1);
    let _watcher = if args.once { None } else { Some(watch(root, changes)?) };
    loop {
        match build(root, project).await {
            Ok((program, files)) => {
                if let Some(child) = running.take() {
                    stop(child).await;
                }
                if let Some(embedded) = embedded {
                    install(embedded, project, &files).await?;
                }
                println!("Starting {} …", project.name);
                *running = Some(start(args, root, &program, embedded)?);
            }
            Err(complaint) if args.once => return Err(complaint),
            Err(complaint) => eprintln!("homeostat: {}", complaint.text()),
        }
        tokio::select! {
            biased;
            change = changed.recv(), if !args.once => {
                if change.is_none() {
                    return Err(Complaint::new("the source can't be watched any longer"));
                }
                settle(&mut changed).await;
                println!("The source has changed: compiling …");
            }
            ended = ended(running) => {
                *running = None;
                let how = ended.map_or_else(|e| e.to_string(), |s| s.to_string());
                if args.once {
                    return Err(Complaint::new(format!("{} ended: {how}", project.name)));
                }
                eprintln!("homeostat: {} ended: {how}; waiting for a change", project.name);
                if changed.recv().await.is_none() {
                    return Err(Complaint::new("the source can't be watched any longer"));
                }
                settle(&mut changed).await;
            }
        }
    }
}

async fn ended(running: &mut Option<Child>) -> std::io::Result<std::process::ExitStatus> {
    match running {
        Some(child) => child.wait().await,
        None => std::future::pending().await,
    }
}

/// Waits until nothing has changed for a moment.
async fn settle(changed: &mut mpsc::Receiver<()>) {
    while let Ok(Some(())) = tokio::time::timeout(QUIET, changed.recv()).await {}
}

/// Tells of changes in what the program is compiled from.
fn watch(root: &Path, changes: mpsc::Sender<()>) -> Result<notify::RecommendedWatcher, Complaint> {
    let mut watcher = notify::recommended_watcher(move |event: notify::Result<notify::Event>| {
        // Reading is an event, too, and the compiler reads.
        if event.is_ok_and(|e| !e.kind.is_access()) {
            let _ = changes.try_send(());
        }
    })?;
    watcher.watch(&root.join("src"), RecursiveMode::Recursive)?;
    watcher.watch(&root.join("Cargo.toml"), RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

async fn build(root: &Path, project: &Project) -> Result<(PathBuf, Vec<File>), Complaint> {
    let (root, project) = (root.to_owned(), project.clone());
    let work = move || {
        let program = compile(&root, &project)?;
        let files = ask(&program, &project, None)?;
        Ok((program, files))
    };
    tokio::task::spawn_blocking(work).await.map_err(|e| Complaint::new(format!("compiling: {e}")))?
}

/// Puts the definitions into the embedded control plane, which is this project's alone.
async fn install(embedded: &Embedded, project: &Project, files: &[File]) -> Result<(), Complaint> {
    let objects =
        files.iter().filter(|f| f.path.starts_with("crd/")).flat_map(|f| f.documents.clone()).collect();
    let definitions = Definitions { project: project.name.clone(), objects };
    definitions.apply(&mut Remote::new(embedded.cluster.client())).await
}

fn start(args: &Args, root: &Path, program: &Path, embedded: Option<&Embedded>) -> Result<Child, Complaint> {
    let mut environment: BTreeMap<&str, PathBuf> = BTreeMap::new();
    let mut command = Command::new(program);
    command.current_dir(root).args(&args.flags).stdin(Stdio::null()).kill_on_drop(true);
    match (embedded, &args.cluster.kubeconfig) {
        (Some(embedded), _) => drop(environment.insert("KUBECONFIG", embedded.kubeconfig.clone())),
        (None, Some(path)) => drop(environment.insert("KUBECONFIG", std::path::absolute(path)?)),
        (None, None) => {}
    }
    if let Some(context) = &args.cluster.context {
        command.args(["--context", context]);
    }
    command.envs(environment);
    command.spawn().map_err(|e| Complaint::new(format!("cannot run {}: {e}", program.display())))
}

/// Lets the program finish what it does.
async fn stop(mut child: Child) {
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw);
    if let Some(pid) = pid {
        let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
        if tokio::time::timeout(GRACE, child.wait()).await.is_ok() {
            return;
        }
    }
    let _ = child.kill().await;
}
