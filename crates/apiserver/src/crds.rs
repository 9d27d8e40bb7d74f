//! CustomResourceDefinitions come alive here: a task follows the store's log of definitions, gives them names,
//! establishes them, serves what they define, and removes instances before a definition goes.
//!
//! What names and conditions come to is decided by `resources::crd`; this module only carries it out.
//! Invariant: a resource is served before its definition says `Established`, and no longer once it is gone.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Weak};

use homeostat_model::clock;
use homeostat_resources::crd::{self, Deletion};
use homeostat_schema::fields::FieldSet;
use homeostat_schema::managed::{self, ManagerCx, OneVersion};
use homeostat_store::{CommitError, Expect, Op, Record, Revision, Write};
use serde_json::Value;
use tokio::sync::Notify;
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
/// Looks in a row before others get a turn; names settle in a few.
const LOOKS: usize = 64;
/// Instances deleted between two looks at the definition.
const BATCH: usize = 256;

/// What the task remembers between two looks, so that a look costs only what has changed.
struct Keeper {
    /// Parsed definitions, as of their revision.
    known: BTreeMap<Arc<str>, (Revision, Arc<Value>)>,
    /// The revision of each definition that the registry was last told of.
    served: BTreeMap<Arc<str>, Revision>,
    /// Definitions whose last instances are waited for.
    waiting: BTreeSet<Arc<str>>,
    /// Rung when the instances of one are gone.
    bell: Arc<Notify>,
}

/// A stored definition.
struct Definition {
    record: Arc<Record<Meta>>,
    value: Arc<Value>,
}

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
    let mut keeper = Keeper {
        known: BTreeMap::new(),
        served: BTreeMap::new(),
        waiting: BTreeSet::new(),
        bell: Arc::new(Notify::new()),
    };
    loop {
        let Some(s) = server.upgrade() else { return };
        let Ok(mut cursor) = s.config.store.watch(COLLECTION, after) else {
            // The log no longer reaches back: start from what is there.
            after = s.config.store.revision();
            continue;
        };
        keeper.look(&s).await;
        drop(s);
        let bell = keeper.bell.clone();
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                // Whoever is still held is waited for anew.
                () = bell.notified() => keeper.waiting.clear(),
                events = cursor.next() => if let Err(e) = events {
                    after = e.oldest;
                    break;
                }
            }
            let Some(s) = server.upgrade() else { return };
            keeper.look(&s).await;
        }
    }
}

impl Keeper {
    /// Looks at every definition until none changes: names depend on one another.
    async fn look(&mut self, server: &Arc<Server>) {
        let Some(target) = target(server) else { return };
        for _ in 0..LOOKS {
            let all = self.definitions(server, &target);
            let mut changed = false;
            for d in &all {
                match self.reconcile(server, &target, d, &all).await {
                    Ok(c) => changed |= c,
                    Err(CommitError::Changed(_) | CommitError::Missing | CommitError::Exists(_)) => {
                        changed = true
                    }
                    Err(e) => {
                        let crd = &d.record.key.name;
                        tracing::warn!(error = %e, %crd, "a definition could not be brought up to date");
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

    /// What is stored now. What is gone is no longer served.
    fn definitions(&mut self, server: &Server, target: &Target) -> Vec<Definition> {
        let snapshot = server.config.store.snapshot();
        let mut all = Vec::with_capacity(snapshot.len(COLLECTION));
        for record in snapshot.range(COLLECTION, "", None) {
            let name = &record.key.name;
            let value = match self.known.get(name) {
                Some((revision, value)) if *revision == record.revision => value.clone(),
                _ => {
                    let value = Arc::new(read::stored(record, target));
                    self.known.insert(name.clone(), (record.revision, value.clone()));
                    value
                }
            };
            all.push(Definition { record: record.clone(), value });
        }
        if self.known.len() > all.len() {
            let gone = |name: &Arc<str>| snapshot.get(COLLECTION, name).is_none();
            for name in self.known.keys().filter(|n| gone(n)) {
                server.registry.set(name, None);
            }
            self.known.retain(|n, _| !gone(n));
            self.served.retain(|n, _| !gone(n));
            self.waiting.retain(|n| !gone(n));
        }
        all
    }

    /// Brings one definition up to date; whether it was written.
    async fn reconcile(
        &mut self,
        server: &Arc<Server>,
        target: &Target,
        d: &Definition,
        all: &[Definition],
    ) -> Result<bool, CommitError<Meta>> {
        let Definition { record, value } = d;
        let fresh = self.served.get(&record.key.name) != Some(&record.revision);
        if object::deleting(value) {
            if fresh {
                serve(server, value);
                self.served.insert(record.key.name.clone(), record.revision);
            }
            return self.terminate(server, target, record, value).await;
        }
        let now = clock::seconds(server.config.clock.now());
        let Some(status) = crd::reconcile(value, all.iter().map(|d| &*d.value), &now) else {
            if fresh {
                serve(server, value);
                self.served.insert(record.key.name.clone(), record.revision);
            }
            return Ok(false);
        };
        let mut new = Value::clone(value);
        new["status"] = status;
        // Served before it says so: who reads `Established` and then asks is answered.
        serve(server, &new);
        write(server, target, record, value, new).await?;
        Ok(true)
    }

    /// Deletes the instances of a definition that is going, then lets it go.
    async fn terminate(
        &mut self,
        server: &Arc<Server>,
        target: &Target,
        record: &Arc<Record<Meta>>,
        value: &Value,
    ) -> Result<bool, CommitError<Meta>> {
        if !object::finalizers(value).contains(&crd::FINALIZER) {
            return Ok(false);
        }
        let now = clock::seconds(server.config.clock.now());
        let mut new = value.clone();
        let Some(served) = server.registry.table().custom(object::name(value)).cloned() else {
            crd::set_deletion(&mut new, &Deletion::NeverEstablished, &now);
            return finish(server, target, record, value, new).await;
        };
        let conditions = value["status"]["conditions"].as_array().into_iter().flatten();
        let pending = |c: &Value| c["type"] == "Terminating" && c["reason"] == "InstanceDeletionPending";
        if conditions.into_iter().any(pending) {
            crd::set_deletion(&mut new, &Deletion::InProgress, &now);
            write(server, target, record, value, new).await?;
            return Ok(true);
        }
        let instances = Target::of(served);
        if delete_instances(server, &instances).await > 0 {
            // Their finalizers hold them: look again when the last of them is gone.
            if self.waiting.insert(record.key.name.clone()) {
                wait_for_instances(server, &instances, self.bell.clone());
            }
            return Ok(false);
        }
        crd::set_deletion(&mut new, &Deletion::Completed, &now);
        finish(server, target, record, value, new).await
    }
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

/// Rings once the last instances of a definition are gone.
fn wait_for_instances(server: &Arc<Server>, target: &Target, bell: Arc<Notify>) {
    let (store, stop, collection) =
        (server.config.store.clone(), server.stop.clone(), target.resource.collection.clone());
    tokio::spawn(async move {
        let Ok(mut cursor) = store.watch(&collection, store.revision()) else {
            bell.notify_one();
            return;
        };
        while !store.snapshot().is_empty(&collection) {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                events = cursor.next() => if events.is_err() {
                    break;
                }
            }
        }
        bell.notify_one();
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
