//! What holds a terminating namespace, in the reference's five conditions and their words. Pure.

use homeostat_model::Timestamp;
use k8s_openapi::api::core::v1::{Namespace, NamespaceCondition};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};

use super::Counts;
use crate::common::served::Served;

/// What a look at a namespace found.
#[derive(Debug, Default)]
pub(super) struct Findings {
    /// Why not all kinds are known.
    pub(super) undiscovered: Option<String>,
    /// What could not be listed or deleted.
    pub(super) failed: Vec<String>,
    /// Objects left, by `resource.group`.
    remaining: Counts,
    /// Objects left with a finalizer, by finalizer.
    finalizers: Counts,
}

impl Findings {
    /// Nothing is left, and nothing can have been overlooked.
    pub(super) fn is_empty(&self) -> bool {
        self.undiscovered.is_none() && self.failed.is_empty() && self.remaining.is_empty()
    }

    pub(super) fn add(&mut self, resource: &Served, left: &[ObjectMeta]) {
        if left.is_empty() {
            return;
        }
        // The core group leaves its dot behind, as in the reference.
        self.remaining.insert(format!("{}.{}", resource.plural, resource.group), left.len());
        for finalizer in left.iter().flat_map(|m| m.finalizers.iter().flatten()) {
            *self.finalizers.entry(finalizer.clone()).or_default() += 1;
        }
    }

    /// Type, status, reason and message of all conditions.
    fn conditions(&self) -> [(&'static str, bool, &'static str, String); 5] {
        let join = |counts: &Counts, verb: &str| {
            let each = counts.iter().map(|(name, n)| format!("{name} {verb} {n} resource instances"));
            each.collect::<Vec<_>>().join(", ")
        };
        let discovery = match &self.undiscovered {
            Some(why) => (true, "DiscoveryFailed", why.clone()),
            None => (false, "ResourcesDiscovered", "All resources successfully discovered".into()),
        };
        let content = match self.failed.as_slice() {
            [] => (
                false,
                "ContentDeleted",
                "All content successfully deleted, may be waiting on finalization".into(),
            ),
            failed => (
                true,
                "ContentDeletionFailed",
                format!(
                    "Failed to delete all resource types, {} remaining: {}",
                    failed.len(),
                    failed.join(", ")
                ),
            ),
        };
        let remaining = if self.remaining.is_empty() {
            (false, "ContentRemoved", "All content successfully removed".into())
        } else {
            let text = format!("Some resources are remaining: {}", join(&self.remaining, "has"));
            (true, "SomeResourcesRemain", text)
        };
        let finalizers = if self.finalizers.is_empty() {
            (false, "ContentHasNoFinalizers", "All content-preserving finalizers finished".into())
        } else {
            let list = join(&self.finalizers, "in");
            let text = format!("Some content in the namespace has finalizers remaining: {list}");
            (true, "SomeFinalizersRemain", text)
        };
        let parsing = (false, "ParsedGroupVersions", "All legacy kube types successfully parsed".to_owned());
        let with = |kind, (status, reason, message)| (kind, status, reason, message);
        [
            with("NamespaceDeletionDiscoveryFailure", discovery),
            with("NamespaceDeletionGroupVersionParsingFailure", parsing),
            with("NamespaceDeletionContentFailure", content),
            with("NamespaceContentRemaining", remaining),
            with("NamespaceFinalizersRemaining", finalizers),
        ]
    }
}

