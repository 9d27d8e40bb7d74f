//! CustomResourceDefinitions from types that derive `kube::CustomResource`.
//!
//! Names, columns, scale, selectable fields come from kube's derive, the schema from [`schemars`] through our own
//! rewriting. Invariant: a definition that this module returns is one that the API server takes, as far as a schema can
//! be judged without its CEL rules being compiled.

use std::panic::catch_unwind;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::{
    CustomResourceDefinition, CustomResourceDefinitionVersion, CustomResourceValidation,
};
use kube::CustomResourceExt;
use kube::core::crd::merge_crds;
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::Value;

use super::schema::{self, Fault, HIDDEN};
use super::union as unions;

/// Why there is no definition for a type.
#[derive(Debug, thiserror::Error)]
pub enum DefinitionError {
    /// Parts of the type can't be said in a structural schema.
    #[error("{kind}: {}", lines(.faults))]
    Schema {
        /// `RedisCluster/v1`.
        kind: String,
        /// What, where and why.
        faults: Vec<Fault>,
    },
    /// kube's derive failed for a reason of its own.
    #[error("{kind}: {why}")]
    Derive {
        /// The name of the definition.
        kind: String,
        /// What it said.
        why: String,
    },
    /// The versions of a kind don't fit together.
    #[error("{kind}: {why}")]
    Versions {
        /// The name of the definition.
        kind: String,
        /// What doesn't fit.
        why: String,
    },
}

fn lines(faults: &[Fault]) -> String {
    faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// For `#[schemars(transform = homeostat::manifests::union)]` on an enum whose variants share fields or mix shapes:
/// internally tagged (`#[serde(tag = "type")]`), adjacently tagged, or unit variants beside others.
///
/// kube's derive panics at such an enum; this keeps it out of kube's sight until [`definition`] makes it structural.
///
/// ```
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// #[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// #[serde(tag = "type", rename_all = "camelCase")]
/// #[schemars(transform = homeostat_sdk::manifests::union)]
/// enum Storage {
///     Memory,
///     Volume { size: String },
/// }
/// ```
pub fn union(schema: &mut schemars::Schema) {
    let Some(fields) = schema.as_object_mut() else { return };
    for keyword in ["oneOf", "anyOf"] {
        if let Some(variants) = fields.remove(keyword) {
            fields.insert(HIDDEN.into(), variants);
            // Whoever takes kube's definition as it is gets one that loses nothing.
            fields.insert("x-kubernetes-preserve-unknown-fields".into(), Value::Bool(true));
            return;
        }
    }
}

/// The definition of a kind, with a structural schema.
///
/// ```
/// # use kube::CustomResource;
/// # use schemars::JsonSchema;
/// # use serde::{Deserialize, Serialize};
/// #[derive(CustomResource, Clone, Debug, Serialize, Deserialize, JsonSchema)]
/// #[kube(group = "example.com", version = "v1", kind = "Widget", namespaced)]
/// struct WidgetSpec {
///     size: Option<u8>,
/// }
///
/// let definition = homeostat_sdk::manifests::definition::<Widget>().unwrap();
/// assert_eq!(definition.metadata.name.as_deref(), Some("widgets.example.com"));
/// ```
pub fn definition<K: CustomResourceExt + JsonSchema>() -> Result<CustomResourceDefinition, DefinitionError> {
    let resource = K::api_resource();
    let kind = format!("{}/{}", resource.kind, resource.version);
    let raw = raw::<K>();
    let mut enums = Vec::new();
    unions::too_much_for_kube(&raw, "", &mut enums);
    if !enums.is_empty() {
        let why = "the variants of this enum share a field with different schemas, or mix shapes; put \
                   `#[schemars(transform = homeostat::manifests::union)]` on the enum";
        let faults = enums.into_iter().map(|path| Fault { path, why: why.into() }).collect();
        return Err(DefinitionError::Schema { kind, faults });
    }
    let schema =
        schema::structural(&raw).map_err(|faults| DefinitionError::Schema { kind: kind.clone(), faults })?;
    let derive = |why: String| DefinitionError::Derive { kind: K::crd_name().to_owned(), why };
    let mut crd = catch_unwind(K::crd).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        derive(text.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned())).unwrap_or_default())
    })?;
    let typed = serde_json::from_value(schema).map_err(|e| derive(e.to_string()))?;
    if let Some(version) = crd.spec.versions.first_mut() {
        version.schema = Some(CustomResourceValidation { open_api_v3_schema: Some(typed) });
    }
    Ok(crd)
}

