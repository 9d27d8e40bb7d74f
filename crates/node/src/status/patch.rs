//! From the status that is stored to the one that is to be: a strategic merge patch with what differs, as kubelets send
//! it.
//!
//! Conditions that aren't a kubelet's are not in it, so that a stale view never takes back what another has said.

use k8s_openapi::api::core::v1::{Pod, PodCondition, PodStatus};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::conditions::{OWN, is_own};

/// The patch; `None` where nothing differs.
pub fn patch(pod: &Pod, new: &PodStatus) -> Result<Option<Value>, serde_json::Error> {
    let nothing = PodStatus::default();
    let old = pod.status.as_ref().unwrap_or(&nothing);
    let mut changes = Changes(Map::new());
    // What a kubelet writes, and nothing else; what is gone is removed.
    changes.field("phase", &old.phase, &new.phase)?;
    changes.field("reason", &old.reason, &new.reason)?;
    changes.field("message", &old.message, &new.message)?;
    changes.field("hostIP", &old.host_ip, &new.host_ip)?;
    changes.list("hostIPs", &old.host_ips, &new.host_ips)?;
    changes.field("podIP", &old.pod_ip, &new.pod_ip)?;
    changes.list("podIPs", &old.pod_ips, &new.pod_ips)?;
    changes.field("startTime", &old.start_time, &new.start_time)?;
    changes.field("containerStatuses", &old.container_statuses, &new.container_statuses)?;
    changes.field("initContainerStatuses", &old.init_container_statuses, &new.init_container_statuses)?;
    let (had, has) = (&old.ephemeral_container_statuses, &new.ephemeral_container_statuses);
    changes.field("ephemeralContainerStatuses", had, has)?;
    changes.field("observedGeneration", &old.observed_generation, &new.observed_generation)?;
    changes.field("resize", &old.resize, &new.resize)?;
    let Changes(mut changes) = changes;
    let conditions = conditions(
        old.conditions.as_deref().unwrap_or_default(),
        new.conditions.as_deref().unwrap_or_default(),
    )?;
    if !conditions.is_empty() {
        changes.insert("conditions".to_owned(), Value::Array(conditions));
    }
    if changes.is_empty() {
        return Ok(None);
    }
    Ok(Some(json!({"metadata": {"uid": pod.metadata.uid}, "status": changes})))
}

/// Fields that differ, by name.
struct Changes(Map<String, Value>);

impl Changes {
    fn field<T: PartialEq + Serialize>(
        &mut self,
        name: &str,
        had: &Option<T>,
        has: &Option<T>,
    ) -> Result<(), serde_json::Error> {
        if had != has {
            self.0.insert(name.to_owned(), serde_json::to_value(has)?);
        }
        Ok(())
    }

    /// A list that a strategic merge would else add to.
    fn list<T: PartialEq + Serialize>(
        &mut self,
        name: &str,
        had: &Option<Vec<T>>,
        has: &Option<Vec<T>>,
    ) -> Result<(), serde_json::Error> {
        self.field(name, had, has)?;
        if let (Some(_), Some(Value::Array(items))) = (had, self.0.get_mut(name)) {
            items.insert(0, json!({"$patch": "replace"}));
        }
        Ok(())
    }
}

fn conditions(old: &[PodCondition], new: &[PodCondition]) -> Result<Vec<Value>, serde_json::Error> {
    let own = |c: &&PodCondition| OWN.contains(&c.type_.as_str());
    let mut changes = Vec::new();
    for condition in new.iter().filter(|c| is_own(c)) {
        let before = old.iter().find(|o| o.type_ == condition.type_);
        if before == Some(condition) {
            continue;
        }
        let mut told = serde_json::to_value(condition)?;
        let before = before.map(serde_json::to_value).transpose()?;
        for (field, _) in before.as_ref().and_then(Value::as_object).into_iter().flatten() {
            if told.get(field).is_none() {
                told[field.as_str()] = Value::Null;
            }
        }
        changes.push(told);
    }
    let gone = old.iter().filter(own).filter(|o| !new.iter().any(|n| n.type_ == o.type_));
    changes.extend(gone.map(|o| json!({"type": o.type_, "$patch": "delete"})));
    Ok(changes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(v: Value) -> PodStatus {
        serde_json::from_value(v).unwrap()
    }

    #[track_caller]
    fn check(old: Value, new: Value, want: Option<Value>) {
        let pod = Pod { status: Some(status(old)), ..Pod::default() };
        let got = patch(&pod, &status(new)).unwrap();
        assert_eq!(got.map(|p| p["status"].clone()), want);
    }

    #[test]
    fn only_what_differs_is_sent() {
        let ready = |s: &str| json!({"type": "Ready", "status": s});
        check(json!({"phase": "Pending"}), json!({"phase": "Pending"}), None);
        check(json!({"phase": "Pending"}), json!({"phase": "Running"}), Some(json!({"phase": "Running"})));
        check(json!({"reason": "Evicted"}), json!({}), Some(json!({"reason": null})));
        check(
            json!({"conditions": [ready("False"), {"type": "lb", "status": "True"}]}),
            json!({"conditions": [ready("True"), {"type": "lb", "status": "False"}]}),
            Some(json!({"conditions": [ready("True")]})),
        );
        check(
            json!({"conditions": [{"type": "Ready", "status": "False", "reason": "R", "message": "m"}]}),
            json!({"conditions": [ready("True")]}),
            Some(json!({"conditions": [
                {"type": "Ready", "status": "True", "reason": null, "message": null}]})),
        );
        check(
            json!({"conditions": [{"type": "PodResizePending", "status": "True"}]}),
            json!({"conditions": []}),
            Some(json!({"conditions": [{"type": "PodResizePending", "$patch": "delete"}]})),
        );
        check(
            json!({"podIPs": [{"ip": "10.0.0.1"}]}),
            json!({"podIPs": [{"ip": "10.0.0.2"}]}),
            Some(json!({"podIPs": [{"$patch": "replace"}, {"ip": "10.0.0.2"}]})),
        );
        // What a kubelet doesn't write is not taken back.
        check(json!({"qosClass": "Burstable", "nominatedNodeName": "n"}), json!({}), None);
    }
}
