//! Services and Endpoints.

use std::collections::BTreeSet;

use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error, child, index};
use homeostat_model::validation::{self, dns1123_label, dns1123_subdomain_value, qualified_name};
use serde_json::{Value, json};

use crate::builtin::rules::{self, port, port_or_name, required_label};
use crate::builtin::value::{
    Errors, ShownAs as _, at, carry, default, each, empty, has, int, items, one_of, remove, required_one_of,
    set, text, texts, wrong,
};
use crate::strategy::{Cx, Strategy};

/// Services. Addresses and node ports are allotted by the API server, which knows which are free.
pub(super) struct Services;

const TYPES: [&str; 4] = ["ClusterIP", "ExternalName", "LoadBalancer", "NodePort"];

impl Strategy for Services {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        let Some(spec) = object.get_mut("spec").filter(|s| s.is_object()) else { return };
        match text(spec, "sessionAffinity") {
            "None" => drop(remove(spec, "sessionAffinityConfig")),
            "ClientIP" if !has(spec, "sessionAffinityConfig.clientIP.timeoutSeconds") => {
                set(spec, "sessionAffinityConfig", json!({"clientIP": {"timeoutSeconds": 10800}}));
            }
            _ => {}
        }
        each(spec, "ports", |port| {
            let target = at(port, "targetPort");
            if target.is_null() || *target == 0 || *target == "" {
                let number = at(port, "port").clone();
                set(port, "targetPort", number);
            }
        });
        let kind = text(spec, "type").to_owned();
        let external = matches!(&*kind, "NodePort" | "LoadBalancer")
            || (kind == "ClusterIP" && !empty(spec, "externalIPs"));
        if external && empty(spec, "externalTrafficPolicy") {
            set(spec, "externalTrafficPolicy", "Cluster");
        }
        if matches!(&*kind, "NodePort" | "LoadBalancer" | "ClusterIP") {
            default(spec, "internalTrafficPolicy", "Cluster");
        }
        if kind == "LoadBalancer" {
            default(spec, "allocateLoadBalancerNodePorts", true);
            each(object, "status.loadBalancer.ingress", |ingress| {
                if !empty(ingress, "ip") {
                    default(ingress, "ipMode", "VIP");
                }
            });
        }
    }

    fn prepare_create(&self, _cx: &Cx<'_>, new: &mut Value) {
        normalize_cluster_ips(new, None);
        drop_disused(new, None);
    }

    fn prepare_update(&self, _cx: &Cx<'_>, new: &mut Value, old: &Value) {
        carry(new, old, "status");
        patch_allocated(new, old);
        normalize_cluster_ips(new, Some(old));
        drop_disused(new, Some(old));
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        dns1123_label(name, prefix)
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        spec(&mut errors, &new["spec"]);
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        unchanged_addresses(&mut errors, new, old);
        errors.extend(self.validate(cx, new));
        errors
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        load_balancer(&mut errors, at(new, "status.loadBalancer"));
        errors
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        ["spec.clusterIP", "spec.type"].into_iter().map(|l| (l, text(object, l).to_owned())).collect()
    }

    fn selectable_labels(&self) -> &'static [&'static str] {
        &["spec.clusterIP", "spec.type"]
    }
}

/// The status of a load balancer, of Services and Ingresses.
pub(super) fn load_balancer(errors: &mut Errors, status: &Value) {
    for (i, ingress) in items(status, "ingress").iter().enumerate() {
        let path = format!("status.loadBalancer.ingress[{i}]");
        let (ip, host) = (text(ingress, "ip"), text(ingress, "hostname"));
        if !ip.is_empty() && rules::ip(ip).is_none() {
            errors.push(Error::invalid(child(&path, "ip"), ip, rules::IP));
        }
        if ip.is_empty() && has(ingress, "ipMode") {
            errors
                .push(Error::forbidden(child(&path, "ipMode"), "may not be specified when `ip` is not set"));
        }
        one_of(errors, ingress, &path, "ipMode", &["Proxy", "VIP"]);
        if !host.is_empty() {
            wrong(errors, &child(&path, "hostname"), host, dns1123_subdomain_value(host));
            if rules::ip(host).is_some() {
                let why = "must be a DNS name, not an IP address";
                errors.push(Error::invalid(child(&path, "hostname"), host, why));
            }
        }
    }
}

fn needs_cluster_ip(spec: &Value) -> bool {
    matches!(text(spec, "type"), "ClusterIP" | "NodePort" | "LoadBalancer")
}

fn needs_node_port(spec: &Value) -> bool {
    match text(spec, "type") {
        "NodePort" => true,
        "LoadBalancer" => spec["allocateLoadBalancerNodePorts"] != false,
        _ => false,
    }
}

