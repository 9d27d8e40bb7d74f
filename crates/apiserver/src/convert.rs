//! Conversion of custom resources by webhook, around code that converts without waiting.
//!
//! A request's target carries what has been converted for it: before objects are read in another version than they
//! are stored in, [`prefetch`] asks the webhook for all of them at once, and reads then find them. What the webhook
//! may change and how it is asked is decided by `resources`.
//! Invariant: an object that has not been converted is never shown as if it had been.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use homeostat_model::status::Result;
use homeostat_model::{GroupVersion, Status};
use homeostat_resources::crd::{converted, review_request, review_version};
use homeostat_resources::{Conversion, Origin};
use homeostat_store::Record;
use serde_json::Value;

use crate::hook;
use crate::meta::Meta;
use crate::object;
use crate::read;
use crate::registry::Target;
use crate::server::Server;

/// How long a conversion may take, as in the reference.
const TIMEOUT: Duration = Duration::from_secs(30);

/// What a webhook has converted for one request.
#[derive(Default)]
pub(crate) struct Converted {
    /// By resourceVersion of the stored object.
    objects: Mutex<BTreeMap<String, Value>>,
    /// Objects in versions that field management asked for.
    others: Mutex<Vec<(Value, String, Option<Value>)>>,
}

impl Converted {
    /// A stored object in the target's version.
    pub(crate) fn get(&self, stored: &Value) -> Option<Value> {
        let objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        objects.get(object::resource_version(stored)).cloned()
    }

    /// An object in another version; an error where it must first be asked for.
    pub(crate) fn other(&self, object: &Value, version: &str) -> std::result::Result<Value, String> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        match others.iter().find(|(o, v, _)| v == version && o == object) {
            Some((_, _, Some(found))) => Ok(found.clone()),
            Some(_) => Err("conversion is under way".to_owned()),
            None => {
                others.push((object.clone(), version.to_owned(), None));
                Err("conversion must be asked for".to_owned())
            }
        }
    }

    /// Takes back what field management asked for and was not given; whether there was anything.
    pub(crate) fn withdraw(&self) -> bool {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        let before = others.len();
        others.retain(|(_, _, found)| found.is_some());
        others.len() < before
    }

    /// Forgets the objects, for watches, which would gather them.
    pub(crate) fn clear(&self) {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }
}

/// The webhook of a resource, where it has one.
pub(crate) fn webhook(target: &Target) -> Option<&Value> {
    match &target.resource.origin {
        Origin::Custom { conversion: Conversion::Webhook(webhook), .. } => Some(webhook),
        _ => None,
    }
}

/// Makes sure that these records can be read in the target's version.
pub(crate) async fn prefetch(
    server: &Server,
    target: &Target,
    records: &[&Record<Meta>],
    list: bool,
) -> Result<()> {
    if target.converted.is_none() || target.is_storage() {
        return Ok(());
    }
    let stored = records.iter().map(|r| read::stored(r, target)).collect();
    prefetch_values(server, target, stored, list).await
}

/// The same for values in the storage version.
pub(crate) async fn prefetch_values(
    server: &Server,
    target: &Target,
    stored: Vec<Value>,
    list: bool,
) -> Result<()> {
    let Some(cache) = &target.converted else { return Ok(()) };
    if target.is_storage() || stored.is_empty() {
        return Ok(());
    }
    let missing: Vec<Value> = stored.into_iter().filter(|v| cache.get(v).is_none()).collect();
    let out = convert(server, target, missing.clone(), target.gv(), list).await?;
    let mut objects = cache.objects.lock().unwrap_or_else(PoisonError::into_inner);
    for (before, mut after) in missing.into_iter().zip(out) {
        target.version().schema.prune(&mut after);
        objects.insert(object::resource_version(&before).to_owned(), after);
    }
    Ok(())
}

/// Converts what field management has asked for; whether there was anything.
pub(crate) async fn answer_others(server: &Server, target: &Target) -> Result<bool> {
    let Some(cache) = &target.converted else { return Ok(false) };
    let asked: Vec<(Value, String)> = {
        let others = cache.others.lock().unwrap_or_else(PoisonError::into_inner);
        others
            .iter()
            .filter(|(_, _, found)| found.is_none())
            .map(|(o, v, _)| (o.clone(), v.clone()))
            .collect()
    };
    let any = !asked.is_empty();
    for (object, version) in asked {
        let Some(gv) = GroupVersion::parse(&version) else { continue };
        let mut out = convert(server, target, vec![object.clone()], &gv, false).await?;
        let found = out.pop();
        let mut others = cache.others.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = others.iter_mut().find(|(o, v, _)| *v == version && *o == object) {
            slot.2 = found;
        }
    }
    Ok(any)
}

/// Converts objects of one resource to a version; those that are in it already stay as they are.
pub(crate) async fn convert(
    server: &Server,
    target: &Target,
    objects: Vec<Value>,
    to: &GroupVersion,
    list: bool,
) -> Result<Vec<Value>> {
    let wanted = to.to_string();
    let Some(webhook) = webhook(target) else { return Ok(objects) };
    let foreign: Vec<usize> =
        (0..objects.len()).filter(|i| objects[*i]["apiVersion"] != wanted.as_str()).collect();
    if foreign.is_empty() {
        return Ok(objects);
    }
    let failed = |why: String| Status::new(500, "", why);
    let Some(version) = review_version(webhook) else {
        return Err(failed("no supported conversion review version".to_owned()));
    };
    // The webhook sees no resourceVersion: the reference converts before it sets one.
    let mut originals: Vec<Value> = foreign.iter().map(|i| objects[*i].clone()).collect();
    for o in &mut originals {
        object::unset_meta(o, "resourceVersion");
    }
    let uid = server.config.entropy.uid();
    let request = review_request(version, &uid, to, &originals);
    let from = originals[0]["apiVersion"].as_str().unwrap_or_default();
    let kind = if list { target.resource.list_kind.as_str() } else { &target.resource.kind };
    let response = hook::call(server, &webhook["clientConfig"], object::to_bytes(&request), TIMEOUT)
        .await
        .map_err(|why| failed(format!("conversion webhook for {from}, Kind={kind} failed: {why}")))?;
    let list_kind = list.then_some(target.resource.list_kind.as_str());
    let out = converted(&response, version, &uid, &originals, to, list_kind).map_err(failed)?;
    let mut objects = objects;
    for (i, mut after) in foreign.into_iter().zip(out) {
        let revision = object::resource_version(&objects[i]).to_owned();
        if !revision.is_empty() {
            object::set_meta(&mut after, "resourceVersion", revision);
        }
        objects[i] = after;
    }
    Ok(objects)
}
