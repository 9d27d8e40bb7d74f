//! `delete` and `deletecollection`: preconditions, grace, finalizers and propagation.
//!
//! An object that something holds is marked and stays; the one that nothing holds goes at once.
//! Source: apiserver's `registry.Store.Delete`.

use std::sync::Arc;
use std::time::Duration;

use homeostat_model::status::Result;
use homeostat_model::{GroupResource, Status, clock};
use homeostat_resources::{Cx, Propagation};
use homeostat_store::{CommitError, Expect, Record};
use http::StatusCode;
use serde_json::{Value, json};

use super::{answer, body, input, writing};
use crate::admission::{self, Operation, Subject};
use crate::convert;
use crate::decode;
use crate::meta::Meta;
use crate::negotiate::Accepted;
use crate::object;
use crate::options::{DeleteOptions, FieldValidation, ListOptions, WriteOptions};
use crate::read;
use crate::registry::Target;
use crate::respond::Answer;
use crate::selection::Selection;
use crate::server::{Call, Server};
use crate::write::{Outcome, Writing, commit_status};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";
/// Attempts against others who write the same object.
const ATTEMPTS: usize = 64;
/// Most objects that one collection delete looks at in a batch between yields.
const BATCH: usize = 64;

/// What a delete came to.
struct Deleted {
    /// The object as it was last, or as it stays.
    outcome: Outcome,
    /// It is gone.
    gone: bool,
}

/// Reads the options: a body replaces those of the query.
async fn options(call: &mut Call) -> Result<DeleteOptions> {
    let bytes = match call.header(http::header::CONTENT_TYPE) {
        None => body(call).await?,
        Some(_) => {
            let form = input(call);
            let bytes = body(call).await?;
            if !bytes.is_empty() {
                form?;
            }
            bytes
        }
    };
    if bytes.is_empty() {
        return DeleteOptions::from_query(&call.query);
    }
    let parsed = decode::parse(&bytes, input(call).unwrap_or(crate::negotiate::Input::Json))
        .map_err(Status::bad_request)?;
    let v = parsed.value;
    let text = |key: &str| v[key].as_str().unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    if !matches!(kind, "" | "DeleteOptions") {
        return Err(Status::bad_request(format!(
            "no kind \"{kind}\" is registered for version \"{version}\" in scheme \
             \"pkg/apis/meta/internalversion/scheme/register.go:27\""
        )));
    }
    check_types(&v)?;
    call.asks(&v);
    DeleteOptions::from_value(&v)
}

/// Refuses options of other types, in Go's words.
fn check_types(v: &Value) -> Result<()> {
    let go = |v: &Value| match v {
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        _ => "object",
    };
    let wrong = |field: &str, v: &Value, want: &str| {
        Status::bad_request(format!(
            "json: cannot unmarshal {} into Go struct field DeleteOptions.{field} of type {want}",
            go(v)
        ))
    };
    let n = &v["gracePeriodSeconds"];
    if !n.is_null() && n.as_i64().is_none() {
        return Err(wrong("gracePeriodSeconds", n, "int64"));
    }
    for (key, want) in [("propagationPolicy", "v1.DeletionPropagation")] {
        if !v[key].is_null() && !v[key].is_string() {
            return Err(wrong(key, &v[key], want));
        }
    }
    if !v["orphanDependents"].is_null() && !v["orphanDependents"].is_boolean() {
        return Err(wrong("orphanDependents", &v["orphanDependents"], "bool"));
    }
    if !v["preconditions"].is_null() && !v["preconditions"].is_object() {
        return Err(wrong("preconditions", &v["preconditions"], "v1.Preconditions"));
    }
    if !v["dryRun"].is_null() && !v["dryRun"].is_array() {
        return Err(wrong("dryRun", &v["dryRun"], "[]string"));
    }
    Ok(())
}

fn writer<'a>(server: &'a Arc<Server>, target: &'a Target, call: &'a Call, o: &DeleteOptions) -> Writing<'a> {
    let write = WriteOptions {
        dry_run: o.dry_run,
        field_validation: FieldValidation::Ignore,
        field_manager: String::new(),
        force: false,
    };
    let mut w = writing(server, target, call, "", &write);
    w.options = o.told.clone();
    w
}

