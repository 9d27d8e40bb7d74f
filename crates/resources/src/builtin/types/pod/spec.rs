//! Rules of a pod's spec, as pods and templates have it, beyond containers and volumes.

use std::collections::BTreeSet;

use homeostat_model::field::{Error, child, index};
use homeostat_model::validation::{
    self, dns1123_label_value, dns1123_subdomain_value, label_value, qualified_name,
};
use serde_json::Value;

use super::container::{self, Pod, profile};
use super::volume;
use crate::builtin::rules::{self, embedded_labels};
use crate::builtin::value::{
    Errors, at, empty, flag, has, int, items, one_of, required_one_of, text, texts, wrong,
};

/// Rules of a `PodTemplateSpec` at `path`.
pub(crate) fn template(errors: &mut Errors, path: &str, template: &Value) {
    embedded_labels(errors, path, at(template, "metadata"));
    let path = child(path, "spec");
    let spec = at(template, "spec");
    self::spec(errors, &path, spec);
    if !empty(spec, "ephemeralContainers") {
        let why = "ephemeral containers not allowed in pod template";
        errors.push(Error::forbidden(child(&path, "ephemeralContainers"), why));
    }
}

/// Rules of a `PodSpec` at `path`.
pub(crate) fn spec(errors: &mut Errors, path: &str, spec: &Value) {
    let mut of_volumes = Errors::new();
    let volumes = volume::volumes(&mut of_volumes, path, spec);
    errors.append(&mut of_volumes);
    let pod = Pod { volumes, host_network: flag(spec, "hostNetwork") };
    container::containers(errors, path, spec, &pod);
    container::init_containers(errors, path, spec, &pod);
    container::ephemeral_containers(errors, path, spec, &pod);
    required_one_of(errors, spec, path, "restartPolicy", &["Always", "OnFailure", "Never"]);
    let dns = ["ClusterFirstWithHostNet", "ClusterFirst", "Default", "None"];
    required_one_of(errors, spec, path, "dnsPolicy", &dns);
    errors.extend(validation::labels(at(spec, "nodeSelector"), &child(path, "nodeSelector")));
    security(errors, path, spec);
    affinity(errors, &child(path, "affinity"), at(spec, "affinity"));
    dns_config(errors, path, spec);
    for (i, gate) in items(spec, "readinessGates").iter().enumerate() {
        let name = text(gate, "conditionType");
        let path = child(&index(&child(path, "readinessGates"), i), "conditionType");
        wrong(errors, &path, name, qualified_name(name));
    }
    let mut gates = BTreeSet::new();
    for (i, gate) in items(spec, "schedulingGates").iter().enumerate() {
        let (name, path) = (text(gate, "name"), index(&child(path, "schedulingGates"), i));
        wrong(errors, &path, name, qualified_name(name));
        if !gates.insert(name) {
            errors.push(Error::duplicate(path, name));
        }
    }
    spread(errors, path, spec);
    for (field, rule) in [
        ("serviceAccountName", dns1123_subdomain_value as fn(&str) -> Vec<String>),
        ("nodeName", dns1123_subdomain_value),
        ("hostname", dns1123_label_value),
        ("subdomain", dns1123_label_value),
        ("priorityClassName", dns1123_subdomain_value),
        ("runtimeClassName", dns1123_subdomain_value),
    ] {
        let value = text(spec, field);
        if !value.is_empty() {
            wrong(errors, &child(path, field), value, rule(value));
        }
    }
    if let Some(deadline) =
        int(spec, "activeDeadlineSeconds").filter(|d| !(1..=i64::from(i32::MAX)).contains(d))
    {
        let why = "must be between 1 and 2147483647, inclusive";
        errors.push(Error::invalid(child(path, "activeDeadlineSeconds"), deadline, why));
    }
    tolerations(errors, &child(path, "tolerations"), items(spec, "tolerations"));
    host_aliases(errors, path, spec);
    one_of(errors, spec, path, "preemptionPolicy", &["Never", "PreemptLowerPriority"]);
    let resources = at(spec, "resources");
    if !resources.is_null() {
        rules::container_resources(errors, &child(path, "resources"), resources);
    }
    if has(spec, "os") {
        required_one_of(errors, at(spec, "os"), &child(path, "os"), "name", &["linux", "windows"]);
    }
}

