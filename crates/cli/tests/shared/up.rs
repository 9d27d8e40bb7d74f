//! `homeostat up` as a process, in a folder of its own.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kube::config::{Config, KubeConfigOptions, Kubeconfig};

/// The command; its kubeconfig is the file of that name in the folder.
pub(crate) fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_homeostat"));
    command.args(["up", "--port", "0"]).args(args);
    command.arg("--kubeconfig").arg(folder.join("kubeconfig")).current_dir(folder);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// A client, once the server is up.
pub(crate) async fn client(folder: &Path) -> kube::Client {
    let kubeconfig = folder.join("kubeconfig");
    for _ in 0..600 {
        if kubeconfig.exists() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let config = Kubeconfig::read_from(&kubeconfig).expect("a kubeconfig");
    let config =
        Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.expect("a config");
    kube::Client::try_from(config).expect("a client")
}