/// Answers a delete of one object.
pub(crate) async fn delete(
    server: &Arc<Server>,
    target: &Target,
    call: &mut Call,
    accepted: Accepted,
) -> Result<Answer> {
    let o = options(call).await?;
    let name = call.info.path_name.clone();
    let mut w = writer(server, target, call, &o);
    let jobs = &*target.resource.id.group == "batch" && &*target.resource.id.resource == "jobs";
    if jobs && o.propagation.is_none() {
        w.warnings.push(
            "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove \
             them or set propagationPolicy=Orphan to suppress this warning"
                .to_owned(),
        );
    }
    let deleted = one(&mut w, &name, &o).await?;
    if deleted.gone && !target.resource.strategy.delete_returns_object() {
        deleted.outcome.prefetch(server, target).await?;
        let v = deleted.outcome.value(target);
        let id = &target.resource.id;
        let mut details = json!({"name": name, "kind": &*id.resource, "uid": object::uid(&v)});
        if !id.group.is_empty() {
            details["group"] = (*id.group).into();
        }
        let status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details,
        });
        return Ok(Answer::value(status));
    }
    let code = match (deleted.gone, o.propagation) {
        (false, _) if call.query.get("orphanDependents") == Some("false") => StatusCode::ACCEPTED,
        _ => StatusCode::OK,
    };
    answer(server, target, call, accepted, code, &deleted.outcome).await
}

/// Answers a delete of a collection.
pub(crate) async fn collection(
    server: &Arc<Server>,
    target: &Target,
    call: &mut Call,
    accepted: Accepted,
) -> Result<Answer> {
    let o = options(call).await?;
    let listing = ListOptions::parse(&call.query, false)?;
    let namespace = if target.resource.namespaced { call.info.namespace.clone() } else { String::new() };
    Selection::parse(target, &namespace, "", &listing)?;
    // What is deleted is what a list would have shown, and the answer is that list.
    let list = super::list::list(server, target, call, accepted).await?;
    let names = super::list::names(server, target, call).await?;
    let mut w = writer(server, target, call, &o);
    for (i, name) in names.iter().enumerate() {
        match one(&mut w, name, &o).await {
            Ok(_) => {}
            Err(s) if s.code == 404 => {}
            Err(s) => return Err(s),
        }
        if i % BATCH == BATCH - 1 {
            tokio::task::yield_now().await;
        }
    }
    Ok(list)
}

/// Deletes an instance of a custom resource whose definition goes; whether it is gone.
pub(crate) async fn instance(
    server: &Arc<Server>,
    target: &Target,
    record: &Arc<Record<Meta>>,
) -> Result<bool> {
    let user = homeostat_access::User::administrator("system:apiserver");
    let (namespace, name) = match record.key.name.split_once('/') {
        Some((namespace, name)) if target.resource.namespaced => (namespace, name),
        _ => ("", &*record.key.name),
    };
    let mut w = Writing {
        server,
        target,
        user: &user,
        namespace,
        subresource: "",
        manager: "kube-apiserver".to_owned(),
        dry_run: false,
        options: Value::Null,
        warnings: Vec::new(),
        sink: None,
        trail: None,
    };
    match one(&mut w, name, &DeleteOptions::default()).await {
        Ok(d) => Ok(d.gone),
        Err(s) if s.code == 404 => Ok(true),
        Err(s) => Err(s),
    }
}

/// Deletes a pod on behalf of an eviction.
pub(crate) async fn evict(
    server: &Arc<Server>,
    target: &Target,
    call: &Call,
    name: &str,
    o: &DeleteOptions,
) -> Result<()> {
    let mut w = writer(server, target, call, o);
    one(&mut w, name, o).await.map(|_| ())
}