/// For `#[schemars(schema_with = "homeostat::manifests::conditions")]` on a status' `conditions`: a list that is keyed
/// by type, as the API conventions want it, so that each condition has an owner of its own.
pub fn conditions(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
    schemars::json_schema!({
        "type": "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "reason", "message", "lastTransitionTime"],
            "properties": {
                "type": {
                    "type": "string",
                    "maxLength": 316,
                    "description": "What is said, such as `Ready`.",
                },
                "status": {
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                    "description": "Whether it holds.",
                },
                "reason": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                    "pattern": "^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
                    "description": "Why, in one word for programs.",
                },
                "message": {
                    "type": "string",
                    "maxLength": 32768,
                    "description": "Why, for people.",
                },
                "observedGeneration": {
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                    "description": "The generation that it is said of.",
                },
                "lastTransitionTime": {
                    "type": "string",
                    "format": "date-time",
                    "description": "When the status last changed.",
                },
            },
        },
    })
}

/// Several definitions of one kind, put together: the stored version is the one whose derive doesn't say
/// `#[kube(storage = false)]`.
pub(crate) fn by_kind(
    definitions: &[CustomResourceDefinition],
) -> Result<Vec<CustomResourceDefinition>, DefinitionError> {
    let mut kinds: Vec<(String, Vec<CustomResourceDefinition>)> = Vec::new();
    for definition in definitions {
        let name = definition.metadata.name.clone().unwrap_or_default();
        match kinds.iter_mut().find(|(n, _)| *n == name) {
            Some((_, same)) => same.push(definition.clone()),
            None => kinds.push((name, vec![definition.clone()])),
        }
    }
    let mut merged = Vec::new();
    for (kind, same) in kinds {
        if let [only] = &same[..] {
            merged.push(only.clone());
            continue;
        }
        let stored: Vec<String> = versions(&same).filter(|v| v.storage).map(|v| v.name.clone()).collect();
        match &stored[..] {
            [one] => merged.push(merge(same, one)?),
            [] => {
                let why =
                    "no version is stored; take `storage = false` from the one that is to be".to_owned();
                return Err(DefinitionError::Versions { kind, why });
            }
            several => {
                let why = format!(
                    "versions {} are all stored; put `storage = false` into `#[kube(…)]` of all but one",
                    several.join(" and ")
                );
                return Err(DefinitionError::Versions { kind, why });
            }
        }
    }
    Ok(merged)
}

/// The schema as schemars has it, references resolved.
fn raw<K: JsonSchema>() -> Value {
    let settings = SchemaSettings::openapi3().with(|s| {
        s.inline_subschemas = true;
        s.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<K>().to_value()
}

/// One definition with several versions, of which `stored` is the one that is stored.
///
/// Versions come in the order in which kubectl prefers them: the highest first, as the API server would order them.
pub fn merge(
    definitions: Vec<CustomResourceDefinition>,
    stored: &str,
) -> Result<CustomResourceDefinition, DefinitionError> {
    let kind = definitions.iter().find_map(|d| d.metadata.name.clone()).unwrap_or_default();
    let fail = |why: String| DefinitionError::Versions { kind: kind.clone(), why };
    let mut names: Vec<&str> = versions(&definitions).map(|v| v.name.as_str()).collect();
    names.sort_unstable();
    if let Some(twice) = names.windows(2).find(|w| w[0] == w[1]) {
        return Err(fail(format!("version {} is declared twice", twice[0])));
    }
    if definitions.iter().any(|d| d.spec.names.plural != definitions[0].spec.names.plural) {
        return Err(fail("its versions have different plurals".into()));
    }
    let mut merged = merge_crds(definitions, stored).map_err(|e| fail(e.to_string()))?;
    merged.spec.versions.sort_by_key(|v| std::cmp::Reverse(priority(&v.name)));
    Ok(merged)
}

fn versions(
    definitions: &[CustomResourceDefinition],
) -> impl Iterator<Item = &CustomResourceDefinitionVersion> {
    definitions.iter().flat_map(|d| &d.spec.versions)
}

/// The order of versions: v2, v1, v1beta1, v1alpha1, then others by name (apimachinery's `CompareKubeAwareVersionStrings`).
fn priority(version: &str) -> (u8, u64, u64, std::cmp::Reverse<String>) {
    let other = (0, 0, 0, std::cmp::Reverse(version.to_owned()));
    let Some(rest) = version.strip_prefix('v') else { return other };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (Ok(major), stage) = (rest[..digits].parse(), &rest[digits..]) else { return other };
    let (rank, minor) = match stage {
        "" => (3, "0"),
        _ => match (stage.strip_prefix("beta"), stage.strip_prefix("alpha")) {
            (Some(minor), _) => (2, minor),
            (_, Some(minor)) => (1, minor),
            _ => return other,
        },
    };
    match minor.parse() {
        Ok(minor) => (rank, major, minor, std::cmp::Reverse(version.to_owned())),
        Err(_) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_ordered_as_the_api_server_orders_them() {
        let mut versions =
            ["foo10", "v1alpha1", "v1", "v12alpha1", "v10", "foo1", "v11beta2", "v11alpha2", "v2", "v3beta1"];
        versions.sort_by_key(|v| std::cmp::Reverse(priority(v)));
        assert_eq!(
            versions,
            ["v10", "v2", "v1", "v11beta2", "v3beta1", "v12alpha1", "v11alpha2", "v1alpha1", "foo1", "foo10"]
        );
    }
}
