//! PodDisruptionBudgets as evictions see them: one that selects the pod must have a disruption left, and loses it.
//!
//! The budget's own numbers are its controller's. Invariant: no two evictions take the same disruption.

use std::sync::Arc;

use homeostat_access::User;
use homeostat_model::selector::Labels;
use homeostat_model::status::Result;
use homeostat_model::{Status, clock};
use serde_json::{Value, json};

use crate::object;
use crate::read;
use crate::registry::Target;
use crate::server::{Call, Server};
use crate::write::{Proposal, Writing};

/// Pods that a budget remembers as disrupted before it must have been looked at by its controller.
const MOST_DISRUPTED: usize = 2000;

fn refused(message: String) -> Status {
    Status::new(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.")
        .cause("DisruptionBudget", message, "")
}

/// Takes a disruption from the pod's budget, if it has one; 429 where none is left.
pub(super) async fn allow(server: &Arc<Server>, call: &Call, pod: &str, dry_run: bool) -> Result<()> {
    let table = server.registry.table();
    let (Some(pods), Some(budgets)) =
        (table.named("", "pods"), table.named("policy", "poddisruptionbudgets"))
    else {
        return Ok(());
    };
    let namespace = &call.info.namespace;
    let snapshot = server.config.store.snapshot();
    let Some(record) = snapshot.get(&pods.resource.collection, &object::store_name(namespace, pod)) else {
        return Ok(());
    };
    let prefix = format!("{namespace}/");
    let selecting: Vec<Value> = snapshot
        .range(&budgets.resource.collection, &prefix, None)
        .map(|r| read::stored(r, &budgets))
        .filter(|b| Labels::from_valid(&b["spec"]["selector"]).matches(|key| record.meta.label(key)))
        .collect();
    match selecting.as_slice() {
        [] => Ok(()),
        [budget] => take(server, &budgets, call, object::name(budget), pod, dry_run).await,
        _ => Err(Status::new(
            500,
            "InternalError",
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.",
        )),
    }
}

async fn take(
    server: &Arc<Server>,
    target: &Target,
    call: &Call,
    budget: &str,
    pod: &str,
    dry_run: bool,
) -> Result<()> {
    let user = User::administrator("system:apiserver");
    let mut w = Writing {
        server,
        target,
        user: &user,
        namespace: &call.info.namespace,
        subresource: "status",
        manager: "kube-apiserver".to_owned(),
        dry_run,
        warnings: Vec::new(),
        sink: None,
    };
    let now = clock::seconds(server.config.clock.now());
    let mut attempt = |live: &Value, _: &mut Vec<String>| {
        let status = &live["status"];
        let number = |key: &str| status[key].as_i64().unwrap_or(0);
        if number("observedGeneration") < object::generation(live) {
            let why = format!("The disruption budget {budget} is still being processed by the server.");
            return Err(refused(why).retry_after(10));
        }
        if number("disruptionsAllowed") < 1 {
            return Err(refused(format!(
                "The disruption budget {budget} needs {} healthy pods and has {} currently",
                number("desiredHealthy"),
                number("currentHealthy")
            )));
        }
        if status["disruptedPods"].as_object().is_some_and(|d| d.len() > MOST_DISRUPTED) {
            return Err(refused(
                "DisruptedPods map too big - too many evictions not confirmed by PDB controller".to_owned(),
            ));
        }
        let mut new = live.clone();
        new["status"]["disruptionsAllowed"] = (number("disruptionsAllowed") - 1).into();
        if !new["status"]["disruptedPods"].is_object() {
            new["status"]["disruptedPods"] = json!({});
        }
        new["status"]["disruptedPods"][pod] = now.as_str().into();
        Ok(Proposal { object: new, applied: false, uid: None })
    };
    w.update(budget, 16, &mut attempt).await.map(|_| ())
}
