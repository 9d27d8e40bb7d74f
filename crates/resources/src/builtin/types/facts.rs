//! How each built-in type differs in the small things: generation, PUT without a version, answers to DELETE, status.
//!
//! Lists, so that one look shows who is special. Source: the registry strategies of the reference.

use homeostat_model::GroupResource;

use crate::strategy::Propagation;

/// What becomes of a status that comes with a create.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// The type has none, or no subresource for it.
    None,
    /// It is dropped, and only /status changes it.
    Dropped,
    /// A create keeps it; an update of the object doesn't change it (nodes, whose kubelets create them).
    KeptOnCreate,
}

/// The small differences.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    pub(super) generation: bool,
    pub(super) create_on_update: bool,
    pub(super) unconditional_update: bool,
    pub(super) delete_returns_object: bool,
    pub(super) propagation: Propagation,
    pub(super) status: Status,
    /// /status leaves labels, annotations, finalizers and owners as they are.
    pub(super) status_keeps_metadata: bool,
}

/// Types whose `metadata.generation` counts changes of the spec.
const GENERATION: &[&str] = &[
    "pods",
    "podtemplates",
    "replicationcontrollers",
    "daemonsets.apps",
    "deployments.apps",
    "replicasets.apps",
    "statefulsets.apps",
    "cronjobs.batch",
    "jobs.batch",
    "ingressclasses.networking.k8s.io",
    "ingresses.networking.k8s.io",
    "networkpolicies.networking.k8s.io",
    "poddisruptionbudgets.policy",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "priorityclasses.scheduling.k8s.io",
    "endpointslices.discovery.k8s.io",
    "deviceclasses.resource.k8s.io",
    "resourceslices.resource.k8s.io",
    "flowschemas.flowcontrol.apiserver.k8s.io",
    "prioritylevelconfigurations.flowcontrol.apiserver.k8s.io",
];

/// Types that a PUT to an absent name creates.
const CREATE_ON_UPDATE: &[&str] = &[
    "endpoints",
    "events",
    "events.events.k8s.io",
    "limitranges",
    "services",
    "leases.coordination.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "clusterroles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
];

/// Types whose PUT must carry a resourceVersion.
const CONDITIONAL_UPDATE: &[&str] = &[
    "apiservices.apiregistration.k8s.io",
    "poddisruptionbudgets.policy",
    "csidrivers.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "csistoragecapacities.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
    "mutatingwebhookconfigurations.admissionregistration.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
    "validatingwebhookconfigurations.admissionregistration.k8s.io",
    "customresourcedefinitions.apiextensions.k8s.io",
    "leases.coordination.k8s.io",
    "runtimeclasses.node.k8s.io",
];

/// Types whose DELETE answers the object.
const RETURNS_OBJECT: &[&str] = &[
    "persistentvolumeclaims",
    "persistentvolumes",
    "pods",
    "podtemplates",
    "resourcequotas",
    "serviceaccounts",
    "services",
    "csidrivers.storage.k8s.io",
    "csinodes.storage.k8s.io",
    "storageclasses.storage.k8s.io",
    "volumeattachments.storage.k8s.io",
    "volumeattributesclasses.storage.k8s.io",
    "deviceclasses.resource.k8s.io",
    "resourceclaims.resource.k8s.io",
    "resourceclaimtemplates.resource.k8s.io",
    "resourceslices.resource.k8s.io",
];

/// Types whose status subresource leaves metadata alone.
const STATUS_KEEPS_METADATA: &[&str] = &[
    "resourceclaims.resource.k8s.io",
    "servicecidrs.networking.k8s.io",
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "volumeattachments.storage.k8s.io",
];

/// The facts of a type; `status`: whether it has that subresource.
pub(super) fn facts(id: &GroupResource, status: bool) -> Facts {
    let name = id.to_string();
    let is = |list: &[&str]| list.contains(&&*name);
    Facts {
        generation: is(GENERATION),
        create_on_update: is(CREATE_ON_UPDATE),
        unconditional_update: !is(CONDITIONAL_UPDATE),
        delete_returns_object: is(RETURNS_OBJECT),
        propagation: match &*name {
            // Both are older than garbage collection; their first clients expected children to stay.
            "jobs.batch" | "replicationcontrollers" => Propagation::Orphan,
            _ => Propagation::Background,
        },
        status: match (&*name, status) {
            ("nodes", _) => Status::KeptOnCreate,
            (_, true) => Status::Dropped,
            (_, false) => Status::None,
        },
        status_keeps_metadata: is(STATUS_KEEPS_METADATA),
    }
}
