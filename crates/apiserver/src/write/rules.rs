//! Rules of every object, new or changed, that neither a schema nor a strategy knows: where it lies, who owns it, what
//! it says that it is.

use homeostat_model::status::Result;
use homeostat_model::{Status, field};
use serde_json::Value;

use super::Writing;
use crate::object;

impl Writing<'_> {
    /// Puts the request's namespace into the object, or refuses another one.
    pub(super) fn place(&self, object: &mut Value) -> Result<()> {
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
    pub(super) fn merge_owners(&mut self, object: &mut Value) {
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

    /// Custom resources may come with another kind or version; only validation looks at it.
    pub(super) fn kind_errors(&self, object: &Value) -> Vec<field::Error> {
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
    pub(super) fn scale_errors(&self, object: &Value) -> Vec<field::Error> {
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
    pub(super) fn finalizer_warnings(&self, new: &Value, old: Option<&Value>) -> Vec<String> {
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

    pub(super) fn refuse(&self, object: &Value, errors: &[field::Error]) -> Result<()> {
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
