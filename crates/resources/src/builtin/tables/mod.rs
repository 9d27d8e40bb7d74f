//! Rows of `kubectl get`: a function per type, from an object to the cells of its columns.
//!
//! Cells are what the reference's printers compute: texts, numbers, and `<none>` or `<unset>` where nothing is said.
//! Ages are computed when the row is, so a row is never stored. Invariant: a row has as many cells as its type has
//! columns in `types.json` (a test holds it).

mod cells;
mod core;
mod misc;
mod pod;
mod workloads;

use homeostat_model::{GroupResource, Timestamp};
use serde_json::Value;

/// Cells of an object's row, one per column of the type.
pub(super) type Row = fn(&Value, Timestamp) -> Vec<Value>;

/// The row function of a type; `None` for reviews, which are never listed, and for CRDs, which have their own.
pub(super) fn row(id: &GroupResource) -> Option<Row> {
    Some(match (&*id.group, &*id.resource) {
        ("", "configmaps") => core::config_map,
        ("", "endpoints") => core::endpoints,
        ("" | "events.k8s.io", "events") => core::event,
        ("", "limitranges") => cells::name_and_time,
        ("", "namespaces") => core::namespace,
        ("", "nodes") => core::node,
        ("", "persistentvolumeclaims") => core::claim,
        ("", "persistentvolumes") => core::volume,
        ("", "pods") => pod::pod,
        ("", "podtemplates") => workloads::pod_template,
        ("", "replicationcontrollers") => workloads::replication_controller,
        ("", "resourcequotas") => core::quota,
        ("", "secrets") => core::secret,
        ("", "serviceaccounts") => cells::name_and_age,
        ("", "services") => core::service,
        ("apiregistration.k8s.io", "apiservices") => misc::api_service,
        ("apps", "controllerrevisions") => workloads::controller_revision,
        ("apps", "daemonsets") => workloads::daemon_set,
        ("apps", "deployments") => workloads::deployment,
        ("apps", "replicasets") => workloads::replica_set,
        ("apps", "statefulsets") => workloads::stateful_set,
        ("autoscaling", _) => workloads::autoscaler,
        ("batch", "cronjobs") => workloads::cron_job,
        ("batch", "jobs") => workloads::job,
        ("certificates.k8s.io", _) => misc::signing_request,
        ("networking.k8s.io", "ingressclasses") => misc::ingress_class,
        ("networking.k8s.io", "ingresses") => misc::ingress,
        ("networking.k8s.io", "ipaddresses") => misc::ip_address,
        ("networking.k8s.io", "networkpolicies") => misc::network_policy,
        ("networking.k8s.io", "servicecidrs") => misc::service_cidr,
        ("policy", _) => misc::disruption_budget,
        ("rbac.authorization.k8s.io", "clusterrolebindings" | "rolebindings") => misc::role_binding,
        ("rbac.authorization.k8s.io", _) => cells::name_and_time,
        ("storage.k8s.io", "csidrivers") => misc::csi_driver,
        ("storage.k8s.io", "csinodes") => misc::csi_node,
        ("storage.k8s.io", "csistoragecapacities") => cells::name_and_time,
        ("storage.k8s.io", "storageclasses") => misc::storage_class,
        ("storage.k8s.io", "volumeattachments") => misc::volume_attachment,
        ("storage.k8s.io", "volumeattributesclasses") => misc::attributes_class,
        ("admissionregistration.k8s.io", kind) => match kind {
            "mutatingadmissionpolicies" | "validatingadmissionpolicies" => misc::admission_policy,
            "mutatingadmissionpolicybindings" | "validatingadmissionpolicybindings" => misc::policy_binding,
            _ => misc::webhooks,
        },
        ("scheduling.k8s.io", _) => misc::priority_class,
        ("coordination.k8s.io", _) => misc::lease,
        ("node.k8s.io", _) => misc::runtime_class,
        ("discovery.k8s.io", _) => misc::endpoint_slice,
        ("resource.k8s.io", "deviceclasses" | "resourceclaimtemplates") => cells::name_and_age,
        ("resource.k8s.io", "resourceclaims") => misc::resource_claim,
        ("resource.k8s.io", "resourceslices") => misc::resource_slice,
        ("flowcontrol.apiserver.k8s.io", "flowschemas") => misc::flow_schema,
        ("flowcontrol.apiserver.k8s.io", _) => misc::priority_level,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    #[test]
    fn every_row_has_a_cell_for_each_column() {
        let now = "2026-01-02T03:04:05Z".parse().unwrap();
        for resource in crate::builtin::resources() {
            for version in resource.versions.iter().filter(|v| v.served) {
                for object in [json!({}), json!({"metadata": {"name": "x"}, "spec": {}, "status": {}})] {
                    let row = resource.strategy.row(&object, now);
                    let review = version.columns.is_empty() || &*resource.id.resource == "componentstatuses";
                    assert_eq!(row.is_none(), review, "{}", resource.id);
                    if let Some(row) = row {
                        assert_eq!(row.len(), version.columns.len(), "{}", resource.id);
                    }
                }
            }
        }
    }
}
