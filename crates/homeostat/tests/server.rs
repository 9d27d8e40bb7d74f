//! The SDK against the API server itself: what ownership of fields, subresources and finalizers come to.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat::{
    Caches, CancellationToken, Context, Entropy, Error, Event, Manager, Next, NoStatusSubresource, Operator,
    Result, Selection,
};
use homeostat_cluster::{Cluster, ClusterOptions};
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service, ServicePort, ServiceSpec};
use k8s_openapi::api::events::v1 as events;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, CustomResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// What a `Widget` should be.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
pub struct WidgetSpec {
    color: Option<String>,
    size: Option<u8>,
}

/// A control plane without controllers, and an operator.
struct World {
    client: Client,
    _cluster: Cluster,
    stop: CancellationToken,
}

impl World {
    async fn start<O: Operator>(operator: O) -> Self {
        let options =
            ClusterOptions { nodes: 0, controllers: Default::default(), ..ClusterOptions::default() };
        let cluster = Cluster::with(options).await.unwrap();
        let (client, stop) = (cluster.client(), CancellationToken::new());
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/widget-crd.yaml");
        let crd: CustomResourceDefinition =
            serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        Api::all(client.clone()).create(&PostParams::default(), &crd).await.unwrap();
        let manager = Manager::new(client.clone()).with(operator);
        tokio::spawn(manager.run(stop.clone()));
        let world = Self { client, _cluster: cluster, stop };
        until("widgets are served", async || world.widgets().list(&ListParams::default()).await.is_ok())
            .await;
        world
    }

    fn widgets(&self) -> Api<Widget> {
        Api::namespaced(self.client.clone(), "default")
    }

    fn services(&self) -> Api<Service> {
        Api::namespaced(self.client.clone(), "default")
    }

    async fn widget(&self, name: &str, spec: Value) {
        let body = json!({"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": name}, "spec": spec});
        let as_user = PatchParams::apply("user").force();
        self.widgets().patch(name, &as_user, &Patch::Apply(body)).await.unwrap();
    }

    async fn edit(&self, service: &str, patch: Value) {
        let params = PatchParams { field_manager: Some("editor".into()), ..PatchParams::default() };
        self.services().patch(service, &params, &Patch::Merge(patch)).await.unwrap();
    }

    async fn settle(&self) {
        tokio::time::sleep(Duration::from_secs(5)).await;
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..600 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("never: {what}");
}

/// A Service per Widget, with a port of the widget's size where it has one.
struct Serves;

impl Operator for Serves {
    type Resource = Widget;
    type Owns = (Service,);
    type Reads = (Secret,);

    fn name() -> &'static str {
        "serves"
    }

    async fn reconcile(&self, widget: &Widget, cx: &Context<Self>) -> Result<Next> {
        let mut service = Service::default();
        service.metadata.name = widget.metadata.name.clone();
        if let Some(color) = &widget.spec.color {
            service.metadata.labels = Some([("color".to_owned(), color.clone())].into());
        }
        let port = ServicePort {
            port: widget.spec.size.unwrap_or(1).into(),
            name: Some("main".into()),
            ..ServicePort::default()
        };
        service.spec = Some(ServiceSpec { ports: Some(vec![port]), ..ServiceSpec::default() });
        cx.apply(service).await?;
        Ok(Next::done())
    }
}

#[tokio::test(start_paused = true)]
async fn its_own_fields_are_kept_others_are_left_alone_and_what_it_drops_goes() {
    let world = World::start(Serves).await;
    world.widget("w", json!({"color": "blue", "size": 42})).await;
    world.settle().await;
    let service = world.services().get("w").await.unwrap();
    let spec = service.spec.clone().unwrap();
    assert_eq!(spec.ports.as_ref().unwrap()[0].port, 42);
    assert_eq!(service.metadata.labels.as_ref().unwrap()["color"], "blue");
    assert_eq!(service.metadata.owner_references.as_ref().unwrap()[0].controller, Some(true));

    // What it set comes back; what it never set stays as somebody else had it.
    world
        .edit("w", json!({"metadata": {"labels": {"color": "red", "theirs": "yes"}}, "spec": {"sessionAffinity": "ClientIP"}}))
        .await;
    world.settle().await;
    let service = world.services().get("w").await.unwrap();
    let labels = service.metadata.labels.unwrap();
    assert_eq!((labels["color"].as_str(), labels["theirs"].as_str()), ("blue", "yes"));
    assert_eq!(service.spec.unwrap().session_affinity.as_deref(), Some("ClientIP"));

    // A label that it no longer sets was its own, so it goes.
    world.widget("w", json!({"size": 42})).await;
    world.settle().await;
    let labels = world.services().get("w").await.unwrap().metadata.labels.unwrap();
    assert_eq!(labels.keys().collect::<Vec<_>>(), ["theirs"]);
}

#[tokio::test(start_paused = true)]
async fn converged_means_quiet() {
    let world = World::start(Serves).await;
    world.widget("w", json!({"color": "blue", "size": 42})).await;
    world.settle().await;
    let version = async || world.services().get("w").await.unwrap().metadata.resource_version;
    let before = version().await;
    tokio::time::sleep(Duration::from_secs(3600)).await;
    assert_eq!(version().await, before);
}

