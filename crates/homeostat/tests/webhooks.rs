//! Webhooks against the API server itself: it asks over TLS, with a certificate that nobody had to make.

use std::time::Duration;

use homeostat::webhook::{
    Admission, Conversion, Defaulter, Denied, Reach, Validator, Webhook, WebhookOptions,
};
use homeostat::{CancellationToken, Manager, RunError, field};
use homeostat_cluster::{Cluster, ClusterOptions};
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DeleteParams, PostParams};
use kube::core::crd::{CustomResourceExt as _, merge_crds};
use kube::{Api, Client, CustomResource};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::task::JoinHandle;

/// ConfigMaps are mutable unless they say otherwise, and have no `forbidden` key.
struct Rules;

impl Defaulter for Rules {
    type Resource = ConfigMap;

    async fn default(&self, map: &mut ConfigMap, cx: &Admission) -> Result<(), Denied> {
        map.metadata
            .labels
            .get_or_insert_default()
            .insert("by".into(), cx.user.username.clone().unwrap_or_default());
        map.immutable.get_or_insert(false);
        Ok(())
    }
}

impl Validator for Rules {
    type Resource = ConfigMap;

    async fn validate_create(&self, map: &ConfigMap, _: &Admission) -> Result<(), Denied> {
        assert!(map.metadata.name.as_deref() != Some("panics"), "as it should");
        match map.data.as_ref().is_some_and(|d| d.contains_key("forbidden")) {
            true => Err(field::Error::forbidden("data.forbidden", "not here").into()),
            false => Ok(()),
        }
    }

    async fn validate_update(&self, old: &ConfigMap, new: &ConfigMap, cx: &Admission) -> Result<(), Denied> {
        if old.data == new.data || cx.dry_run {
            Ok(())
        } else {
            Err(Denied::new("what is written is written"))
        }
    }
}

struct World {
    client: Client,
    cluster: Cluster,
}

struct Serving {
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunError>>,
}

impl Serving {
    async fn stopped(self) {
        self.stop.cancel();
        self.task.await.unwrap().unwrap();
    }
}

impl World {
    async fn new() -> Self {
        let options =
            ClusterOptions { nodes: 0, controllers: Default::default(), ..ClusterOptions::default() };
        let cluster = Cluster::with(options).await.unwrap();
        Self { client: cluster.client(), cluster }
    }

    async fn serve(&self, build: impl FnOnce(Manager) -> Manager) -> Serving {
        let manager = build(Manager::new(self.cluster.client()).with_name("rules"));
        let (health, stop) = (manager.health(), CancellationToken::new());
        let task = tokio::spawn(manager.run(stop.clone()));
        until("webhooks are registered", async || health.ready()).await;
        Serving { stop, task }
    }

    async fn create(&self, name: &str, data: &[(&str, &str)]) -> kube::Result<ConfigMap> {
        let mut map = ConfigMap::default();
        map.metadata.name = Some(name.into());
        map.data = Some(data.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect());
        self.maps().create(&PostParams::default(), &map).await
    }

    fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client.clone(), "default")
    }
}

