//! What the server does by itself as time goes by: it forgets history, and events that are an hour old, and checks types
//! in policies as they come.
//!
//! Invariant: a version can be read or watched from for at least [`EVERY`] and at most about twice that.

use std::sync::{Arc, Weak};
use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_store::{Expect, Op, Write};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::admission::policies::typecheck;
use crate::read;
use crate::server::Server;
use crate::write::draft;

/// How often history is compacted, as in the reference.
const EVERY: Duration = Duration::from_secs(5 * 60);
/// How long an event lives after it was last written.
const EVENTS: Duration = Duration::from_secs(60 * 60);

/// Works until the server is gone or drained.
pub(crate) async fn run(server: Weak<Server>, stop: CancellationToken) {
    tokio::spawn(typecheck::run(server.clone(), stop.clone()));
    let mut mark = match server.upgrade() {
        Some(s) => s.config.store.revision(),
        None => return,
    };
    loop {
        tokio::select! {
            biased;
            () = stop.cancelled() => return,
            () = tokio::time::sleep(EVERY) => {}
        }
        let Some(s) = server.upgrade() else { return };
        s.config.store.compact(mark);
        mark = s.config.store.revision();
        expire_events(&s).await;
    }
}

/// The latest of the times that an event names.
fn last_written(event: &Value) -> Option<Timestamp> {
    let series = &event["series"]["lastObservedTime"];
    [&event["metadata"]["creationTimestamp"], &event["lastTimestamp"], &event["eventTime"], series]
        .into_iter()
        .filter_map(|t| t.as_str()?.parse().ok())
        .max()
}

async fn expire_events(server: &Arc<Server>) {
    let Some(target) = server.registry.table().named("", "events") else { return };
    let target = target.storage();
    let snapshot = server.config.store.snapshot();
    for record in snapshot.listing(&target.resource.collection, "", None) {
        let event = read::stored(&record, &target);
        if last_written(&event).is_none_or(|t| server.config.clock.since(t) < EVENTS) {
            continue;
        }
        let (draft, _) = draft(&target, event);
        let write = Write {
            key: record.key.clone(),
            expect: Expect::Revision(record.revision),
            op: Op::Delete(draft),
        };
        // Someone else has written or deleted it: so be it.
        let _ = server.config.store.commit(write).await;
    }
}
