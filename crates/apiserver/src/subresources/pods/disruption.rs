//! PodDisruptionBudgets as evictions see them: the budget that selects the pod must have a disruption left, and loses
//! it. Whether it has is decided by `resources`. Invariant: no two evictions take the same disruption.

use std::sync::Arc;

use homeostat_model::Status;
use homeostat_model::status::Result;
use homeostat_resources::builtin::admit::disruption::{REFUSAL, Verdict, judge};
use homeostat_store::{CommitError, Expect};
use serde_json::Value;

use crate::object;
use crate::read;
use crate::registry::Target;
use crate::server::{Call, Server};
use crate::write::{commit_status, draft};

/// Attempts against others who evict by the same budget.
const ATTEMPTS: usize = 16;

/// Takes a disruption from the pod's budget, if it has one; 429 where none is left.
pub(super) async fn allow(
    server: &Arc<Server>,
    pods: &Target,
    call: &Call,
    name: &str,
    dry_run: bool,
) -> Result<()> {
    let Some(budgets) = server.registry.table().named("policy", "poddisruptionbudgets") else {
        return Ok(());
    };
    let namespace = &call.info.namespace;
    let prefix = format!("{namespace}/");
    for _ in 0..ATTEMPTS {
        let snapshot = server.config.store.snapshot();
        let Some(record) = snapshot.get(&pods.resource.collection, &object::store_name(namespace, name))
        else {
            return Ok(());
        };
        let pod = read::value(record, pods);
        let all: Vec<Value> = snapshot
            .range(&budgets.resource.collection, &prefix, None)
            .map(|r| read::stored(r, &budgets))
            .collect();
        let spent = match judge(&pod, &all, server.config.clock.now()) {
            Verdict::Free => return Ok(()),
            Verdict::Spend(budget) => budget,
            Verdict::Refused(why, wait) => {
                let status = Status::new(429, "TooManyRequests", REFUSAL).cause("DisruptionBudget", why, "");
                return Err(match wait {
                    Some(seconds) => status.retry_after(seconds),
                    None => status,
                });
            }
            Verdict::Forbidden(why) => return Err(Status::forbidden(&budgets.resource.id, name, &why)),
            Verdict::Confused(why) => return Err(Status::new(500, "InternalError", why)),
        };
        if dry_run {
            return Ok(());
        }
        let key = object::store_name(namespace, object::name(&spent));
        let Some(budget) = snapshot.get(&budgets.resource.collection, &key) else { continue };
        let (draft, meta) = draft(&budgets.storage(), spent);
        let write = homeostat_store::Write {
            key: budget.key.clone(),
            expect: Expect::Revision(budget.revision),
            op: homeostat_store::Op::Put(draft, meta),
        };
        match server.config.store.commit(write).await {
            Ok(_) => return Ok(()),
            Err(CommitError::Changed(_) | CommitError::Missing) => {}
            Err(e) => return Err(commit_status(&e)),
        }
    }
    Err(Status::new(429, "TooManyRequests", REFUSAL).retry_after(1))
}
