//! Ingresses, IngressClasses, NetworkPolicies, EndpointSlices, IPAddresses and ServiceCIDRs.

use std::collections::BTreeSet;

use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error, child, index};
use homeostat_model::validation::{self, dns1123_label, dns1123_subdomain_value, qualified_name};
use serde_json::{Value, json};

use super::service::load_balancer;
use crate::builtin::rules::{self, CIDR, port, port_name, port_or_name};
use crate::builtin::value::{
    Errors, at, empty, has, int, items, one_of, required_one_of, set, text, texts, unchanged, wrong,
};
use crate::strategy::{Cx, Strategy};

/// Ingresses.
pub(super) struct Ingresses;

impl Strategy for Ingresses {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        for (i, tls) in items(spec, "tls").iter().enumerate() {
            for (j, host) in texts(tls, "hosts").into_iter().enumerate() {
                let path = format!("spec.tls[{i}].hosts[{j}]");
                self::host(&mut errors, &path, host);
            }
            let secret = text(tls, "secretName");
            if !secret.is_empty() {
                wrong(
                    &mut errors,
                    &format!("spec.tls[{i}].secretName"),
                    secret,
                    dns1123_subdomain_value(secret),
                );
            }
        }
        if empty(spec, "rules") && !has(spec, "defaultBackend") {
            let why = "either `defaultBackend` or `rules` must be specified";
            errors.push(Error::invalid("spec", at(spec, "rules").clone(), why));
        }
        if has(spec, "defaultBackend") {
            backend(&mut errors, "spec.defaultBackend", at(spec, "defaultBackend"));
        }
        for (i, rule) in items(spec, "rules").iter().enumerate() {
            self::rule(&mut errors, &index("spec.rules", i), rule);
        }
        let class = text(spec, "ingressClassName");
        if has(spec, "ingressClassName") {
            wrong(&mut errors, "spec.ingressClassName", class, dns1123_subdomain_value(class));
        }
        errors
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        load_balancer(&mut errors, at(new, "status.loadBalancer"));
        errors
    }
}

