//! Claims for the generic ephemeral volumes of pods: made from the pod's template, owned by the pod, gone with it.
//!
//! A claim of that name that belongs to somebody else is left alone; the pod then waits, and is told why.

use homeostat_sdk::{Context, Error, Event, Next, Operator, Result, Watches};
use k8s_openapi::api::core::v1::{PersistentVolumeClaim, Pod, Volume};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};

use crate::common::{pod_control, pods};

/// The controller.
pub(crate) struct EphemeralVolumes;

/// Whether a pod may still need a claim made.
fn concerns(pod: &Pod) -> bool {
    let volumes = pod.spec.as_ref().and_then(|s| s.volumes.as_deref()).unwrap_or_default();
    !pods::is_terminating(pod) && volumes.iter().any(|v| v.ephemeral.is_some())
}

fn is_owned(claim: &PersistentVolumeClaim, pod: &Pod) -> bool {
    let owners = claim.metadata.owner_references.iter().flatten();
    owners.filter(|o| o.controller == Some(true)).any(|o| Some(&o.uid) == pod.metadata.uid.as_ref())
}

/// The claim of one of a pod's volumes.
fn claim(pod: &Pod, volume: &Volume) -> Option<PersistentVolumeClaim> {
    let template = volume.ephemeral.as_ref()?.volume_claim_template.as_ref()?;
    let meta = template.metadata.clone().unwrap_or_default();
    let name = pod.metadata.name.clone().unwrap_or_default();
    Some(PersistentVolumeClaim {
        metadata: ObjectMeta {
            name: Some(format!("{name}-{}", volume.name)),
            namespace: pod.metadata.namespace.clone(),
            labels: meta.labels,
            annotations: meta.annotations,
            owner_references: Some(vec![OwnerReference {
                api_version: "v1".into(),
                kind: "Pod".into(),
                name,
                uid: pod.metadata.uid.clone().unwrap_or_default(),
                controller: Some(true),
                block_owner_deletion: Some(true),
            }]),
            ..ObjectMeta::default()
        },
        spec: Some(template.spec.clone()),
        status: None,
    })
}

impl Operator for EphemeralVolumes {
    type Resource = Pod;
    type Owns = (PersistentVolumeClaim,);
    type Reads = ();

    fn name() -> &'static str {
        "ephemeral-volume-controller"
    }

    async fn reconcile(&self, pod: &Pod, cx: &Context<Self>) -> Result<Next> {
        let volumes = pod.spec.as_ref().and_then(|s| s.volumes.as_deref()).unwrap_or_default();
        for (volume, claim) in volumes.iter().filter_map(|v| Some((v, claim(pod, v)?))) {
            let name = claim.metadata.name.clone().unwrap_or_default();
            let (why, error) = match cx.read::<PersistentVolumeClaim, _>(&name) {
                Some(has) if is_owned(&has, pod) => continue,
                Some(_) => {
                    let namespace = cx.namespace().unwrap_or_default();
                    let why = format!(
                        "PVC {namespace}/{name} was not created for pod {} (pod is not owner)",
                        cx.key()
                    );
                    (why.clone(), Error::msg(why))
                }
                None => match cx.create::<PersistentVolumeClaim, _>(claim).await {
                    Ok(_) => continue,
                    Err(e) if pod_control::is_namespace_terminating(&e) => return Ok(Next::done()),
                    Err(e) => (format!("create PVC {name}: {e}"), e),
                },
            };
            let text = format!("ephemeral volume {}: {why}", volume.name);
            cx.event(Event::warning("FailedBinding", text)).await;
            return Err(error);
        }
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        // The volumes of a pod never change.
        watches.filter(|change| change.old.is_none() && change.new.as_ref().is_some_and(|p| concerns(p)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn claims_follow_from_pod_and_template() {
        let pod: Pod = serde_json::from_value(json!({"metadata": {"name": "p", "namespace": "n", "uid": "u"},
            "spec": {"containers": [], "volumes": [{"name": "tmp", "emptyDir": {}}, {"name": "data", "ephemeral": {
                "volumeClaimTemplate": {"metadata": {"labels": {"a": "b"}},
                    "spec": {"accessModes": ["ReadWriteOnce"]}}}}]}}))
        .unwrap();
        assert!(concerns(&pod));
        let volumes = pod.spec.as_ref().unwrap().volumes.clone().unwrap();
        assert!(claim(&pod, &volumes[0]).is_none());
        let made = claim(&pod, &volumes[1]).unwrap();
        assert_eq!(made.metadata.name.as_deref(), Some("p-data"));
        assert!(is_owned(&made, &pod));
        assert_eq!(json!(made)["spec"], json!({"accessModes": ["ReadWriteOnce"]}));
        assert_eq!(json!(made)["metadata"]["labels"], json!({"a": "b"}));
    }
}
