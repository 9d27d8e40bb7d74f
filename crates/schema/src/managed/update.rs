//! What a create, update or patch does to managedFields: the changed fields move to the one who changed them.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde_json::{Map, Value};

use super::conflict::Conflict;
use super::entries::{Entry, Managed, Operation};
use super::{ManagerCx, managed_fields, text};
use crate::fields::{FieldSet, Path, equal_values};
use crate::schema::Schema;
use crate::typed::{self, Comparison};

/// Entries of updates that an object keeps; the oldest beyond it become one, [`ANCIENT`].
const MAX_UPDATERS: usize = 10;
const ANCIENT: &str = "ancient-changes";

/// Fields that nobody owns.
pub(super) static UNOWNED: LazyLock<FieldSet> = LazyLock::new(|| {
    FieldSet::of(&[
        "apiVersion",
        "kind",
        "metadata",
        "metadata.name",
        "metadata.namespace",
        "metadata.creationTimestamp",
        "metadata.selfLink",
        "metadata.uid",
        "metadata.clusterName",
        "metadata.generation",
        "metadata.managedFields",
        "metadata.resourceVersion",
    ])
});

static MANAGED_FIELDS: LazyLock<FieldSet> = LazyLock::new(|| FieldSet::of(&["metadata.managedFields"]));

/// Brings `new.metadata.managedFields` up to date after a write that made `new` of `live` (null or empty when
/// the object is being created).
///
/// A client may write managedFields itself: what it sends is the basis, if it can be read; `[{}]` (and `[]` of a
/// built-in object; custom resources lose an empty list when they are decoded) forgets all managers, and from then
/// on an object is not tracked until someone applies it. When an older version of the object can't be had, the
/// live object's managedFields stay.
pub fn update(live: &Value, new: &mut Value, cx: &ManagerCx<'_>) {
    let before = managed_fields(live);
    let given = take_managed_fields(new);
    let Some(managed) = basis(before, given.as_ref(), cx) else { return };
    if managed.is_empty() && !text(live, "uid").is_empty() {
        return;
    }
    let out = match update_with(live, new, managed, cx, cx.manager) {
        Ok(managed) => managed.encode(),
        Err(_) => before.cloned(),
    };
    put_managed_fields(new, out);
}

/// The managers before the write; `None` to leave the object without any.
fn basis<'a>(before: Option<&'a Value>, given: Option<&'a Value>, cx: &ManagerCx<'_>) -> Option<Managed<'a>> {
    let live = || Managed::decode(before, true).unwrap_or_default();
    if !cx.subresource.is_empty() {
        return Some(live());
    }
    match given {
        None | Some(Value::Null) => Some(live()),
        Some(given) if before == Some(given) => Some(live()),
        Some(Value::Array(list)) if is_reset(list, cx.schema) => Some(Managed::default()),
        Some(given) => match Managed::decode(Some(given), false) {
            Ok(managed) if !managed.is_empty() => Some(managed),
            _ => Some(live()),
        },
    }
}

fn is_reset(list: &[Value], schema: &Schema) -> bool {
    let zero = |v: &Value| matches!(v, Value::Null) || v.as_str() == Some("");
    match list {
        [] => schema.is_builtin(),
        [Value::Object(entry)] => entry.values().all(zero),
        _ => false,
    }
}

/// The managers after a write by `manager`.
pub(super) fn update_with<'a>(
    live: &Value,
    new: &Value,
    managed: Managed<'a>,
    cx: &ManagerCx<'_>,
    manager: &str,
) -> Result<Managed<'a>, String> {
    let empty = Value::Object(Map::new());
    let live = if live.is_object() { live } else { &empty };
    let mut managed = reconcile(managed, cx);
    let changes = transfer(live, new, &mut managed, cx, None, true).map_err(|e| match e {
        TransferError::Failed(why) => why,
        // Updates take what they change.
        TransferError::Conflicts(_) => String::new(),
    })?;
    let mut taken = changes.written;
    taken.subtract_recursive(cx.reset);
    taken.subtract(&UNOWNED);
    if !taken.is_empty() {
        let mut entry = Entry::new(manager, Operation::Update, cx.api_version, cx.subresource, taken);
        entry.time = Some(cx.now.to_owned());
        if let Some(previous) = managed.entries.get(&entry.id()) {
            entry.set_fields(entry.fields().union(previous.fields()));
        }
        managed.insert(entry);
    }
    cap(&mut managed);
    Ok(managed)
}

