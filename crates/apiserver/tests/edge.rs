//! The edge over real sockets: TLS with and without client certificates, broken and slow clients, and the end.
#![allow(missing_docs)]

mod support;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use homeostat_apiserver::serve::{Limits, serve};
use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::WebPkiClientVerifier;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use support::server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_util::sync::CancellationToken;

struct Edge {
    address: SocketAddr,
    roots: RootCertStore,
    issuer: Issuer<'static, KeyPair>,
    stop: CancellationToken,
    task: JoinHandle<std::io::Result<()>>,
}

fn key(pair: &KeyPair) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(pair.serialize_der()).into()
}

async fn edge(limits: Limits) -> Edge {
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_key = KeyPair::generate().unwrap();
    let root = ca.self_signed(&ca_key).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(root.der().clone()).unwrap();
    let issuer = Issuer::new(ca, ca_key);
    let pair = KeyPair::generate().unwrap();
    let leaf =
        CertificateParams::new(vec!["localhost".to_owned()]).unwrap().signed_by(&pair, &issuer).unwrap();
    let verifier =
        WebPkiClientVerifier::builder(Arc::new(roots.clone())).allow_unauthenticated().build().unwrap();
    let mut tls = ServerConfig::builder()
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![leaf.der().clone()], key(&pair))
        .unwrap();
    tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let task = tokio::spawn(serve(server(), listener, Some(Arc::new(tls)), limits, stop.clone()));
    Edge { address, roots, issuer, stop, task }
}

impl Edge {
    /// A client's certificate of this user, signed by the cluster's authority.
    fn client(&self, user: &str, group: &str) -> (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>) {
        let pair = KeyPair::generate().unwrap();
        let mut p = CertificateParams::new(Vec::new()).unwrap();
        p.distinguished_name.push(DnType::CommonName, user);
        p.distinguished_name.push(DnType::OrganizationName, group);
        p.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let cert = p.signed_by(&pair, &self.issuer).unwrap();
        (vec![cert.der().clone()], key(&pair))
    }

    async fn connect(&self, user: Option<&str>) -> tokio_rustls::client::TlsStream<TcpStream> {
        let builder = ClientConfig::builder().with_root_certificates(self.roots.clone());
        let config = match user {
            None => builder.with_no_client_auth(),
            Some(user) => {
                let (chain, key) = self.client(user, "system:masters");
                builder.with_client_auth_cert(chain, key).unwrap()
            }
        };
        let tcp = TcpStream::connect(self.address).await.unwrap();
        let name = ServerName::try_from("localhost").unwrap();
        TlsConnector::from(Arc::new(config)).connect(name, tcp).await.unwrap()
    }

    /// Sends a GET on a connection of its own; the whole response as text.
    async fn get(&self, user: Option<&str>, path: &str) -> String {
        let mut stream = self.connect(user).await;
        let head = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut text = Vec::new();
        // A server may leave without the closing alert.
        let _ = stream.read_to_end(&mut text).await;
        String::from_utf8_lossy(&text).into_owned()
    }
}

fn code(response: &str) -> &str {
    response.split(' ').nth(1).unwrap_or_default()
}

#[tokio::test]
async fn certificates_say_who_asks() {
    let e = edge(Limits::default()).await;
    assert_eq!(code(&e.get(None, "/healthz").await), "200");
    assert_eq!(code(&e.get(None, "/api/v1/namespaces").await), "403");
    assert_eq!(code(&e.get(Some("admin"), "/api/v1/namespaces").await), "200");
    e.stop.cancel();
    e.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn nonsense_and_silence_hurt_nobody_else() {
    let limits = Limits { handshake: Duration::from_millis(200), ..Limits::default() };
    let e = edge(limits).await;
    let mut silent = TcpStream::connect(e.address).await.unwrap();
    let mut plain = TcpStream::connect(e.address).await.unwrap();
    plain.write_all(b"GET / HTTP/1.1\r\n\r\n").await.unwrap();
    let mut half = e.connect(None).await;
    half.write_all(b"GET /healthz HT").await.unwrap();
    let mut huge = e.connect(None).await;
    let long = format!("GET /healthz HTTP/1.1\r\nX: {}\r\n\r\n", "x".repeat(1024 * 1024));
    let _ = huge.write_all(long.as_bytes()).await;
    let mut answer = Vec::new();
    let _ = huge.read_to_end(&mut answer).await;
    assert!(!String::from_utf8_lossy(&answer).contains(" 200 "));
    assert_eq!(code(&e.get(None, "/healthz").await), "200");
    let mut rest = Vec::new();
    let _ = silent.read_to_end(&mut rest).await;
    assert!(rest.is_empty(), "a client that never speaks is hung up on");
    e.stop.cancel();
    e.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn heads_have_a_size() {
    let e = edge(Limits::default()).await;
    for (bytes, want) in [(32 * 1024, "200"), (96 * 1024, "431")] {
        let mut stream = e.connect(None).await;
        let head = format!(
            "GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nX: {}\r\n\r\n",
            "x".repeat(bytes)
        );
        // A server that has seen enough may hang up while we still write.
        let _ = stream.write_all(head.as_bytes()).await;
        let mut text = Vec::new();
        let _ = stream.read_to_end(&mut text).await;
        assert_eq!(code(&String::from_utf8_lossy(&text)), want, "{bytes}");
    }
    e.stop.cancel();
    e.task.await.unwrap().unwrap();
}

#[tokio::test]
async fn watches_end_with_the_server() {
    let e = edge(Limits { drain: Duration::from_secs(2), ..Limits::default() }).await;
    let mut watch = e.connect(Some("admin")).await;
    watch.write_all(b"GET /api/v1/namespaces?watch=true HTTP/1.1\r\nHost: localhost\r\n\r\n").await.unwrap();
    let mut chunk = vec![0; 64 * 1024];
    let n = watch.read(&mut chunk).await.unwrap();
    assert!(String::from_utf8_lossy(&chunk[..n]).starts_with("HTTP/1.1 200"));
    e.stop.cancel();
    let mut rest = Vec::new();
    let _ = watch.read_to_end(&mut rest).await;
    assert!(String::from_utf8_lossy(&rest).ends_with("0\r\n\r\n"), "the stream ends as it should");
    e.task.await.unwrap().unwrap();
    assert!(TcpStream::connect(e.address).await.is_err());
}
