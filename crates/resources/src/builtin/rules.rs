//! Rules that fields of many types share: names, ports, percentages, resource lists, conditions.
//!
//! Pure checks that push [`field::Error`]s with the reference's texts.

use std::net::IpAddr;

use homeostat_model::field::{self, Error};
use homeostat_model::quantity::Quantity;
use homeostat_model::selector;
use homeostat_model::validation::{self, dns1123_label_value, qualified_name};
use serde_json::Value;

use super::value::{Errors, ShownAs as _, at, entries, has, text, wrong};

/// What is wrong with a port number.
pub(crate) const PORT: &str = "must be between 1 and 65535, inclusive";

/// A text that is there and a DNS-1123 label.
pub(crate) fn required_label(errors: &mut Errors, path: &str, value: &str) {
    if value.is_empty() {
        errors.push(Error::required(path, ""));
    } else {
        wrong(errors, path, value, dns1123_label_value(value));
    }
}

/// A text that is there.
pub(crate) fn required(errors: &mut Errors, value: &Value, path: &str, field: &str) -> bool {
    let missing = text(value, field).is_empty();
    if missing {
        errors.push(Error::required(field::child(path, field), ""));
    }
    !missing
}

/// A port number.
pub(crate) fn port(errors: &mut Errors, path: &str, value: i64) {
    if !(1..=65535).contains(&value) {
        errors.push(Error::invalid(path, value, PORT));
    }
}

/// What is wrong with the name of a port (RFC 6335).
pub(crate) fn port_name(name: &str) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut say = |text: &str| wrong.push(text.to_owned());
    if name.len() > 15 {
        say("must be no more than 15 characters");
    }
    if !name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-') || name.is_empty() {
        say("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !name.bytes().any(|b| b.is_ascii_lowercase()) {
        say("must contain at least one letter (a-z)");
    }
    if name.contains("--") {
        say("must not contain consecutive hyphens");
    }
    if name.starts_with('-') || name.ends_with('-') {
        say("must not begin or end with a hyphen");
    }
    wrong
}

/// A port number or the name of a port.
pub(crate) fn port_or_name(errors: &mut Errors, path: &str, value: &Value) {
    match value {
        Value::String(name) => wrong(errors, path, name, port_name(name)),
        Value::Number(n) => port(errors, path, n.as_i64().unwrap_or_default()),
        _ => {}
    }
}

/// Keys of ConfigMaps and Secrets.
pub(crate) fn config_key(key: &str) -> Vec<String> {
    const MAX: usize = 253;
    let mut wrong = Vec::new();
    if key.len() > MAX {
        wrong.push(format!("must be no more than {MAX} characters"));
    }
    if key.is_empty() || !key.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._".contains(&b)) {
        wrong.push(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or \
             'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
                .to_owned(),
        );
    }
    if key == "." {
        wrong.push("must not be '.'".to_owned());
    } else if key == ".." {
        wrong.push("must not be '..'".to_owned());
    } else if key.starts_with("..") {
        wrong.push("must not start with '..'".to_owned());
    }
    wrong
}

/// The percentage in a text such as `25%`.
pub(crate) fn percent(value: &Value) -> Option<i64> {
    let digits = value.as_str()?.strip_suffix('%')?;
    (!digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit())).then(|| digits.parse().ok())?
}

/// A number that isn't negative, or a percentage.
pub(crate) fn number_or_percent(errors: &mut Errors, path: &str, value: &Value) {
    match value {
        Value::String(s) if percent(value).is_none() => errors.push(Error::invalid(
            path,
            &**s,
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', \
             regex used for validation is '[0-9]+%')",
        )),
        Value::Number(n) if n.as_i64().is_some_and(|n| n < 0) => {
            errors.push(Error::invalid(path, value.clone(), super::value::NON_NEGATIVE));
        }
        _ => {}
    }
}

