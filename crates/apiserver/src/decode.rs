//! From a request's body to an object of the version asked for: parsed, of the right kind, its unknown fields
//! dropped, told or refused, and defaulted.
//!
//! It does not look at what is stored. Invariant: what comes out of [`object`] has the target's `apiVersion` and
//! `kind` and is typed as the schema says, or for custom resources at least a JSON object with typed metadata.

use homeostat_model::Status;
use homeostat_model::status::Result;
use homeostat_schema::decode::{MAX_DEPTH, parse_json, parse_yaml};
use serde_json::Value;

use crate::negotiate::Input;
use crate::options::FieldValidation;
use crate::registry::{Table, Target};

/// Most warnings about fields that one request gets.
pub(crate) const MOST_WARNINGS: usize = 64;

/// A body as a value, with what strict validation says of its keys.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    /// The value; of a key that stands twice the last one.
    pub(crate) value: Value,
    /// `duplicate field "spec.x"`.
    pub(crate) duplicates: Vec<String>,
}

/// Parses a body without looking at what it is. The error is the reference's text.
pub(crate) fn parse(body: &[u8], input: Input) -> std::result::Result<Parsed, String> {
    match input {
        Input::Json => parse_json(body, MAX_DEPTH)
            .map(|(value, paths)| Parsed {
                value,
                duplicates: paths.iter().map(|p| format!("duplicate field \"{p}\"")).collect(),
            })
            .map_err(|e| format!("couldn't get version/kind; json parse error: {e}")),
        Input::Yaml => parse_yaml(body, MAX_DEPTH)
            .map(|(value, duplicates)| Parsed { value, duplicates })
            .map_err(|e| e.to_string()),
        Input::Protobuf => homeostat_protobuf::decode(body)
            .map(|value| Parsed { value, duplicates: Vec::new() })
            .map_err(|e| e.to_string()),
    }
}

/// What a body that has no version or kind looked like.
fn summary(body: &[u8]) -> String {
    const SHOWN: usize = 30;
    let cut = &body[..body.len().min(SHOWN)];
    let tail = if body.len() > SHOWN { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{tail}", String::from_utf8_lossy(cut)),
        Some(_) => format!("{}{tail}", cut.iter().map(|b| format!("{b:02x}")).collect::<String>()),
    }
}

