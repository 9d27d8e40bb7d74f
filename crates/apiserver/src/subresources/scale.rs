//! `scale`: an `autoscaling/v1` Scale read from and written to the paths that the definition names.
//!
//! Ownership of the replicas is carried between the Scale and the object. Invariant: a write through the Scale
//! changes the replicas and nothing else.

use std::sync::Arc;

use homeostat_model::gvk::GroupKind;
use homeostat_model::selector::Labels;
use homeostat_model::status::Result;
use homeostat_model::{Status, clock, field};
use homeostat_resources::{ScalePaths, Subresource};
use homeostat_schema::Schema;
use homeostat_schema::decode::{MAX_DEPTH, parse_yaml};
use homeostat_schema::fields::FieldSet;
use homeostat_schema::managed::{self, ManagerCx, OneVersion, scale};
use http::header;
use serde_json::{Value, json};

use crate::convert;
use crate::negotiate::Accepted;
use crate::object;
use crate::options::{WriteKind, WriteOptions};
use crate::read;
use crate::registry::Target;
use crate::respond::Answer;
use crate::server::{Call, Server};
use crate::verbs::patch::{Change, Form, form};
use crate::verbs::{body, input, writing};
use crate::write::Proposal;

const DEFINITION: &str = "io.k8s.api.autoscaling.v1.Scale";

fn schema() -> Result<Schema> {
    Schema::builtin(homeostat_resources::builtin::definitions().clone(), DEFINITION).map_err(Status::internal)
}

/// Serves a Scale.
pub(crate) async fn serve(
    server: &Arc<Server>,
    target: &Target,
    sub: &Subresource,
    call: &mut Call,
    _: Accepted,
) -> Result<Answer> {
    let paths = sub.scale.clone().unwrap_or_else(|| ScalePaths {
        spec: ".spec.replicas".to_owned(),
        status: ".status.replicas".to_owned(),
        selector: None,
    });
    let name = call.info.path_name.clone();
    if call.info.verb == "get" {
        let key = object::store_name(&call.info.namespace, &name);
        let record = server.config.store.get(&target.resource.collection, &key);
        let record = record.ok_or_else(|| Status::not_found(&target.resource.id, &name))?;
        convert::prefetch(server, target, &[&record], false).await?;
        return answer(target, &paths, &read::value(&record, target));
    }
    let content = call.header(header::CONTENT_TYPE).map(str::to_owned);
    let patch = call.info.verb == "patch";
    let form = if patch { Some(form(target, content.as_deref())?) } else { None };
    let input = if patch { None } else { Some(input(call)?) };
    let bytes = body(call).await?;
    let kind = match form {
        None => WriteKind::Update,
        Some(Form::Apply) => WriteKind::Apply,
        Some(_) => WriteKind::Patch,
    };
    let options = WriteOptions::parse(&call.query, kind)?;
    if patch {
        call.asks_by_patch(&bytes);
    }
    let source = match (form, input) {
        (None, Some(input)) => {
            let scale = put(&bytes, input, &name)?;
            call.asks(&scale);
            Source::Put(scale)
        }
        (Some(Form::Apply), _) => {
            let (v, _) = parse_yaml(&bytes, MAX_DEPTH)
                .map_err(|e| Status::bad_request(format!("error decoding YAML: {e}")))?;
            Source::Apply(v)
        }
        (Some(form), _) => Source::Patch(Change::parse(form, &bytes)?),
        (None, None) => return Err(Status::internal("a scale without a form")),
    };
    let mut w = writing(server, target, call, "scale", &options);
    let schema = schema()?;
    let now = clock::seconds(server.config.clock.now());
    let manager = w.manager.clone();
    let reset = FieldSet::of(&["status"]);
    let mut attempt = |live: &Value, _: &mut Vec<String>| {
        let cx = ManagerCx {
            schema: &schema,
            api_version: "autoscaling/v1",
            kind: "Scale",
            manager: &manager,
            subresource: "scale",
            now: &now,
            reset: &reset,
            versions: &OneVersion,
        };
        let before = show(target, &paths, live)?;
        let after = source.next(target, &schema, &before, &cx, options.force)?;
        if let Some(n) = after["spec"]["replicas"].as_i64().filter(|n| *n < 0 && target.built_in()) {
            let e = field::Error::invalid("spec.replicas", n, "must be greater than or equal to 0");
            return Err(Status::invalid(&GroupKind::new("autoscaling", "Scale"), &name, &[e]));
        }
        let mut new = live.clone();
        object::set_meta(&mut new, "resourceVersion", object::resource_version(&after));
        let replicas = after["spec"]["replicas"].clone();
        set(&mut new, &paths.spec, if replicas.is_null() { json!(0) } else { replicas });
        let api_version = target.gv().to_string();
        let entries = scale::to_object(
            live["metadata"].get("managedFields"),
            after["metadata"].get("managedFields"),
            &all_paths(target),
            &api_version,
        )
        .map_err(Status::internal)?;
        match entries {
            Some(v) => object::set_meta(&mut new, "managedFields", v),
            None => object::unset_meta(&mut new, "managedFields"),
        }
        Ok(Proposal { object: new, applied: true, uid: None })
    };
    let tries = if patch { 5 } else { usize::MAX };
    let outcome = w.update(&name, tries, &mut attempt).await?;
    outcome.prefetch(server, target).await?;
    answer(target, &paths, &outcome.value(target))
}

