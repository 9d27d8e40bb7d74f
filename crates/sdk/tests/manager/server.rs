//! A stand-in for an API server: objects in memory, resource versions, watches from any version, and faults on order.
//!
//! It validates and defaults nothing, and its apply is a merge without field ownership. It serves the tests of the
//! SDK's own mechanics; what the server makes of a write is tested against a real one.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use futures::StreamExt;
use http::{Method, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

/// A request as the tests look at it: `PATCH /api/v1/namespaces/a/pods/b`, and its body.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub(crate) line: String,
    pub(crate) query: String,
    pub(crate) body: Value,
}

struct Watcher {
    collection: String,
    to: UnboundedSender<Bytes>,
}

#[derive(Default)]
struct World {
    version: u64,
    uids: u64,
    objects: BTreeMap<String, Value>,
    log: Vec<(u64, String, Value)>,
    watchers: Vec<Watcher>,
    calls: Vec<Call>,
    unserved: BTreeSet<String>,
    without_status: BTreeSet<String>,
    faults: Vec<(String, u16, usize)>,
    /// Watch events wait here while the watches are held up.
    held: Option<Vec<(String, Bytes)>>,
}

/// The server. Clones are the same.
#[derive(Clone, Default)]
pub(crate) struct Server(Arc<Mutex<World>>);

type Answer = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A path taken apart: `/apis/apps/v1/namespaces/a/deployments/b/status`.
struct Target {
    /// Without the namespace: `/apis/apps/v1/deployments`.
    collection: String,
    namespace: Option<String>,
    name: Option<String>,
    status: bool,
}

fn target(path: &str) -> Target {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    let (base, rest) = parts.split_at(if parts[0] == "api" { 2 } else { 3 });
    let (namespace, rest) = match rest {
        ["namespaces", ns, rest @ ..] if !rest.is_empty() => (Some((*ns).to_owned()), rest),
        rest => (None, rest),
    };
    Target {
        collection: format!("/{}/{}", base.join("/"), rest[0]),
        namespace,
        name: rest.get(1).map(|n| (*n).to_owned()),
        status: rest.get(2) == Some(&"status"),
    }
}

impl Target {
    fn path(&self, name: &str) -> String {
        format!("{} {} {name}", self.collection, self.namespace.as_deref().unwrap_or(""))
    }
}

fn failure(code: u16, reason: &str, message: &str) -> Answer {
    let status = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code,
        "reason": reason, "message": message});
    answer(code, &status)
}

fn answer(code: u16, body: &Value) -> Answer {
    let body = Full::new(Bytes::from(body.to_string())).boxed_unsync();
    let mut answer = Response::new(body);
    *answer.status_mut() = StatusCode::from_u16(code).unwrap();
    answer
}

fn merge(into: &mut Value, patch: &Value) {
    match (into, patch) {
        (Value::Object(into), Value::Object(patch)) => {
            for (k, v) in patch {
                if v.is_null() {
                    into.remove(k);
                } else {
                    merge(into.entry(k.clone()).or_insert(Value::Null), v);
                }
            }
        }
        (into, Value::Object(_)) => {
            *into = json!({});
            merge(into, patch);
        }
        (into, patch) => *into = patch.clone(),
    }
}