/// Drops managers of versions that are gone and brings sets up to date with today's schemas.
pub(super) fn reconcile<'a>(mut managed: Managed<'a>, cx: &ManagerCx<'_>) -> Managed<'a> {
    managed.entries.retain(|_, entry| {
        let other;
        let schema = if entry.api_version == cx.api_version {
            cx.schema
        } else {
            match cx.versions.schema(&entry.api_version) {
                Some(schema) => {
                    other = schema;
                    &other
                }
                None => return false,
            }
        };
        let stale = entry.unread().is_none_or(|source| typed::is_stale(source, schema));
        if stale && let Some(set) = typed::reconcile(entry.fields(), schema) {
            entry.set_fields(set);
        }
        true
    });
    managed
}

/// Why ownership can't move.
pub(super) enum TransferError {
    Conflicts(Vec<Conflict>),
    Failed(String),
}

/// What a write did, in the version of the request.
pub(super) struct Changes {
    /// Fields added or modified; not told to an applier that is alone.
    pub(super) written: FieldSet,
    /// Whether the object is another one, if only by the order of a list.
    pub(super) changed: bool,
}

/// Takes changed and removed fields from all managers but `applier`. Without `force`, changing a field of another
/// manager is a conflict.
pub(super) fn transfer(
    live: &Value,
    new: &Value,
    managed: &mut Managed<'_>,
    cx: &ManagerCx<'_>,
    applier: Option<&str>,
    force: bool,
) -> Result<Changes, TransferError> {
    let mut out = Changes { written: FieldSet::new(), changed: false };
    if applier.is_some() && managed.entries.keys().all(|id| applier == Some(id)) {
        // Nobody is there to lose anything.
        managed.entries.retain(|_, entry| !entry.is_empty());
        out.changed = !same_object(live, new);
        return Ok(out);
    }
    let changes = Split::of(typed::compare(live, new, cx.schema, cx.reset));
    out.changed = !changes.is_empty() || !same_object(live, new);
    let mut others: BTreeMap<String, Split> = BTreeMap::new();
    let mut conflicts = Vec::new();
    let mut left: Vec<(String, FieldSet)> = Vec::new();
    if out.changed {
        for (id, entry) in &managed.entries {
            if applier == Some(id.as_str()) {
                continue;
            }
            let changes = if entry.api_version == cx.api_version {
                &changes
            } else {
                if !others.contains_key(&entry.api_version) {
                    let changes =
                        compare_in(live, new, &entry.api_version, cx).map_err(TransferError::Failed)?;
                    others.insert(entry.api_version.clone(), Split::of(changes));
                }
                &others[&entry.api_version]
            };
            let written = entry.intersects(&changes.written);
            if written && !force {
                let touched = entry.fields().intersection(&changes.written);
                touched.visit(&mut |path| conflicts.push(Conflict::new(entry, Path(path.to_vec()))));
            } else if written || entry.intersects(&changes.removed) {
                let rest = entry.fields().difference(&changes.written).difference(&changes.removed);
                left.push((id.clone(), rest));
            }
        }
    }
    if !conflicts.is_empty() {
        return Err(TransferError::Conflicts(conflicts));
    }
    for (id, set) in left {
        if let Some(entry) = managed.entries.get_mut(&id) {
            entry.set_fields(set);
        }
    }
    managed.entries.retain(|_, entry| !entry.is_empty());
    out.written = changes.written;
    Ok(out)
}

/// A comparison as ownership sees it: a field that is added or modified is written.
struct Split {
    written: FieldSet,
    removed: FieldSet,
}

