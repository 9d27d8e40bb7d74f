//! The little that a server adds to the pure functions, so that recorded requests can be replayed: which schema a
//! path has, the live objects, subresources.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use homeostat_schema::fields::FieldSet;
use homeostat_schema::managed::{self, ManagerCx, Versions};
use homeostat_schema::{Definitions, Schema, patch};
use serde_json::{Map, Value, json};

use crate::compare::{NOW, content, entries, forget, missing, same, same_status, with_times, without_empty};

pub(crate) enum Outcome {
    /// Not a step that the pure functions have a part in.
    Skipped,
    /// The result is the recorded one.
    Compared,
    /// The refusal is the recorded one.
    Refused,
    Differs(String),
}

/// The kinds of built-in objects, from the project's own definitions.
static BUILT_IN: LazyLock<Arc<Definitions>> = LazyLock::new(|| {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../resources/data/definitions");
    let mut all = Map::new();
    for file in std::fs::read_dir(folder).unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let part: Value = serde_json::from_str(&text).unwrap();
        all.extend(part.as_object().unwrap().clone());
    }
    Definitions::parse(Value::Object(all).to_string().as_bytes()).unwrap()
});

/// `apiVersion kind` -> definition.
static KINDS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../resources/data/types.json");
    let types: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let text = |t: &Value, key: &str| t[key].as_str().unwrap_or_default().to_owned();
    let mut out: BTreeMap<String, String> = types["types"]
        .as_array()
        .unwrap()
        .iter()
        .map(|t| {
            let group = text(t, "group");
            let slash = if group.is_empty() { "" } else { "/" };
            (format!("{group}{slash}{} {}", text(t, "version"), text(t, "kind")), text(t, "definition"))
        })
        .collect();
    out.insert("autoscaling/v1 Scale".to_owned(), "io.k8s.api.autoscaling.v1.Scale".to_owned());
    out
});

pub(crate) struct World {
    /// `apiVersion kind` -> schema.
    schemas: BTreeMap<String, Schema>,
    /// Versions of custom resources that have a status subresource, and the paths of their replicas.
    status: BTreeMap<String, bool>,
    replicas: managed::scale::Paths,
    /// By path without the version.
    objects: BTreeMap<String, Value>,
    /// Objects that were written through their scale, and are compared when they are next read.
    scaled: BTreeSet<String>,
}

struct Others<'a>(&'a World, &'a str);

impl Versions for Others<'_> {
    fn schema(&self, api_version: &str) -> Option<Schema> {
        self.0.schemas.get(&format!("{api_version} {}", self.1)).cloned()
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let mut object = object.clone();
        object["apiVersion"] = api_version.into();
        if let Some(schema) = self.schema(api_version) {
            schema.prune(&mut object);
        }
        Ok(object)
    }
}

/// Texts that must come from the functions under test.
const OURS: [&str; 8] = [
    "Apply failed",
    "failed to create typed",
    "metadata.managedFields must be nil",
    "map: map",
    "unknown patch type",
    "the server rejected our request due to an error",
    "error decoding patch: json: cannot",
    "invalid object type",
];

impl World {
    pub(crate) fn new() -> Self {
        Self {
            schemas: BTreeMap::new(),
            status: BTreeMap::new(),
            replicas: BTreeMap::new(),
            objects: BTreeMap::new(),
            scaled: BTreeSet::new(),
        }
    }

