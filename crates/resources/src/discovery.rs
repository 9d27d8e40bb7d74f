//! Discovery documents: which groups, versions and resources there are, in the old and the aggregated form.
//!
//! Built from the definitions on demand. Order is part of the contract: kubectl resolves ambiguous names by it.
//! Built-in groups come in the order of their definitions, custom ones after them by name; versions by priority.

use std::cmp::{Ordering, Reverse};
use std::sync::Arc;

use base64::Engine;
use homeostat_model::GroupVersion;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::definition::{Origin, Resource, Subresource, Version};

/// A group with its served versions, preferred first.
struct Group<'a> {
    name: &'a str,
    versions: Vec<&'a str>,
}

fn groups(resources: &[Arc<Resource>]) -> Vec<Group<'_>> {
    let mut groups: Vec<(bool, Group<'_>)> = Vec::new();
    for r in resources {
        let served = r.versions.iter().filter(|v| v.served);
        let custom = r.origin != Origin::BuiltIn;
        for v in served {
            // A built-in resource may be served in several groups (events); each version says its own.
            let name: &str = &v.gv.group;
            let at = match groups.iter().position(|(_, g)| g.name == name) {
                Some(at) => at,
                None => {
                    groups.push((custom, Group { name, versions: Vec::new() }));
                    groups.len() - 1
                }
            };
            let (all_custom, group) = &mut groups[at];
            *all_custom &= custom;
            if !group.versions.contains(&&*v.gv.version) {
                group.versions.push(&v.gv.version);
            }
        }
    }
    for (_, g) in &mut groups {
        g.versions.sort_by(|a, b| compare_versions(b, a));
    }
    let (mut custom, built_in): (Vec<_>, Vec<_>) = groups.into_iter().partition(|(custom, _)| *custom);
    custom.sort_by_key(|(_, g)| g.name);
    built_in.into_iter().chain(custom).map(|(_, g)| g).collect()
}

/// Resources of a group and version that requests may use, in discovery order.
fn served<'a>(
    resources: &'a [Arc<Resource>],
    group: &str,
    version: &str,
) -> Vec<(&'a Resource, &'a Version)> {
    let mut found: Vec<(&Resource, &Version)> = resources
        .iter()
        .filter_map(|r| {
            let v =
                r.versions.iter().find(|v| v.served && &*v.gv.group == group && &*v.gv.version == version)?;
            Some((&**r, v))
        })
        .collect();
    found.sort_by_key(|(r, _)| {
        (r.origin != Origin::BuiltIn, (r.origin != Origin::BuiltIn).then_some(&*r.id.resource))
    });
    found
}

/// `/api`. `address` is where this server is reached, `host:port`.
pub fn api_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

fn group_value(g: &Group<'_>) -> Map<String, Value> {
    let version = |v: &&str| json!({"groupVersion": GroupVersion::new(g.name, *v).to_string(), "version": v});
    let mut out = Map::new();
    out.insert("name".into(), g.name.into());
    out.insert("versions".into(), g.versions.iter().map(version).collect());
    if let Some(v) = g.versions.first() {
        out.insert("preferredVersion".into(), version(v));
    }
    out
}

