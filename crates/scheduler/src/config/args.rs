//! Arguments of plugins, under the reference's names and with its limits.

use std::collections::BTreeSet;
use std::time::Duration;

use homeostat_model::Entropy;
use k8s_openapi::api::core::v1::{NodeAffinity as Rules, TopologySpreadConstraint};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::plugins as p;

/// Reads arguments strictly, after a look at their kind. Absent ones are the default's.
fn read<T: DeserializeOwned + Default>(args: &Value, kind: &str) -> Result<T, String> {
    let Value::Object(fields) = args else {
        return if args.is_null() { Ok(T::default()) } else { Err("must be an object".to_owned()) };
    };
    let mut fields = fields.clone();
    let version = fields.remove("apiVersion");
    if version.as_ref().and_then(Value::as_str).is_some_and(|v| v != "kubescheduler.config.k8s.io/v1") {
        return Err("apiVersion must be kubescheduler.config.k8s.io/v1".to_owned());
    }
    if let Some(given) = fields.remove("kind")
        && given != kind
    {
        return Err(format!("kind must be {kind}"));
    }
    serde_json::from_value(Value::Object(fields)).map_err(|e| e.to_string())
}

fn weights(place: &str, resources: &[p::Weighed]) -> Result<(), String> {
    match resources.iter().find(|r| !(1..=100).contains(&r.weight)) {
        Some(r) => Err(format!("{place}: resource weight of {} not in valid range [1-100]", r.name)),
        None => Ok(()),
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct FitArgs {
    ignored_resources: Option<BTreeSet<String>>,
    ignored_resource_groups: Option<BTreeSet<String>>,
    scoring_strategy: Option<ScoringStrategy>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct ScoringStrategy {
    #[serde(rename = "type")]
    kind: Option<String>,
    resources: Option<Vec<p::Weighed>>,
    requested_to_capacity_ratio: Option<Ratio>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Ratio {
    shape: Vec<Point>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    utilization: i64,
    score: i64,
}

pub(super) fn node_resources_fit(args: &Value, _: &Entropy) -> Result<p::NodeResourcesFit, String> {
    let args: FitArgs = read(args, "NodeResourcesFitArgs")?;
    let mut plugin = p::NodeResourcesFit {
        ignored: args.ignored_resources.unwrap_or_default(),
        ignored_groups: args.ignored_resource_groups.unwrap_or_default(),
        ..p::NodeResourcesFit::default()
    };
    if let Some(group) = plugin.ignored_groups.iter().find(|g| g.contains('/')) {
        return Err(format!("ignoredResourceGroups: {group:?}: resource group name can't contain '/'"));
    }
    let Some(strategy) = args.scoring_strategy else { return Ok(plugin) };
    if let Some(resources) = strategy.resources.filter(|r| !r.is_empty()) {
        weights("scoringStrategy.resources", &resources)?;
        plugin.resources = resources;
    }
    plugin.strategy = match strategy.kind.as_deref() {
        None | Some("LeastAllocated") => p::Strategy::LeastAllocated,
        Some("MostAllocated") => p::Strategy::MostAllocated,
        Some("RequestedToCapacityRatio") => {
            let shape = strategy.requested_to_capacity_ratio.map(|r| r.shape).unwrap_or_default();
            p::Strategy::RequestedToCapacityRatio(points(&shape)?)
        }
        Some(other) => {
            return Err(format!(
                "scoringStrategy.type: Unsupported value: {other:?}: supported values: \"LeastAllocated\", \
                 \"MostAllocated\", \"RequestedToCapacityRatio\""
            ));
        }
    };
    Ok(plugin)
}

fn points(shape: &[Point]) -> Result<Vec<(i64, i64)>, String> {
    let place = "scoringStrategy.requestedToCapacityRatio.shape";
    if shape.is_empty() {
        return Err(format!("{place}: at least one point must be specified"));
    }
    for (i, point) in shape.iter().enumerate() {
        if !(0..=100).contains(&point.utilization) {
            return Err(format!("{place}[{i}].utilization: not in valid range [0-100]"));
        }
        if !(0..=10).contains(&point.score) {
            return Err(format!("{place}[{i}].score: not in valid range [0-10]"));
        }
    }
    if shape.windows(2).any(|w| w[0].utilization >= w[1].utilization) {
        return Err(format!("{place}: utilization values must be sorted in increasing order"));
    }
    Ok(shape.iter().map(|p| (p.utilization, p.score)).collect())
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct BalancedArgs {
    resources: Option<Vec<p::Weighed>>,
}

pub(super) fn balanced_allocation(args: &Value, _: &Entropy) -> Result<p::BalancedAllocation, String> {
    let args: BalancedArgs = read(args, "NodeResourcesBalancedAllocationArgs")?;
    let resources = args.resources.filter(|r| !r.is_empty()).unwrap_or_else(p::cpu_and_memory);
    if resources.iter().any(|r| r.weight != 1) {
        return Err("resources: resource weight must be 1".to_owned());
    }
    Ok(p::BalancedAllocation { resources })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct InterPodAffinityArgs {
    hard_pod_affinity_weight: Option<i64>,
    #[serde(default)]
    ignore_preferred_terms_of_existing_pods: bool,
}

pub(super) fn inter_pod_affinity(args: &Value, _: &Entropy) -> Result<p::InterPodAffinity, String> {
    let args: InterPodAffinityArgs = read(args, "InterPodAffinityArgs")?;
    let hard_weight = args.hard_pod_affinity_weight.unwrap_or(1);
    if !(0..=100).contains(&hard_weight) {
        return Err("hardPodAffinityWeight: not in valid range [0-100]".to_owned());
    }
    Ok(p::InterPodAffinity { hard_weight, ignore_others: args.ignore_preferred_terms_of_existing_pods })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct SpreadArgs {
    #[serde(default)]
    default_constraints: Vec<TopologySpreadConstraint>,
    defaulting_type: Option<String>,
}

pub(super) fn pod_topology_spread(args: &Value, _: &Entropy) -> Result<p::PodTopologySpread, String> {
    let args: SpreadArgs = read(args, "PodTopologySpreadArgs")?;
    match args.defaulting_type.as_deref() {
        None | Some("System") if args.default_constraints.is_empty() => Ok(p::PodTopologySpread::default()),
        None | Some("System") => {
            Err("defaultConstraints: when defaultingType is \"System\", must be empty".to_owned())
        }
        Some("List") => {
            for (i, c) in args.default_constraints.iter().enumerate() {
                let place = format!("defaultConstraints[{i}]");
                if c.max_skew <= 0 {
                    return Err(format!("{place}.maxSkew: must be greater than zero"));
                }
                if c.topology_key.is_empty() {
                    return Err(format!("{place}.topologyKey: can not be empty"));
                }
                if !matches!(c.when_unsatisfiable.as_str(), "DoNotSchedule" | "ScheduleAnyway") {
                    return Err(format!(
                        "{place}.whenUnsatisfiable: must be DoNotSchedule or ScheduleAnyway"
                    ));
                }
                if c.label_selector.is_some() {
                    return Err(format!("{place}.labelSelector: constraint must not define a selector"));
                }
            }
            Ok(p::PodTopologySpread { defaults: args.default_constraints, system: false })
        }
        Some(other) => Err(format!(
            "defaultingType: Unsupported value: {other:?}: supported values: \"System\", \"List\""
        )),
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct NodeAffinityArgs {
    added_affinity: Option<Rules>,
}

pub(super) fn node_affinity(args: &Value, _: &Entropy) -> Result<p::NodeAffinity, String> {
    let args: NodeAffinityArgs = read(args, "NodeAffinityArgs")?;
    Ok(p::NodeAffinity { added: args.added_affinity })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct PreemptionArgs {
    min_candidate_nodes_percentage: Option<usize>,
    min_candidate_nodes_absolute: Option<usize>,
}

pub(super) fn default_preemption(args: &Value, entropy: &Entropy) -> Result<p::DefaultPreemption, String> {
    let args: PreemptionArgs = read(args, "DefaultPreemptionArgs")?;
    let percentage = args.min_candidate_nodes_percentage.unwrap_or(10);
    let least = args.min_candidate_nodes_absolute.unwrap_or(100);
    if percentage > 100 {
        return Err("minCandidateNodesPercentage: not in valid range [0, 100]".to_owned());
    }
    if percentage == 0 && least == 0 {
        return Err("minCandidateNodesPercentage, minCandidateNodesAbsolute: cannot both be zero".to_owned());
    }
    Ok(p::DefaultPreemption { percentage, least, entropy: Some(entropy.clone()) })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct VolumeBindingArgs {
    bind_timeout_seconds: Option<u64>,
}

pub(super) fn volume_binding(args: &Value, _: &Entropy) -> Result<p::VolumeBinding, String> {
    let args: VolumeBindingArgs = read(args, "VolumeBindingArgs")?;
    Ok(p::VolumeBinding { timeout: Duration::from_secs(args.bind_timeout_seconds.unwrap_or(600)) })
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct GangArgs {
    timeout_seconds: Option<u64>,
}

pub(super) fn gang(args: &Value, _: &Entropy) -> Result<p::Gang, String> {
    let args: GangArgs = read(args, "GangArgs")?;
    match args.timeout_seconds {
        Some(0) => Err("timeoutSeconds: must be greater than 0".to_owned()),
        Some(seconds) => Ok(p::Gang { timeout: Duration::from_secs(seconds) }),
        None => Ok(p::Gang::default()),
    }
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct DynamicResourcesArgs {
    /// Limits the search for devices, of which there is none here.
    #[serde(rename = "filterTimeout")]
    _filter_timeout: Option<String>,
}

pub(super) fn dynamic_resources(args: &Value, _: &Entropy) -> Result<p::DynamicResources, String> {
    let _: DynamicResourcesArgs = read(args, "DynamicResourcesArgs")?;
    Ok(p::DynamicResources)
}