/// The namespace's conditions with these findings.
pub(super) fn updated(namespace: &Namespace, findings: &Findings, now: Timestamp) -> Vec<NamespaceCondition> {
    let mut all = namespace.status.as_ref().and_then(|s| s.conditions.clone()).unwrap_or_default();
    let now = Timestamp::from_second(now.as_second()).ok().map(Time);
    for (kind, holds, reason, message) in findings.conditions() {
        let status = if holds { "True" } else { "False" };
        let old = all.iter_mut().find(|c| c.type_ == kind);
        let since = old.as_ref().filter(|c| c.status == status).and_then(|c| c.last_transition_time.clone());
        let new = NamespaceCondition {
            type_: kind.into(),
            status: status.into(),
            reason: Some(reason.into()),
            message: Some(message),
            last_transition_time: since.or_else(|| now.clone()),
        };
        match old {
            Some(old) => *old = new,
            None => all.push(new),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn served(plural: &str, group: &str) -> Served {
        Served {
            group: group.into(),
            version: "v1".into(),
            plural: plural.into(),
            kind: "Kind".into(),
            namespaced: true,
            scalable: false,
            verbs: Vec::new(),
        }
    }

    fn object(finalizers: &[&str]) -> ObjectMeta {
        let finalizers = Some(finalizers.iter().map(|f| (*f).to_owned()).collect());
        ObjectMeta { finalizers, ..ObjectMeta::default() }
    }

    fn texts(findings: &Findings) -> Vec<String> {
        let one =
            |(_, holds, reason, message): (&str, bool, &str, String)| format!("{holds} {reason}: {message}");
        findings.conditions().into_iter().map(one).collect()
    }

    #[test]
    fn an_empty_namespace() {
        let findings = Findings::default();
        assert!(findings.is_empty());
        assert_eq!(
            texts(&findings),
            [
                "false ResourcesDiscovered: All resources successfully discovered",
                "false ParsedGroupVersions: All legacy kube types successfully parsed",
                "false ContentDeleted: All content successfully deleted, may be waiting on finalization",
                "false ContentRemoved: All content successfully removed",
                "false ContentHasNoFinalizers: All content-preserving finalizers finished",
            ]
        );
    }

    #[test]
    fn what_remains_is_told() {
        let mut findings = Findings::default();
        findings.add(&served("backups", "example.com"), &[object(&["example.com/hold"]), object(&[])]);
        findings.add(&served("configmaps", ""), &[object(&["example.com/hold", "a/b"])]);
        findings.add(&served("pods", ""), &[]);
        assert!(!findings.is_empty());
        assert_eq!(
            texts(&findings)[3..],
            [
                "true SomeResourcesRemain: Some resources are remaining: backups.example.com has 2 resource instances, \
                 configmaps. has 1 resource instances",
                "true SomeFinalizersRemain: Some content in the namespace has finalizers remaining: a/b in 1 resource \
                 instances, example.com/hold in 2 resource instances",
            ]
        );
    }

    #[test]
    fn failures_are_told() {
        let findings = Findings {
            undiscovered: Some("no answer".into()),
            failed: vec!["a is forbidden".into(), "b timed out".into()],
            ..Findings::default()
        };
        assert!(!findings.is_empty());
        let texts = texts(&findings);
        assert_eq!(texts[0], "true DiscoveryFailed: no answer");
        assert_eq!(
            texts[2],
            "true ContentDeletionFailed: Failed to delete all resource types, 2 remaining: a is forbidden, b timed out"
        );
    }

    #[test]
    fn a_transition_keeps_its_time() {
        let at = |s| Timestamp::from_second(s).unwrap();
        let mut namespace = Namespace::default();
        let mut findings = Findings::default();
        findings.add(&served("pods", ""), &[object(&[])]);
        let first = updated(&namespace, &findings, at(10));
        namespace.status.get_or_insert_default().conditions = Some(first.clone());
        findings.add(&served("pods", ""), &[object(&[]), object(&[])]);
        let second = updated(&namespace, &findings, at(20));
        assert_eq!(
            second.iter().map(|c| &c.type_).collect::<Vec<_>>(),
            first.iter().map(|c| &c.type_).collect::<Vec<_>>()
        );
        assert_eq!(second[3].last_transition_time, first[3].last_transition_time);
        assert_ne!(second[3].message, first[3].message);
        namespace.status.get_or_insert_default().conditions = Some(second);
        let third = updated(&namespace, &Findings::default(), at(30));
        assert_eq!(third[3].last_transition_time.as_ref().unwrap().0, at(30));
        assert_eq!(third[0].last_transition_time.as_ref().unwrap().0, at(10));
    }
}
