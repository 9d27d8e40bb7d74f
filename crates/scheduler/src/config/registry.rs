//! Which plugins there are, how each is made from its arguments, and which are in force where nothing is said.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_model::Entropy;
use serde_json::Value;

use super::args;
use crate::framework::Plugin;
use crate::plugins as p;

/// Makes a plugin from its arguments, `null` where none are given. The error says what is wrong with them.
pub type Factory = Arc<dyn Fn(&Value, &Entropy) -> Result<Arc<dyn Plugin>, String> + Send + Sync>;

/// The plugins of the default profile with their weights, in the reference's order.
pub const DEFAULT_PLUGINS: &[(&str, i64)] = &[
    ("SchedulingGates", 0),
    ("PrioritySort", 0),
    ("NodeUnschedulable", 0),
    ("NodeName", 0),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", 0),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", 0),
    ("NodeVolumeLimits", 0),
    ("VolumeBinding", 0),
    ("VolumeZone", 0),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    // Before preemption: to take an unused claim back is better than to evict a pod.
    ("DynamicResources", 0),
    ("DefaultPreemption", 0),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", 0),
    ("NodeDeclaredFeatures", 0),
];

/// The plugins that there are, by name.
#[derive(Clone)]
pub struct Registry(BTreeMap<String, Factory>);

impl std::fmt::Debug for Registry {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

/// A plugin that takes no arguments.
fn plain<P: Plugin + 'static>(make: fn() -> P) -> Factory {
    Arc::new(move |args, _| match args {
        Value::Null => Ok(Arc::new(make())),
        _ => Err("takes no arguments".to_owned()),
    })
}

fn made<P: Plugin + 'static>(make: fn(&Value, &Entropy) -> Result<P, String>) -> Factory {
    Arc::new(move |args, entropy| Ok(Arc::new(make(args, entropy)?)))
}

impl Default for Registry {
    fn default() -> Self {
        let all: [(&str, Factory); 22] = [
            ("SchedulingGates", plain(|| p::SchedulingGates)),
            ("PrioritySort", plain(|| p::PrioritySort)),
            ("NodeUnschedulable", plain(|| p::NodeUnschedulable)),
            ("NodeName", plain(|| p::NodeName)),
            ("TaintToleration", plain(|| p::TaintToleration)),
            ("NodeAffinity", made(args::node_affinity)),
            ("NodePorts", plain(|| p::NodePorts)),
            ("NodeResourcesFit", made(args::node_resources_fit)),
            ("VolumeRestrictions", plain(|| p::VolumeRestrictions)),
            ("NodeVolumeLimits", plain(|| p::NodeVolumeLimits)),
            ("VolumeBinding", made(args::volume_binding)),
            ("VolumeZone", plain(|| p::VolumeZone)),
            ("PodTopologySpread", made(args::pod_topology_spread)),
            ("InterPodAffinity", made(args::inter_pod_affinity)),
            ("DynamicResources", made(args::dynamic_resources)),
            ("DefaultPreemption", made(args::default_preemption)),
            ("NodeResourcesBalancedAllocation", made(args::balanced_allocation)),
            ("ImageLocality", plain(|| p::ImageLocality)),
            ("DefaultBinder", plain(|| p::DefaultBinder)),
            ("NodeDeclaredFeatures", plain(|| p::NodeDeclaredFeatures)),
            ("Accelerators", plain(|| p::Accelerators)),
            ("Gang", made(args::gang)),
        ];
        Self(all.into_iter().map(|(name, factory)| (name.to_owned(), factory)).collect())
    }
}

impl Registry {
    /// Adds a plugin, in place of one of the same name.
    #[must_use]
    pub fn with(mut self, name: &str, factory: Factory) -> Self {
        self.0.insert(name.to_owned(), factory);
        self
    }

    /// The names of all.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    pub(super) fn get(&self, name: &str) -> Option<&Factory> {
        self.0.get(name)
    }
}
