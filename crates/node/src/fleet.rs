//! The simulated machines: names, addresses and sizes.
//!
//! Everything about a machine follows from its number and the fleet's options, so that a thousand of them are a number,
//! not a list. What a machine holds at a moment (pods, images) is in `machines`.
//! Addresses: machines in 172.16.0.0/12, pods in a /24 for each machine from 10.244.0.0 up.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use homeostat_model::Timestamp;
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus,
    NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::accelerators;
use crate::behavior::nodes::NodeState;
use crate::options::NodeOptions;
use crate::status::whole;

/// The version that simulated kubelets report.
const KUBELET: &str = "v1.36.2";

/// Machines, named `node-1`, `node-2` … Cheap to clone.
#[derive(Clone, Debug)]
pub struct Fleet {
    size: u32,
    options: Arc<NodeOptions>,
}

/// One machine, by its number from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Machine(u32);

impl Fleet {
    /// More machines than this have no addresses left.
    pub const MOST: usize = 10_000;

    /// The machines of these options, at most [`Fleet::MOST`].
    pub fn new(options: NodeOptions) -> Self {
        let size = u32::try_from(options.count.min(Self::MOST)).unwrap_or(0);
        Self { size, options: Arc::new(options) }
    }

    /// The machines, by number.
    pub fn machines(&self) -> impl Iterator<Item = Machine> + use<> {
        (0..self.size).map(Machine)
    }

    /// The machine with this name, if it is one of the fleet's.
    pub fn find(&self, name: &str) -> Option<Machine> {
        let number: u32 = name.strip_prefix("node-")?.parse().ok()?;
        let machine = Machine(number.checked_sub(1)?);
        (machine.0 < self.size && machine.name() == name).then_some(machine)
    }

    /// A machine's labels.
    pub fn labels(&self, machine: Machine) -> BTreeMap<String, String> {
        let name = machine.name();
        let fixed = [
            ("beta.kubernetes.io/arch", arch()),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", arch()),
            ("kubernetes.io/hostname", &name),
            ("kubernetes.io/os", "linux"),
        ];
        let mut labels: BTreeMap<String, String> =
            fixed.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        for (key, values) in &self.options.labels {
            let turn = machine.0 as usize % values.len().max(1);
            labels.insert(key.clone(), values.get(turn).cloned().unwrap_or_default());
        }
        labels
    }

    /// What a machine has.
    pub fn capacity(&self) -> BTreeMap<String, Quantity> {
        self.options.capacity.iter().map(|(k, v)| (k.clone(), Quantity(v.clone()))).collect()
    }

    /// What of it pods may have: all but the unhealthy devices.
    pub fn allocatable(&self, state: &NodeState) -> BTreeMap<String, Quantity> {
        let mut all = self.capacity();
        for (name, unhealthy) in &state.unhealthy {
            let Some(quantity) = all.get_mut(name) else { continue };
            if let Ok(have) = homeostat_model::quantity::Quantity::parse(&quantity.0) {
                quantity.0 = (have.value() - i128::from((*unhealthy).max(0))).max(0).to_string();
            }
        }
        all
    }

    /// A machine's annotations: how its devices lie, and which of them work.
    pub fn annotations(&self, state: &NodeState) -> Option<BTreeMap<String, String>> {
        let topology = accelerators::topology(&self.options.capacity, state)?;
        Some([(accelerators::TOPOLOGY.to_owned(), topology)].into())
    }

    /// The Node object that a machine registers.
    pub fn node(&self, machine: Machine, now: Timestamp) -> Node {
        let name = machine.name();
        let cidr = format!("{}/24", Ipv4Addr::from_bits(machine.network()));
        Node {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some(self.labels(machine)),
                annotations: self.annotations(&NodeState::default()),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec {
                pod_cidr: Some(cidr.clone()),
                pod_cidrs: Some(vec![cidr]),
                provider_id: Some(format!("simulated://{name}")),
                ..NodeSpec::default()
            }),
            status: Some(self.status(machine, &NodeState::default(), &[], now)),
        }
    }

    /// The status that a machine reports; `old` are its conditions as they are stored.
    pub fn status(
        &self,
        machine: Machine,
        state: &NodeState,
        old: &[NodeCondition],
        now: Timestamp,
    ) -> NodeStatus {
        let address = |kind: &str, address: String| NodeAddress { type_: kind.to_owned(), address };
        let number = machine.0;
        NodeStatus {
            capacity: Some(self.capacity()),
            allocatable: Some(self.allocatable(state)),
            addresses: Some(vec![
                address("InternalIP", machine.address().to_string()),
                address("Hostname", machine.name()),
            ]),
            conditions: Some(conditions(state, old, now)),
            daemon_endpoints: Some(NodeDaemonEndpoints {
                kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }),
            }),
            node_info: Some(NodeSystemInfo {
                architecture: arch().to_owned(),
                boot_id: format!("00000000-0000-4000-{:04x}-{number:012x}", 0x8000 + state.boots % 0x1000),
                container_runtime_version: "simulated://1.0.0".to_owned(),
                kernel_version: "6.12.0-simulated".to_owned(),
                kubelet_version: KUBELET.to_owned(),
                machine_id: format!("{:032x}", number + 1),
                operating_system: "linux".to_owned(),
                os_image: "Homeostat (simulated)".to_owned(),
                system_uuid: format!("00000000-0000-4000-9000-{number:012x}"),
                ..NodeSystemInfo::default()
            }),
            ..NodeStatus::default()
        }
    }
}

