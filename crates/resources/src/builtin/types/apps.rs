//! Deployments, ReplicaSets, DaemonSets, StatefulSets and ControllerRevisions.

use homeostat_model::field::{self, Error};
use homeostat_model::validation::{dns1123_label, dns1123_subdomain};
use homeostat_model::{GroupVersion, validation};
use serde_json::{Value, json};

use super::pod::default::template as default_template;
use super::pod::warnings;
use super::storage::claim;
use super::workloads::{collisions, counters, selector, selector_unchanged, template};
use crate::builtin::rules::{at_most_100_percent, is_zero, number_or_percent};
use crate::builtin::value::{
    Errors, IMMUTABLE, ShownAs as _, at, carry, default, each, has, inside, int, items, non_negative, object,
    one_of, set, text,
};
use crate::strategy::{Cx, Strategy};

/// Deployments.
pub(super) struct Deployments;

const EMPTY_SELECTOR: &str = "empty selector is invalid for deployment";
const REPLICAS: &str = "cannot be greater than status.replicas";

/// What is rightly written in the template, and yet to be warned of.
fn template_warnings(object: &Value) -> Vec<String> {
    warnings("spec.template.spec", at(object, "spec.template.spec"))
}

/// Rules of an update of a type whose selector stays as it is.
fn update(of: &dyn Strategy, cx: &Cx<'_>, new: &Value, old: &Value) -> Errors {
    let mut errors = of.validate(cx, new);
    selector_unchanged(&mut errors, new, old);
    errors
}

impl Strategy for Deployments {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        inside(object, "spec.template", default_template);
        if text(object, "spec.strategy.type") == "RollingUpdate" {
            default(object, "spec.strategy.rollingUpdate", json!({}));
            default(object, "spec.strategy.rollingUpdate.maxUnavailable", "25%");
            default(object, "spec.strategy.rollingUpdate.maxSurge", "25%");
        }
    }

    fn prepare_status(&self, _cx: &Cx<'_>, new: &mut Value, old: &Value) {
        carry(new, old, "metadata.labels");
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        non_negative(&mut errors, spec, "spec", "replicas");
        selector(&mut errors, new, EMPTY_SELECTOR);
        template(&mut errors, new, "ReplicaSet");
        rolling(&mut errors, spec);
        non_negative(&mut errors, spec, "spec", "minReadySeconds");
        non_negative(&mut errors, spec, "spec", "revisionHistoryLimit");
        non_negative(&mut errors, spec, "spec", "progressDeadlineSeconds");
        if let Some(deadline) = int(spec, "progressDeadlineSeconds")
            && deadline <= int(spec, "minReadySeconds").unwrap_or_default()
        {
            let why = "must be greater than minReadySeconds";
            errors.push(Error::invalid("spec.progressDeadlineSeconds", deadline, why));
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        update(self, cx, new, old)
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let all = [
            "observedGeneration",
            "replicas",
            "updatedReplicas",
            "readyReplicas",
            "availableReplicas",
            "unavailableReplicas",
        ];
        let bounded = [
            ("updatedReplicas", "replicas", REPLICAS),
            ("readyReplicas", "replicas", REPLICAS),
            ("availableReplicas", "replicas", REPLICAS),
            ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
        ];
        counters(&mut errors, &new["status"], &all, &bounded);
        collisions(&mut errors, new, old);
        errors
    }

    fn warnings(&self, _cx: &Cx<'_>, new: &Value, _old: Option<&Value>) -> Vec<String> {
        template_warnings(new)
    }
}

fn rolling(errors: &mut Errors, spec: &Value) {
    let (kind, rolling) = (text(spec, "strategy.type"), at(spec, "strategy.rollingUpdate"));
    let path = "spec.strategy.rollingUpdate";
    match kind {
        "Recreate" => {
            if !rolling.is_null() {
                let why = "may not be specified when strategy `type` is 'Recreate'";
                errors.push(Error::forbidden(path, why));
            }
        }
        "RollingUpdate" => {
            let (unavailable, surge) = (at(rolling, "maxUnavailable"), at(rolling, "maxSurge"));
            let at_unavailable = "spec.strategy.rollingUpdate.maxUnavailable";
            number_or_percent(errors, at_unavailable, unavailable);
            number_or_percent(errors, "spec.strategy.rollingUpdate.maxSurge", surge);
            if is_zero(unavailable) && is_zero(surge) {
                let why = "may not be 0 when `maxSurge` is 0";
                errors.push(Error::invalid(at_unavailable, unavailable.clone(), why));
            }
            at_most_100_percent(errors, at_unavailable, unavailable);
        }
        _ => one_of(errors, &spec["strategy"], "spec.strategy", "type", &["Recreate", "RollingUpdate"]),
    }
}