impl Split {
    fn of(changes: Comparison) -> Self {
        let written = match (changes.added.is_empty(), changes.modified.is_empty()) {
            (true, _) => changes.modified,
            (_, true) => changes.added,
            _ => changes.modified.union(&changes.added),
        };
        let mut out = Self { written, removed: changes.removed };
        // managedFields themselves come and go while they are worked on.
        out.written.subtract(&MANAGED_FIELDS);
        out.removed.subtract(&MANAGED_FIELDS);
        out
    }

    fn is_empty(&self) -> bool {
        self.written.is_empty() && self.removed.is_empty()
    }
}

fn compare_in(live: &Value, new: &Value, version: &str, cx: &ManagerCx<'_>) -> Result<Comparison, String> {
    let schema = cx.versions.schema(version).ok_or_else(|| format!("no version {version:?}"))?;
    let in_version = |object: &Value, which: &str| {
        if object.as_object().is_none_or(|m| m.is_empty()) {
            return Ok(Value::Object(Map::new()));
        }
        cx.versions.convert(object, version).map_err(|e| format!("failed to convert {which} object: {e}"))
    };
    let old = in_version(live, "old")?;
    let new = in_version(new, "new")?;
    Ok(typed::compare(&old, &new, &schema, cx.reset))
}

/// Merges the oldest entries of updates so that no more than [`MAX_UPDATERS`] are left: per version, the oldest is
/// kept in mind and becomes `ancient-changes` when a second one of its version has to go.
fn cap(managed: &mut Managed<'_>) {
    let mut updaters: Vec<(Option<String>, String)> = managed
        .entries
        .iter()
        .filter(|(_, e)| e.operation == Operation::Update)
        .map(|(id, e)| (e.time.clone(), id.clone()))
        .collect();
    let mut count = updaters.len();
    if count <= MAX_UPDATERS {
        return;
    }
    updaters.sort();
    let mut first: BTreeMap<String, String> = BTreeMap::new();
    for (time, id) in updaters {
        if count <= MAX_UPDATERS {
            break;
        }
        let Some(entry) = managed.entries.get(&id) else { continue };
        let version = entry.api_version.clone();
        let Some(first) = first.get(&version) else {
            first.insert(version, id);
            continue;
        };
        let mut bucket = Entry::new(ANCIENT, Operation::Update, &version, "", FieldSet::new());
        let bucket_id = bucket.id();
        if !managed.entries.contains_key(&bucket_id)
            && let Some(entry) = managed.entries.remove(first)
        {
            bucket.set_fields(entry.fields().clone());
            managed.entries.insert(bucket_id.clone(), bucket);
        }
        let Some(entry) = managed.entries.remove(&id) else { continue };
        if bucket_id == id {
            managed.entries.insert(id, entry);
            continue;
        }
        if let Some(bucket) = managed.entries.get_mut(&bucket_id) {
            bucket.set_fields(entry.fields().union(bucket.fields()));
            // The later of the two.
            bucket.time = time;
        }
        count -= 1;
    }
}

/// Whether two objects are the same but for managedFields.
pub(super) fn same_object(a: &Value, b: &Value) -> bool {
    let (Value::Object(a), Value::Object(b)) = (a, b) else { return a == b };
    if a.len() != b.len() {
        return false;
    }
    a.iter().zip(b).all(|((ak, av), (bk, bv))| {
        ak == bk
            && match (ak.as_str(), av, bv) {
                ("metadata", Value::Object(a), Value::Object(b)) => {
                    let rest = |m| Map::iter(m).filter(|(k, _)| *k != "managedFields");
                    rest(a).count() == rest(b).count()
                        && rest(a).zip(rest(b)).all(|((ak, av), (bk, bv))| ak == bk && equal_values(av, bv))
                }
                _ => equal_values(av, bv),
            }
    })
}

/// Takes managedFields out of an object.
pub(super) fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

/// Sets managedFields, or leaves them out.
pub(super) fn put_managed_fields(object: &mut Value, value: Option<Value>) {
    let Some(value) = value else { return };
    if let Some(object) = object.as_object_mut() {
        let metadata = object.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
        if let Some(metadata) = metadata.as_object_mut() {
            metadata.insert("managedFields".to_owned(), value);
        }
    }
}
