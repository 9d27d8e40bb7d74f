//! Conversion by webhook: what it is asked, and whether its answer may be believed.
//!
//! Pure; who calls the webhook gives the objects and takes them back. A webhook may change everything but the
//! identity of an object: of the metadata only labels and annotations are taken from its answer.

use homeostat_model::GroupVersion;
use serde_json::{Map, Value, json};

/// The review version to speak: the first of the CRD's list that is known.
pub fn review_version(webhook: &Value) -> Option<&'static str> {
    let versions = webhook["conversionReviewVersions"].as_array()?;
    versions.iter().find_map(|v| match v.as_str() {
        Some("v1") => Some("v1"),
        Some("v1beta1") => Some("v1beta1"),
        _ => None,
    })
}

/// The request to convert `objects`, none of which is in `to` yet.
pub fn review_request(review_version: &str, uid: &str, to: &GroupVersion, objects: &[Value]) -> Value {
    json!({
        "kind": "ConversionReview",
        "apiVersion": format!("apiextensions.k8s.io/{review_version}"),
        "request": {"uid": uid, "desiredAPIVersion": to.to_string(), "objects": objects},
        // The reference writes the empty answer too.
        "response": {"uid": "", "convertedObjects": null, "result": {"metadata": {}}},
    })
}

/// The converted objects in the order of `originals`, their metadata restored. `list_kind` is the kind that errors
/// name when a list was converted.
///
/// # Errors
/// The reference's words, as the server's 500 has them.
pub fn converted(
    response: &Value,
    review_version: &str,
    uid: &str,
    originals: &[Value],
    to: &GroupVersion,
    list_kind: Option<&str>,
) -> Result<Vec<Value>, String> {
    let from = originals.first().map(|o| (text(&o["apiVersion"]), text(&o["kind"]))).unwrap_or_default();
    let (group_version, kind) = (from.0, list_kind.unwrap_or(from.1));
    let what = format!("conversion webhook for {group_version}, Kind={kind}");
    let objects = answer(response, review_version, uid).map_err(|why| format!("{what} failed: {why}"))?;
    if objects.len() != originals.len() {
        return Err(format!("{what} returned {} objects, expected {}", objects.len(), originals.len()));
    }
    let mut out = Vec::with_capacity(objects.len());
    for (i, (object, original)) in objects.iter().zip(originals).enumerate() {
        let place = match list_kind {
            Some(_) => format!("converted object at index {i}"),
            None => "object at index 0".to_owned(),
        };
        let invalid = |why: String| format!("{what} returned invalid {place}: {why}");
        let got =
            GroupVersion::parse(text(&object["apiVersion"])).unwrap_or_else(|| GroupVersion::new("", ""));
        if got != *to {
            return Err(invalid(format!(
                "invalid groupVersion (expected {to}, received {})",
                text(&object["apiVersion"])
            )));
        }
        if object["kind"] != original["kind"] {
            let (expected, received) = (text(&original["kind"]), text(&object["kind"]));
            return Err(invalid(format!("invalid kind (expected {expected}, received {received})")));
        }
        let place = match list_kind {
            Some(_) => place,
            None => "object".to_owned(),
        };
        identity(original, object).map_err(|why| format!("{what} returned invalid {place}: {why}"))?;
        let place = match list_kind {
            Some(_) => format!("metadata in object at index {i}"),
            None => "metadata".to_owned(),
        };
        let restored =
            restore(original, object).map_err(|why| format!("{what} returned invalid {place}: {why}"))?;
        out.push(restored);
    }
    Ok(out)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn answer<'a>(review: &'a Value, version: &str, uid: &str) -> Result<&'a [Value], String> {
    let want = format!("apiextensions.k8s.io/{version}");
    let (api_version, kind) = (text(&review["apiVersion"]), text(&review["kind"]));
    if version == "v1" && (api_version != want || kind != "ConversionReview") {
        return Err(format!(
            "expected webhook response of {want}, Kind=ConversionReview, got {api_version}, Kind={kind}"
        ));
    }
    let Some(response) = review["response"].as_object() else {
        return Err("no response provided".to_owned());
    };
    let got = response.get("uid").map(text).unwrap_or_default();
    if version == "v1" && got != uid {
        return Err(format!(
            "expected response.uid={}, got {}",
            homeostat_model::field::quote(uid),
            homeostat_model::field::quote(got)
        ));
    }
    let result = response.get("result").unwrap_or(&Value::Null);
    if result["status"] != "Success" {
        return Err(match text(&result["message"]) {
            "" => format!("response.result.status was '{}', not 'Success'", text(&result["status"])),
            message => message.to_owned(),
        });
    }
    Ok(response.get("convertedObjects").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default())
}

fn identity(original: &Value, converted: &Value) -> Result<(), String> {
    for (key, name) in [("name", "name"), ("namespace", "namespace"), ("uid", "UID")] {
        let (expected, got) = (text(&original["metadata"][key]), text(&converted["metadata"][key]));
        if expected != got {
            return Err(format!("must have the same {name}: {expected} != {got}"));
        }
    }
    Ok(())
}