/// A percentage of at most 100.
pub(crate) fn at_most_100_percent(errors: &mut Errors, path: &str, value: &Value) {
    if percent(value).is_some_and(|p| p > 100) {
        errors.push(Error::invalid(path, value.clone(), "must not be greater than 100%"));
    }
}

/// Zero as a number or as a percentage.
pub(crate) fn is_zero(value: &Value) -> bool {
    value.as_i64() == Some(0) || percent(value) == Some(0)
}

/// Whether a selector (null selects nothing, `{}` everything) selects the labels.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    !selector.is_null() && selector::Labels::from_valid(selector).matches_value(labels)
}

/// Whether a label selector has neither labels nor expressions.
pub(crate) fn empty_selector(selector: &Value) -> bool {
    super::value::empty(selector, "matchLabels") && super::value::empty(selector, "matchExpressions")
}

/// The value of a label selector as error texts print it: labels before expressions.
pub(crate) fn selector_error(path: &str, selector: &Value, why: &str) -> Error {
    let error = Error::invalid(path, selector.clone(), why);
    if has(selector, "matchLabels") && has(selector, "matchExpressions") {
        let shown = format!(
            "{{\"matchLabels\":{},\"matchExpressions\":{}}}",
            at(selector, "matchLabels"),
            at(selector, "matchExpressions")
        );
        return error.shown_as(shown);
    }
    error
}

/// What is wrong with an IP address; `None` where it is one.
pub(crate) const IP: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
/// What is wrong with a CIDR.
pub(crate) const CIDR: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// An IP address in its usual forms.
pub(crate) fn ip(value: &str) -> Option<IpAddr> {
    value.parse().ok()
}

