//! Who the controllers are: their names, their service accounts, and what they may do beyond the reference's roles.
//!
//! The reference's roles (`system:controller:…`) are written for clients that replace whole objects; ours patch, and
//! make a storage class, so some verbs are missing there. Those are granted here, as one more role for each controller.
//! Invariant: nothing is granted that the reference's role for the account has already.

use homeostat_sdk::rbac::{grant, rule};
use serde_json::Value;

/// The namespace of the controllers' service accounts.
pub const NAMESPACE: &str = "kube-system";

/// What may be done: group, resource and verbs.
pub type Right = (&'static str, &'static str, &'static [&'static str]);

/// A controller.
#[derive(Clone, Copy, Debug)]
pub struct Controller {
    /// Name, as in kube-controller-manager.
    pub name: &'static str,
    /// The name that older releases used.
    pub alias: &'static str,
    /// The service account that it acts as, the reference's; in [`NAMESPACE`]. `None`: it acts as the user
    /// `system:kube-controller-manager`, as the controller that makes the accounts' tokens does.
    pub account: Option<&'static str>,
    /// What it needs beyond the reference's role for the account.
    pub beyond: &'static [Right],
}

const fn of(name: &'static str, alias: &'static str, account: &'static str) -> Controller {
    Controller { name, alias, account: Some(account), beyond: &[] }
}

impl Controller {
    const fn and(self, beyond: &'static [Right]) -> Self {
        Self { beyond, ..self }
    }
}

/// The controllers that there are, by name.
pub const CONTROLLERS: &[Controller] = &[
    of("certificatesigningrequest-approving-controller", "csrapproving", "certificate-controller"),
    of("certificatesigningrequest-cleaner-controller", "csrcleaner", "certificate-controller"),
    of("certificatesigningrequest-signing-controller", "csrsigning", "certificate-controller"),
    of("clusterrole-aggregation-controller", "clusterrole-aggregation", "clusterrole-aggregation-controller"),
    of("cronjob-controller", "cronjob", "cronjob-controller").and(&[(
        "batch",
        "cronjobs/status",
        &["patch"],
    )]),
    of("daemonset-controller", "daemonset", "daemon-set-controller").and(&[(
        "apps",
        "daemonsets/status",
        &["patch"],
    )]),
    of("deployment-controller", "deployment", "deployment-controller")
        .and(&[("apps", "deployments", &["patch"]), ("apps", "deployments/status", &["patch"])]),
    of("disruption-controller", "disruption", "disruption-controller").and(&[(
        "policy",
        "poddisruptionbudgets/status",
        &["patch"],
    )]),
    of("endpoints-controller", "endpoint", "endpoint-controller"),
    of("endpointslice-controller", "endpointslice", "endpointslice-controller"),
    of("endpointslice-mirroring-controller", "endpointslicemirroring", "endpointslicemirroring-controller"),
    of("ephemeral-volume-controller", "ephemeral-volume", "ephemeral-volume-controller"),
    of("garbage-collector-controller", "garbagecollector", "generic-garbage-collector"),
    of("horizontal-pod-autoscaler-controller", "horizontalpodautoscaling", "horizontal-pod-autoscaler")
        .and(&[("autoscaling", "horizontalpodautoscalers/status", &["patch"])]),
    of("job-controller", "job", "job-controller").and(&[("batch", "jobs/status", &["patch"])]),
    of("namespace-controller", "namespace", "namespace-controller").and(&[(
        "",
        "namespaces/status",
        &["patch"],
    )]),
    of("node-lifecycle-controller", "nodelifecycle", "node-controller"),
    of("persistentvolume-binder-controller", "persistentvolume-binder", "persistent-volume-binder").and(&[(
        "storage.k8s.io",
        "storageclasses",
        &["create"],
    )]),
    of("persistentvolume-expander-controller", "persistentvolume-expander", "expand-controller"),
    of("persistentvolume-protection-controller", "pv-protection", "pv-protection-controller").and(&[(
        "",
        "persistentvolumes",
        &["patch"],
    )]),
    of("persistentvolumeclaim-protection-controller", "pvc-protection", "pvc-protection-controller")
        .and(&[("", "persistentvolumeclaims", &["patch"])]),
    of("pod-garbage-collector-controller", "podgc", "pod-garbage-collector"),
    of("replicaset-controller", "replicaset", "replicaset-controller").and(&[(
        "apps",
        "replicasets/status",
        &["patch"],
    )]),
    of("replicationcontroller-controller", "replicationcontroller", "replication-controller").and(&[(
        "",
        "replicationcontrollers/status",
        &["patch"],
    )]),
    of("resourcequota-controller", "resourcequota", "resourcequota-controller").and(&[(
        "",
        "resourcequotas/status",
        &["patch"],
    )]),
    of("root-ca-certificate-publisher-controller", "root-ca-cert-publisher", "root-ca-cert-publisher"),
    of("serviceaccount-controller", "serviceaccount", "service-account-controller"),
    Controller {
        name: "serviceaccount-token-controller",
        alias: "serviceaccount-token",
        account: None,
        beyond: &[],
    },
    of("statefulset-controller", "statefulset", "statefulset-controller")
        .and(&[("apps", "statefulsets/status", &["patch"]), ("", "persistentvolumeclaims", &["patch"])]),
    of("taint-eviction-controller", "taint-eviction", "node-controller"),
    of("ttl-after-finished-controller", "ttl-after-finished", "ttl-after-finished-controller"),
    of("ttl-controller", "ttl", "ttl-controller"),
    of(
        "volumeattributesclass-protection-controller",
        "volumeattributesclass-protection-controller",
        "volumeattributesclass-protection-controller",
    ),
];

/// The roles that controllers need beyond the reference's, and their bindings: for a cluster that runs these
/// controllers. A role is named `homeostat:controller:` and the controller's name.
pub fn roles() -> Vec<Value> {
    let accounts = CONTROLLERS.iter().filter_map(|c| Some((c, c.account?)));
    let beyond = accounts.filter(|(c, _)| !c.beyond.is_empty());
    beyond
        .flat_map(|(c, account)| {
            let rules: Vec<_> =
                c.beyond.iter().map(|(group, resource, verbs)| rule(group, resource, verbs)).collect();
            grant(&format!("homeostat:controller:{}", c.name), NAMESPACE, account, &rules)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted_and_stand_once() {
        assert!(CONTROLLERS.windows(2).all(|w| w[0].name < w[1].name));
    }
}
