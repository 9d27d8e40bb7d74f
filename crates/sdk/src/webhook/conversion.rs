//! Conversion between the versions of a kind, through one of them.
//!
//! The versions are types that convert into each other with `From` or `TryFrom`, so a conversion is ordinary Rust and
//! tested as such. Metadata is kept by the SDK: the API server accepts no other change of it than in labels and
//! annotations.
//! Invariant: an object that is of the wanted version already is returned as it came.

use std::fmt::{self, Display};
use std::marker::PhantomData;

use serde_json::{Map, Value, json};

use super::Target;
use crate::apply::{complete_types, strip_nulls};
use crate::object::Object;

type Step = Box<dyn Fn(Value) -> Result<Value, String> + Send + Sync>;

struct Spoke {
    api_version: String,
    up: Step,
    down: Step,
}

/// How the versions of a kind become each other: each through `H`, which is best the stored version.
///
/// ```
/// use homeostat_sdk::webhook::{Conversion, Webhook};
/// use k8s_openapi::api::autoscaling::{v1, v2};
/// # fn upgrade(old: v1::HorizontalPodAutoscaler) -> v2::HorizontalPodAutoscaler { Default::default() }
/// # mod types {
/// use kube::CustomResource;
/// use schemars::JsonSchema;
/// use serde::{Deserialize, Serialize};
///
/// pub mod v1 {
///     # use super::*;
///     #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
///     #[kube(group = "example.com", version = "v1", kind = "Door", namespaced)]
///     pub struct DoorSpec {
///         pub size: String,
///     }
/// }
///
/// pub mod v2 {
///     # use super::*;
///     #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
///     #[kube(group = "example.com", version = "v2", kind = "Door", namespaced)]
///     pub struct DoorSpec {
///         pub width: u32,
///     }
/// }
///
/// // The metadata needs no care.
/// impl TryFrom<v1::Door> for v2::Door {
///     type Error = std::num::ParseIntError;
///
///     fn try_from(door: v1::Door) -> Result<Self, Self::Error> {
///         Ok(Self::new("", v2::DoorSpec { width: door.spec.size.parse()? }))
///     }
/// }
///
/// impl From<v2::Door> for v1::Door {
///     fn from(door: v2::Door) -> Self {
///         Self::new("", v1::DoorSpec { size: door.spec.width.to_string() })
///     }
/// }
/// # }
///
/// let webhook = Webhook::converting(Conversion::<types::v2::Door>::new().spoke::<types::v1::Door>());
/// assert_eq!(webhook.path(), "/convert");
/// ```
pub struct Conversion<H> {
    spokes: Vec<Spoke>,
    hub: PhantomData<fn() -> H>,
}

impl<H: Object> fmt::Debug for Conversion<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let versions: Vec<&str> = self.spokes.iter().map(|s| s.api_version.as_str()).collect();
        f.debug_struct("Conversion").field("hub", &H::api_version(&())).field("spokes", &versions).finish()
    }
}

impl<H: Object> Default for Conversion<H> {
    fn default() -> Self {
        Self::new()
    }
}

impl<H: Object> Conversion<H> {
    /// Conversion through `H`, so far to no other version.
    pub fn new() -> Self {
        Self { spokes: Vec::new(), hub: PhantomData }
    }

    /// Adds a version.
    #[must_use]
    pub fn spoke<V>(mut self) -> Self
    where
        V: Object + TryFrom<H>,
        H: TryFrom<V>,
        <V as TryFrom<H>>::Error: Display,
        <H as TryFrom<V>>::Error: Display,
    {
        self.spokes.push(Spoke {
            api_version: V::api_version(&()).into_owned(),
            up: Box::new(step::<V, H>),
            down: Box::new(step::<H, V>),
        });
        self
    }

    pub(super) fn target(&self) -> Target {
        Target::of::<H>()
    }

    /// Answers the inside of a ConversionReview.
    pub(super) fn review(&self, request: &Value) -> Value {
        let uid = request.get("uid").cloned().unwrap_or_default();
        let desired = request.get("desiredAPIVersion").and_then(Value::as_str).unwrap_or_default();
        let objects = request.get("objects").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let converted: Result<Vec<Value>, String> =
            objects.iter().map(|o| self.convert(o, desired)).collect();
        match converted {
            Ok(objects) => json!({"uid": uid, "convertedObjects": objects, "result": {"status": "Success"}}),
            Err(why) => json!({"uid": uid, "convertedObjects": [],
                "result": {"status": "Failure", "message": why}}),
        }
    }

    /// One object, as the version `desired`.
    fn convert(&self, object: &Value, desired: &str) -> Result<Value, String> {
        let has = object.get("apiVersion").and_then(Value::as_str).unwrap_or_default();
        if has == desired {
            return Ok(object.clone());
        }
        let hub = H::api_version(&());
        let spoke = |version: &str| {
            let found = self.spokes.iter().find(|s| s.api_version == version);
            found.ok_or_else(|| format!("{} has no conversion of {version:?}", H::display_kind()))
        };
        let at_hub = if has == hub { object.clone() } else { (spoke(has)?.up)(object.clone())? };
        let mut converted = if desired == hub { at_hub } else { (spoke(desired)?.down)(at_hub)? };
        keep_metadata(&mut converted, object);
        Ok(converted)
    }
}