    pub(crate) fn step(&mut self, step: &Value) -> Outcome {
        let path = step["path"].as_str().unwrap_or_default();
        let (path, query) = path.split_once('?').unwrap_or((path, ""));
        let expect = &step["expect"];
        let body = with_times(expect["body"].clone());
        let ok = expect["status"].as_u64().is_some_and(|s| s < 300);
        if path.contains("/customresourcedefinitions") {
            if ok && body["kind"] == "CustomResourceDefinition" {
                self.define(&body);
            }
            return Outcome::Skipped;
        }
        let (path, subresource) = split(path);
        let query: BTreeMap<&str, &str> = query.split('&').filter_map(|p| p.split_once('=')).collect();
        let dry = query.contains_key("dryRun") || step["send"].get("dryRun").is_some();
        let outcome = match step["method"].as_str() {
            Some("GET") if ok && subresource.is_empty() && body.get("metadata").is_some() => {
                let mine = self.objects.insert(unversioned(path), body.clone());
                if !self.scaled.remove(&unversioned(path)) {
                    return Outcome::Skipped;
                }
                let (ours, theirs) = (entries(&mine.unwrap_or_default()), entries(&body));
                return if ours == theirs {
                    Outcome::Compared
                } else {
                    Outcome::Differs(format!("managed by {ours:#?}, should be {theirs:#?}"))
                };
            }
            Some("DELETE") => {
                if ok && body["kind"] == "Status" && subresource.is_empty() && !dry {
                    self.objects.remove(&unversioned(path));
                }
                return Outcome::Skipped;
            }
            Some("PATCH" | "POST" | "PUT") => self.write(step, path, subresource, &query, &body, ok),
            _ => return Outcome::Skipped,
        };
        if let (Ok(Some(made)), "scale", true) = (&outcome.1, subresource, ok && !dry) {
            self.objects.insert(unversioned(path), made.clone());
            self.scaled.insert(unversioned(path));
        }
        if ok && !dry && subresource != "scale" && body.get("metadata").is_some() {
            let mut body = body;
            let key = object_path(step, path, &body);
            // What the recording leaves out is filled from what we made of it.
            if let Ok(Some(made)) = &outcome.1
                && step["ignore"].is_array()
            {
                let fields = made.pointer("/metadata/managedFields").cloned();
                if body.pointer("/metadata/managedFields").is_none()
                    && let (Some(fields), Some(m)) = (fields, body.get_mut("metadata"))
                {
                    m["managedFields"] = fields;
                }
            }
            self.objects.insert(unversioned(&key), body);
        }
        outcome.0
    }

    #[allow(clippy::type_complexity)]
    fn write(
        &self,
        step: &Value,
        path: &str,
        subresource: &str,
        query: &BTreeMap<&str, &str>,
        body: &Value,
        ok: bool,
    ) -> (Outcome, Result<Option<Value>, ()>) {
        let skipped = || (Outcome::Skipped, Ok(None));
        let apply = step["headers"]["Content-Type"] == "application/apply-patch+yaml";
        let message = body["message"].as_str().unwrap_or_default();
        if !ok && !OURS.iter().any(|text| message.starts_with(text)) {
            return skipped();
        }
        let sent = &step["send"];
        if !sent.is_object() && !sent.is_array() {
            return skipped();
        }
        let live = self.objects.get(&unversioned(path)).cloned().unwrap_or(Value::Null);
        let kind = match (&live, ok) {
            (Value::Object(_), _) => (live["apiVersion"].clone(), live["kind"].clone()),
            (_, true) => (body["apiVersion"].clone(), body["kind"].clone()),
            (_, false) => (sent["apiVersion"].clone(), sent["kind"].clone()),
        };
        let (Some(mut version), Some(kind)) = (kind.0.as_str(), kind.1.as_str()) else { return skipped() };
        let live = match request_version(path, version) {
            Some(other) if other != version => {
                version = other;
                if live.is_object() {
                    Others(self, kind).convert(&live, other).unwrap_or_default()
                } else {
                    live.clone()
                }
            }
            _ => live.clone(),
        };
        let Some(schema) = self.schema(version, kind) else { return skipped() };
        let none = FieldSet::new();
        let status = FieldSet::of(&["status"]);
        let rest = FieldSet::of(&["spec", "metadata"]);
        let custom = !schema.is_builtin();
        let has_status = self.status.get(&format!("{version} {kind}")).copied().unwrap_or(!custom);
        let reset = match subresource {
            "" if has_status => &status,
            "status" => &rest,
            _ => &none,
        };
        let agent = step["headers"]["User-Agent"].as_str().unwrap_or("fidelity/1.0");
        let manager = managed::name(query.get("fieldManager").copied().unwrap_or_default(), agent);
        if apply && !query.contains_key("fieldManager") {
            return skipped();
        }
        let others = Others(self, kind);
        let cx = ManagerCx {
            schema: &schema,
            api_version: version,
            kind,
            manager: &manager,
            subresource,
            now: NOW,
            reset,
            versions: &others,
        };
        let force = query.get("force").is_some_and(|f| !matches!(*f, "false" | "0"));
        let result = if subresource == "scale" {
            self.scale(step, &live, &cx, apply, force)
        } else if apply {
            managed::apply(&live, sent, &cx, force).map_err(|e| e.status())
        } else {
            patched(step, &live, sent, &schema).map(|mut new| {
                let _ = schema.decode(&mut new);
                if custom {
                    schema.default(&mut new);
                } else {
                    without_empty(&mut new, schema.root());
                }
                managed::update(&live, &mut new, &cx);
                new
            })
        };
        let mut new = match result {
            Ok(_) if !ok => return (Outcome::Differs(format!("applied, should say: {message}")), Err(())),
            Ok(new) => new,
            Err(status) if ok => return (Outcome::Differs(format!("refused: {status}")), Err(())),
            Err(status) if same_status(&status.to_value(), body) => return (Outcome::Refused, Err(())),
            Err(status) => {
                return (Outcome::Differs(format!("says {}, should say {body}", status.to_value())), Err(()));
            }
        };
        if subresource == "scale" {
            // The answer is a Scale; the next GET shows the object.
            return (Outcome::Skipped, Ok(Some(new)));
        }
        if custom {
            let _ = schema.decode(&mut new);
            schema.default(&mut new);
        }
        restore(&mut new, &live, subresource, has_status);
        managed::keep_times(&live, &mut new);
        let outcome = judge(step, &live, &new, body, custom, apply);
        (outcome, Ok(Some(new)))
    }

