//! Recorded conversations with the reference, replayed against the pure functions: what an apply or a patch makes of
//! an object and its managedFields, and in which words it is refused.
//!
//! There is no server here. Each step starts from the object as the reference had it, so that one difference
//! doesn't hide the next; what a server does beyond merging (defaults by hand-written rules, allocation,
//! validation of built-in types) is not compared.

mod compare;
mod world;

use std::path::PathBuf;

use serde_json::Value;

use world::{Outcome, World};

struct Counts {
    compared: usize,
    refused: usize,
}

/// Replays a scenario; fails with a line for every step that differs.
fn replay(scenario: &str) -> Counts {
    let path =
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fidelity").join(format!("{scenario}.json"));
    let text = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let recording: Value = serde_json::from_str(&text).unwrap();
    let mut world = World::new();
    let mut counts = Counts { compared: 0, refused: 0 };
    let mut failures = Vec::new();
    for (i, step) in recording["steps"].as_array().unwrap().iter().enumerate() {
        if step["step"] != "request" {
            continue;
        }
        match world.step(step) {
            Outcome::Skipped => {}
            Outcome::Compared => counts.compared += 1,
            Outcome::Refused => counts.refused += 1,
            Outcome::Differs(why) => {
                failures.push(format!("step {i} ({} {}): {why}", step["method"], step["path"]))
            }
        }
    }
    assert!(failures.is_empty(), "{scenario}:\n{}", failures.join("\n"));
    counts
}

/// Replays a scenario and expects at least so many steps compared, so that nothing is skipped unnoticed.
fn check(scenario: &str, compared: usize, refused: usize) {
    let counts = replay(scenario);
    assert!(
        counts.compared >= compared && counts.refused >= refused,
        "{scenario}: {} steps compared, {} refused; expected {compared} and {refused}",
        counts.compared,
        counts.refused
    );
}

macro_rules! scenarios {
    ($($name:ident: $scenario:literal, $compared:literal, $refused:literal;)*) => {
        $(#[test] fn $name() { check($scenario, $compared, $refused); })*
    };
}

scenarios! {
    api_dry_run: "machinery/api-dry-run", 11, 1;
    apply_builtins: "machinery/apply-builtins", 14, 4;
    apply_conflicts: "machinery/apply-conflicts", 12, 11;
    apply_from_client_side: "machinery/apply-from-client-side", 13, 2;
    apply_invalid: "machinery/apply-invalid", 3, 12;
    apply_lifecycle: "machinery/apply-lifecycle", 18, 1;
    apply_lists: "machinery/apply-lists", 16, 4;
    apply_subresources: "machinery/apply-subresources", 13, 4;
    meta_managed_fields: "machinery/meta-managed-fields", 19, 0;
    meta_update: "machinery/meta-update", 14, 0;
    patch_json_and_merge: "machinery/patch-json-and-merge", 9, 5;
    patch_strategic: "machinery/patch-strategic", 23, 2;
    read_pages: "machinery/read-pages", 6, 0;
    read_selectors: "machinery/read-selectors", 7, 0;
    read_versions: "machinery/read-versions", 4, 0;
    watch_initial_events: "machinery/watch-initial-events", 6, 0;
    watch_selectors: "machinery/watch-selectors", 11, 0;
    watch_views: "machinery/watch-views", 6, 0;
    cr_cel_lists_and_optionals: "crd/cr-cel-lists-and-optionals", 6, 0;
    cr_cel_ratcheting: "crd/cr-cel-ratcheting", 14, 0;
    cr_cel_rules: "crd/cr-cel-rules", 5, 0;
    cr_defaulting: "crd/cr-defaulting", 16, 0;
    cr_embedded_and_preserved: "crd/cr-embedded-and-preserved", 14, 1;
    cr_field_validation: "crd/cr-field-validation", 7, 2;
    cr_pruning: "crd/cr-pruning", 11, 2;
    cr_scale_subresource: "crd/cr-scale-subresource", 6, 2;
    cr_selectable_fields: "crd/cr-selectable-fields", 9, 0;
    cr_status_subresource: "crd/cr-status-subresource", 16, 0;
    cr_validation_composition: "crd/cr-validation-composition", 12, 0;
    crd_conversion_none: "crd/crd-conversion-none", 4, 1;
    crd_deletion_with_objects: "crd/crd-deletion-with-objects", 5, 0;
    crd_deprecated_versions: "crd/crd-deprecated-versions", 8, 0;
    crd_widget_lifecycle: "crd/crd-widget-lifecycle", 4, 0;
    builtin_deployment_replicaset: "builtins/builtin-deployment-replicaset", 7, 0;
    builtin_disruption_autoscaling: "builtins/builtin-disruption-autoscaling", 10, 0;
    builtin_limits_quota: "builtins/builtin-limits-quota", 10, 0;
    builtin_network: "builtins/builtin-network", 11, 0;
    builtin_node_classes: "builtins/builtin-node-classes", 10, 0;
    builtin_statefulset_daemonset: "builtins/builtin-statefulset-daemonset", 7, 0;
    builtin_storage: "builtins/builtin-storage", 9, 0;
    policy_definitions: "builtins/policy-definitions", 4, 0;
    policy_params: "builtins/policy-params", 14, 0;
    policy_typechecking_kcm: "builtins/policy-typechecking-kcm", 4, 0;
    policy_validating: "builtins/policy-validating", 13, 0;
    rbac_aggregated_kcm: "builtins/rbac-aggregated-kcm", 5, 0;
    rbac_escalation: "builtins/rbac-escalation", 13, 0;
    rbac_impersonation: "builtins/rbac-impersonation", 13, 0;
    rbac_roles_bindings: "builtins/rbac-roles-bindings", 10, 0;
    webhook_configurations: "builtins/webhook-configurations", 8, 0;
    webhook_failures: "builtins/webhook-failures", 5, 0;
    webhook_selection: "builtins/webhook-selection", 8, 0;
    webhook_validating: "builtins/webhook-validating", 4, 0;
}
