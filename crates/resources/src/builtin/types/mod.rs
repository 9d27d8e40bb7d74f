//! The strategies of the built-in types, one file per family, and the table that says whose is whose.
//!
//! A strategy says only what makes its type special; [`BuiltIn`] wraps it and does what holds for all: the form in
//! which Go writes objects, the status subresource, and tables. The small differences are lists in [`facts`].

mod account;
mod admission;
mod apps;
mod autoscaling;
mod batch;
mod certificate;
mod config;
mod cron;
mod event;
mod facts;
mod limits;
mod namespace;
mod network;
mod node;
pub(crate) mod pod;
mod policy;
mod rbac;
mod service;
mod small;
pub(crate) mod storage;
mod workloads;
mod wrapper;

use std::sync::Arc;

use homeostat_model::{GroupResource, GroupVersion};

use crate::strategy::Strategy;
use wrapper::BuiltIn;

/// The strategy of a built-in resource; `definitions` are its versions with the names of their schemas.
pub(super) fn strategy(
    id: &GroupResource,
    definitions: Vec<(GroupVersion, String)>,
    status: bool,
) -> Arc<dyn Strategy> {
    let inner = inner(id);
    Arc::new(BuiltIn { definitions, inner, facts: facts::facts(id, status), row: super::tables::row(id) })
}

fn inner(id: &GroupResource) -> Box<dyn Strategy> {
    match (&*id.group, &*id.resource) {
        ("", "configmaps") => Box::new(config::ConfigMaps),
        ("", "endpoints") => Box::new(service::Endpoints),
        ("", "events") => Box::new(event::Events { new_api: false }),
        ("", "limitranges") => Box::new(limits::LimitRanges),
        ("", "namespaces") => Box::new(namespace::Namespaces),
        ("", "nodes") => Box::new(node::Nodes),
        ("", "persistentvolumeclaims") => Box::new(storage::Claims),
        ("", "persistentvolumes") => Box::new(storage::Volumes),
        ("", "pods") => Box::new(pod::Pods),
        ("", "podtemplates") => Box::new(account::PodTemplates),
        ("", "replicationcontrollers") => Box::new(account::ReplicationControllers),
        ("", "resourcequotas") => Box::new(limits::ResourceQuotas),
        ("", "secrets") => Box::new(config::Secrets),
        ("", "serviceaccounts") => Box::new(account::ServiceAccounts),
        ("", "services") => Box::new(service::Services),
        ("admissionregistration.k8s.io", kind) => match kind {
            "mutatingadmissionpolicies" => Box::new(admission::Policies { mutating: true }),
            "validatingadmissionpolicies" => Box::new(admission::Policies { mutating: false }),
            "mutatingadmissionpolicybindings" => Box::new(admission::PolicyBindings { mutating: true }),
            "validatingadmissionpolicybindings" => Box::new(admission::PolicyBindings { mutating: false }),
            "mutatingwebhookconfigurations" => Box::new(admission::Webhooks { mutating: true }),
            _ => Box::new(admission::Webhooks { mutating: false }),
        },
        ("apiextensions.k8s.io", _) => Box::new(crate::crd::CrdStrategy),
        ("apiregistration.k8s.io", _) => Box::new(small::ApiServices),
        ("apps", "controllerrevisions") => Box::new(apps::ControllerRevisions),
        ("apps", "daemonsets") => Box::new(apps::DaemonSets),
        ("apps", "deployments") => Box::new(apps::Deployments),
        ("apps", "replicasets") => Box::new(apps::ReplicaSets),
        ("apps", "statefulsets") => Box::new(apps::StatefulSets),
        ("autoscaling", _) => Box::new(autoscaling::Autoscalers),
        ("batch", "cronjobs") => Box::new(batch::CronJobs),
        ("batch", "jobs") => Box::new(batch::Jobs),
        ("certificates.k8s.io", _) => Box::new(certificate::SigningRequests),
        ("coordination.k8s.io", _) => Box::new(small::Leases),
        ("discovery.k8s.io", _) => Box::new(network::EndpointSlices),
        ("events.k8s.io", _) => Box::new(event::Events { new_api: true }),
        ("flowcontrol.apiserver.k8s.io", _) => Box::new(small::FlowControl),
        ("networking.k8s.io", "ingressclasses") => Box::new(network::IngressClasses),
        ("networking.k8s.io", "ingresses") => Box::new(network::Ingresses),
        ("networking.k8s.io", "ipaddresses") => Box::new(network::IpAddresses),
        ("networking.k8s.io", "networkpolicies") => Box::new(network::NetworkPolicies),
        ("networking.k8s.io", "servicecidrs") => Box::new(network::ServiceCidrs),
        ("node.k8s.io", _) => Box::new(small::RuntimeClasses),
        ("policy", _) => Box::new(policy::DisruptionBudgets),
        ("rbac.authorization.k8s.io", "clusterrolebindings") => {
            Box::new(rbac::Bindings { namespaced: false })
        }
        ("rbac.authorization.k8s.io", "clusterroles") => Box::new(rbac::Roles { namespaced: false }),
        ("rbac.authorization.k8s.io", "rolebindings") => Box::new(rbac::Bindings { namespaced: true }),
        ("rbac.authorization.k8s.io", "roles") => Box::new(rbac::Roles { namespaced: true }),
        ("resource.k8s.io", _) => Box::new(small::Devices),
        ("scheduling.k8s.io", _) => Box::new(small::PriorityClasses),
        ("storage.k8s.io", "csidrivers") => Box::new(storage::CsiDrivers),
        ("storage.k8s.io", "csinodes") => Box::new(storage::CsiNodes),
        ("storage.k8s.io", "storageclasses") => Box::new(storage::StorageClasses),
        ("storage.k8s.io", "volumeattachments") => Box::new(storage::VolumeAttachments),
        ("storage.k8s.io", "volumeattributesclasses") => Box::new(storage::AttributesClasses),
        _ => Box::new(crate::Plain),
    }
}
