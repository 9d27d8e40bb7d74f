//! Binds claims, one at a time, so that two never take the same volume.

use std::sync::Arc;

use homeostat_sdk::{Context, Edits, Event, Key, Next, Operator, Result, Settings, View, Watches};
use k8s_openapi::api::core::v1::{PersistentVolume, PersistentVolumeClaim, Pod};
use k8s_openapi::api::storage::v1::StorageClass;

use super::plan::{self, Step, World};
use super::{
    BIND_COMPLETED, BOUND_BY_CONTROLLER, PROVISIONER, SELECTED_NODE, STORAGE, annotate, key, matching,
    provision,
};
use crate::common::pods;
use crate::storage_protection::claims;

/// The controller of claims.
pub(crate) struct Claims;

fn is_pending(claim: &PersistentVolumeClaim) -> bool {
    super::annotation(&claim.metadata, BIND_COMPLETED).is_none()
}

fn pending(view: &View<Claims>) -> Vec<Key> {
    view.resources().list().iter().filter(|c| is_pending(c)).map(|c| Key::of(&**c)).collect()
}

impl Operator for Claims {
    type Resource = PersistentVolumeClaim;
    type Owns = ();
    type Reads = (Edits<PersistentVolume>, StorageClass, Pod);

    fn name() -> &'static str {
        "persistentvolume-binder-controller"
    }

    async fn reconcile(&self, claim: &PersistentVolumeClaim, cx: &Context<Self>) -> Result<Next> {
        let volumes = cx.cache::<PersistentVolume, _>().list();
        let classes = cx.cache::<StorageClass, _>().list();
        let uses = |p: &Arc<Pod>| !pods::is_over(p) && claims(p).iter().any(|c| c == cx.name());
        let mut pods = cx.cache::<Pod, _>().in_namespace(cx.namespace().unwrap_or_default());
        pods.retain(uses);
        let step = plan::claim(claim, &World { volumes: &volumes, classes: &classes, pods: &pods })?;
        match step {
            Step::Wait(event) => {
                if let Some(event) = event {
                    cx.event(event).await;
                }
                set_status(claim, "Pending", None, cx).await?;
            }
            Step::Lose(event) => {
                if set_status(claim, "Lost", None, cx).await? {
                    cx.event(event).await;
                }
            }
            Step::Classify(class) => {
                let mut claim = claim.clone();
                claim.spec.get_or_insert_default().storage_class_name = Some(class);
                cx.writer().update(&claim).await?;
            }
            Step::Bind(volume) => bind(&volume, claim, cx).await?,
            Step::Elsewhere(provisioner) => {
                let mut claim = claim.clone();
                if name_provisioner(&mut claim, &provisioner) {
                    cx.writer().update(&claim).await?;
                }
                let text = format!(
                    "Waiting for a volume to be created either by the external provisioner '{provisioner}' or \
                     manually by the system administrator. If volume creation is delayed, please verify that the \
                     provisioner is running and correctly registered."
                );
                cx.event(Event::normal("ExternalProvisioning", text)).await;
            }
            Step::Provision(class, node) => make(claim, &class, node.as_deref(), cx).await?,
        }
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.changes::<PersistentVolume, _>(|change, view| {
            let referred = change.each().filter_map(|v| {
                let claim = v.spec.as_ref()?.claim_ref.as_ref()?;
                Some(Key::new(claim.namespace.as_deref(), claim.name.as_deref()?))
            });
            let mut keys: Vec<Key> = referred.filter(|k| view.resources().get(k).is_some()).collect();
            let name = change.key().map(|k| k.name().to_owned()).unwrap_or_default();
            let free = change.new.as_ref().is_none_or(|v| !matching::is_taken(v));
            if free {
                let all = view.resources().list();
                let named = |c: &&Arc<PersistentVolumeClaim>| {
                    c.spec.as_ref().and_then(|s| s.volume_name.as_deref()) == Some(&name)
                };
                keys.extend(all.iter().filter(|c| is_pending(c) || named(c)).map(|c| Key::of(&**c)));
            }
            keys.sort();
            keys.dedup();
            keys
        });
        watches.changes::<StorageClass, _>(
            |change, view| {
                if change.new.is_some() { pending(view) } else { Vec::new() }
            },
        );
        watches.changes::<Pod, _>(|change, view| {
            let Some(pod) = &change.new else { return Vec::new() };
            if !change.differs(|p| pods::node(p).map(str::to_owned)) {
                return Vec::new();
            }
            let namespace = pod.metadata.namespace.as_deref();
            let keys = claims(pod).into_iter().map(|c| Key::new(namespace, &c));
            keys.filter(|k| view.resources().get(k).is_some_and(|c| is_pending(&c))).collect()
        });
    }

    fn settings(&self) -> Settings {
        Settings { concurrency: 1, ..Settings::default() }
    }
}