async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    for _ in 0..1000 {
        if holds().await {
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("never: {what}");
}

#[tokio::test]
async fn objects_are_defaulted_and_judged_and_nobody_is_asked_after_the_stop() {
    let world = World::new().await;
    let serving = world
        .serve(|m| m.with_webhook(Webhook::defaulting(Rules)).with_webhook(Webhook::validating(Rules)))
        .await;
    let map = world.create("a", &[("x", "1")]).await.unwrap();
    assert_eq!(map.immutable, Some(false));
    assert_eq!(map.metadata.labels.unwrap()["by"], "kubernetes-admin");

    let why = world.create("b", &[("forbidden", "1")]).await.unwrap_err();
    let kube::Error::Api(status) = why else { panic!("{why:?}") };
    assert_eq!(
        status.message,
        "admission webhook \"validate.v1.configmaps.core\" denied the request: ConfigMap \"b\" is invalid: \
         data.forbidden: Forbidden: not here"
    );
    assert_eq!((status.code, status.reason.as_str()), (422, "Invalid"));

    let mut changed = world.maps().get("a").await.unwrap();
    changed.data.get_or_insert_default().insert("x".into(), "2".into());
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    world.maps().replace("a", &dry, &changed).await.unwrap();
    let why = world.maps().replace("a", &PostParams::default(), &changed).await.unwrap_err().to_string();
    assert!(why.contains("what is written is written"), "{why}");

    let why = world.create("panics", &[]).await.unwrap_err().to_string();
    assert!(why.contains("panic: as it should [recovered]"), "{why}");
    world.create("c", &[]).await.unwrap();
    // Nobody is asked about deletions unless it is said.
    world.maps().delete("c", &DeleteParams::default()).await.unwrap();

    serving.stopped().await;
    let mutating: Api<MutatingWebhookConfiguration> = Api::all(world.client.clone());
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(world.client.clone());
    assert!(mutating.get_opt("rules").await.unwrap().is_none());
    assert!(validating.get_opt("rules").await.unwrap().is_none());
    world.create("b", &[("forbidden", "1")]).await.unwrap();
}

#[tokio::test]
async fn a_restarted_process_is_asked_again() {
    let world = World::new().await;
    for round in 0..3 {
        let serving = world.serve(|m| m.with_webhook(Webhook::validating(Rules))).await;
        assert!(world.create("b", &[("forbidden", "1")]).await.is_err(), "round {round}");
        // As if it had been killed: nothing is withdrawn, and the address is another one next time.
        serving.task.abort();
        let _ = serving.task.await;
    }
}

mod v1 {
    use super::*;

    /// A door, as it was.
    #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.com", version = "v1", kind = "Door", namespaced)]
    pub(super) struct DoorSpec {
        pub(super) size: String,
    }
}

mod v2 {
    use super::*;

    /// A door, as it is.
    #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
    #[kube(group = "example.com", version = "v2", kind = "Door", namespaced)]
    pub(super) struct DoorSpec {
        pub(super) width: u32,
    }
}

impl TryFrom<v1::Door> for v2::Door {
    type Error = std::num::ParseIntError;

    fn try_from(door: v1::Door) -> Result<Self, Self::Error> {
        Ok(Self::new("", v2::DoorSpec { width: door.spec.size.parse()? }))
    }
}

impl From<v2::Door> for v1::Door {
    fn from(door: v2::Door) -> Self {
        Self::new("", v1::DoorSpec { size: door.spec.width.to_string() })
    }
}

#[tokio::test]
async fn objects_are_converted_between_versions() {
    let world = World::new().await;
    // The definition comes after the manager, as it may in any cluster.
    let definitions: Api<CustomResourceDefinition> = Api::all(world.client.clone());
    let crd = merge_crds(vec![v1::Door::crd(), v2::Door::crd()], "v2").unwrap();
    let client = world.client.clone();
    let late = tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(300)).await;
        Api::<CustomResourceDefinition>::all(client).create(&PostParams::default(), &crd).await.unwrap();
    });
    let conversion = Conversion::<v2::Door>::new().spoke::<v1::Door>();
    let serving = world.serve(|m| m.with_webhook(Webhook::converting(conversion))).await;
    late.await.unwrap();
    let has = definitions.get("doors.example.com").await.unwrap().spec.conversion.unwrap();
    assert_eq!(has.strategy, "Webhook");

    let old: Api<v1::Door> = Api::namespaced(world.client.clone(), "default");
    let new: Api<v2::Door> = Api::namespaced(world.client.clone(), "default");
    let mut door = v1::Door::new("front", v1::DoorSpec { size: "90".into() });
    door.metadata.labels = Some([("house".to_owned(), "mine".to_owned())].into());
    until("doors are served", async || old.list(&Default::default()).await.is_ok()).await;
    old.create(&PostParams::default(), &door).await.unwrap();
    let read = new.get("front").await.unwrap();
    assert_eq!(read.spec.width, 90);
    assert_eq!(read.metadata.labels.unwrap()["house"], "mine");
    let mut wider = new.get("front").await.unwrap();
    wider.spec.width = 120;
    new.replace("front", &PostParams::default(), &wider).await.unwrap();
    assert_eq!(old.get("front").await.unwrap().spec.size, "120");
    let wrong = v1::Door::new("back", v1::DoorSpec { size: "wide".into() });
    let why = old.create(&PostParams::default(), &wrong).await.unwrap_err().to_string();
    assert!(why.contains("invalid digit found in string"), "{why}");
    serving.stopped().await;
}

#[tokio::test]
async fn in_a_cluster_the_replicas_share_one_certificate() {
    let world = World::new().await;
    let reach = Reach::Service { namespace: "default".into(), name: "rules-webhook".into(), port: 443 };
    let start = async || {
        let options = WebhookOptions {
            reach: Some(reach.clone()),
            listen: Some(([127, 0, 0, 1], 0).into()),
            ..WebhookOptions::default()
        };
        world.serve(|m| m.with_webhook(Webhook::validating(Rules)).with_webhook_options(options)).await
    };
    let (first, second) = (start().await, start().await);
    let secrets: Api<Secret> = Api::namespaced(world.client.clone(), "default");
    let secret = secrets.get("rules-webhook-cert").await.unwrap();
    let data = secret.data.unwrap();
    assert_eq!(data.keys().collect::<Vec<_>>(), ["ca.crt", "ca.key", "tls.crt", "tls.key"]);
    let validating: Api<ValidatingWebhookConfiguration> = Api::all(world.client.clone());
    let config = &validating.get("rules").await.unwrap().webhooks.unwrap()[0].client_config;
    assert_eq!(config.ca_bundle.as_ref().unwrap().0, data["ca.crt"].0);
    let service = config.service.as_ref().unwrap();
    assert_eq!(
        (service.name.as_str(), service.path.as_deref()),
        ("rules-webhook", Some("/validate--v1-configmap"))
    );
    first.stopped().await;
    second.stopped().await;
    // Others may still serve: nothing is withdrawn.
    assert!(validating.get_opt("rules").await.unwrap().is_some());
    assert_eq!(
        secrets.get("rules-webhook-cert").await.unwrap().metadata.resource_version,
        secret.metadata.resource_version
    );
}
