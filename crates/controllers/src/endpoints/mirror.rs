//! EndpointSlices for Endpoints that people write themselves, for a Service without a selector.
//!
//! Subsets with the same ports share a slice, one for each family of addresses. Endpoints that say so, and those of
//! Services with selectors, aren't mirrored.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use homeostat_sdk::{Context, Event, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::core::v1::{EndpointAddress, Endpoints, Service};
use k8s_openapi::api::discovery::v1::{Endpoint, EndpointConditions, EndpointPort, EndpointSlice};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::plan::{MANAGER_LABEL, Plan, SERVICE_LABEL, existing};

/// The most addresses of a subset that are mirrored (the reference's default).
const LIMIT: usize = 1000;
const MANAGER: &str = "endpointslicemirroring-controller.k8s.io";
const SKIP_LABEL: &str = "endpointslice.kubernetes.io/skip-mirror";
/// Endpoints with this annotation are an old form of lease.
const LEADER: &str = "control-plane.alpha.kubernetes.io/leader";
/// Annotations that are about the Endpoints alone.
const OWN: [&str; 2] =
    ["kubectl.kubernetes.io/last-applied-configuration", "endpoints.kubernetes.io/last-change-trigger-time"];

/// The controller.
pub(crate) struct Mirror;

/// Whether Endpoints are to be mirrored, beside the Service of their name.
fn is_mirrored(endpoints: &Endpoints, service: Option<&Service>) -> bool {
    let meta = &endpoints.metadata;
    let skipped = meta.labels.as_ref().and_then(|l| l.get(SKIP_LABEL)).map(String::as_str) == Some("true");
    let lease = meta.annotations.as_ref().is_some_and(|a| a.contains_key(LEADER));
    let by_hand = service.is_some_and(|s| s.spec.as_ref().is_some_and(|s| s.selector.is_none()));
    by_hand && !skipped && !lease
}

/// What the slices should be, and how many addresses are no addresses or too many.
#[derive(Debug, Default)]
struct Wanted {
    slices: Vec<EndpointSlice>,
    invalid: usize,
    surplus: usize,
}

