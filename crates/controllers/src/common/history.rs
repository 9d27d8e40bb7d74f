//! The history of a workload's template as ControllerRevisions, which StatefulSets and DaemonSets keep.
//!
//! A revision's data is a strategic merge patch that replaces the template, so that `kubectl rollout undo` can apply
//! it. What is needed next (nothing, an old revision again, or a new one) is a pure function of the list.
//! Invariant: revisions of one owner that hold the same template are one.

use std::collections::BTreeSet;
use std::sync::Arc;

use homeostat_sdk::{Context, Has, Key, Operator, Result};
use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use kube::api::Patch;
use serde_json::{Value, json};

use super::hash;

/// Names of revisions are cut so that a suffix fits (the reference's limit of the prefix).
const PREFIX_LIMIT: usize = 223;
/// The label of a pod or revision that names the revision or its hash.
pub(crate) const HASH_LABEL: &str = "controller-revision-hash";
/// The label of a StatefulSet's revision that holds its hash; a DaemonSet's has it under [`HASH_LABEL`].
pub(crate) const REVISION_HASH_LABEL: &str = "controller.kubernetes.io/hash";

/// What the list of revisions lacks.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Need {
    /// The latest revision is the wanted one.
    Nothing,
    /// This older revision is the wanted one: it becomes the latest under this number.
    Again(Arc<ControllerRevision>, i64),
    /// A new revision under this number.
    New(i64),
}

/// Sorts from old to new.
pub(crate) fn sort(revisions: &mut [Arc<ControllerRevision>]) {
    revisions.sort_by_cached_key(|r| {
        let created = r.metadata.creation_timestamp.as_ref().map(|t| t.0);
        (r.revision, created, r.metadata.name.clone())
    });
}

/// The data of a revision that stands for `template`.
pub(crate) fn data(template: &PodTemplateSpec) -> Value {
    let mut template = json!(template);
    template["$patch"] = "replace".into();
    json!({"spec": {"template": template}})
}

/// The template that a revision stands for.
pub(crate) fn template(revision: &ControllerRevision) -> Result<PodTemplateSpec> {
    let mut template = revision.data.as_ref().map(|d| d.0["spec"]["template"].clone()).unwrap_or_default();
    if let Some(map) = template.as_object_mut() {
        map.remove("$patch");
    }
    Ok(serde_json::from_value(template)?)
}

/// What is needed so that the latest of `revisions` (sorted) holds `data`.
pub(crate) fn need(revisions: &[Arc<ControllerRevision>], data: &Value) -> Need {
    let number = revisions.last().map_or(1, |r| r.revision + 1);
    let holds = |r: &&Arc<ControllerRevision>| r.data.as_ref().is_some_and(|d| d.0 == *data);
    match revisions.iter().rev().find(holds) {
        None => Need::New(number),
        Some(_) if revisions.last().as_ref().is_some_and(holds) => Need::Nothing,
        Some(old) => Need::Again(old.clone(), number),
    }
}

/// The hash of a revision, another one for each collision.
pub(crate) fn hash(data: &Value, collisions: i32) -> String {
    hash::safe(hash::fnv1(&[hash::go_json(data).as_bytes(), collisions.to_string().as_bytes()]))
}

/// A revision of `owner` (still without owner reference) that holds `data`.
pub(crate) fn revision(
    owner: &ObjectMeta,
    labels: &ObjectMeta,
    data: &Value,
    number: i64,
    collisions: i32,
    label: &str,
) -> ControllerRevision {
    let hash = hash(data, collisions);
    let mut prefix = owner.name.clone().unwrap_or_default();
    prefix.truncate(PREFIX_LIMIT);
    let mut labels = labels.labels.clone().unwrap_or_default();
    labels.insert(label.into(), hash.clone());
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{prefix}-{hash}")),
            namespace: owner.namespace.clone(),
            labels: Some(labels),
            annotations: owner.annotations.clone(),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data.clone())),
        revision: number,
    }
}

/// Those that are to go: the oldest ones that are not `live` beyond `limit`. `revisions` are sorted.
pub(crate) fn surplus<'a>(
    revisions: &'a [Arc<ControllerRevision>],
    live: &BTreeSet<&str>,
    limit: i32,
) -> Vec<&'a Arc<ControllerRevision>> {
    let Ok(limit) = usize::try_from(limit) else { return Vec::new() };
    let is_live = |r: &Arc<ControllerRevision>| live.contains(r.metadata.name.as_deref().unwrap_or_default());
    let mut dead: Vec<_> = revisions.iter().filter(|r| !is_live(r)).collect();
    dead.truncate(dead.len().saturating_sub(limit));
    dead
}

