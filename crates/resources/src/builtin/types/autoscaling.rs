//! HorizontalPodAutoscalers in their two versions.
//!
//! Objects are stored as autoscaling/v2; what v1 cannot say it keeps in annotations, as the reference does.

use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error, child, index};
use homeostat_model::validation::path_segment_name;
use serde_json::{Value, json};

use crate::builtin::value::{
    Errors, at, default, empty, has, int, items, non_negative, object, quantity, remove, set, text, wrong,
};
use crate::strategy::{Cx, Strategy};

/// HorizontalPodAutoscalers.
pub(super) struct Autoscalers;

const METRICS: &str = "autoscaling.alpha.kubernetes.io/metrics";
const BEHAVIOR: &str = "autoscaling.alpha.kubernetes.io/behavior";
const CONDITIONS: &str = "autoscaling.alpha.kubernetes.io/conditions";
const CURRENT: &str = "autoscaling.alpha.kubernetes.io/current-metrics";

fn rules(given: Value, window: Option<i64>, policies: Value) -> Value {
    let mut all = json!({"selectPolicy": "Max", "policies": policies});
    if let Some(window) = window {
        all["stabilizationWindowSeconds"] = window.into();
    }
    for (name, value) in given.as_object().into_iter().flatten().filter(|(_, v)| !v.is_null()) {
        all[name.as_str()] = value.clone();
    }
    all
}

impl Strategy for Autoscalers {
    fn default(&self, gv: &GroupVersion, object: &mut Value) {
        if &*gv.version == "v1" {
            return;
        }
        if empty(object, "spec.metrics") {
            let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}});
            set(object, "spec.metrics", json!([{"type": "Resource", "resource": cpu}]));
        }
        if has(object, "spec.behavior") {
            let pods = json!({"type": "Pods", "value": 4, "periodSeconds": 15});
            let percent = json!({"type": "Percent", "value": 100, "periodSeconds": 15});
            let up = rules(at(object, "spec.behavior.scaleUp").clone(), Some(0), json!([pods, percent]));
            let down = rules(at(object, "spec.behavior.scaleDown").clone(), None, json!([percent]));
            set(object, "spec.behavior.scaleUp", up);
            set(object, "spec.behavior.scaleDown", down);
        }
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut v2 = new.clone();
        if text(new, "apiVersion") == "autoscaling/v1" {
            self.convert(&mut v2, &GroupVersion::new("autoscaling", "v2"));
        }
        let mut errors = Vec::new();
        spec(&mut errors, &v2["spec"]);
        errors
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        non_negative(&mut errors, &new["status"], "status", "currentReplicas");
        non_negative(&mut errors, &new["status"], "status", "desiredReplicas");
        errors
    }

    fn converts_metadata(&self) -> bool {
        true
    }

    fn convert(&self, hpa: &mut Value, to: &GroupVersion) {
        let from = text(hpa, "apiVersion").to_owned();
        let to = to.to_string();
        match (&*from, &*to) {
            ("autoscaling/v2", "autoscaling/v1") => down(hpa),
            ("autoscaling/v1", "autoscaling/v2") => up(hpa),
            _ => {}
        }
        hpa["apiVersion"] = to.into();
    }
}

fn annotate(hpa: &mut Value, name: &str, value: &Value) {
    object(hpa, "metadata.annotations").insert(name.into(), value.to_string().into());
}

fn is_cpu(metric: &Value) -> bool {
    text(metric, "type") == "Resource"
        && text(metric, "resource.name") == "cpu"
        && has(metric, "resource.target.averageUtilization")
}

