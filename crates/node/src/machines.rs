//! What each machine holds at a moment: addresses that are taken, resources that are given, images that it has.
//!
//! A machine that holds nothing takes no memory. Every operation is independent of how many pods other machines have.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::Ipv4Addr;
use std::sync::Arc;

use homeostat_model::quantity::Quantity;
use homeostat_sdk::Key;
use k8s_openapi::api::core::v1::{Container, ContainerImage, Pod, ResourceRequirements};
use k8s_openapi::apimachinery::pkg::api::resource;

use crate::admission::HostPort;
use crate::fleet::Machine;

/// Images that a machine keeps, and tells of (kubelet's `nodeStatusMaxImages`).
const MOST_IMAGES: usize = 50;

/// Amounts by resource, in thousandths.
pub(crate) type Amounts = BTreeMap<Arc<str>, i128>;

/// A machine's holdings.
#[derive(Debug, Default)]
pub(crate) struct Holding {
    addresses: [u64; 4],
    used: Amounts,
    images: VecDeque<(Arc<str>, i64)>,
    /// The pods on it.
    pub(crate) pods: BTreeSet<Key>,
    /// Its ports that pods have.
    pub(crate) ports: Vec<HostPort>,
    /// The images have changed since this was last taken.
    pub(crate) new_images: bool,
}

/// Why a machine doesn't take a pod, or more of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lacks {
    /// Which resource.
    pub(crate) resource: Arc<str>,
    pub(crate) requested: i128,
    pub(crate) used: i128,
    pub(crate) capacity: i128,
}

impl Lacks {
    /// The kubelet's text.
    pub(crate) fn text(&self) -> String {
        let Self { resource, requested, used, capacity } = self;
        format!(
            "Node didn't have enough resource: {resource}, requested: {requested}, used: {used}, capacity: {capacity}"
        )
    }
}

impl Holding {
    /// Takes the lowest free address; `None` when all are taken.
    pub(crate) fn take_address(&mut self, machine: Machine) -> Option<Ipv4Addr> {
        let free = |host: u8| self.addresses[usize::from(host) / 64] & (1 << (host % 64)) == 0;
        let host = (2..=254).find(|h| free(*h))?;
        self.addresses[usize::from(host) / 64] |= 1 << (host % 64);
        Some(machine.pod_address(host))
    }

    /// Gives an address back.
    pub(crate) fn free_address(&mut self, address: Ipv4Addr) {
        let host = address.octets()[3];
        self.addresses[usize::from(host) / 64] &= !(1 << (host % 64));
    }

    /// Whether `requests` fit in what is left of `allocatable`, where `instead_of` would be given back.
    pub(crate) fn fits(
        &self,
        requests: &Amounts,
        instead_of: &Amounts,
        allocatable: &BTreeMap<String, resource::Quantity>,
    ) -> Result<(), Lacks> {
        for (name, requested) in requests.iter().filter(|(_, r)| **r > 0) {
            let capacity = allocatable.get(&**name).map_or(0, milli);
            let used = self.used.get(name).copied().unwrap_or(0) - instead_of.get(name).copied().unwrap_or(0);
            if used + requested > capacity {
                let unit = if &**name == "cpu" { 1 } else { 1000 };
                let [requested, used, capacity] = [*requested, used, capacity].map(|n| n / unit);
                return Err(Lacks { resource: name.clone(), requested, used, capacity });
            }
        }
        Ok(())
    }

    /// Gives resources.
    pub(crate) fn give(&mut self, requests: &Amounts) {
        for (name, amount) in requests {
            *self.used.entry(name.clone()).or_default() += amount;
        }
    }

    /// Takes them back.
    pub(crate) fn take_back(&mut self, requests: &Amounts) {
        for (name, amount) in requests {
            if let Some(used) = self.used.get_mut(name) {
                *used -= amount;
            }
        }
    }

    /// Whether an image is here.
    pub(crate) fn has_image(&self, image: &str) -> bool {
        self.images.iter().any(|(name, _)| &**name == image)
    }

    /// An image came; the oldest goes when there are too many.
    pub(crate) fn add_image(&mut self, image: &str, size: i64) {
        if image.is_empty() || self.has_image(image) {
            return;
        }
        if self.images.len() >= MOST_IMAGES {
            self.images.pop_front();
        }
        self.images.push_back((image.into(), size));
        self.new_images = true;
    }

    /// The images as the node's status lists them: the largest first.
    pub(crate) fn images(&self) -> Vec<ContainerImage> {
        let mut images: Vec<&(Arc<str>, i64)> = self.images.iter().collect();
        images.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let image = |(name, size): &&(Arc<str>, i64)| ContainerImage {
            names: Some(vec![name.to_string()]),
            size_bytes: Some(*size),
        };
        images.iter().map(image).collect()
    }
}

fn milli(quantity: &resource::Quantity) -> i128 {
    Quantity::parse(&quantity.0).map_or(0, |q| q.milli())
}

/// What a pod asks for, itself counted as one of `pods`. Source: component-helpers' `PodRequests`.
pub(crate) fn requests(pod: &Pod) -> Amounts {
    requests_with(pod, |c| c.resources.as_ref())
}

