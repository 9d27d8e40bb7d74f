//! LimitRanger and ResourceQuota: what a namespace lets each object take, and all of them together.
//!
//! What an object takes and whether there is room is decided by `resources`; this module reads the limits, and writes
//! what a quota has spent. Quotas are charged last, when nothing else can refuse the write any more.

use homeostat_access::User;
use homeostat_model::Status;
use homeostat_model::status::Result;
use homeostat_resources::builtin::admit::{limits, quota};
use serde_json::{Value, json};

use super::{Operation, Subject};
use crate::object;
use crate::read;
use crate::registry::Target;
use crate::write::{Proposal, Writing};

/// Attempts against others who charge the same quota.
const ATTEMPTS: usize = 16;

/// Objects of a resource in the request's namespace; nothing is parsed where there is none.
fn of_namespace(w: &Writing<'_>, group: &str, plural: &str) -> Vec<(Target, Value)> {
    if w.namespace.is_empty() {
        return Vec::new();
    }
    let Some(target) = w.server.registry.table().named(group, plural) else { return Vec::new() };
    let snapshot = w.server.config.store.snapshot();
    let prefix = format!("{}/", w.namespace);
    snapshot
        .range(&target.resource.collection, &prefix, None)
        .map(|r| (target.clone(), read::stored(r, &target)))
        .collect()
}

fn is(w: &Writing<'_>, plural: &str) -> bool {
    let id = &w.target.resource.id;
    id.group.is_empty() && &*id.resource == plural && w.subresource.is_empty()
}

/// Gives a new pod what its namespace's limit ranges have for those that say nothing.
pub(super) fn defaults(w: &Writing<'_>, subject: &Subject, object: &mut Value) {
    if !is(w, "pods") || subject.operation != Operation::Create || !w.server.config.admits("LimitRanger") {
        return;
    }
    for (_, range) in of_namespace(w, "", "limitranges") {
        limits::default_pod(object, &range);
    }
}

/// Refuses what breaks a limit range.
pub(super) fn check(w: &Writing<'_>, subject: &Subject, object: &Value) -> Result<()> {
    let pod = is(w, "pods") && subject.operation == Operation::Create;
    let claim = is(w, "persistentvolumeclaims");
    if !(pod || claim) || !w.server.config.admits("LimitRanger") {
        return Ok(());
    }
    for (_, range) in of_namespace(w, "", "limitranges") {
        let broken =
            if pod { limits::check_pod(object, &range) } else { limits::check_claim(object, &range) };
        let why = match broken.as_slice() {
            [] => continue,
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        return Err(Status::forbidden(&w.target.resource.id, object::name(object), &why));
    }
    Ok(())
}

/// Charges the namespace's quotas for a write, or refuses it.
pub(crate) async fn charge(w: &Writing<'_>, object: &Value, old: Option<&Value>) -> Result<()> {
    // What a pod takes changes through its subresource alone.
    let counts = w.subresource.is_empty() || w.subresource == "resize";
    if !counts || !w.server.config.admits("ResourceQuota") {
        return Ok(());
    }
    let id = &w.target.resource.id;
    let refuse = |why: &str| Status::forbidden(id, object::name(object), why);
    let quotas = of_namespace(w, "", "resourcequotas");
    // All are asked before any is charged.
    let mut touched = Vec::new();
    for (target, q) in &quotas {
        match quota::admit(q, id, object, old) {
            None => {}
            Some(Ok(_)) => touched.push((target, object::name(q).to_owned())),
            Some(Err(why)) => return Err(refuse(&why)),
        }
    }
    if w.dry_run {
        return Ok(());
    }
    let user = User::administrator("system:apiserver");
    for (target, name) in touched {
        let mut charging = Writing {
            server: w.server,
            target,
            user: &user,
            namespace: w.namespace,
            subresource: "status",
            manager: "kube-apiserver".to_owned(),
            dry_run: false,
            options: Value::Null,
            warnings: Vec::new(),
            sink: None,
            trail: None,
        };
        let mut attempt = |live: &Value, _: &mut Vec<String>| {
            let mut new = live.clone();
            match quota::admit(live, id, object, old) {
                Some(Ok(used)) => new["status"]["used"] = used,
                Some(Err(why)) => return Err(refuse(&why)),
                None => {}
            }
            if new["status"].is_null() {
                new["status"] = json!({});
            }
            Ok(Proposal { object: new, applied: false, uid: None })
        };
        match Box::pin(charging.update(&name, ATTEMPTS, &mut attempt)).await {
            Ok(_) => {}
            Err(s) if s.code == 404 => {}
            Err(s) => return Err(s),
        }
    }
    Ok(())
}
