//! `patch`: JSON, merge and strategic merge patches, and server-side apply.
//!
//! A patch is applied to the live object in the request's version and the result goes the way of an update; when
//! another write came between, all of it is done again. Invariant: a body is parsed once.

use std::sync::Arc;

use homeostat_model::Status;
use homeostat_model::field::{self, quote};
use homeostat_model::gvk::GroupKind;
use homeostat_model::status::Result;
use homeostat_schema::decode::{MAX_DEPTH, parse_json, parse_yaml, yaml_duplicates};
use homeostat_schema::{managed, patch};
use http::{StatusCode, header};
use serde_json::Value;

use super::{answer, body, writing};
use crate::decode;
use crate::negotiate::{self, Accepted};
use crate::object;
use crate::options::{FieldValidation, WriteKind, WriteOptions};
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};
use crate::write::{Outcome, Proposal, Writing, check_name};

/// Attempts against others who write the same object, as the reference has it.
const ATTEMPTS: usize = 5;

/// How a patch is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    Json,
    Merge,
    Strategic,
    Apply,
}

const JSON: &str = "application/json-patch+json";
const MERGE: &str = "application/merge-patch+json";
const STRATEGIC: &str = "application/strategic-merge-patch+json";
const APPLY: &str = "application/apply-patch+yaml";

/// The form of a patch, which its content type names.
pub(crate) fn form(target: &Target, content_type: Option<&str>) -> Result<Form> {
    let built_in = target.built_in();
    match negotiate::media_type(content_type).as_str() {
        JSON => Ok(Form::Json),
        MERGE => Ok(Form::Merge),
        STRATEGIC if built_in => Ok(Form::Strategic),
        APPLY => Ok(Form::Apply),
        _ if built_in => Err(negotiate::unsupported(&[JSON, MERGE, STRATEGIC, APPLY])),
        _ => Err(negotiate::unsupported(&[JSON, MERGE, APPLY])),
    }
}

/// Answers a patch; `subresource` is empty or `status` (or another that holds the whole object).
pub(crate) async fn patch(
    server: &Arc<Server>,
    target: &Target,
    call: &mut Call,
    accepted: Accepted,
    subresource: &str,
) -> Result<Answer> {
    let form = form(target, call.header(header::CONTENT_TYPE))?;
    let bytes = body(call).await?;
    call.asks_by_patch(&bytes);
    let kind = if form == Form::Apply { WriteKind::Apply } else { WriteKind::Patch };
    let options = WriteOptions::parse(&call.query, kind)?;
    let mut w = writing(server, target, call, subresource, &options);
    let name = &call.info.path_name;
    let (outcome, code) = if form == Form::Apply {
        apply(&mut w, name, &bytes, &options).await?
    } else {
        let change = Change::parse(form, &bytes)?;
        let validation = options.field_validation;
        let mut attempt = |live: &Value, warnings: &mut Vec<String>| {
            let patched = change.apply(target, live)?;
            // Made only where it is refused, of what it was before it was decoded.
            let shown = || change.apply(target, live).map_or_else(|_| String::new(), |p| change.shown(&p));
            let patched = settle(target, patched, &change.duplicates, validation, &shown, warnings)?;
            check_name(&patched, name)?;
            Ok(Proposal { object: patched, applied: false, uid: None })
        };
        (w.update(name, ATTEMPTS, &mut attempt).await?, StatusCode::OK)
    };
    answer(server, target, call, accepted, code, &outcome).await
}

/// A parsed patch.
pub(crate) struct Change {
    form: Form,
    value: Value,
    /// What strict validation says of the patch itself.
    pub(crate) duplicates: Vec<String>,
}

impl Change {
    pub(crate) fn parse(form: Form, bytes: &[u8]) -> Result<Self> {
        let (value, paths) = parse_json(bytes, MAX_DEPTH)
            .map_err(|e| Status::bad_request(format!("error decoding patch: {e}")))?;
        let duplicates = match form {
            Form::Json => {
                let mut texts: Vec<String> =
                    paths.iter().map(|p| format!("json patch duplicate field {}", quote(p))).collect();
                texts.extend(patch::unknown_fields(&value));
                texts
            }
            _ => paths.iter().map(|p| format!("duplicate field {}", quote(p))).collect(),
        };
        Ok(Self { form, value, duplicates })
    }

    /// What an error shows of a patch whose result does not decode: a strategic patch as Go prints it, else the result.
    fn shown(&self, patched: &Value) -> String {
        match self.form {
            Form::Strategic => go_map(&self.value),
            _ => patched.to_string(),
        }
    }

    /// The live object with the patch applied.
    pub(crate) fn apply(&self, target: &Target, live: &Value) -> Result<Value> {
        Ok(match self.form {
            Form::Json => patch::json(live, &self.value)?,
            Form::Merge => patch::merge(live, &self.value)?,
            Form::Strategic | Form::Apply => {
                patch::strategic(live, &self.value, target.version().schema.root())?
            }
        })
    }
}