/// ReplicaSets.
pub(super) struct ReplicaSets;

impl Strategy for ReplicaSets {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        inside(object, "spec.template", default_template);
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        non_negative(&mut errors, &new["spec"], "spec", "replicas");
        non_negative(&mut errors, &new["spec"], "spec", "minReadySeconds");
        selector(&mut errors, new, EMPTY_SELECTOR);
        template(&mut errors, new, "ReplicaSet");
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        update(self, cx, new, old)
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, _old: &Value) -> Vec<field::Error> {
        replica_status(&new["status"])
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![("status.replicas", int(object, "status.replicas").unwrap_or_default().to_string())]
    }

    fn selectable_labels(&self) -> &'static [&'static str] {
        &["status.replicas"]
    }

    fn warnings(&self, _cx: &Cx<'_>, new: &Value, _old: Option<&Value>) -> Vec<String> {
        template_warnings(new)
    }
}

/// Rules of the status of a ReplicaSet or ReplicationController.
pub(super) fn replica_status(status: &Value) -> Errors {
    let mut errors = Vec::new();
    let all =
        ["replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration"];
    let bounded = [
        ("fullyLabeledReplicas", "replicas", REPLICAS),
        ("readyReplicas", "replicas", REPLICAS),
        ("availableReplicas", "replicas", REPLICAS),
        ("availableReplicas", "readyReplicas", "cannot be greater than readyReplicas"),
    ];
    counters(&mut errors, status, &all, &bounded);
    errors
}

/// DaemonSets.
pub(super) struct DaemonSets;

/// Counts changes of the template, a relic of the first versions that clients still read.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

fn set_template_generation(object: &mut Value, n: i64) {
    let annotations = crate::builtin::value::object(object, "metadata.annotations");
    annotations.insert(TEMPLATE_GENERATION.into(), n.to_string().into());
}

impl Strategy for DaemonSets {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        if at(object, "metadata.annotations").get(TEMPLATE_GENERATION).is_none() {
            set_template_generation(object, 0);
        }
        inside(object, "spec.template", default_template);
        if text(object, "spec.updateStrategy.type") == "RollingUpdate" {
            default(object, "spec.updateStrategy.rollingUpdate", json!({}));
            default(object, "spec.updateStrategy.rollingUpdate.maxUnavailable", 1);
            default(object, "spec.updateStrategy.rollingUpdate.maxSurge", 0);
        }
    }

    fn prepare_create(&self, _cx: &Cx<'_>, new: &mut Value) {
        set_template_generation(new, 1);
    }

    fn prepare_update(&self, _cx: &Cx<'_>, new: &mut Value, old: &Value) {
        let before = old["metadata"]["annotations"].get(TEMPLATE_GENERATION).and_then(Value::as_str);
        let before = before.and_then(|n| n.parse::<i64>().ok()).unwrap_or_default();
        let changed = at(new, "spec.template") != at(old, "spec.template");
        set_template_generation(new, before + i64::from(changed));
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        selector(&mut errors, new, "empty selector is invalid for daemonset");
        template(&mut errors, new, "DaemonSet");
        non_negative(&mut errors, spec, "spec", "minReadySeconds");
        non_negative(&mut errors, spec, "spec", "revisionHistoryLimit");
        let rolling = at(spec, "updateStrategy.rollingUpdate");
        let path = "spec.updateStrategy.rollingUpdate";
        match text(spec, "updateStrategy.type") {
            "RollingUpdate" if rolling.is_null() => errors.push(Error::required(path, "")),
            "RollingUpdate" => {
                let (unavailable, surge) = (at(rolling, "maxUnavailable"), at(rolling, "maxSurge"));
                let at_unavailable = "spec.updateStrategy.rollingUpdate.maxUnavailable";
                let at_surge = "spec.updateStrategy.rollingUpdate.maxSurge";
                number_or_percent(&mut errors, at_unavailable, unavailable);
                number_or_percent(&mut errors, at_surge, surge);
                if !is_zero(unavailable) && !is_zero(surge) {
                    let why = "may not be set when maxUnavailable is non-zero";
                    errors.push(Error::invalid(at_surge, surge.clone(), why));
                }
                if is_zero(unavailable) && is_zero(surge) {
                    errors.push(Error::required(at_unavailable, "cannot be 0 when maxSurge is 0"));
                }
                at_most_100_percent(&mut errors, at_unavailable, unavailable);
                at_most_100_percent(&mut errors, at_surge, surge);
            }
            "OnDelete" => {}
            other => {
                let path = "spec.updateStrategy.type";
                errors.push(Error::not_supported(path, other, &["OnDelete", "RollingUpdate"]));
            }
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        update(self, cx, new, old)
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let all = [
            "currentNumberScheduled",
            "numberMisscheduled",
            "desiredNumberScheduled",
            "numberReady",
            "observedGeneration",
            "updatedNumberScheduled",
            "numberAvailable",
            "numberUnavailable",
        ];
        counters(&mut errors, &new["status"], &all, &[]);
        collisions(&mut errors, new, old);
        errors
    }

    fn warnings(&self, _cx: &Cx<'_>, new: &Value, _old: Option<&Value>) -> Vec<String> {
        template_warnings(new)
    }
}