fn name_provisioner(claim: &mut PersistentVolumeClaim, provisioner: &str) -> bool {
    let mut changed = false;
    for key in PROVISIONER {
        changed |= annotate(&mut claim.metadata, key, provisioner);
    }
    changed
}

/// Writes a claim's phase, with what it has of the volume. Whether that was news.
async fn set_status(
    claim: &PersistentVolumeClaim,
    phase: &str,
    volume: Option<&PersistentVolume>,
    cx: &Context<Claims>,
) -> Result<bool> {
    let mut new = claim.clone();
    let status = new.status.get_or_insert_default();
    let becomes = status.phase.as_deref() != Some(phase);
    status.phase = Some(phase.into());
    match volume.and_then(|v| v.spec.as_ref()) {
        None => {
            status.access_modes = None;
            status.capacity = None;
        }
        Some(spec) => {
            status.access_modes.clone_from(&spec.access_modes);
            // Later differences are meant: a file system may be smaller than its device.
            let has = status.capacity.as_ref().and_then(|c| c.get(STORAGE));
            if becomes && has != spec.capacity.as_ref().and_then(|c| c.get(STORAGE)) {
                status.capacity.clone_from(&spec.capacity);
            }
            let attributes = spec.volume_attributes_class_name.clone().filter(|n| !n.is_empty());
            status.current_volume_attributes_class_name = attributes;
        }
    }
    if claim.status == new.status {
        return Ok(false);
    }
    cx.writer().update_status(&new).await?;
    Ok(true)
}

/// Binds in four steps, each of which may be done already: the volume's reference and phase, the claim's and its.
async fn bind(volume: &PersistentVolume, claim: &PersistentVolumeClaim, cx: &Context<Claims>) -> Result<()> {
    let mut has = volume.clone();
    let reference = provision::reference(claim);
    let spec = has.spec.get_or_insert_default();
    let same = spec.claim_ref.as_ref().is_some_and(|r| {
        r.name == reference.name && r.namespace == reference.namespace && r.uid == reference.uid
    });
    if !same {
        let reserved = matching::is_for(volume, claim);
        spec.claim_ref = Some(reference);
        if !reserved {
            annotate(&mut has.metadata, BOUND_BY_CONTROLLER, "yes");
        }
        has = cx.writer().update(&has).await?;
    }
    if super::phase(&has) != "Bound" {
        let status = has.status.get_or_insert_default();
        status.phase = Some("Bound".into());
        status.message = None;
        has = cx.writer().update_status(&has).await?;
    }
    let mut new = claim.clone();
    let spec = new.spec.get_or_insert_default();
    let mut changed = false;
    if spec.volume_name != has.metadata.name {
        spec.volume_name.clone_from(&has.metadata.name);
        annotate(&mut new.metadata, BOUND_BY_CONTROLLER, "yes");
        changed = true;
    }
    if is_pending(&new) {
        changed |= annotate(&mut new.metadata, BIND_COMPLETED, "yes");
    }
    if changed {
        new = cx.writer().update(&new).await?;
    }
    set_status(&new, "Bound", Some(&has), cx).await?;
    Ok(())
}

/// Makes a claim's volume and binds the two.
async fn make(
    claim: &PersistentVolumeClaim,
    class: &StorageClass,
    node: Option<&str>,
    cx: &Context<Claims>,
) -> Result<()> {
    let mut claim = claim.clone();
    let mut changed = name_provisioner(&mut claim, &class.provisioner);
    if let Some(node) = node {
        changed |= annotate(&mut claim.metadata, SELECTED_NODE, node);
    }
    if changed {
        claim = cx.writer().update(&claim).await?;
        let text = format!("External provisioner is provisioning volume for claim {:?}", key(&claim));
        cx.event(Event::normal("Provisioning", text)).await;
    }
    let volume = match cx.create::<PersistentVolume, _>(provision::volume(&claim, class)).await {
        Ok(made) => {
            let text = format!("Successfully provisioned volume {}", provision::name(&claim));
            cx.event(Event::normal("ProvisioningSucceeded", text)).await;
            made
        }
        Err(e) if e.is_already_exists() => {
            let Some(volume) = cx.writer().get(&Key::cluster(provision::name(&claim))).await? else {
                return Err(e);
            };
            volume
        }
        Err(e) => {
            let class = class.metadata.name.as_deref().unwrap_or_default();
            let text = format!("failed to provision volume with StorageClass {class:?}: {e}");
            cx.event(Event::warning("ProvisioningFailed", text)).await;
            return Err(e);
        }
    };
    bind(&volume, &claim, cx).await
}
