//! Changing an object: what the client demands of the live one, what it may not change, whether anything changes at
//! all, and what happens when the last finalizer goes.
//!
//! Invariant: an attempt that another write overtook is made again from the start, on the new live object.

use std::sync::Arc;

use homeostat_model::gvk::GroupKind;
use homeostat_model::status::Result;
use homeostat_model::{Status, field, validation};
use homeostat_schema::managed;
use homeostat_store::{CommitError, Expect, Record};
use serde_json::Value;

use super::{Outcome, Proposal, Writing, commit_status};
use crate::admission::{self, Operation};
use crate::convert;
use crate::meta::Meta;
use crate::object::{self, store_name};
use crate::options::parse_uint;
use crate::read;
use crate::services;

/// Attempts of a write that is not bound to a version.
const ATTEMPTS: usize = 64;

/// What to do after one attempt of an update.
enum Step {
    Done(Outcome),
    Again,
}

impl Writing<'_> {
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
            convert::prefetch(self.server, self.target, &[&record], false).await?;
            let live = read::value(&record, self.target);
            warnings.clear();
            let before = self.warnings.len();
            let step = match attempt(&live, &mut warnings) {
                Ok(proposal) => self.change(&record, live, proposal).await,
                // It may have lacked another version of the object.
                Err(_) if convert::answer_others(self.server, self.target).await? => Ok(Step::Again),
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
        admission::mutate(self, &self.subject(Operation::Update, &name), &mut new, Some(&live)).await?;
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
        let (target, new) = self.to_storage(new).await?;
        match self.commit(&target, record.key.clone(), Expect::Revision(record.revision), new).await {
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
