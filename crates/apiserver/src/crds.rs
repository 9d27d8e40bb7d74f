//! CustomResourceDefinitions come alive here: a task follows the store's log of definitions, gives them names,
//! establishes them, serves what they define, and removes instances before a definition goes.
//!
//! What names and conditions come to is decided by `resources::crd`; this module only carries it out.
//! Invariant: a resource is served before its definition says `Established`, and no longer once it is gone.

use std::sync::{Arc, Weak};

use homeostat_model::clock;
use homeostat_resources::crd::{self, Deletion};
use homeostat_schema::fields::FieldSet;
use homeostat_schema::managed::{self, ManagerCx, OneVersion};
use homeostat_store::{CommitError, Event, Expect, Op, Record, Write};
use serde_json::Value;
use tokio::time::Duration;
use tokio_util::sync::CancellationToken;

use crate::meta::Meta;
use crate::object;
use crate::read;
use crate::registry::Target;
use crate::server::Server;
use crate::write::draft;

/// Collection of definitions.
pub(crate) const COLLECTION: &str = "customresourcedefinitions.apiextensions.k8s.io";
const GROUP: &str = "apiextensions.k8s.io";
/// Pause after a store that does not answer.
const RETRY: Duration = Duration::from_millis(100);
/// Instances deleted between two looks at the definition.
const BATCH: usize = 256;

/// Serves what is stored already; later changes come through [`run`].
pub(crate) fn load(server: &Server) -> u64 {
    let snapshot = server.config.store.snapshot();
    if let Some(target) = target(server) {
        for record in snapshot.range(COLLECTION, "", None) {
            serve(server, &read::stored(record, &target));
        }
    }
    snapshot.revision()
}

fn target(server: &Server) -> Option<Target> {
    server.registry.table().named(GROUP, "customresourcedefinitions")
}

/// Follows definitions until the server is gone or drained.
pub(crate) async fn run(server: Weak<Server>, stop: CancellationToken, mut after: u64) {
    loop {
        let Some(s) = server.upgrade() else { return };
        let Ok(mut cursor) = s.config.store.watch(COLLECTION, after) else {
            // The log no longer reaches back: start from what is there.
            after = load(&s);
            continue;
        };
        reconcile_all(&s).await;
        drop(s);
        loop {
            let events: Vec<Arc<Event<Meta>>> = tokio::select! {
                biased;
                () = stop.cancelled() => return,
                events = cursor.next() => match events {
                    Ok(events) => events.to_vec(),
                    Err(e) => {
                        after = e.oldest;
                        break;
                    }
                }
            };
            let Some(s) = server.upgrade() else { return };
            for e in events.iter().filter(|e| e.is_delete()) {
                s.registry.set(&e.key.name, None);
            }
            reconcile_all(&s).await;
        }
    }
}

/// Looks at every definition until none changes: names depend on one another.
async fn reconcile_all(server: &Arc<Server>) {
    let Some(target) = target(server) else { return };
    for _ in 0..64 {
        let snapshot = server.config.store.snapshot();
        let all: Vec<(Arc<Record<Meta>>, Value)> =
            snapshot.range(COLLECTION, "", None).map(|r| (r.clone(), read::stored(r, &target))).collect();
        let mut changed = false;
        for (record, value) in &all {
            match reconcile(server, &target, record, value, &all).await {
                Ok(c) => changed |= c,
                Err(CommitError::Changed(_) | CommitError::Missing | CommitError::Exists(_)) => {
                    changed = true
                }
                Err(e) => {
                    tracing::warn!(error = %e, crd = %record.key.name, "a definition could not be brought up to date");
                    tokio::time::sleep(RETRY).await;
                    changed = true;
                }
            }
        }
        if !changed {
            return;
        }
    }
}

/// Brings one definition up to date; whether it was written.
async fn reconcile(
    server: &Arc<Server>,
    target: &Target,
    record: &Arc<Record<Meta>>,
    value: &Value,
    all: &[(Arc<Record<Meta>>, Value)],
) -> Result<bool, CommitError<Meta>> {
    if object::deleting(value) {
        serve(server, value);
        return terminate(server, target, record, value).await;
    }
    let now = clock::seconds(server.config.clock.now());
    let Some(status) = crd::reconcile(value, all.iter().map(|(_, v)| v), &now) else {
        serve(server, value);
        return Ok(false);
    };
    let mut new = value.clone();
    new["status"] = status;
    // Served before it says so: who reads `Established` and then asks is answered.
    serve(server, &new);
    write(server, target, record, value, new).await?;
    Ok(true)
}