    fn scale(
        &self,
        step: &Value,
        live: &Value,
        cx: &ManagerCx<'_>,
        apply: bool,
        force: bool,
    ) -> Result<Value, homeostat_model::Status> {
        let mut paths = self.replicas.clone();
        paths.entry(cx.api_version.to_owned()).or_insert_with(|| Some(managed::scale::path("spec.replicas")));
        let before = live.pointer("/metadata/managedFields");
        let entries = managed::scale::to_scale(before, &paths).unwrap();
        let mut scale = json!({
            "apiVersion": "autoscaling/v1", "kind": "Scale",
            "metadata": {"name": live["metadata"]["name"], "namespace": live["metadata"]["namespace"],
                "uid": live["metadata"]["uid"]},
            "spec": {"replicas": live["spec"]["replicas"]},
        });
        if let Some(entries) = entries {
            scale["metadata"]["managedFields"] = entries;
        }
        let schema = self.schema("autoscaling/v1", "Scale").unwrap();
        let none = FieldSet::new();
        let cx =
            ManagerCx { schema: &schema, api_version: "autoscaling/v1", kind: "Scale", reset: &none, ..*cx };
        let new = if apply {
            managed::apply(&scale, &step["send"], &cx, force).map_err(|e| e.status())?
        } else {
            let mut new = patched(step, &scale, &step["send"], &schema)?;
            managed::update(&scale, &mut new, &cx);
            new
        };
        let version = live["apiVersion"].as_str().unwrap_or_default();
        let after =
            managed::scale::to_object(before, new.pointer("/metadata/managedFields"), &paths, version);
        let mut object = live.clone();
        object["spec"]["replicas"] = new["spec"]["replicas"].clone();
        if let Some(after) = after.unwrap() {
            object["metadata"]["managedFields"] = after;
        }
        Ok(object)
    }

    fn schema(&self, version: &str, kind: &str) -> Option<Schema> {
        let key = format!("{version} {kind}");
        if let Some(schema) = self.schemas.get(&key) {
            return Some(schema.clone());
        }
        Schema::builtin(BUILT_IN.clone(), KINDS.get(&key)?).ok()
    }

    fn define(&mut self, crd: &Value) {
        let kind = crd["spec"]["names"]["kind"].as_str().unwrap_or_default();
        let group = crd["spec"]["group"].as_str().unwrap_or_default();
        for version in crd["spec"]["versions"].as_array().into_iter().flatten() {
            let name = format!("{group}/{}", version["name"].as_str().unwrap_or_default());
            let key = format!("{name} {kind}");
            if let Ok(schema) = Schema::compile(&version["schema"]["openAPIV3Schema"]) {
                self.schemas.insert(key.clone(), schema);
            }
            let subresources = &version["subresources"];
            self.status.insert(key, subresources.get("status").is_some());
            let path = subresources.pointer("/scale/specReplicasPath").and_then(Value::as_str);
            self.replicas.insert(name, path.map(managed::scale::path));
        }
    }
}

/// The object that a patch or a body makes.
fn patched(
    step: &Value,
    live: &Value,
    sent: &Value,
    schema: &Schema,
) -> Result<Value, homeostat_model::Status> {
    match step["headers"]["Content-Type"].as_str() {
        Some("application/json-patch+json") => patch::json(live, sent).map_err(|e| e.status()),
        Some("application/merge-patch+json") => patch::merge(live, sent).map_err(|e| e.status()),
        Some("application/strategic-merge-patch+json") => {
            patch::strategic(live, sent, schema.root()).map_err(|e| e.status())
        }
        _ => Ok(sent.clone()),
    }
}

