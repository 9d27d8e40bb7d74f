//! The common path of every write: metadata that the server owns, admission, strategy, managed fields, validation
//! and the commit.
//!
//! Verbs decide what the new object is to be; this module makes it storable. It does not parse bodies.
//! Invariants: nothing is committed that validation has not seen; a write that changes nothing makes no revision.

use std::sync::{Arc, PoisonError};

use bytes::Bytes;
use homeostat_access::User;
use homeostat_model::gvk::GroupKind;
use homeostat_model::status::Result;
use homeostat_model::validation::{self, Meta as MetaRules};
use homeostat_model::{Status, Timestamp, clock, field};
use homeostat_resources::Cx;
use homeostat_schema::Schema;
use homeostat_schema::fields::FieldSet;
use homeostat_schema::managed::{self, ManagerCx};
use homeostat_store::{CommitError, Draft, Event, Expect, Key, Op, Record, Write};
use serde_json::Value;

use crate::admission::{self, Operation, Subject};
use crate::meta::Meta;
use crate::object::{self, store_name};
use crate::options::parse_uint;
use crate::read;
use crate::registry::Target;
use crate::server::{Server, Warnings};
use crate::services;

/// Attempts to generate a free name.
const NAME_ATTEMPTS: usize = 8;
/// Attempts of a write that is not bound to a version.
const ATTEMPTS: usize = 64;

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
    pub(crate) warnings: Vec<String>,
    /// Where the warnings go in the end, however it ends.
    pub(crate) sink: Option<&'a Warnings>,
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

/// What to do after one attempt of an update.
enum Step {
    Done(Outcome),
    Again,
}

impl<'a> Writing<'a> {
    /// The same write without its warnings, for closures that run inside of it.
    pub(crate) fn twin(&self) -> Self {
        Self {
            warnings: Vec::new(),
            sink: None,
            manager: self.manager.clone(),
            server: self.server,
            target: self.target,
            user: self.user,
            namespace: self.namespace,
            subresource: self.subresource,
            dry_run: self.dry_run,
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

    /// Records who manages which fields.
    pub(crate) fn track(&self, live: &Value, new: &mut Value) {
        self.managing(|cx| managed::update(live, new, cx));
    }

    /// What a new object is compared to: nothing, in the form in which the type has it.
    pub(crate) fn empty(&self) -> Value {
        self.target.resource.strategy.empty(self.target.gv())
    }

    /// Creates an object that has been decoded and defaulted.
    pub(crate) async fn create(&mut self, object: Value, applied: bool) -> Result<Outcome> {
        let mut object = object;
        if self.target.terminating() {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&self.target.resource.id, object::name(&object), why));
        }
        self.place(&mut object)?;
        self.merge_owners(&mut object);
        if self.custom_status()
            && let Some(o) = object.as_object_mut()
        {
            o.remove("status");
        }
        object::edit_meta(&mut object, |m| {
            for key in
                ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"]
            {
                m.remove(key);
            }
        });
        if !applied {
            let empty = self.empty();
            self.track(&empty, &mut object);
        }
        let wanted_version = object::resource_version(&object).to_owned();
        let generated =
            object::name(&object).is_empty() && !object::meta_str(&object, "generateName").is_empty();
        let mut last = None;
        let mut attempts = if generated { NAME_ATTEMPTS } else { 1 };
        let mut admitted = object;
        while attempts > 0 {
            attempts -= 1;
            // The last attempt needs no copy, and mostly it is the first.
            let mut object = if attempts == 0 { std::mem::take(&mut admitted) } else { admitted.clone() };
            let name = match generated {
                true => {
                    let base: String = object::meta_str(&object, "generateName").chars().take(58).collect();
                    let name = format!("{base}{}", self.server.config.entropy.suffix(5));
                    object::set_meta(&mut object, "name", name.clone());
                    name
                }
                false => object::name(&object).to_owned(),
            };
            admission::mutate(self, &self.subject(Operation::Create, &name), &mut object, None).await?;
            self.prepare_create(&mut object);
            admission::requester(self, &mut object);
            self.validate_create(&object)?;
            admission::validate(self, &self.subject(Operation::Create, &name), Some(&object), None).await?;
            if !matches!(wanted_version.as_str(), "" | "0") && !applied {
                return Err(Status::new(
                    500,
                    "",
                    "resourceVersion should not be set on objects to be created",
                ));
            }
            object::unset_meta(&mut object, "resourceVersion");
            let _held = services::allocate(self, &mut object, &name)?;
            admission::charge(self, &object, None).await?;
            if self.dry_run {
                if self.live(&name).is_some() {
                    last = Some(Status::already_exists(&self.target.resource.id, &name));
                    continue;
                }
                return Ok(Outcome::Shown(object));
            }
            match self.commit(self.key(&name), Expect::Absent, object).await {
                Ok(record) => return Ok(Outcome::Stored(record)),
                Err(CommitError::Exists(_)) => {
                    last = Some(Status::already_exists(&self.target.resource.id, &name))
                }
                Err(e) => return Err(commit_status(&e)),
            }
        }
        Err(last.unwrap_or_else(|| Status::internal("no name could be generated")))
    }

