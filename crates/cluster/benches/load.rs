//! The load that the reference figures were taken with, over TLS: 16 connections, custom objects of 1 KB.
//!
//! `cargo bench -p homeostat-cluster --bench load` starts a control plane without nodes in this process, so client and
//! server share the machine, and prints a rate, the 99th percentile and the ratio to kube-apiserver with etcd on the
//! same machine (2 cores, no fsync), measured with the same load.

mod shared;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use homeostat_cluster::{Cluster, ClusterOptions, Endpoint};
use http::Request;
use http_body_util::{BodyExt as _, Full};
use hyper::client::conn::http1::SendRequest;
use hyper_util::rt::TokioIo;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::Instant;
use tokio_rustls::TlsConnector;

use shared::memory;

const CONNECTIONS: usize = 16;
const OBJECTS: usize = 5_000;
/// Objects of the long list.
const MANY: usize = 100_000;
const COLLECTION: &str = "/apis/bench.example.com/v1/namespaces/default/things";

/// Rates and 99th percentiles (milliseconds) of the reference.
const REFERENCE: &[(&str, f64, Option<f64>)] = &[
    ("create", 614.0, Some(53.0)),
    ("get", 1573.0, None),
    ("merge patch", 543.0, None),
    ("apply", 464.0, Some(91.0)),
    ("status patch", 413.0, None),
    ("delete", 340.0, None),
];

struct Target {
    address: String,
    tls: TlsConnector,
}

impl Target {
    fn new(endpoint: &Endpoint) -> Self {
        let now = homeostat_model::Clock::system().now();
        let admin = endpoint.authority().client("bench", "system:masters", now).expect("a certificate");
        let mut roots = rustls::RootCertStore::empty();
        roots.add(CertificateDer::from(endpoint.authority().der().to_vec())).expect("a root");
        let chain = vec![CertificateDer::from_pem_slice(admin.certificate.as_bytes()).expect("PEM")];
        let key = PrivateKeyDer::from_pem_slice(admin.key.as_bytes()).expect("PEM");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_client_auth_cert(chain, key)
            .expect("an identity");
        Self { address: format!("127.0.0.1:{}", endpoint.port()), tls: TlsConnector::from(Arc::new(config)) }
    }

    async fn connect(&self) -> SendRequest<Full<Bytes>> {
        let tcp = TcpStream::connect(&self.address).await.expect("a connection");
        tcp.set_nodelay(true).expect("nodelay");
        let name = ServerName::try_from("127.0.0.1").expect("a name");
        let stream = self.tls.connect(name, tcp).await.expect("TLS");
        let (sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.expect("HTTP");
        tokio::spawn(connection);
        sender
    }
}

async fn send(to: &mut SendRequest<Full<Bytes>>, method: &str, path: &str, kind: &str, body: Bytes) -> Bytes {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Host", "127.0.0.1")
        .header("Content-Type", kind)
        .body(Full::new(body))
        .expect("a request");
    to.ready().await.expect("ready");
    let response = to.send_request(request).await.expect("an answer");
    let status = response.status();
    let body = response.into_body().collect().await.expect("a body").to_bytes();
    assert!(status.is_success(), "{method} {path}: {status} {}", String::from_utf8_lossy(&body));
    body
}

fn object(i: usize) -> Bytes {
    let padding = "x".repeat(800);
    json!({"apiVersion": "bench.example.com/v1", "kind": "Thing", "metadata": {"name": format!("t{i}")},
        "spec": {"replicas": 3, "padding": padding}})
    .to_string()
    .into()
}

/// One kind of request, `OBJECTS` times over all connections.
async fn load<F>(target: &Arc<Target>, name: &str, request: F)
where
    F: Fn(usize) -> (&'static str, String, &'static str, Bytes) + Clone + Send + 'static,
{
    load_range(target, name, 0..OBJECTS, request).await;
}

/// The same for the objects of a range.
async fn load_range<F>(target: &Arc<Target>, name: &str, range: std::ops::Range<usize>, request: F)
where
    F: Fn(usize) -> (&'static str, String, &'static str, Bytes) + Clone + Send + 'static,
{
    let count = range.len();
    let next = Arc::new(AtomicUsize::new(range.start));
    let mut senders = Vec::new();
    for _ in 0..CONNECTIONS {
        senders.push(target.connect().await);
    }
    let begin = Instant::now();
    let mut tasks = Vec::new();
    for mut sender in senders {
        let (next, request, range) = (next.clone(), request.clone(), range.clone());
        tasks.push(tokio::spawn(async move {
            let mut times = Vec::new();
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= range.end {
                    return times;
                }
                let (method, path, kind, body) = request(i);
                let start = Instant::now();
                send(&mut sender, method, &path, kind, body).await;
                times.push(start.elapsed());
            }
        }));
    }
    let mut times: Vec<Duration> = Vec::new();
    for task in tasks {
        times.extend(task.await.expect("a connection's work"));
    }
    let rate = count as f64 / begin.elapsed().as_secs_f64();
    times.sort();
    let p99 = times[times.len() * 99 / 100].as_secs_f64() * 1e3;
    let reference = REFERENCE.iter().find(|(n, ..)| *n == name);
    let ratio = reference.map_or(String::new(), |(_, r, p)| {
        let p = p.map_or(String::new(), |p| format!(", p99 {:.0}x lower", p / p99));
        format!("{:.0}x the reference's rate{p}", rate / r)
    });
    println!("{name:<14} {rate:>9.0}/s   p99 {p99:>7.2} ms   {ratio}");
}