/// Brings a patched object into shape: types, unknown fields, defaults.
pub(crate) fn settle(
    target: &Target,
    mut object: Value,
    duplicates: &[String],
    validation: FieldValidation,
    shown: &dyn Fn() -> String,
    warnings: &mut Vec<String>,
) -> Result<Value> {
    // The reference names neither kind nor object here.
    let refuse = |why: String| {
        let e = field::Error::invalid("patch", shown(), conversion(&why));
        Status::invalid(&GroupKind::new("", ""), "", &[e])
    };
    if target.built_in() && object.is_object() {
        object["apiVersion"] = target.gv().to_string().into();
        object["kind"] = (*target.resource.kind).into();
    }
    let mut unknown = Vec::new();
    if !target.built_in() && object["apiVersion"].as_str() != Some(&target.gv().to_string()) {
        // The schema of another version: there is none by which to know its fields. Validation refuses it.
        if let Some(map) = object.as_object_mut() {
            unknown.extend(
                map.keys().filter(|k| !matches!(k.as_str(), "apiVersion" | "kind" | "metadata")).cloned(),
            );
            map.retain(|k, _| matches!(k.as_str(), "apiVersion" | "kind" | "metadata"));
        }
    } else {
        unknown = decode::types(target, &mut object).map_err(&refuse)?;
    }
    let mut strict = duplicates.to_vec();
    strict.extend(unknown.iter().map(|p| format!("unknown field \"{p}\"")));
    match validation {
        FieldValidation::Strict if !strict.is_empty() => {
            return Err(refuse(format!("strict decoding error: {}", strict.join(", "))));
        }
        FieldValidation::Warn => warnings.extend(strict.into_iter().take(decode::MOST_WARNINGS)),
        _ => {}
    }
    decode::defaults(target, &mut object);
    Ok(object)
}

/// Server-side apply; creates what is absent.
async fn apply(
    w: &mut Writing<'_>,
    name: &str,
    bytes: &[u8],
    options: &WriteOptions,
) -> Result<(Outcome, StatusCode)> {
    let (mut config, duplicates) =
        parse_yaml(bytes, MAX_DEPTH).map_err(|e| Status::bad_request(format!("error decoding YAML: {e}")))?;
    if !duplicates.is_empty() {
        let text = yaml_duplicates(&duplicates).to_string();
        match options.field_validation {
            FieldValidation::Strict => {
                return Err(Status::bad_request(format!("error strict decoding YAML: {text}")));
            }
            FieldValidation::Warn => w.warnings.extend(duplicates),
            FieldValidation::Ignore => {}
        }
    }
    let (target, validation, force) = (w.target, options.field_validation, options.force);
    // What is applied says who it is; a resourceVersion in it is a precondition of the update.
    let demanded = object::resource_version(&config).to_owned();
    object::unset_meta(&mut config, "resourceVersion");
    if w.live(name).is_none() && w.subresource.is_empty() {
        let mut warnings = Vec::new();
        let applied = w.managing(|cx| managed::apply(&Value::Null, &config, cx, force))?;
        check_name(&config, name)?;
        let applied = settle(target, applied, &[], validation, &String::new, &mut warnings)?;
        w.warnings.extend(warnings);
        match w.create(applied, true).await {
            Err(s) if s.code == 409 && s.reason == "AlreadyExists" => {}
            other => return other.map(|o| (o, StatusCode::CREATED)),
        }
    }
    // The attempt may not borrow the writer that runs it.
    let helper = w.twin();
    let mut attempt = |live: &Value, warnings: &mut Vec<String>| {
        let mut base = live.clone();
        if !demanded.is_empty() && demanded != object::resource_version(live) {
            return Err(Status::stale(&target.resource.id, name));
        }
        object::set_meta(&mut base, "resourceVersion", object::resource_version(live));
        let applied = helper.managing(|cx| managed::apply(&base, &config, cx, force))?;
        check_name(&config, name)?;
        let applied = settle(target, applied, &[], validation, &String::new, warnings)?;
        Ok(Proposal { object: applied, applied: true, uid: None })
    };
    w.update(name, ATTEMPTS, &mut attempt).await.map(|o| (o, StatusCode::OK))
}

/// Go's `%v` of a decoded JSON value.
fn go_map(v: &Value) -> String {
    match v {
        Value::Null => "<nil>".to_owned(),
        Value::String(s) => s.clone(),
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(go_map).collect();
            format!("[{}]", items.join(" "))
        }
        Value::Object(map) => {
            let items: Vec<String> = map.iter().map(|(k, v)| format!("{k}:{}", go_map(v))).collect();
            format!("map[{}]", items.join(" "))
        }
        other => other.to_string(),
    }
}

/// A decoder's complaint in the words of the converter that patches go through.
fn conversion(why: &str) -> String {
    let Some(rest) = why.strip_prefix("json: cannot unmarshal ") else { return why.to_owned() };
    let (from, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let to = rest.rsplit_once("of type ").map_or("", |(_, t)| t);
    match (from, to) {
        ("object", t) if t.starts_with("[]") => "cannot restore slice from map".to_owned(),
        ("array", t) if t.starts_with("map[") => "cannot restore map from slice".to_owned(),
        ("number", t) => format!("cannot convert int64 to {t}"),
        ("bool" | "string", t) if !t.is_empty() => format!("cannot convert {from} to {t}"),
        _ => why.to_owned(),
    }
}
