//! Endpoints, the older form: one object per Service with all addresses, those to use and those not ready.
//!
//! It has the Service's name rather than an owner reference, so it is deleted here when its Service goes.

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_sdk::{Context, Edits, Event, Key, Next, Operator, Result, Settings, Watches};
use k8s_openapi::api::core::v1::{EndpointAddress, EndpointPort, EndpointSubset, Endpoints, Pod, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::DeleteParams;

use super::backend::{Backend, Port, backend};
use super::trigger::{self, Triggers};
use crate::common::{counting, pod_control};

/// The most addresses in an Endpoints object (the API's limit of this form).
const LIMIT: usize = 1000;
const MANAGER_LABEL: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";
/// The annotation that says that there are more addresses.
const OVER: &str = "endpoints.kubernetes.io/over-capacity";
const TRUNCATED: &str = "truncated";

/// The controller.
#[derive(Default)]
pub(crate) struct Subsets {
    triggers: Triggers,
}

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
        let trigger = self.triggers.look(service, &pods);
        let has = cx.read::<Endpoints, _>(cx.name());
        let mut labels = super::labels(service);
        labels.insert(MANAGER_LABEL.into(), MANAGER.into());
        let mut subsets = subsets(service, &pods);
        let over = truncate(&mut subsets);
        let mut new = has.as_deref().cloned().unwrap_or_else(|| Endpoints {
            metadata: ObjectMeta {
                name: Some(cx.name().to_owned()),
                namespace: cx.namespace().map(str::to_owned),
                ..ObjectMeta::default()
            },
            subsets: None,
        });
        new.subsets = Some(subsets).filter(|s| !s.is_empty());
        new.metadata.labels = Some(labels);
        let mut annotations = new.metadata.annotations.take().unwrap_or_default();
        annotations.remove(OVER);
        if over {
            annotations.insert(OVER.into(), TRUNCATED.into());
        }
        new.metadata.annotations = Some(annotations).filter(|a| !a.is_empty());
        // The time alone is no reason to write.
        if has.as_deref() == Some(&new) {
            return Ok(Next::done());
        }
        trigger::annotate(&mut new.metadata.annotations, trigger);
        let written = match has {
            Some(_) => cx.update::<Endpoints, _>(&new).await,
            None => match cx.create::<Endpoints, _>(new.clone()).await {
                Err(e) if pod_control::is_namespace_terminating(&e) => return Ok(Next::done()),
                other => other,
            },
        };
        if let Err(e) = written {
            let name = cx.key().to_string();
            let event = if new.metadata.uid.is_none() {
                let text = format!("Failed to create endpoint for service {name}: {e}");
                Event::warning("FailedToCreateEndpoint", text)
            } else {
                Event::warning("FailedToUpdateEndpoint", format!("Failed to update endpoint {name}: {e}"))
            };
            cx.event_about::<Endpoints>(&new, event).await;
            return Err(e);
        }
        Ok(Next::done())
    }

    async fn absent(&self, key: &Key, cx: &Context<Self>) -> Result<Next> {
        self.triggers.forget(key);
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
    let portless = service.spec.as_ref().and_then(|s| s.ports.as_ref()).is_none_or(Vec::is_empty);
    // What is on its way out has no place in this form, nor what has none of the ports.
    let stands = |b: &Backend| (publish || !b.terminating) && (portless || !b.ports.is_empty());
    for found in backends.filter(stands) {
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

/// Takes out what is too much, and says whether it did: of each subset in proportion, those that aren't ready first.
fn truncate(subsets: &mut Vec<EndpointSubset>) -> bool {
    let count = |l: &Option<Vec<EndpointAddress>>| l.as_ref().map_or(0, Vec::len);
    let ready: usize = subsets.iter().map(|s| count(&s.addresses)).sum();
    let unready: usize = subsets.iter().map(|s| count(&s.not_ready_addresses)).sum();
    if ready + unready <= LIMIT {
        return false;
    }
    let only_ready = ready > LIMIT;
    let (room, all) = if only_ready { (LIMIT, ready) } else { (LIMIT - ready, unready) };
    let mut left = room;
    for subset in subsets.iter_mut() {
        if only_ready {
            subset.not_ready_addresses = None;
        }
        let list = if only_ready { &mut subset.addresses } else { &mut subset.not_ready_addresses };
        let share = (count(list) * room).div_ceil(all).min(left);
        left -= share;
        if let Some(addresses) = list {
            addresses.truncate(share);
        }
        if share == 0 {
            *list = None;
        }
    }
    // One without addresses is none, and would not be taken.
    subsets.retain(|s| s.addresses.is_some() || s.not_ready_addresses.is_some());
    true
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

    #[test]
    fn a_pod_without_the_named_port_is_left_out() {
        let service = |ports: serde_json::Value| {
            serde_json::from_value::<Service>(json!({"metadata": {"name": "svc"},
                "spec": {"selector": {"a": "b"}, "ports": ports}}))
            .unwrap()
        };
        let pod = Arc::new(
            serde_json::from_value::<Pod>(json!({"metadata": {"name": "p"}, "spec": {"containers": []},
                "status": {"phase": "Running", "podIP": "10.0.0.1"}}))
            .unwrap(),
        );
        let count = |ports| subsets(&service(ports), std::slice::from_ref(&pod)).len();
        assert_eq!(count(json!([{"port": 80, "targetPort": "web"}])), 0);
        assert_eq!(count(json!([{"port": 80, "targetPort": "web"}, {"port": 81}])), 1);
        assert_eq!(count(json!([])), 1);
    }

    #[test]
    fn what_is_too_much_is_taken_out() {
        let check = |has: &[(usize, usize)], want: &[(usize, usize)]| {
            let list = |n: usize| Some(vec![EndpointAddress::default(); n]).filter(|l| !l.is_empty());
            let subset = |(ready, unready): &(usize, usize)| EndpointSubset {
                addresses: list(*ready),
                not_ready_addresses: list(*unready),
                ports: None,
            };
            let mut all: Vec<EndpointSubset> = has.iter().map(subset).collect();
            assert_eq!(truncate(&mut all), has != want);
            let count = |l: &Option<Vec<EndpointAddress>>| l.as_ref().map_or(0, Vec::len);
            let got: Vec<_> =
                all.iter().map(|s| (count(&s.addresses), count(&s.not_ready_addresses))).collect();
            assert_eq!(got, want, "{has:?}");
        };
        check(&[(600, 400)], &[(600, 400)]);
        check(&[(600, 500)], &[(600, 400)]);
        check(&[(1200, 5)], &[(1000, 0)]);
        check(&[(100, 1000), (500, 200)], &[(100, 334), (500, 66)]);
        check(&[(900, 0), (600, 7)], &[(600, 0), (400, 0)]);
    }
}