/// As [`requests`], with other resources than the spec's.
pub(crate) fn requests_with<'a>(
    pod: &'a Pod,
    of: impl Fn(&'a Container) -> Option<&'a ResourceRequirements>,
) -> Amounts {
    let Some(spec) = &pod.spec else { return Amounts::new() };
    let asked = |c: &'a Container| -> Amounts {
        let requests = of(c).and_then(|r| r.requests.as_ref());
        requests.into_iter().flatten().map(|(k, q)| (k.as_str().into(), milli(q))).collect()
    };
    let mut running = Amounts::new();
    for container in &spec.containers {
        add(&mut running, &asked(container));
    }
    // While an init container runs, the sidecars before it do too.
    let (mut sidecars, mut highest) = (Amounts::new(), Amounts::new());
    for container in spec.init_containers.iter().flatten() {
        if container.restart_policy.as_deref() == Some("Always") {
            add(&mut sidecars, &asked(container));
            raise(&mut highest, &sidecars);
        } else {
            let mut now = sidecars.clone();
            add(&mut now, &asked(container));
            raise(&mut highest, &now);
        }
    }
    add(&mut running, &sidecars);
    raise(&mut running, &highest);
    for (name, quantity) in spec.overhead.iter().flatten() {
        *running.entry(name.as_str().into()).or_default() += milli(quantity);
    }
    running.insert("pods".into(), 1000);
    running
}

fn add(to: &mut Amounts, more: &Amounts) {
    for (name, amount) in more {
        *to.entry(name.clone()).or_default() += amount;
    }
}

fn raise(to: &mut Amounts, at_least: &Amounts) {
    for (name, amount) in at_least {
        let has = to.entry(name.clone()).or_default();
        *has = (*has).max(*amount);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::Fleet;
    use serde_json::json;

    #[test]
    fn addresses_are_given_once_and_again_when_free() {
        let (mut holding, machine) = (Holding::default(), Fleet::new(1.into()).machines().next().unwrap());
        let all: Vec<Ipv4Addr> = std::iter::from_fn(|| holding.take_address(machine)).collect();
        assert_eq!((all.len(), all[0], all[252]), (253, [10, 244, 0, 2].into(), [10, 244, 0, 254].into()));
        holding.free_address(all[70]);
        assert_eq!(holding.take_address(machine), Some(all[70]));
        assert_eq!(holding.take_address(machine), None);
    }

    #[test]
    fn what_does_not_fit_is_told_as_kubelets_do() {
        let fleet = Fleet::new(crate::NodeOptions::parse(1, "cpu=2,pods=2,nvidia.com/gpu=1", "").unwrap());
        let allocatable = fleet.capacity();
        let pod = |cpu: &str, gpu: &str| -> Amounts {
            let requests = json!({"cpu": cpu, "nvidia.com/gpu": gpu});
            let containers = json!([{"name": "c", "resources": {"requests": requests}}]);
            requests_of(json!({"containers": containers}))
        };
        let mut holding = Holding::default();
        let first = pod("1500m", "1");
        assert_eq!(holding.fits(&first, &Amounts::new(), &allocatable), Ok(()));
        holding.give(&first);
        let lacks = |holding: &Holding, p: &Amounts| {
            holding.fits(p, &Amounts::new(), &allocatable).map_err(|l| l.text()).unwrap_err()
        };
        assert_eq!(
            lacks(&holding, &pod("600m", "0")),
            "Node didn't have enough resource: cpu, requested: 600, used: 1500, capacity: 2000"
        );
        assert_eq!(
            lacks(&holding, &pod("0", "1")),
            "Node didn't have enough resource: nvidia.com/gpu, requested: 1, used: 1, capacity: 1"
        );
        assert_eq!(holding.fits(&pod("2", "1"), &first, &allocatable), Ok(()));
        holding.take_back(&first);
        assert_eq!(holding.fits(&pod("2", "1"), &Amounts::new(), &allocatable), Ok(()));
    }

    fn requests_of(spec: serde_json::Value) -> Amounts {
        requests(&serde_json::from_value(json!({"spec": spec})).unwrap())
    }

    #[test]
    fn init_containers_count_with_the_sidecars_before_them() {
        let c = |name: &str, cpu: &str, policy: Option<&str>| json!({"name": name, "restartPolicy": policy, "resources": {"requests": {"cpu": cpu}}});
        let spec = json!({
            "initContainers": [c("a", "1", None), c("s", "100m", Some("Always")), c("b", "2", None)],
            "containers": [c("m", "500m", None)], "overhead": {"cpu": "10m"}
        });
        let all = requests_of(spec);
        assert_eq!((all["cpu"], all["pods"]), (2110, 1000));
    }

    #[test]
    fn images_are_bounded() {
        let mut holding = Holding::default();
        for i in 0..60 {
            holding.add_image(&format!("image:{i}"), i);
        }
        holding.add_image("image:59", 1);
        let images = holding.images();
        assert_eq!((images.len(), images[0].size_bytes), (50, Some(59)));
        assert!(!holding.has_image("image:9") && holding.has_image("image:10"));
    }
}
