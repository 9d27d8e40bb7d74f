//! NodeDeclaredFeatures: a pod that needs a feature of its node's kubelet goes only where the kubelet declares it
//! (KEP-5328).
//!
//! Which features a pod needs follows from its spec: of those that kubelets of 1.36 declare, two matter here, the
//! others only where a running pod is changed.

use crate::framework::{Cycle, CycleState, Event, Filter, Plugin, PreFilter, PreFiltered, Status};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};

/// The plugin.
#[derive(Debug)]
pub struct NodeDeclaredFeatures;

const RESTARTS_ALL: &str = "RestartAllContainersOnContainerExits";
const USERS_OF_HOST_NETWORK: &str = "UserNamespacesHostNetworkSupport";

/// The features that a pod needs.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Needs(Vec<&'static str>);

fn needs(pod: &PodInfo) -> Needs {
    let Some(spec) = pod.spec() else { return Needs(Vec::new()) };
    let containers = spec.containers.iter().chain(spec.init_containers.iter().flatten());
    let mut rules = containers.flat_map(|c| c.restart_policy_rules.iter().flatten());
    let restarts = rules.any(|r| r.action == "RestartAllContainers");
    let users = spec.host_network == Some(true) && spec.host_users == Some(false);
    let all = [(RESTARTS_ALL, restarts), (USERS_OF_HOST_NETWORK, users)];
    Needs(all.into_iter().filter_map(|(feature, needed)| needed.then_some(feature)).collect())
}

impl Plugin for NodeDeclaredFeatures {
    fn name(&self) -> &'static str {
        "NodeDeclaredFeatures"
    }

    fn helps(&self, event: &Event, _: &PodInfo, _: &Snapshot) -> bool {
        match event {
            Event::PodUpdated { old, new } => needs(old) != needs(new),
            _ => event.node(|c| c.features).is_some(),
        }
    }

    fn pre_filter(&self) -> Option<&dyn PreFilter> {
        Some(self)
    }

    fn filter(&self) -> Option<&dyn Filter> {
        Some(self)
    }
}

impl PreFilter for NodeDeclaredFeatures {
    fn pre_filter(
        &self,
        _: &Cycle<'_>,
        state: &mut CycleState,
        pod: &PodInfo,
    ) -> Result<PreFiltered, Status> {
        let needs = needs(pod);
        if needs.0.is_empty() {
            return Ok(PreFiltered::Skip);
        }
        state.write(needs);
        Ok(PreFiltered::Any)
    }
}

impl Filter for NodeDeclaredFeatures {
    fn filter(&self, _: &Cycle<'_>, state: &CycleState, _: &PodInfo, node: &NodeInfo) -> Result<(), Status> {
        let Some(Needs(needs)) = state.read::<Needs>() else { return Ok(()) };
        let status = node.node.status.as_ref();
        let declared = status.and_then(|s| s.declared_features.as_deref()).unwrap_or_default();
        if needs.iter().all(|need| declared.iter().any(|d| d == need)) {
            return Ok(());
        }
        Err(Status::unresolvable("node(s) didn't match Pod's required features"))
    }
}
