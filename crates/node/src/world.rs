//! What the nodes' parts share: the fleet, the Behaviors at the moment, and what each machine and pod holds.
//!
//! All of it is in memory and can be made anew from the API; pods that were running before are then started anew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use futures::channel::mpsc;
use homeostat_model::Timestamp;
use homeostat_sdk::Key;
use k8s_openapi::api::core::v1::Pod;
use tokio::sync::Notify;

use crate::admission::HostPort;
use crate::behavior::nodes::{NodeState, state};
use crate::behavior::{Choice, choice::Delays};
use crate::fleet::{Fleet, Machine};
use crate::machines::{Amounts, Holding};
use crate::runtime::Sandbox;
use crate::status::Pending;

/// A pod on a machine.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) uid: String,
    pub(crate) machine: Machine,
    pub(crate) sandbox: Sandbox,
    /// Whether the address is its own, not the node's.
    pub(crate) own_address: bool,
    /// What it was given.
    pub(crate) requests: Amounts,
    /// The machine's ports that it has.
    pub(crate) ports: Vec<HostPort>,
    /// The Behaviors that it was last moved by.
    pub(crate) generation: u64,
    /// The machine's reboots when it was started.
    pub(crate) boots: u64,
    /// Resources that it was told not to get, and the generation that asks for them.
    pub(crate) pending: Option<Box<(Option<i64>, Pending)>>,
    /// How far it was brought.
    pub(crate) settled: Option<Settled>,
}

impl Placed {
    /// Whether it is this pod, and not one of the same name or from before its machine's last reboot.
    pub(crate) fn is_of(&self, pod: &Pod, state: &NodeState) -> bool {
        self.uid == pod.metadata.uid.as_deref().unwrap_or_default() && self.boots == state.boots
    }
}

/// What was last told of a pod.
#[derive(Clone, Debug)]
pub(crate) struct Settled {
    /// The object's version then.
    pub(crate) version: String,
    /// When something happens next.
    pub(crate) next: Option<Timestamp>,
}

/// Pods and what their machines hold.
#[derive(Debug, Default)]
pub(crate) struct Inventory {
    pods: BTreeMap<Key, Placed>,
    machines: BTreeMap<Machine, Holding>,
    /// Pods whose machines are lost, before they were ever placed.
    waiting: BTreeSet<Key>,
}

impl Inventory {
    pub(crate) fn pod(&mut self, key: &Key) -> Option<&mut Placed> {
        self.pods.get_mut(key)
    }

    pub(crate) fn machine(&mut self, machine: Machine) -> &mut Holding {
        self.machines.entry(machine).or_default()
    }

    /// A pod and its machine's holding.
    pub(crate) fn both(&mut self, key: &Key) -> Option<(&mut Placed, &mut Holding)> {
        let placed = self.pods.get_mut(key)?;
        let holding = self.machines.entry(placed.machine).or_default();
        Some((placed, holding))
    }

    pub(crate) fn insert(&mut self, key: Key, placed: Placed) {
        self.waiting.remove(&key);
        let holding = self.machine(placed.machine);
        holding.give(&placed.requests);
        holding.ports.extend(placed.ports.iter().cloned());
        holding.pods.insert(key.clone());
        self.pods.insert(key, placed);
    }

    /// A machine's pods, in order.
    pub(crate) fn on(&self, machine: Machine) -> impl Iterator<Item = (&Key, &Placed)> {
        let keys = self.machines.get(&machine).map(|h| &h.pods).into_iter().flatten();
        keys.filter_map(|key| self.pods.get_key_value(key))
    }

    /// The pod is gone, or over: what it held is free.
    pub(crate) fn remove(&mut self, key: &Key) {
        self.waiting.remove(key);
        let Some(placed) = self.pods.remove(key) else { return };
        let holding = self.machine(placed.machine);
        holding.take_back(&placed.requests);
        holding.pods.remove(key);
        for port in &placed.ports {
            if let Some(i) = holding.ports.iter().position(|p| p == port) {
                holding.ports.swap_remove(i);
            }
        }
        if placed.own_address {
            holding.free_address(placed.sandbox.address);
        }
    }

    /// The pod's machine is lost: it is to come back when that changes.
    pub(crate) fn wait(&mut self, key: &Key) {
        if !self.pods.contains_key(key) {
            self.waiting.insert(key.clone());
        }
    }

    /// All pods, in order.
    pub(crate) fn keys(&self) -> Vec<Key> {
        let mut keys: Vec<Key> = self.pods.keys().chain(&self.waiting).cloned().collect();
        keys.sort();
        keys
    }
}