impl Server {
    pub(crate) fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let server = server.clone();
            async move {
                let (parts, body) = request.into_parts();
                let bytes = body.collect().await.unwrap().to_bytes();
                let body = serde_json::from_slice(&bytes).unwrap_or_default();
                let query = parts.uri.query().unwrap_or_default().to_owned();
                Ok::<_, Infallible>(server.serve(&parts.method, parts.uri.path(), &query, body))
            }
        });
        Client::new(service, "default")
    }

    /// A client that gets no answer, and none of whose requests arrives, while `cut` is set.
    pub(crate) fn client_with(&self, cut: &Arc<AtomicBool>) -> Client {
        let (inner, cut) = (self.client(), cut.clone());
        let service = tower::service_fn(move |request: Request<Body>| {
            let (inner, cut) = (inner.clone(), cut.clone());
            async move {
                if cut.load(Ordering::Relaxed) {
                    std::future::pending::<()>().await;
                }
                inner.send(request).await.map_err(tower::BoxError::from)
            }
        });
        Client::new(service, "default")
    }

    fn lock(&self) -> MutexGuard<'_, World> {
        self.0.lock().unwrap()
    }

    fn serve(&self, method: &Method, path: &str, query: &str, body: Value) -> Answer {
        let mut world = self.lock();
        let watch = query.contains("watch=true");
        let verb = if watch { "WATCH" } else { method.as_str() };
        let line = format!("{verb} {path}");
        world.calls.push(Call { line: line.clone(), query: query.to_owned(), body: body.clone() });
        let fault = world.faults.iter_mut().find(|(l, _, left)| *left > 0 && line.starts_with(l.as_str()));
        if let Some((_, code, left)) = fault {
            *left -= 1;
            return failure(*code, "Fault", "as the test ordered");
        }
        let target = target(path);
        let no_such = || failure(404, "NotFound", "the server could not find the requested resource");
        if world.unserved.contains(&target.collection) {
            return no_such();
        }
        if target.status && world.without_status.contains(&target.collection) {
            return no_such();
        }
        match (method, &target.name) {
            (&Method::GET, None) if watch => {
                let from = query.split('&').find_map(|q| q.strip_prefix("resourceVersion="));
                world.watch(&target.collection, from.unwrap().parse().unwrap())
            }
            (&Method::GET, None) => {
                let prefix = format!("{} ", target.collection);
                let named = query.split('&').find_map(|q| q.strip_prefix("fieldSelector=metadata.name%3D"));
                let items: Vec<&Value> = world
                    .objects
                    .iter()
                    .filter(|(p, _)| p.starts_with(&prefix))
                    .map(|(_, o)| o)
                    .filter(|o| named.is_none_or(|n| o["metadata"]["name"] == n))
                    .collect();
                let version = world.version.max(1).to_string();
                answer(
                    200,
                    &json!({"kind": "List", "apiVersion": "v1",
                    "metadata": {"resourceVersion": version}, "items": items}),
                )
            }
            (&Method::GET, Some(name)) => match world.objects.get(&target.path(name)) {
                Some(object) => answer(200, object),
                None => failure(404, "NotFound", &format!("{name} not found")),
            },
            (&Method::POST, None) => {
                let mut body = body;
                let meta = body["metadata"].as_object_mut().unwrap();
                if let Some(prefix) = meta.get("generateName").and_then(Value::as_str).map(str::to_owned)
                    && !meta.contains_key("name")
                {
                    let name = format!("{prefix}{}", world.uids);
                    body["metadata"]["name"] = name.into();
                }
                let name = body["metadata"]["name"].as_str().unwrap().to_owned();
                if world.objects.contains_key(&target.path(&name)) {
                    return failure(409, "AlreadyExists", &format!("{name} already exists"));
                }
                answer(201, &world.put(&target, &name, body))
            }
            (&Method::PATCH, Some(name)) => {
                let before = world.objects.get(&target.path(name)).cloned();
                if before.is_none() && (target.status || !query.contains("force=true")) {
                    return failure(404, "NotFound", &format!("{name} not found"));
                }
                let wants = &body["metadata"]["resourceVersion"];
                if wants.is_string()
                    && Some(wants) != before.as_ref().map(|b| &b["metadata"]["resourceVersion"])
                {
                    return failure(409, "Conflict", "the object has been modified");
                }
                let mut after = before.clone().unwrap_or_else(|| json!({"metadata": {}}));
                let mut patch = body;
                if let Some(meta) = patch["metadata"].as_object_mut() {
                    meta.remove("resourceVersion");
                }
                if target.status {
                    patch = json!({"status": patch["status"]});
                }
                merge(&mut after, &patch);
                if before.as_ref() == Some(&after) {
                    return answer(200, &after);
                }
                let after = world.put(&target, name, after);
                world.collect(&target, name);
                answer(200, &after)
            }
            (&Method::PUT, Some(name)) => {
                let before = world.objects.get(&target.path(name)).cloned().unwrap_or_default();
                if before["metadata"]["resourceVersion"] != body["metadata"]["resourceVersion"] {
                    return failure(409, "Conflict", "the object has been modified");
                }
                answer(200, &world.put(&target, name, body))
            }
            (&Method::DELETE, Some(name)) => {
                let Some(mut object) = world.objects.get(&target.path(name)).cloned() else {
                    return failure(404, "NotFound", &format!("{name} not found"));
                };
                let uid = &body["preconditions"]["uid"];
                if uid.is_string() && *uid != object["metadata"]["uid"] {
                    return failure(409, "Conflict", "Precondition failed: UID in precondition");
                }
                object["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
                let uid = object["metadata"]["uid"].clone();
                let object = world.put(&target, name, object);
                if world.collect(&target, name) {
                    return answer(
                        200,
                        &json!({"kind": "Status", "apiVersion": "v1", "status": "Success",
                        "details": {"name": name, "uid": uid}}),
                    );
                }
                answer(200, &object)
            }
            _ => failure(405, "MethodNotAllowed", "no"),
        }
    }

    // What tests do from outside.

    /// Writes an object as somebody else.
    pub(crate) fn put(&self, path: &str, object: Value) {
        let target = target(path);
        let name = target.name.clone().unwrap();
        let mut world = self.lock();
        let mut after =
            world.objects.get(&target.path(&name)).cloned().unwrap_or_else(|| json!({"metadata": {}}));
        merge(&mut after, &object);
        after["metadata"]["name"] = name.clone().into();
        if let Some(ns) = &target.namespace {
            after["metadata"]["namespace"] = ns.clone().into();
        }
        world.put(&target, &name, after);
        world.collect(&target, &name);
    }

    /// Deletes an object as somebody else.
    pub(crate) fn delete(&self, path: &str) {
        self.serve(&Method::DELETE, path, "", Value::Null);
        self.lock().calls.pop();
    }

    /// An object as it is.
    pub(crate) fn get(&self, path: &str) -> Option<Value> {
        let target = target(path);
        let path = target.path(target.name.as_ref().unwrap());
        self.lock().objects.get(&path).cloned()
    }

    /// The kind is not served, or again.
    pub(crate) fn serve_kind(&self, collection: &str, served: bool) {
        let mut world = self.lock();
        if served {
            world.unserved.remove(collection);
        } else {
            world.unserved.insert(collection.to_owned());
        }
    }

    pub(crate) fn without_status(&self, collection: &str) {
        self.lock().without_status.insert(collection.to_owned());
    }

    /// The next `times` requests that begin with `line` fail with `code`.
    pub(crate) fn fail(&self, line: &str, code: u16, times: usize) {
        self.lock().faults.push((line.to_owned(), code, times));
    }

    /// Ends all watches.
    pub(crate) fn drop_watches(&self) {
        self.lock().watchers.clear();
    }

    /// Holds watch events back, or lets them go.
    pub(crate) fn hold_watches(&self, hold: bool) {
        let mut world = self.lock();
        if hold {
            world.held.get_or_insert_default();
        } else {
            for (collection, line) in world.held.take().unwrap_or_default() {
                world.tell(&collection, &line);
            }
        }
    }

    /// All requests so far, and forgets them.
    pub(crate) fn calls(&self) -> Vec<Call> {
        std::mem::take(&mut self.lock().calls)
    }

    /// The writes so far, and forgets all requests.
    pub(crate) fn writes(&self) -> Vec<Call> {
        let mut calls = self.calls();
        calls.retain(|c| !c.line.starts_with("GET") && !c.line.starts_with("WATCH"));
        calls
    }
}

