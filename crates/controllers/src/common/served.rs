//! What the API server serves, and plain requests to resources known at run time by it.
//!
//! The garbage collector and the namespace controller work on every kind there is. They ask aggregated discovery
//! (Kubernetes 1.30 and later) and then speak of objects by their metadata only.

use std::sync::Arc;

use homeostat_sdk::{Error, Result};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::Client;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams};
use kube::core::discovery::v2::{APIGroupDiscovery, APIVersionDiscovery};
use kube::core::params::GetParams;
use kube::core::{ApiResource, ObjectList, PartialObjectMeta, Request};
use serde_json::Value;

/// A resource in one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Served {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    pub(crate) kind: String,
    pub(crate) namespaced: bool,
    /// It has a `scale` subresource.
    pub(crate) scalable: bool,
    pub(crate) verbs: Vec<String>,
}

/// All resources of a server, in the order of its preference.
#[derive(Clone, Debug, Default)]
pub(crate) struct Discovery {
    /// All versions; of one resource the preferred one comes first.
    pub(crate) all: Vec<Arc<Served>>,
    /// Groups whose documents are out of date, and so may lack resources.
    pub(crate) stale: Vec<String>,
}

impl Served {
    /// `apps/v1`, or `v1`.
    pub(crate) fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.clone() } else { format!("{}/{}", self.group, self.version) }
    }

    /// Whether it answers to a verb.
    pub(crate) fn can(&self, verb: &str) -> bool {
        self.verbs.iter().any(|v| v == verb)
    }

    /// As `kube` wants it.
    pub(crate) fn api_resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.clone(),
            version: self.version.clone(),
            api_version: self.api_version(),
            kind: self.kind.clone(),
            plural: self.plural.clone(),
        }
    }

    /// `deployments.apps`, or `pods`.
    pub(crate) fn full_name(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }

    /// The path of the collection.
    pub(crate) fn path(&self, namespace: Option<&str>) -> String {
        let root = if self.group.is_empty() { "/api" } else { "/apis" };
        let namespace = namespace.filter(|_| self.namespaced).map(|n| format!("/namespaces/{n}"));
        format!("{root}/{}{}/{}", self.api_version(), namespace.unwrap_or_default(), self.plural)
    }

    fn request(&self, namespace: Option<&str>) -> Request {
        Request::new(self.path(namespace))
    }

    /// The metadata of an object, from the server itself. `None` where there is none.
    pub(crate) async fn get(
        &self,
        client: &Client,
        namespace: Option<&str>,
        name: &str,
    ) -> Result<Option<ObjectMeta>> {
        let request = self
            .request(namespace)
            .get_metadata(name, &GetParams::default())
            .map_err(kube::Error::BuildRequest)?;
        match client.request::<PartialObjectMeta>(request).await {
            Ok(object) => Ok(Some(object.metadata)),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
            Err(e) => Err(e.into()),
        }
    }

    /// The metadata of all objects of a namespace.
    pub(crate) async fn list(&self, client: &Client, namespace: Option<&str>) -> Result<Vec<ObjectMeta>> {
        let mut params = ListParams::default().limit(500);
        let mut all = Vec::new();
        loop {
            let request =
                self.request(namespace).list_metadata(&params).map_err(kube::Error::BuildRequest)?;
            let page: ObjectList<PartialObjectMeta> = client.request(request).await?;
            all.extend(page.items.into_iter().map(|o| o.metadata));
            match page.metadata.continue_.filter(|c| !c.is_empty()) {
                Some(token) => params.continue_token = Some(token),
                None => return Ok(all),
            }
        }
    }

    /// Deletes an object. Whether it was there.
    pub(crate) async fn delete(
        &self,
        client: &Client,
        namespace: Option<&str>,
        name: &str,
        params: &DeleteParams,
    ) -> Result<bool> {
        let request = self.request(namespace).delete(name, params).map_err(kube::Error::BuildRequest)?;
        match client.request::<Value>(request).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(e) => Err(e.into()),
        }
    }

    /// Deletes all objects of a namespace.
    pub(crate) async fn delete_all(&self, client: &Client, namespace: &str) -> Result<()> {
        let request = self
            .request(Some(namespace))
            .delete_collection(&DeleteParams::background(), &ListParams::default())
            .map_err(kube::Error::BuildRequest)?;
        client.request::<Value>(request).await?;
        Ok(())
    }

    /// Patches an object (a merge patch). Whether it was there.
    pub(crate) async fn merge(
        &self,
        client: &Client,
        manager: &str,
        namespace: Option<&str>,
        name: &str,
        patch: &Value,
    ) -> Result<bool> {
        let params = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        let request = self
            .request(namespace)
            .patch_metadata(name, &params, &Patch::Merge(patch))
            .map_err(kube::Error::BuildRequest)?;
        match client.request::<PartialObjectMeta>(request).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(e) => Err(e.into()),
        }
    }
}

