//! Where a served cluster is to be found, and the identities that lead there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use homeostat_model::Timestamp;
use rustls::RootCertStore;
use rustls::server::WebPkiClientVerifier;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::kubeconfig;
use crate::pki::{Authority, Identity};

/// Names that clients may use for the server, besides its addresses.
const NAMES: &[&str] = &[
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Why a cluster could not be served.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The listener is not to be used.
    #[error(transparent)]
    Listener(#[from] std::io::Error),
    /// No certificate could be made.
    #[error("cannot issue a certificate")]
    Certificate(#[from] rcgen::Error),
    /// TLS refused what was made.
    #[error("cannot set up TLS: {0}")]
    Tls(String),
}

/// A served cluster.
pub struct Endpoint {
    address: SocketAddr,
    authority: Arc<Authority>,
    admin: Identity,
}

impl Endpoint {
    /// Issues the server's and the administrator's certificates for a server at `address`.
    pub(crate) fn new(
        authority: Arc<Authority>,
        address: SocketAddr,
        services: ipnet::IpNet,
        now: Timestamp,
    ) -> Result<(Self, Arc<rustls::ServerConfig>), ServeError> {
        let mut addresses = vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)];
        if !address.ip().is_unspecified() && !address.ip().is_loopback() {
            addresses.push(address.ip());
        }
        // The `kubernetes` Service has the range's first address.
        addresses.extend(services.hosts().next());
        let server = authority.server(NAMES, &addresses, now)?;
        let admin = authority.client("kubernetes-admin", "system:masters", now)?;
        let tls = tls(&authority, &server)?;
        Ok((Self { address, authority, admin }, tls))
    }

    /// The URL to reach it by.
    pub fn url(&self) -> String {
        let ip = match self.address.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::LOCALHOST),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::LOCALHOST),
        };
        format!("https://{}", SocketAddr::new(ip, self.address.port()))
    }

    /// The port that it listens on.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// A kubeconfig of the administrator.
    pub fn kubeconfig(&self) -> String {
        kubeconfig::text(&self.url(), self.authority.pem(), &self.admin)
    }

    /// The authority, to issue further identities.
    pub fn authority(&self) -> &Authority {
        &self.authority
    }
}

fn tls(authority: &Authority, server: &Identity) -> Result<Arc<rustls::ServerConfig>, ServeError> {
    fn fail(e: impl std::fmt::Display) -> ServeError {
        ServeError::Tls(e.to_string())
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from(authority.der().to_vec())).map_err(fail)?;
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
        .allow_unauthenticated()
        .build()
        .map_err(fail)?;
    let chain = vec![CertificateDer::from_pem_slice(server.certificate.as_bytes()).map_err(fail)?];
    let key = PrivateKeyDer::from_pem_slice(server.key.as_bytes()).map_err(fail)?;
    let mut config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(fail)?
        .with_client_cert_verifier(clients)
        .with_single_cert(chain, key)
        .map_err(fail)?;
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}
