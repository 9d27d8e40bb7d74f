//! The `scale` subresource: an `autoscaling/v1` Scale made from an object, and written back into it.
//!
//! Custom resources say by paths where their replicas are; built-in types have the same paths always. A Scale has
//! no stored form of its own. Invariant: writing a Scale touches replicas, resourceVersion and managed fields only.

mod managed;

use homeostat_model::field::{self, Error};
use serde_json::{Map, Value, json};

use crate::definition::ScalePaths;

pub use managed::{to_parent, to_scale};

/// What stands in `spec.replicas` of the Scale of an object that has none; whoever writes must set another.
pub const UNSET: i64 = i32::MIN as i64;

/// Why an object has no Scale, or can't take one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScaleError {
    /// The object has no replicas, or another type where they should be; the reference answers 500.
    #[error("{0}")]
    Internal(String),
    /// The Scale lacks replicas; 400.
    #[error("{0}")]
    BadRequest(String),
}

/// The Scale of an object, to be read.
pub fn get(object: &Value, paths: &ScalePaths) -> Result<Value, ScaleError> {
    let scale = for_update(object, paths)?;
    if scale["spec"]["replicas"] == UNSET {
        let text = format!("the spec replicas field {} does not exist", field::quote(&paths.spec));
        return Err(ScaleError::Internal(text));
    }
    Ok(trimmed(scale))
}

/// The Scale of an object, to be patched or replaced: without replicas it carries [`UNSET`], and a zero is kept.
pub fn for_update(object: &Value, paths: &ScalePaths) -> Result<Value, ScaleError> {
    let replicas = integer(object, &paths.spec).map_err(ScaleError::Internal)?;
    let current = integer(object, &paths.status).map_err(ScaleError::Internal)?.unwrap_or(0);
    let selector = match &paths.selector {
        Some(path) => selector(object, path).map_err(ScaleError::Internal)?,
        None => String::new(),
    };
    let mut metadata = Map::new();
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object["metadata"].get(key) {
            metadata.insert(key.to_owned(), value.clone());
        }
    }
    let mut status = json!({"replicas": current});
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    Ok(json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata,
        "spec": {"replicas": replicas.unwrap_or(UNSET)}, "status": status,
    }))
}

/// A Scale as it goes over the wire: zero replicas are left out of its spec.
pub fn trimmed(mut scale: Value) -> Value {
    if let Some(spec) = scale.get_mut("spec").and_then(Value::as_object_mut)
        && spec.get("replicas") == Some(&json!(0))
    {
        spec.remove("replicas");
    }
    scale
}

/// Writes a Scale's replicas into the object, and its resourceVersion where it has one, as a precondition.
pub fn write(object: &mut Value, scale: &Value, paths: &ScalePaths) -> Result<(), ScaleError> {
    let replicas = scale["spec"]["replicas"].as_i64().unwrap_or(0);
    if replicas == UNSET {
        let text = format!("the spec replicas field {} cannot be empty", field::quote(&paths.spec));
        return Err(ScaleError::BadRequest(text));
    }
    let names: Vec<&str> = names(&paths.spec).collect();
    let mut at = &mut *object;
    for (i, name) in names.iter().enumerate() {
        if at.is_null() {
            *at = json!({});
        }
        let Value::Object(fields) = at else {
            let path = names[..i].join(".");
            return Err(ScaleError::Internal(format!(
                "value cannot be set because .{path} is not a map[string]interface{{}}"
            )));
        };
        at = fields.entry(*name).or_insert(Value::Null);
    }
    *at = replicas.into();
    if let Some(version) = scale["metadata"]["resourceVersion"].as_str().filter(|v| !v.is_empty())
        && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut)
    {
        metadata.insert("resourceVersion".into(), version.into());
    }
    Ok(())
}

/// Rules that the paths of a scale subresource put on every write of a custom resource; `status_only` for writes of
/// its status.
pub fn validate(object: &Value, paths: &ScalePaths, status_only: bool) -> Vec<Error> {
    let mut errors = Vec::new();
    let mut count = |path: &str| match integer(object, path) {
        Err(why) => errors.push(Error::invalid(path, 0, why)),
        Ok(Some(n)) if n < 0 => errors.push(Error::invalid(path, n, "should be a non-negative integer")),
        Ok(Some(n)) if n > i64::from(i32::MAX) => {
            errors.push(Error::invalid(path, n, format!("should be less than or equal to {}", i32::MAX)));
        }
        Ok(_) => {}
    };
    if !status_only {
        count(&paths.spec);
    }
    count(&paths.status);
    if let Some(path) = &paths.selector
        && let Err(why) = text(object, path)
    {
        errors.push(Error::invalid(path, "", why));
    }
    errors
}

fn names(path: &str) -> impl Iterator<Item = &str> {
    path.strip_prefix('.').unwrap_or(path).split('.')
}