/// v2 to v1: a CPU target becomes a field, the rest annotations.
fn down(hpa: &mut Value) {
    let metrics = match remove(hpa, "spec.metrics") {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let mut others = Vec::new();
    for metric in metrics {
        if is_cpu(&metric) && !has(hpa, "spec.targetCPUUtilizationPercentage") {
            let target = at(&metric, "resource.target.averageUtilization").clone();
            set(hpa, "spec.targetCPUUtilizationPercentage", target);
        } else {
            others.push(metric);
        }
    }
    if !others.is_empty() {
        annotate(hpa, METRICS, &others.into());
    }
    if let Some(behavior) = remove(hpa, "spec.behavior") {
        annotate(hpa, BEHAVIOR, &behavior);
    }
    if let Some(conditions) = remove(hpa, "status.conditions") {
        annotate(hpa, CONDITIONS, &conditions);
    }
    if let Some(current) = remove(hpa, "status.currentMetrics").filter(|c| !c.is_null()) {
        for metric in current.as_array().into_iter().flatten().filter(|m| text(m, "resource.name") == "cpu") {
            let now = at(metric, "resource.current.averageUtilization").clone();
            if !now.is_null() {
                set(hpa, "status.currentCPUUtilizationPercentage", now);
            }
        }
        annotate(hpa, CURRENT, &current);
    }
    default(hpa, "status.currentReplicas", 0);
}

/// v1 to v2.
fn up(hpa: &mut Value) {
    let taken = |hpa: &mut Value, name: &str| -> Option<Value> {
        let map = hpa.get_mut("metadata")?.get_mut("annotations")?.as_object_mut()?;
        let value = map.remove(name)?;
        serde_json::from_str(value.as_str()?).ok()
    };
    let mut metrics = match taken(hpa, METRICS) {
        Some(Value::Array(list)) => list,
        _ => Vec::new(),
    };
    let behavior = taken(hpa, BEHAVIOR);
    let conditions = taken(hpa, CONDITIONS);
    let current = taken(hpa, CURRENT);
    if at(hpa, "metadata.annotations").as_object().is_some_and(|a| a.is_empty()) {
        remove(hpa, "metadata.annotations");
    }
    if let Some(target) = remove(hpa, "spec.targetCPUUtilizationPercentage").filter(|t| !t.is_null()) {
        let cpu = json!({"name": "cpu", "target": {"type": "Utilization", "averageUtilization": target}});
        metrics.insert(0, json!({"type": "Resource", "resource": cpu}));
    }
    if !metrics.is_empty() {
        set(hpa, "spec.metrics", metrics);
    }
    if let Some(behavior) = behavior {
        set(hpa, "spec.behavior", behavior);
    }
    remove(hpa, "status.currentCPUUtilizationPercentage");
    if let Some(conditions) = conditions {
        set(hpa, "status.conditions", conditions);
    }
    set(hpa, "status.currentMetrics", current.unwrap_or(Value::Null));
    if int(hpa, "status.currentReplicas") == Some(0) {
        remove(hpa, "status.currentReplicas");
    }
}

fn spec(errors: &mut Errors, spec: &Value) {
    let min = int(spec, "minReplicas");
    let external = items(spec, "metrics").iter().any(|m| matches!(text(m, "type"), "Object" | "External"));
    if let Some(min) = min.filter(|n| *n < 1) {
        errors.push(Error::invalid("spec.minReplicas", min, "must be greater than or equal to 1"));
    }
    let max = int(spec, "maxReplicas").unwrap_or_default();
    if max < 1 {
        errors.push(Error::required("spec.maxReplicas", "must be set and greater than 0"));
    }
    if min.is_some_and(|min| max < min) {
        let why = "must be greater than or equal to `minReplicas`";
        errors.push(Error::invalid("spec.maxReplicas", max, why));
    }
    target(errors, at(spec, "scaleTargetRef"));
    for (i, metric) in items(spec, "metrics").iter().enumerate() {
        self::metric(errors, &index("spec.metrics", i), metric);
    }
    if min == Some(0) && !external {
        let why = "must specify at least one Object or External metric to support scaling to zero replicas";
        errors.push(Error::forbidden("spec.metrics", why));
    }
    for direction in ["scaleUp", "scaleDown"] {
        behavior(errors, &format!("spec.behavior.{direction}"), at(spec, &format!("behavior.{direction}")));
    }
}

fn target(errors: &mut Errors, reference: &Value) {
    let path = "spec.scaleTargetRef";
    for part in ["kind", "name"] {
        let value = text(reference, part);
        if value.is_empty() {
            errors.push(Error::required(child(path, part), ""));
        } else {
            wrong(errors, &child(path, part), value, path_segment_name(value, false));
        }
    }
    let version = text(reference, "apiVersion");
    if !version.contains('/') && text(reference, "kind").is_empty() {
        let why = "apiVersion must specify API group";
        errors.push(Error::invalid(child(path, "apiVersion"), version, why));
    }
}

fn metric(errors: &mut Errors, path: &str, metric: &Value) {
    const KINDS: [(&str, &str); 5] = [
        ("Object", "object"),
        ("Pods", "pods"),
        ("Resource", "resource"),
        ("External", "external"),
        ("ContainerResource", "containerResource"),
    ];
    let kind = text(metric, "type");
    let Some((_, field)) = KINDS.iter().find(|(name, _)| *name == kind) else {
        if kind.is_empty() {
            errors.push(Error::required(child(path, "type"), "must specify a metric source type"));
        } else {
            let allowed = ["ContainerResource", "External", "Object", "Pods", "Resource"];
            errors.push(Error::not_supported(child(path, "type"), kind, &allowed));
        }
        return;
    };
    for (_, other) in KINDS.iter().filter(|(_, f)| f != field && has(metric, f)) {
        let why = "must populate the given metric source only";
        errors.push(Error::forbidden(child(path, other), why));
    }
    let source = at(metric, field);
    let path = child(path, field);
    if source.is_null() {
        let why = "must populate information for the given metric source";
        return errors.push(Error::required(path, why));
    }
    match *field {
        "resource" | "containerResource" => {
            if text(source, "name").is_empty() {
                errors.push(Error::required(child(&path, "name"), "must specify a resource name"));
            }
            if *field == "containerResource" && text(source, "container").is_empty() {
                errors.push(Error::required(child(&path, "container"), ""));
            }
        }
        _ => {
            if text(source, "metric.name").is_empty() {
                errors.push(Error::required(child(&path, "metric.name"), "must specify a metric name"));
            }
        }
    }
    metric_target(errors, &child(&path, "target"), at(source, "target"), field);
}

fn metric_target(errors: &mut Errors, path: &str, target: &Value, source: &str) {
    let kind = text(target, "type");
    match kind {
        "" => errors.push(Error::required(child(path, "type"), "must specify a metric target type")),
        "Utilization" | "Value" | "AverageValue" => {}
        _ => {
            let allowed = ["AverageValue", "Utilization", "Value"];
            errors.push(Error::not_supported(child(path, "type"), kind, &allowed));
        }
    }
    for field in ["value", "averageValue"] {
        if let Some(q) = quantity(target, field)
            && q.signum() <= 0
        {
            errors.push(Error::invalid(child(path, field), q.to_string(), "must be positive"));
        }
    }
    if let Some(n) = int(target, "averageUtilization").filter(|n| *n < 1) {
        errors.push(Error::invalid(child(path, "averageUtilization"), n, "must be greater than 0"));
    }
    match source {
        "resource" | "containerResource" => {
            let (utilization, value) = (has(target, "averageUtilization"), has(target, "averageValue"));
            if utilization && value {
                let why = "may not set both a target raw value and a target utilization";
                errors.push(Error::forbidden(child(path, "averageValue"), why));
            } else if !utilization && !value {
                let why = "must set either a target raw value or a target utilization";
                errors.push(Error::required(child(path, "averageUtilization"), why));
            }
        }
        "pods" if !has(target, "averageValue") => {
            errors.push(Error::required(
                child(path, "averageValue"),
                "must specify a positive target averageValue",
            ));
        }
        "object" | "external" if !has(target, "value") && !has(target, "averageValue") => {
            let why = "must set either a target value for metric or a per-pod target";
            errors.push(Error::required(child(path, "averageValue"), why));
        }
        _ => {}
    }
}

fn behavior(errors: &mut Errors, path: &str, rules: &Value) {
    if rules.is_null() {
        return;
    }
    if let Some(window) = int(rules, "stabilizationWindowSeconds") {
        let path = child(path, "stabilizationWindowSeconds");
        if window < 0 {
            errors.push(Error::invalid(path, window, "must be greater than or equal to zero"));
        } else if window > 3600 {
            errors.push(Error::invalid(path, window, "must be less than or equal to 3600"));
        }
    }
    crate::builtin::value::one_of(errors, rules, path, "selectPolicy", &["Disabled", "Max", "Min"]);
    let policies = items(rules, "policies");
    if policies.is_empty() {
        errors.push(Error::required(child(path, "policies"), "must specify at least one Policy"));
    }
    for (i, policy) in policies.iter().enumerate() {
        let path = index(&child(path, "policies"), i);
        if !matches!(text(policy, "type"), "Pods" | "Percent") {
            let allowed = ["Percent", "Pods"];
            errors.push(Error::not_supported(child(&path, "type"), text(policy, "type"), &allowed));
        }
        if let Some(n) = int(policy, "value").filter(|n| *n <= 0) {
            errors.push(Error::invalid(child(&path, "value"), n, "must be greater than zero"));
        }
        match int(policy, "periodSeconds").unwrap_or_default() {
            n if n <= 0 => {
                errors.push(Error::invalid(child(&path, "periodSeconds"), n, "must be greater than zero"))
            }
            n if n > 1800 => {
                errors.push(Error::invalid(
                    child(&path, "periodSeconds"),
                    n,
                    "must be less than or equal to 1800",
                ));
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_version_1_cannot_say_survives_in_annotations() {
        let cpu = json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50},
        }});
        let pods = json!({"type": "Pods", "pods": {
            "metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": "10"},
        }});
        let v2 = json!({
            "apiVersion": "autoscaling/v2", "metadata": {"name": "x"},
            "spec": {"maxReplicas": 3, "metrics": [cpu, pods], "behavior": {"scaleUp": {"selectPolicy": "Max"}}},
            "status": {"desiredReplicas": 1, "currentMetrics": null, "currentReplicas": 1},
        });
        let mut object = v2.clone();
        Autoscalers.convert(&mut object, &GroupVersion::new("autoscaling", "v1"));
        assert_eq!(object["spec"], json!({"maxReplicas": 3, "targetCPUUtilizationPercentage": 50}));
        assert!(object["metadata"]["annotations"][METRICS].as_str().unwrap().contains("rps"));
        Autoscalers.convert(&mut object, &GroupVersion::new("autoscaling", "v2"));
        assert_eq!(object, v2);
    }
}
