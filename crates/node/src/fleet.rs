//! The simulated machines: names, addresses and sizes.
//!
//! Everything about a machine follows from its number, so that a thousand of them are a number, not a list.
//! Addresses: machines in 172.16.0.0/12, pods in a /24 for each machine from 10.244.0.0 up.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use homeostat_model::Timestamp;
use k8s_openapi::api::core::v1::{
    DaemonEndpoint, Node, NodeAddress, NodeCondition, NodeDaemonEndpoints, NodeSpec, NodeStatus,
    NodeSystemInfo,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::lifecycle::whole;

/// The version that simulated kubelets report.
const KUBELET: &str = "v1.36.2";

/// `size` machines, named `node-1`, `node-2` …
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fleet {
    size: u32,
}

/// One machine, by its number from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Machine(u32);

impl Fleet {
    /// More machines than this have no addresses left.
    pub const MOST: usize = 10_000;

    /// A fleet of `size` machines, at most [`Fleet::MOST`].
    pub fn new(size: usize) -> Self {
        Self { size: u32::try_from(size.min(Self::MOST)).unwrap_or(0) }
    }

    /// The machines, by number.
    pub fn machines(self) -> impl Iterator<Item = Machine> {
        (0..self.size).map(Machine)
    }

    /// The machine with this name, if it is one of the fleet's.
    pub fn find(self, name: &str) -> Option<Machine> {
        let number: u32 = name.strip_prefix("node-")?.parse().ok()?;
        let machine = Machine(number.checked_sub(1)?);
        (machine.0 < self.size && machine.name() == name).then_some(machine)
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

    /// The lowest pod address that isn't `taken`; `None` when all 253 are.
    pub fn free_address(self, taken: impl Fn(&str) -> bool) -> Option<String> {
        (2..=254).map(|host| Ipv4Addr::from_bits(self.network() + host).to_string()).find(|a| !taken(a))
    }

    /// The Node object that it registers.
    pub fn node(self, now: Timestamp) -> Node {
        let name = self.name();
        let cidr = format!("{}/24", Ipv4Addr::from_bits(self.network()));
        let labels = [
            ("beta.kubernetes.io/arch", arch()),
            ("beta.kubernetes.io/os", "linux"),
            ("kubernetes.io/arch", arch()),
            ("kubernetes.io/hostname", &name),
            ("kubernetes.io/os", "linux"),
        ];
        Node {
            metadata: ObjectMeta {
                name: Some(name.clone()),
                labels: Some(labels.into_iter().map(|(k, v)| (k.to_owned(), v.to_owned())).collect()),
                ..ObjectMeta::default()
            },
            spec: Some(NodeSpec {
                pod_cidr: Some(cidr.clone()),
                pod_cidrs: Some(vec![cidr]),
                provider_id: Some(format!("simulated://{name}")),
                ..NodeSpec::default()
            }),
            status: Some(self.status(now, now)),
        }
    }

    /// The status that it reports: ready since `since`, heard from `now`.
    pub fn status(self, since: Timestamp, now: Timestamp) -> NodeStatus {
        let name = self.name();
        let address = |kind: &str, address: String| NodeAddress { type_: kind.to_owned(), address };
        NodeStatus {
            capacity: Some(capacity()),
            allocatable: Some(capacity()),
            addresses: Some(vec![
                address("InternalIP", self.address().to_string()),
                address("Hostname", name.clone()),
            ]),
            conditions: Some(conditions(since, now)),
            daemon_endpoints: Some(NodeDaemonEndpoints {
                kubelet_endpoint: Some(DaemonEndpoint { port: 10250 }),
            }),
            node_info: Some(NodeSystemInfo {
                architecture: arch().to_owned(),
                boot_id: format!("00000000-0000-4000-8000-{:012x}", self.0),
                container_runtime_version: "simulated://1.0.0".to_owned(),
                kernel_version: "6.12.0-simulated".to_owned(),
                kubelet_version: KUBELET.to_owned(),
                machine_id: format!("{:032x}", self.0 + 1),
                operating_system: "linux".to_owned(),
                os_image: "Homeostat (simulated)".to_owned(),
                system_uuid: format!("00000000-0000-4000-9000-{:012x}", self.0),
                ..NodeSystemInfo::default()
            }),
            ..NodeStatus::default()
        }
    }
}

fn arch() -> &'static str {
    if cfg!(target_arch = "aarch64") { "arm64" } else { "amd64" }
}

fn capacity() -> BTreeMap<String, Quantity> {
    [
        ("cpu", "32"),
        ("memory", "128Gi"),
        ("ephemeral-storage", "256Gi"),
        ("pods", "110"),
        ("hugepages-2Mi", "0"),
    ]
    .into_iter()
    .map(|(k, v)| (k.to_owned(), Quantity(v.to_owned())))
    .collect()
}

fn conditions(since: Timestamp, now: Timestamp) -> Vec<NodeCondition> {
    let condition = |kind: &str, status: &str, reason: &str, message: &str| NodeCondition {
        type_: kind.to_owned(),
        status: status.to_owned(),
        reason: Some(reason.to_owned()),
        message: Some(message.to_owned()),
        last_heartbeat_time: Some(whole(now)),
        last_transition_time: Some(whole(since)),
    };
    vec![
        condition(
            "MemoryPressure",
            "False",
            "KubeletHasSufficientMemory",
            "kubelet has sufficient memory available",
        ),
        condition("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
        condition("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
        condition("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn machines_are_found_by_their_names_alone() {
        let fleet = Fleet::new(3);
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
        for machine in Fleet::new(Fleet::MOST).machines() {
            assert!(seen.insert(machine.network()));
            assert!(Ipv4Addr::from_bits(machine.network()).octets()[0] == 10);
        }
    }

    #[test]
    fn a_full_machine_has_no_address_left() {
        let machine = Machine(0);
        assert_eq!(machine.free_address(|_| false).as_deref(), Some("10.244.0.2"));
        assert_eq!(machine.free_address(|a| a == "10.244.0.2").as_deref(), Some("10.244.0.3"));
        assert_eq!(machine.free_address(|_| true), None);
    }
}
