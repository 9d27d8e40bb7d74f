//! Extenders: schedulers outside, asked over HTTP in the reference's protocol after the plugins.
//!
//! An extender narrows the nodes, adds to their scores, agrees to who makes room, or binds. One that doesn't answer
//! stops the pod's attempt, unless it is ignorable. Invariant: a node that an extender names was offered to it.

mod answer;
mod http;
pub mod protocol;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;

pub use self::http::Http;
use crate::config::ExtenderConfig;
use crate::framework::{Candidate, Diagnosis, EXTENDER, MAX_SCORE, Status};
use crate::snapshot::{NodeInfo, PodInfo, Snapshot};
use answer::Read;
use protocol::{
    ExtenderArgs, ExtenderBindingArgs, ExtenderBindingResult, ExtenderFilterResult, ExtenderPreemptionArgs,
    ExtenderPreemptionResult, HostPriority, MetaPod, MetaVictims, NodeList, Victims,
};

/// The most that an extender's score can be.
const MAX_EXTENDER_SCORE: i64 = 10;

/// Carries a request to an extender. Tests answer themselves.
pub trait Transport: Send + Sync {
    /// Posts a JSON body; the answer's status code and body, or what went wrong on the way.
    fn post<'a>(&'a self, url: &'a str, body: Vec<u8>) -> BoxFuture<'a, Result<(u16, Vec<u8>), String>>;
}

/// An extender.
#[derive(Clone)]
pub struct Extender {
    config: ExtenderConfig,
    transport: Arc<dyn Transport>,
}

impl std::fmt::Debug for Extender {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Extender").field("url", &self.config.url_prefix).finish_non_exhaustive()
    }
}

impl Extender {
    /// Reached through `transport`.
    pub fn new(config: ExtenderConfig, transport: Arc<dyn Transport>) -> Self {
        Self { config, transport }
    }

    /// Whether it filters or scores.
    pub fn looks_at_nodes(&self) -> bool {
        self.config.filter_verb().is_some() || self.config.prioritize_verb().is_some()
    }

    /// Whether the pod is its business: it looks after everything, or after a resource that the pod asks for.
    pub fn is_interested(&self, pod: &PodInfo) -> bool {
        if !self.config.is_selective() {
            return true;
        }
        let Some(spec) = pod.spec() else { return false };
        let all = spec.containers.iter().chain(spec.init_containers.iter().flatten());
        all.filter_map(|c| c.resources.as_ref())
            .flat_map(|r| r.requests.iter().chain(&r.limits).flatten())
            .any(|(name, _)| self.config.manages(name))
    }

    async fn ask<A: Serialize, R: Read>(&self, verb: &str, args: &A) -> Result<R, String> {
        let url = format!("{}/{verb}", self.config.url_prefix.trim_end_matches('/'));
        let body = serde_json::to_vec(args).map_err(|e| e.to_string())?;
        let answer = tokio::time::timeout(self.config.timeout(), self.transport.post(&url, body));
        let (code, body) = answer.await.map_err(|_| format!("Post {url:?}: context deadline exceeded"))??;
        if code != 200 {
            return Err(format!("failed {verb} with extender at URL {url}, code {code}"));
        }
        let answer: Value = serde_json::from_slice(&body).map_err(|e| format!("answer of {url}: {e}"))?;
        R::of(&answer).map_err(|e| format!("answer of {url}: {e}"))
    }

    fn args(&self, pod: &PodInfo, nodes: &[Arc<NodeInfo>]) -> ExtenderArgs {
        let pod = (*pod.pod).clone();
        if self.config.node_cache_capable {
            let names = nodes.iter().map(|n| n.name.to_string()).collect();
            return ExtenderArgs { pod, nodes: None, node_names: Some(names) };
        }
        let items = nodes.iter().map(|n| (*n.node).clone()).collect();
        let list = NodeList { metadata: serde_json::json!({}), items };
        ExtenderArgs { pod, nodes: Some(list), node_names: None }
    }