    fn subject(&self, operation: Operation, name: &str) -> Subject {
        Subject { operation, name: name.to_owned() }
    }

    /// Puts the request's namespace into the object, or refuses another one.
    fn place(&self, object: &mut Value) -> Result<()> {
        let given = object::namespace(object);
        if given == self.namespace {
            return Ok(());
        }
        if !given.is_empty() && (!self.namespace.is_empty() || self.target.resource.namespaced) {
            return Err(Status::bad_request(
                "the namespace of the provided object does not match the namespace sent on the request",
            ));
        }
        if self.target.resource.namespaced {
            object::set_meta(object, "namespace", self.namespace);
        }
        Ok(())
    }

    /// Owners that stand twice are merged, with a warning.
    fn merge_owners(&mut self, object: &mut Value) {
        let Some(owners) = object.get_mut("metadata").and_then(|m| m.get_mut("ownerReferences")) else {
            return;
        };
        let Some(list) = owners.as_array_mut() else { return };
        let mut seen: Vec<Value> = Vec::new();
        let mut doubled: Vec<String> = Vec::new();
        list.retain(|o| {
            let again = seen.contains(o);
            if again {
                let uid = o["uid"].as_str().unwrap_or_default().to_owned();
                if !doubled.contains(&uid) {
                    doubled.push(uid);
                }
            } else {
                seen.push(o.clone());
            }
            !again
        });
        if !doubled.is_empty() {
            self.warnings.push(format!(
                ".metadata.ownerReferences contains duplicate entries; API server dedups owner references in 1.20+, \
                 and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
                doubled.join(", ")
            ));
        }
    }

    fn prepare_create(&self, object: &mut Value) {
        let now = clock::seconds(self.now());
        let uid = self.server.config.entropy.uid();
        object::edit_meta(object, |m| {
            m.insert("creationTimestamp".into(), now.into());
            m.insert("uid".into(), uid.into());
        });
        let strategy = &self.target.resource.strategy;
        strategy.prepare_create(&self.cx(), object);
        if strategy.has_generation() {
            object::set_meta(object, "generation", 1);
        }
    }

    fn validate_create(&mut self, object: &Value) -> Result<()> {
        let resource = &self.target.resource;
        let strategy = &resource.strategy;
        let rules = MetaRules {
            namespaced: resource.namespaced,
            builtin: self.target.built_in(),
            name: &|name, prefix| strategy.validate_name(name, prefix),
        };
        let mut errors = self.kind_errors(object);
        errors.extend(validation::object_meta(&object["metadata"], "metadata", &rules));
        let mut warnings = Vec::new();
        if !self.target.built_in() {
            let report = self.target.version().schema.report(object, None);
            errors.extend(report.errors);
            // These warn even of a write that is refused.
            self.warnings.extend(report.warnings);
        }
        errors.extend(self.scale_errors(object));
        let cx = self.cx();
        errors.extend(strategy.validate(&cx, object));
        warnings.extend(strategy.warnings(&cx, object, None));
        warnings.extend(self.finalizer_warnings(object, None));
        self.refuse(object, &errors)?;
        self.warnings.extend(warnings);
        Ok(())
    }

    /// Custom resources may come with another kind or version; only validation looks at it.
    fn kind_errors(&self, object: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        if self.target.built_in() {
            return errors;
        }
        let text = |key: &str| object[key].as_str().unwrap_or_default();
        let wanted = &*self.target.resource.kind;
        if text("kind") != wanted {
            errors.push(field::Error::invalid("kind", text("kind"), format!("must be {wanted}")));
        }
        let wanted = self.target.gv().to_string();
        if text("apiVersion") != wanted {
            errors.push(field::Error::invalid("apiVersion", text("apiVersion"), format!("must be {wanted}")));
        }
        errors
    }

