//! Admission policies: ValidatingAdmissionPolicy and MutatingAdmissionPolicy, in force through their bindings.
//!
//! Policies are compiled once per revision and kept; a request that none is for costs a look at the rules. Which are in
//! force for a request, with which parameters, is found here; what they then do is in [`validating`] and [`mutating`].
//! Invariant: policies and their bindings are themselves never shown to a policy.

mod mutating;
mod params;
mod policy;
pub(crate) mod typecheck;
mod validating;

use std::sync::Arc;

use serde_json::Value;

use super::kept::Kept;
use super::matching::{Attributes, Matched, is_exempt};
use crate::write::Writing;
use policy::{Binding, Policy};

pub(super) use mutating::mutate;
pub(super) use params::authorize;
pub(super) use validating::validate;

/// What the server remembers of policies.
#[derive(Default)]
pub(super) struct Known {
    validating: Kept<Vec<Hook>>,
    mutating: Kept<Vec<Hook>>,
}

/// A policy and the bindings that put it in force; without any it isn't here.
struct Hook {
    policy: Arc<Policy>,
    bindings: Vec<Binding>,
}

const VALIDATING: [&str; 2] = [
    "validatingadmissionpolicies.admissionregistration.k8s.io",
    "validatingadmissionpolicybindings.admissionregistration.k8s.io",
];
const MUTATING: [&str; 2] = [
    "mutatingadmissionpolicies.admissionregistration.k8s.io",
    "mutatingadmissionpolicybindings.admissionregistration.k8s.io",
];

/// The policies that are bound now.
fn bound(w: &Writing<'_>, mutating: bool) -> Arc<Vec<Hook>> {
    let known = &w.server.hooks.policies;
    let (kept, collections) =
        if mutating { (&known.mutating, MUTATING) } else { (&known.validating, VALIDATING) };
    let snapshot = w.server.config.store.snapshot();
    let [policies, bindings] = collections;
    if snapshot.is_empty(bindings) || snapshot.is_empty(policies) || is_exempt(w) {
        return Arc::default();
    }
    kept.of(&snapshot, &collections, |before| {
        let parse = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap_or_default();
        let mut hooks: Vec<Hook> = Vec::new();
        for record in snapshot.range(bindings, "", None) {
            let v = parse(&record.bytes);
            let name = v["spec"]["policyName"].as_str().unwrap_or_default();
            let binding = Binding::parse(&record.key.name, &v["spec"]);
            if let Some(hook) = hooks.iter_mut().find(|h| h.policy.name == name) {
                hook.bindings.push(binding);
                continue;
            }
            let Some(record) = snapshot.get(policies, name) else { continue };
            let same = |h: &&Hook| h.policy.name == name && h.policy.revision == record.revision;
            let policy = match before.iter().find(same) {
                Some(hook) => hook.policy.clone(),
                None => {
                    Arc::new(Policy::compile(name, record.revision, &parse(&record.bytes)["spec"], mutating))
                }
            };
            hooks.push(Hook { policy, bindings: vec![binding] });
        }
        hooks.sort_by(|a, b| a.policy.name.cmp(&b.policy.name));
        hooks
    })
}

/// The policies that are in force for a request.
struct Round<'a> {
    /// The versions in which they see it.
    matched: Vec<Matched>,
    invocations: Vec<Invocation<'a>>,
}

/// A policy in force through a binding.
struct Invocation<'a> {
    policy: &'a Policy,
    /// Absent where something is wrong with the policy whatever the binding.
    binding: Option<&'a Binding>,
    /// Which of [`Round::matched`].
    version: usize,
    /// The parameters, one after another; null where the policy or the binding has none. Or why there are none.
    params: Result<Vec<Value>, String>,
}

/// Finds the policies that are in force for a request.
async fn round<'a>(a: &Attributes<'_>, hooks: &'a [Hook]) -> Round<'a> {
    let mut round = Round { matched: Vec::new(), invocations: Vec::new() };
    for hook in hooks {
        let policy = &*hook.policy;
        let Some(matched) = policy.criteria.matches(a) else { continue };
        let gv = matched.target(a.w).gv();
        let known = round.matched.iter().position(|m| m.target(a.w).gv() == gv);
        let version = known.unwrap_or(round.matched.len());
        if known.is_none() {
            round.matched.push(matched);
        }
        let kind = match params::kind(a.w, policy) {
            Ok(kind) => kind,
            Err(why) => {
                let params = Err(format!("failed to configure policy: {why}"));
                round.invocations.push(Invocation { policy, binding: None, version, params });
                continue;
            }
        };
        for binding in &hook.bindings {
            if binding.criteria.as_ref().is_some_and(|c| c.matches(a).is_none()) {
                continue;
            }
            let params = params::collect(a.w, kind.as_ref(), binding).await;
            let params = params.map_err(|why| format!("failed to configure binding: {why}"));
            round.invocations.push(Invocation { policy, binding: Some(binding), version, params });
        }
    }
    round
}
