//! Types on the one side, what the API server would be given on the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use k8s_openapi::api::core::v1::{ConfigMap, Secret, ServiceAccount};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::*;
use crate::{Context, Edits, Next, Result};

/// The schema of the field `it` of a spec of this type.
macro_rules! schema_of {
    ($type:ty) => {{
        #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[kube(group = "example.com", version = "v1", kind = "Thing", namespaced)]
        struct ThingSpec {
            #[allow(dead_code, reason = "only its type counts")]
            it: $type,
        }
        definition::<Thing>().map(|crd| {
            let crd = json!(crd);
            crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["it"]
                .clone()
        })
    }};
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
enum Level {
    /// Everything.
    Debug,
    Info,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum External {
    /// In a bucket.
    S3 {
        bucket: String,
    },
    Disk {
        path: String,
    },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "camelCase")]
#[schemars(transform = union)]
enum Internal {
    Memory,
    Volume { size: String, class: Option<String> },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type")]
enum Unmarked {
    A { x: u8 },
    B { y: u8 },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", content = "value")]
#[schemars(transform = union)]
enum Adjacent {
    Number(i64),
    Text(String),
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Port {
    Number(u16),
    Name(String),
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Source {
    Inline { text: String },
    Reference { name: String, key: Option<String> },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = union)]
enum Mixed {
    Off,
    On { level: u8 },
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Tree {
    children: Vec<Tree>,
}

#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
struct Open {
    name: String,
    #[serde(flatten)]
    rest: BTreeMap<String, Value>,
}

#[track_caller]
fn check(schema: Checked, expect: Value) {
    let schema = schema.expect("a definition");
    assert_eq!(schema, expect, "{schema:#}");
}

#[track_caller]
fn refuse(schema: Checked, expect: &str) {
    let error = schema.expect_err("a refusal").to_string();
    assert!(error.contains(expect), "{error}");
}

type Checked = std::result::Result<Value, DefinitionError>;

#[test]
fn scalars_keep_bounds_and_lose_formats_that_only_rust_knows() {
    check(schema_of!(u8), json!({"type": "integer", "minimum": 0.0, "maximum": 255.0}));
    check(schema_of!(Option<i32>), json!({"type": "integer", "format": "int32", "nullable": true}));
    check(schema_of!(f64), json!({"type": "number", "format": "double"}));
}

#[test]
fn maps_and_sets() {
    let strings = json!({"type": "object", "additionalProperties": {"type": "string"}});
    check(schema_of!(HashMap<String, String>), strings.clone());
    check(schema_of!(BTreeMap<u32, String>), strings);
    check(
        schema_of!(BTreeSet<String>),
        json!({"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}),
    );
    check(schema_of!(Value), json!({"x-kubernetes-preserve-unknown-fields": true}));
    check(
        schema_of!(Open),
        json!({
            "type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"],
            "x-kubernetes-preserve-unknown-fields": true,
        }),
    );
}

#[test]
fn enums_of_units() {
    // schemars puts what has no documentation first.
    check(schema_of!(Level), json!({"type": "string", "enum": ["Info", "Debug"]}));
    check(schema_of!(Option<Level>), json!({"type": "string", "enum": ["Info", "Debug"], "nullable": true}));
}

#[test]
fn externally_tagged_enums() {
    let expect = json!({
        "type": "object",
        "properties": {
            "s3": {
                "type": "object", "description": "In a bucket.",
                "properties": {"bucket": {"type": "string"}}, "required": ["bucket"],
            },
            "disk": {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]},
        },
        "oneOf": [{"required": ["s3"]}, {"required": ["disk"]}],
    });
    check(schema_of!(External), expect.clone());
    let mut optional = expect;
    optional["nullable"] = json!(true);
    check(schema_of!(Option<External>), optional);
}

#[test]
fn internally_tagged_enums() {
    check(
        schema_of!(Internal),
        json!({
            "type": "object",
            "properties": {
                "type": {"type": "string", "enum": ["memory", "volume"]},
                "size": {"type": "string"},
                "class": {"type": "string", "nullable": true},
            },
            "required": ["type"],
            "oneOf": [
                {"properties": {"type": {"enum": ["memory"]}}},
                {"properties": {"type": {"enum": ["volume"]}}, "required": ["size"]},
            ],
        }),
    );
    refuse(schema_of!(Unmarked), "spec.it: the variants of this enum share a field with different schemas");
    refuse(schema_of!(Adjacent), "spec.it.value: two variants of an enum give this field different types");
}

#[test]
fn untagged_enums() {
    check(schema_of!(Port), json!({"x-kubernetes-int-or-string": true}));
    check(schema_of!(Option<Port>), json!({"x-kubernetes-int-or-string": true, "nullable": true}));
    check(
        schema_of!(Source),
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string"},
                "name": {"type": "string"},
                "key": {"type": "string", "nullable": true},
            },
            "anyOf": [{"required": ["text"]}, {"required": ["name"]}],
        }),
    );
    check(schema_of!(Mixed), json!({"x-kubernetes-preserve-unknown-fields": true}));
}

#[test]
fn what_no_schema_can_say_is_refused_with_its_place() {
    refuse(schema_of!(Tree), "spec.it.children[]: `Tree` contains itself");
    refuse(schema_of!((u8, String)), "spec.it: a tuple of different types");
    check(
        schema_of!((f32, f32)),
        json!({"type": "array", "items": {"type": "number", "format": "float"}, "minItems": 2, "maxItems": 2}),
    );
}

#[derive(CustomResource, Clone, Debug, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "cache.example.com",
    version = "v1",
    kind = "Shard",
    namespaced,
    status = "ShardStatus",
    shortname = "sh",
    scale(spec_replicas_path = ".spec.replicas", status_replicas_path = ".status.replicas"),
    selectable = ".spec.zone",
    printcolumn(name = "Zone", type_ = "string", json_path = ".spec.zone")
)]
#[serde(rename_all = "camelCase")]
struct ShardSpec {
    #[x_kube(validation = Rule::new("self < 10").message("too many"))]
    #[serde(default = "three")]
    replicas: i32,
    zone: Option<String>,
}

