//! Bound claims that ask for more than they have: volumes of the built-in provisioner grow at once, others are left to
//! whoever made them.

use homeostat_sdk::{Context, Edits, Event, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};

use super::{PROVISIONED_BY, SIMULATED, STORAGE, amount, annotation, capacity, requested};

/// The controller.
pub(crate) struct Growth;

/// What a claim needs in order to have what it asks for.
#[derive(Debug, PartialEq, Eq)]
enum Need {
    Nothing,
    /// Its volume is somebody else's.
    Elsewhere,
    /// Volume and claim are written anew.
    Here,
}

fn need(claim: &PersistentVolumeClaim, volume: &PersistentVolume) -> Need {
    let status = claim.status.as_ref();
    let bound = status.and_then(|s| s.phase.as_deref()) == Some("Bound");
    let has = amount(status.and_then(|s| s.capacity.as_ref()));
    if !bound || requested(claim) <= has {
        return Need::Nothing;
    }
    if annotation(&volume.metadata, PROVISIONED_BY) == Some(SIMULATED) { Need::Here } else { Need::Elsewhere }
}

impl Operator for Growth {
    type Resource = PersistentVolumeClaim;
    type Owns = ();
    type Reads = (Edits<PersistentVolume>,);

    fn name() -> &'static str {
        "persistentvolume-expander-controller"
    }

    async fn reconcile(&self, claim: &PersistentVolumeClaim, cx: &Context<Self>) -> Result<Next> {
        let name = claim.spec.as_ref().and_then(|s| s.volume_name.as_deref()).unwrap_or_default();
        let Some(volume) = cx.cache::<PersistentVolume, _>().get(&Key::cluster(name)) else {
            return Ok(Next::done());
        };
        match need(claim, &volume) {
            Need::Nothing => {}
            Need::Elsewhere => {
                let text = "waiting for an external controller to expand this PVC";
                cx.event(Event::normal("ExternalExpanding", text)).await;
            }
            Need::Here => {
                let requests = claim.spec.as_ref().and_then(|s| s.resources.as_ref()?.requests.as_ref());
                let Some(wanted) = requests.and_then(|r| r.get(STORAGE)).cloned() else {
                    return Ok(Next::done());
                };
                if capacity(&volume) < requested(claim) {
                    let text = format!("External resizer is resizing volume {name}");
                    cx.event(Event::normal("Resizing", text)).await;
                    let mut volume = PersistentVolume::clone(&volume);
                    let spec = volume.spec.get_or_insert_default();
                    spec.capacity.get_or_insert_default().insert(STORAGE.into(), wanted.clone());
                    cx.writer().update(&volume).await?;
                }
                let mut claim = claim.clone();
                let status = claim.status.get_or_insert_default();
                status.capacity.get_or_insert_default().insert(STORAGE.into(), wanted);
                cx.writer().update_status(&claim).await?;
                cx.event(Event::normal("VolumeResizeSuccessful", "Resize volume succeeded")).await;
            }
        }
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.filter(|change| {
            change.new.is_some()
                && change.differs(|c| {
                    let status = c.status.as_ref();
                    let has = status.map(|s| (s.phase.clone(), s.capacity.clone()));
                    (c.spec.as_ref().map(|s| (s.resources.clone(), s.volume_name.clone())), has)
                })
        });
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(asks: &str, has: &str, phase: &str, by: &str, want: Need) {
        let claim: PersistentVolumeClaim = serde_json::from_value(json!({
            "spec": {"resources": {"requests": {"storage": asks}}},
            "status": {"phase": phase, "capacity": {"storage": has}}}))
        .unwrap();
        let volume: PersistentVolume =
            serde_json::from_value(json!({"metadata": {"annotations": {PROVISIONED_BY: by}}})).unwrap();
        assert_eq!(need(&claim, &volume), want);
    }

    #[test]
    fn only_what_is_bound_and_too_small_grows() {
        check("2Gi", "1Gi", "Bound", SIMULATED, Need::Here);
        check("2Gi", "1Gi", "Bound", "csi.example.com", Need::Elsewhere);
        check("1Gi", "1024Mi", "Bound", SIMULATED, Need::Nothing);
        check("2Gi", "1Gi", "Pending", SIMULATED, Need::Nothing);
        check("1Gi", "2Gi", "Bound", SIMULATED, Need::Nothing);
    }
}