/// Special ranges that endpoints may not have.
pub(crate) fn non_special_ip(errors: &mut Errors, path: &str, value: &str) {
    let Some(ip) = ip(value) else {
        return errors.push(Error::invalid(path, value, IP));
    };
    let mut say = |text: &str| errors.push(Error::invalid(path, value, text));
    let (link_local, link_multicast) = match ip {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => {
            ((v6.segments()[0] & 0xffc0) == 0xfe80, v6.is_multicast() && (v6.segments()[0] & 0xf) == 2)
        }
    };
    if ip.is_unspecified() {
        say(&format!("may not be unspecified ({value})"));
    }
    if ip.is_loopback() {
        say("may not be in the loopback range (127.0.0.0/8, ::1/128)");
    }
    if link_local {
        say("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if link_multicast {
        say("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
}

/// Names of resources that Kubernetes itself knows.
fn standard_resource(name: &str) -> bool {
    matches!(
        name,
        "cpu"
            | "memory"
            | "ephemeral-storage"
            | "requests.cpu"
            | "requests.memory"
            | "requests.ephemeral-storage"
            | "limits.cpu"
            | "limits.memory"
            | "limits.ephemeral-storage"
            | "pods"
            | "resourcequotas"
            | "services"
            | "replicationcontrollers"
            | "secrets"
            | "configmaps"
            | "persistentvolumeclaims"
            | "storage"
            | "requests.storage"
            | "services.nodeports"
            | "services.loadbalancers"
    ) || name.starts_with("hugepages-")
        || name.starts_with("requests.hugepages-")
}

/// Resources without a domain, or with Kubernetes' own.
pub(crate) fn native_resource(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Resources that device plugins advertise.
fn extended_resource(name: &str) -> bool {
    !native_resource(name)
        && !name.starts_with("requests.")
        && qualified_name(&format!("requests.{name}")).is_empty()
}

/// Whether requests may be below limits.
fn overcommit_allowed(name: &str) -> bool {
    native_resource(name) && !name.starts_with("hugepages-")
}

/// Resources that come in whole numbers.
fn whole(name: &str) -> bool {
    extended_resource(name)
        || matches!(
            name,
            "pods"
                | "resourcequotas"
                | "services"
                | "replicationcontrollers"
                | "secrets"
                | "configmaps"
                | "persistentvolumeclaims"
                | "services.nodeports"
                | "services.loadbalancers"
        )
        || name.starts_with("count/")
        || name.strip_prefix("requests.").is_some_and(extended_resource)
}

/// The name of a resource as any list of quantities may have it.
pub(crate) fn resource_name(errors: &mut Errors, path: &str, name: &str) {
    wrong(errors, path, name, qualified_name(name));
    if !name.contains('/') && !standard_resource(name) {
        errors.push(Error::invalid(path, name, "must be a standard resource type or fully qualified"));
    }
}

fn container_resource_name(errors: &mut Errors, path: &str, name: &str) {
    resource_name(errors, path, name);
    let known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || name.starts_with("hugepages-");
    if !name.contains('/') {
        if !known {
            errors.push(Error::invalid(path, name, "must be a standard resource for containers"));
        }
    } else if !native_resource(name) && !extended_resource(name) {
        errors.push(Error::invalid(path, name, "doesn't follow extended resource name standard"));
    }
}

/// A quantity that isn't negative, and whole where the resource is.
pub(crate) fn quantity_value(errors: &mut Errors, path: &str, name: &str, value: &Value) {
    let Ok(q) = Quantity::from_value(value) else { return };
    if q.signum() < 0 {
        errors.push(Error::invalid(path, q.to_string(), super::value::NON_NEGATIVE));
    }
    if whole(name) && q.milli() % 1000 != 0 {
        errors.push(Error::invalid(path, q.to_string(), "must be an integer"));
    }
}

/// `resources` of a container: names, values, and requests against limits.
pub(crate) fn container_resources(errors: &mut Errors, path: &str, resources: &Value) {
    let (limits, requests) = (field::child(path, "limits"), field::child(path, "requests"));
    for (name, value) in entries(resources, "limits") {
        let path = field::key(&limits, name);
        container_resource_name(errors, &path, name);
        quantity_value(errors, &path, name, value);
    }
    for (name, value) in entries(resources, "requests") {
        let path = field::key(&requests, name);
        container_resource_name(errors, &path, name);
        quantity_value(errors, &path, name, value);
        let Ok(request) = Quantity::from_value(value) else { continue };
        let limit = resources["limits"].get(name).and_then(|v| Quantity::from_value(v).ok());
        match limit {
            Some(limit) if request != limit && !overcommit_allowed(name) => {
                let why = format!("must be equal to {name} limit of {limit}");
                errors.push(Error::invalid(&*requests, request.to_string(), why));
            }
            Some(limit) if request > limit => {
                let why = format!("must be less than or equal to {name} limit of {limit}");
                errors.push(Error::invalid(&*requests, request.to_string(), why));
            }
            None if !overcommit_allowed(name) => {
                errors.push(Error::required(&*limits, "Limit must be set for non overcommitable resources"));
            }
            _ => {}
        }
    }
}

/// Labels, annotations and the like of something embedded at `path`.
pub(crate) fn embedded_labels(errors: &mut Errors, path: &str, metadata: &Value) {
    errors.extend(validation::labels(&metadata["labels"], &field::child(path, "labels")));
    errors.extend(validation::annotations(&metadata["annotations"], &field::child(path, "annotations")));
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn port_names() {
        for (name, want) in [
            ("http", vec![]),
            ("waytoolongportname", vec!["must be no more than 15 characters"]),
            (
                "not_a_port_name",
                vec!["must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)"],
            ),
            ("80", vec!["must contain at least one letter (a-z)"]),
            ("a--b", vec!["must not contain consecutive hyphens"]),
        ] {
            assert_eq!(port_name(name), want, "{name}");
        }
    }

    #[test]
    fn percentages() {
        for (value, want) in
            [(json!("25%"), Some(25)), (json!("%"), None), (json!(3), None), (json!("-1%"), None)]
        {
            assert_eq!(percent(&value), want, "{value}");
        }
    }
}