/// What the server has allotted stays where the client left it out.
fn patch_allocated(new: &mut Value, old: &Value) {
    if needs_cluster_ip(&old["spec"]) && needs_cluster_ip(&new["spec"]) {
        for field in ["clusterIP", "clusterIPs"] {
            if empty(&new["spec"], field)
                && (field == "clusterIP" || text(new, "spec.clusterIP") == text(old, "spec.clusterIP"))
            {
                carry(new, old, &child("spec", field));
            }
        }
        for field in ["ipFamilies", "ipFamilyPolicy"] {
            if empty(&new["spec"], field) {
                carry(new, old, &child("spec", field));
            }
        }
    }
    if needs_node_port(&old["spec"]) && needs_node_port(&new["spec"]) {
        let ports: Vec<Value> = items(old, "spec.ports").to_vec();
        let mut taken: BTreeSet<i64> =
            items(new, "spec.ports").iter().filter_map(|p| int(p, "nodePort")).collect();
        each(new, "spec.ports", |port| {
            if int(port, "nodePort").unwrap_or_default() != 0 {
                return;
            }
            let same = ports
                .iter()
                .find(|o| at(o, "port") == at(port, "port") && at(o, "protocol") == at(port, "protocol"));
            if let Some(number) = same.and_then(|o| int(o, "nodePort")).filter(|n| *n != 0)
                && taken.insert(number)
            {
                set(port, "nodePort", number);
            }
        });
    }
    if int(new, "spec.healthCheckNodePort").unwrap_or_default() == 0
        && text(new, "spec.externalTrafficPolicy") == "Local"
        && text(new, "spec.type") == "LoadBalancer"
        && text(old, "spec.externalTrafficPolicy") == "Local"
    {
        carry(new, old, "spec.healthCheckNodePort");
    }
}

/// `clusterIP` is the first of `clusterIPs`, whichever of the two a client speaks of.
fn normalize_cluster_ips(new: &mut Value, old: Option<&Value>) {
    let one = text(new, "spec.clusterIP").to_owned();
    let list: Vec<String> = texts(new, "spec.clusterIPs").into_iter().map(str::to_owned).collect();
    match old {
        None => {
            if !one.is_empty() && list.is_empty() {
                set(new, "spec.clusterIPs", vec![one]);
            }
        }
        Some(old) => {
            let before = text(old, "spec.clusterIP");
            let same_list = at(new, "spec.clusterIPs") == at(old, "spec.clusterIPs");
            if one.is_empty() && !before.is_empty() && same_list {
                // Cleared by a client that doesn't know the list.
                remove(new, "spec.clusterIPs");
            } else if (one != before && same_list) || (!one.is_empty() && list.is_empty()) {
                set(new, "spec.clusterIPs", vec![one]);
            }
        }
    }
}

/// Fields that mean nothing for a service's type.
fn drop_disused(new: &mut Value, old: Option<&Value>) {
    let kind = text(new, "spec.type").to_owned();
    let was = old.map(|o| text(o, "spec.type").to_owned()).unwrap_or_default();
    let changed = old.is_some() && kind != was;
    if !changed {
        return;
    }
    let same = |new: &Value, path: &str| old.is_some_and(|o| at(o, path) == at(new, path));
    if kind == "ExternalName" {
        for field in ["clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"] {
            if same(new, &child("spec", field)) {
                remove(new, &child("spec", field));
            }
        }
    }
    if !needs_node_port(&new["spec"]) {
        let before: Vec<Option<i64>> = old
            .map(|o| items(o, "spec.ports").iter().map(|p| int(p, "nodePort")).collect())
            .unwrap_or_default();
        let mut i = 0;
        each(new, "spec.ports", |port| {
            if before.get(i).copied().flatten() == int(port, "nodePort") {
                remove(port, "nodePort");
            }
            i += 1;
        });
    }
    if !matches!(&*kind, "NodePort" | "LoadBalancer")
        && empty(new, "spec.externalIPs")
        && same(new, "spec.externalTrafficPolicy")
    {
        remove(new, "spec.externalTrafficPolicy");
    }
    if kind != "LoadBalancer" {
        for field in ["allocateLoadBalancerNodePorts", "loadBalancerClass", "healthCheckNodePort"] {
            if same(new, &child("spec", field)) {
                remove(new, &child("spec", field));
            }
        }
        set(new, "status.loadBalancer", json!({}));
    }
    if was == "ExternalName" && same(new, "spec.externalName") {
        remove(new, "spec.externalName");
    }
}

