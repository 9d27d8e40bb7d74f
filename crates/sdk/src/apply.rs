//! What a typed object sends when it is applied: only what its author set.
//!
//! Server-side apply makes the sender own every field that is sent. The structs of k8s-openapi always serialise
//! their required fields, so a `StatefulSetSpec` with nothing but `replicas` would also send, and own, an empty
//! selector and an empty template (k8s-openapi#112). Here they are found by asking the type: a zero value that comes
//! back when the object is read again without it was the type's doing, not the author's. A server takes an absent
//! required field for its zero value, so nothing is lost; what an author's own type (a CRD's) says is sent as it is.

use kube::Resource;
use serde_json::{Map, Value};

use crate::error::{Error, Result};
use crate::object::Object;

/// `metadata` that the server sets, or that makes no sense in what is applied.
const SERVER_METADATA: [&str; 8] = [
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "resourceVersion",
    "selfLink",
    "uid",
];

/// What can be applied: an object, or a configuration of one that says only some of it.
///
/// Every [`Object`] is: of a built-in type only what differs from its zero value is sent. Types that can also say "this
/// is empty, and I mean it" are in the crate `homeostat-apply`.
pub trait Applies {
    /// The kind that is applied.
    type Kind: Object;

    /// The body of the request: `apiVersion`, `kind`, `metadata.name`, and what is set.
    fn into_body(self) -> Result<Value>;
}

impl<T: Object> Applies for T {
    type Kind = T;

    fn into_body(self) -> Result<Value> {
        sparse(&self)
    }
}

/// The body of an apply of `object`: without status, server-set metadata, nulls, and zero values of required fields.
pub fn sparse<T: Object>(object: &T) -> Result<Value> {
    let mut value = serde_json::to_value(object)?;
    let Some(root) = value.as_object_mut() else {
        return Err(Error::msg(format!("{} doesn't serialise as an object", T::display_kind())));
    };
    root.remove("status");
    complete_types::<T>(root);
    if let Some(meta) = root.get_mut("metadata").and_then(Value::as_object_mut) {
        for field in SERVER_METADATA {
            meta.remove(field);
        }
    }
    strip_nulls(&mut value);
    if is_generated::<T>() {
        strip_zeroes::<T>(&mut value)?;
    }
    Ok(value)
}

/// Sets `apiVersion` and `kind`, which some types leave out.
pub(crate) fn complete_types<T: Resource<DynamicType = ()>>(root: &mut Map<String, Value>) {
    root.insert("apiVersion".into(), T::api_version(&()).into_owned().into());
    root.insert("kind".into(), T::kind(&()).into_owned().into());
}

/// Whether `T` is one of k8s-openapi's, of which it is known that an absent required field reads as its zero value,
/// on both ends.
fn is_generated<T>() -> bool {
    std::any::type_name::<T>().starts_with("k8s_openapi::")
}

/// Removes nulls from objects, at any depth.
pub fn strip_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(strip_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(strip_nulls),
        _ => {}
    }
}

fn strip_zeroes<T: Object>(value: &mut Value) -> Result<()> {
    // What holds only such fields becomes empty itself, hence the rounds. Objects nest less deep than this.
    for _ in 0..16 {
        let mut without = value.clone();
        if !remove_zeroes(&mut without) {
            return Ok(());
        }
        let Ok(read) = serde_json::from_value::<T>(without.clone()) else { return Ok(()) };
        let again = serde_json::to_value(&read)?;
        if !remove_returning(value, &again, &without) {
            return Ok(());
        }
    }
    Ok(())
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(b) => !b,
        Value::Number(n) => n.as_f64() == Some(0.0),
        Value::String(s) => s.is_empty(),
        Value::Array(a) => a.is_empty(),
        Value::Object(o) => o.is_empty(),
    }
}

/// Removes zero values from objects; whether there were any.
fn remove_zeroes(value: &mut Value) -> bool {
    match value {
        Value::Object(map) => {
            let before = map.len();
            map.retain(|_, v| !is_zero(v));
            let mut any = map.len() != before;
            for v in map.values_mut() {
                any |= remove_zeroes(v);
            }
            any
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, v| remove_zeroes(v) | any),
        _ => false,
    }
}

/// Removes from `value` what was taken out in `without` and came back in `again`; whether there was any.
fn remove_returning(value: &mut Value, again: &Value, without: &Value) -> bool {
    match (value, again, without) {
        (Value::Object(value), Value::Object(again), Value::Object(without)) => {
            let before = value.len();
            value.retain(|k, _| without.contains_key(k) || !again.contains_key(k));
            let mut any = value.len() != before;
            for (k, v) in value {
                if let (Some(a), Some(w)) = (again.get(k), without.get(k)) {
                    any |= remove_returning(v, a, w);
                }
            }
            any
        }
        (Value::Array(value), Value::Array(again), Value::Array(without)) => value
            .iter_mut()
            .zip(again.iter().zip(without))
            .fold(false, |any, (v, (a, w))| remove_returning(v, a, w) | any),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec};
    use k8s_openapi::api::core::v1::{
        Container, EmptyDirVolumeSource, PodSpec, PodTemplateSpec, Service, ServiceSpec, Volume,
    };
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_is_set_is_sent() {
        let set = StatefulSet {
            spec: Some(StatefulSetSpec { replicas: Some(0), ..Default::default() }),
            status: Some(Default::default()),
            ..Default::default()
        };
        assert_eq!(
            sparse(&set).unwrap(),
            json!({"apiVersion": "apps/v1", "kind": "StatefulSet", "spec": {"replicas": 0}})
        );
    }

    #[test]
    fn what_is_set_to_nothing_is_sent() {
        let set = StatefulSet {
            spec: Some(StatefulSetSpec {
                template: PodTemplateSpec {
                    spec: Some(PodSpec {
                        containers: vec![Container {
                            name: "redis".into(),
                            args: Some(vec![]),
                            ..Default::default()
                        }],
                        volumes: Some(vec![Volume {
                            name: "data".into(),
                            empty_dir: Some(EmptyDirVolumeSource::default()),
                            ..Default::default()
                        }]),
                        ..Default::default()
                    }),
                    ..Default::default()
                },
                ..Default::default()
            }),
            ..Default::default()
        };
        assert_eq!(
            sparse(&set).unwrap()["spec"],
            json!({"template": {"spec": {
                "containers": [{"name": "redis", "args": []}],
                "volumes": [{"name": "data", "emptyDir": {}}],
            }}})
        );
    }

    #[test]
    fn metadata_of_the_server_stays_with_it() {
        let mut service = Service {
            spec: Some(ServiceSpec { cluster_ip: Some("None".into()), ..Default::default() }),
            ..Default::default()
        };
        service.metadata.name = Some("redis".into());
        service.metadata.uid = Some("u".into());
        service.metadata.resource_version = Some("7".into());
        service.metadata.managed_fields = Some(vec![Default::default()]);
        assert_eq!(
            sparse(&service).unwrap(),
            json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "redis"},
                "spec": {"clusterIP": "None"}})
        );
    }
}
