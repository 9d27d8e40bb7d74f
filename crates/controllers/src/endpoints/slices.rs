//! EndpointSlices: a Service's backends in portions of at most a hundred, one set of portions per family and ports.
//!
//! An endpoint stays in the slice that it is in; new ones fill the room there is. So one pod's change rewrites one
//! slice, whatever the Service's size.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use homeostat_sdk::{Context, Error, Event, Index, Key, Next, Operator, Result, Settings, Watches};
use k8s_openapi::api::core::v1::{Node, Pod, Service, ServiceSpec};
use k8s_openapi::api::discovery::v1::{
    Endpoint, EndpointConditions, EndpointHints, EndpointPort, EndpointSlice, ForNode, ForZone,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::backend::{Backend, Port, backend};
use super::plan::{MANAGER_LABEL, Plan, SERVICE_LABEL, existing};
use super::trigger::{self, Triggers};
use crate::common::{counting, pods};

/// The most endpoints in a slice (the reference's default).
const LIMIT: usize = 100;
const MANAGER: &str = "endpointslice-controller.k8s.io";
const ZONE: &str = "topology.kubernetes.io/zone";

/// The controller.
#[derive(Default)]
pub(crate) struct EndpointSlices {
    triggers: Triggers,
}

impl Operator for EndpointSlices {
    type Resource = Service;
    type Owns = (EndpointSlice,);
    type Reads = (Pod, Node);

    fn name() -> &'static str {
        "endpointslice-controller"
    }

    fn settings(&self) -> Settings {
        counting()
    }

    async fn reconcile(&self, service: &Service, cx: &Context<Self>) -> Result<Next> {
        let Some(selector) = super::selector(service) else { return Ok(Next::done()) };
        let namespace = cx.namespace().unwrap_or_default();
        let pods = super::pods_of(&cx.cache::<Pod, _>(), namespace, selector);
        let existing = existing(cx, MANAGER);
        let nodes = cx.cache::<Node, _>();
        let mut plan = plan(service, &pods, &existing, |name| nodes.get(&Key::cluster(name)));
        let trigger = self.triggers.look(service, &pods);
        for slice in plan.create.iter_mut().chain(&mut plan.update) {
            trigger::annotate(&mut slice.metadata.annotations, trigger);
        }
        if let Err(failed) = plan.carry_out(cx).await {
            let text = format!("Error updating Endpoint Slices for Service {}: {failed}", cx.key());
            cx.event(Event::warning("FailedToUpdateEndpointSlices", text)).await;
            return Err(Error::from(failed));
        }
        Ok(Next::done())
    }

    async fn absent(&self, key: &Key, _: &Context<Self>) -> Result<Next> {
        self.triggers.forget(key);
        Ok(Next::done())
    }

    /// The garbage collector takes the slices.
    async fn finalize(&self, _: &Service, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.changes::<Pod, _>(|change, view| super::concerned(change, &view.resources()));
        // Whether a pod's node is there, and in which zone.
        let index: OnceLock<Index<Pod>> = OnceLock::new();
        watches.changes::<Node, _>(move |change, view| {
            let Some(node) = change.object().filter(|_| change.differs(zone)) else { return Vec::new() };
            let index = index.get_or_init(|| pods::by_node(&view.cache::<Pod, _>()));
            let on_node = index.get(node.metadata.name.as_deref().unwrap_or_default());
            let mut keys: Vec<Key> =
                on_node.iter().flat_map(|p| super::selecting(p, &view.resources())).collect();
            keys.sort();
            keys.dedup();
            keys
        });
    }
}

