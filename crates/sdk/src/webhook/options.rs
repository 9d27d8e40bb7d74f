//! Where a webhook server listens and how it is reached, and what starts it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use homeostat_model::Clock;
use kube::Client;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use super::server::{Served, answers, tls};
use super::upkeep::Upkeep;
use super::{Reach, Webhook, service_name};
use crate::error::{Error, Result};
use crate::metrics::Common;
use crate::process;
use crate::serve::serve;

/// controller-runtime's port.
const PORT: u16 = 9443;

/// How a manager serves its webhooks. The defaults need no thought:
///
/// - In a pod it listens on all addresses, port 9443, and is reached by the Service `<manager>-webhook` of the pod's
///   namespace (`WEBHOOK_SERVICE` and `POD_NAMESPACE` in the environment say otherwise). Its certificate is in the
///   Secret `<manager>-webhook-cert`, which it makes and renews itself.
/// - Elsewhere it listens on 127.0.0.1, port 9443 or where that is taken any other, and is reached by that address, so
///   the API server must be on the same machine, as the embedded one is. Its certificate stays in memory, and when it
///   stops, so does the API server's asking.
///
/// ```
/// use homeostat_sdk::webhook::{Reach, WebhookOptions};
///
/// // An API server in a container asks a process on its host.
/// let options = WebhookOptions {
///     reach: Some(Reach::Url("https://host.docker.internal:9443".into())),
///     listen: Some("0.0.0.0:9443".parse().unwrap()),
///     ..WebhookOptions::default()
/// };
/// ```
#[derive(Clone, Debug)]
pub struct WebhookOptions {
    /// Where it listens.
    pub listen: Option<SocketAddr>,
    /// How the API server reaches it.
    pub reach: Option<Reach>,
    /// Whether the manager makes the API server ask, by applying the configurations itself (true by default).
    pub register: bool,
}

impl Default for WebhookOptions {
    fn default() -> Self {
        Self { listen: None, reach: None, register: true }
    }
}

/// What a webhook server is made of.
pub(crate) struct Webhooks {
    pub(crate) name: String,
    pub(crate) webhooks: Vec<Webhook>,
    pub(crate) options: WebhookOptions,
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) metrics: Arc<Common>,
    /// Cancelled when they are served and registered.
    pub(crate) ready: CancellationToken,
}

/// Listens, and returns what serves until `stop`.
pub(crate) async fn start(
    webhooks: Webhooks,
    stop: CancellationToken,
) -> Result<impl Future<Output = ()> + Send + 'static> {
    let Webhooks { name, webhooks, options, client, clock, metrics, ready } = webhooks;
    let listener = listen(&options).await?;
    let reach = match options.reach {
        Some(reach) => reach,
        None => usual_reach(&name, listener.local_addr()?),
    };
    let served = Arc::new(Served::default());
    let tls = tls(served.clone())?;
    let answers = answers(&webhooks, client.clone(), metrics.clone());
    let upkeep =
        Upkeep { name, webhooks, reach, client, clock, served, metrics, register: options.register, ready };
    Ok(async move {
        // The configurations go before the server does.
        let end = CancellationToken::new();
        let server = serve(listener, Some(tls), answers, end.clone());
        let upkeep = async {
            upkeep.run(stop).await;
            end.cancel();
        };
        futures::future::join(server, upkeep).await;
    })
}

async fn listen(options: &WebhookOptions) -> Result<TcpListener> {
    let in_use = |address: SocketAddr, e: std::io::Error| {
        Error::msg(format!("webhooks can't be served on {address}: {e}"))
    };
    if let Some(address) = options.listen {
        return TcpListener::bind(address).await.map_err(|e| in_use(address, e));
    }
    if process::namespace().is_some() {
        // Both families where there are both.
        let any = SocketAddr::new(IpAddr::V6(Ipv6Addr::UNSPECIFIED), PORT);
        if let Ok(listener) = TcpListener::bind(any).await {
            return Ok(listener);
        }
        let any = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), PORT);
        return TcpListener::bind(any).await.map_err(|e| in_use(any, e));
    }
    let usual = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT);
    if let Ok(listener) = TcpListener::bind(usual).await {
        return Ok(listener);
    }
    let other = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
    TcpListener::bind(other).await.map_err(|e| in_use(other, e))
}

fn usual_reach(manager: &str, address: SocketAddr) -> Reach {
    let Some(namespace) = process::namespace() else {
        return Reach::Url(format!("https://{address}"));
    };
    let service = std::env::var("WEBHOOK_SERVICE").ok().filter(|n| !n.is_empty());
    Reach::Service { namespace, name: service.unwrap_or_else(|| service_name(manager)), port: 443 }
}