fn host(errors: &mut Errors, path: &str, host: &str) {
    if host.contains('*') {
        let rest = host.strip_prefix("*.");
        let good = rest.is_some_and(|r| dns1123_subdomain_value(r).is_empty());
        if !good {
            let why = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which \
                       must consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric \
                       character (e.g. '*.example.com', regex used for validation is \
                       '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
            errors.push(Error::invalid(path, host, why));
        }
    } else {
        wrong(errors, path, host, dns1123_subdomain_value(host));
    }
}

fn rule(errors: &mut Errors, path: &str, rule: &Value) {
    let name = text(rule, "host");
    if !name.is_empty() {
        if rules::ip(name).is_some() {
            let why = "must be a DNS name, not an IP address";
            errors.push(Error::invalid(child(path, "host"), name, why));
        } else {
            host(errors, &child(path, "host"), name);
        }
    }
    if !has(rule, "http") {
        return;
    }
    let at_paths = child(path, "http.paths");
    if empty(rule, "http.paths") {
        errors.push(Error::required(&*at_paths, ""));
    }
    for (i, item) in items(rule, "http.paths").iter().enumerate() {
        let path = index(&at_paths, i);
        let value = text(item, "path");
        match text(item, "pathType") {
            "Exact" | "Prefix" => {
                let at_path = child(&path, "path");
                if !value.starts_with('/') {
                    errors.push(Error::invalid(&*at_path, value, "must be an absolute path"));
                }
                for part in ["//", "/./", "/../", "%2f", "%2F"] {
                    if value.contains(part) {
                        errors.push(Error::invalid(&*at_path, value, format!("must not contain '{part}'")));
                    }
                }
                for part in ["/..", "/."] {
                    if value.ends_with(part) {
                        errors.push(Error::invalid(&*at_path, value, format!("cannot end with '{part}'")));
                    }
                }
            }
            "ImplementationSpecific" => {
                if !value.is_empty() && !value.starts_with('/') {
                    errors.push(Error::invalid(child(&path, "path"), value, "must be an absolute path"));
                }
            }
            "" => errors.push(Error::required(child(&path, "pathType"), "pathType must be specified")),
            other => {
                let allowed = ["Exact", "ImplementationSpecific", "Prefix"];
                errors.push(Error::not_supported(child(&path, "pathType"), other, &allowed));
            }
        }
        backend(errors, &child(&path, "backend"), at(item, "backend"));
    }
}

fn backend(errors: &mut Errors, path: &str, backend: &Value) {
    let (service, resource) = (at(backend, "service"), at(backend, "resource"));
    match (service.is_null(), resource.is_null()) {
        (false, false) => {
            errors.push(Error::invalid(path, "", "cannot set both resource and service backends"));
        }
        (true, true) => errors.push(Error::invalid(path, "", "resource or service backend is required")),
        (true, false) => {
            for field in ["kind", "name"] {
                rules::required(errors, resource, &child(path, "resource"), field);
            }
        }
        (false, true) => {
            let name = text(service, "name");
            if name.is_empty() {
                errors.push(Error::required(child(path, "service.name"), ""));
            } else {
                wrong(errors, &child(path, "service.name"), name, dns1123_label(name, false));
            }
            let (port_name_, number) =
                (text(service, "port.name"), int(service, "port.number").unwrap_or_default());
            if !port_name_.is_empty() && number != 0 {
                errors.push(Error::invalid(path, "", "cannot set both port name & port number"));
            } else if !port_name_.is_empty() {
                wrong(errors, &child(path, "service.port.name"), port_name_, port_name(port_name_));
            } else if number != 0 {
                port(errors, &child(path, "service.port.number"), number);
            } else {
                errors.push(Error::required(path, "port name or number is required"));
            }
        }
    }
}

/// IngressClasses.
pub(super) struct IngressClasses;

impl Strategy for IngressClasses {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        if text(spec, "controller").len() > 250 {
            errors.push(Error::too_long("spec.controller", 250));
        }
        if rules::required(&mut errors, spec, "spec", "controller") && !text(spec, "controller").contains('/')
        {
            let why = "must be a domain-prefixed path (such as \"acme.io/foo\")";
            errors.push(Error::invalid("spec.controller", text(spec, "controller"), why));
        }
        let parameters = at(spec, "parameters");
        if !parameters.is_null() {
            let path = "spec.parameters";
            for field in ["kind", "name"] {
                rules::required(&mut errors, parameters, path, field);
            }
            required_one_of(&mut errors, parameters, path, "scope", &["Cluster", "Namespace"]);
            let (scope, namespace) = (text(parameters, "scope"), at(parameters, "namespace"));
            if scope == "Namespace" && namespace.as_str().is_none_or(str::is_empty) {
                let why = "`parameters.scope` is set to 'Namespace'";
                errors.push(Error::required("spec.parameters.namespace", why));
            }
            if scope == "Cluster" && !namespace.is_null() {
                let why = "`parameters.scope` is set to 'Cluster'";
                errors.push(Error::forbidden("spec.parameters.namespace", why));
            }
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        unchanged(&mut errors, new, old, "spec.controller");
        errors
    }
}

/// NetworkPolicies.
pub(super) struct NetworkPolicies;

impl Strategy for NetworkPolicies {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        if empty(object, "spec.policyTypes") {
            let egress = has(object, "spec.egress");
            let types = if egress { json!(["Ingress", "Egress"]) } else { json!(["Ingress"]) };
            set(object, "spec.policyTypes", types);
        }
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        errors.extend(validation::label_selector(at(spec, "podSelector"), "spec.podSelector"));
        for (rules, peers) in [("ingress", "from"), ("egress", "to")] {
            for (i, rule) in items(spec, rules).iter().enumerate() {
                let path = index(&child("spec", rules), i);
                for (j, item) in items(rule, "ports").iter().enumerate() {
                    policy_port(&mut errors, &index(&child(&path, "ports"), j), item);
                }
                for (j, peer) in items(rule, peers).iter().enumerate() {
                    self::peer(&mut errors, &index(&child(&path, peers), j), peer);
                }
            }
        }
        let types = texts(spec, "policyTypes");
        if types.len() > 2 {
            let why = "may not specify more than two policyTypes";
            errors.push(Error::invalid("spec.policyTypes", at(spec, "policyTypes").clone(), why));
            return errors;
        }
        for (i, kind) in types.into_iter().enumerate() {
            if !matches!(kind, "Ingress" | "Egress") {
                errors.push(Error::not_supported(index("spec.policyTypes", i), kind, &["Ingress", "Egress"]));
            }
        }
        errors
    }
}

