//! How fast pods may be driven out, by what is left of each zone.
//!
//! That many nodes fall silent at once says more about the way to them than about them. So a zone gives up its nodes
//! one after the other, more slowly where most of it is silent, and not at all where nothing anywhere is ready: then it
//! is the control plane that is cut off. The numbers are the reference's.
//!
//! Nodes are entered by name, so that hearing of one twice is hearing of it once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::Node;
use tokio::time::Instant;

use super::lifecycle::status_of;

/// Time from one node to the next in a zone of which enough is ready.
const NORMAL: Duration = Duration::from_secs(10);
/// The same in a large zone of which most is not.
const REDUCED: Duration = Duration::from_secs(100);
/// A zone of no more nodes gives up none while most of it isn't ready.
const LARGE: usize = 50;
/// So many percent of a zone are most of it, from three nodes on.
const MOST: usize = 55;
const EXCLUDED: &str = "node.kubernetes.io/exclude-disruption";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Normal,
    /// Most of the zone isn't ready.
    Partial,
    /// Nothing of it is.
    Full,
}

#[derive(Debug, Default)]
struct Zone {
    ready: usize,
    unready: usize,
    /// When it gave up a node, or could first have done so at its present pace.
    last: Option<Instant>,
}

impl Zone {
    fn is_empty(&self) -> bool {
        self.ready + self.unready == 0
    }

    fn state(&self) -> State {
        let all = self.ready + self.unready;
        match (self.ready, self.unready) {
            (0, 1..) => State::Full,
            (_, 3..) if 100 * self.unready >= MOST * all => State::Partial,
            _ => State::Normal,
        }
    }

    /// Time from one node to the next; `None`: for ever.
    fn pace(&self) -> Option<Duration> {
        match self.state() {
            State::Normal | State::Full => Some(NORMAL),
            State::Partial if self.ready + self.unready > LARGE => Some(REDUCED),
            State::Partial => None,
        }
    }
}

#[derive(Default)]
struct All {
    nodes: BTreeMap<String, (String, bool)>,
    zones: BTreeMap<String, Zone>,
}

impl All {
    /// Nothing is ready anywhere.
    fn is_cut_off(&self) -> bool {
        let mut zones = self.zones.values().filter(|z| !z.is_empty()).peekable();
        zones.peek().is_some() && zones.all(|z| z.state() == State::Full)
    }

    fn count(&mut self, zone: &str, ready: bool, add: bool, now: Instant) -> bool {
        let zone = self.zones.entry(zone.to_owned()).or_default();
        let before = zone.pace();
        let n = if ready { &mut zone.ready } else { &mut zone.unready };
        *n = if add { *n + 1 } else { n.saturating_sub(1) };
        let changed = zone.pace() != before;
        // Who waits at the old pace waits anew at the other one.
        let waits = before.is_none_or(|pace| zone.last.is_some_and(|at| now.duration_since(at) < pace));
        if changed && waits {
            zone.last = Some(now);
        }
        changed
    }
}

/// What a change of a node means for others.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct News {
    /// The control plane was cut off, or is no longer.
    pub(super) all: bool,
    /// The names of nodes that are not ready, in zones whose pace changed.
    pub(super) nodes: Vec<String>,
}

/// Whether a node may be given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leave {
    Now,
    After(Duration),
    /// Until the zone changes.
    Never,
    /// None may be, and those that were are taken back.
    CutOff,
}

/// The zones of the nodes that there are.
#[derive(Default)]
pub(super) struct Zones(Mutex<All>);

impl Zones {
    fn lock(&self) -> MutexGuard<'_, All> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A node as it is now, or that it is no more.
    pub(super) fn note(&self, name: &str, node: Option<&Node>, now: Instant) -> News {
        let counts = |n: &&Node| n.metadata.labels.as_ref().is_none_or(|l| !l.contains_key(EXCLUDED));
        let new = node.filter(counts).map(|n| (zone(n), status_of(n, "Ready") == Some("True")));
        let mut all = self.lock();
        if all.nodes.get(name) == new.as_ref() {
            return News::default();
        }
        let was = all.is_cut_off();
        let mut changed = Vec::new();
        let mut moved = false;
        if let Some((zone, ready)) = all.nodes.remove(name) {
            moved = new.as_ref().is_some_and(|(to, _)| *to != zone);
            if all.count(&zone, ready, false, now) {
                changed.push(zone);
            }
        }
        if let Some((zone, ready)) = new {
            if all.count(&zone, ready, true, now) {
                changed.push(zone.clone());
            }
            all.nodes.insert(name.to_owned(), (zone, ready));
        }
        // One whose nodes are left out has its pace all the same.
        let paced = |z: &Zone| z.last.is_some_and(|at| now.duration_since(at) < REDUCED);
        all.zones.retain(|_, z| !z.is_empty() || paced(z));
        let cut_off = was != all.is_cut_off();
        // It may leave at another pace than before.
        let own = moved.then(|| name.to_owned());
        // Rarely anything changes for others, and there may be many.
        if changed.is_empty() {
            return News { all: cut_off, nodes: own.into_iter().collect() };
        }
        let waiting = |(name, (zone, ready)): (&String, &(String, bool))| {
            (!ready && changed.contains(zone)).then(|| name.clone())
        };
        let mut nodes: BTreeSet<String> = all.nodes.iter().filter_map(waiting).collect();
        nodes.extend(own);
        News { all: cut_off, nodes: nodes.into_iter().collect() }
    }