/// What the nodes' parts share.
pub(crate) struct World {
    pub(crate) fleet: Fleet,
    /// Time between two signs of life of a machine.
    pub(crate) heartbeat: Duration,
    /// Counts changes, with what holds since the last.
    choice: RwLock<(u64, Arc<Choice>)>,
    /// When each machine's Node was made.
    born: RwLock<BTreeMap<Machine, Timestamp>>,
    inventory: Mutex<Inventory>,
    /// Behaviors have changed.
    pub(crate) changed: Notify,
    /// Brings pods back to their kubelets.
    wake: mpsc::UnboundedSender<Key>,
}

impl World {
    /// With the other end of what brings pods back.
    pub(crate) fn new(
        fleet: Fleet,
        heartbeat: Duration,
        delays: Delays,
    ) -> (Self, mpsc::UnboundedReceiver<Key>) {
        let (wake, woken) = mpsc::unbounded();
        let choice = RwLock::new((0, Arc::new(Choice::new(0, delays, []))));
        let world = Self {
            fleet,
            heartbeat,
            choice,
            born: RwLock::default(),
            inventory: Mutex::default(),
            changed: Notify::new(),
            wake,
        };
        (world, woken)
    }

    /// The Behaviors that hold, and the number of changes so far.
    pub(crate) fn choice(&self) -> (u64, Arc<Choice>) {
        self.choice.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on these hold: every pod and every node hears of it.
    pub(crate) fn choose(&self, choice: Choice) {
        {
            let mut held = self.choice.write().unwrap_or_else(PoisonError::into_inner);
            *held = (held.0 + 1, Arc::new(choice));
        }
        for key in self.inventory().keys() {
            // At the end nobody listens any more.
            let _ = self.wake.unbounded_send(key);
        }
        self.changed.notify_one();
    }

    /// Brings a pod back to its kubelet.
    pub(crate) fn wake(&self, key: &Key) {
        let _ = self.wake.unbounded_send(key.clone());
    }

    pub(crate) fn inventory(&self) -> MutexGuard<'_, Inventory> {
        self.inventory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The machine's Node was made at `when`.
    pub(crate) fn born(&self, machine: Machine, when: Timestamp) {
        self.born.write().unwrap_or_else(PoisonError::into_inner).insert(machine, when);
    }

    /// What a machine does at `now`.
    pub(crate) fn state(&self, machine: Machine, now: Timestamp) -> NodeState {
        let (_, choice) = self.choice();
        if choice.is_empty() {
            return NodeState::default();
        }
        let born = self.born.read().unwrap_or_else(PoisonError::into_inner).get(&machine).copied();
        let labels = self.fleet.labels(machine);
        state(&choice, &machine.name(), &labels, born.unwrap_or(Timestamp::UNIX_EPOCH), now)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::machines::requests;
    use crate::runtime::Plan;
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    /// Bytes of memory that the process has touched.
    fn resident() -> usize {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
        pages * 4096
    }

    /// The aim is less than 8 KB for each pod beyond its objects. Other tests run meanwhile; there are enough pods for
    /// that not to matter.
    #[test]
    fn a_running_pod_takes_little_memory() {
        const PODS: usize = 50_000;
        let fleet = Fleet::new(PODS.div_ceil(200).into());
        let machines: Vec<Machine> = fleet.machines().collect();
        let choice = Choice::new(0, Delays::default(), []);
        let mut inventory = Inventory::default();
        let now = Timestamp::from_second(1_700_000_000).unwrap();
        let probe = json!({"tcpSocket": {"port": 1}});
        let mut pod: Pod = serde_json::from_value(json!({"spec": {
        "initContainers": [{"name": "init"}],
        "containers": [
            {"name": "main", "image": "i", "readinessProbe": probe, "livenessProbe": probe,
                "resources": {"requests": {"cpu": "1m", "memory": "1Mi"}}},
            {"name": "side", "image": "j"},
        ]}}))
        .unwrap();
        let before = resident();
        for i in 0..PODS {
            let name = format!("deployment-5d4f8c7b9d-{i:05}");
            let uid = format!("00000000-0000-4000-8000-{i:012}");
            pod.metadata.name = Some(name.clone());
            pod.metadata.uid = Some(uid.clone());
            let machine = machines[i / 200];
            let address = inventory.machine(machine).take_address(machine).unwrap();
            let mut sandbox = Sandbox::new(now, address);
            sandbox.advance(
                &Plan::new(&pod, &choice, |_| true),
                crate::runtime::after(now, Duration::from_secs(9)),
                |_| (0, 0),
            );
            let key = Key::namespaced("default", name);
            let placed = Placed {
                uid,
                machine,
                sandbox,
                own_address: true,
                requests: requests(&pod),
                ports: Vec::new(),
                generation: 0,
                boots: 0,
                pending: None,
                settled: Some(Settled { version: "1234567".to_owned(), next: Some(now) }),
            };
            inventory.insert(key, placed);
        }
        let each = resident().saturating_sub(before) / PODS;
        println!("{each} bytes for each pod of three containers");
        assert!(each < 8192, "{each} bytes for each pod");
        assert_eq!(inventory.keys().len(), PODS);
    }
}
