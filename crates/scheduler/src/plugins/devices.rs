//! Devices of a node and how they lie to each other, as the node's annotation [`TOPOLOGY`] tells; and the choice of
//! some that lie well together.
//!
//! ```json
//! {"nvidia.com/gpu": [{"id": "gpu-0", "numa": 0, "link": "a"}, {"id": "gpu-1", "numa": 0, "link": "a"},
//!                     {"id": "gpu-2", "numa": 1, "link": "b", "healthy": false}]}
//! ```
//!
//! Pure. Invariant: a choice has as many devices as were asked for, all of them free and healthy, or there is none.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

/// The node's annotation with its devices by resource.
pub const TOPOLOGY: &str = "accelerators.homeostat.dev/topology";
/// The pod's annotation with the devices that it got, `{"nvidia.com/gpu": ["gpu-0"]}`. Set when it is bound.
pub const DEVICES: &str = "accelerators.homeostat.dev/devices";
/// The pod's annotation that wants its devices on one `link` or one `numa` node, and nothing else.
pub const TOGETHER: &str = "accelerators.homeostat.dev/together";

/// A device.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Device {
    /// Its id, unique on the node for its resource.
    pub id: String,
    /// The NUMA node that it hangs on.
    #[serde(default)]
    pub numa: Option<u32>,
    /// What connects it to its fast neighbours (NVLink, an XGMI hive): devices with the same value are connected.
    #[serde(default)]
    pub link: Option<String>,
    /// Whether it works.
    #[serde(default = "yes")]
    pub healthy: bool,
}

const fn yes() -> bool {
    true
}

/// A node's devices, by resource.
pub type Devices = BTreeMap<String, Vec<Device>>;
/// The devices that a pod has, by resource.
pub type Assigned = BTreeMap<String, Vec<String>>;

/// How well devices lie together; the least is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Distance {
    /// All on one link.
    Link,
    /// All on one NUMA node.
    Numa,
    /// Anywhere on the node.
    Node,
}

impl Distance {
    /// As [`TOGETHER`] says it; `None` for what it doesn't know.
    pub fn parse(text: &str) -> Option<Self> {
        match text {
            "link" => Some(Self::Link),
            "numa" => Some(Self::Numa),
            "node" => Some(Self::Node),
            _ => None,
        }
    }

    /// The same, for messages.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Link => "on one link",
            Self::Numa => "on one NUMA node",
            Self::Node => "on one node",
        }
    }
}

/// Chosen devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// Their ids, sorted.
    pub ids: Vec<String>,
    /// How they lie.
    pub distance: Distance,
    /// How many free ones are left beside them: the fewer, the less is broken up.
    pub left: usize,
}

/// Chooses `n` of the devices that are not `taken`, as near to each other as can be and at most `within`.
///
/// Of groups that are equally near, the one with the fewest free devices that suffices is taken, so that large groups
/// stay whole.
pub fn choose(devices: &[Device], taken: &BTreeSet<String>, n: usize, within: Distance) -> Option<Choice> {
    let free: Vec<&Device> = devices.iter().filter(|d| d.healthy && !taken.contains(&d.id)).collect();
    let mut links: BTreeMap<&str, Vec<&Device>> = BTreeMap::new();
    let mut numas: BTreeMap<u32, Vec<&Device>> = BTreeMap::new();
    for device in &free {
        if let Some(link) = &device.link {
            links.entry(link).or_default().push(device);
        }
        if let Some(numa) = device.numa {
            numas.entry(numa).or_default().push(device);
        }
    }
    let tightest = |groups: Vec<Vec<&Device>>, distance| {
        let fit = groups.into_iter().filter(|g| g.len() >= n).min_by_key(Vec::len)?;
        let mut ids: Vec<String> = fit.iter().map(|d| d.id.clone()).collect();
        ids.sort();
        ids.truncate(n);
        Some(Choice { ids, distance, left: fit.len() - n })
    };
    if let Some(choice) = tightest(links.values().cloned().collect(), Distance::Link) {
        return Some(choice);
    }
    if within >= Distance::Numa
        && let Some(choice) = tightest(numas.into_values().collect(), Distance::Numa)
    {
        return Some(choice);
    }
    if within < Distance::Node || free.len() < n {
        return None;
    }
    // As few links as can be: the fullest first.
    let of = |d: &Device| d.link.as_deref().and_then(|l| links.get(l)).map_or(0, Vec::len);
    let mut all = free;
    all.sort_by(|a, b| of(b).cmp(&of(a)).then_with(|| a.link.cmp(&b.link)).then_with(|| a.id.cmp(&b.id)));
    let left = all.len() - n;
    let mut ids: Vec<String> = all.into_iter().take(n).map(|d| d.id.clone()).collect();
    ids.sort();
    Some(Choice { ids, distance: Distance::Node, left })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Devices as `id numa link`, `-` for none, `!` for one that doesn't work.
    fn devices(text: &str) -> Vec<Device> {
        let device = |d: &str| {
            let mut parts = d.trim_start_matches('!').split(' ');
            let mut part = || parts.next().unwrap();
            Device {
                id: part().to_owned(),
                numa: part().parse().ok(),
                link: Some(part()).filter(|l| *l != "-").map(str::to_owned),
                healthy: !d.starts_with('!'),
            }
        };
        text.split(", ").map(device).collect()
    }

    #[track_caller]
    fn check(all: &str, taken: &str, n: usize, within: Distance, want: Option<(&str, Distance)>) {
        let taken = taken.split_whitespace().map(str::to_owned).collect();
        let got = choose(&devices(all), &taken, n, within);
        assert_eq!(got.map(|c| (c.ids.join(" "), c.distance)), want.map(|(ids, d)| (ids.to_owned(), d)));
    }

    #[test]
    fn near_devices_are_preferred_and_large_groups_stay_whole() {
        use Distance::{Link, Node, Numa};
        let eight = "0 0 a, 1 0 a, 2 0 a, 3 0 a, 4 1 b, 5 1 b, 6 1 b, 7 1 b";
        check(eight, "", 2, Node, Some(("0 1", Link)));
        check(eight, "5 6", 2, Node, Some(("4 7", Link)));
        check(eight, "5 6", 4, Node, Some(("0 1 2 3", Link)));
        check(eight, "0 5", 4, Node, Some(("1 2 3 4", Node)));
        check(eight, "0 5", 4, Numa, None);
        check(eight, "0 5", 7, Node, None);
        let pairs = "0 0 a, 1 0 a, 2 0 b, 3 0 b, 4 1 c, !5 1 c";
        check(pairs, "", 3, Node, Some(("0 1 2", Numa)));
        check(pairs, "", 3, Link, None);
        check(pairs, "", 1, Node, Some(("4", Link)));
        check("0 - -, 1 - -", "", 2, Node, Some(("0 1", Node)));
        check("0 - -, 1 - -", "", 2, Numa, None);
    }
}
