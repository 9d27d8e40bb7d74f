//! What caches hold, what brings a key back beyond the types, and what a reconcile leaves behind.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat_sdk::{
    Caches, Change, Context, Entropy, Key, Next, Operator, Result, Selection, Settings, Watches, Writer,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::Client;
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::json;
use tokio::sync::Notify;

use crate::operators::{Copy, Note};
use crate::server::Server;
use crate::{ACCOUNTS, MAPS, SECRETS, manager, run};

/// A ConfigMap for each secret that the account names; those of the rest go.
struct PerSecret;

impl Operator for PerSecret {
    type Resource = ServiceAccount;
    type Owns = (ConfigMap, Secret);
    type Reads = ();

    async fn reconcile(&self, account: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
        for secret in account.secrets.iter().flatten() {
            let mut map = ConfigMap::default();
            map.metadata.name = secret.name.clone();
            cx.apply(map).await?;
        }
        for map in cx.owned::<ConfigMap, _>() {
            if map.metadata.name.as_deref() == Some("kept") {
                cx.keep::<ConfigMap, _>(&map);
            }
        }
        cx.prune().await?;
        Ok(Next::done())
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_longer_applied_goes() {
    let server = Server::default();
    let account = format!("{ACCOUNTS}/x");
    server.put(&account, json!({"secrets": [{"name": "a"}, {"name": "b"}, {"name": "kept"}]}));
    // Somebody else's, of the same name space.
    server.put(&format!("{MAPS}/theirs"), json!({}));
    let running = run(manager(&server).with(PerSecret));
    running.settle().await;
    assert!(server.get(&format!("{MAPS}/b")).is_some());
    server.put(&account, json!({"secrets": [{"name": "a"}]}));
    running.settle().await;
    let there = |name: &str| server.get(&format!("{MAPS}/{name}")).is_some();
    assert_eq!(["a", "b", "kept", "theirs"].map(there), [true, false, true, true]);
    running.stopped().await.unwrap();
}

/// Notes what it finds of a kind that no type names.
#[derive(Clone, Default)]
struct Finds(Arc<Mutex<Vec<Option<String>>>>);

impl Operator for Finds {
    type Resource = ServiceAccount;
    type Owns = ();
    type Reads = ();

    async fn reconcile(&self, _: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
        let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
        let found = cx.read_dynamic(&widgets, &Key::namespaced("a", "w"))?;
        let color = found.map(|w| w.data["spec"]["color"].as_str().unwrap_or_default().to_owned());
        self.0.lock().unwrap().push(color);
        Ok(Next::done())
    }
}

#[tokio::test(start_paused = true)]
async fn kinds_known_only_at_run_time_are_watched_when_they_are_read() {
    let server = Server::default();
    let collection = "/apis/example.com/v1/widgets";
    let widget = "/apis/example.com/v1/namespaces/a/widgets/w";
    server.serve_kind(collection, false);
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let finds = Finds::default();
    let running = run(manager(&server).with(finds.clone()));
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(*finds.0.lock().unwrap(), [], "nobody takes what isn't known for absent");
    server.serve_kind(collection, true);
    // The kind's cache tries again within a second, the key within its backoff.
    tokio::time::sleep(Duration::from_secs(120)).await;
    for color in ["blue", "red"] {
        server
            .put(widget, json!({"apiVersion": "example.com/v1", "kind": "Widget", "spec": {"color": color}}));
        running.settle().await;
    }
    server.delete(widget);
    running.settle().await;
    let found = finds.0.lock().unwrap().clone();
    assert_eq!(found, [None, Some("blue".into()), Some("red".into()), None]);
    running.stopped().await.unwrap();
}

/// Takes news from outside and from another cluster; changes of labels of what it owns are no news to it.
struct Hears {
    note: Note,
    news: Mutex<Option<futures::channel::mpsc::UnboundedReceiver<Key>>>,
    elsewhere: Caches,
}

impl Operator for Hears {
    type Resource = ServiceAccount;
    type Owns = (ConfigMap,);
    type Reads = ();

    async fn reconcile(&self, account: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(cx.name().to_owned());
        cx.apply(map).await?;
        self.note.seen.lock().unwrap().push(account.metadata.name.clone().unwrap_or_default());
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.filter_owned::<ConfigMap, _>(|change| change.differs(|map| map.data.clone()));
        watches.filter(|change: &Change<ServiceAccount>| {
            change.differs(|account| account.automount_service_account_token)
        });
        watches.source(self.news.lock().unwrap().take().unwrap());
        let secrets = self.elsewhere.get::<Secret>(&Selection::labels("mirror=yes"));
        watches.elsewhere(&secrets, |change, _| change.key().into_iter().collect());
    }

    fn settings(&self) -> Settings {
        Settings { resync: Some(Duration::from_secs(3600)), ..Settings::default() }
    }
}

#[tokio::test(start_paused = true)]
async fn news_come_from_channels_other_clusters_and_resyncs_and_not_from_what_is_filtered() {
    let (server, other) = (Server::default(), Server::default());
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let (news, receiver) = futures::channel::mpsc::unbounded();
    let note = Note::new(|_| Ok(Next::done()));
    let elsewhere = Caches::new(other.client(), Entropy::seeded(2));
    let operator =
        Hears { note: note.clone(), news: Mutex::new(Some(receiver)), elsewhere: elsewhere.clone() };
    let running = run(manager(&server).with(operator));
    running.settle().await;
    note.seen();
    let quiet = async |what: &str| {
        running.settle().await;
        assert_eq!(note.seen(), [""; 0], "{what}");
    };
    let heard = async |what: &str| {
        running.settle().await;
        assert_eq!(note.seen(), ["x"], "{what}");
    };
    server.put(&format!("{MAPS}/x"), json!({"metadata": {"labels": {"a": "b"}}}));
    quiet("a label of what it owns").await;
    server.put(&format!("{ACCOUNTS}/x"), json!({"metadata": {"labels": {"a": "b"}}}));
    quiet("a label of its own").await;
    server.put(&format!("{MAPS}/x"), json!({"data": {"a": "b"}}));
    heard("data of what it owns").await;
    server.put(&format!("{ACCOUNTS}/x"), json!({"automountServiceAccountToken": true}));
    heard("its own").await;
    news.unbounded_send(Key::namespaced("a", "x")).unwrap();
    heard("news").await;
    other.put(&format!("{SECRETS}/x"), json!({}));
    heard("another cluster").await;
    tokio::time::sleep(Duration::from_secs(3600 * 11 / 10)).await;
    heard("a resync").await;
    running.stopped().await.unwrap();
    elsewhere.stop().await;
}

#[tokio::test(start_paused = true)]
async fn caches_hold_what_they_are_told_to() {
    let server = Server::default();
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    server.put(&format!("{SECRETS}/x"), json!({"type": "Opaque", "data": {"password": "c2VjcmV0"}}));
    let manager =
        manager(&server).in_namespace("a").with_transform::<Secret>(|secret| secret.data = None).with(Copy);
    let caches = manager.caches().clone();
    let running = run(manager);
    running.settle().await;
    let lines: Vec<String> = server.calls().into_iter().map(|c| c.line).collect();
    assert!(lines.contains(&format!("GET {SECRETS}")), "only one namespace: {lines:?}");
    let secrets = caches.get::<Secret>(&Selection::all().in_namespace("a"));
    let secret = secrets.get(&Key::namespaced("a", "x")).unwrap();
    assert_eq!((secret.data.as_ref(), secret.type_.as_deref()), (None, Some("Opaque")));
    let sizes = caches.sizes();
    let of = |resource: &str| sizes.iter().find(|s| s.resource == resource).unwrap();
    assert_eq!((of("secrets").objects, of("configmaps").objects), (1, 1));
    assert!(of("secrets").json_bytes > 100 && of("configmaps").json_bytes > 100, "{sizes:?}");
    server.delete(&format!("{SECRETS}/x"));
    running.settle().await;
    let sizes = caches.sizes();
    let secrets = sizes.iter().find(|s| s.resource == "secrets").unwrap();
    assert_eq!((secrets.objects, secrets.json_bytes), (0, 0));
    running.stopped().await.unwrap();
}

/// Written and deleted before the list that was asked for first: the list doesn't show it, and no event will.
#[tokio::test(start_paused = true)]
async fn what_a_list_leaves_in_doubt_is_asked_for_with_the_right_to_list_alone() {
    let server = Server::default();
    // No right to get.
    server.fail(&format!("GET {MAPS}/"), 403, usize::MAX);
    let cut = Arc::new(AtomicBool::new(false));
    let (client, gate) = (server.client(), Arc::new(Notify::new()));
    let held = gate.clone();
    let service = tower::service_fn(move |request: http::Request<kube::client::Body>| {
        let (client, held) = (client.clone(), held.clone());
        let first = request.method() == http::Method::GET && !cut.swap(true, Ordering::Relaxed);
        async move {
            if first {
                held.notified().await;
            }
            client.send(request).await.map_err(tower::BoxError::from)
        }
    });
    let caches = Caches::new(Client::new(service, "default"), Entropy::seeded(1));
    let cache = caches.get::<ConfigMap>(&Selection::all());
    tokio::time::sleep(Duration::from_secs(1)).await;
    let writer = Writer::new(server.client(), caches.clone(), "test");
    for name in ["gone", "there"] {
        let map: ConfigMap =
            serde_json::from_value(json!({"metadata": {"name": name, "namespace": "a"}})).unwrap();
        writer.create(&map).await.unwrap();
    }
    server.delete(&format!("{MAPS}/gone"));
    assert_eq!(cache.len(), 2);
    gate.notify_one();
    cache.synced().await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    let names: Vec<String> = cache.keys().iter().map(|k| k.name().to_owned()).collect();
    assert_eq!(names, ["there"]);
    assert!(server.calls().iter().any(|c| c.query.contains("metadata.name%3Dgone")), "it was asked for");
}