/// `/apis`.
pub fn group_list(resources: &[Arc<Resource>]) -> Value {
    let groups: Vec<Value> = groups(resources)
        .iter()
        .filter(|g| !g.name.is_empty())
        .map(|g| Value::Object(group_value(g)))
        .collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/G`; `None` where there is no such group.
pub fn group(resources: &[Arc<Resource>], name: &str) -> Option<Value> {
    let groups = groups(resources);
    let g = groups.iter().find(|g| g.name == name && !name.is_empty())?;
    let mut out = group_value(g);
    out.insert("kind".into(), "APIGroup".into());
    out.insert("apiVersion".into(), "v1".into());
    Some(Value::Object(out))
}

/// `/api/v1` and `/apis/G/V`; `None` where nothing is served under it.
pub fn resource_list(resources: &[Arc<Resource>], gv: &GroupVersion) -> Option<Value> {
    let served = served(resources, &gv.group, &gv.version);
    if served.is_empty() {
        return None;
    }
    let mut list = Vec::new();
    for (r, v) in served {
        list.push(main_resource(resources, r, v));
        for s in &v.subresources {
            let mut out = Map::new();
            out.insert("name".into(), format!("{}/{}", r.id.resource, s.name).into());
            out.insert("singularName".into(), "".into());
            out.insert("namespaced".into(), r.namespaced.into());
            if let Some(gv) = &s.gv {
                out.insert("group".into(), (*gv.group).into());
                out.insert("version".into(), (*gv.version).into());
            }
            out.insert("kind".into(), s.kind.as_str().into());
            out.insert("verbs".into(), json!(s.verbs));
            list.push(Value::Object(out));
        }
    }
    let mut out = json!({"kind": "APIResourceList", "groupVersion": gv.to_string(), "resources": list});
    // The core group's document has no apiVersion, for clients older than groups.
    if !gv.group.is_empty() {
        out["apiVersion"] = "v1".into();
    }
    Some(out)
}

fn main_resource(resources: &[Arc<Resource>], r: &Resource, v: &Version) -> Value {
    let mut out = Map::new();
    out.insert("name".into(), (*r.id.resource).into());
    out.insert("singularName".into(), r.singular.as_str().into());
    out.insert("namespaced".into(), r.namespaced.into());
    out.insert("kind".into(), (*r.kind).into());
    out.insert("verbs".into(), json!(verbs(r, v)));
    names(r, &mut out);
    // Resources without storage have none: reviews, bindings, component statuses.
    if v.verbs.contains(&"watch") {
        // Where two resources share one collection (events), the one that gave it its name says how it is stored.
        let owner = resources.iter().find(|o| o.id.to_string() == *r.collection).map_or(r, |o| &**o);
        out.insert(
            "storageVersionHash".into(),
            storage_version_hash(&owner.storage_version().gv, &r.kind).into(),
        );
    }
    Value::Object(out)
}

/// Verbs as discovery shows them: fewer while a custom resource's definition is being deleted.
pub fn verbs<'a>(r: &Resource, v: &'a Version) -> Vec<&'a str> {
    let terminating = matches!(r.origin, Origin::Custom { terminating: true, .. });
    let gone = |verb: &str| terminating && matches!(verb, "create" | "update" | "patch");
    v.verbs.iter().copied().filter(|verb| !gone(verb)).collect()
}

fn names(r: &Resource, out: &mut Map<String, Value>) {
    if !r.short_names.is_empty() {
        out.insert("shortNames".into(), json!(r.short_names));
    }
    if !r.categories.is_empty() {
        out.insert("categories".into(), json!(r.categories));
    }
}

/// The aggregated document `APIGroupDiscoveryList` (apidiscovery.k8s.io/v2): of `/api` with `core`, else of `/apis`.
pub fn aggregated(resources: &[Arc<Resource>], core: bool) -> Value {
    let items: Vec<Value> = groups(resources)
        .iter()
        .filter(|g| g.name.is_empty() == core)
        .map(|g| {
            let versions: Vec<Value> = g
                .versions
                .iter()
                .map(|version| {
                    let list: Vec<Value> = served(resources, g.name, version)
                        .into_iter()
                        .map(|(r, v)| aggregated_resource(r, v))
                        .collect();
                    json!({"version": version, "resources": list, "freshness": "Current"})
                })
                .collect();
            let metadata = if g.name.is_empty() { json!({}) } else { json!({"name": g.name}) };
            json!({"metadata": metadata, "versions": versions})
        })
        .collect();
    json!({"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items})
}

fn aggregated_resource(r: &Resource, v: &Version) -> Value {
    let kind =
        |gv: &GroupVersion, kind: &str| json!({"group": &*gv.group, "version": &*gv.version, "kind": kind});
    let mut out = Map::new();
    out.insert("resource".into(), (*r.id.resource).into());
    out.insert("responseKind".into(), kind(&v.gv, &r.kind));
    out.insert("scope".into(), if r.namespaced { "Namespaced" } else { "Cluster" }.into());
    out.insert("singularResource".into(), r.singular.as_str().into());
    out.insert("verbs".into(), json!(verbs(r, v)));
    names(r, &mut out);
    if !v.subresources.is_empty() {
        let sub = |s: &Subresource| {
            json!({
                "subresource": s.name,
                "responseKind": kind(s.gv.as_ref().unwrap_or(&v.gv), &s.kind),
                "verbs": s.verbs,
            })
        };
        out.insert("subresources".into(), v.subresources.iter().map(sub).collect());
    }
    Value::Object(out)
}

/// ETag of a document: its SHA-256 in hex, quoted, as clients send it back in `If-None-Match`.
pub fn etag(document: &[u8]) -> String {
    format!("\"{}\"", hex(&Sha256::digest(document)).to_uppercase())
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// `storageVersionHash` of discovery: changes when objects are stored in another version.
pub fn storage_version_hash(gv: &GroupVersion, kind: &str) -> String {
    let digest = Sha256::digest(format!("{}/{}/{kind}", gv.group, gv.version));
    base64::engine::general_purpose::STANDARD.encode(&digest[..8])
}

/// Compares versions as Kubernetes ranks them: `v2` > `v1` > `v1beta2` > `v1beta1` > `v1alpha1`, then all others
/// in reverse alphabetical order.
pub fn compare_versions(a: &str, b: &str) -> Ordering {
    match (rank(a), rank(b)) {
        (Some(a), Some(b)) => a.cmp(&b),
        (Some(_), None) => Ordering::Greater,
        (None, Some(_)) => Ordering::Less,
        (None, None) => Reverse(a).cmp(&Reverse(b)),
    }
}

/// (stability, major, minor): stability 2 for GA, 1 for beta, 0 for alpha.
fn rank(version: &str) -> Option<(u8, u64, u64)> {
    let number = |s: &str| {
        let digits = !s.is_empty() && s.bytes().all(|c| c.is_ascii_digit());
        digits.then(|| s.parse().ok()).flatten()
    };
    let rest = version.strip_prefix('v')?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let major = number(&rest[..digits])?;
    let suffix = &rest[digits..];
    if suffix.is_empty() {
        return Some((2, major, 0));
    }
    if let Some(minor) = suffix.strip_prefix("beta") {
        return Some((1, major, number(minor)?));
    }
    Some((0, major, number(suffix.strip_prefix("alpha")?)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_rank_as_kubernetes_ranks_them() {
        let mut versions = [
            "foo1",
            "v3beta1",
            "v12alpha1",
            "v1",
            "v11alpha2",
            "foo10",
            "v10",
            "v2",
            "v3beta2",
            "v11beta2",
            "vb",
        ];
        versions.sort_by(|a, b| compare_versions(b, a));
        assert_eq!(
            versions,
            [
                "v10",
                "v2",
                "v1",
                "v11beta2",
                "v3beta2",
                "v3beta1",
                "v12alpha1",
                "v11alpha2",
                "foo1",
                "foo10",
                "vb"
            ]
        );
    }

    #[test]
    fn storage_hashes_are_the_references() {
        for (gv, kind, want) in [
            ("example.com/v1", "Widget", "gIwvi5rymmg="),
            ("zz-caches.example.com/v1", "RedisCluster", "yKyWM+vxw4U="),
            ("conflicts.example.com/v1", "Store", "fVm82SE/T3I="),
            ("paths.example.com/v1", "Certificate", "Z/zW8q2ijpY="),
            ("legacy.example.com/v1", "Broker", "kEo9oNv3rGI="),
        ] {
            assert_eq!(
                GroupVersion::parse(gv).map(|gv| storage_version_hash(&gv, kind)).as_deref(),
                Some(want)
            );
        }
    }
}