impl Machine {
    /// Its name.
    pub fn name(self) -> String {
        format!("node-{}", self.0 + 1)
    }

    /// Its own address.
    pub fn address(self) -> Ipv4Addr {
        Ipv4Addr::from_bits(Ipv4Addr::new(172, 18, 0, 2).to_bits() + self.0)
    }

    fn network(self) -> u32 {
        // 10.244.0.0 has room for 3072 networks; the rest begin at 10.128.0.0.
        const FIRST: u32 = 3072;
        match self.0.checked_sub(FIRST) {
            None => Ipv4Addr::new(10, 244, 0, 0).to_bits() + (self.0 << 8),
            Some(rest) => Ipv4Addr::new(10, 128, 0, 0).to_bits() + (rest << 8),
        }
    }

    /// The address of its pod number `host`, from 2 to 254.
    pub(crate) fn pod_address(self, host: u8) -> Ipv4Addr {
        Ipv4Addr::from_bits(self.network() + u32::from(host))
    }
}

fn arch() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

/// Its own conditions, then what the behavior says, each with the time of its last transition.
fn conditions(state: &NodeState, old: &[NodeCondition], now: Timestamp) -> Vec<NodeCondition> {
    let own = [
        ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
        ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ];
    let said = state.conditions.iter().map(|c| (&*c.kind, &*c.status, &*c.reason, &*c.message));
    let own = own.into_iter().filter(|(kind, ..)| !state.conditions.iter().any(|c| c.kind == *kind));
    let mut all: Vec<_> = own.collect();
    // Ready stays the last, as kubelets report it.
    all.splice(all.len().saturating_sub(1)..all.len().saturating_sub(1), said);
    let condition = |(kind, status, reason, message): (&str, &str, &str, &str)| {
        let since = old.iter().find(|c| c.type_ == kind && c.status == status);
        let since = since.and_then(|c| c.last_transition_time.clone());
        NodeCondition {
            type_: kind.to_owned(),
            status: status.to_owned(),
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_heartbeat_time: Some(whole(now)),
            last_transition_time: since.or_else(|| Some(whole(now))),
        }
    };
    all.into_iter().map(condition).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_found_by_their_names_alone() {
        let fleet = Fleet::new(3.into());
        for (name, found) in [
            ("node-1", true),
            ("node-3", true),
            ("node-4", false),
            ("node-0", false),
            ("node-01", false),
            ("db-1", false),
        ] {
            assert_eq!(fleet.find(name).is_some(), found, "{name}");
        }
    }

    #[test]
    fn networks_never_overlap() {
        let mut seen = std::collections::BTreeSet::new();
        for machine in Fleet::new(Fleet::MOST.into()).machines() {
            assert!(seen.insert(machine.network()));
            assert!(Ipv4Addr::from_bits(machine.network()).octets()[0] == 10);
        }
    }

    #[test]
    fn labels_go_round_and_unhealthy_devices_cannot_be_given() {
        let fleet = Fleet::new(NodeOptions::parse(3, "nvidia.com/gpu=8", "zone=a|b").unwrap());
        let zones: Vec<String> = fleet.machines().map(|m| fleet.labels(m)["zone"].clone()).collect();
        assert_eq!(zones, ["a", "b", "a"]);
        let sick = NodeState { unhealthy: [("nvidia.com/gpu".into(), 3)].into(), ..NodeState::default() };
        assert_eq!(fleet.allocatable(&sick)["nvidia.com/gpu"].0, "5");
        assert_eq!(fleet.capacity()["nvidia.com/gpu"].0, "8");
    }

    #[test]
    fn conditions_keep_the_time_of_their_transition() {
        let at = |s: i64| Timestamp::from_second(1_700_000_000 + s).unwrap();
        let first = conditions(&NodeState::default(), &[], at(0));
        let again = conditions(&NodeState::default(), &first, at(60));
        assert!(again.iter().all(|c| c.last_transition_time == Some(whole(at(0)))));
        let sick = crate::behavior::Condition {
            kind: "Ready".into(),
            status: "False".into(),
            ..crate::behavior::Condition::default()
        };
        let state = NodeState { conditions: vec![sick], ..NodeState::default() };
        let turned = conditions(&state, &first, at(60));
        let ready: Vec<_> = turned.iter().filter(|c| c.type_ == "Ready").collect();
        assert_eq!((ready.len(), ready[0].status.as_str()), (1, "False"));
        assert_eq!(ready[0].last_transition_time, Some(whole(at(60))));
    }
}