/// The families of a Service, by address type.
fn families(spec: &ServiceSpec) -> Vec<(&'static str, bool)> {
    let families = spec.ip_families.as_deref().unwrap_or_default();
    let mut all: Vec<(&'static str, bool)> =
        families.iter().map(|f| if f == "IPv6" { ("IPv6", true) } else { ("IPv4", false) }).collect();
    if all.is_empty() {
        all.push(("IPv4", false));
    }
    all
}

fn zone(node: &Node) -> Option<String> {
    node.metadata.labels.as_ref()?.get(ZONE).cloned()
}

/// Where the Service wants traffic to stay: near the endpoint, as far as it is known where that is.
fn hints(spec: &ServiceSpec, backend: &Backend, zone: Option<&String>) -> Option<EndpointHints> {
    let wish = spec.traffic_distribution.as_deref().filter(|_| backend.ready)?;
    if !matches!(wish, "PreferClose" | "PreferSameZone" | "PreferSameNode") {
        return None;
    }
    let for_zones = zone.map(|name| vec![ForZone { name: name.clone() }]);
    let node = backend.node.clone().filter(|_| wish == "PreferSameNode");
    let for_nodes = node.map(|name| vec![ForNode { name }]);
    (for_zones.is_some() || for_nodes.is_some()).then_some(EndpointHints { for_nodes, for_zones })
}

fn endpoint(spec: &ServiceSpec, backend: Backend, node: Option<&Node>) -> Endpoint {
    let zone = node.and_then(zone);
    Endpoint {
        hints: hints(spec, &backend, zone.as_ref()),
        addresses: vec![backend.ip],
        conditions: Some(EndpointConditions {
            ready: Some(backend.ready),
            serving: Some(backend.serving),
            terminating: Some(backend.terminating),
        }),
        hostname: backend.hostname,
        zone,
        node_name: backend.node,
        target_ref: Some(backend.pod),
        ..Endpoint::default()
    }
}

fn ports(ports: &[Port]) -> Vec<EndpointPort> {
    let one = |p: &Port| EndpointPort {
        name: Some(p.name.clone()),
        port: Some(p.port),
        protocol: Some(p.protocol.clone()),
        app_protocol: p.app_protocol.clone(),
    };
    ports.iter().map(one).collect()
}

fn ports_of(slice: &EndpointSlice) -> Vec<Port> {
    let one = |p: &EndpointPort| Port {
        name: p.name.clone().unwrap_or_default(),
        port: p.port.unwrap_or(0),
        protocol: p.protocol.clone().unwrap_or_else(|| "TCP".into()),
        app_protocol: p.app_protocol.clone(),
    };
    slice.ports.iter().flatten().map(one).collect()
}

/// Who an endpoint is: its pod.
fn identity(endpoint: &Endpoint) -> Option<&str> {
    endpoint.target_ref.as_ref().and_then(|r| r.uid.as_deref())
}

fn plan(
    service: &Service,
    pods: &[Arc<Pod>],
    existing: &[Arc<EndpointSlice>],
    node: impl Fn(&str) -> Option<Arc<Node>>,
) -> Plan {
    let Some(spec) = &service.spec else { return Plan::default() };
    let mut plan = Plan::default();
    let mut labels = super::labels(service);
    labels.insert(SERVICE_LABEL.into(), service.metadata.name.clone().unwrap_or_default());
    labels.insert(MANAGER_LABEL.into(), MANAGER.into());
    let mut kept: Vec<&Arc<EndpointSlice>> = Vec::new();
    for (family, v6) in families(spec) {
        let mut groups: BTreeMap<Vec<Port>, Vec<Endpoint>> = BTreeMap::new();
        for found in pods.iter().filter_map(|p| backend(service, p, v6)) {
            let on = found.node.as_deref().and_then(&node);
            // Nobody knows what runs where there is no node; but who publishes all means all.
            if found.node.is_some() && on.is_none() && spec.publish_not_ready_addresses != Some(true) {
                continue;
            }
            groups.entry(found.ports.clone()).or_default().push(endpoint(spec, found, on.as_deref()));
        }
        let of_family: Vec<&Arc<EndpointSlice>> =
            existing.iter().filter(|s| s.address_type == family).collect();
        if groups.is_empty() {
            // A Service without backends has one empty slice, so that it can be told from one not looked at yet.
            let as_is = of_family.first().map(|s| ports_of(s)).unwrap_or_default();
            groups.insert(as_is, Vec::new());
        }
        for (group, endpoints) in groups {
            let slices: Vec<&Arc<EndpointSlice>> =
                of_family.iter().copied().filter(|s| ports_of(s) == group).collect();
            kept.extend(plan.arrange(service, family, &group, endpoints, &slices, &labels));
        }
    }
    plan.delete = existing.iter().filter(|s| !kept.iter().any(|k| Arc::ptr_eq(k, s))).cloned().collect();
    plan
}

impl Plan {
    /// Puts the endpoints of one group into its slices; returns those that stay.
    fn arrange<'a>(
        &mut self,
        service: &Service,
        family: &str,
        group: &[Port],
        mut endpoints: Vec<Endpoint>,
        slices: &[&'a Arc<EndpointSlice>],
        labels: &BTreeMap<String, String>,
    ) -> Vec<&'a Arc<EndpointSlice>> {
        // What is in a slice already stays there.
        let mut filled: Vec<Vec<Endpoint>> = Vec::new();
        for slice in slices {
            let mut stays = Vec::new();
            for old in slice.endpoints.iter().flatten() {
                if let Some(at) = endpoints.iter().position(|e| identity(e) == identity(old)) {
                    stays.push(endpoints.remove(at));
                }
            }
            filled.push(stays);
        }
        for slice in &mut filled {
            let room = LIMIT.saturating_sub(slice.len()).min(endpoints.len());
            slice.extend(endpoints.drain(..room));
        }
        let mut kept = Vec::new();
        let all_empty = filled.iter().all(Vec::is_empty);
        for (i, (slice, now)) in slices.iter().zip(filled).enumerate() {
            // An empty slice goes, unless it is the only one.
            if now.is_empty() && !(all_empty && i == 0) {
                continue;
            }
            kept.push(*slice);
            let same = slice.endpoints.as_deref().unwrap_or_default() == now
                && slice.metadata.labels.as_ref() == Some(labels);
            if !same {
                let mut new = EndpointSlice::clone(slice);
                new.endpoints = Some(now);
                new.metadata.labels = Some(labels.clone());
                self.update.push(new);
            }
        }
        while !endpoints.is_empty() || (kept.is_empty() && self.create.is_empty()) {
            let portion: Vec<Endpoint> = endpoints.drain(..endpoints.len().min(LIMIT)).collect();
            let name = service.metadata.name.as_deref().unwrap_or_default();
            self.create.push(EndpointSlice {
                metadata: ObjectMeta {
                    generate_name: Some(format!("{name}-")),
                    namespace: service.metadata.namespace.clone(),
                    labels: Some(labels.clone()),
                    ..ObjectMeta::default()
                },
                address_type: family.to_owned(),
                endpoints: Some(portion),
                ports: Some(ports(group)),
            });
        }
        kept
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service() -> Service {
        serde_json::from_value(json!({"metadata": {"name": "svc", "namespace": "d", "labels": {"team": "a"}},
            "spec": {"selector": {"a": "b"}, "ports": [{"name": "http", "port": 80, "targetPort": "web"}]}}))
        .unwrap()
    }

    fn pod(n: usize, port: i32) -> Arc<Pod> {
        Arc::new(
            serde_json::from_value(json!({"metadata": {"name": format!("p{n}"), "uid": format!("u{n}")},
                "spec": {"nodeName": "n", "containers": [
                    {"name": "c", "ports": [{"name": "web", "containerPort": port}]}]},
                "status": {"phase": "Running", "podIP": format!("10.0.{}.{}", n / 200, n % 200 + 1),
                    "conditions": [{"type": "Ready", "status": "True"}]}}))
            .unwrap(),
        )
    }

    fn planned(pods: &[Arc<Pod>], existing: &[Arc<EndpointSlice>]) -> Plan {
        plan(&service(), pods, existing, |_| Some(node()))
    }

    fn node() -> Arc<Node> {
        Arc::new(serde_json::from_value(json!({"metadata": {"name": "n", "labels": {ZONE: "z"}}})).unwrap())
    }

    fn sizes(slices: &[EndpointSlice]) -> Vec<usize> {
        slices.iter().map(|s| s.endpoints.as_ref().unwrap().len()).collect()
    }

    /// As the server would name them.
    fn stored(slices: Vec<EndpointSlice>) -> Vec<Arc<EndpointSlice>> {
        let named = |(i, mut s): (usize, EndpointSlice)| {
            s.metadata.name = Some(format!("svc-{i}"));
            Arc::new(s)
        };
        slices.into_iter().enumerate().map(named).collect()
    }

    #[test]
    fn backends_come_in_portions() {
        let pods: Vec<_> = (0..250).map(|n| pod(n, 80)).collect();
        let first = planned(&pods, &[]);
        assert_eq!(sizes(&first.create), [100, 100, 50]);
        let slice = &first.create[0];
        assert_eq!(slice.endpoints.as_ref().unwrap()[0].zone.as_deref(), Some("z"));
        assert_eq!(
            json!(slice.metadata.labels),
            json!({"team": "a", SERVICE_LABEL: "svc", MANAGER_LABEL: MANAGER})
        );
        let existing = stored(first.create);
        let again = planned(&pods, &existing);
        assert!(again.create.is_empty() && again.update.is_empty() && again.delete.is_empty());
        // One pod less is one slice rewritten.
        let less = planned(&pods[1..], &existing);
        assert_eq!((less.create.len(), sizes(&less.update), less.delete.len()), (0, vec![99], 0));
    }

    #[test]
    fn no_backends_are_one_empty_slice() {
        let first = planned(&[], &[]);
        assert_eq!(sizes(&first.create), [0]);
        let existing = stored(first.create);
        let again = planned(&[], &existing);
        assert!(again.create.is_empty() && again.update.is_empty() && again.delete.is_empty());
        // A first backend has ports, so the empty slice is replaced.
        let one = planned(&[pod(1, 80)], &existing);
        assert_eq!((sizes(&one.create), one.delete.len()), (vec![1], 1));
        let existing = stored(one.create);
        let none = planned(&[], &existing);
        assert_eq!((sizes(&none.update), none.create.len(), none.delete.len()), (vec![0], 0, 0));
    }

    #[test]
    fn pods_with_other_ports_have_slices_of_their_own() {
        let plan = planned(&[pod(1, 80), pod(2, 8080)], &[]);
        let ports: Vec<_> = plan.create.iter().map(|s| s.ports.as_ref().unwrap()[0].port.unwrap()).collect();
        assert_eq!(ports, [80, 8080]);
    }

    #[test]
    fn pods_of_a_node_that_is_gone_are_left_out() {
        let count = |service: &Service| {
            let plan = plan(service, &[pod(1, 80)], &[], |_| None);
            sizes(&plan.create)
        };
        let mut service = service();
        assert_eq!(count(&service), [0]);
        service.spec.as_mut().unwrap().publish_not_ready_addresses = Some(true);
        assert_eq!(count(&service), [1]);
    }

    #[test]
    fn hints_keep_traffic_near() {
        let check = |wish: Option<&str>, ready: &str, want: serde_json::Value| {
            let mut service = service();
            service.spec.as_mut().unwrap().traffic_distribution = wish.map(str::to_owned);
            let mut pod = pod(1, 80);
            let status = Arc::make_mut(&mut pod).status.as_mut().unwrap();
            status.conditions.as_mut().unwrap()[0].status = ready.into();
            let plan = plan(&service, &[pod], &[], |_| Some(node()));
            assert_eq!(json!(plan.create[0].endpoints.as_ref().unwrap()[0].hints), want, "{wish:?} {ready}");
        };
        check(None, "True", json!(null));
        check(Some("PreferClose"), "True", json!({"forZones": [{"name": "z"}]}));
        check(Some("PreferSameZone"), "True", json!({"forZones": [{"name": "z"}]}));
        check(Some("PreferSameZone"), "False", json!(null));
        let both = json!({"forZones": [{"name": "z"}], "forNodes": [{"name": "n"}]});
        check(Some("PreferSameNode"), "True", both);
    }
}