/// StatefulSets.
pub(super) struct StatefulSets;

/// Fields of the spec that may change.
const MUTABLE: [&str; 7] = [
    "replicas",
    "template",
    "updateStrategy",
    "minReadySeconds",
    "ordinals",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
];

impl Strategy for StatefulSets {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        inside(object, "spec.template", default_template);
        if text(object, "spec.updateStrategy.type").is_empty() {
            set(object, "spec.updateStrategy.type", "RollingUpdate");
            default(object, "spec.updateStrategy.rollingUpdate", json!({}));
        }
        if text(object, "spec.updateStrategy.type") == "RollingUpdate"
            && has(object, "spec.updateStrategy.rollingUpdate")
        {
            default(object, "spec.updateStrategy.rollingUpdate.partition", 0);
        }
        each(object, "spec.volumeClaimTemplates", |claim| {
            default(claim, "apiVersion", "v1");
            default(claim, "kind", "PersistentVolumeClaim");
        });
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        dns1123_subdomain(name, prefix)
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        let policy = text(spec, "podManagementPolicy");
        if !matches!(policy, "OrderedReady" | "Parallel") {
            let why = "must be 'OrderedReady' or 'Parallel'";
            errors.push(Error::invalid("spec.podManagementPolicy", policy, why));
        }
        update_strategy(&mut errors, spec);
        let retention = at(spec, "persistentVolumeClaimRetentionPolicy");
        for field in ["whenDeleted", "whenScaled"] {
            one_of(
                &mut errors,
                retention,
                "spec.persistentVolumeClaimRetentionPolicy",
                field,
                &["Retain", "Delete"],
            );
        }
        non_negative(&mut errors, spec, "spec", "replicas");
        non_negative(&mut errors, spec, "spec", "minReadySeconds");
        non_negative(&mut errors, at(spec, "ordinals"), "spec.ordinals", "start");
        non_negative(&mut errors, spec, "spec", "revisionHistoryLimit");
        let name = text(spec, "serviceName");
        if !name.is_empty() {
            crate::builtin::value::wrong(
                &mut errors,
                "spec.serviceName",
                name,
                validation::dns1123_subdomain_value(name),
            );
        }
        selector(&mut errors, new, "empty selector is invalid for statefulset");
        // Claim templates are volumes of the pods, under the names of the templates.
        let mut with_claims = new.clone();
        let names: Vec<String> =
            items(spec, "volumeClaimTemplates").iter().map(|c| text(c, "metadata.name").to_owned()).collect();
        for name in names {
            let spec = object(&mut with_claims, "spec.template.spec");
            let volumes = spec.entry("volumes").or_insert_with(|| json!([]));
            if let Some(list) = volumes.as_array_mut()
                && !list.iter().any(|v| text(v, "name") == name)
            {
                list.push(json!({"name": name, "persistentVolumeClaim": {"claimName": name}}));
            }
        }
        template(&mut errors, &with_claims, "StatefulSet");
        for (i, claim) in items(spec, "volumeClaimTemplates").iter().enumerate() {
            let path = format!("spec.volumeClaimTemplates[{i}]");
            let name = text(claim, "metadata.name");
            if name.is_empty() {
                errors.push(Error::required(format!("{path}.metadata.name"), ""));
            } else {
                let bad = dns1123_label(name, false);
                crate::builtin::value::wrong(&mut errors, &format!("{path}.metadata.name"), name, bad);
            }
            claim::spec(&mut errors, &format!("{path}.spec"), at(claim, "spec"));
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        let mut allowed = new["spec"].clone();
        for field in MUTABLE {
            carry(&mut allowed, &old["spec"], field);
        }
        if allowed != old["spec"] {
            let why = "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', \
                       'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' and \
                       'minReadySeconds' are forbidden";
            errors.push(Error::forbidden("spec", why));
        }
        errors
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let all = [
            "replicas",
            "readyReplicas",
            "currentReplicas",
            "updatedReplicas",
            "observedGeneration",
            "availableReplicas",
        ];
        let bounded = [
            ("readyReplicas", "replicas", REPLICAS),
            ("currentReplicas", "replicas", REPLICAS),
            ("updatedReplicas", "replicas", REPLICAS),
            ("availableReplicas", "replicas", REPLICAS),
            ("availableReplicas", "readyReplicas", "cannot be greater than status.readyReplicas"),
        ];
        counters(&mut errors, &new["status"], &all, &bounded);
        collisions(&mut errors, new, old);
        errors
    }