/// Deletes one object.
async fn one(w: &mut Writing<'_>, name: &str, o: &DeleteOptions) -> Result<Deleted> {
    let id = w.target.resource.id.clone();
    let mut validated = false;
    for _ in 0..ATTEMPTS {
        let record = w.live(name).ok_or_else(|| Status::not_found(&id, name))?;
        convert::prefetch(w.server, w.target, &[&record], false).await?;
        let live = read::value(&record, w.target);
        preconditions(w, &live, name, o)?;
        if !validated {
            let subject = Subject { operation: Operation::Delete, name: name.to_owned() };
            admission::validate(w, &subject, None, Some(&live)).await?;
            validated = true;
        }
        match step(w, &record, live, o).await? {
            Some(deleted) => return Ok(deleted),
            None => continue,
        }
    }
    Err(Status::stale(&id, name))
}

fn preconditions(w: &Writing<'_>, live: &Value, name: &str, o: &DeleteOptions) -> Result<()> {
    let resource = &w.target.resource;
    let kind = GroupResource::new(resource.id.group.clone(), resource.kind.clone());
    if let Some(uid) = &o.uid
        && uid != object::uid(live)
    {
        let why = format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({}). The object might have been \
             deleted and then recreated",
            object::uid(live)
        );
        return Err(Status::conflict(&kind, name, &why));
    }
    if let Some(version) = &o.resource_version
        && version != object::resource_version(live)
    {
        let why = format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({}). \
             The object might have been modified",
            object::resource_version(live)
        );
        return Err(Status::conflict(&kind, name, &why));
    }
    Ok(())
}

/// Marks or removes an object; `None` where it changed meanwhile.
async fn step(
    w: &mut Writing<'_>,
    record: &Arc<Record<Meta>>,
    live: Value,
    o: &DeleteOptions,
) -> Result<Option<Deleted>> {
    let strategy = w.target.resource.strategy.clone();
    let mut new = live.clone();
    let now = w.server.config.clock.now();
    let cx = Cx {
        now,
        entropy: &w.server.config.entropy,
        user: &w.user.name,
        groups: &w.user.groups,
        subresource: "",
    };
    let first = !object::deleting(&live);
    let mut own = false;
    if first && strategy.mark_deleted(&cx, &mut new) {
        own = true;
    }
    let graceful = if own { Grace::Held } else { grace(&strategy, &live, &mut new, o, now) };
    if matches!(graceful, Grace::Pending) {
        return Ok(Some(Deleted { outcome: Outcome::Stored(record.clone()), gone: false }));
    }
    let finalizers = finalizers(&live, o, strategy.default_propagation());
    let current: Vec<String> = object::finalizers(&new).into_iter().map(str::to_owned).collect();
    let wanted: Vec<String> = match own {
        // A type that marks its objects itself may have added a finalizer of its own.
        true => {
            let mut all = finalizers;
            all.extend(current.iter().filter(|f| !object::finalizers(&live).contains(&f.as_str())).cloned());
            all
        }
        false => finalizers,
    };
    if wanted != current {
        if wanted.is_empty() {
            object::unset_meta(&mut new, "finalizers");
        } else {
            object::set_meta(&mut new, "finalizers", wanted.clone());
        }
    }
    let held = !wanted.is_empty() || strategy.holds_deletion(&new);
    if held && matches!(graceful, Grace::None) {
        if first {
            object::set_meta(&mut new, "deletionTimestamp", clock::seconds(now));
            let generation = object::generation(&live);
            if generation > 0 {
                object::set_meta(&mut new, "generation", generation + 1);
            }
        }
        // A namespace waits for its content, not for a period.
        if !strategy.holds_deletion(&new) {
            object::set_meta(&mut new, "deletionGracePeriodSeconds", 0);
        }
    }
    let waits = matches!(graceful, Grace::Marked(s) if s > 0);
    if held || waits {
        let outcome = mark(w, record, &live, new).await?;
        return Ok(outcome.map(|outcome| Deleted { outcome, gone: false }));
    }
    let record = &match graceful {
        // Marked with no time left: seen as such, then gone.
        Grace::Marked(_) => match mark(w, record, &live, new).await? {
            Some(Outcome::Stored(marked)) => marked,
            Some(shown) => return Ok(Some(Deleted { outcome: shown, gone: true })),
            None => return Ok(None),
        },
        _ => record.clone(),
    };
    if w.dry_run {
        return Ok(Some(Deleted { outcome: Outcome::Shown(live), gone: true }));
    }
    match w.remove(record).await {
        Ok(event) => Ok(Some(Deleted { outcome: Outcome::Gone(event), gone: true })),
        Err(CommitError::Missing) => {
            Ok(Some(Deleted { outcome: Outcome::Stored(record.clone()), gone: true }))
        }
        Err(CommitError::Changed(_)) => Ok(None),
        Err(e) => Err(commit_status(&e)),
    }
}

