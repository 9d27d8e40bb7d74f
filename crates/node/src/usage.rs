//! What simulated pods and nodes use, as `metrics.k8s.io` tells it.
//!
//! Computed when somebody asks, from behaviors and the moment; nothing is stored or sent. Where no behavior says
//! otherwise a container uses a tenth of the processor time and half of the memory that it requests.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use homeostat_model::quantity::Quantity;
use homeostat_model::{Clock, Timestamp, clock};
use homeostat_sdk::{Cache, Key};
use k8s_openapi::api::core::v1::{Container, Pod};
use serde_json::{Value, json};

use crate::fleet::Machine;
use crate::runtime::{Plan, since};
use crate::world::World;

/// Of a container that requests nothing: thousandths of a processor, bytes.
const LITTLE: (i128, i128) = (1, 8 << 20);
/// Of a node without pods.
const IDLE: (i128, i128) = (100, 512 << 20);
/// What the samples are said to be averages over.
const WINDOW: &str = "15s";

/// The usage of all simulated pods and nodes. Empty until the nodes run; cheap to clone.
#[derive(Clone, Default)]
pub struct Metrics(Arc<OnceLock<Source>>);

impl std::fmt::Debug for Metrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Metrics").field("runs", &self.0.get().is_some()).finish()
    }
}

pub(crate) struct Source {
    pub(crate) world: Arc<World>,
    pub(crate) pods: Cache<Pod>,
    pub(crate) clock: Clock,
}

/// Thousandths of a processor, bytes of memory.
pub(crate) type Used = (i128, i128);

impl Metrics {
    pub(crate) fn begin(&self, source: Source) {
        // A task that is started again finds its source there already.
        let _ = self.0.set(source);
    }

    /// The `PodMetrics` of a namespace, or of all where it is empty, in the order of their names.
    pub fn pods(&self, namespace: &str) -> Vec<Value> {
        let Some(source) = self.0.get() else { return Vec::new() };
        let pods = match namespace {
            "" => source.pods.list(),
            ns => source.pods.in_namespace(ns),
        };
        let now = source.clock.now();
        pods.iter().filter_map(|pod| source.pod(pod, now)).collect()
    }

    /// The `PodMetrics` of one pod; `None` where it isn't, or doesn't run.
    pub fn pod(&self, namespace: &str, name: &str) -> Option<Value> {
        let source = self.0.get()?;
        let pod = source.pods.get(&Key::namespaced(namespace, name))?;
        source.pod(&pod, source.clock.now())
    }

    /// The `NodeMetrics` of all nodes that are heard of, in the order of their names.
    pub fn nodes(&self) -> Vec<Value> {
        let Some(source) = self.0.get() else { return Vec::new() };
        let now = source.clock.now();
        let mut used: BTreeMap<String, Used> = BTreeMap::new();
        for pod in source.pods.list() {
            let node = pod.spec.as_ref().and_then(|s| s.node_name.as_deref()).unwrap_or_default();
            let sum = used.entry(node.to_owned()).or_default();
            for (_, (cpu, memory)) in containers(&source.world, &pod, now) {
                *sum = (sum.0 + cpu, sum.1 + memory);
            }
        }
        let machines = source.world.fleet.machines();
        let mut names: Vec<(String, Machine)> = machines.map(|m| (m.name(), m)).collect();
        names.sort();
        let heard = names.into_iter().filter(|(_, m)| !source.world.state(*m, now).lost);
        heard
            .map(|(name, m)| source.node(&name, m, used.get(&name).copied().unwrap_or_default(), now))
            .collect()
    }

    /// The `NodeMetrics` of one node.
    pub fn node(&self, name: &str) -> Option<Value> {
        self.nodes().into_iter().find(|n| n["metadata"]["name"] == name)
    }

