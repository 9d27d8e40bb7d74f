//! Replays recorded conversations with the real API server against ours and reports what differs.
//!
//! A scenario is a JSON file of steps, each with the answer that Kubernetes 1.36.2 gave (`fidelity/README.md`).
//! The replayer knows nothing of our server: it speaks HTTPS with a token, like any client.
//! Invariant: the comparison is that of the recorder, value for value, so that a recording means one thing.

mod client;
mod compare;
mod hooks;
mod names;
mod scenario;
mod spacing;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use futures::StreamExt as _;

pub(crate) use client::Client;
use scenario::{Outcome, Scenario};

/// What to replay, and how strictly.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// Folders or files.
    pub(crate) paths: Vec<PathBuf>,
    /// Only scenarios whose name contains this.
    pub(crate) only: String,
    /// Whether message texts count.
    pub(crate) exact: bool,
    /// Scenarios side by side.
    pub(crate) jobs: usize,
    /// Failing steps shown for each scenario.
    pub(crate) most: usize,
}

/// The counts of a whole run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// The names of scenarios with a failing step.
    pub(crate) failed: Vec<String>,
    /// Scenarios replayed, and those without a failing step.
    pub(crate) scenarios: (usize, usize),
    /// Steps performed, and those as recorded.
    pub(crate) steps: (usize, usize),
    /// Message texts that differ.
    pub(crate) texts: usize,
}

impl Summary {
    /// Whether every step was as recorded.
    pub(crate) fn whole(&self) -> bool {
        self.steps.0 == self.steps.1
    }
}

/// Replays and prints a line for each scenario as it ends; returns the counts.
pub(crate) async fn replay(client: Client, options: &Options) -> Result<Summary, String> {
    let mut scenarios = Vec::new();
    for path in files(&options.paths, &options.only)? {
        scenarios.push(Scenario::read(&path)?);
    }
    let client = Arc::new(client);
    let exact = options.exact;
    let mut outcomes = futures::stream::iter(scenarios)
        .map(|s| {
            let client = client.clone();
            async move { s.play(client, exact).await }
        })
        .buffered(options.jobs.max(1));
    let mut sum = Summary::default();
    while let Some(outcome) = outcomes.next().await {
        report(&outcome, options.most);
        sum.scenarios.0 += 1;
        if !outcome.failures.is_empty() {
            sum.failed.push(outcome.name.clone());
        }
        sum.scenarios.1 += usize::from(outcome.failures.is_empty());
        sum.steps.0 += outcome.steps;
        sum.steps.1 += outcome.steps - outcome.failures.len();
        sum.texts += outcome.texts;
    }
    println!(
        "scenarios whole: {}/{}; steps: {}/{}; message texts that differ: {}",
        sum.scenarios.1, sum.scenarios.0, sum.steps.1, sum.steps.0, sum.texts
    );
    Ok(sum)
}

fn files(paths: &[PathBuf], only: &str) -> Result<Vec<PathBuf>, String> {
    let mut out = Vec::new();
    for path in paths {
        if path.is_dir() {
            let mut found: Vec<PathBuf> = std::fs::read_dir(path)
                .map_err(|e| format!("{}: {e}", path.display()))?
                .filter_map(|e| e.ok().map(|e| e.path()))
                .filter(|p| p.is_dir() || p.extension().is_some_and(|x| x == "json"))
                .collect();
            found.sort();
            out.extend(files(&found, "")?);
        } else {
            out.push(path.clone());
        }
    }
    out.retain(|p| stem(p).contains(only));
    Ok(out)
}

/// A scenario's name: its file's name without the ending.
pub(crate) fn stem(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}

fn report(outcome: &Outcome, most: usize) {
    let short = |v: &serde_json::Value| v.to_string().chars().take(220).collect::<String>();
    println!(
        "{} {}: {}/{} steps, {:.1} s",
        if outcome.failures.is_empty() { "ok  " } else { "FAIL" },
        outcome.name,
        outcome.steps - outcome.failures.len(),
        outcome.steps,
        outcome.took.as_secs_f64()
    );
    for failure in outcome.failures.iter().take(most) {
        println!("     step {} {}", failure.step, failure.what);
        for d in failure.differences.iter().take(6) {
            println!("       {}: want {}", d.path, short(&d.want));
            println!("       {}   got {}", " ".repeat(d.path.chars().count()), short(&d.got));
        }
    }
}
