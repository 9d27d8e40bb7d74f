//! The objects that a fresh cluster has: namespaces, the `kubernetes` Service, priority classes, default roles.
//!
//! Written straight to the store when the server starts, each only if it is absent, so that what an administrator
//! changed stays. Invariant: starting on a store that has them all writes nothing.

use std::sync::Arc;

use futures::FutureExt;
use homeostat_model::clock;
use homeostat_store::{Expect, Key, Op, Write};
use serde_json::{Value, json};

use crate::object;
use crate::registry::Table;
use crate::server::Server;
use crate::write::draft;

/// Writes what is absent.
pub(crate) fn write(server: &Arc<Server>) {
    let table = server.registry.table();
    let now = clock::seconds(server.config.clock.now());
    for (group, plural, object) in objects(server) {
        put(server, &table, group, plural, object, &now);
    }
    for object in homeostat_access::bootstrap::objects().into_iter().chain(server.config.roles.clone()) {
        let plural = match object["kind"].as_str() {
            Some("ClusterRole") => "clusterroles",
            Some("ClusterRoleBinding") => "clusterrolebindings",
            Some("Role") => "roles",
            Some("RoleBinding") => "rolebindings",
            kind => {
                tracing::warn!(kind, "left out of what a fresh server has: it is no kind of RBAC");
                continue;
            }
        };
        put(server, &table, "rbac.authorization.k8s.io", plural, object, &now);
    }
}

fn put(server: &Arc<Server>, table: &Table, group: &str, plural: &str, mut object: Value, now: &str) {
    let Some(target) = table.named(group, plural) else { return };
    let target = target.storage();
    object["kind"] = (*target.resource.kind).into();
    object["apiVersion"] = target.gv().to_string().into();
    let name = object::store_name(object::namespace(&object), object::name(&object));
    if server.config.store.get(&target.resource.collection, &name).is_some() {
        return;
    }
    object::set_meta(&mut object, "creationTimestamp", now);
    object::set_meta(&mut object, "uid", server.config.entropy.uid());
    let (draft, meta) = draft(&target, object);
    let key = Key::new(target.resource.collection.clone(), name);
    // The memory store answers at once; one that does not is retried by nobody, and the next start fills the gap.
    let commit = server.config.store.commit(Write { key, expect: Expect::Absent, op: Op::Put(draft, meta) });
    if commit.now_or_never().is_none() {
        tracing::warn!(object = plural, "the store did not take a bootstrap object at once");
    }
}

/// Everything but the RBAC objects, as (group, plural, object).
fn objects(server: &Server) -> Vec<(&'static str, &'static str, Value)> {
    let mut out = Vec::new();
    for name in ["default", "kube-node-lease", "kube-public", "kube-system"] {
        out.push((
            "",
            "namespaces",
            json!({
                "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            }),
        ));
    }
    for (name, value, text) in [
        (
            "system-node-critical",
            2_000_001_000,
            "Used for system critical pods that must not be moved from their current node.",
        ),
        (
            "system-cluster-critical",
            2_000_000_000,
            "Used for system critical pods that must run in the cluster, but can be moved to another node if necessary.",
        ),
    ] {
        out.push((
            "scheduling.k8s.io",
            "priorityclasses",
            json!({
                "metadata": {"name": name, "generation": 1},
                "value": value, "description": text, "preemptionPolicy": "PreemptLowerPriority",
            }),
        ));
    }
    let range = server.config.service_cluster_ip_range;
    let (host, port) = server.config.advertise.rsplit_once(':').unwrap_or((&server.config.advertise, "443"));
    let port: u16 = port.parse().unwrap_or(443);
    if let Some(ip) = range.hosts().next() {
        let family = if ip.is_ipv4() { "IPv4" } else { "IPv6" };
        out.push((
            "",
            "services",
            json!({
                "metadata": {
                    "name": "kubernetes", "namespace": "default",
                    "labels": {"component": "apiserver", "provider": "kubernetes"},
                },
                "spec": {
                    "clusterIP": ip, "clusterIPs": [ip], "internalTrafficPolicy": "Cluster",
                    "ipFamilies": [family], "ipFamilyPolicy": "SingleStack",
                    "ports": [{"name": "https", "port": 443, "protocol": "TCP", "targetPort": port}],
                    "sessionAffinity": "None", "type": "ClusterIP",
                },
                "status": {"loadBalancer": {}},
            }),
        ));
        out.push((
            "",
            "endpoints",
            json!({
                "metadata": {
                    "name": "kubernetes", "namespace": "default",
                    "labels": {"endpointslice.kubernetes.io/skip-mirror": "true"},
                },
                "subsets": [{
                    "addresses": [{"ip": host}],
                    "ports": [{"name": "https", "port": port, "protocol": "TCP"}],
                }],
            }),
        ));
        out.push((
            "networking.k8s.io",
            "servicecidrs",
            json!({
                "metadata": {"name": "kubernetes", "generation": 1, "finalizers": ["networking.k8s.io/service-cidr-finalizer"]},
                "spec": {"cidrs": [range.trunc().to_string()]},
            }),
        ));
    }
    out
}