    /// The definitions of both resources, pods first.
    pub fn definitions() -> [Value; 2] {
        let definition = |plural: &str, kind: &str, scope: &str, fields: Value, columns: Value| {
            let mut properties = json!({
                "timestamp": {"type": "string", "format": "date-time"},
                "window": {"type": "string"},
            });
            for (name, schema) in fields.as_object().into_iter().flatten() {
                properties[name.as_str()] = schema.clone();
            }
            json!({
                "apiVersion": "apiextensions.k8s.io/v1",
                "kind": "CustomResourceDefinition",
                "metadata": {"name": format!("{plural}.metrics.k8s.io")},
                "spec": {
                    "group": "metrics.k8s.io",
                    "names": {"plural": plural, "kind": kind, "listKind": format!("{kind}List")},
                    "scope": scope,
                    "versions": [{
                        "name": "v1beta1", "served": true, "storage": true,
                        "schema": {"openAPIV3Schema": {"type": "object", "properties": properties}},
                        "additionalPrinterColumns": columns,
                    }],
                },
            })
        };
        let usage = json!({"type": "object", "additionalProperties": {"x-kubernetes-int-or-string": true}});
        let container = json!({"type": "object", "properties": {"name": {"type": "string"}, "usage": usage}});
        let column = |name: &str, path: &str| json!({"name": name, "type": "string", "jsonPath": path});
        [
            definition(
                "pods",
                "PodMetrics",
                "Namespaced",
                json!({"containers": {"type": "array", "items": container}}),
                json!([
                    column("CPU", ".containers[*].usage.cpu"),
                    column("Memory", ".containers[*].usage.memory"),
                    column("Window", ".window"),
                ]),
            ),
            definition(
                "nodes",
                "NodeMetrics",
                "Cluster",
                json!({"usage": usage}),
                json!([
                    column("CPU", ".usage.cpu"),
                    column("Memory", ".usage.memory"),
                    column("Window", ".window")
                ]),
            ),
        ]
    }
}

fn quantities((cpu, memory): Used) -> Value {
    json!({"cpu": format!("{cpu}m"), "memory": format!("{}Ki", memory / 1024)})
}

/// What each running container of a pod uses.
pub(crate) fn containers(world: &World, pod: &Pod, now: Timestamp) -> Vec<(String, Used)> {
    let running: Vec<(usize, i32, Timestamp)> = {
        let mut inventory = world.inventory();
        let Some(placed) = inventory.pod(&Key::of(pod)) else { return Vec::new() };
        if Some(&placed.uid) != pod.metadata.uid.as_ref() {
            return Vec::new();
        }
        let records = placed.sandbox.containers.iter().enumerate();
        records.filter(|(_, r)| r.is_up()).map(|(i, r)| (i, r.restarts, r.started)).collect()
    };
    let (_, choice) = world.choice();
    let plan = Plan::new(pod, &choice, |_| true);
    let used = |(i, restarts, started): (usize, i32, Timestamp)| {
        let subject = plan.subject(i)?;
        let (cpu, memory) = choice.usage(&subject, restarts, since(now, started));
        let usual = usual(pod, subject.name);
        let cpu = cpu.and_then(|q| Quantity::parse(&q).ok()).map_or(usual.0, |q| q.milli());
        let memory = memory.and_then(|q| Quantity::parse(&q).ok()).map_or(usual.1, |q| q.value());
        Some((subject.name.to_owned(), (cpu, memory)))
    };
    running.into_iter().filter_map(used).collect()
}

impl Source {
    fn pod(&self, pod: &Pod, now: Timestamp) -> Option<Value> {
        let containers = containers(&self.world, pod, now);
        if containers.is_empty() {
            return None;
        }
        let container = |(name, used): (String, Used)| json!({"name": name, "usage": quantities(used)});
        let containers: Vec<Value> = containers.into_iter().map(container).collect();
        let meta = &pod.metadata;
        let mut metadata =
            json!({"name": meta.name, "namespace": meta.namespace, "creationTimestamp": clock::seconds(now)});
        if let Some(labels) = &meta.labels {
            metadata["labels"] = json!(labels);
        }
        Some(json!({
            "kind": "PodMetrics",
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": metadata,
            "timestamp": clock::seconds(now),
            "window": WINDOW,
            "containers": containers,
        }))
    }

    fn node(&self, name: &str, machine: Machine, (cpu, memory): Used, now: Timestamp) -> Value {
        let labels = self.world.fleet.labels(machine);
        json!({
            "kind": "NodeMetrics",
            "apiVersion": "metrics.k8s.io/v1beta1",
            "metadata": {"name": name, "labels": labels, "creationTimestamp": clock::seconds(now)},
            "timestamp": clock::seconds(now),
            "window": WINDOW,
            "usage": quantities((cpu + IDLE.0, memory + IDLE.1)),
        })
    }
}

/// A tenth of the processor time and half of the memory that it requests.
fn usual(pod: &Pod, name: &str) -> Used {
    let spec = pod.spec.as_ref();
    let all = spec.into_iter().flat_map(|s| s.init_containers.iter().flatten().chain(&s.containers));
    let find = |c: &&Container| c.name == name;
    let requests = all.into_iter().find(find).and_then(|c| c.resources.as_ref()?.requests.as_ref());
    let of = |name: &str| Quantity::parse(&requests?.get(name)?.0).ok();
    let cpu = of("cpu").map_or(LITTLE.0, |q| (q.milli() / 10).max(1));
    let memory = of("memory").map_or(LITTLE.1, |q| q.value() / 2);
    (cpu, memory)
}