async fn definition(target: &Target) {
    let preserve = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let schema = json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": {"replicas": {"type": "integer"}, "padding": {"type": "string"}}},
        "status": preserve}});
    let crd = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "things.bench.example.com"},
        "spec": {"group": "bench.example.com", "scope": "Namespaced",
            "names": {"plural": "things", "singular": "thing", "kind": "Thing"},
            "versions": [{"name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": schema}}]}});
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let mut sender = target.connect().await;
    send(&mut sender, "POST", path, "application/json", crd.to_string().into()).await;
    loop {
        let answer = send(&mut sender, "GET", "/apis", "application/json", Bytes::new()).await;
        if String::from_utf8_lossy(&answer).contains("bench.example.com") {
            return;
        }
        tokio::task::yield_now().await;
    }
}

/// The peak of this process's resident memory in MB, counted anew from here.
fn peak_from_here() -> impl Fn() -> f64 {
    // Writing 5 resets the high-water mark (proc(5)).
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    || {
        let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let kb = text
            .lines()
            .find_map(|l| l.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.trim().parse::<f64>().ok());
        kb.unwrap_or(0.0) / 1024.0
    }
}

/// A long list, streamed whole and then in pages; the client keeps nothing of it.
async fn long_list(target: &Arc<Target>) {
    let mut sender = target.connect().await;
    let (before, peak) = (memory(), peak_from_here());
    let begin = Instant::now();
    let request =
        Request::get(COLLECTION).header("Host", "127.0.0.1").body(Full::default()).expect("a request");
    let mut body = sender.send_request(request).await.expect("an answer").into_body();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        bytes += frame.expect("a frame").data_ref().map_or(0, Bytes::len);
    }
    let took = begin.elapsed().as_secs_f64();
    println!(
        "long list      {:>9.1} ms for {MANY} objects, {:.0} MB; peak memory {:.1} MB above before",
        took * 1e3,
        bytes as f64 / 1e6,
        (peak() - before).max(0.0)
    );
    let begin = Instant::now();
    let (mut pages, mut token) = (0, String::new());
    loop {
        let path = format!("{COLLECTION}?limit=500&continue={token}");
        let page = send(&mut sender, "GET", &path, "", Bytes::new()).await;
        pages += 1;
        let tail = String::from_utf8_lossy(&page);
        let Some((_, rest)) = tail.rsplit_once("\"continue\":\"") else { break };
        token = rest.split('"').next().unwrap_or_default().to_owned();
        if token.is_empty() {
            break;
        }
    }
    let rate = f64::from(pages) / begin.elapsed().as_secs_f64();
    println!("pages          {rate:>9.0}/s of 500 objects ({pages} pages)");
}