fn wanted(endpoints: &Endpoints) -> Wanted {
    let mut wanted = Wanted::default();
    // In the order in which ports first stand, IPv4 before IPv6.
    let mut groups: Vec<(&'static str, Vec<EndpointPort>, Vec<Endpoint>)> = Vec::new();
    for subset in endpoints.subsets.iter().flatten() {
        let port = |p: &k8s_openapi::api::core::v1::EndpointPort| EndpointPort {
            name: Some(p.name.clone().unwrap_or_default()),
            port: Some(p.port),
            protocol: Some(p.protocol.clone().unwrap_or_else(|| "TCP".into())),
            app_protocol: p.app_protocol.clone(),
        };
        let ports: Vec<EndpointPort> = subset.ports.iter().flatten().map(port).collect();
        let ready = subset.addresses.iter().flatten().map(|a| (a, true));
        let all = ready.chain(subset.not_ready_addresses.iter().flatten().map(|a| (a, false)));
        for (taken, (address, ready)) in all.enumerate() {
            let family = match address.ip.parse::<IpAddr>() {
                Ok(IpAddr::V4(_)) => "IPv4",
                Ok(IpAddr::V6(_)) => "IPv6",
                Err(_) => {
                    wanted.invalid += 1;
                    continue;
                }
            };
            if taken >= LIMIT {
                wanted.surplus += 1;
                continue;
            }
            let place = groups.iter_mut().find(|(f, p, _)| *f == family && *p == ports);
            match place {
                Some((.., endpoints)) => endpoints.push(endpoint(address, ready)),
                None => groups.push((family, ports.clone(), vec![endpoint(address, ready)])),
            }
        }
    }
    let meta = &endpoints.metadata;
    let name = meta.name.clone().unwrap_or_default();
    let mut labels = meta.labels.clone().unwrap_or_default();
    labels.insert(SERVICE_LABEL.into(), name.clone());
    labels.insert(MANAGER_LABEL.into(), MANAGER.into());
    let mut annotations: BTreeMap<String, String> = meta.annotations.clone().unwrap_or_default();
    annotations.retain(|k, _| !OWN.contains(&k.as_str()));
    let slice = |(family, ports, endpoints): (&str, Vec<EndpointPort>, Vec<Endpoint>)| EndpointSlice {
        metadata: ObjectMeta {
            generate_name: Some(format!("{name}-")),
            namespace: meta.namespace.clone(),
            labels: Some(labels.clone()),
            annotations: Some(annotations.clone()).filter(|a| !a.is_empty()),
            ..ObjectMeta::default()
        },
        address_type: family.to_owned(),
        endpoints: Some(endpoints),
        ports: Some(ports),
    };
    wanted.slices = groups.into_iter().map(slice).collect();
    wanted
}

fn endpoint(address: &EndpointAddress, ready: bool) -> Endpoint {
    Endpoint {
        addresses: vec![address.ip.clone()],
        conditions: Some(EndpointConditions { ready: Some(ready), ..EndpointConditions::default() }),
        hostname: address.hostname.clone().filter(|h| !h.is_empty()),
        node_name: address.node_name.clone(),
        target_ref: address.target_ref.clone(),
        ..Endpoint::default()
    }
}

fn plan(wanted: Vec<EndpointSlice>, existing: &[Arc<EndpointSlice>]) -> Plan {
    let mut plan = Plan::default();
    let mut rest = existing.to_vec();
    for slice in wanted {
        let same = |s: &Arc<EndpointSlice>| {
            s.address_type == slice.address_type
                && s.ports.as_deref().unwrap_or_default() == slice.ports.as_deref().unwrap_or_default()
        };
        let Some(at) = rest.iter().position(same) else {
            plan.create.push(slice);
            continue;
        };
        let has = rest.remove(at);
        let changed = has.endpoints != slice.endpoints
            || has.metadata.labels != slice.metadata.labels
            || has.metadata.annotations != slice.metadata.annotations;
        if changed {
            let mut new = EndpointSlice::clone(&has);
            new.endpoints = slice.endpoints;
            new.metadata.labels = slice.metadata.labels;
            new.metadata.annotations = slice.metadata.annotations;
            plan.update.push(new);
        }
    }
    plan.delete = rest;
    plan
}

impl Operator for Mirror {
    type Resource = Endpoints;
    type Owns = (EndpointSlice,);
    type Reads = (Service,);

    fn name() -> &'static str {
        "endpointslice-mirroring-controller"
    }

    async fn reconcile(&self, endpoints: &Endpoints, cx: &Context<Self>) -> Result<Next> {
        let service = cx.read::<Service, _>(cx.name());
        let existing = existing(cx, MANAGER);
        let wanted =
            if is_mirrored(endpoints, service.as_deref()) { wanted(endpoints) } else { Wanted::default() };
        if wanted.invalid > 0 {
            let text =
                format!("Skipped {} invalid IP addresses when mirroring to EndpointSlices", wanted.invalid);
            cx.event(Event::warning("InvalidAddress", text)).await;
        }
        if wanted.surplus > 0 {
            let text = format!(
                "A max of {LIMIT} addresses can be mirrored to EndpointSlices per Endpoints subset. {} addresses were skipped",
                wanted.surplus
            );
            cx.event(Event::warning("TooManyAddressesToMirror", text)).await;
        }
        let plan = plan(wanted.slices, &existing);
        plan.carry_out(cx).await?;
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.changes::<Service, _>(|change, view| {
            let selector = |s: &Service| s.spec.as_ref().map(|s| s.selector.clone());
            if !change.differs(selector) {
                return Vec::new();
            }
            let key: Option<Key> = change.key();
            key.into_iter().filter(|k| view.resources().get(k).is_some()).collect()
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn endpoints(meta: Value, subsets: Value) -> Endpoints {
        let mut object = json!({"metadata": {"name": "db", "namespace": "d"}, "subsets": subsets});
        for (k, v) in meta.as_object().unwrap() {
            object["metadata"][k] = v.clone();
        }
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn only_what_is_written_by_hand_is_mirrored() {
        let service = |spec: Value| serde_json::from_value::<Service>(json!({"spec": spec})).unwrap();
        let check = |meta: Value, spec: Value, want: bool| {
            assert_eq!(is_mirrored(&endpoints(meta, json!([])), Some(&service(spec))), want);
        };
        check(json!({}), json!({}), true);
        check(json!({}), json!({"selector": {"a": "b"}}), false);
        check(json!({"labels": {SKIP_LABEL: "true"}}), json!({}), false);
        check(json!({"annotations": {LEADER: "{}"}}), json!({}), false);
        assert!(!is_mirrored(&endpoints(json!({}), json!([])), None));
    }

    #[test]
    fn subsets_become_slices_by_ports_and_family() {
        let subsets = json!([
            {"addresses": [{"ip": "10.0.0.1", "hostname": "a"}, {"ip": "fd00::1"}], "notReadyAddresses": [{"ip": "10.0.0.2"}],
                "ports": [{"name": "sql", "port": 5432}]},
            {"addresses": [{"ip": "10.0.0.3"}, {"ip": "nowhere"}], "ports": [{"name": "sql", "port": 5432, "protocol": "TCP"}]},
            {"addresses": [{"ip": "10.0.0.4"}], "ports": [{"name": "sql", "port": 5433}]}]);
        let meta = json!({"labels": {"team": "a"}, "annotations": {OWN[0]: "{}", "note": "x"}});
        let first = wanted(&endpoints(meta.clone(), subsets));
        assert_eq!((first.invalid, first.surplus), (1, 0));
        let show = |s: &EndpointSlice| {
            let addresses: Vec<&str> =
                s.endpoints.iter().flatten().map(|e| e.addresses[0].as_str()).collect();
            format!(
                "{} {} {}",
                s.address_type,
                s.ports.as_ref().unwrap()[0].port.unwrap(),
                addresses.join(" ")
            )
        };
        let all: Vec<String> = first.slices.iter().map(show).collect();
        assert_eq!(all, ["IPv4 5432 10.0.0.1 10.0.0.2 10.0.0.3", "IPv6 5432 fd00::1", "IPv4 5433 10.0.0.4"]);
        let slice = &first.slices[0];
        assert_eq!(
            json!(slice.metadata.labels),
            json!({"team": "a", SERVICE_LABEL: "db", MANAGER_LABEL: MANAGER})
        );
        assert_eq!(json!(slice.metadata.annotations), json!({"note": "x"}));
        let ready = |i: usize| slice.endpoints.as_ref().unwrap()[i].conditions.as_ref().unwrap().ready;
        assert_eq!((ready(0), ready(1)), (Some(true), Some(false)));

        // The same again is nothing; other addresses rewrite, other ports replace.
        let stored: Vec<_> = first.slices.iter().cloned().map(Arc::new).collect();
        let again = plan(first.slices.clone(), &stored);
        assert!(again.create.is_empty() && again.update.is_empty() && again.delete.is_empty());
        let other = json!([{"addresses": [{"ip": "10.0.0.9"}], "ports": [{"name": "sql", "port": 5432}]},
            {"addresses": [{"ip": "10.0.0.9"}], "ports": [{"name": "sql", "port": 1}]}]);
        let next = plan(wanted(&endpoints(meta, other)).slices, &stored);
        assert_eq!((next.create.len(), next.update.len(), next.delete.len()), (1, 1, 2));
    }

    #[test]
    fn there_is_a_limit() {
        let addresses: Vec<Value> =
            (0..1003).map(|n| json!({"ip": format!("10.0.{}.{}", n / 250, n % 250)})).collect();
        let all = wanted(&endpoints(json!({}), json!([{"addresses": addresses, "ports": [{"port": 1}]}])));
        assert_eq!((all.slices[0].endpoints.as_ref().unwrap().len(), all.surplus), (1000, 3));
    }
}