    /// The nodes that do, and puts into the diagnosis why others don't.
    async fn filter(
        &self,
        pod: &PodInfo,
        nodes: &[Arc<NodeInfo>],
        diagnosis: &mut Diagnosis,
    ) -> Result<Vec<Arc<NodeInfo>>, String> {
        let Some(verb) = self.config.filter_verb() else { return Ok(nodes.to_vec()) };
        let result: ExtenderFilterResult = self.ask(verb, &self.args(pod, nodes)).await?;
        if !result.error.is_empty() {
            return Err(result.error);
        }
        let names: Vec<String> = match (result.node_names, result.nodes) {
            (Some(names), _) if self.config.node_cache_capable => names,
            (_, Some(names)) => names,
            _ => Vec::new(),
        };
        let mut passed = Vec::new();
        for name in names {
            match nodes.iter().find(|n| *n.name == *name) {
                Some(node) => passed.push(node.clone()),
                None => {
                    return Err(format!(
                        "extender {:?} claims a filtered node {name:?} which is not found in the input node list",
                        self.config.url_prefix
                    ));
                }
            }
        }
        let unresolvable = result.failed_and_unresolvable_nodes.unwrap_or_default();
        for (name, why) in result.failed_nodes.unwrap_or_default() {
            if !unresolvable.contains_key(&name) {
                diagnosis.refuse(name.as_str().into(), Status::unschedulable(why).by(EXTENDER));
            }
        }
        for (name, why) in unresolvable {
            diagnosis.refuse(name.as_str().into(), Status::unresolvable(why).by(EXTENDER));
        }
        Ok(passed)
    }

    async fn victims(
        &self,
        pod: &PodInfo,
        candidates: &[Candidate],
        snapshot: &Snapshot,
    ) -> Result<Vec<Candidate>, String> {
        let Some(verb) = self.config.preempt_verb() else { return Ok(candidates.to_vec()) };
        let meta = |c: &Candidate| MetaVictims {
            pods: Some(c.victims.iter().map(|v| MetaPod { uid: v.uid.to_string() }).collect()),
            violations: c.violations,
        };
        let whole = |c: &Candidate| Victims {
            pods: c.victims.iter().map(|v| (*v.pod).clone()).collect(),
            violations: c.violations,
        };
        let cached = self.config.node_cache_capable;
        let args = ExtenderPreemptionArgs {
            pod: (*pod.pod).clone(),
            node_name_to_victims: (!cached)
                .then(|| candidates.iter().map(|c| (c.node.to_string(), whole(c))).collect()),
            node_name_to_meta_victims: cached
                .then(|| candidates.iter().map(|c| (c.node.to_string(), meta(c))).collect()),
        };
        let result: ExtenderPreemptionResult = self.ask(verb, &args).await?;
        let mut left = Vec::new();
        for (name, victims) in result.node_name_to_meta_victims.unwrap_or_default() {
            let pods = victims.pods.unwrap_or_default();
            if pods.is_empty() {
                if self.config.ignorable {
                    continue;
                }
                return Err(format!("expected at least one victim pod on node {name:?}"));
            }
            let node =
                snapshot.node(&name).ok_or_else(|| format!("nodeinfo not found for node name {name:?}"))?;
            let mut all = Vec::new();
            for MetaPod { uid } in pods {
                let there = node.pods.iter().find(|p| *p.uid == *uid && p.priority < pod.priority);
                all.push(there.cloned().ok_or_else(|| {
                    format!(
                        "extender: {} claims to preempt pod (UID: {uid}) on node: {name}, but the pod is not found on \
                         that node",
                        self.config.url_prefix
                    )
                })?);
            }
            left.push(Candidate { node: node.name.clone(), victims: all, violations: victims.violations });
        }
        Ok(left)
    }

