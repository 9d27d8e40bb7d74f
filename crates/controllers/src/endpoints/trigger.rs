//! The time of the change that made endpoints what they are, told in an annotation: by it people measure how long a change
//! takes to get into the network.
//!
//! The first endpoints of a Service follow from its creation; later ones from the pods whose readiness changed since the
//! last look, of which the earliest counts. Nothing is decided by what is remembered here: a controller that has just
//! started tells the Service's creation. Source: client-go's `TriggerTimeTracker` (`k8s.io/endpointslice`).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use homeostat_model::Timestamp;
use homeostat_sdk::Key;
use k8s_openapi::api::core::v1::{Pod, Service};

use crate::common::pods;

/// The annotation, on Endpoints and EndpointSlices.
pub(super) const ANNOTATION: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The times of the last look at a Service.
#[derive(Debug, Default)]
struct Seen {
    service: Option<Timestamp>,
    pods: BTreeMap<String, Timestamp>,
}

/// What was seen of all Services.
#[derive(Debug, Default)]
pub(crate) struct Triggers(Mutex<BTreeMap<Key, Seen>>);

impl Triggers {
    /// When the change happened that this look at a Service and its pods finds; `None` where none of them tells.
    pub(super) fn look(&self, service: &Service, pods: &[Arc<Pod>]) -> Option<Timestamp> {
        let created = service.metadata.creation_timestamp.as_ref().map(|t| t.0);
        let ready = |p: &Arc<Pod>| {
            let since = pods::condition(p, "Ready")?.last_transition_time.as_ref()?.0;
            Some((p.metadata.name.clone()?, since))
        };
        let now = Seen { service: created, pods: pods.iter().filter_map(ready).collect() };
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(before) = all.get_mut(&Key::of(service)) else {
            all.insert(Key::of(service), now);
            return created;
        };
        let is_later = |(name, since): &(&String, &Timestamp)| before.pods.get(*name) < Some(*since);
        let moved = now.pods.iter().filter(is_later).map(|(_, since)| *since);
        let trigger = moved.chain(now.service.filter(|_| before.service < now.service)).min();
        *before = now;
        trigger
    }

    /// A Service that is gone.
    pub(super) fn forget(&self, key: &Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
    }
}

/// Writes the annotation, or takes it away.
pub(super) fn annotate(annotations: &mut Option<BTreeMap<String, String>>, trigger: Option<Timestamp>) {
    let mut all = annotations.take().unwrap_or_default();
    match trigger {
        Some(time) => drop(all.insert(ANNOTATION.into(), time.to_string())),
        None => drop(all.remove(ANNOTATION)),
    }
    *annotations = Some(all).filter(|a| !a.is_empty());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn service(created: i64) -> Service {
        let meta = json!({"name": "svc", "namespace": "d", "creationTimestamp": at(created).to_string()});
        serde_json::from_value(json!({"metadata": meta})).unwrap()
    }

    fn pods(ready: &[(&str, i64)]) -> Vec<Arc<Pod>> {
        let pod = |(name, since): &(&str, i64)| {
            let condition =
                json!({"type": "Ready", "status": "True", "lastTransitionTime": at(*since).to_string()});
            Arc::new(
                serde_json::from_value(
                    json!({"metadata": {"name": name}, "status": {"conditions": [condition]}}),
                )
                .unwrap(),
            )
        };
        ready.iter().map(pod).collect()
    }

    #[test]
    fn the_earliest_of_what_changed_counts() {
        let triggers = Triggers::default();
        let check = |created: i64, ready: &[(&str, i64)], want: Option<i64>| {
            assert_eq!(triggers.look(&service(created), &pods(ready)), want.map(at), "{created} {ready:?}");
        };
        check(0, &[("a", 5)], Some(0));
        check(0, &[("a", 5)], None);
        check(0, &[("a", 5), ("b", 7), ("c", 6)], Some(6));
        check(0, &[("a", 9), ("b", 7)], Some(9));
        // One that is gone leaves no time.
        check(0, &[("a", 9)], None);
        check(20, &[("a", 9)], Some(20));
        triggers.forget(&Key::of(&service(0)));
        check(0, &[("a", 9)], Some(0));
    }

    #[test]
    fn the_annotation_is_written_and_taken_away() {
        let mut all = Some(BTreeMap::from([("a".to_owned(), "b".to_owned())]));
        annotate(&mut all, Some(at(0)));
        assert_eq!(json!(all), json!({"a": "b", ANNOTATION: "1970-01-12T13:46:40Z"}));
        annotate(&mut all, None);
        assert_eq!(json!(all), json!({"a": "b"}));
        let mut none = None;
        annotate(&mut none, None);
        assert_eq!(none, None);
    }
}
