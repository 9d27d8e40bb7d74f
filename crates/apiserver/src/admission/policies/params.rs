//! Parameters of policies: objects of any kind that is served, by name or by their labels.
//!
//! They are read as they are when the request comes. The texts are the reference's, which reach clients.

use homeostat_model::GroupVersion;
use serde_json::Value;

use super::policy::{Binding, Policy};
use crate::convert;
use crate::object::store_name;
use crate::read;
use crate::registry::Target;
use crate::write::Writing;

/// What serves a policy's kind of parameters; `None` where it has none. The error says that nobody does.
pub(super) fn kind(w: &Writing<'_>, policy: &Policy) -> Result<Option<Target>, String> {
    let Some(kind) = &policy.param_kind else { return Ok(None) };
    let gv = GroupVersion::parse(&kind.api_version);
    let found = gv.as_ref().and_then(|gv| {
        let table = w.server.registry.table();
        let serves = |r: &&std::sync::Arc<homeostat_resources::Resource>| {
            *r.kind == *kind.kind && r.versions.iter().any(|v| v.served && v.gv == *gv)
        };
        let resource = table.all().iter().find(serves)?;
        table.target(&gv.group, &gv.version, &resource.id.resource)
    });
    found.map(Some).ok_or_else(|| {
        let slash = if kind.api_version.contains('/') { "" } else { "/" };
        let shown = format!("{slash}{}, Kind={}", kind.api_version, kind.kind);
        format!("failed to find resource referenced by paramKind: '{shown}'")
    })
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
