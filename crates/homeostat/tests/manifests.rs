//! Definitions made from Rust types, judged by the API server: it takes them, and then takes and refuses objects as the
//! types would.

use std::collections::{BTreeMap, BTreeSet};

use homeostat::manifests::{conditions, definition, union};
use homeostat_cluster::{Cluster, ClusterOptions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DynamicObject, PostParams};
use kube::discovery::ApiResource;
use kube::runtime::wait::{await_condition, conditions as holds};
use kube::{Api, CustomResource, CustomResourceExt, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
enum Level {
    Debug,
    Info,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Place {
    Bucket { name: String },
    Disk { path: String },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
#[schemars(transform = union)]
enum Storage {
    Memory,
    Volume { size: String },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Port {
    Number(u16),
    Name(String),
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = union)]
enum Mixed {
    Off,
    On { level: u8 },
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, KubeSchema)]
#[kube(group = "example.com", version = "v1", kind = "Everything", plural = "everythings", namespaced)]
#[kube(
    status = "EverythingStatus",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas")
)]
#[kube(selectable = ".spec.zone", printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zone"))]
struct EverythingSpec {
    #[serde(default = "three")]
    #[x_kube(validation = Rule::new("self < 10").message("too many"))]
    replicas: u8,
    zone: Option<String>,
    level: Option<Level>,
    place: Option<Place>,
    storage: Option<Storage>,
    port: Option<Port>,
    mixed: Option<Mixed>,
    #[serde(default)]
    quotas: BTreeMap<String, u8>,
    #[serde(default)]
    by_number: BTreeMap<u32, String>,
    #[serde(default)]
    tags: BTreeSet<String>,
    anything: Option<Value>,
    point: Option<(f32, f32)>,
}

fn three() -> u8 {
    3
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct EverythingStatus {
    replicas: Option<i32>,
    #[serde(default)]
    #[schemars(schema_with = "conditions")]
    conditions: Vec<Condition>,
}

#[tokio::test]
async fn the_server_judges_objects_as_the_types_would() {
    let options = ClusterOptions { nodes: 0, ..ClusterOptions::default() };
    let cluster = Cluster::with(options).await.expect("a cluster");
    let definitions: Api<CustomResourceDefinition> = Api::all(cluster.client());
    let ours = definition::<Everything>().expect("a definition");
    definitions.create(&PostParams::default(), &ours).await.expect("the server takes it");
    let served = holds::is_crd_established();
    await_condition(definitions.clone(), Everything::crd_name(), served).await.expect("it is served");
    let there = definitions.get(Everything::crd_name()).await.expect("it is there");
    let conditions = there.status.and_then(|s| s.conditions).unwrap_or_default();
    assert!(conditions.iter().all(|c| c.type_ != "NonStructuralSchema"), "{conditions:?}");

    let resource: ApiResource = Everything::api_resource();
    let api: Api<DynamicObject> = Api::namespaced_with(cluster.client(), "default", &resource);
    let cases = [
        (json!({}), ""),
        (json!({"replicas": 12}), "too many"),
        (json!({"level": "Info"}), ""),
        (json!({"level": "Loud"}), "Unsupported value: \"Loud\""),
        (json!({"place": {"bucket": {"name": "a"}}}), ""),
        (
            json!({"place": {"bucket": {"name": "a"}, "disk": {"path": "b"}}}),
            "must validate one and only one schema",
        ),
        (json!({"storage": {"type": "memory"}}), ""),
        (json!({"storage": {"type": "volume", "size": "1Gi"}}), ""),
        (json!({"storage": {"type": "volume"}}), "must validate one and only one schema"),
        (json!({"storage": {"type": "tape"}}), "Unsupported value: \"tape\""),
        (json!({"port": 80}), ""),
        (json!({"port": "http"}), ""),
        (json!({"port": true}), "spec.port"),
        (json!({"mixed": "Off"}), ""),
        (json!({"mixed": {"On": {"level": 3}}}), ""),
        (json!({"quotas": {"a": 1}, "by_number": {"1": "one"}}), ""),
        (json!({"quotas": {"a": 300}}), "spec.quotas.a"),
        (json!({"tags": ["a", "b"]}), ""),
        (json!({"tags": ["a", "a"]}), "Duplicate value"),
        (json!({"anything": {"at": ["all", 1]}}), ""),
        (json!({"point": [1.5, 2.5]}), ""),
        (json!({"point": [1.5]}), "spec.point"),
    ];
    for (at, (spec, refusal)) in cases.into_iter().enumerate() {
        let object = json!({
            "apiVersion": "example.com/v1", "kind": "Everything",
            "metadata": {"name": format!("case-{at}")}, "spec": spec,
        });
        let object: DynamicObject = serde_json::from_value(object).expect("an object");
        match (api.create(&PostParams::default(), &object).await, refusal) {
            (Ok(stored), "") => {
                assert_eq!(stored.data["spec"]["replicas"], 3, "the default of {spec}");
                for (field, value) in spec.as_object().into_iter().flatten() {
                    assert_eq!(stored.data["spec"][field], *value, "nothing of {spec} is pruned");
                }
                let typed = serde_json::from_value::<EverythingSpec>(stored.data["spec"].clone());
                typed.unwrap_or_else(|e| panic!("{spec} is stored, but the type refuses it: {e}"));
            }
            (Err(error), refusal) if !refusal.is_empty() => {
                assert!(error.to_string().contains(refusal), "{spec}: {error}");
            }
            (Ok(_), _) => panic!("{spec} is accepted, and should be refused: {refusal}"),
            (Err(error), _) => panic!("{spec}: {error}"),
        }
    }
}
