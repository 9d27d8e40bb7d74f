//! Making a new object: its name, what the server sets, admission, validation, and a place that is free.

use homeostat_model::status::Result;
use homeostat_model::validation::{self, Meta as MetaRules};
use homeostat_model::{Status, clock};
use homeostat_schema::typed;
use homeostat_store::{CommitError, Expect};
use serde_json::Value;

use super::{Outcome, Writing, commit_status};
use crate::admission::{self, Operation};
use crate::object;
use crate::services;

/// Attempts to generate a free name.
const NAME_ATTEMPTS: usize = 8;

impl Writing<'_> {
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
            // What does not fit its type has no managers, and a webhook that may mend it sees none.
            let custom = !self.target.built_in() && admission::any_mutating(self);
            if custom && typed::check(&object, &self.target.version().schema, true).is_err() {
                object::unset_meta(&mut object, "managedFields");
            }
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
            if self.custom_status()
                && let Some(o) = object.as_object_mut()
            {
                // A webhook may not set it either.
                o.remove("status");
            }
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
                if let Some(there) = self.live(&name) {
                    last = Some(self.taken(&name, there.meta.deleting));
                    continue;
                }
                return Ok(Outcome::Shown(object));
            }
            let (target, object) = self.to_storage(object).await?;
            match self.commit(&target, self.key(&name), Expect::Absent, object).await {
                Ok(record) => return Ok(Outcome::Stored(record)),
                Err(CommitError::Exists(there)) => last = Some(self.taken(&name, there.meta.deleting)),
                Err(e) => return Err(commit_status(&e)),
            }
        }
        Err(last.unwrap_or_else(|| Status::internal("no name could be generated")))
    }

    /// 409 of a name that is not free, or not yet.
    fn taken(&self, name: &str, deleting: bool) -> Status {
        let mut status = Status::already_exists(&self.target.resource.id, name);
        if deleting {
            status.message.insert_str(0, "object is being deleted: ");
        }
        status
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
}