/// Makes the latest revision hold the owner's template; returns all of them, sorted, and the count of collisions.
pub(crate) async fn sync<O, I>(
    cx: &Context<O>,
    owner: &ObjectMeta,
    spec: &PodTemplateSpec,
    mut revisions: Vec<Arc<ControllerRevision>>,
    collisions: i32,
    label: &str,
) -> Result<(Vec<Arc<ControllerRevision>>, i32)>
where
    O: Operator,
    O::Owns: Has<ControllerRevision, I>,
{
    sort(&mut revisions);
    let data = data(spec);
    let mut collisions = collisions;
    match need(&revisions, &data) {
        Need::Nothing => {}
        Need::Again(old, number) => {
            let patch = json!({"metadata": {"uid": old.metadata.uid}, "revision": number});
            let now = cx.patch::<ControllerRevision, _>(&Key::of(&*old), &Patch::Merge(patch)).await?;
            revisions.retain(|r| r.metadata.name != old.metadata.name);
            revisions.push(Arc::new(now));
        }
        Need::New(number) => {
            let labels = spec.metadata.clone().unwrap_or_default();
            loop {
                let new = revision(owner, &labels, &data, number, collisions, label);
                let key = Key::of(&new);
                match cx.create::<ControllerRevision, _>(new).await {
                    Ok(new) => {
                        revisions.push(Arc::new(new));
                        break;
                    }
                    Err(e) if e.is_already_exists() => {
                        // Ours, which the cache hasn't seen; or another template with the same hash.
                        let has = cx.writer().get::<ControllerRevision>(&key).await?;
                        let same = has.filter(|h| h.data.as_ref().is_some_and(|d| d.0 == data));
                        let ours = |h: &ControllerRevision| {
                            super::claim::controller(&h.metadata)
                                .is_some_and(|r| Some(&r.uid) == owner.uid.as_ref())
                        };
                        if let Some(has) = same.filter(ours) {
                            revisions.push(Arc::new(has));
                            break;
                        }
                        collisions = collisions.wrapping_add(1);
                    }
                    Err(e) => return Err(e),
                }
            }
        }
    }
    Ok((revisions, collisions))
}

/// Deletes what is beyond the limit.
pub(crate) async fn truncate<O, I>(
    cx: &Context<O>,
    revisions: &[Arc<ControllerRevision>],
    live: &BTreeSet<&str>,
    limit: i32,
) -> Result<()>
where
    O: Operator,
    O::Owns: Has<ControllerRevision, I>,
{
    for old in surplus(revisions, live, limit) {
        cx.delete::<ControllerRevision, _>(&**old).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Value {
        json!({"spec": {"template": {"$patch": "replace", "spec": {"containers": [], "hostname": text}}}})
    }

    fn list(data: &[&str]) -> Vec<Arc<ControllerRevision>> {
        let one = |(i, text): (usize, &&str)| {
            let owner = ObjectMeta { name: Some("web".into()), ..ObjectMeta::default() };
            Arc::new(revision(
                &owner,
                &ObjectMeta::default(),
                &of(text),
                i64::try_from(i).unwrap() + 1,
                0,
                HASH_LABEL,
            ))
        };
        data.iter().enumerate().map(one).collect()
    }

    #[test]
    fn what_a_history_needs() {
        assert_eq!(need(&list(&[]), &of("a")), Need::New(1));
        assert_eq!(need(&list(&["a"]), &of("a")), Need::Nothing);
        assert_eq!(need(&list(&["a"]), &of("b")), Need::New(2));
        let two = list(&["a", "b"]);
        assert_eq!(need(&two, &of("a")), Need::Again(two[0].clone(), 3));
    }

    #[test]
    fn a_template_survives_the_way_through_a_revision() {
        let spec: PodTemplateSpec = serde_json::from_value(
            json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}),
        )
        .unwrap();
        let revision =
            revision(&ObjectMeta::default(), &ObjectMeta::default(), &data(&spec), 1, 0, HASH_LABEL);
        assert_eq!(template(&revision).unwrap(), spec);
    }

    #[track_caller]
    fn check(data: &[&str], live: &[usize], limit: i32, want: usize) {
        let all = list(data);
        let live = live.iter().map(|i| all[*i].metadata.name.as_deref().unwrap()).collect();
        assert_eq!(surplus(&all, &live, limit).len(), want, "{data:?} {live:?} {limit}");
    }

    #[test]
    fn the_oldest_go_beyond_the_limit() {
        check(&["a", "b", "c"], &[2], 10, 0);
        check(&["a", "b", "c"], &[2], 1, 1);
        check(&["a", "b", "c"], &[2], 0, 2);
        check(&["a", "b", "c"], &[0, 2], 0, 1);
        check(&["a", "b", "c"], &[2], -1, 0);
    }
}
