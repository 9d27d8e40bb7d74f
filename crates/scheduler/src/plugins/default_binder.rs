//! DefaultBinder: binds a pod with a Binding, which carries what plugins have to say about it as annotations.

use futures::FutureExt;
use futures::future::BoxFuture;
use k8s_openapi::api::core::v1::{Binding, ObjectReference, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Status as ApiStatus};

use crate::framework::{Bind, CycleState, Io, Plugin, Status};
use crate::snapshot::PodInfo;

/// The plugin.
#[derive(Debug)]
pub struct DefaultBinder;

impl Plugin for DefaultBinder {
    fn name(&self) -> &'static str {
        "DefaultBinder"
    }

    fn bind(&self) -> Option<&dyn Bind> {
        Some(self)
    }
}

impl Bind for DefaultBinder {
    fn bind<'a>(
        &'a self,
        io: &'a Io,
        state: &'a CycleState,
        pod: &'a PodInfo,
        node: &'a str,
    ) -> BoxFuture<'a, Result<bool, Status>> {
        let meta = &pod.pod.metadata;
        let binding = Binding {
            metadata: ObjectMeta {
                name: meta.name.clone(),
                namespace: meta.namespace.clone(),
                uid: meta.uid.clone(),
                annotations: Some(state.annotations.clone()).filter(|a| !a.is_empty()),
                ..ObjectMeta::default()
            },
            target: ObjectReference {
                kind: Some("Node".to_owned()),
                name: Some(node.to_owned()),
                ..ObjectReference::default()
            },
        };
        async move {
            let bound =
                io.writer.create_subresource::<Pod, _, ApiStatus>(&pod.key, "binding", &binding).await;
            bound.map(|_| true).map_err(|e| Status::error(e.to_string()))
        }
        .boxed()
    }
}