fn unchanged_addresses(errors: &mut Errors, new: &Value, old: &Value) {
    let (kind, was) = (text(new, "spec.type"), text(old, "spec.type"));
    if kind == "ExternalName" || was == "ExternalName" {
        return;
    }
    let path = "spec.clusterIPs";
    let (now, before) = (texts(new, path), texts(old, path));
    if let Some(first) = before.first().filter(|f| !f.is_empty()) {
        if now.is_empty() {
            errors.push(Error::invalid(
                index(path, 0),
                at(new, path).clone(),
                "primary clusterIP can not be unset",
            ));
        } else if now[0] != *first {
            errors.push(Error::invalid(index(path, 0), at(new, path).clone(), "may not change once set"));
        }
    }
}

fn spec(errors: &mut Errors, spec: &Value) {
    let kind = text(spec, "type");
    let headless = text(spec, "clusterIP") == "None";
    let ports = items(spec, "ports");
    if ports.is_empty() && !headless && kind != "ExternalName" {
        errors.push(Error::required("spec.ports", ""));
    }
    match kind {
        "LoadBalancer" | "NodePort" if headless => {
            let why = format!("may not be set to 'None' for {kind} services");
            errors.push(Error::invalid("spec.clusterIPs[0]", "None", why));
        }
        "ExternalName" => {
            if !empty(spec, "clusterIPs") {
                errors.push(Error::forbidden("spec.clusterIPs", "may not be set for ExternalName services"));
            }
            if !empty(spec, "ipFamilies") {
                errors.push(Error::forbidden("spec.ipFamilies", "may not be set for ExternalName services"));
            }
            let name = text(spec, "externalName").strip_suffix('.').unwrap_or(text(spec, "externalName"));
            if name.is_empty() {
                errors.push(Error::required("spec.externalName", ""));
            } else {
                wrong(errors, "spec.externalName", name, dns1123_subdomain_value(name));
            }
        }
        _ => {}
    }
    ports_rules(errors, spec);
    if has(spec, "selector") {
        errors.extend(validation::labels(at(spec, "selector"), "spec.selector"));
    }
    required_one_of(errors, spec, "spec", "sessionAffinity", &["ClientIP", "None"]);
    if text(spec, "sessionAffinity") == "ClientIP"
        && let Some(seconds) = int(spec, "sessionAffinityConfig.clientIP.timeoutSeconds")
        && !(1..=86400).contains(&seconds)
    {
        let path = "spec.sessionAffinityConfig.clientIP.timeoutSeconds";
        errors.push(Error::invalid(path, seconds, "must be greater than 0 and less than 86400"));
    }
    for (i, ip) in texts(spec, "clusterIPs").into_iter().enumerate() {
        if ip != "None" && rules::ip(ip).is_none() {
            errors.push(Error::invalid(index("spec.clusterIPs", i), ip, rules::IP));
        }
    }
    for (i, ip) in texts(spec, "externalIPs").into_iter().enumerate() {
        rules::non_special_ip(errors, &index("spec.externalIPs", i), ip);
    }
    required_one_of(errors, spec, "spec", "type", &TYPES);
    one_of(errors, spec, "spec", "internalTrafficPolicy", &["Cluster", "Local"]);
    one_of(errors, spec, "spec", "externalTrafficPolicy", &["Cluster", "Local"]);
    one_of(errors, spec, "spec", "ipFamilyPolicy", &["SingleStack", "PreferDualStack", "RequireDualStack"]);
    if kind != "LoadBalancer" {
        if has(spec, "allocateLoadBalancerNodePorts") {
            let why = "may only be used when `type` is 'LoadBalancer'";
            errors.push(Error::forbidden("spec.allocateLoadBalancerNodePorts", why));
        }
        if !empty(spec, "loadBalancerSourceRanges") {
            let why = "may only be used when `type` is 'LoadBalancer'";
            errors.push(Error::forbidden("spec.LoadBalancerSourceRanges", why));
        }
    }
    for (i, range) in texts(spec, "loadBalancerSourceRanges").into_iter().enumerate() {
        if range.trim().parse::<ipnet::IpNet>().is_err() {
            errors.push(Error::invalid(index("spec.LoadBalancerSourceRanges", i), range, rules::CIDR));
        }
    }
}