/// Puts what a definition makes into the registry, unless it is there already.
fn serve(server: &Server, value: &Value) {
    let name = object::name(value);
    let epoch = u64::try_from(object::generation(value)).unwrap_or(0);
    let table = server.registry.table();
    let current = table.custom(name);
    if !crd::is_established(value) {
        if current.is_some() {
            server.registry.set(name, None);
        }
        return;
    }
    match crd::to_resource(value, epoch) {
        Ok(new) => {
            let same = current.is_some_and(|c| {
                c.resource.epoch == new.epoch
                    && c.resource.origin == new.origin
                    && c.resource.kind == new.kind
                    && c.resource.singular == new.singular
                    && c.resource.list_kind == new.list_kind
                    && c.resource.short_names == new.short_names
                    && c.resource.categories == new.categories
            });
            if !same {
                server.registry.set(name, Some(new));
            }
        }
        Err(e) => tracing::warn!(crd = name, error = e, "a definition cannot be served"),
    }
}

/// Deletes the instances of a definition that is going, then lets it go.
async fn terminate(
    server: &Arc<Server>,
    target: &Target,
    record: &Arc<Record<Meta>>,
    value: &Value,
) -> Result<bool, CommitError<Meta>> {
    if !object::finalizers(value).contains(&crd::FINALIZER) {
        return Ok(false);
    }
    let now = clock::seconds(server.config.clock.now());
    let stage = |s: &Value| {
        s["status"]["conditions"]
            .as_array()
            .into_iter()
            .flatten()
            .find(|c| c["type"] == "Terminating")
            .and_then(|c| c["reason"].as_str())
            .map(str::to_owned)
    };
    let served = server.registry.table().custom(object::name(value)).cloned();
    let Some(served) = served else {
        let mut new = value.clone();
        crd::set_deletion(&mut new, &Deletion::NeverEstablished, &now);
        return finish(server, target, record, value, new).await;
    };
    if stage(value).as_deref() == Some("InstanceDeletionPending") {
        let mut new = value.clone();
        crd::set_deletion(&mut new, &Deletion::InProgress, &now);
        write(server, target, record, value, new).await?;
        return Ok(true);
    }
    let instances = Target::of(served);
    let left = delete_instances(server, &instances).await;
    if left > 0 {
        // Their finalizers hold them; look again when one of them changes.
        watch_instances(server, &instances);
        return Ok(false);
    }
    let mut new = value.clone();
    crd::set_deletion(&mut new, &Deletion::Completed, &now);
    finish(server, target, record, value, new).await
}

async fn finish(
    server: &Arc<Server>,
    target: &Target,
    record: &Arc<Record<Meta>>,
    old: &Value,
    new: Value,
) -> Result<bool, CommitError<Meta>> {
    if object::has_finalizers(&new) {
        write(server, target, record, old, new).await?;
        return Ok(true);
    }
    server.registry.set(object::name(&new), None);
    let (draft, _) = draft(&target.storage(), old.clone());
    let write =
        Write { key: record.key.clone(), expect: Expect::Revision(record.revision), op: Op::Delete(draft) };
    server.config.store.commit(write).await?;
    Ok(false)
}

/// Marks or deletes every instance; how many are left.
async fn delete_instances(server: &Arc<Server>, target: &Target) -> usize {
    let mut left = 0;
    let snapshot = server.config.store.snapshot();
    for (i, record) in snapshot.listing(&target.resource.collection, "", None).enumerate() {
        if i % BATCH == BATCH - 1 {
            tokio::task::yield_now().await;
        }
        match crate::verbs::delete::instance(server, target, &record).await {
            Ok(true) => {}
            Ok(false) | Err(_) => left += 1,
        }
    }
    left
}

/// Wakes the definition's reconciliation once its last instances go.
fn watch_instances(server: &Arc<Server>, target: &Target) {
    let (weak, target) = (Arc::downgrade(server), target.clone());
    let store = server.config.store.clone();
    tokio::spawn(async move {
        let revision = store.snapshot().revision();
        let Ok(mut cursor) = store.watch(&target.resource.collection, revision) else { return };
        loop {
            if store.snapshot().is_empty(&target.resource.collection) {
                break;
            }
            if cursor.next().await.is_err() {
                break;
            }
        }
        if let Some(server) = weak.upgrade() {
            reconcile_all(&server).await;
        }
    });
}

/// Writes a definition's status as the reference's controllers do.
async fn write(
    server: &Server,
    target: &Target,
    record: &Arc<Record<Meta>>,
    old: &Value,
    mut new: Value,
) -> Result<(), CommitError<Meta>> {
    let now = clock::seconds(server.config.clock.now());
    let version = target.version();
    managed::update(
        old,
        &mut new,
        &ManagerCx {
            schema: &version.schema,
            api_version: &version.gv.to_string(),
            kind: &target.resource.kind,
            manager: "kube-apiserver",
            subresource: "status",
            now: &now,
            reset: &FieldSet::of(&["spec", "metadata"]),
            versions: &OneVersion,
        },
    );
    let (draft, meta) = draft(target, new);
    let write = Write {
        key: record.key.clone(),
        expect: Expect::Revision(record.revision),
        op: Op::Put(draft, meta),
    };
    server.config.store.commit(write).await.map(|_| ())
}