/// What a subresource keeps of the live object.
fn restore(new: &mut Value, live: &Value, subresource: &str, has_status: bool) {
    let copy = |from: &Value, to: &mut Value, field: &str| match from.get(field) {
        Some(v) => to[field] = v.clone(),
        None => {
            to.as_object_mut().map(|m| m.remove(field));
        }
    };
    match subresource {
        "status" => {
            let mut kept = live.clone();
            copy(new, &mut kept, "status");
            match new.pointer("/metadata/managedFields") {
                Some(fields) => kept["metadata"]["managedFields"] = fields.clone(),
                None => forget(&mut kept, "metadata.managedFields"),
            }
            *new = kept;
        }
        _ if has_status => copy(live, new, "status"),
        _ => {}
    }
    for field in ["uid", "creationTimestamp", "generation", "resourceVersion", "namespace"] {
        if let Some(v) = live.pointer(&format!("/metadata/{field}")) {
            new["metadata"][field] = v.clone();
        }
    }
}

fn judge(step: &Value, live: &Value, new: &Value, body: &Value, custom: bool, apply: bool) -> Outcome {
    let mut new_content = content(new);
    let mut body_content = content(body);
    let ignored: Vec<&str> =
        step["ignore"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for path in &ignored {
        forget(&mut new_content, path);
        forget(&mut body_content, path);
    }
    if custom && !same(&new_content, &body_content) {
        return Outcome::Differs(format!("is {new_content}, should be {body_content}"));
    }
    if !custom {
        // stringData goes into data.
        forget(&mut new_content, "stringData");
        if let Some(why) = missing(&new_content, &body_content, "") {
            return Outcome::Differs(why);
        }
    }
    let skips = |p: &&str| matches!(*p, "metadata" | "metadata.managedFields");
    if ignored.iter().any(skips) {
        return Outcome::Compared;
    }
    let (ours, theirs) = (entries(new), entries(body));
    if custom || apply {
        if ours != theirs {
            return Outcome::Differs(format!(
                "managed by\n  {}\nshould be\n  {}",
                ours.join("\n  "),
                theirs.join("\n  ")
            ));
        }
    } else if ours.len() != theirs.len() {
        return Outcome::Differs(format!("managed by {ours:?}, should be {theirs:?}"));
    } else {
        // Plain writes of built-in objects also own defaults, which are not filled in here.
        for (a, b) in ours.iter().zip(&theirs) {
            let (a, b): (Value, Value) = (serde_json::from_str(a).unwrap(), serde_json::from_str(b).unwrap());
            if let Some(why) = missing(&a, &b, "managedFields") {
                return Outcome::Differs(format!("{why} of {a}, should be {b}"));
            }
        }
    }
    let (before, after) =
        (live.pointer("/metadata/resourceVersion"), body.pointer("/metadata/resourceVersion"));
    let unchanged = before.is_some() && before == after && custom;
    let sorted = |o: &Value| {
        let list = o.pointer("/metadata/managedFields").and_then(Value::as_array);
        let mut lines: Vec<String> = list.into_iter().flatten().map(ToString::to_string).collect();
        lines.sort();
        lines
    };
    if unchanged && content(live) == content(new) && sorted(live) != sorted(new) {
        return Outcome::Differs(format!("changes {live} to {new}, should change nothing"));
    }
    Outcome::Compared
}

/// The object's path and the subresource.
fn split(path: &str) -> (&str, &str) {
    for subresource in ["status", "scale"] {
        if let Some(rest) = path.strip_suffix(subresource).and_then(|p| p.strip_suffix('/')) {
            return (rest, subresource);
        }
    }
    (path, "")
}

fn object_path(step: &Value, path: &str, body: &Value) -> String {
    match step["method"].as_str() {
        Some("POST") => format!("{path}/{}", body["metadata"]["name"].as_str().unwrap_or_default()),
        _ => path.to_owned(),
    }
}

/// The path without the version of a group.
fn unversioned(path: &str) -> String {
    let mut parts: Vec<&str> = path.split('/').collect();
    if parts.get(1) == Some(&"apis") && parts.len() > 3 {
        parts.remove(3);
    }
    parts.join("/")
}

/// The version in a path, if the object's group is in it.
fn request_version<'a>(path: &'a str, version: &str) -> Option<&'a str> {
    let group = version.split_once('/')?.0;
    let rest = path.strip_prefix("/apis/")?;
    let end = rest.match_indices('/').nth(1).map_or(rest.len(), |(i, _)| i);
    rest[..end].starts_with(group).then_some(&rest[..end])
}
