//! Adoption and release: an object without a controller that a selector matches is taken over, one that it no longer
//! matches is let go.
//!
//! The decision is a pure function of the object; carrying it out patches only the owner references, guarded by the
//! object's uid. Invariant: an object that has another controller is never touched.

use std::sync::{Arc, OnceLock};

use homeostat_sdk::selector::Labels;
use homeostat_sdk::{Cache, Context, Has, Index, Key, Object, Operator, Result};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use kube::Resource;
use kube::api::Patch;
use serde_json::json;

/// What to do with an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Claim {
    /// It is ours and stays so.
    Keep,
    /// It has no controller and is to be ours.
    Adopt,
    /// It is ours and no longer selected.
    Release,
    /// It is none of our business.
    Ignore,
}

/// The reference of the object's controller.
pub(crate) fn controller(meta: &ObjectMeta) -> Option<&OwnerReference> {
    meta.owner_references.iter().flatten().find(|r| r.controller == Some(true))
}

/// Decides about one object, for the owner `uid` that is or isn't `leaving` (being deleted).
pub(crate) fn decide(meta: &ObjectMeta, uid: &str, selected: bool, leaving: bool) -> Claim {
    match controller(meta) {
        Some(owner) if owner.uid != uid => Claim::Ignore,
        Some(_) if selected => Claim::Keep,
        Some(_) if leaving => Claim::Ignore,
        Some(_) => Claim::Release,
        None if selected && !leaving && meta.deletion_timestamp.is_none() => Claim::Adopt,
        None => Claim::Ignore,
    }
}

/// A label selector in the form that selects. An empty or absent one selects nothing here: a controller that
/// controlled everything would be a mistake, and the API server refuses it.
pub(crate) fn labels(selector: Option<&LabelSelector>) -> Result<Labels> {
    let value = serde_json::to_value(selector)?;
    Labels::from_value(&value).map_err(|errors| {
        let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
        homeostat_sdk::Error::msg(format!("invalid selector: {}", texts.join(", "))).terminal()
    })
}

/// A label selector as it is written in a query: `a=b,c in (d,e)`.
pub(crate) fn text(selector: Option<&LabelSelector>) -> String {
    let Some(selector) = selector else { return String::new() };
    let equal = selector.match_labels.iter().flatten().map(|(k, v)| format!("{k}={v}"));
    let expressions = selector.match_expressions.iter().flatten().map(|r| {
        let values = r.values.as_deref().unwrap_or_default().join(",");
        match r.operator.as_str() {
            "In" => format!("{} in ({values})", r.key),
            "NotIn" => format!("{} notin ({values})", r.key),
            "Exists" => r.key.clone(),
            _ => format!("!{}", r.key),
        }
    });
    equal.chain(expressions).collect::<Vec<_>>().join(",")
}

/// Whether an object's labels match.
pub(crate) fn matches(selector: &Labels, meta: &ObjectMeta) -> bool {
    !selector.is_empty()
        && selector.matches(|k| meta.labels.as_ref().and_then(|l| l.get(k)).map(String::as_str))
}

/// Finds the objects of a namespace that have no controller, by an index made when first asked.
pub(crate) struct Orphans<T>(OnceLock<Index<T>>);

impl<T> Default for Orphans<T> {
    fn default() -> Self {
        Self(OnceLock::new())
    }
}

impl<T: Object> Orphans<T> {
    pub(crate) fn of(&self, cache: &Cache<T>, namespace: &str) -> Vec<Arc<T>> {
        let index = self.0.get_or_init(|| {
            cache.index(|o| {
                let free = controller(o.meta()).is_none();
                o.meta().namespace.iter().filter(|_| free).cloned().collect()
            })
        });
        index.get(namespace)
    }
}