/// Clients see no managers of a Scale.
fn answer(target: &Target, paths: &ScalePaths, value: &Value) -> Result<Answer> {
    let mut scale = show(target, paths, value)?;
    object::unset_meta(&mut scale, "managedFields");
    Ok(Answer::value(scale))
}

/// Where the new Scale comes from.
enum Source {
    Put(Value),
    Patch(Change),
    Apply(Value),
}

impl Source {
    /// The Scale that the request asks for, its managers brought up to date.
    fn next(
        &self,
        target: &Target,
        schema: &Schema,
        before: &Value,
        cx: &ManagerCx<'_>,
        force: bool,
    ) -> Result<Value> {
        let mut after = match self {
            Self::Put(v) => {
                let mut v = v.clone();
                if v["metadata"].get("managedFields").is_none()
                    && let Some(m) = before["metadata"].get("managedFields")
                {
                    object::set_meta(&mut v, "managedFields", m.clone());
                }
                v
            }
            Self::Patch(change) => {
                let mut v = change.apply(target, before)?;
                let refuse = |why: String| {
                    let e = field::Error::invalid("patch", Value::Null, why);
                    Status::invalid(&GroupKind::new("", ""), "", &[e])
                };
                schema.decode(&mut v).map_err(|e| refuse(e.to_string()))?;
                v
            }
            Self::Apply(v) => {
                let mut v = v.clone();
                object::unset_meta(&mut v, "resourceVersion");
                let mut out = managed::apply(before, &v, cx, force)?;
                let demanded = self.demanded();
                if !demanded.is_empty() {
                    object::set_meta(&mut out, "resourceVersion", demanded);
                }
                return Ok(out);
            }
        };
        // The status of a Scale is read only.
        after["status"] = before["status"].clone();
        managed::update(before, &mut after, cx);
        Ok(after)
    }

    fn demanded(&self) -> &str {
        match self {
            Self::Apply(v) => object::resource_version(v),
            _ => "",
        }
    }
}

fn put(bytes: &[u8], input: crate::negotiate::Input, name: &str) -> Result<Value> {
    let mut v = crate::decode::parse(bytes, input).map_err(Status::bad_request)?.value;
    if !v.is_object() || v["kind"].as_str().is_some_and(|k| k != "Scale") {
        return Err(Status::bad_request(
            "no kind is registered for the type v1.Scale in scheme \"pkg/apiserver/customresource_handler.go:781\"",
        ));
    }
    schema()?.decode(&mut v).map_err(|e| {
        Status::bad_request(format!("Scale in version \"v1\" cannot be handled as a Scale: {e}"))
    })?;
    match object::name(&v) {
        "" => object::set_meta(&mut v, "name", name),
        given if given != name => {
            return Err(Status::bad_request(format!(
                "the name of the object ({given}) does not match the name on the URL ({name})"
            )));
        }
        _ => {}
    }
    Ok(v)
}

/// The paths of the replicas in every version of a resource.
fn all_paths(target: &Target) -> scale::Paths {
    let of = |v: &homeostat_resources::Version| {
        let sub = v.subresource("scale")?;
        let dotted = sub.scale.as_ref().map_or(".spec.replicas", |p| p.spec.as_str());
        Some(scale::path(dotted))
    };
    target.resource.versions.iter().map(|v| (v.gv.to_string(), of(v))).collect()
}

fn get<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.split('.').filter(|p| !p.is_empty()).try_fold(object, |v, key| v.get(key)).filter(|v| !v.is_null())
}

fn set(object: &mut Value, path: &str, value: Value) {
    let mut at = object;
    for key in path.split('.').filter(|p| !p.is_empty()) {
        if !at.is_object() {
            *at = json!({});
        }
        at = &mut at[key];
    }
    *at = value;
}

/// The Scale of an object.
fn show(target: &Target, paths: &ScalePaths, object: &Value) -> Result<Value> {
    let replicas = get(object, &paths.spec).and_then(Value::as_i64);
    let replicas = match replicas {
        Some(n) => n,
        None if target.built_in() => 0,
        None => {
            return Err(Status::internal(format!(
                "the spec replicas field {} does not exist",
                field::quote(&paths.spec)
            )));
        }
    };
    let mut spec = json!({});
    if replicas != 0 {
        spec["replicas"] = replicas.into();
    }
    let mut status = json!({"replicas": get(object, &paths.status).and_then(Value::as_i64).unwrap_or(0)});
    let selector = match (&paths.selector, target.built_in()) {
        (Some(path), false) => get(object, path).and_then(Value::as_str).unwrap_or_default().to_owned(),
        (_, true) => selector(&object["spec"]["selector"]),
        (None, false) => String::new(),
    };
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    let mut metadata = json!({});
    for key in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(v) = object["metadata"].get(key) {
            metadata[key] = v.clone();
        }
    }
    let entries = scale::to_scale(object["metadata"].get("managedFields"), &all_paths(target))
        .map_err(Status::internal)?;
    if let Some(v) = entries {
        metadata["managedFields"] = v;
    }
    Ok(
        json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status}),
    )
}

fn selector(v: &Value) -> String {
    let structured = v.get("matchLabels").is_some() || v.get("matchExpressions").is_some();
    if structured { Labels::from_valid(v).to_string() } else { Labels::from_map(v).to_string() }
}