    async fn bind(&self, pod: &PodInfo, node: &str) -> Result<(), String> {
        let Some(verb) = self.config.bind_verb() else { return Ok(()) };
        let args = ExtenderBindingArgs {
            pod_name: pod.key.name().to_owned(),
            pod_namespace: pod.namespace().to_owned(),
            pod_uid: pod.uid.to_string(),
            node: node.to_owned(),
        };
        let result: ExtenderBindingResult = self.ask(verb, &args).await?;
        if result.error.is_empty() { Ok(()) } else { Err(result.error) }
    }
}

/// All extenders, in the order of the configuration.
#[derive(Clone, Debug, Default)]
pub struct Extenders(pub Vec<Extender>);

impl Extenders {
    /// Whether any filters or scores nodes.
    pub fn look_at_nodes(&self) -> bool {
        self.0.iter().any(Extender::looks_at_nodes)
    }

    fn for_pod<'a>(&'a self, pod: &'a PodInfo) -> impl Iterator<Item = &'a Extender> {
        self.0.iter().filter(|e| e.is_interested(pod))
    }

    /// The nodes that all of them agree to, one after the other.
    pub async fn filter(
        &self,
        pod: &PodInfo,
        mut nodes: Vec<Arc<NodeInfo>>,
        diagnosis: &mut Diagnosis,
    ) -> Result<Vec<Arc<NodeInfo>>, Status> {
        for extender in self.for_pod(pod) {
            if nodes.is_empty() {
                break;
            }
            match extender.filter(pod, &nodes, diagnosis).await {
                Ok(left) => {
                    if left.len() < nodes.len() {
                        diagnosis.plugins.insert(EXTENDER);
                    }
                    nodes = left;
                }
                Err(why) if extender.config.ignorable => {
                    tracing::info!(
                        extender = extender.config.url_prefix,
                        why,
                        "skipping an ignorable extender"
                    );
                }
                Err(why) => return Err(Status::error(why)),
            }
        }
        Ok(nodes)
    }

    /// Adds what they think of the nodes. One that fails has no opinion.
    pub async fn score(&self, pod: &PodInfo, nodes: &[Arc<NodeInfo>], scores: &mut [i64]) {
        for extender in self.for_pod(pod) {
            let Some(verb) = extender.config.prioritize_verb() else { continue };
            let answer: Result<Vec<HostPriority>, String> =
                extender.ask(verb, &extender.args(pod, nodes)).await;
            match answer {
                Ok(list) => {
                    let by_host: BTreeMap<&str, i64> =
                        list.iter().map(|p| (p.host.as_str(), p.score)).collect();
                    for (node, score) in nodes.iter().zip(scores.iter_mut()) {
                        let own = by_host.get(&*node.name).copied().unwrap_or(0);
                        *score += own * extender.config.weight * (MAX_SCORE / MAX_EXTENDER_SCORE);
                    }
                }
                Err(why) => {
                    tracing::debug!(extender = extender.config.url_prefix, why, "no scores from extender")
                }
            }
        }
    }

    /// The candidates that all of them agree to.
    pub async fn candidates(
        &self,
        pod: &PodInfo,
        mut candidates: Vec<Candidate>,
        snapshot: &Snapshot,
    ) -> Result<Vec<Candidate>, Status> {
        for extender in self.for_pod(pod) {
            if candidates.is_empty() {
                break;
            }
            match extender.victims(pod, &candidates, snapshot).await {
                Ok(left) => candidates = left,
                Err(_) if extender.config.ignorable => {}
                Err(why) => return Err(Status::error(why)),
            }
        }
        Ok(candidates)
    }

    /// Binds through the one that binds; false where none does.
    pub async fn bind(&self, pod: &PodInfo, node: &str) -> Result<bool, Status> {
        for extender in self.for_pod(pod).filter(|e| e.config.bind_verb().is_some()) {
            match extender.bind(pod, node).await {
                Ok(()) => return Ok(true),
                Err(_) if extender.config.ignorable => {}
                Err(why) => return Err(Status::error(why)),
            }
        }
        Ok(false)
    }
}
