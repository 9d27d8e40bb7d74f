//! Parameters of policies: objects of any kind that is served, by name or by their labels.
//!
//! They are read as they are when the request comes. Who registers a policy or binding must be allowed to read them, for
//! messages may show what they say. The texts are the reference's, which reach clients.

use homeostat_access::{Attributes as Wish, MASTERS, User};
use homeostat_model::field::Error;
use homeostat_model::gvk::GroupKind;
use homeostat_model::{GroupVersion, Status};
use homeostat_resources::Resource;
use serde_json::Value;

use super::policy::{Binding, Policy};
use crate::authority;
use crate::convert;
use crate::object::store_name;
use crate::read;
use crate::registry::Target;
use crate::write::Writing;

/// What serves a policy's kind of parameters; `None` where it has none. The error says that nobody does.
pub(super) fn kind(w: &Writing<'_>, policy: &Policy) -> Result<Option<Target>, String> {
    let Some(kind) = &policy.param_kind else { return Ok(None) };
    let gv = GroupVersion::parse(&kind.api_version);
    let found = gv.as_ref().and_then(|gv| serving(w, gv, &kind.kind));
    found.map(Some).ok_or_else(|| {
        let slash = if kind.api_version.contains('/') { "" } else { "/" };
        let shown = format!("{slash}{}, Kind={}", kind.api_version, kind.kind);
        format!("failed to find resource referenced by paramKind: '{shown}'")
    })
}

fn serving(w: &Writing<'_>, gv: &GroupVersion, kind: &str) -> Option<Target> {
    let table = w.server.registry.table();
    let serves = |r: &Resource| *r.kind == *kind && r.versions.iter().any(|v| v.served && v.gv == *gv);
    let resource = table.all().iter().find(|r| serves(r))?;
    table.target(&gv.group, &gv.version, &resource.id.resource)
}

/// Refuses a policy or binding whose parameters its writer may not read.
pub(in crate::admission) fn authorize(
    w: &Writing<'_>,
    object: &Value,
    old: Option<&Value>,
) -> Result<(), Status> {
    let (policies, policy, path) = match &*w.target.resource.id.resource {
        "validatingadmissionpolicies" | "mutatingadmissionpolicies" => {
            ("", Some(object.clone()), "paramKind")
        }
        "validatingadmissionpolicybindings" => ("validatingadmissionpolicies", None, "paramRef"),
        "mutatingadmissionpolicybindings" => ("mutatingadmissionpolicies", None, "paramRef"),
        _ => return Ok(()),
    };
    let wanted = &object["spec"][path];
    let same = path == "paramKind" && old.is_some_and(|old| old["spec"][path] == *wanted);
    if wanted.is_null() || same || w.user.is_in(MASTERS) || !w.subresource.is_empty() {
        return Ok(());
    }
    let policy = policy.or_else(|| {
        let name = object["spec"]["policyName"].as_str()?;
        let collection = format!("{policies}.{}", w.target.resource.id.group);
        serde_json::from_slice(&w.server.config.store.get(&collection, name)?.bytes).ok()
    });
    let kind = policy.as_ref().map_or(&Value::Null, |p| &p["spec"]["paramKind"]);
    let text = |key: &str| kind[key].as_str().unwrap_or_default();
    // What isn't known may be anything.
    let gv = GroupVersion::parse(text("apiVersion")).filter(|_| kind.is_object());
    let served = gv.as_ref().and_then(|gv| serving(w, gv, text("kind")));
    let group = gv.as_ref().map_or("*", |gv| &gv.group);
    let resource = served.as_ref().map_or("*", |t| &t.resource.id.resource);
    let of = |key: &str| wanted[key].as_str().unwrap_or_default();
    let (name, namespace) = if path == "paramKind" { ("*", "*") } else { (of("name"), of("namespace")) };
    let wish = Wish::resource(w.user, "get", group, resource).namespace(namespace).name(name);
    if authority::decide(w.server, &wish).allowed {
        return Ok(());
    }
    let user = shown(w.user);
    let why = match path {
        "paramKind" => format!(
            "user {user} must have \"get\" permission on all objects of the referenced paramKind (kind={}, apiVersion={})",
            text("kind"),
            text("apiVersion")
        ),
        _ => format!("user {user} does not have \"get\" permission on the object referenced by paramRef"),
    };
    let target = &w.target.resource;
    let kind = GroupKind::new(target.id.group.clone(), target.kind.clone());
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    Err(Status::invalid(&kind, name, &[Error::forbidden(format!("spec.{path}"), why)]))
}

/// A user as Go prints one.
fn shown(user: &User) -> String {
    let extra: Vec<String> = user.extra.iter().map(|(k, v)| format!("{k}:[{}]", v.join(" "))).collect();
    format!("&{{{} {} [{}] map[{}]}}", user.name, user.uid, user.groups.join(" "), extra.join(" "))
}

/// The parameters that a binding means, null where policy or binding has none.
pub(super) async fn collect(
    w: &Writing<'_>,
    kind: Option<&Target>,
    binding: &Binding,
) -> Result<Vec<Value>, String> {
    let (Some(target), Some(wanted)) = (kind, &binding.params) else { return Ok(vec![Value::Null]) };
    let namespace = match (target.resource.namespaced, wanted.namespace.as_str()) {
        (true, "") if w.namespace.is_empty() => {
            let why =
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources";
            return Err(why.to_owned());
        }
        (true, "") => w.namespace,
        (true, named) => named,
        (false, "") => "",
        (false, _) => {
            let why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`";
            return Err(why.to_owned());
        }
    };
    let snapshot = w.server.config.store.snapshot();
    let collection = &*target.resource.collection;
    let records: Vec<_> = match &wanted.selector {
        None => snapshot.get(collection, &store_name(namespace, &wanted.name)).cloned().into_iter().collect(),
        Some(selector) => {
            let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
            snapshot
                .range(collection, &prefix, None)
                .filter(|r| selector.matches(|key| r.meta.label(key)))
                .cloned()
                .collect()
        }
    };
    if records.is_empty() && wanted.required {
        return Err("no params found for policy binding with `Deny` parameterNotFoundAction".to_owned());
    }
    let all: Vec<_> = records.iter().map(|r| &**r).collect();
    convert::prefetch(w.server, target, &all, false).await.map_err(|s| s.message)?;
    Ok(records.iter().map(|r| read::value(r, target)).collect())
}