fn ports_rules(errors: &mut Errors, spec: &Value) {
    let ports = items(spec, "ports");
    let mut names = BTreeSet::new();
    let mut seen = BTreeSet::new();
    let mut node_ports = BTreeSet::new();
    for (i, item) in ports.iter().enumerate() {
        let path = index("spec.ports", i);
        let name = text(item, "name");
        if ports.len() > 1 || !name.is_empty() {
            required_label(errors, &child(&path, "name"), name);
            if !name.is_empty() && !names.insert(name) {
                errors.push(Error::duplicate(child(&path, "name"), name));
            }
        }
        port(errors, &child(&path, "port"), int(item, "port").unwrap_or_default());
        required_one_of(errors, item, &path, "protocol", &["SCTP", "TCP", "UDP"]);
        port_or_name(errors, &child(&path, "targetPort"), at(item, "targetPort"));
        let protocol = text(item, "appProtocol");
        if !protocol.is_empty() {
            wrong(errors, &child(&path, "appProtocol"), protocol, qualified_name(protocol));
        }
        if int(item, "nodePort").is_some_and(|n| n != 0) && text(spec, "type") == "ClusterIP" {
            let why = "may not be used when `type` is 'ClusterIP'";
            errors.push(Error::forbidden(child(&path, "nodePort"), why));
        }
    }
    for (i, item) in ports.iter().enumerate() {
        let path = index("spec.ports", i);
        let key = (text(item, "protocol"), int(item, "port").unwrap_or_default());
        if !seen.insert(key) {
            let shown = format!(
                "{{\"Name\":\"\",\"Protocol\":{},\"AppProtocol\":null,\"Port\":{},\"TargetPort\":0,\"NodePort\":0}}",
                at(item, "protocol"),
                key.1
            );
            errors.push(Error::duplicate(path, item.clone()).shown_as(shown));
        }
    }
    for (i, item) in ports.iter().enumerate() {
        let Some(number) = int(item, "nodePort").filter(|n| *n != 0) else { continue };
        if !node_ports.insert((text(item, "protocol"), number)) {
            errors.push(Error::duplicate(child(&index("spec.ports", i), "nodePort"), number));
        }
    }
}

/// Endpoints.
pub(super) struct Endpoints;

impl Strategy for Endpoints {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        for (i, subset) in items(new, "subsets").iter().enumerate() {
            let path = index("subsets", i);
            if empty(subset, "addresses") && empty(subset, "notReadyAddresses") {
                errors.push(Error::required(&*path, "must specify `addresses` or `notReadyAddresses`"));
            }
            for list in ["addresses", "notReadyAddresses"] {
                for (j, address) in items(subset, list).iter().enumerate() {
                    let path = index(&child(&path, list), j);
                    rules::non_special_ip(&mut errors, &child(&path, "ip"), text(address, "ip"));
                    let host = text(address, "hostname");
                    if !host.is_empty() {
                        let bad = validation::dns1123_label_value(host);
                        wrong(&mut errors, &child(&path, "hostname"), host, bad);
                    }
                }
            }
            let ports = items(subset, "ports");
            for (j, item) in ports.iter().enumerate() {
                let path = index(&child(&path, "ports"), j);
                let name = text(item, "name");
                if ports.len() > 1 && name.is_empty() {
                    errors.push(Error::required(child(&path, "name"), ""));
                } else if !name.is_empty() {
                    required_label(&mut errors, &child(&path, "name"), name);
                }
                port(&mut errors, &child(&path, "port"), int(item, "port").unwrap_or_default());
                required_one_of(&mut errors, item, &path, "protocol", &["SCTP", "TCP", "UDP"]);
            }
        }
        errors
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn updated(old: &Value, new: Value) -> Value {
        let entropy = homeostat_model::Entropy::seeded(1);
        let cx = Cx {
            now: "2026-01-02T03:04:05Z".parse().unwrap(),
            entropy: &entropy,
            user: "u",
            groups: &[],
            subresource: "",
        };
        let mut new = new;
        Services.prepare_update(&cx, &mut new, old);
        new
    }

    #[test]
    fn what_the_server_allotted_stays() {
        let port = |node: i64| json!({"port": 80, "protocol": "TCP", "targetPort": 80, "nodePort": node});
        let old = json!({"spec": {
            "type": "NodePort", "clusterIP": "10.96.0.5", "clusterIPs": ["10.96.0.5"], "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack", "externalTrafficPolicy": "Cluster", "ports": [port(30080)],
        }});
        let bare = json!({"port": 80, "protocol": "TCP", "targetPort": 80});
        let new = updated(&old, json!({"spec": {"type": "NodePort", "ports": [bare]}}));
        assert_eq!(new["spec"]["clusterIPs"], json!(["10.96.0.5"]));
        assert_eq!(new["spec"]["ports"], json!([port(30080)]));

        let mut back = old.clone();
        back["spec"]["type"] = "ClusterIP".into();
        let new = updated(&old, back);
        assert_eq!(new["spec"]["ports"], json!([bare]));
        assert_eq!(new["spec"]["externalTrafficPolicy"], Value::Null);
    }
}
