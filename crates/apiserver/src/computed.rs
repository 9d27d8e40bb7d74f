//! Resources that nobody stores: somebody beside the server computes their objects when they are asked for, such as
//! the metrics of pods and nodes.
//!
//! They are in discovery, tables and access control like all others, and can only be read, not watched. The server
//! knows of such a resource only its definition, a CustomResourceDefinition that isn't stored either.

use std::sync::Arc;

use homeostat_model::selector::{Fields, Labels};
use homeostat_model::status::Result;
use homeostat_model::{GroupResource, Status};
use homeostat_resources::Resource;
use homeostat_resources::table::{self, Include, Printer};
use serde_json::{Value, json};

use crate::negotiate::{Accepted, View};
use crate::options::ListOptions;
use crate::read;
use crate::registry::{Registry, Target};
use crate::respond::Answer;
use crate::server::{Call, Server};

/// Verbs that a computed resource has.
const VERBS: [&str; 2] = ["get", "list"];

/// A resource whose objects are computed.
pub trait Computed: Send + Sync {
    /// What is served: a `CustomResourceDefinition` (v1) as JSON.
    fn definition(&self) -> Value;

    /// The object of this name; `namespace` is empty where there are none.
    fn get(&self, namespace: &str, name: &str) -> Option<Value>;

    /// All objects of a namespace, or of all where it is empty, in the order of their names.
    fn list(&self, namespace: &str) -> Vec<Value>;
}

/// The computed resources of a server.
#[derive(Default)]
pub(crate) struct Sources(Vec<(GroupResource, Arc<dyn Computed>)>);

impl Sources {
    /// Serves all of `computed`. One whose definition can't be served is left out, with a log.
    pub(crate) fn new(computed: &[Arc<dyn Computed>], registry: &Registry) -> Self {
        let mut sources = Vec::new();
        for source in computed {
            let definition = source.definition();
            let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            match homeostat_resources::crd::to_resource(&definition, 1) {
                Ok(resource) => {
                    let resource = read_only(resource);
                    sources.push((resource.id.clone(), source.clone()));
                    registry.set(&name, Some(resource));
                }
                Err(why) => tracing::error!(%name, "a computed resource can't be served: {why}"),
            }
        }
        Self(sources)
    }

    /// Who computes a resource, if anybody does.
    pub(crate) fn of(&self, id: &GroupResource) -> Option<&dyn Computed> {
        self.0.iter().find(|(of, _)| of == id).map(|(_, source)| &**source)
    }
}

fn read_only(mut resource: Resource) -> Resource {
    for version in &mut resource.versions {
        version.verbs = VERBS.to_vec();
        version.subresources.clear();
    }
    resource
}

/// Answers a get or a list; other verbs were refused before.
pub(crate) fn serve(
    server: &Server,
    source: &dyn Computed,
    target: &Target,
    call: &Call,
    accepted: Accepted,
) -> Result<Answer> {
    let now = server.config.clock.now();
    let include = call.query.get("includeObject").unwrap_or_default();
    let namespace = if target.resource.namespaced { call.info.namespace.as_str() } else { "" };
    if !call.info.path_name.is_empty() {
        let name = &call.info.path_name;
        let found = source.get(namespace, name);
        let object = found.ok_or_else(|| Status::not_found(&target.resource.id, name))?;
        return read::single(&object, target, accepted.view, include, now).map(Answer::value);
    }
    let options = ListOptions::parse(&call.query, false)?;
    let labels = Labels::parse(&options.label_selector).map_err(Status::bad_request)?;
    let fields = Fields::parse(&options.field_selector).map_err(Status::bad_request)?;
    for (label, _, _) in fields.requirements() {
        if label != "metadata.name" && label != "metadata.namespace" {
            return Err(Status::bad_request(format!("field label not supported: {label}")));
        }
    }
    let matches = |object: &Value| {
        let meta = &object["metadata"];
        labels.matches_value(&meta["labels"])
            && fields.matches(|field| meta[field.strip_prefix("metadata.")?].as_str())
    };
    let mut items = source.list(namespace);
    items.retain(matches);
    let answer = match accepted.view {
        View::Object => json!({
            "kind": target.resource.list_kind,
            "apiVersion": target.gv().to_string(),
            "metadata": {},
            "items": items,
        }),
        View::Table(v) => {
            let include = Include::parse(include).map_err(Status::bad_request)?;
            let printer = Printer::new(&target.resource, target.version(), include, v);
            printer.table(&items, json!({}), true, now)
        }
        View::Metadata(v) | View::MetadataList(v) => {
            let items: Vec<Value> = items.iter().map(|o| table::partial(o, v)).collect();
            json!({
                "kind": "PartialObjectMetadataList",
                "apiVersion": format!("meta.k8s.io/{v}"),
                "metadata": {},
                "items": items,
            })
        }
    };
    Ok(Answer::value(answer))
}
