//! The common path of every write: metadata that the server owns, admission, strategy, managed fields, validation
//! and the commit.
//!
//! Verbs decide what the new object is to be; this module makes it storable. It does not parse bodies.
//! Invariants: nothing is committed that validation has not seen; a write that changes nothing makes no revision.

mod create;
mod rules;
mod update;

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use homeostat_access::User;
use homeostat_model::gvk::GroupKind;
use homeostat_model::status::Result;
use homeostat_model::{Status, Timestamp, clock};
use homeostat_resources::Cx;
use homeostat_schema::Schema;
use homeostat_schema::fields::FieldSet;
use homeostat_schema::managed::{self, ManagerCx};
use homeostat_store::{CommitError, Draft, Event, Expect, Key, Op, Record, Write};
use serde_json::Value;

use crate::admission::{Operation, Subject};
use crate::audit::Trail;
use crate::convert;
use crate::meta::Meta;
use crate::object::{self, store_name};
use crate::read;
use crate::registry::Target;
use crate::server::{Server, Warnings};

pub(crate) use rules::check_name;

/// A write under way: who, what, how.
pub(crate) struct Writing<'a> {
    pub(crate) server: &'a Arc<Server>,
    pub(crate) target: &'a Target,
    pub(crate) user: &'a User,
    /// Empty for cluster-scoped resources.
    pub(crate) namespace: &'a str,
    pub(crate) subresource: &'a str,
    pub(crate) manager: String,
    pub(crate) dry_run: bool,
    /// The request's options, as webhooks are told them; null where there are none.
    pub(crate) options: Value,
    pub(crate) warnings: Vec<String>,
    /// Where the warnings go in the end, however it ends.
    pub(crate) sink: Option<&'a Warnings>,
    /// The trail of the request, where somebody is told of it.
    pub(crate) trail: Option<&'a Trail>,
}

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        if let Some(sink) = self.sink {
            sink.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.warnings);
        }
    }
}

/// What a write came to.
pub(crate) enum Outcome {
    /// Committed, or found to change nothing.
    Stored(Arc<Record<Meta>>),
    /// Deleted: the object as it was last, at the version of the deletion.
    Gone(Arc<Event<Meta>>),
    /// Not stored: a dry run, or an object whose last finalizer went. In the target's version.
    Shown(Value),
}

impl Outcome {
    /// Has a webhook convert it, if it must, before it is looked at.
    pub(crate) async fn prefetch(&self, server: &Server, target: &Target) -> Result<()> {
        match self {
            Self::Stored(record) => convert::prefetch(server, target, &[record], false).await,
            Self::Gone(event) if target.converted.is_some() => {
                let last = read::decode(event.bytes(), epoch(event), &target.storage());
                convert::prefetch_values(server, target, vec![last], false).await
            }
            Self::Gone(_) | Self::Shown(_) => Ok(()),
        }
    }

    /// As a value in the target's version.
    pub(crate) fn value(&self, target: &Target) -> Value {
        match self {
            Self::Stored(record) => read::value(record, target),
            Self::Gone(event) => read::decode(event.bytes(), epoch(event), target),
            Self::Shown(v) => v.clone(),
        }
    }

    /// As bytes in the target's version.
    pub(crate) fn bytes(&self, target: &Target) -> Bytes {
        match self {
            Self::Stored(record) => read::bytes(record, target),
            Self::Gone(event) if target.is_storage() && epoch(event) == target.resource.epoch => {
                event.last.clone().unwrap_or_default()
            }
            Self::Gone(_) => read::encode(&self.value(target), target),
            Self::Shown(v) => read::encode(v, target),
        }
    }
}

fn epoch(event: &Event<Meta>) -> u64 {
    event.prev.as_ref().map_or(0, |r| r.meta.epoch)
}

/// What an attempt to change an object proposes.
pub(crate) struct Proposal {
    /// The new object in the target's version; its resourceVersion is what the client demands.
    pub(crate) object: Value,
    /// Managed fields are already as they should be (server-side apply).
    pub(crate) applied: bool,
    /// A uid that the client demands.
    pub(crate) uid: Option<String>,
}

impl<'a> Writing<'a> {
    /// The same write without its warnings, for closures that run inside of it.
    pub(crate) fn twin(&self) -> Self {
        Self {
            warnings: Vec::new(),
            sink: None,
            trail: self.trail,
            manager: self.manager.clone(),
            server: self.server,
            target: self.target,
            user: self.user,
            namespace: self.namespace,
            subresource: self.subresource,
            dry_run: self.dry_run,
            options: Value::Null,
        }
    }

    /// Adds an annotation to the request's audit event: what an admission plugin or a webhook says of it.
    pub(crate) fn annotate(&self, key: &str, value: &str) {
        if let Some(trail) = self.trail {
            trail.annotate(key, value);
        }
    }

    fn now(&self) -> Timestamp {
        self.server.config.clock.now()
    }