/// Decodes the object of a create or an update.
pub(crate) fn object(
    table: &Table,
    target: &Target,
    body: &[u8],
    input: Input,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value> {
    let kind = &*target.resource.kind;
    let unrecognized = |why: &str| {
        Status::bad_request(format!(
            "the object provided is unrecognized (must be of type {kind}): {why} ({})",
            summary(body)
        ))
    };
    let mut parsed = match input {
        Input::Protobuf => protobuf(target, body),
        _ => parse(body, input),
    }
    .map_err(|e| unrecognized(&e))?;
    if !parsed.value.is_object() {
        let go = go_kind(&parsed.value);
        return Err(unrecognized(&format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {go} into Go value of type struct {{ \
             APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
        )));
    }
    identify(table, target, &mut parsed.value, body, &unrecognized)?;
    finish(target, parsed, validation, warnings)
}

/// A body in protobuf, of the target's version and kind where it names none. Custom resources have no such form.
fn protobuf(target: &Target, body: &[u8]) -> std::result::Result<Parsed, String> {
    if !target.built_in() {
        let go = "unstructured.Unstructured".to_owned();
        return Err(homeostat_protobuf::Error::NotMarshalable(go).to_string());
    }
    homeostat_protobuf::decode_as(body, &target.gv().to_string(), &target.resource.kind)
        .map(|value| Parsed { value, duplicates: Vec::new() })
        .map_err(|e| e.to_string())
}

fn go_kind(v: &Value) -> &'static str {
    match v {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Checks `apiVersion` and `kind`, and fills them in where a built-in type may lack them.
fn identify(
    table: &Table,
    target: &Target,
    v: &mut Value,
    body: &[u8],
    unrecognized: &dyn Fn(&str) -> Status,
) -> Result<()> {
    let wanted = target.gv().to_string();
    let kind = &*target.resource.kind;
    let text = |v: &Value, key: &str| match v.get(key) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(s)) => Ok(s.clone()),
        Some(other) => Err(unrecognized(&format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {} into Go struct field .{key} of type string",
            go_kind(other)
        ))),
    };
    let (given_version, given_kind) = (text(v, "apiVersion")?, text(v, "kind")?);
    if !target.built_in() {
        if given_kind.is_empty() {
            return Err(unrecognized(&format!(
                "Object 'Kind' is missing in '{}'",
                String::from_utf8_lossy(body)
            )));
        }
        if given_version != wanted {
            return Err(wrong_version(&given_version, &wanted));
        }
        return Ok(());
    }
    if given_version.is_empty() && given_kind.is_empty() {
        v["apiVersion"] = wanted.into();
        v["kind"] = kind.into();
        return Ok(());
    }
    let cannot = |why: String| {
        Status::bad_request(format!(
            "{given_kind} in version \"{}\" cannot be handled as a {kind}: {why}",
            given_version.rsplit('/').next().unwrap_or_default()
        ))
    };
    let (given_version, given_kind) = (
        if given_version.is_empty() { wanted.as_str() } else { &given_version },
        if given_kind.is_empty() { kind } else { &given_kind },
    );
    let known = table
        .all()
        .iter()
        .any(|r| &*r.kind == given_kind && r.versions.iter().any(|ver| ver.gv.to_string() == given_version));
    // A version that the reference's scheme still knows, though nobody serves it.
    let old = given_version == "apiextensions.k8s.io/v1beta1" && kind == "CustomResourceDefinition";
    if !known && !old {
        return Err(cannot(format!(
            "no kind \"{given_kind}\" is registered for version \"{given_version}\" in scheme \
             \"pkg/api/legacyscheme/scheme.go:30\""
        )));
    }
    if given_kind != kind {
        let group = &*target.gv().group;
        let group = if group.is_empty() { "core" } else { group.split('.').next().unwrap_or(group) };
        return Err(cannot(format!(
            "converting ({}.{given_kind}) to ({group}.{kind}): unknown conversion",
            given_version.rsplit('/').next().unwrap_or_default()
        )));
    }
    if given_version != wanted {
        return Err(wrong_version(given_version, &wanted));
    }
    v["apiVersion"] = wanted.into();
    v["kind"] = kind.into();
    Ok(())
}

fn wrong_version(given: &str, wanted: &str) -> Status {
    Status::bad_request(format!(
        "the API version in the data ({given}) does not match the expected API version ({wanted})"
    ))
}

/// The shared end of decoding: types, unknown fields, defaults.
pub(crate) fn finish(
    target: &Target,
    parsed: Parsed,
    validation: FieldValidation,
    warnings: &mut Vec<String>,
) -> Result<Value> {
    let Parsed { mut value, duplicates: mut strict } = parsed;
    let kind = &*target.resource.kind;
    let version = &target.gv().version;
    let cannot = |why: &str| {
        Status::bad_request(format!("{kind} in version \"{version}\" cannot be handled as a {kind}: {why}"))
    };
    let unknown = types(target, &mut value).map_err(|e| cannot(&e))?;
    strict.extend(unknown.iter().map(|p| format!("unknown field \"{p}\"")));
    match validation {
        FieldValidation::Strict if !strict.is_empty() => {
            return Err(cannot(&format!("strict decoding error: {}", strict.join(", "))));
        }
        FieldValidation::Warn => warnings.extend(strict.into_iter().take(MOST_WARNINGS)),
        _ => {}
    }
    defaults(target, &mut value);
    Ok(value)
}

/// Checks types, drops unknown fields and returns their paths.
pub(crate) fn types(target: &Target, value: &mut Value) -> std::result::Result<Vec<String>, String> {
    target.version().schema.decode(value).map_err(|e| e.to_string())
}

/// Fills in defaults.
pub(crate) fn defaults(target: &Target, value: &mut Value) {
    target.version().schema.default(value);
    target.resource.strategy.default(target.gv(), value);
}
