//! `RedisCluster` of `cache.example.com/v1`, as the CustomResourceDefinition in `examples/rediscluster-crd.yaml` has it.

use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a `RedisCluster` should be.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "cache.example.com",
    version = "v1",
    kind = "RedisCluster",
    plural = "redisclusters",
    namespaced,
    status = "RedisClusterStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase")]
pub struct RedisClusterSpec {
    /// Servers to run; at least one.
    #[schemars(range(min = 1))]
    pub replicas: i32,
    /// Version of Redis: a tag of the `redis` image, such as `7.2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

/// How a `RedisCluster` is.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RedisClusterStatus {
    /// Servers that answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ready_replicas: Option<i32>,
}

#[cfg(test)]
mod tests {
    use kube::{CustomResourceExt, Resource};
    use serde_json::Value;

    use super::*;

    fn example(name: &str) -> String {
        let path = format!("{}/../../examples/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::read_to_string(path).unwrap()
    }

    #[test]
    fn the_users_definition_names_this_type() {
        let crd: Value = serde_saphyr::from_str(&example("rediscluster-crd.yaml")).unwrap();
        assert_eq!(crd["metadata"]["name"], RedisCluster::crd_name());
        assert_eq!(crd["spec"]["group"], RedisCluster::group(&()).as_ref());
        assert_eq!(crd["spec"]["names"]["kind"], RedisCluster::kind(&()).as_ref());
        assert_eq!(crd["spec"]["names"]["plural"], RedisCluster::plural(&()).as_ref());
        assert_eq!(crd["spec"]["scope"], "Namespaced");
        let version = &crd["spec"]["versions"][0];
        assert_eq!(version["name"], RedisCluster::version(&()).as_ref());
        assert!(version["subresources"]["status"].is_object());
    }

    /// Every field of the user's schema is a field of the type, and the other way round, with the same type.
    #[test]
    fn the_users_definition_has_these_fields() {
        fn fields(schema: &Value) -> Vec<(String, Value, Value)> {
            let properties = schema["properties"].as_object().unwrap();
            properties
                .iter()
                .map(|(k, v)| (k.clone(), v["type"].clone(), v["minimum"].as_f64().into()))
                .collect()
        }
        let theirs: Value = serde_saphyr::from_str(&example("rediscluster-crd.yaml")).unwrap();
        let ours = serde_json::to_value(RedisCluster::crd()).unwrap();
        for part in ["spec", "status"] {
            let of = |crd: &Value| {
                crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"][part].clone()
            };
            assert_eq!(fields(&of(&theirs)), fields(&of(&ours)), "{part}");
            assert_eq!(of(&theirs)["required"], of(&ours)["required"], "{part}");
        }
    }

    #[test]
    fn the_users_object_reads() {
        let redis: RedisCluster = serde_saphyr::from_str(&example("rediscluster.yaml")).unwrap();
        assert_eq!(redis.spec, RedisClusterSpec { replicas: 3, version: Some("7.2".into()) });
        assert_eq!(redis.metadata.name.as_deref(), Some("sessions"));
    }
}
