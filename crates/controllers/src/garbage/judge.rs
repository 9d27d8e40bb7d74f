//! What becomes of an object, given what is known of its owners. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::PropagationPolicy;

use super::graph::{FOREGROUND, ORPHAN};

/// What the server said of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It is there.
    Solid,
    /// There is no such object (any more).
    Absent,
    /// It is being deleted and waits for its dependents.
    Waiting,
}

/// What becomes of an object.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Verdict {
    Keep,
    /// It keeps an owner, but not those with these uids.
    Strip(Vec<String>),
    Delete(PropagationPolicy),
}

/// Judges an object by its owners; `dependents` says that it has some itself.
pub(super) fn judge(meta: &ObjectMeta, owners: &[(String, Owner)], dependents: bool) -> Verdict {
    if owners.is_empty() {
        return Verdict::Keep;
    }
    if owners.iter().any(|(_, o)| *o == Owner::Solid) {
        // References to waiting owners go too, or these would wait for ever.
        let rest: Vec<String> =
            owners.iter().filter(|(_, o)| *o != Owner::Solid).map(|(u, _)| u.clone()).collect();
        return if rest.is_empty() { Verdict::Keep } else { Verdict::Strip(rest) };
    }
    if dependents && owners.iter().any(|(_, o)| *o == Owner::Waiting) {
        return Verdict::Delete(PropagationPolicy::Foreground);
    }
    let has = |f: &str| meta.finalizers.iter().flatten().any(|x| x == f);
    Verdict::Delete(if has(ORPHAN) {
        PropagationPolicy::Orphan
    } else if has(FOREGROUND) {
        PropagationPolicy::Foreground
    } else {
        PropagationPolicy::Background
    })
}

#[cfg(test)]
mod tests {
    use Owner::{Absent, Solid, Waiting};

    use super::*;

    #[track_caller]
    fn check(owners: &[Owner], dependents: bool, finalizer: &str, want: Verdict) {
        let finalizers = Some(vec![finalizer.to_owned()]);
        let meta = ObjectMeta { finalizers, ..ObjectMeta::default() };
        let owners: Vec<_> = owners.iter().enumerate().map(|(i, o)| (i.to_string(), *o)).collect();
        assert_eq!(judge(&meta, &owners, dependents), want, "{owners:?}");
    }

    #[test]
    fn owners_decide() {
        use PropagationPolicy::{Background, Foreground, Orphan};
        check(&[], false, "", Verdict::Keep);
        check(&[Solid], false, "", Verdict::Keep);
        check(&[Absent], false, "", Verdict::Delete(Background));
        check(&[Absent, Absent], true, "", Verdict::Delete(Background));
        check(&[Absent, Solid], false, "", Verdict::Strip(vec!["0".into()]));
        check(&[Solid, Waiting, Absent], false, "", Verdict::Strip(vec!["1".into(), "2".into()]));
        check(&[Waiting], false, "", Verdict::Delete(Background));
        check(&[Waiting], true, "", Verdict::Delete(Foreground));
        check(&[Absent], true, ORPHAN, Verdict::Delete(Orphan));
        check(&[Absent], true, FOREGROUND, Verdict::Delete(Foreground));
    }
}