fn three() -> i32 {
    3
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
struct ShardStatus {
    replicas: Option<i32>,
}

#[test]
fn what_the_derive_says_is_in_the_definition() {
    let crd = json!(definition::<Shard>().unwrap());
    let version = &crd["spec"]["versions"][0];
    assert_eq!(crd["spec"]["names"]["shortNames"], json!(["sh"]));
    assert_eq!(version["subresources"]["scale"]["specReplicasPath"], ".spec.replicas");
    assert_eq!(version["selectableFields"], json!([{"jsonPath": ".spec.zone"}]));
    assert_eq!(version["additionalPrinterColumns"][0]["name"], "Zone");
    let replicas = &version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]["replicas"];
    assert_eq!(replicas["default"], 3);
    assert_eq!(replicas["x-kubernetes-validations"][0]["rule"], "self < 10");
}

struct Shards;

impl Operator for Shards {
    type Resource = Shard;
    type Owns = (ConfigMap,);
    type Reads = (Secret, Edits<ServiceAccount>);

    async fn reconcile(&self, _: &Shard, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }
}

fn parts() -> Parts {
    let mut parts = Parts::new("shards");
    parts.definition(definition::<Shard>());
    parts.operator::<Shards>();
    parts
}

fn document<'a>(files: &'a [File], path: &str, at: usize) -> &'a Value {
    &files.iter().find(|f| f.path == path).unwrap_or_else(|| panic!("no {path}")).documents[at]
}

#[test]
fn rights_are_those_of_the_types() {
    let files = parts().files(&Options::of("shards")).unwrap();
    let role = document(&files, "rbac/role.yaml", 0);
    assert_eq!(role["kind"], "ClusterRole");
    let verbs = |group: &str, resource: &str| {
        let rules = role["rules"].as_array().unwrap();
        let has = |list: &Value, x: &str| list.as_array().unwrap().iter().any(|v| v == x);
        let found: Vec<&Value> =
            rules.iter().filter(|r| has(&r["apiGroups"], group) && has(&r["resources"], resource)).collect();
        assert!(found.len() < 2, "{found:?}");
        found.first().map(|r| {
            r["verbs"].as_array().unwrap().iter().map(|v| v.as_str().unwrap()).collect::<Vec<_>>().join(",")
        })
    };
    assert_eq!(verbs("", "secrets").as_deref(), Some("get,list,watch"));
    assert_eq!(verbs("", "configmaps").as_deref(), Some("get,list,watch,create,update,patch,delete"));
    assert_eq!(verbs("cache.example.com", "shards/finalizers").as_deref(), Some("update"));
    assert_eq!(verbs("", "pods"), None);
    let lease = document(&files, "rbac/leader_election.yaml", 0);
    assert_eq!((&lease["kind"], &lease["metadata"]["namespace"]), (&json!("Role"), &json!("shards-system")));
}

#[test]
fn a_namespaced_program_gets_a_role_and_no_cluster_role() {
    let options = Options { namespaced: true, ..Options::of("shards") };
    let files = parts().files(&options).unwrap();
    assert_eq!(document(&files, "rbac/role.yaml", 0)["kind"], "Role");
    assert_eq!(document(&files, "rbac/role_binding.yaml", 0)["roleRef"]["kind"], "Role");
    let args =
        &document(&files, "manager/deployment.yaml", 0)["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(args.as_array().unwrap().contains(&json!("--namespace=$(POD_NAMESPACE)")), "{args}");
}

#[test]
fn versions_merge_into_one_definition() {
    mod older {
        use super::*;

        #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[kube(group = "cache.example.com", version = "v1beta1", kind = "Shard", namespaced)]
        pub(super) struct ShardSpec {
            zone: Option<String>,
        }
    }
    let both = || vec![definition::<older::Shard>().unwrap(), definition::<Shard>().unwrap()];
    let merged = merge(both(), "v1").unwrap();
    let versions: Vec<_> = merged.spec.versions.iter().map(|v| (v.name.as_str(), v.storage)).collect();
    assert_eq!(versions, [("v1", true), ("v1beta1", false)]);
    assert!(merge(both(), "v2").unwrap_err().to_string().contains("v2"));
    let mut parts = Parts::new("shards");
    both().into_iter().for_each(|d| parts.definition(Ok(d)));
    assert!(parts.definitions().unwrap_err()[0].contains("are all stored"));
    let twice = vec![definition::<Shard>().unwrap(), definition::<Shard>().unwrap()];
    assert!(merge(twice, "v1").unwrap_err().to_string().contains("version v1 is declared twice"));
}
