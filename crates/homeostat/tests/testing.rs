//! The test kit on itself: what settles, what doesn't and who is why, and how a world reads.

use std::time::Duration;

use homeostat::apply::core::v1 as apply;
use homeostat::testing::{Settle, World};
use homeostat::{Context, Next, Operator, Result, conditions};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec};
use k8s_openapi::api::core::v1::{ConfigMap, Container, PodSpec, PodTemplateSpec, Service, ServiceSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, LabelSelector};
use kube::CustomResource;
use kube::api::{Patch, PatchParams};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

/// What a `Shop` should be.
#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[kube(group = "example.com", version = "v1", kind = "Shop", namespaced, status = "ShopStatus")]
pub struct ShopSpec {
    replicas: i32,
}

/// How it is.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ShopStatus {
    #[serde(default)]
    #[schemars(schema_with = "homeostat::manifests::conditions")]
    conditions: Vec<Condition>,
}

/// A Deployment and a ConfigMap per shop.
struct Shops;

impl Operator for Shops {
    type Resource = Shop;
    type Owns = (Deployment, ConfigMap, Service);
    type Reads = ();

    async fn reconcile(&self, shop: &Shop, cx: &Context<Self>) -> Result<Next> {
        let labels = || Some([("shop".to_owned(), cx.name().to_owned())].into());
        let mut deployment = Deployment::default();
        deployment.metadata.name = Some(cx.name().to_owned());
        let container = Container { name: "web".into(), image: Some("web:1".into()), ..Container::default() };
        let mut template = PodTemplateSpec {
            spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
            ..PodTemplateSpec::default()
        };
        template.metadata.get_or_insert_default().labels = labels();
        deployment.spec = Some(DeploymentSpec {
            replicas: Some(shop.spec.replicas),
            selector: LabelSelector { match_labels: labels(), ..LabelSelector::default() },
            template,
            ..DeploymentSpec::default()
        });
        let deployment = cx.apply(deployment).await?;
        cx.apply(apply::ConfigMap::new(cx.name()).data([("replicas", shop.spec.replicas.to_string())]))
            .await?;
        let ready = deployment.status.and_then(|s| s.ready_replicas).unwrap_or(0) == shop.spec.replicas;
        let mut all = shop.status.clone().unwrap_or_default().conditions;
        let reason = if ready { "AllReady" } else { "Starting" };
        conditions::set(&mut all, conditions::condition(shop, "Ready", ready, reason, ""), cx.clock().now());
        cx.status(ShopStatus { conditions: all }).await?;
        cx.prune().await?;
        Ok(Next::done())
    }
}

fn shop(replicas: i32) -> Shop {
    Shop::new("corner", ShopSpec { replicas })
}

async fn world() -> World {
    let world = World::start().await;
    world.define::<Shop>().await;
    world
}

#[tokio::test(start_paused = true)]
async fn a_world_settles_and_reads_well() {
    let world = world().await;
    world.run(Shops).await;
    world.put(&shop(2)).await;
    world.condition::<Shop>("corner", "Ready", true).await;
    let settled = world.settle_with(Settle { writes: 300, ..Settle::default() }).await;
    assert_eq!(world.settle().await.writes, 0, "after {settled:?}");
    let tree = world.tree("default").await;
    let expect = [
        "Service/kubernetes",
        "Shop.example.com/corner  Ready",
        "├── ConfigMap/corner  data: replicas",
        "└── Deployment.apps/corner  ready 2/2, Progressing, Available",
        "    └── ReplicaSet.apps/corner-",
        "        ├── Pod/corner-",
        "        └── Pod/corner-",
    ];
    let lines: Vec<&str> = tree.lines().filter(|l| !l.starts_with("EndpointSlice")).collect();
    assert_eq!(lines.len(), expect.len(), "{tree}");
    for (line, expect) in lines.iter().zip(expect) {
        assert!(line.starts_with(expect), "{line} in\n{tree}");
    }
    world.delete::<Shop>("corner").await;
    world.settle().await;
    assert!(!world.tree("default").await.contains("corner"));
}

/// Two operators that don't agree.
struct Says<const WHAT: u8>;

impl<const WHAT: u8> Operator for Says<WHAT> {
    type Resource = Shop;
    type Owns = (Service, ConfigMap);
    type Reads = ();