impl Discovery {
    /// Asks the server.
    pub(crate) async fn ask(client: &Client) -> Result<Self> {
        let core = client.list_core_api_versions_aggregated().await?;
        let groups = client.list_api_groups_aggregated().await?;
        if core.items.is_empty() {
            return Err(Error::msg(
                "the API server doesn't offer aggregated discovery (Kubernetes 1.30 or later)",
            ));
        }
        let mut discovery = Self::default();
        for group in core.items.iter().chain(&groups.items) {
            discovery.add(group);
        }
        Ok(discovery)
    }

    fn add(&mut self, group: &APIGroupDiscovery) {
        let name = group.metadata.as_ref().and_then(|m| m.name.clone()).unwrap_or_default();
        for version in &group.versions {
            let number = version.version.clone().unwrap_or_default();
            if version.freshness.as_deref() == Some("Stale") {
                self.stale.push(if name.is_empty() { number.clone() } else { format!("{name}/{number}") });
            }
            self.all.extend(resources(&name, &number, version).map(Arc::new));
        }
    }

    /// Every resource once, in its preferred version.
    pub(crate) fn preferred(&self) -> impl Iterator<Item = &Arc<Served>> {
        let mut seen = std::collections::BTreeSet::new();
        self.all.iter().filter(move |r| seen.insert((r.group.as_str(), r.plural.as_str())))
    }

    /// The resource of a kind, as an owner reference names it.
    pub(crate) fn of_kind(&self, api_version: &str, kind: &str) -> Option<&Arc<Served>> {
        let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
        self.all.iter().find(|r| r.group == group && r.version == version && r.kind == kind)
    }
}

fn resources<'a>(
    group: &'a str,
    version: &'a str,
    of: &'a APIVersionDiscovery,
) -> impl Iterator<Item = Served> + 'a {
    of.resources.iter().filter_map(move |r| {
        Some(Served {
            group: group.to_owned(),
            version: version.to_owned(),
            plural: r.resource.clone()?,
            kind: r.response_kind.as_ref().and_then(|k| k.kind.clone()).filter(|k| !k.is_empty())?,
            namespaced: r.scope.as_deref() == Some("Namespaced"),
            scalable: r.subresources.iter().any(|s| s.subresource.as_deref() == Some("scale")),
            verbs: r.verbs.clone(),
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn discovery() -> Discovery {
        let groups: Vec<APIGroupDiscovery> = serde_json::from_value(json!([
            {"metadata": {"name": ""}, "versions": [{"version": "v1", "freshness": "Current", "resources": [
                {"resource": "pods", "responseKind": {"group": "", "version": "v1", "kind": "Pod"},
                 "scope": "Namespaced", "verbs": ["get", "delete"]},
                {"resource": "nodes", "responseKind": {"kind": "Node"}, "scope": "Cluster", "verbs": []}]}]},
            {"metadata": {"name": "example.com"}, "versions": [
                {"version": "v2", "resources": [{"resource": "a", "responseKind": {"kind": "A"}, "scope": "Namespaced"}]},
                {"version": "v1", "freshness": "Stale", "resources": [
                    {"resource": "a", "responseKind": {"kind": "A"}}, {"resource": "b", "responseKind": {"kind": "B"}}]}]}
        ]))
        .unwrap();
        let mut discovery = Discovery::default();
        groups.iter().for_each(|g| discovery.add(g));
        discovery
    }

    #[test]
    fn every_resource_has_a_preferred_version() {
        let discovery = discovery();
        let names: Vec<String> =
            discovery.preferred().map(|r| format!("{} {}", r.api_version(), r.plural)).collect();
        assert_eq!(names, ["v1 pods", "v1 nodes", "example.com/v2 a", "example.com/v1 b"]);
        assert_eq!(discovery.stale, ["example.com/v1"]);
    }

    #[test]
    fn kinds_are_found_in_any_version() {
        let discovery = discovery();
        let find = |v, k| discovery.of_kind(v, k).map(|r| r.plural.clone());
        assert_eq!(find("v1", "Pod").as_deref(), Some("pods"));
        assert_eq!(find("example.com/v1", "A").as_deref(), Some("a"));
        assert_eq!(find("example.com/v3", "A"), None);
        assert_eq!(find("apps/v1", "Pod"), None);
    }

    #[test]
    fn paths_follow_the_scope() {
        let discovery = discovery();
        let path = |k: &str, ns| {
            let served = discovery.all.iter().find(|r| r.kind == k).unwrap();
            served.request(ns).get("x", &GetParams::default()).unwrap().uri().to_string()
        };
        assert_eq!(path("Pod", Some("d")), "/api/v1/namespaces/d/pods/x");
        assert_eq!(path("Node", Some("d")), "/api/v1/nodes/x");
        assert_eq!(path("A", Some("d")), "/apis/example.com/v2/namespaces/d/a/x");
    }
}
