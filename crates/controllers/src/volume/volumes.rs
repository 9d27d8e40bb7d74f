//! Keeps the phases of volumes, and reclaims those whose claims are gone.

use homeostat_sdk::{Context, Event, Key, Next, Operator, Result, Watches};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim};
use kube::api::{DeleteParams, Preconditions};

use super::plan::{self, Fate, Reclaim, is_released};
use super::{BOUND_BY_CONTROLLER, annotation, phase};

/// The controller of volumes.
pub(crate) struct Volumes;

/// The claim that a volume refers to.
fn claim_key(volume: &PersistentVolume) -> Option<Key> {
    let claim = volume.spec.as_ref()?.claim_ref.as_ref()?;
    Some(Key::new(claim.namespace.as_deref(), claim.name.as_deref()?))
}

impl Operator for Volumes {
    type Resource = PersistentVolume;
    type Owns = ();
    type Reads = (PersistentVolumeClaim,);

    fn name() -> &'static str {
        "persistentvolume-controller"
    }

    async fn reconcile(&self, volume: &PersistentVolume, cx: &Context<Self>) -> Result<Next> {
        let uid = volume.spec.as_ref().and_then(|s| s.claim_ref.as_ref()).and_then(|r| r.uid.clone());
        let is_meant = |c: &PersistentVolumeClaim| c.metadata.uid == uid;
        let mut claim = None;
        if let Some(key) = claim_key(volume).filter(|_| uid.as_ref().is_some_and(|u| !u.is_empty())) {
            claim = cx.cache::<PersistentVolumeClaim, _>().get(&key).filter(|c| is_meant(c));
            if claim.is_none() && !is_released(volume) {
                // The cache may not have heard of it yet, and what follows may lose data: the server knows.
                claim = cx.writer().get(&key).await?.filter(is_meant).map(std::sync::Arc::new);
            }
        }
        match plan::volume(volume, claim.as_deref()) {
            Fate::Wait => {}
            Fate::Phase(to) => drop(set_phase(volume, to, "", cx).await?),
            Fate::Mismatch(of_volume, of_claim) => {
                cx.event(Event::warning("VolumeMismatch", of_volume)).await;
                if let Some(claim) = &claim {
                    cx.event_about(&**claim, Event::warning("VolumeMismatch", of_claim)).await;
                }
            }
            Fate::Unbind => unbind(volume, cx).await?,
            Fate::Release(reclaim) => release(volume, reclaim, cx).await?,
        }
        Ok(Next::done())
    }

    /// A volume that is being deleted still follows its claim, or its protection would never end.
    async fn finalize(&self, volume: &PersistentVolume, cx: &Context<Self>) -> Result<Next> {
        self.reconcile(volume, cx).await
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.changes::<PersistentVolumeClaim, _>(|change, view| {
            let name = |c: &PersistentVolumeClaim| c.spec.as_ref().and_then(|s| s.volume_name.clone());
            if !change.differs(name) {
                return Vec::new();
            }
            let Some(key) = change.key() else { return Vec::new() };
            let all = view.resources().list();
            all.iter().filter(|v| claim_key(v).as_ref() == Some(&key)).map(|v| Key::of(&**v)).collect()
        });
    }
}

/// Sets the phase; whether that was news.
async fn set_phase(
    volume: &PersistentVolume,
    to: &str,
    message: &str,
    cx: &Context<Volumes>,
) -> Result<PersistentVolume> {
    if phase(volume) == to {
        return Ok(volume.clone());
    }
    let mut new = volume.clone();
    let status = new.status.get_or_insert_default();
    status.phase = Some(to.into());
    status.message = Some(message.to_owned()).filter(|m| !m.is_empty());
    cx.writer().update_status(&new).await
}

/// Takes back what the binder wrote; what a person reserved stays reserved by name.
async fn unbind(volume: &PersistentVolume, cx: &Context<Volumes>) -> Result<()> {
    let mut new = volume.clone();
    let ours = annotation(&new.metadata, BOUND_BY_CONTROLLER).is_some();
    if let Some(spec) = &mut new.spec {
        if ours {
            spec.claim_ref = None;
        } else if let Some(claim) = &mut spec.claim_ref {
            claim.uid = None;
        }
    }
    if let Some(annotations) = &mut new.metadata.annotations {
        annotations.remove(BOUND_BY_CONTROLLER);
    }
    let new: PersistentVolume = cx.writer().update(&new).await?;
    set_phase(&new, "Available", "", cx).await?;
    Ok(())
}

async fn release(volume: &PersistentVolume, reclaim: Reclaim, cx: &Context<Volumes>) -> Result<()> {
    let volume =
        if is_released(volume) { volume.clone() } else { set_phase(volume, "Released", "", cx).await? };
    match reclaim {
        Reclaim::Keep => Ok(()),
        Reclaim::Delete if volume.metadata.deletion_timestamp.is_some() => Ok(()),
        Reclaim::Delete => {
            let uid = volume.metadata.uid.clone();
            let preconditions = Some(Preconditions { uid, resource_version: None });
            let params = DeleteParams { preconditions, ..DeleteParams::default() };
            cx.writer().delete::<PersistentVolume>(cx.key(), &params).await?;
            Ok(())
        }
        Reclaim::Fail(..) if phase(&volume) == "Failed" => Ok(()),
        Reclaim::Fail(reason, message) => {
            set_phase(&volume, "Failed", &message, cx).await?;
            cx.event(Event::warning(reason, message)).await;
            Ok(())
        }
    }
}