    fn warnings(&self, _cx: &Cx<'_>, new: &Value, _old: Option<&Value>) -> Vec<String> {
        template_warnings(new)
    }
}

fn update_strategy(errors: &mut Errors, spec: &Value) {
    let strategy = at(spec, "updateStrategy");
    let rolling = at(strategy, "rollingUpdate");
    let kind = text(strategy, "type");
    let shown = || {
        let partition = if rolling.is_null() { "null".to_owned() } else { rolling_text(rolling) };
        format!("{{\"Type\":{},\"RollingUpdate\":{partition}}}", Value::from(kind))
    };
    match kind {
        "OnDelete" if !rolling.is_null() => {
            let why = "only allowed for updateStrategy 'RollingUpdate'";
            let path = "spec.updateStrategy.rollingUpdate";
            errors.push(Error::invalid(path, rolling.clone(), why).shown_as(rolling_text(rolling)));
        }
        "OnDelete" => {}
        "RollingUpdate" => {
            let path = "spec.updateStrategy.rollingUpdate";
            non_negative(errors, rolling, path, "partition");
            number_or_percent(errors, &format!("{path}.maxUnavailable"), at(rolling, "maxUnavailable"));
        }
        _ => {
            let why = "must be 'RollingUpdate' or 'OnDelete'";
            errors.push(Error::invalid("spec.updateStrategy", strategy.clone(), why).shown_as(shown()));
        }
    }
}

fn rolling_text(rolling: &Value) -> String {
    let partition = int(rolling, "partition").unwrap_or_default();
    format!("{{\"Partition\":{partition},\"MaxUnavailable\":{}}}", at(rolling, "maxUnavailable"))
}

/// ControllerRevisions.
pub(super) struct ControllerRevisions;

impl Strategy for ControllerRevisions {
    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        if !has(new, "data") {
            errors.push(Error::required("data", "data is mandatory"));
        }
        non_negative(&mut errors, new, "", "revision");
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        if at(new, "data") != at(old, "data") {
            errors.push(Error::invalid("data", at(new, "data").clone(), IMMUTABLE));
        }
        errors
    }
}