fn policy_port(errors: &mut Errors, path: &str, item: &Value) {
    one_of(errors, item, path, "protocol", &["SCTP", "TCP", "UDP"]);
    let (first, last) = (at(item, "port"), int(item, "endPort"));
    if first.is_null() {
        if last.is_some() {
            errors
                .push(Error::required(child(path, "port"), "must be specified when `endPort` is specified"));
        }
        return;
    }
    if let Some(number) = first.as_i64() {
        port(errors, &child(path, "port"), number);
        if let Some(last) = last {
            if last < number {
                let why = "must be greater than or equal to `port`";
                errors.push(Error::invalid(child(path, "endPort"), number, why));
            }
            if !(1..=65535).contains(&last) {
                port(errors, &child(path, "endPort"), last);
            }
        }
    } else {
        if let Some(last) = last {
            let why = "may not be specified when `port` is non-numeric";
            errors.push(Error::invalid(child(path, "endPort"), last, why));
        }
        port_or_name(errors, &child(path, "port"), first);
    }
}

fn peer(errors: &mut Errors, path: &str, peer: &Value) {
    let mut kinds = 0;
    for selector in ["podSelector", "namespaceSelector"] {
        if has(peer, selector) {
            kinds += 1;
            errors.extend(validation::label_selector(at(peer, selector), &child(path, selector)));
        }
    }
    if has(peer, "ipBlock") {
        let (block, at_block) = (at(peer, "ipBlock"), child(path, "ipBlock"));
        let range = text(block, "cidr");
        match range.parse::<ipnet::IpNet>() {
            _ if range.is_empty() => errors.push(Error::required(child(&at_block, "cidr"), "")),
            Err(_) => errors.push(Error::invalid(child(&at_block, "cidr"), range, CIDR)),
            Ok(net) => {
                for (i, except) in texts(block, "except").into_iter().enumerate() {
                    let path = index(&child(&at_block, "except"), i);
                    match except.parse::<ipnet::IpNet>() {
                        Err(_) => errors.push(Error::invalid(path, except, CIDR)),
                        Ok(inner) if !net.contains(&inner) || net == inner => {
                            errors.push(Error::invalid(path, except, "must be a strict subset of `cidr`"));
                        }
                        Ok(_) => {}
                    }
                }
            }
        }
        if kinds > 0 {
            errors.push(Error::forbidden(path, "may not specify both ipBlock and another peer"));
        }
        kinds += 1;
    }
    if kinds == 0 {
        errors.push(Error::required(path, "must specify a peer"));
    }
}

/// EndpointSlices.
pub(super) struct EndpointSlices;

impl Strategy for EndpointSlices {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let kinds = ["FQDN", "IPv4", "IPv6"];
        let kind = text(new, "addressType");
        let known = kinds.contains(&kind);
        if kind.is_empty() {
            errors.push(Error::required("addressType", ""));
        } else if !known {
            errors.push(Error::not_supported("addressType", kind, &kinds));
        }
        ports(&mut errors, items(new, "ports"));
        let endpoints = items(new, "endpoints");
        if endpoints.len() > 1000 {
            errors.push(Error::too_many("endpoints", endpoints.len(), 1000));
            return errors;
        }
        for (i, endpoint) in endpoints.iter().enumerate() {
            endpoint_rules(&mut errors, &index("endpoints", i), endpoint, kind);
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        unchanged(&mut errors, new, old, "addressType");
        if errors.is_empty() {
            errors.extend(self.validate(cx, new));
        }
        errors
    }