fn security(errors: &mut Errors, path: &str, spec: &Value) {
    let (context, path) = (at(spec, "securityContext"), child(path, "securityContext"));
    for field in ["fsGroup", "runAsUser", "runAsGroup"] {
        if let Some(id) = int(context, field).filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
            errors.push(Error::invalid(
                child(&path, field),
                id,
                "must be between 0 and 2147483647, inclusive",
            ));
        }
    }
    one_of(errors, context, &path, "fsGroupChangePolicy", &["Always", "OnRootMismatch"]);
    one_of(errors, context, &path, "supplementalGroupsPolicy", &["Merge", "Strict"]);
    profile(errors, &child(&path, "seccompProfile"), at(context, "seccompProfile"));
    profile(errors, &child(&path, "appArmorProfile"), at(context, "appArmorProfile"));
    let mut names = BTreeSet::new();
    for (i, sysctl) in items(context, "sysctls").iter().enumerate() {
        let (name, path) = (text(sysctl, "name"), child(&index(&child(&path, "sysctls"), i), "name"));
        let legal = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"-_./".contains(&b);
        if name.is_empty() {
            errors.push(Error::required(path, ""));
        } else if name.len() > 253 || !name.bytes().all(legal) {
            let why = "must have at most 253 characters and match regex ^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$";
            errors.push(Error::invalid(path, name, why));
        } else if !names.insert(name) {
            errors.push(Error::duplicate(path, name));
        }
    }
}

/// Rules of tolerations.
pub(super) fn tolerations(errors: &mut Errors, path: &str, list: &[Value]) {
    for (i, toleration) in list.iter().enumerate() {
        let path = index(path, i);
        let (key, operator, effect) =
            (text(toleration, "key"), text(toleration, "operator"), text(toleration, "effect"));
        if !key.is_empty() {
            wrong(errors, &child(&path, "key"), key, qualified_name(key));
        } else if operator != "Exists" {
            let why =
                "operator must be Exists when `key` is empty, which means \"match all values and all keys\"";
            errors.push(Error::invalid(child(&path, "operator"), operator, why));
        }
        if has(toleration, "tolerationSeconds") && effect != "NoExecute" {
            let why = "effect must be 'NoExecute' when `tolerationSeconds` is set";
            errors.push(Error::invalid(child(&path, "effect"), effect, why));
        }
        let value = text(toleration, "value");
        match operator {
            "Equal" | "" => {
                if let Some(why) = label_value(value).into_iter().next() {
                    errors.push(Error::invalid(child(&path, "operator"), value, why));
                }
            }
            "Exists" => {
                if !value.is_empty() {
                    let why = "value must be empty when `operator` is 'Exists'";
                    errors.push(Error::invalid(child(&path, "operator"), toleration.clone(), why));
                }
            }
            other => errors.push(Error::not_supported(child(&path, "operator"), other, &["Equal", "Exists"])),
        }
        if !effect.is_empty() {
            let effects = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
            one_of(errors, toleration, &path, "effect", &effects);
        }
    }
}

fn host_aliases(errors: &mut Errors, path: &str, spec: &Value) {
    for (i, alias) in items(spec, "hostAliases").iter().enumerate() {
        let path = index(&child(path, "hostAliases"), i);
        let ip = text(alias, "ip");
        if rules::ip(ip).is_none() {
            errors.push(Error::invalid(child(&path, "ip"), ip, rules::IP));
        }
        for (j, name) in texts(alias, "hostnames").into_iter().enumerate() {
            wrong(errors, &index(&child(&path, "hostnames"), j), name, dns1123_subdomain_value(name));
        }
    }
}