/// The objects that the reconciled object controls, after adoption and release. In the order of their keys.
///
/// Objects for which `concerns` is false are left out and left alone, whoever owns them.
pub(crate) async fn claim<O, T, I>(
    cx: &Context<O>,
    orphans: &Orphans<T>,
    owner: &ObjectMeta,
    selector: &Labels,
    concerns: impl Fn(&T) -> bool,
) -> Result<Vec<Arc<T>>>
where
    O: Operator,
    O::Owns: Has<T, I>,
    T: Object,
{
    let uid = owner.uid.as_deref().unwrap_or_default();
    let leaving = owner.deletion_timestamp.is_some();
    let mut all = cx.owned::<T, I>();
    all.extend(orphans.of(&cx.cache::<T, _>(), owner.namespace.as_deref().unwrap_or_default()));
    let mut ours = Vec::with_capacity(all.len());
    let mut may_adopt = None;
    for object in all.into_iter().filter(|o| concerns(o)) {
        match decide(object.meta(), uid, matches(selector, object.meta()), leaving) {
            Claim::Keep => ours.push(object),
            Claim::Ignore => {}
            Claim::Release => release(cx, &*object, uid).await?,
            Claim::Adopt => {
                // The owner may have been deleted since the cache heard of it: never adopt for the dead.
                if may_adopt.is_none() {
                    let now = cx.writer().get::<O::Resource>(cx.key()).await?;
                    let alive = |o: &O::Resource| {
                        o.meta().uid.as_deref() == Some(uid) && o.meta().deletion_timestamp.is_none()
                    };
                    may_adopt = Some(now.as_ref().is_some_and(alive));
                }
                if may_adopt == Some(true)
                    && let Some(adopted) = adopt(cx, &*object).await?
                {
                    ours.push(Arc::new(adopted));
                }
            }
        }
    }
    ours.sort_by_cached_key(|o| Key::of(&**o));
    Ok(ours)
}

async fn adopt<O, T, I>(cx: &Context<O>, object: &T) -> Result<Option<T>>
where
    O: Operator,
    O::Owns: Has<T, I>,
    T: Object,
{
    let patch = json!({"metadata": {"uid": object.meta().uid, "ownerReferences": [cx.owner_reference()?]}});
    match cx.patch::<T, _>(&Key::of(object), &Patch::Strategic(patch)).await {
        Ok(adopted) => Ok(Some(adopted)),
        Err(e) if is_over_anyway(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

async fn release<O, T, I>(cx: &Context<O>, object: &T, owner: &str) -> Result<()>
where
    O: Operator,
    O::Owns: Has<T, I>,
    T: Object,
{
    let gone = json!([{"$patch": "delete", "uid": owner}]);
    let patch = json!({"metadata": {"uid": object.meta().uid, "ownerReferences": gone}});
    match cx.patch::<T, _>(&Key::of(object), &Patch::Strategic(patch)).await {
        Err(e) if !is_over_anyway(&e) => Err(e),
        _ => Ok(()),
    }
}

/// The object is gone, or another one of its name is there now.
fn is_over_anyway(error: &homeostat_sdk::Error) -> bool {
    error.is_not_found() || error.is_conflict()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(controller: Option<&str>, selected: bool, leaving: bool, want: Claim) {
        let reference = controller.map(|uid| OwnerReference {
            uid: uid.into(),
            controller: Some(true),
            ..OwnerReference::default()
        });
        let meta = ObjectMeta { owner_references: reference.map(|r| vec![r]), ..ObjectMeta::default() };
        assert_eq!(decide(&meta, "me", selected, leaving), want, "{controller:?} {selected} {leaving}");
    }

    #[test]
    fn who_is_whose() {
        check(Some("me"), true, false, Claim::Keep);
        check(Some("me"), true, true, Claim::Keep);
        check(Some("me"), false, false, Claim::Release);
        check(Some("me"), false, true, Claim::Ignore);
        check(Some("other"), true, false, Claim::Ignore);
        check(Some("other"), false, false, Claim::Ignore);
        check(None, true, false, Claim::Adopt);
        check(None, true, true, Claim::Ignore);
        check(None, false, false, Claim::Ignore);
    }

    #[test]
    fn what_is_leaving_is_not_adopted() {
        let meta = ObjectMeta {
            deletion_timestamp: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                homeostat_sdk::Timestamp::UNIX_EPOCH,
            )),
            ..ObjectMeta::default()
        };
        assert_eq!(decide(&meta, "me", true, false), Claim::Ignore);
    }

    #[test]
    fn an_empty_selector_matches_nothing() {
        let empty = labels(Some(&LabelSelector::default())).unwrap();
        assert!(!matches(&empty, &ObjectMeta::default()));
    }
}
