//! `metav1.Condition`: what a status says of its object, in the form that `kubectl wait --for=condition=…` reads.
//!
//! Pure: conditions go in and come out. The one rule that is easily broken is kept here: the transition time moves
//! when the status of a condition does, and at no other time, so that a reconcile that finds nothing new writes
//! nothing.

use homeostat_model::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use kube::Resource;

/// Whether a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// `True`.
    Yes,
    /// `False`.
    No,
    /// `Unknown`.
    Unknown,
}

impl Holds {
    /// As the API writes it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Yes => "True",
            Self::No => "False",
            Self::Unknown => "Unknown",
        }
    }
}

impl From<bool> for Holds {
    fn from(yes: bool) -> Self {
        if yes { Self::Yes } else { Self::No }
    }
}

/// A condition of `object` as it was observed: its generation goes along. `reason` in CamelCase.
pub fn condition<K: Resource>(
    object: &K,
    r#type: &str,
    holds: impl Into<Holds>,
    reason: &str,
    message: impl Into<String>,
) -> Condition {
    Condition {
        type_: r#type.to_owned(),
        status: holds.into().as_str().to_owned(),
        reason: reason.to_owned(),
        message: message.into(),
        observed_generation: object.meta().generation,
        last_transition_time: Time(Timestamp::UNIX_EPOCH),
    }
}

/// Puts `condition` into `conditions`, in place of the one of its type. Its transition time becomes `now`, or stays
/// what it was where the status is the same. Whether anything changed.
pub fn set(conditions: &mut Vec<Condition>, mut condition: Condition, now: Timestamp) -> bool {
    // metav1.Time has whole seconds.
    let now = Timestamp::from_second(now.as_second()).unwrap_or(now);
    condition.last_transition_time = Time(now);
    match conditions.iter_mut().find(|c| c.type_ == condition.type_) {
        Some(has) => {
            if has.status == condition.status {
                condition.last_transition_time = has.last_transition_time.clone();
            }
            let changed = *has != condition;
            *has = condition;
            changed
        }
        None => {
            conditions.push(condition);
            true
        }
    }
}

/// Whether the condition of this type holds.
pub fn is_true(conditions: &[Condition], r#type: &str) -> bool {
    conditions.iter().any(|c| c.type_ == r#type && c.status == "True")
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;

    use super::*;

    #[test]
    fn the_transition_time_moves_with_the_status_only() {
        let mut pod = Pod::default();
        pod.metadata.generation = Some(3);
        let mut all = Vec::new();
        let second = |s| Timestamp::from_second(s).unwrap();
        // (holds, message, at) -> (changed, transition)
        for (holds, message, at, changed, transition) in [
            (false, "waiting", 10, true, 10),
            (false, "waiting", 20, false, 10),
            (false, "still waiting", 30, true, 10),
            (true, "done", 40, true, 40),
            (true, "done", 50, false, 40),
        ] {
            let new = condition(&pod, "Ready", holds, "Testing", message);
            assert_eq!(set(&mut all, new, second(at)), changed, "at {at}");
            assert_eq!(all[0].last_transition_time.0, second(transition), "at {at}");
        }
        assert_eq!((all.len(), all[0].observed_generation), (1, Some(3)));
        assert!(is_true(&all, "Ready"));
        assert!(!is_true(&all, "Available"));
    }
}