    /// The numbers that a custom resource's scale is read from must be such as a Scale can hold.
    fn scale_errors(&self, object: &Value) -> Vec<field::Error> {
        let scale = self.target.version().subresource("scale").and_then(|s| s.scale.as_ref());
        let (Some(paths), false) = (scale, self.target.built_in()) else { return Vec::new() };
        let check = |path: &str| {
            let keys = path.split('.').filter(|p| !p.is_empty());
            let n = keys.into_iter().try_fold(object, |v, key| v.get(key))?.as_i64()?;
            match n {
                ..0 => Some(field::Error::invalid(path, n, "should be a non-negative integer")),
                2_147_483_648.. => {
                    Some(field::Error::invalid(path, n, "should be less than or equal to 2147483647"))
                }
                _ => None,
            }
        };
        [&paths.spec, &paths.status].into_iter().filter_map(|p| check(p)).collect()
    }

    /// Finalizers of custom resources should be qualified.
    fn finalizer_warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
        if self.target.built_in() {
            return Vec::new();
        }
        let before = old.map(object::finalizers).unwrap_or_default();
        let mut added: Vec<&str> =
            object::finalizers(new).into_iter().filter(|f| !before.contains(f)).collect();
        added.sort_unstable();
        added.dedup();
        added
            .into_iter()
            .filter(|f| !f.contains('/') && !matches!(*f, "kubernetes" | "orphan" | "foregroundDeletion"))
            .map(|f| {
                format!(
                    "metadata.finalizers: {}: prefer a domain-qualified finalizer name to avoid accidental conflicts \
                     with other finalizer writers",
                    field::quote(f)
                )
            })
            .collect()
    }

    fn refuse(&self, object: &Value, errors: &[field::Error]) -> Result<()> {
        if errors.is_empty() {
            return Ok(());
        }
        let mut kind = self.group_kind();
        if !self.target.built_in()
            && let Some(k) = object["kind"].as_str()
        {
            kind.kind = k.into();
        }
        Err(Status::invalid(&kind, object::name(object), errors))
    }

    /// Changes an object: `attempt` makes the new one from the live one, and is asked again when the live one has
    /// changed meanwhile. `tries` is how often, where the client demands no version.
    pub(crate) async fn update(
        &mut self,
        name: &str,
        tries: usize,
        attempt: &mut (dyn FnMut(&Value, &mut Vec<String>) -> Result<Proposal> + Send),
    ) -> Result<Outcome> {
        let mut warnings = Vec::new();
        for _ in 0..tries.min(ATTEMPTS) {
            let record = self.live(name).ok_or_else(|| Status::not_found(&self.target.resource.id, name))?;
            let live = read::value(&record, self.target);
            warnings.clear();
            let before = self.warnings.len();
            let step = match attempt(&live, &mut warnings) {
                Ok(proposal) => self.change(&record, live, proposal).await,
                Err(e) => Err(e),
            };
            match step {
                Ok(Step::Again) => self.warnings.truncate(before),
                ended => {
                    self.warnings.splice(before..before, warnings);
                    return ended.map(|step| match step {
                        Step::Done(outcome) => outcome,
                        Step::Again => Outcome::Stored(record),
                    });
                }
            }
        }
        Err(Status::stale(&self.target.resource.id, name))
    }

    async fn change(&mut self, record: &Arc<Record<Meta>>, live: Value, proposal: Proposal) -> Result<Step> {
        let Proposal { object: mut new, applied, uid } = proposal;
        let resource = &self.target.resource;
        let name = object::name(&live).to_owned();
        if let Some(uid) = uid.filter(|u| !u.is_empty() && u != object::uid(&live)) {
            let why = format!(
                "StorageError: invalid object, Code: 4, Key: {}, ResourceVersion: 0, AdditionalErrorMsg: Precondition \
                 failed: UID in precondition: {uid}, UID in object meta: {}",
                self.registry_key(&name),
                object::uid(&live)
            );
            return Err(Status::conflict(&resource.id, &name, &why));
        }
        self.demand_version(&mut new, &live, &name)?;
        self.place(&mut new)?;
        self.merge_owners(&mut new);
        if !applied {
            self.track(&live, &mut new);
        }
        self.carry_over(&mut new, &live);
        let cx_subresource = self.subresource;
        let strategy = resource.strategy.clone();
        // A binding is the server's own write: what clients may not change does not hold.
        let own = cx_subresource == "binding";
        match (cx_subresource, self.target.built_in()) {
            ("binding", _) => {}
            ("status", true) => strategy.prepare_status(&self.cx(), &mut new, &live),
            ("status", false) => new = status_only(new, &live),
            _ => {
                if self.custom_status() {
                    copy_key(&mut new, &live, "status");
                }
                strategy.prepare_update(&self.cx(), &mut new, &live);
            }
        }
        let subject = self.subject(Operation::Update, &name);
        admission::mutate(self, &self.subject(Operation::Update, &name), &mut new, Some(&live)).await?;
        if strategy.has_generation() && !own {
            let changed = match self.target.built_in() {
                true => strategy.spec_changed(&new, &live),
                false => cx_subresource != "status" && differs_beyond_metadata(&new, &live),
            };
            let generation = object::generation(&live) + i64::from(changed);
            if generation > 0 {
                object::set_meta(&mut new, "generation", generation);
            }
        }
        if !own {
            self.validate_update(&new, &live)?;
        }
        admission::validate(self, &subject, Some(&new), Some(&live)).await?;
        object::set_meta(&mut new, "resourceVersion", object::resource_version(&live));
        let _held = services::allocate(self, &mut new, &name)?;
        if object::deleting(&live) && self.is_released(&new) {
            return self.release(record, new).await;
        }
        managed::keep_times(&live, &mut new);
        let same = if record.meta.epoch == resource.epoch {
            new == live
        } else {
            let mut stored: Value = serde_json::from_slice(&record.bytes).unwrap_or_default();
            stored["apiVersion"] = new["apiVersion"].clone();
            new == stored
        };
        if same {
            return Ok(Step::Done(Outcome::Stored(record.clone())));
        }
        admission::charge(self, &new, Some(&live)).await?;
        if self.dry_run {
            return Ok(Step::Done(Outcome::Shown(new)));
        }
        match self.commit(record.key.clone(), Expect::Revision(record.revision), new).await {
            Ok(record) => Ok(Step::Done(Outcome::Stored(record))),
            Err(CommitError::Changed(_) | CommitError::Missing) => Ok(Step::Again),
            Err(e) => Err(commit_status(&e)),
        }
    }

    /// Whether nothing keeps an object that is being deleted.
    pub(crate) fn is_released(&self, object: &Value) -> bool {
        let grace = object["metadata"]["deletionGracePeriodSeconds"].as_i64().unwrap_or(0);
        !object::has_finalizers(object) && grace == 0 && !self.target.resource.strategy.holds_deletion(object)
    }

    /// Its last finalizer went: the object goes too, and the answer is what it would have become.
    async fn release(&self, record: &Arc<Record<Meta>>, new: Value) -> Result<Step> {
        if !self.dry_run {
            match self.remove(record).await {
                Ok(_) => {}
                Err(CommitError::Changed(_)) => return Ok(Step::Again),
                Err(CommitError::Missing) => {}
                Err(e) => return Err(commit_status(&e)),
            }
        }
        Ok(Step::Done(Outcome::Shown(new)))
    }

    /// Checks the version that a client demands.
    fn demand_version(&self, new: &mut Value, live: &Value, name: &str) -> Result<()> {
        let resource = &self.target.resource;
        let given = object::resource_version(new).to_owned();
        let wanted = if given.is_empty() { Ok(0) } else { parse_uint(&given) };
        let wanted = wanted.map_err(|why| {
            let e = field::Error::invalid("metadata.resourceVersion", given.as_str(), why);
            Status::invalid(
                &GroupKind::new(resource.id.group.clone(), resource.id.resource.clone()),
                name,
                &[e],
            )
        })?;
        if wanted == 0 {
            if !resource.strategy.unconditional_update() && self.subresource != "scale" {
                let e =
                    field::Error::invalid("metadata.resourceVersion", 0, "must be specified for an update");
                let kind = GroupKind::new(resource.id.group.clone(), resource.id.resource.clone());
                return Err(Status::invalid(&kind, name, &[e]));
            }
            return Ok(());
        }
        if wanted.to_string() != object::resource_version(live) {
            return Err(Status::stale(&resource.id, name));
        }
        Ok(())
    }

    fn registry_key(&self, name: &str) -> String {
        let id = &self.target.resource.id;
        let collection = match self.target.built_in() {
            true => id.resource.to_string(),
            false => format!("{}/{}", id.group, id.resource),
        };
        format!("/registry/{collection}/{}", store_name(self.namespace, name))
    }

    /// What an update may leave out or cannot change.
    fn carry_over(&self, new: &mut Value, live: &Value) {
        let Some(old) = live.get("metadata").and_then(Value::as_object) else { return };
        object::edit_meta(new, |m| {
            m.remove("selfLink");
            if m.get("uid").is_none_or(|v| v.is_null() || v == "")
                && let Some(v) = old.get("uid")
            {
                m.insert("uid".into(), v.clone());
            }
            if let Some(v) = old.get("creationTimestamp") {
                m.insert("creationTimestamp".into(), v.clone());
            }
            for key in ["deletionTimestamp", "deletionGracePeriodSeconds"] {
                if let Some(v) = old.get(key) {
                    m.insert(key.into(), v.clone());
                }
            }
            match old.get("generation") {
                Some(g) => m.insert("generation".into(), g.clone()),
                None => m.remove("generation"),
            };
        });
    }

    fn validate_update(&mut self, new: &Value, live: &Value) -> Result<()> {
        let strategy = &self.target.resource.strategy;
        let built_in = self.target.built_in();
        let mut errors = self.kind_errors(new);
        // The reference checks metadata before the type's own rules and again among them.
        for _ in 0..2 {
            errors.extend(validation::object_meta_update(
                &new["metadata"],
                &live["metadata"],
                "metadata",
                built_in,
            ));
        }
        let mut warnings = Vec::new();
        if !built_in {
            let report = self.target.version().schema.report(new, Some(live));
            errors.extend(report.errors);
            // These warn even of a write that is refused.
            self.warnings.extend(report.warnings);
        }
        errors.extend(self.scale_errors(new));
        let cx = self.cx();
        errors.extend(match self.subresource {
            "status" => strategy.validate_status(&cx, new, live),
            _ => strategy.validate_update(&cx, new, live),
        });
        warnings.extend(strategy.warnings(&cx, new, Some(live)));
        warnings.extend(self.finalizer_warnings(new, Some(live)));
        self.refuse(new, &errors)?;
        self.warnings.extend(warnings);
        Ok(())
    }

    /// Writes an object of the target's version in the storage version.
    pub(crate) async fn commit(
        &self,
        key: Key,
        expect: Expect,
        object: Value,
    ) -> std::result::Result<Arc<Record<Meta>>, CommitError<Meta>> {
        let (draft, meta) = draft(self.target, object);
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

/// 400 unless the object has the name that the path says.
pub(crate) fn check_name(object: &Value, name: &str) -> Result<()> {
    match object::name(object) {
        "" => Err(Status::bad_request(format!(
            "the name of the object ({name} based on URL) was undeterminable: name must be provided"
        ))),
        given if given != name => Err(Status::bad_request(format!(
            "the name of the object ({given}) does not match the name on the URL ({name})"
        ))),
        _ => Ok(()),
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
    let meta = Meta::of(&object, resource, target.sibling.as_deref());
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

fn copy_key(new: &mut Value, old: &Value, key: &str) {
    let Some(n) = new.as_object_mut() else { return };
    match old.get(key) {
        Some(v) => n.insert(key.to_owned(), v.clone()),
        None => n.remove(key),
    };
}

/// A custom resource's status write: everything old but `status` and managed fields.
fn status_only(mut new: Value, live: &Value) -> Value {
    let mut out = live.clone();
    // The kind is kept for validation to look at.
    copy_key(&mut out, &new, "kind");
    if let Some(status) = new.get_mut("status").map(Value::take) {
        out["status"] = status;
    } else if let Some(o) = out.as_object_mut() {
        o.remove("status");
    }
    let managed = new.get_mut("metadata").and_then(|m| m.get_mut("managedFields")).map(Value::take);
    object::edit_meta(&mut out, |m| {
        match managed {
            Some(v) => m.insert("managedFields".into(), v),
            None => m.remove("managedFields"),
        };
    });
    out
}

fn differs_beyond_metadata(new: &Value, live: &Value) -> bool {
    let (Some(n), Some(o)) = (new.as_object(), live.as_object()) else { return new != live };
    let of = |m: &serde_json::Map<String, Value>| m.iter().filter(|(k, _)| *k != "metadata").count();
    of(n) != of(o) || n.iter().any(|(k, v)| k != "metadata" && o.get(k) != Some(v))
}
