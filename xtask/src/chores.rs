//! The chores themselves, each a list of steps that a person could type.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use clap::Args;

use crate::fidelity::{self, Client, Options, Summary};
use crate::run::{cargo, output, root, run};
use crate::{crds, kubectl, tidy};

#[derive(Args)]
pub(crate) struct TestArgs {
    /// Leave out what needs outside programs (replays need none, kubectl tests do)
    #[arg(long)]
    quick: bool,
}

#[derive(Args)]
pub(crate) struct FidelityArgs {
    /// Folders or files of scenarios [default: all under fidelity/]
    paths: Vec<PathBuf>,
    /// Only scenarios whose name contains this
    #[arg(long, default_value = "")]
    only: String,
    /// Let message texts count
    #[arg(long)]
    exact: bool,
    /// Scenarios side by side
    #[arg(long, default_value_t = 8)]
    jobs: usize,
    /// Failing steps shown for each scenario
    #[arg(long, default_value_t = 5)]
    most: usize,
    /// Replay against this server instead of starting one
    #[arg(long, requires = "token")]
    server: Option<String>,
    /// Bearer token of a cluster administrator on that server
    #[arg(long)]
    token: Option<String>,
}

/// `cargo xtask test`.
pub(crate) fn test(args: &TestArgs) -> Result<(), String> {
    run(cargo().args(["fmt", "--all", "--check"]))?;
    run(cargo().args([
        "clippy",
        "--quiet",
        "--workspace",
        "--all-targets",
        "--all-features",
        "--",
        "-D",
        "warnings",
    ]))?;
    tidy::check()?;
    let mut unit = cargo();
    if output(cargo().args(["nextest", "--version"])).is_ok() {
        unit.args(["nextest", "run", "--workspace", "--all-features", "--no-fail-fast"]);
    } else {
        unit.args(["test", "--workspace", "--all-features", "--no-fail-fast", "--lib", "--bins", "--tests"]);
    }
    if !args.quick {
        let kubectls = kubectl::provide()?;
        let list = std::env::join_paths(&kubectls).map_err(|e| e.to_string())?;
        unit.env("HOMEOSTAT_KUBECTL", list);
        if let Some(folder) = crds::provide()? {
            unit.env("HOMEOSTAT_CRDS", folder);
        }
    }
    run(&mut unit)?;
    run(cargo().args(["test", "--quiet", "--workspace", "--all-features", "--doc"]))?;
    replay_whole()
}

/// Replays the scenarios that `fidelity/whole.txt` lists: once whole, they stay whole.
fn replay_whole() -> Result<(), String> {
    let folder = root().join("fidelity");
    let list =
        std::fs::read_to_string(folder.join("whole.txt")).map_err(|e| format!("fidelity/whole.txt: {e}"))?;
    let paths = list
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
        .map(|l| folder.join(format!("{l}.json")))
        .collect();
    let mut options = Options { paths, only: String::new(), exact: true, jobs: 4, most: 5 };
    let sum = replay_against_own(&options)?;
    if sum.whole() {
        return Ok(());
    }
    // Ages and timeouts are recorded too: what fails in company on a busy machine is judged alone.
    options.paths.retain(|p| sum.failed.contains(&fidelity::stem(p)));
    options.jobs = 1;
    if replay_against_own(&options)?.whole() { Ok(()) } else { Err("recorded conversations differ".into()) }
}

/// `cargo xtask fidelity`.
pub(crate) fn fidelity(args: &FidelityArgs) -> Result<(), String> {
    let paths = if args.paths.is_empty() { vec![root().join("fidelity")] } else { args.paths.clone() };
    let options =
        Options { paths, only: args.only.clone(), exact: args.exact, jobs: args.jobs, most: args.most };
    let sum = match &args.server {
        Some(server) => replay(server, args.token.as_deref().unwrap_or_default(), &options)?,
        None => replay_against_own(&options)?,
    };
    if sum.whole() { Ok(()) } else { Err("some steps were not as recorded".into()) }
}

/// `cargo xtask data`.
pub(crate) fn data() -> Result<(), String> {
    crate::data::run()
}

fn replay(server: &str, token: &str, options: &Options) -> Result<Summary, String> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().map_err(|e| e.to_string())?;
    let client = Client::new(server, token)?;
    runtime.block_on(fidelity::replay(client, options))
}

const TOKEN: &str = "admintoken";

/// Builds and starts `homeostat up` as the reference ran (fidelity/README.md), replays, and stops it.
fn replay_against_own(options: &Options) -> Result<Summary, String> {
    run(cargo().args(["build", "--quiet", "--package", "homeostat-cli"]))?;
    let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
    let tokens = folder.path().join("tokens.csv");
    std::fs::write(&tokens, format!("{TOKEN},admin,admin,\"system:masters\"\n"))
        .map_err(|e| e.to_string())?;
    let kubeconfig = folder.path().join("kubeconfig");
    let program = root().join(target_folder()).join("debug/homeostat");
    let child = Command::new(&program)
        .args(["up", "--port", "0", "--nodes", "0", "--controllers", "*,-scheduler"])
        .args(["--disable-admission-plugins", "ServiceAccount", "--service-cluster-ip-range", "10.96.0.0/16"])
        .arg("--token-auth-file")
        .arg(&tokens)
        .arg("--kubeconfig")
        .arg(&kubeconfig)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn()
        .map_err(|e| format!("{}: {e}", program.display()))?;
    let _server = Stopped(child);
    let server = wait_for_url(&kubeconfig)?;
    replay(&server, TOKEN, options)
}

fn target_folder() -> PathBuf {
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| "target".into(), Into::into)
}

/// `homeostat up` writes its kubeconfig when it is ready.
fn wait_for_url(kubeconfig: &std::path::Path) -> Result<String, String> {
    for _ in 0..600 {
        let text = std::fs::read_to_string(kubeconfig).unwrap_or_default();
        if let Some(url) = text.lines().find_map(|l| l.trim().strip_prefix("server:")) {
            return Ok(url.trim().trim_matches('"').to_owned());
        }
        #[expect(
            clippy::disallowed_methods,
            reason = "polls another process; there is no event to wait for"
        )]
        std::thread::sleep(Duration::from_millis(50));
    }
    Err("homeostat up was not ready within 30 s".into())
}

/// A child process that ends with us.
struct Stopped(Child);

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
