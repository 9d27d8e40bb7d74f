//! The flags of an operator's program.
//!
//! Generated Deployments use them, so they are an interface: they may be added to, not changed.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};
use homeostat_sdk::manifests::Options;

/// The SDK reports what goes wrong with watches and requests; kube would say it a second time.
const DEFAULT_LOG: &str = "info,kube_client=off,kube_runtime=off";

/// In a pod it uses the pod's service account; elsewhere the kubeconfig that $KUBECONFIG or --kubeconfig names, or
/// ~/.kube/config. It ends on SIGTERM or Ctrl-C when what it is doing is done.
#[derive(Parser)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
pub(crate) struct Flags {
    #[command(subcommand)]
    pub(crate) verb: Option<Verb>,
    #[command(flatten)]
    pub(crate) run: Run,
}

/// How it is run.
#[derive(Args, Debug)]
pub(crate) struct Run {
    /// The kubeconfig to use
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context to use, rather than its current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    /// Work in this namespace only
    #[arg(long, value_name = "NAMESPACE")]
    pub(crate) namespace: Option<String>,
    /// Of several such processes let one work, elected by a Lease
    #[arg(long)]
    pub(crate) leader_elect: bool,
    /// Where probes are answered (/healthz, /readyz), such as :8081
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) health_address: Option<SocketAddr>,
    /// Where metrics are served (/metrics), such as :8080
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) metrics_address: Option<SocketAddr>,
    /// Where webhooks are served [default: in a pod :9443, elsewhere on this machine alone]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub(crate) webhook_address: Option<SocketAddr>,
    /// Where the API server finds the webhooks [default: in a pod its Service, elsewhere where they are served]
    #[arg(long, value_name = "URL")]
    pub(crate) webhook_url: Option<String>,
    /// What to log: a level (error, warn, info, debug, trace), or directives as in info,homeostat_sdk=debug
    #[arg(long, value_name = "FILTER", env = "RUST_LOG", default_value = DEFAULT_LOG)]
    pub(crate) log: String,
}

/// What it can do besides.
#[derive(Subcommand)]
pub(crate) enum Verb {
    /// Print the manifests as JSON, for `homeostat manifests`
    #[command(hide = true)]
    Manifests(Manifests),
}

/// What manifests depend on besides the types.
#[derive(Args)]
pub(crate) struct Manifests {
    #[arg(long)]
    namespace: Option<String>,
    #[arg(long)]
    image: Option<String>,
    #[arg(long)]
    replicas: Option<u32>,
    #[arg(long)]
    namespaced: bool,
}

impl Manifests {
    /// As options for the program `name`.
    pub(crate) fn options(self, name: &str) -> Options {
        let default = Options::of(name);
        Options {
            namespace: self.namespace.unwrap_or(default.namespace),
            image: self.image.unwrap_or(default.image),
            replicas: self.replicas.unwrap_or(default.replicas),
            namespaced: self.namespaced,
        }
    }
}

/// An address to serve on; `:8080` is all of the machine's.
fn address(text: &str) -> Result<SocketAddr, String> {
    if let Some(port) = text.strip_prefix(':') {
        let port: u16 = port.parse().map_err(|_| format!("{port:?} is no port"))?;
        // Where there is IPv6, its wildcard takes IPv4 connections, too.
        let ip = match std::net::TcpListener::bind((Ipv6Addr::UNSPECIFIED, 0)) {
            Ok(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            Err(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        return Ok(SocketAddr::new(ip, port));
    }
    text.parse().map_err(|_| "write it as :8080, 127.0.0.1:8080 or [::1]:8080".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_as_in_go() {
        assert_eq!(address(":8080").unwrap().port(), 8080);
        assert!(address(":8080").unwrap().ip().is_unspecified());
        assert_eq!(address("127.0.0.1:1").unwrap().to_string(), "127.0.0.1:1");
        for bad in ["8080", ":", ":x", "localhost:1", ":99999"] {
            address(bad).unwrap_err();
        }
    }

    #[test]
    fn the_flags_of_the_deployment_are_known() {
        let args =
            ["p", "--leader-elect", "--health-address=:8081", "--metrics-address=:8080", "--namespace=x"];
        let flags = Flags::try_parse_from(args).map_err(|e| e.to_string()).unwrap();
        assert!(flags.run.leader_elect);
        let manifests = Flags::try_parse_from(["p", "manifests", "--image", "a:1", "--namespaced"]);
        let Some(Verb::Manifests(manifests)) = manifests.map_err(|e| e.to_string()).unwrap().verb else {
            panic!("no manifests");
        };
        assert_eq!(
            manifests.options("p"),
            Options { image: "a:1".into(), namespaced: true, ..Options::of("p") }
        );
    }
}