/// The converted object with the original's metadata, but its own labels and annotations.
fn restore(original: &Value, converted: &Value) -> Result<Value, String> {
    let theirs = match converted.get("metadata") {
        None => return Err("missing metadata in converted object".to_owned()),
        Some(Value::Object(m)) => m,
        Some(other) => {
            return Err(format!("invalid metadata of type {} in converted object", go_type(other)));
        }
    };
    let mut ours = match original.get("metadata") {
        None => Map::new(),
        Some(Value::Object(m)) => m.clone(),
        Some(other) => return Err(format!("invalid metadata of type {} in input object", go_type(other))),
    };
    for key in ["labels", "annotations"] {
        match theirs.get(key) {
            None | Some(Value::Null) => {
                ours.remove(key);
            }
            Some(Value::Object(fields)) => {
                if let Some((k, v)) = fields.iter().find(|(_, v)| !v.is_string()) {
                    return Err(format!(
                        "metadata.{key}[{k}] must be a string, but is {} in converted object",
                        go_type(v)
                    ));
                }
                ours.insert(key.to_owned(), Value::Object(fields.clone()));
            }
            Some(other) => {
                return Err(format!("invalid metadata.{key} of type {} in converted object", go_type(other)));
            }
        }
    }
    let mut out = converted.clone();
    if let Value::Object(fields) = &mut out {
        fields.insert("metadata".into(), ours.into());
    }
    Ok(out)
}

fn go_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::Bool(_) => "bool",
        Value::Number(n) if n.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::String(_) => "string",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn original() -> Value {
        json!({"apiVersion": "example.com/v1", "kind": "Endpoint",
            "metadata": {"name": "a", "uid": "u", "labels": {"x": "1"}, "resourceVersion": "7"},
            "spec": {"hostPort": "db:1"}})
    }

    fn check(response: Value, want: Result<Value, &str>) {
        let to = GroupVersion::new("example.com", "v2");
        let found = converted(&response, "v1", "id", &[original()], &to, None).map(|mut o| o.remove(0));
        assert_eq!(
            found,
            want.map_err(|why| format!("conversion webhook for example.com/v1, Kind=Endpoint {why}"))
        );
    }

    fn success(object: Value) -> Value {
        json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview",
            "response": {"uid": "id", "result": {"status": "Success"}, "convertedObjects": [object]}})
    }

    #[test]
    fn metadata_but_labels_and_annotations_are_restored() {
        let mut object = original();
        object["apiVersion"] = "example.com/v2".into();
        object["spec"] = json!({"address": "db:1"});
        object["metadata"] = json!({"name": "a", "uid": "u", "labels": {"y": "2"}, "annotations": {"b": "c"}, "finalizers": ["f"]});
        let mut want = object.clone();
        want["metadata"] = json!({"name": "a", "uid": "u", "labels": {"y": "2"}, "annotations": {"b": "c"},
            "resourceVersion": "7"});
        check(success(object), Ok(want));
    }

    #[test]
    fn answers_that_lie_are_refused() {
        let v2 = |change: &dyn Fn(&mut Value)| {
            let mut object = original();
            object["apiVersion"] = "example.com/v2".into();
            change(&mut object);
            success(object)
        };
        check(
            success(original()),
            Err(
                "returned invalid object at index 0: invalid groupVersion (expected example.com/v2, received \
                 example.com/v1)",
            ),
        );
        check(
            v2(&|o| o["kind"] = "X".into()),
            Err("returned invalid object at index 0: invalid kind (expected Endpoint, received X)"),
        );
        check(
            v2(&|o| o["metadata"]["name"] = "b".into()),
            Err("returned invalid object: must have the same name: a != b"),
        );
        check(
            v2(&|o| o["metadata"]["labels"] = json!({"x": 1})),
            Err(
                "returned invalid metadata: metadata.labels[x] must be a string, but is int64 in converted object",
            ),
        );
        let mut other = v2(&|_| {});
        other["response"]["uid"] = "other".into();
        check(other, Err("failed: expected response.uid=\"id\", got \"other\""));
        let mut none = v2(&|_| {});
        none["response"]["convertedObjects"] = json!([]);
        check(none, Err("returned 0 objects, expected 1"));
        let mut failed = v2(&|_| {});
        failed["response"]["result"] = json!({"status": "Failure", "message": "no"});
        check(failed, Err("failed: no"));
        let mut silent = v2(&|_| {});
        silent["response"]["result"] = json!({});
        check(silent, Err("failed: response.result.status was '', not 'Success'"));
        check(
            json!({}),
            Err(
                "failed: expected webhook response of apiextensions.k8s.io/v1, Kind=ConversionReview, got , Kind=",
            ),
        );
    }
}
