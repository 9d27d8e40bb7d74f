//! Nodes.

use std::collections::BTreeSet;

use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error, index, key};
use homeostat_model::validation::{label_value, qualified_name};
use serde_json::Value;

use crate::builtin::rules::{self, CIDR};
use crate::builtin::value::{
    Errors, ShownAs as _, at, carry, empty, entries, flag, has, items, set, text, texts, wrong,
};
use crate::strategy::{Cx, Strategy};

/// Nodes.
pub(super) struct Nodes;

impl Strategy for Nodes {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        if !has(object, "status.allocatable") && has(object, "status.capacity") {
            let capacity = at(object, "status.capacity").clone();
            set(object, "status.allocatable", capacity);
        }
        // The list of ranges and its first, which is older, say the same.
        let (one, list) = (text(object, "spec.podCIDR").to_owned(), texts(object, "spec.podCIDRs"));
        match (one.is_empty(), list.first().map(|f| (*f).to_owned())) {
            (false, None) => set(object, "spec.podCIDRs", vec![one]),
            (_, Some(first)) if first != one => set(object, "spec.podCIDR", first),
            _ => {}
        }
    }

    fn prepare_update(&self, _cx: &Cx<'_>, new: &mut Value, old: &Value) {
        carry(new, old, "status");
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        taints(&mut errors, items(new, "spec.taints"));
        amounts(&mut errors, new);
        for (i, range) in texts(new, "spec.podCIDRs").into_iter().enumerate() {
            if range.parse::<ipnet::IpNet>().is_err() {
                errors.push(Error::invalid(index("spec.podCIDRs", i), range, CIDR));
            }
        }
        errors
    }

    fn validate_update(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        amounts(&mut errors, new);
        if !empty(old, "spec.podCIDRs") && at(new, "spec.podCIDRs") != at(old, "spec.podCIDRs") {
            let why = "node updates may not change podCIDR except from \"\" to valid";
            errors.push(Error::forbidden("spec.podCIDRs", why));
        }
        if !empty(old, "spec.providerID") && text(new, "spec.providerID") != text(old, "spec.providerID") {
            let why = "node updates may not change providerID except from \"\" to valid";
            errors.push(Error::forbidden("spec.providerID", why));
        }
        let before = errors.len();
        taints(&mut errors, items(new, "spec.taints"));
        // Create and update rules both look at taints, and both speak.
        errors.extend_from_within(before..);
        errors
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        amounts(&mut errors, new);
        let mut seen = BTreeSet::new();
        for (i, address) in items(new, "status.addresses").iter().enumerate() {
            if !seen.insert((text(address, "type"), text(address, "address"))) {
                let shown =
                    format!("{{\"Type\":{},\"Address\":{}}}", at(address, "type"), at(address, "address"));
                errors.push(Error::duplicate(index("status.addresses", i), address.clone()).shown_as(shown));
            }
        }
        errors
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![("spec.unschedulable", flag(object, "spec.unschedulable").to_string())]
    }

    fn selectable_labels(&self) -> &'static [&'static str] {
        &["spec.unschedulable"]
    }
}

fn amounts(errors: &mut Errors, node: &Value) {
    for (name, value) in entries(node, "status.capacity") {
        let mut found = Vec::new();
        rules::resource_name(&mut found, &key("status.capacity", name), name);
        let path = format!("status.capacity.{name}");
        rules::quantity_value(&mut found, &path, name, value);
        errors.append(&mut found);
    }
}

fn taints(errors: &mut Errors, list: &[Value]) {
    let mut seen = BTreeSet::new();
    for (i, taint) in list.iter().enumerate() {
        let path = index("metadata.taints", i);
        let (name, value, effect) = (text(taint, "key"), text(taint, "value"), text(taint, "effect"));
        wrong(errors, &format!("{path}.key"), name, qualified_name(name));
        wrong(errors, &format!("{path}.value"), value, label_value(value));
        match effect {
            "NoSchedule" | "PreferNoSchedule" | "NoExecute" => {}
            "" => errors.push(Error::required(format!("{path}.effect"), "")),
            _ => {
                let allowed = ["NoSchedule", "PreferNoSchedule", "NoExecute"];
                errors.push(Error::not_supported(format!("{path}.effect"), effect, &allowed));
            }
        }
        if !effect.is_empty() && !seen.insert((name, effect)) {
            let shown = format!(
                "{{\"Key\":{},\"Value\":{},\"Effect\":{},\"TimeAdded\":{}}}",
                Value::from(name),
                Value::from(value),
                Value::from(effect),
                at(taint, "timeAdded")
            );
            let mut error = Error::duplicate(path, taint.clone()).shown_as(shown);
            error.detail = "taints must be unique by key and effect pair".to_owned();
            errors.push(error);
        }
    }
}