    fn cx(&self) -> Cx<'_> {
        Cx {
            now: self.now(),
            entropy: &self.server.config.entropy,
            user: &self.user.name,
            groups: &self.user.groups,
            subresource: self.subresource,
        }
    }

    /// As errors name it: events of both groups are the core group's.
    fn group_kind(&self) -> GroupKind {
        let resource = &self.target.resource;
        GroupKind::new(resource.storage_version().gv.group.clone(), resource.kind.clone())
    }

    fn key(&self, name: &str) -> Key {
        Key::new(self.target.resource.collection.clone(), store_name(self.namespace, name))
    }

    /// The record under a name.
    pub(crate) fn live(&self, name: &str) -> Option<Arc<Record<Meta>>> {
        self.server.config.store.get(&self.target.resource.collection, &store_name(self.namespace, name))
    }

    fn custom_status(&self) -> bool {
        !self.target.built_in() && self.target.version().subresource("status").is_some()
    }

    /// Fields that a write of this kind never changes, whatever its body says.
    fn reset(&self) -> FieldSet {
        let requests =
            &*self.target.resource.id.resource == "certificatesigningrequests" && self.target.built_in();
        match self.subresource {
            "" if requests => FieldSet::of(&["spec", "status"]),
            "approval" if requests => FieldSet::of(&["spec", "status.certificate"]),
            "" if self.target.version().subresource("status").is_some() => FieldSet::of(&["status"]),
            "status" if self.target.built_in() => FieldSet::of(&["spec"]),
            "status" => FieldSet::of(&["spec", "metadata"]),
            _ => FieldSet::new(),
        }
    }

    /// Calls `f` with what field management must know of this write.
    pub(crate) fn managing<T>(&self, f: impl FnOnce(&ManagerCx<'_>) -> T) -> T {
        let version = self.target.version();
        let (api_version, now, reset) = (version.gv.to_string(), clock::seconds(self.now()), self.reset());
        f(&ManagerCx {
            schema: &version.schema,
            api_version: &api_version,
            kind: &self.target.resource.kind,
            manager: &self.manager,
            subresource: self.subresource,
            now: &now,
            reset: &reset,
            versions: &Versions(self.target),
        })
    }

    /// Records who manages which fields. Where that would need another version from a webhook, nobody manages them
    /// any more: so it is in the reference, whose updates cannot convert there.
    pub(crate) fn track(&self, live: &Value, new: &mut Value) {
        self.managing(|cx| managed::update(live, new, cx));
        if self.target.converted.as_ref().is_some_and(|c| c.withdraw()) {
            object::unset_meta(new, "managedFields");
        }
    }

    /// What a new object is compared to: nothing, in the form in which the type has it.
    pub(crate) fn empty(&self) -> Value {
        self.target.resource.strategy.empty(self.target.gv())
    }

    fn subject(&self, operation: Operation, name: &str) -> Subject {
        Subject { operation, name: name.to_owned() }
    }

    /// An object of the target's version in the storage version, if a webhook must convert it; no other does here.
    pub(crate) async fn to_storage(&self, object: Value) -> Result<(Target, Value)> {
        if self.target.is_storage() || self.target.converted.is_none() {
            return Ok((self.target.clone(), object));
        }
        let storage = self.target.storage();
        let mut out = convert::convert(self.server, self.target, vec![object], storage.gv(), false).await?;
        let mut object = out.pop().unwrap_or_default();
        storage.version().schema.prune(&mut object);
        storage.version().schema.default(&mut object);
        Ok((storage, object))
    }

    /// Writes an object (of [`Writing::to_storage`], or of the target's version).
    pub(crate) async fn commit(
        &self,
        target: &Target,
        key: Key,
        expect: Expect,
        object: Value,
    ) -> std::result::Result<Arc<Record<Meta>>, CommitError<Meta>> {
        let (draft, meta) = draft(target, object);
        let event = self.server.config.store.commit(Write { key, expect, op: Op::Put(draft, meta) }).await?;
        event.now.clone().ok_or(CommitError::Missing)
    }

    /// Deletes a record as it is.
    pub(crate) async fn remove(
        &self,
        record: &Arc<Record<Meta>>,
    ) -> std::result::Result<Arc<Event<Meta>>, CommitError<Meta>> {
        let mut last = read::stored(record, self.target);
        object::unset_meta(&mut last, "resourceVersion");
        let target = self.target.storage();
        let (draft, _) = draft(&target, last);
        let write = Write {
            key: record.key.clone(),
            expect: Expect::Revision(record.revision),
            op: Op::Delete(draft),
        };
        self.server.config.store.commit(write).await
    }
}

/// The versions of a resource, as field management asks for them.
struct Versions<'a>(&'a Target);

impl Versions<'_> {
    fn find(&self, api_version: &str) -> Option<&homeostat_resources::Version> {
        self.0.resource.versions.iter().find(|v| v.gv.to_string() == api_version)
    }
}

impl managed::Versions for Versions<'_> {
    fn schema(&self, api_version: &str) -> Option<Schema> {
        self.find(api_version).map(|v| Schema::clone(&v.schema))
    }

    fn convert(&self, object: &Value, api_version: &str) -> std::result::Result<Value, String> {
        let version = self.find(api_version).ok_or_else(|| format!("no version {api_version:?}"))?;
        if let Some(cache) = &self.0.converted {
            return cache.other(object, api_version);
        }
        let mut object = object.clone();
        self.0.resource.strategy.convert(&mut object, &version.gv);
        Ok(object)
    }
}

/// An object of the target's version as the store takes it.
pub(crate) fn draft(target: &Target, mut object: Value) -> (Draft, Meta) {
    let resource = &target.resource;
    if !target.is_storage() {
        let storage = resource.storage_version();
        resource.strategy.convert(&mut object, &storage.gv);
        if !target.built_in() {
            storage.schema.prune(&mut object);
            storage.schema.default(&mut object);
        }
    }
    let meta = Meta::of(&object, resource);
    let encoded = object::encode(&object, target.built_in());
    (Draft::new(encoded.bytes, encoded.revision_at), meta)
}

/// The status of a commit that failed for no reason that a client could mend.
pub(crate) fn commit_status(e: &CommitError<Meta>) -> Status {
    match e {
        CommitError::Unavailable(_) => Status::new(503, "ServiceUnavailable", e.to_string()).retry_after(1),
        CommitError::Unknown(_) => Status::new(504, "Timeout", e.to_string()),
        _ => Status::internal(e),
    }
}