/// Through the types, from `A` to `B`.
fn step<A: Object, B>(object: Value) -> Result<Value, String>
where
    B: Object + TryFrom<A>,
    <B as TryFrom<A>>::Error: Display,
{
    let wrong = |what: &str, e: &dyn Display| {
        format!("{} can't be {what} {}: {e}", A::api_version(&()), B::api_version(&()))
    };
    let a: A = serde_json::from_value(object)
        .map_err(|e| format!("not a {} of {}: {e}", A::kind(&()), A::api_version(&())))?;
    let b = B::try_from(a).map_err(|e| wrong("converted to", &e))?;
    let mut value = serde_json::to_value(&b).map_err(|e| wrong("written as", &e))?;
    strip_nulls(&mut value);
    if let Some(root) = value.as_object_mut() {
        complete_types::<B>(root);
    }
    Ok(value)
}

/// Gives `converted` the metadata of `original`. Its labels and annotations count where it has any: a conversion that
/// cares for metadata may keep there what a version has no field for.
fn keep_metadata(converted: &mut Value, original: &Value) {
    let mut kept = original.get("metadata").and_then(Value::as_object).cloned().unwrap_or_default();
    let mut own = match converted.get_mut("metadata") {
        Some(Value::Object(own)) => std::mem::take(own),
        _ => Map::new(),
    };
    let parts = ["labels", "annotations"];
    if parts.iter().any(|p| own.contains_key(*p)) {
        for part in parts {
            match own.remove(part) {
                Some(value) if value.as_object().is_some_and(|m| !m.is_empty()) => {
                    kept.insert(part.to_owned(), value);
                }
                _ => {
                    kept.remove(part);
                }
            }
        }
    }
    converted["metadata"] = Value::Object(kept);
}

#[cfg(test)]
mod tests {
    use kube::CustomResource;
    use schemars::JsonSchema;
    use serde::{Deserialize, Serialize};

    use super::*;

    mod v1 {
        use super::*;

        #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
        #[kube(group = "example.com", version = "v1", kind = "Door", namespaced)]
        pub(super) struct DoorSpec {
            pub(super) size: String,
        }
    }

    mod v2 {
        use super::*;

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
            let mut to = Self::new("", v1::DoorSpec { size: door.spec.width.to_string() });
            to.metadata = door.metadata;
            to.metadata.annotations.get_or_insert_default().insert("was".into(), "v2".into());
            to
        }
    }

    fn review(objects: Value, desired: &str) -> Value {
        let request = json!({"uid": "u", "desiredAPIVersion": desired, "objects": objects});
        Conversion::<v2::Door>::new().spoke::<v1::Door>().review(&request)
    }

    #[test]
    fn versions_become_each_other_and_keep_their_metadata() {
        let meta = json!({"name": "a", "namespace": "n", "uid": "1", "generation": 3, "labels": {"x": "y"},
            "managedFields": [{"manager": "m"}]});
        let v1 =
            json!({"apiVersion": "example.com/v1", "kind": "Door", "metadata": meta, "spec": {"size": "7"}});
        let v2 =
            json!({"apiVersion": "example.com/v2", "kind": "Door", "metadata": meta, "spec": {"width": 7}});
        let to_v2 = review(json!([v1, v2]), "example.com/v2");
        assert_eq!(to_v2["result"], json!({"status": "Success"}));
        assert_eq!(to_v2["uid"], "u");
        assert_eq!(to_v2["convertedObjects"], json!([v2, v2]));

        let to_v1 = review(json!([v2]), "example.com/v1");
        let mut expect = v1;
        expect["metadata"]["annotations"] = json!({"was": "v2"});
        assert_eq!(to_v1["convertedObjects"], json!([expect]));
    }

    #[test]
    fn what_cannot_be_converted_says_why() {
        let door = |version: &str, spec: Value| json!([{"apiVersion": version, "kind": "Door", "metadata": {"name": "a"}, "spec": spec}]);
        for (objects, desired, why) in [
            (
                door("example.com/v1", json!({"size": "wide"})),
                "example.com/v2",
                "example.com/v1 can't be converted to example.com/v2: invalid digit found in string",
            ),
            (
                door("example.com/v3", json!({})),
                "example.com/v2",
                "Door.example.com has no conversion of \"example.com/v3\"",
            ),
            (
                door("example.com/v1", json!({})),
                "example.com/v2",
                "not a Door of example.com/v1: missing field `size`",
            ),
        ] {
            let answer = review(objects, desired);
            assert_eq!(answer["result"], json!({"status": "Failure", "message": why}));
            assert_eq!(answer["convertedObjects"], json!([]));
        }
    }
}