    fn spec_changed(&self, new: &Value, old: &Value) -> bool {
        let part = |o: &Value| {
            let metadata =
                json!({"labels": at(o, "metadata.labels"), "annotations": at(o, "metadata.annotations")});
            json!([metadata, at(o, "addressType"), at(o, "endpoints"), at(o, "ports")])
        };
        part(new) != part(old)
    }
}

/// The ports of a slice, which the reference looks at before its endpoints.
fn ports(errors: &mut Errors, ports: &[Value]) {
    if ports.len() > 20_000 {
        errors.push(Error::too_many("ports", ports.len(), 20_000));
        return;
    }
    let mut names = BTreeSet::new();
    for (i, item) in ports.iter().enumerate() {
        let path = index("ports", i);
        let name = text(item, "name");
        if !name.is_empty() {
            wrong(errors, &child(&path, "name"), name, validation::dns1123_label_value(name));
        }
        if !names.insert(name) {
            errors.push(Error::duplicate(child(&path, "name"), name));
        }
        required_one_of(errors, item, &path, "protocol", &["SCTP", "TCP", "UDP"]);
        let protocol = text(item, "appProtocol");
        if !protocol.is_empty() {
            wrong(errors, &child(&path, "appProtocol"), protocol, qualified_name(protocol));
        }
    }
}

fn endpoint_rules(errors: &mut Errors, path: &str, endpoint: &Value, kind: &str) {
    let at_addresses = child(path, "addresses");
    let addresses = texts(endpoint, "addresses");
    if addresses.is_empty() {
        errors.push(Error::required(&*at_addresses, "must contain at least 1 address"));
    } else if addresses.len() > 100 {
        errors.push(Error::too_many(&*at_addresses, addresses.len(), 100));
        return;
    }
    for (i, address) in addresses.iter().enumerate() {
        let path = index(&at_addresses, i);
        match kind {
            "IPv4" | "IPv6" => {
                match rules::ip(address) {
                    Some(ip) if ip.is_ipv4() != (kind == "IPv4") => {
                        let why = format!("must be an {kind} address");
                        errors.push(Error::invalid(&*at_addresses, *address, why));
                    }
                    _ => {}
                }
                rules::non_special_ip(errors, &path, address);
            }
            "FQDN" => wrong(errors, &path, address, dns1123_subdomain_value(address)),
            _ => {}
        }
    }
    let node = text(endpoint, "nodeName");
    if !node.is_empty() {
        wrong(errors, &child(path, "nodeName"), node, dns1123_subdomain_value(node));
    }
    let host = text(endpoint, "hostname");
    if !host.is_empty() {
        wrong(errors, &child(path, "hostname"), host, validation::dns1123_label_value(host));
    }
}

/// ServiceCIDRs.
pub(super) struct ServiceCidrs;

impl Strategy for ServiceCidrs {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let ranges = texts(new, "spec.cidrs");
        if ranges.is_empty() {
            errors.push(Error::required("spec.cidrs", "at least one CIDR required"));
        } else if ranges.len() > 2 {
            let why = "may only hold up to 2 values";
            errors.push(Error::invalid("spec.cidrs", at(new, "spec.cidrs").clone(), why));
        }
        for (i, range) in ranges.into_iter().enumerate() {
            if range.parse::<ipnet::IpNet>().is_err() {
                errors.push(Error::invalid(index("spec.cidrs", i), range, CIDR));
            }
        }
        errors
    }

    fn validate_update(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        unchanged(&mut errors, new, old, "spec.cidrs");
        errors
    }
}

/// IPAddresses.
pub(super) struct IpAddresses;

impl Strategy for IpAddresses {
    fn validate_name(&self, name: &str, _prefix: bool) -> Vec<String> {
        if rules::ip(name).is_some_and(|ip| ip.to_string() == name) {
            Vec::new()
        } else {
            vec![rules::IP.to_owned()]
        }
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let reference = at(new, "spec.parentRef");
        if reference.is_null() {
            errors.push(Error::required("spec.parentRef", ""));
            return errors;
        }
        for field in ["resource", "name"] {
            rules::required(&mut errors, reference, "spec.parentRef", field);
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        unchanged(&mut errors, new, old, "spec.parentRef");
        errors
    }
}
