//! The condition `DisruptionTarget`, which an eviction leaves on its pod before it deletes it, so that a Job can tell it
//! from a failure.
//!
//! It is the server's own write: admission is not asked, and no field manager owns it. Source: `EvictionREST`.

use std::sync::Arc;

use homeostat_model::Status;
use homeostat_model::clock::seconds;
use homeostat_model::status::Result;
use homeostat_store::{CommitError, Expect, Op, Write};
use serde_json::{Value, json};

use crate::object;
use crate::options::DeleteOptions;
use crate::read;
use crate::registry::Target;
use crate::server::{Call, Server};
use crate::write::{commit_status, draft};

/// Attempts against others who write the same pod.
const ATTEMPTS: usize = 16;

/// Marks a pod as about to be evicted. Where the eviction demands a version of the pod, it demands the new one then.
pub(super) async fn mark(
    server: &Arc<Server>,
    pods: &Target,
    call: &Call,
    name: &str,
    options: &mut DeleteOptions,
) -> Result<()> {
    let key = object::store_name(&call.info.namespace, name);
    for _ in 0..ATTEMPTS {
        // That there is none, or another one, the deletion says.
        let Some(record) = server.config.store.get(&pods.resource.collection, &key) else { return Ok(()) };
        let mut pod = read::value(&record, pods);
        let other = |wanted: &Option<String>, is: &str| wanted.as_ref().is_some_and(|w| w != is);
        if other(&options.uid, object::uid(&pod))
            || other(&options.resource_version, object::resource_version(&pod))
        {
            return Ok(());
        }
        if !set(&mut pod, &seconds(server.config.clock.now())) {
            return Ok(());
        }
        let (draft, meta) = draft(&pods.storage(), pod);
        let expect = Expect::Revision(record.revision);
        let write = Write { key: record.key.clone(), expect, op: Op::Put(draft, meta) };
        match server.config.store.commit(write).await {
            Ok(event) => {
                if let Some(demanded) = &mut options.resource_version {
                    *demanded = event.revision.to_string();
                }
                return Ok(());
            }
            Err(CommitError::Changed(_) | CommitError::Missing) => {}
            Err(e) => return Err(commit_status(&e)),
        }
    }
    Err(Status::stale(&pods.resource.id, name))
}

/// Whether the condition was not there.
fn set(pod: &mut Value, now: &str) -> bool {
    let mut condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": now,
    });
    if let Some(generation) = pod["metadata"].get("generation") {
        condition["observedGeneration"] = generation.clone();
    }
    super::with_conditions(pod, |conditions| {
        let Some(old) = conditions.iter_mut().find(|c| c["type"] == condition["type"]) else {
            conditions.push(condition);
            return true;
        };
        if old["status"] == condition["status"] {
            condition["lastTransitionTime"] = old["lastTransitionTime"].clone();
        }
        let changed = *old != condition;
        *old = condition;
        changed
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(before: Value, want: Option<Value>) {
        let mut pod = json!({"metadata": {"generation": 2}, "status": {"conditions": before}});
        let changed = set(&mut pod, "2026-01-01T00:00:00Z");
        assert_eq!(changed.then(|| pod["status"]["conditions"].clone()), want);
    }

    #[test]
    fn the_condition_is_put_beside_others_and_keeps_its_time() {
        let ready = json!({"type": "Ready", "status": "True"});
        let target = |status: &str, reason: &str, since: &str| {
            json!({"type": "DisruptionTarget", "status": status, "reason": reason,
                "message": "Eviction API: evicting", "lastProbeTime": null, "lastTransitionTime": since,
                "observedGeneration": 2})
        };
        let (now, before) = ("2026-01-01T00:00:00Z", "2025-01-01T00:00:00Z");
        let told = target("True", "EvictionByEvictionAPI", now);
        check(Value::Null, Some(json!([told])));
        check(json!([ready]), Some(json!([ready, told])));
        check(json!([told]), None);
        check(json!([target("False", "", before)]), Some(json!([told])));
        let again = target("True", "EvictionByEvictionAPI", before);
        check(json!([target("True", "PreemptionByScheduler", before)]), Some(json!([again])));
    }
}