/// Watches that each see every one of `events` patches.
async fn fan_out(target: &Arc<Target>, watchers: usize, events: usize) {
    let mut tasks = Vec::new();
    let list =
        send(&mut target.connect().await, "GET", &format!("{COLLECTION}?limit=1"), "", Bytes::new()).await;
    let list: Value = serde_json::from_slice(&list).expect("a list");
    let version = list["metadata"]["resourceVersion"].as_str().expect("a version").to_owned();
    for _ in 0..watchers {
        let mut sender = target.connect().await;
        let uri = format!("{COLLECTION}?watch=true&resourceVersion={version}");
        let request = Request::get(uri).header("Host", "127.0.0.1").body(Full::default()).expect("a request");
        let mut body = sender.send_request(request).await.expect("an answer").into_body();
        tasks.push(tokio::spawn(async move {
            let _keep = sender;
            let mut seen = 0;
            while seen < events {
                let frame = body.frame().await.expect("an event").expect("data");
                seen += frame.data_ref().map_or(0, |d| d.iter().filter(|b| **b == b'\n').count());
            }
        }));
    }
    let begin = Instant::now();
    let mut sender = target.connect().await;
    for i in 0..events {
        let patch = json!({"spec": {"replicas": 100 + i}}).to_string();
        send(&mut sender, "PATCH", &format!("{COLLECTION}/t0"), "application/merge-patch+json", patch.into())
            .await;
    }
    for task in tasks {
        task.await.expect("a watcher");
    }
    let rate = (watchers * events) as f64 / begin.elapsed().as_secs_f64();
    println!(
        "fan-out        {rate:>9.0} events/s to {watchers} watchers   {:.0}x the reference's rate",
        rate / 14_916.0
    );
}

#[tokio::main]
async fn main() {
    let begin = Instant::now();
    let bare = Cluster::start().await.expect("a cluster");
    println!("start          {:>9.2} ms in-process", begin.elapsed().as_secs_f64() * 1e3);
    bare.stop(Duration::from_secs(1)).await;
    let begin = Instant::now();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let cluster =
        Cluster::with(ClusterOptions { nodes: 0, ..ClusterOptions::default() }).await.expect("a cluster");
    let endpoint = cluster.serve(listener).await.expect("an endpoint");
    let target = Arc::new(Target::new(&endpoint));
    target.connect().await;
    println!("start          {:>9.2} ms until TLS answers", begin.elapsed().as_secs_f64() * 1e3);
    println!("memory         {:>9.1} MB idle", memory());
    definition(&target).await;
    let json = "application/json";
    let one = |i: usize| format!("{COLLECTION}/t{i}");
    load(&target, "create", move |i| ("POST", COLLECTION.to_owned(), json, object(i))).await;
    println!("memory         {:>9.1} MB with {OBJECTS} objects", memory());
    load(&target, "get", move |i| ("GET", one(i), json, Bytes::new())).await;
    let merge = "application/merge-patch+json";
    load(&target, "merge patch", move |i| {
        ("PATCH", one(i), merge, Bytes::from_static(br#"{"spec":{"replicas":4}}"#))
    })
    .await;
    let applied = |i: usize| {
        json!({"apiVersion": "bench.example.com/v1", "kind": "Thing", "metadata": {"name": format!("t{i}")},
            "spec": {"replicas": i}})
        .to_string()
    };
    let apply = move |i: usize| format!("{}?fieldManager=bench&force=true", one(i));
    load(&target, "apply", move |i| ("PATCH", apply(i), "application/apply-patch+yaml", applied(i).into()))
        .await;
    load(&target, "apply (no-op)", move |i| {
        ("PATCH", apply(i), "application/apply-patch+yaml", applied(i).into())
    })
    .await;
    let status = move |i: usize| format!("{}/status", one(i));
    load(&target, "status patch", move |i| {
        ("PATCH", status(i), merge, Bytes::from_static(br#"{"status":{"ready":1}}"#))
    })
    .await;
    let begin = Instant::now();
    let list = send(&mut target.connect().await, "GET", COLLECTION, json, Bytes::new()).await;
    let took = begin.elapsed().as_secs_f64() * 1e3;
    println!(
        "list           {took:>9.1} ms for {OBJECTS} objects, {:.1} MB   {:.0}x faster than the reference",
        list.len() as f64 / 1e6,
        387.0 / took
    );
    fan_out(&target, 100, 300).await;
    load(&target, "delete", move |i| ("DELETE", one(i), json, Bytes::new())).await;
    load_range(&target, "create", 0..MANY, move |i| ("POST", COLLECTION.to_owned(), json, object(i))).await;
    println!("memory         {:>9.1} MB with {MANY} objects and the change log", memory());
    long_list(&target).await;
    cluster.stop(Duration::from_secs(2)).await;
}