fn dns_config(errors: &mut Errors, path: &str, spec: &Value) {
    let config = at(spec, "dnsConfig");
    let path = child(path, "dnsConfig");
    if text(spec, "dnsPolicy") == "None" && items(config, "nameservers").is_empty() {
        let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        return errors.push(Error::required(child(&path, "nameservers"), why));
    }
    let servers = texts(config, "nameservers");
    if servers.len() > 3 {
        let why = "must not have more than 3 nameservers";
        errors.push(Error::invalid(child(&path, "nameservers"), at(config, "nameservers").clone(), why));
    }
    for (i, server) in servers.into_iter().enumerate() {
        if rules::ip(server).is_none() {
            errors.push(Error::invalid(index(&child(&path, "nameservers"), i), server, rules::IP));
        }
    }
    for (i, option) in items(config, "options").iter().enumerate() {
        if text(option, "name").is_empty() {
            errors.push(Error::required(index(&child(&path, "options"), i), "must not be empty"));
        }
    }
}

fn spread(errors: &mut Errors, path: &str, spec: &Value) {
    let mut seen = BTreeSet::new();
    for (i, constraint) in items(spec, "topologySpreadConstraints").iter().enumerate() {
        let path = index(&child(path, "topologySpreadConstraints"), i);
        let skew = int(constraint, "maxSkew").unwrap_or_default();
        if skew <= 0 {
            errors.push(Error::invalid(child(&path, "maxSkew"), skew, "must be greater than zero"));
        }
        let key = text(constraint, "topologyKey");
        if key.is_empty() {
            errors.push(Error::required(child(&path, "topologyKey"), "can not be empty"));
        } else {
            wrong(errors, &child(&path, "topologyKey"), key, qualified_name(key));
        }
        let when = text(constraint, "whenUnsatisfiable");
        if !matches!(when, "DoNotSchedule" | "ScheduleAnyway") {
            let allowed = ["DoNotSchedule", "ScheduleAnyway"];
            errors.push(Error::not_supported(child(&path, "whenUnsatisfiable"), when, &allowed));
        }
        if !seen.insert((key, when)) {
            errors.push(Error::duplicate(
                child(&path, "{topologyKey, whenUnsatisfiable}"),
                format!("{{{key}, {when}}}"),
            ));
        }
        if let Some(domains) = int(constraint, "minDomains") {
            if domains <= 0 {
                errors.push(Error::invalid(child(&path, "minDomains"), domains, "must be greater than 0"));
            } else if when != "DoNotSchedule" {
                let why = format!("can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {when}");
                errors.push(Error::invalid(child(&path, "minDomains"), domains, why));
            }
        }
        one_of(errors, constraint, &path, "nodeAffinityPolicy", &["Honor", "Ignore"]);
        one_of(errors, constraint, &path, "nodeTaintsPolicy", &["Honor", "Ignore"]);
        let selector = at(constraint, "labelSelector");
        errors.extend(validation::label_selector(selector, &child(&path, "labelSelector")));
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn affinity(errors: &mut Errors, path: &str, affinity: &Value) {
    let node = at(affinity, "nodeAffinity");
    let at_node = child(path, "nodeAffinity");
    if has(node, REQUIRED) {
        node_selector(errors, &child(&at_node, REQUIRED), at(node, REQUIRED));
    }
    for (i, term) in items(node, PREFERRED).iter().enumerate() {
        let path = index(&child(&at_node, PREFERRED), i);
        weight(errors, &path, term);
        node_term(errors, &child(&path, "preference"), at(term, "preference"));
    }
    for kind in ["podAffinity", "podAntiAffinity"] {
        let (value, path) = (at(affinity, kind), child(path, kind));
        for (i, term) in items(value, REQUIRED).iter().enumerate() {
            pod_term(errors, &index(&child(&path, REQUIRED), i), term);
        }
        for (i, term) in items(value, PREFERRED).iter().enumerate() {
            let path = index(&child(&path, PREFERRED), i);
            weight(errors, &path, term);
            pod_term(errors, &child(&path, "podAffinityTerm"), at(term, "podAffinityTerm"));
        }
    }
}

fn weight(errors: &mut Errors, path: &str, term: &Value) {
    let weight = int(term, "weight").unwrap_or_default();
    if !(1..=100).contains(&weight) {
        errors.push(Error::invalid(child(path, "weight"), weight, "must be in the range 1-100"));
    }
}

/// Rules of a `NodeSelector`.
pub(crate) fn node_selector(errors: &mut Errors, path: &str, selector: &Value) {
    let path = child(path, "nodeSelectorTerms");
    let terms = items(selector, "nodeSelectorTerms");
    if terms.is_empty() {
        errors.push(Error::required(&*path, "must have at least one node selector term"));
    }
    for (i, term) in terms.iter().enumerate() {
        node_term(errors, &index(&path, i), term);
    }
}

fn node_term(errors: &mut Errors, path: &str, term: &Value) {
    for (i, requirement) in items(term, "matchExpressions").iter().enumerate() {
        let path = index(&child(path, "matchExpressions"), i);
        let values = items(requirement, "values");
        match text(requirement, "operator") {
            "In" | "NotIn" if values.is_empty() => {
                let why = "must be specified when `operator` is 'In' or 'NotIn'";
                errors.push(Error::required(child(&path, "values"), why));
            }
            "In" | "NotIn" => {}
            "Exists" | "DoesNotExist" if !values.is_empty() => {
                let why = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'";
                errors.push(Error::forbidden(child(&path, "values"), why));
            }
            "Exists" | "DoesNotExist" => {}
            "Gt" | "Lt" if values.len() != 1 => {
                let why = "must be specified single value when `operator` is 'Lt' or 'Gt'";
                errors.push(Error::required(child(&path, "values"), why));
            }
            "Gt" | "Lt" => {}
            other => {
                errors.push(Error::invalid(child(&path, "operator"), other, "not a valid selector operator"))
            }
        }
        let key = text(requirement, "key");
        wrong(errors, &child(&path, "key"), key, qualified_name(key));
        for (j, value) in values.iter().filter_map(Value::as_str).enumerate() {
            wrong(errors, &index(&child(&path, "values"), j), value, label_value(value));
        }
    }
    for (i, requirement) in items(term, "matchFields").iter().enumerate() {
        let path = index(&child(path, "matchFields"), i);
        if text(requirement, "key") != "metadata.name" {
            let why = "not a valid field selector key";
            errors.push(Error::invalid(child(&path, "key"), text(requirement, "key"), why));
        }
        if !matches!(text(requirement, "operator"), "In" | "NotIn") {
            let why = "not a valid selector operator";
            errors.push(Error::invalid(child(&path, "operator"), text(requirement, "operator"), why));
        } else if items(requirement, "values").len() != 1 {
            let why = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector";
            errors.push(Error::required(child(&path, "values"), why));
        }
    }
}

fn pod_term(errors: &mut Errors, path: &str, term: &Value) {
    errors.extend(validation::label_selector(at(term, "labelSelector"), &child(path, "labelSelector")));
    let namespaces = child(path, "namespaceSelector");
    errors.extend(validation::label_selector(at(term, "namespaceSelector"), &namespaces));
    for name in texts(term, "namespaces") {
        wrong(errors, &child(path, "namespace"), name, dns1123_label_value(name));
    }
    let key = text(term, "topologyKey");
    if key.is_empty() {
        errors.push(Error::required(child(path, "topologyKey"), "can not be empty"));
    }
    wrong(errors, &child(path, "topologyKey"), key, qualified_name(key));
}