    /// Whether `node` may be given up. `Now` is said once: it is the zone's turn.
    pub(super) fn leave(&self, node: &Node, now: Instant) -> Leave {
        let mut all = self.lock();
        if all.is_cut_off() {
            return Leave::CutOff;
        }
        let zone = all.zones.entry(zone(node)).or_default();
        let Some(pace) = zone.pace() else { return Leave::Never };
        let left = zone.last.map_or(Duration::ZERO, |at| pace.saturating_sub(now.duration_since(at)));
        if !left.is_zero() {
            return Leave::After(left);
        }
        zone.last = Some(now);
        Leave::Now
    }

    /// Nothing is ready anywhere.
    pub(super) fn is_cut_off(&self) -> bool {
        self.lock().is_cut_off()
    }
}

/// Region and zone of a node.
fn zone(node: &Node) -> String {
    let label = |key| node.metadata.labels.as_ref().and_then(|l| l.get(key)).map(String::as_str);
    let region = label("topology.kubernetes.io/region").unwrap_or_default();
    format!("{region}\0{}", label("topology.kubernetes.io/zone").unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn node(zone: &str, ready: &str) -> Node {
        serde_json::from_value(json!({"metadata": {"labels": {"topology.kubernetes.io/zone": zone}},
            "status": {"conditions": [{"type": "Ready", "status": ready}]}}))
        .unwrap()
    }

    /// Zones of so many ready and unready nodes.
    fn zones(each: &[(&str, usize, usize)], now: Instant) -> Zones {
        let zones = Zones::default();
        for (zone, ready, unready) in each {
            for i in 0..ready + unready {
                let node = node(zone, if i < *ready { "True" } else { "Unknown" });
                zones.note(&format!("{zone}{i}"), Some(&node), now);
            }
        }
        zones
    }

    #[test]
    fn a_zone_gives_up_nodes_at_its_pace() {
        let start = Instant::now();
        let check = |each: &[(&str, usize, usize)], want: [Leave; 2]| {
            let (zones, later) = (zones(each, start), start + Duration::from_secs(1000));
            let lost = node("a", "Unknown");
            assert_eq!([zones.leave(&lost, later), zones.leave(&lost, later)], want, "{each:?}");
        };
        let normal = [Leave::Now, Leave::After(NORMAL)];
        check(&[("a", 1, 1)], normal);
        check(&[("a", 1, 2)], normal);
        check(&[("a", 3, 3)], normal);
        check(&[("a", 2, 3)], [Leave::Never; 2]);
        check(&[("a", 20, 30)], [Leave::Never; 2]);
        check(&[("a", 20, 31)], [Leave::Now, Leave::After(REDUCED)]);
        check(&[("a", 0, 3)], [Leave::CutOff; 2]);
        check(&[("a", 0, 3), ("b", 1, 0)], normal);
        check(&[("a", 0, 3), ("b", 0, 2)], [Leave::CutOff; 2]);
    }

    #[test]
    fn who_waits_goes_on_waiting_at_another_pace() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let zones = zones(&[("a", 3, 1)], start);
        let lost = node("a", "Unknown");
        assert_eq!(zones.leave(&lost, at(20)), Leave::Now);
        let silent = |name: &str, seconds| zones.note(name, Some(&lost), at(seconds));
        assert_eq!(silent("a0", 21), News::default());
        // The third one makes it most of the zone.
        let news = silent("a1", 22);
        assert_eq!((news.all, news.nodes.len()), (false, 3));
        assert_eq!(zones.leave(&lost, at(500)), Leave::Never);
        let news = silent("a2", 600);
        assert!(news.all);
        assert_eq!(zones.leave(&lost, at(700)), Leave::CutOff);
        // Hearing it again is no news.
        assert_eq!(silent("a2", 701), News::default());
        assert!(zones.note("a2", Some(&node("a", "True")), at(800)).all);
        zones.note("a1", Some(&node("a", "True")), at(800));
        assert_eq!(zones.leave(&lost, at(801)), Leave::After(Duration::from_secs(9)));
        assert_eq!(zones.leave(&lost, at(810)), Leave::Now);
    }

    #[test]
    fn nodes_may_be_left_out_and_go() {
        let now = Instant::now();
        let zones = zones(&[("a", 1, 0)], now);
        let mut excluded = node("b", "Unknown");
        excluded.metadata.labels.as_mut().unwrap().insert(EXCLUDED.into(), String::new());
        assert_eq!(zones.note("b0", Some(&excluded), now), News::default());
        assert!(!zones.is_cut_off());
        zones.note("a1", Some(&node("a", "Unknown")), now);
        assert!(zones.note("a0", None, now).all);
        assert!(zones.is_cut_off());
    }
}