    fn name() -> &'static str {
        if WHAT == 0 { "says-zero" } else { "says-one" }
    }

    async fn reconcile(&self, _: &Shop, cx: &Context<Self>) -> Result<Next> {
        let mut map = ConfigMap::default();
        map.metadata.name = Some("contested".into());
        map.data = Some([("value".to_owned(), WHAT.to_string())].into());
        cx.apply(map).await?;
        Ok(Next::after(Duration::from_millis(100)))
    }
}

#[tokio::test(start_paused = true)]
async fn who_does_not_let_it_settle_is_named() {
    let world = world().await;
    world.put(&shop(1)).await;
    world.run(Says::<0>).await;
    world.run(Says::<1>).await;
    let limits = Settle { writes: 100, ..Settle::default() };
    let why = tokio::spawn(async move { world.settle_with(limits).await }).await.unwrap_err();
    let text = why.into_panic().downcast::<String>().unwrap();
    assert!(text.starts_with("it doesn't settle: "), "{text}");
    assert!(text.contains("ConfigMap default/contested: data.value by `says-"), "{text}");
}

/// What an author leaves open stays somebody else's, and what is said to be empty is.
struct Sidecar;

impl Operator for Sidecar {
    type Resource = ConfigMap;
    type Owns = (Deployment, Service);
    type Reads = ();

    async fn reconcile(&self, map: &ConfigMap, cx: &Context<Self>) -> Result<Next> {
        if map.metadata.name.as_deref() != Some("sidecars") {
            return Ok(Next::done());
        }
        use homeostat::apply::apps::v1::{Deployment, DeploymentSpec};
        let proxy = apply::Container::new().name("proxy").image("proxy:1");
        let template = apply::PodTemplateSpec::new().spec(apply::PodSpec::new().containers([proxy]));
        cx.apply(Deployment::new("theirs").spec(DeploymentSpec::new().template(template))).await?;
        cx.apply(
            apply::Service::new("ours").spec(
                apply::ServiceSpec::new()
                    .ports([apply::ServicePort::new().port(80)])
                    .selector([] as [(&str, &str); 0])
                    .publish_not_ready_addresses(false),
            ),
        )
        .await?;
        Ok(Next::done())
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_set_becomes_ours() {
    let world = World::start().await;
    let labels = || Some([("app".to_owned(), "theirs".to_owned())].into());
    let mut theirs = Deployment::default();
    theirs.metadata.name = Some("theirs".into());
    let container = Container { name: "web".into(), image: Some("web:1".into()), ..Container::default() };
    let mut template = PodTemplateSpec {
        spec: Some(PodSpec { containers: vec![container], ..PodSpec::default() }),
        ..PodTemplateSpec::default()
    };
    template.metadata.get_or_insert_default().labels = labels();
    theirs.spec = Some(DeploymentSpec {
        replicas: Some(3),
        selector: LabelSelector { match_labels: labels(), ..LabelSelector::default() },
        template,
        ..DeploymentSpec::default()
    });
    world.put(&theirs).await;
    world.run(Sidecar).await;
    let mut map = ConfigMap::default();
    map.metadata.name = Some("sidecars".into());
    world.create(&map).await;
    world.settle().await;

    let now = world.get::<Deployment>("theirs").await.unwrap();
    let spec = now.spec.unwrap();
    assert_eq!(spec.replicas, Some(3));
    assert_eq!(spec.selector.match_labels, labels());
    let containers = spec.template.spec.unwrap().containers;
    assert_eq!(containers.iter().map(|c| c.name.as_str()).collect::<Vec<_>>(), ["web", "proxy"]);
    let owned = now.metadata.managed_fields.unwrap();
    let ours = owned.iter().find(|m| m.manager.as_deref() == Some("Sidecar")).unwrap();
    let fields = serde_json::to_value(&ours.fields_v1).unwrap();
    assert_eq!(
        fields["f:spec"],
        json!({"f:template": {"f:spec": {"f:containers": {"k:{\"name\":\"proxy\"}": {".": {}, "f:name": {}, "f:image": {}}}}}})
    );

    // Somebody gives the service a selector; that it has none was said, so it goes.
    let client = world.client().clone();
    let services: kube::Api<Service> = kube::Api::namespaced(client, "default");
    let patch = json!({"spec": {"publishNotReadyAddresses": true}});
    services.patch("ours", &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    world.settle().await;
    let spec: ServiceSpec = world.get::<Service>("ours").await.unwrap().spec.unwrap();
    assert_ne!(spec.publish_not_ready_addresses, Some(true));
}
