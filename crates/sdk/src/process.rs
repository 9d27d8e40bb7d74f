//! What an operator's program needs around its manager: a client from the environment, and the signal to stop.
//!
//! Errors here are read by a person at a terminal, so each is one line that says what to do.

use std::path::Path;
use std::time::Duration;

use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use tokio_util::sync::CancellationToken;

use crate::error::{Error, Result};

/// How long the API server may take to answer the first request.
const FIRST_ANSWER: Duration = Duration::from_secs(10);

/// A client for the cluster that a kubeconfig names.
///
/// Without a path it is that of `$KUBECONFIG` or `~/.kube/config`, or where there is none, the service account of the
/// pod. The API server is asked for its version first, so that a wrong address or expired credentials show at once.
pub async fn client(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Client> {
    connect(config(kubeconfig, context).await?).await
}

/// A client for what a configuration names, as [`client`].
pub async fn connect(config: Config) -> Result<Client> {
    let url = config.cluster_url.to_string();
    let client = Client::try_from(config)
        .map_err(|e| Error::msg(format!("can't make a client for {url}: {}", all(&e))))?;
    match tokio::time::timeout(FIRST_ANSWER, client.apiserver_version()).await {
        Ok(Ok(_)) => Ok(client),
        Ok(Err(kube::Error::Api(status))) if status.code == 401 => Err(Error::msg(format!(
            "{url} doesn't accept the credentials: renew them in the kubeconfig, or name another with --context"
        ))),
        // Whoever may not see the version may still do what the operator needs.
        Ok(Err(kube::Error::Api(_))) => Ok(client),
        Ok(Err(e)) => Err(Error::msg(format!(
            "can't reach the cluster at {url}: {}; is it running, and does the kubeconfig name the right one?",
            all(&e)
        ))),
        Err(_) => Err(Error::msg(format!(
            "the cluster at {url} doesn't answer within {} s; is it running, and does the kubeconfig name the right one?",
            FIRST_ANSWER.as_secs()
        ))),
    }
}

/// What a kubeconfig says, found as [`client`] finds it.
pub async fn config(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Config> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    if let Some(path) = kubeconfig {
        let failed =
            |e: &dyn std::error::Error| Error::msg(format!("kubeconfig {}: {}", path.display(), all(e)));
        let file = Kubeconfig::read_from(path).map_err(|e| failed(&e))?;
        return Config::from_custom_kubeconfig(file, &options).await.map_err(|e| failed(&e));
    }
    match Config::from_kubeconfig(&options).await {
        Ok(config) => Ok(config),
        Err(outside) if context.is_none() => Config::incluster().map_err(|inside| {
            Error::msg(format!(
                "no cluster to work with: the kubeconfig is no help ({}) and this is no pod ({}); set KUBECONFIG or \
                 give --kubeconfig",
                all(&outside),
                all(&inside)
            ))
        }),
        Err(outside) => Err(Error::msg(format!("kubeconfig: {}", all(&outside)))),
    }
}

/// An error and its causes in one line, each text once.
fn all(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        next = cause.source();
    }
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The namespace of the pod that this process runs in: of `POD_NAMESPACE`, else of its service account. `None` where it
/// runs in no pod.
pub fn namespace() -> Option<String> {
    if let Some(said) = std::env::var("POD_NAMESPACE").ok().filter(|n| !n.is_empty()) {
        return Some(said);
    }
    let mounted = std::fs::read_to_string("/var/run/secrets/kubernetes.io/serviceaccount/namespace").ok()?;
    Some(mounted.trim().to_owned()).filter(|n| !n.is_empty())
}

/// What tells this process' machine from others: `POD_NAME`, else the host's name.
pub(crate) fn host() -> String {
    let said = ["POD_NAME", "HOSTNAME"].into_iter().filter_map(|v| std::env::var(v).ok());
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let mut names = said.chain(host).map(|n| n.trim().to_owned()).filter(|n| !n.is_empty());
    names.next().unwrap_or_else(|| "homeostat".to_owned())
}

/// Cancelled on SIGTERM or Ctrl-C. A second signal ends the process at once. Must be called within a tokio runtime.
pub fn shutdown() -> CancellationToken {
    let token = CancellationToken::new();
    let stop = token.clone();
    tokio::spawn(async move {
        signal().await;
        stop.cancel();
        signal().await;
        // 128 + SIGINT, as shells report it.
        std::process::exit(130);
    });
    token
}

#[cfg(unix)]
async fn signal() {
    use tokio::signal::unix::{SignalKind, signal};
    match signal(SignalKind::terminate()) {
        Ok(mut terminate) => {
            tokio::select! { biased;
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(_) => {
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}

#[cfg(not(unix))]
async fn signal() {
    let _ = tokio::signal::ctrl_c().await;
}
