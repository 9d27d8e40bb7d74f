//! All objects of a cluster at one moment, as JSON, through the API alone.

use std::collections::BTreeMap;

use kube::api::ListParams;
use kube::core::DynamicObject;
use kube::discovery::{Discovery, Scope, verbs};
use kube::{Api, Client};
use serde_json::Value;

/// An object's place: `(kind as errors print it, namespace, name)`. Sorted, so texts made of it are.
pub(super) type Place = (String, Option<String>, String);

/// What there was.
pub(super) type Objects = BTreeMap<Place, Value>;

/// Looks at everything that can be listed, of one namespace or of all. Kinds in several versions are looked at in the
/// preferred one.
pub(super) async fn look(client: &Client, namespace: Option<&str>) -> kube::Result<Objects> {
    let discovery = Discovery::new(client.clone()).run().await?;
    let mut objects = Objects::new();
    // What is measured differs each time, and nobody stores it.
    for group in discovery.groups().filter(|g| g.name() != "metrics.k8s.io") {
        for (resource, capabilities) in group.recommended_resources() {
            let is_elsewhere = namespace.is_some() && capabilities.scope == Scope::Cluster;
            if is_elsewhere || !capabilities.supports_operation(verbs::LIST) {
                continue;
            }
            let kind = if resource.group.is_empty() {
                resource.kind.clone()
            } else {
                format!("{}.{}", resource.kind, resource.group)
            };
            // Events are in two groups; one is enough.
            if kind == "Event" {
                continue;
            }
            let api: Api<DynamicObject> = match namespace {
                Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
                None => Api::all_with(client.clone(), &resource),
            };
            let listed = match api.list(&ListParams::default()).await {
                Ok(listed) => listed,
                // It was there a moment ago: a definition that goes.
                Err(kube::Error::Api(status)) if status.code == 404 || status.code == 405 => continue,
                Err(error) => return Err(error),
            };
            for object in listed {
                let name = object.metadata.name.clone().unwrap_or_default();
                let place = (kind.clone(), object.metadata.namespace.clone(), name);
                objects.insert(place, serde_json::to_value(object).map_err(kube::Error::SerdeError)?);
            }
        }
    }
    Ok(objects)
}