impl World {
    fn put(&mut self, target: &Target, name: &str, mut object: Value) -> Value {
        self.version += 1;
        let path = target.path(name);
        let is_new = !self.objects.contains_key(&path);
        if is_new {
            self.uids += 1;
            object["metadata"]["uid"] = format!("uid-{}", self.uids).into();
            object["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z".into();
        }
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.objects.insert(path, object.clone());
        self.event(target, if is_new { "ADDED" } else { "MODIFIED" }, &object);
        object
    }

    /// Removes an object that is being deleted and that nothing holds; whether it did.
    fn collect(&mut self, target: &Target, name: &str) -> bool {
        let path = target.path(name);
        let Some(object) = self.objects.get(&path) else { return false };
        let meta = &object["metadata"];
        let held = meta["finalizers"].as_array().is_some_and(|f| !f.is_empty());
        if meta["deletionTimestamp"].is_null() || held {
            return false;
        }
        self.version += 1;
        let mut object = self.objects.remove(&path).unwrap();
        object["metadata"]["resourceVersion"] = self.version.to_string().into();
        self.event(target, "DELETED", &object);
        true
    }

    fn event(&mut self, target: &Target, kind: &str, object: &Value) {
        let event = json!({"type": kind, "object": object});
        self.log.push((self.version, target.collection.clone(), event.clone()));
        let line = Bytes::from(format!("{event}\n"));
        match &mut self.held {
            Some(held) => held.push((target.collection.clone(), line)),
            None => self.tell(&target.collection, &line),
        }
    }

    fn tell(&mut self, collection: &str, line: &Bytes) {
        self.watchers.retain(|w| w.collection != collection || w.to.send(line.clone()).is_ok());
    }

    fn watch(&mut self, collection: &str, from: u64) -> Answer {
        let (to, from_world) = unbounded_channel::<Bytes>();
        for (version, of, event) in &self.log {
            if *version > from && of == collection {
                to.send(Bytes::from(format!("{event}\n"))).unwrap();
            }
        }
        self.watchers.push(Watcher { collection: collection.to_owned(), to });
        let frames = futures::stream::unfold(from_world, |mut from| async move {
            from.recv().await.map(|line| (line, from))
        });
        let frames = frames.map(|line| Ok::<_, Infallible>(http_body::Frame::data(line)));
        Response::new(StreamBody::new(frames).boxed_unsync())
    }
}
