//! Endpoints, the older form: one object per Service with all addresses, those to use and those not ready.
//!
//! It has the Service's name rather than an owner reference, so it is deleted here when its Service goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_sdk::{Context, Edits, Key, Next, Operator, Result, Settings, Watches};
use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DeleteParams;

use super::backend::{Backend, Port, backend};
use crate::common::{counting, pod_control};

/// The most addresses in an Endpoints object (the API's limit of this form).
const LIMIT: usize = 1000;
const MANAGER_LABEL: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";

/// The controller.
pub(crate) struct Subsets;

impl Operator for Subsets {
    type Resource = Service;
    type Owns = ();
    type Reads = (Pod, Edits<Endpoints>);

    fn name() -> &'static str {
        "endpoints-controller"
    }

    fn settings(&self) -> Settings {
        counting()
    }

    async fn reconcile(&self, service: &Service, cx: &Context<Self>) -> Result<Next> {
        let Some(selector) = super::selector(service) else { return Ok(Next::done()) };
        let pods = super::pods_of(&cx.cache::<Pod, _>(), cx.namespace().unwrap_or_default(), selector);
        let has = cx.read::<Endpoints, _>(cx.name());
        let mut labels = super::labels(service);
        labels.insert(MANAGER_LABEL.into(), MANAGER.into());
        let subsets = Some(subsets(service, &pods)).filter(|s| !s.is_empty());
        let written = match has {
            Some(has) if has.subsets == subsets && has.metadata.labels.as_ref() == Some(&labels) => {
                return Ok(Next::done());
            }
            Some(has) => {
                let mut new = Endpoints::clone(&has);
                new.subsets = subsets;
                new.metadata.labels = Some(labels);
                cx.update::<Endpoints, _>(&new).await
            }
            None => {
                let metadata = ObjectMeta {
                    name: Some(cx.name().to_owned()),
                    namespace: cx.namespace().map(str::to_owned),
                    labels: Some(labels),
                    ..ObjectMeta::default()
                };
                cx.create::<Endpoints, _>(Endpoints { metadata, subsets }).await
            }
        };
        match written {
            Err(e) if !pod_control::is_namespace_terminating(&e) => Err(e),
            _ => Ok(Next::done()),
        }
    }

    async fn absent(&self, key: &Key, cx: &Context<Self>) -> Result<Next> {
        if cx.cache::<Endpoints, _>().get(key).is_some() {
            cx.writer().delete::<Endpoints>(key, &DeleteParams::default()).await?;
        }
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.changes::<Pod, _>(|change, view| super::concerned(change, &view.resources()));
    }
}

/// Addresses by the ports behind them; to use, and not ready.
fn subsets(service: &Service, pods: &[Arc<Pod>]) -> Vec<EndpointSubset> {
    let v6 = service.spec.as_ref().and_then(|s| s.ip_families.as_ref()?.first()).is_some_and(|f| f == "IPv6");
    let publish = service.spec.as_ref().and_then(|s| s.publish_not_ready_addresses) == Some(true);
    let mut groups: BTreeMap<Vec<Port>, [Vec<EndpointAddress>; 2]> = BTreeMap::new();
    let backends = pods.iter().filter_map(|p| backend(service, p, v6));
    // What is on its way out has no place in this form.
    for found in backends.filter(|b| publish || !b.terminating).take(LIMIT) {
        let group = groups.entry(found.ports.clone()).or_default();
        group[usize::from(!found.ready)].push(address(found));
    }
    let some = |mut addresses: Vec<EndpointAddress>| {
        addresses.sort_by(|a, b| a.ip.cmp(&b.ip));
        Some(addresses).filter(|a| !a.is_empty())
    };
    groups
        .into_iter()
        .map(|(ports, [ready, not_ready])| EndpointSubset {
            addresses: some(ready),
            not_ready_addresses: some(not_ready),
            ports: Some(ports.into_iter().map(port).collect()).filter(|p: &Vec<_>| !p.is_empty()),
        })
        .collect()
}

fn address(backend: Backend) -> EndpointAddress {
    EndpointAddress {
        ip: backend.ip,
        hostname: backend.hostname,
        node_name: backend.node,
        target_ref: Some(backend.pod),
    }
}

fn port(port: Port) -> EndpointPort {
    EndpointPort {
        name: Some(port.name).filter(|n| !n.is_empty()),
        port: port.port,
        protocol: Some(port.protocol),
        app_protocol: port.app_protocol,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn addresses_stand_by_readiness() {
        let service: Service = serde_json::from_value(json!({"metadata": {"name": "svc"},
            "spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}))
        .unwrap();
        let pod = |ip: &str, ready: &str| {
            Arc::new(
                serde_json::from_value::<Pod>(
                    json!({"metadata": {"name": ip}, "status": {"phase": "Running",
                    "podIP": ip, "conditions": [{"type": "Ready", "status": ready}]}}),
                )
                .unwrap(),
            )
        };
        let found =
            subsets(&service, &[pod("10.0.0.3", "True"), pod("10.0.0.1", "True"), pod("10.0.0.2", "False")]);
        let ips = |l: &Option<Vec<EndpointAddress>>| -> Vec<String> {
            l.iter().flatten().map(|a| a.ip.clone()).collect()
        };
        assert_eq!(found.len(), 1);
        assert_eq!(ips(&found[0].addresses), ["10.0.0.1", "10.0.0.3"]);
        assert_eq!(ips(&found[0].not_ready_addresses), ["10.0.0.2"]);
        assert_eq!(json!(found[0].ports), json!([{"port": 80, "protocol": "TCP"}]));
        assert!(subsets(&service, &[]).is_empty());
    }
}