async fn mark(
    w: &Writing<'_>,
    record: &Arc<Record<Meta>>,
    live: &Value,
    new: Value,
) -> Result<Option<Outcome>> {
    if new == *live {
        return Ok(Some(Outcome::Stored(record.clone())));
    }
    if w.dry_run {
        return Ok(Some(Outcome::Shown(new)));
    }
    let (target, new) = w.to_storage(new).await?;
    match w.commit(&target, record.key.clone(), Expect::Revision(record.revision), new).await {
        Ok(record) => Ok(Some(Outcome::Stored(record))),
        Err(CommitError::Changed(_) | CommitError::Missing) => Ok(None),
        Err(e) => Err(commit_status(&e)),
    }
}

/// How far graceful deletion is.
#[derive(Debug, PartialEq, Eq)]
enum Grace {
    /// The resource knows none, or has none for this object.
    None,
    /// The object was marked with these seconds just now.
    Marked(i64),
    /// It is marked already, and nothing changes.
    Pending,
    /// The type has marked it in its own way.
    Held,
}

fn grace(
    strategy: &Arc<dyn homeostat_resources::Strategy>,
    live: &Value,
    new: &mut Value,
    o: &DeleteOptions,
    now: homeostat_model::Timestamp,
) -> Grace {
    let meta = &live["metadata"];
    if object::deleting(live) {
        let (Some(current), Some(_)) =
            (meta["deletionGracePeriodSeconds"].as_i64(), strategy.grace_period(live, o.grace_period))
        else {
            return Grace::None;
        };
        let Some(period) = o.grace_period.map(|p| p.max(0)).filter(|p| *p < current) else {
            return if current == 0 { Grace::None } else { Grace::Pending };
        };
        let at = meta["deletionTimestamp"]
            .as_str()
            .and_then(|t| t.parse::<homeostat_model::Timestamp>().ok())
            .unwrap_or(now);
        shift(new, at, period - current, period);
        return Grace::Marked(period);
    }
    match strategy.grace_period(live, o.grace_period) {
        None => Grace::None,
        Some(period) => {
            shift(new, now, period, period);
            let generation = object::generation(live);
            if generation > 0 {
                object::set_meta(new, "generation", generation + 1);
            }
            Grace::Marked(period)
        }
    }
}

fn shift(new: &mut Value, from: homeostat_model::Timestamp, seconds: i64, period: i64) {
    let by = Duration::from_secs(seconds.unsigned_abs());
    let at = if seconds < 0 { from.saturating_sub(by) } else { from.saturating_add(by) };
    object::set_meta(new, "deletionTimestamp", clock::seconds(at.unwrap_or(from)));
    object::set_meta(new, "deletionGracePeriodSeconds", period);
}

/// The finalizers that the garbage collector is to work off.
fn finalizers(live: &Value, o: &DeleteOptions, default: Propagation) -> Vec<String> {
    let current = object::finalizers(live);
    let has = |f: &str| current.contains(&f);
    let orphan = match o.propagation {
        Some(p) => p == Propagation::Orphan,
        None => has(ORPHAN) || (!has(FOREGROUND) && default == Propagation::Orphan),
    };
    let foreground = match o.propagation {
        Some(p) => p == Propagation::Foreground,
        None => has(FOREGROUND) || (!has(ORPHAN) && default == Propagation::Foreground),
    };
    let mut out: Vec<String> =
        current.iter().filter(|f| !matches!(**f, ORPHAN | FOREGROUND)).map(|f| (*f).to_owned()).collect();
    if orphan {
        out.push(ORPHAN.to_owned());
    }
    if foreground {
        out.push(FOREGROUND.to_owned());
    }
    out
}