/// Writes a status, and keeps what came of it.
#[derive(Clone, Default)]
struct Reports(Arc<Mutex<Vec<String>>>);

impl Operator for Reports {
    type Resource = Widget;
    type Owns = ();
    type Reads = ();

    async fn reconcile(&self, _: &Widget, cx: &Context<Self>) -> Result<Next> {
        let result = cx.status(json!({"ready": true})).await;
        if let Err(error) = &result {
            assert!(error.downcast_ref::<NoStatusSubresource>().is_some(), "{error:?}");
            self.0.lock().unwrap().push(error.to_string());
        }
        result.map(|()| Next::done())
    }
}

#[tokio::test(start_paused = true)]
async fn a_definition_without_status_is_named_once() {
    let reports = Reports::default();
    let world = World::start(reports.clone()).await;
    world.widget("w", json!({})).await;
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert_eq!(
        *reports.0.lock().unwrap(),
        [
            "Widget.example.com has no status subresource: add `subresources: {status: {}}` to version v1 of its \
          CustomResourceDefinition, or keep what you report elsewhere"
        ]
    );
}

/// Keeps a copy outside, which is to go with the object; and tells of each reconcile.
#[derive(Clone, Default)]
struct Outside(Arc<Mutex<Vec<String>>>);

impl Outside {
    fn keep(&self, name: &str) {
        let mut outside = self.0.lock().unwrap();
        if !outside.iter().any(|n| n == name) {
            outside.push(name.into());
        }
    }
}

impl Operator for Outside {
    type Resource = Widget;
    type Owns = (ConfigMap,);
    type Reads = ();

    fn finalizer() -> Option<&'static str> {
        Some("example.com/outside")
    }

    async fn reconcile(&self, _: &Widget, cx: &Context<Self>) -> Result<Next> {
        self.keep(cx.name());
        cx.event(Event::normal("Copied", "a copy is kept outside").action("Copy")).await;
        Ok(Next::after(Duration::from_secs(1)))
    }

    async fn finalize(&self, _: &Widget, cx: &Context<Self>) -> Result<Next> {
        let mut outside = self.0.lock().unwrap();
        let before = outside.len();
        outside.retain(|n| n != cx.name());
        if outside.len() == before { Err(Error::msg("finalized twice")) } else { Ok(Next::done()) }
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_outside_outlives_its_object() {
    let outside = Outside::default();
    let world = World::start(outside.clone()).await;
    world.widget("w", json!({})).await;
    world.settle().await;
    assert_eq!(*outside.0.lock().unwrap(), ["w"]);
    world.widgets().delete("w", &DeleteParams::default()).await.unwrap();
    until("the widget is gone", async || world.widgets().get_opt("w").await.unwrap().is_none()).await;
    assert_eq!(*outside.0.lock().unwrap(), [""; 0]);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_repeats_is_one_object() {
    let world = World::start(Outside::default()).await;
    world.widget("w", json!({})).await;
    tokio::time::sleep(Duration::from_millis(9500)).await;
    let api: Api<events::Event> = Api::namespaced(world.client.clone(), "default");
    let events = api.list(&ListParams::default()).await.unwrap().items;
    let copied: Vec<_> = events.iter().filter(|e| e.reason.as_deref() == Some("Copied")).collect();
    assert_eq!(copied.len(), 1);
    assert!(copied[0].series.as_ref().unwrap().count >= 9, "{:?}", copied[0].series);
    assert_eq!(copied[0].regarding.as_ref().unwrap().name.as_deref(), Some("w"));
}

#[tokio::test(start_paused = true)]
async fn caches_hold_what_the_server_selects_and_no_more_than_metadata_where_that_is_enough() {
    let world = World::start(Serves).await;
    world.widget("a", json!({"color": "blue", "size": 1})).await;
    world.widget("b", json!({"color": "red", "size": 2})).await;
    world.settle().await;
    let caches = Caches::new(world.client.clone(), Entropy::seeded(3));
    let metadata = caches.metadata::<Widget>((), &Selection::all());
    let whole = caches.get::<Widget>(&Selection::all());
    let blue = caches.get::<Service>(&Selection::labels("color=blue").in_namespace("default"));
    let named = caches.get::<Service>(&Selection::fields("metadata.name=b"));
    for synced in [metadata.is_synced(), whole.is_synced(), blue.is_synced(), named.is_synced()] {
        assert!(!synced);
    }
    world.settle().await;
    let names = |keys: Vec<homeostat::Key>| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(names(metadata.keys()), ["default/a", "default/b"]);
    assert_eq!(names(blue.keys()), ["default/a"]);
    assert_eq!(names(named.keys()), ["default/b"]);
    // By watch, too: one more, one less, and one that leaves the selection.
    world.widget("c", json!({"color": "blue", "size": 3})).await;
    world.widget("a", json!({"color": "red", "size": 1})).await;
    world.widgets().delete("b", &DeleteParams::default()).await.unwrap();
    world.settle().await;
    assert_eq!(names(metadata.keys()), ["default/a", "default/c"]);
    assert_eq!(names(blue.keys()), ["default/c"]);
    let sizes = caches.sizes();
    assert!(sizes[0].metadata && sizes[0].json_bytes < sizes[1].json_bytes, "{sizes:?}");
    caches.stop().await;
}