/// Follows a path of field names. The error is Go's, of a step into something that has no fields.
fn lookup<'a>(object: &'a Value, path: &str) -> Result<Option<&'a Value>, String> {
    let (mut at, mut so_far) = (object, String::new());
    for name in names(path) {
        if at.is_null() {
            return Ok(None);
        }
        so_far.push('.');
        so_far.push_str(name);
        let Value::Object(fields) = at else {
            return Err(wrong_type(&so_far, at, "map[string]interface{}"));
        };
        match fields.get(name) {
            Some(value) => at = value,
            None => return Ok(None),
        }
    }
    Ok(Some(at))
}

fn wrong_type(path: &str, value: &Value, want: &str) -> String {
    let (shown, kind) = match value {
        Value::Null => ("<nil>".to_owned(), "<nil>"),
        Value::Bool(b) => (b.to_string(), "bool"),
        Value::Number(n) if n.is_f64() => (crate::jsonpath::print(value), "float64"),
        Value::Number(n) => (n.to_string(), "int64"),
        Value::String(s) => (s.clone(), "string"),
        Value::Array(_) => (value.to_string(), "[]interface {}"),
        Value::Object(_) => (value.to_string(), "map[string]interface {}"),
    };
    format!("{path} accessor error: {shown} is of the type {kind}, expected {want}")
}

fn integer(object: &Value, path: &str) -> Result<Option<i64>, String> {
    match lookup(object, path)? {
        None => Ok(None),
        Some(value) => value.as_i64().map(Some).ok_or_else(|| wrong_type(path, value, "int64")),
    }
}

fn text(object: &Value, path: &str) -> Result<String, String> {
    match lookup(object, path)? {
        None => Ok(String::new()),
        Some(Value::String(s)) => Ok(s.clone()),
        Some(other) => Err(wrong_type(path, other, "string")),
    }
}

/// The label selector as text: custom resources hold it as text, built-in types as a selector or a map of labels.
fn selector(object: &Value, path: &str) -> Result<String, String> {
    match lookup(object, path)? {
        Some(Value::Object(fields)) if path.starts_with(".spec.") => {
            let selects = |k: &String| k == "matchLabels" || k == "matchExpressions";
            if !fields.is_empty() && fields.keys().all(selects) {
                let labels = homeostat_model::selector::Labels::from_value(&Value::Object(fields.clone()));
                return Ok(labels.map(|l| l.to_string()).unwrap_or_default());
            }
            let pairs = fields.iter().map(|(k, v)| format!("{k}={}", v.as_str().unwrap_or_default()));
            Ok(pairs.collect::<Vec<_>>().join(","))
        }
        _ => text(object, path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn paths() -> ScalePaths {
        ScalePaths {
            spec: ".spec.replicas".into(),
            status: ".status.replicas".into(),
            selector: Some(".status.selector".into()),
        }
    }

    fn check(object: Value, want: Result<Value, &str>) {
        let found =
            get(&object, &paths()).map(|s| json!([s["spec"], s["status"]])).map_err(|e| e.to_string());
        assert_eq!(found, want.map_err(str::to_owned));
    }

    #[test]
    fn a_scale_is_read_by_paths() {
        check(
            json!({"metadata": {"name": "a"}, "spec": {"replicas": 2}, "status": {"selector": "app=f"}}),
            Ok(json!([{"replicas": 2}, {"replicas": 0, "selector": "app=f"}])),
        );
        check(json!({"spec": {"replicas": 0}}), Ok(json!([{}, {"replicas": 0}])));
        check(json!({"spec": {}}), Err("the spec replicas field \".spec.replicas\" does not exist"));
        check(
            json!({"spec": {"replicas": "x"}}),
            Err(".spec.replicas accessor error: x is of the type string, expected int64"),
        );
    }

    #[test]
    fn a_built_in_selector_becomes_text() {
        let object = json!({"spec": {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}}});
        let built_in = ScalePaths { selector: Some(".spec.selector".into()), ..paths() };
        assert_eq!(get(&object, &built_in).map(|s| s["status"]["selector"].clone()), Ok(json!("app=web")));
        let object = json!({"spec": {"replicas": 1, "selector": {"b": "2", "a": "1"}}});
        assert_eq!(get(&object, &built_in).map(|s| s["status"]["selector"].clone()), Ok(json!("a=1,b=2")));
    }

    #[test]
    fn a_scale_is_written_back() {
        let mut object = json!({"metadata": {"resourceVersion": "5"}});
        let mut scale = for_update(&object, &paths()).unwrap();
        let refused =
            ScaleError::BadRequest("the spec replicas field \".spec.replicas\" cannot be empty".into());
        assert_eq!(write(&mut object, &scale, &paths()), Err(refused));
        scale["spec"]["replicas"] = 3.into();
        scale["metadata"]["resourceVersion"] = "4".into();
        assert_eq!(write(&mut object, &scale, &paths()), Ok(()));
        assert_eq!(object, json!({"metadata": {"resourceVersion": "4"}, "spec": {"replicas": 3}}));
    }

    #[test]
    fn replicas_are_counts() {
        let errors = validate(&json!({"spec": {"replicas": -1}, "status": {"selector": 1}}), &paths(), false);
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                ".spec.replicas: Invalid value: -1: should be a non-negative integer",
                ".status.selector: Invalid value: \"\": .status.selector accessor error: 1 is of the type int64, \
                 expected string"
            ]
        );
    }
}
