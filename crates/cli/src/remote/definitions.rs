//! CustomResourceDefinitions in a cluster: whose they are, and when they are ready.
//!
//! A definition is a project's when its labels say so (`app.kubernetes.io/name`, managed by homeostat). Invariant: one
//! that is somebody else's is never changed or deleted unless the person said that it shall be.

use std::time::Duration;

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{DynamicObject, ListParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::runtime::wait::{await_condition, conditions};
use kube::{Api, Client, ResourceExt};
use serde_json::Value;

use super::{Intent, Remote};
use crate::complaint::Complaint;

/// How long a definition may take to be served.
const ESTABLISHED: Duration = Duration::from_secs(30);
/// How long the last of a definition may take to go.
const GONE: Duration = Duration::from_secs(60);

/// The definitions of a project.
pub(crate) struct Definitions {
    /// The project's name.
    pub(crate) project: String,
    /// The objects.
    pub(crate) objects: Vec<Value>,
}

/// Whose a definition is that isn't the project's.
fn stranger(crd: &CustomResourceDefinition, project: &str) -> Option<String> {
    let labels = crd.labels();
    let label = |key: &str| labels.get(key).map(String::as_str).unwrap_or_default();
    let name = label("app.kubernetes.io/name");
    if label("app.kubernetes.io/managed-by") == "homeostat" {
        return (name != project).then(|| format!("belongs to the homeostat project {name}"));
    }
    if name == project && label("app.kubernetes.io/managed-by") == "Helm" {
        return Some(format!("came with a Helm release of {project}"));
    }
    let mut managers: Vec<&str> = crd
        .managed_fields()
        .iter()
        .filter(|m| m.subresource.is_none())
        .filter_map(|m| m.manager.as_deref())
        .collect();
    managers.sort_unstable();
    managers.dedup();
    Some(match managers[..] {
        [] => "is not this project's".to_owned(),
        _ => format!("was made by {}", managers.join(" and ")),
    })
}

impl Definitions {
    fn name(object: &Value) -> &str {
        object["metadata"]["name"].as_str().unwrap_or_default()
    }

    fn api(client: &Client) -> Api<CustomResourceDefinition> {
        Api::all(client.clone())
    }

    /// Those that are in the cluster and somebody else's, each with whose.
    async fn strangers(&self, remote: &Remote) -> Result<Vec<(String, String)>, Complaint> {
        let api = Self::api(remote.client());
        let mut strangers = Vec::new();
        for object in &self.objects {
            let name = Self::name(object);
            let there = api.get_opt(name).await?;
            if let Some(whose) = there.and_then(|crd| stranger(&crd, &self.project)) {
                strangers.push((name.to_owned(), whose));
            }
        }
        Ok(strangers)
    }

    /// Refuses to touch somebody else's definitions.
    pub(crate) async fn demand_ours(&self, remote: &Remote, take_over: bool) -> Result<(), Complaint> {
        let strangers = self.strangers(remote).await?;
        if strangers.is_empty() || take_over {
            return Ok(());
        }
        let list: Vec<String> = strangers.iter().map(|(name, whose)| format!("{name} {whose}")).collect();
        Err(Complaint::new(format!(
            "the cluster has it already: {}; nothing was changed. With --take-over it becomes this project's",
            list.join("; ")
        )))
    }

    /// Applies all, and waits until they are served.
    pub(crate) async fn install(&self, remote: &mut Remote, take_over: bool) -> Result<(), Complaint> {
        remote.demand_rights(Intent::Apply, &self.objects).await?;
        self.demand_ours(remote, take_over).await?;
        self.apply(remote).await
    }

    /// Applies all without asking, and waits until they are served.
    pub(crate) async fn apply(&self, remote: &mut Remote) -> Result<(), Complaint> {
        for object in &self.objects {
            remote.apply(object).await?;
        }
        for object in &self.objects {
            let name = Self::name(object);
            let served = await_condition(Self::api(remote.client()), name, conditions::is_crd_established());
            match tokio::time::timeout(ESTABLISHED, served).await {
                Ok(Ok(_)) => {}
                Ok(Err(e)) => return Err(e.into()),
                Err(_) => {
                    return Err(Complaint::new(format!(
                        "{name} is not served after {} s; see `kubectl describe crd {name}`",
                        ESTABLISHED.as_secs()
                    )));
                }
            }
        }
        Ok(())
    }

    /// How many objects of the definitions' kinds there are, by definition.
    pub(crate) async fn objects_of(&self, remote: &Remote) -> Result<Vec<(String, usize)>, Complaint> {
        let mut counts = Vec::new();
        for object in &self.objects {
            let name = Self::name(object);
            let Some(crd) = Self::api(remote.client()).get_opt(name).await? else { continue };
            let Some(version) = crd.spec.versions.iter().find(|v| v.served) else { continue };
            let gvk = GroupVersionKind::gvk(&crd.spec.group, &version.name, &crd.spec.names.kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, &crd.spec.names.plural);
            let api: Api<DynamicObject> = Api::all_with(remote.client().clone(), &resource);
            let page = api.list_metadata(&ListParams::default().limit(500)).await?;
            let more = page.metadata.remaining_item_count.unwrap_or(0);
            counts.push((name.to_owned(), page.items.len() + usize::try_from(more).unwrap_or(0)));
        }
        Ok(counts)
    }

    /// Deletes all. Refuses while there are objects, unless `force`.
    pub(crate) async fn uninstall(&self, remote: &mut Remote, force: bool) -> Result<Vec<String>, Complaint> {
        remote.demand_rights(Intent::Delete, &self.objects).await?;
        self.demand_ours(remote, false).await.map_err(|_| {
            Complaint::new("the cluster's definitions are somebody else's; nothing was deleted")
        })?;
        let counts = self.objects_of(remote).await?;
        let used: Vec<String> =
            counts.iter().filter(|(_, n)| *n > 0).map(|(name, n)| format!("{n} of {name}")).collect();
        if !used.is_empty() && !force {
            return Err(Complaint::new(format!(
                "there are still objects, and they would go with their definitions: {}; delete them first, or use --force",
                used.join(", ")
            )));
        }
        let api = Self::api(remote.client());
        let mut gone = Vec::new();
        for object in &self.objects {
            let name = Self::name(object);
            let Some(there) = api.get_opt(name).await? else { continue };
            remote.delete(object).await?;
            // Its objects go first, each with its finalizers.
            let uid = there.metadata.uid.unwrap_or_default();
            let deleted = await_condition(api.clone(), name, conditions::is_deleted(&uid));
            if tokio::time::timeout(GONE, deleted).await.is_err() {
                return Err(Complaint::new(format!(
                    "{name} is still being deleted after {} s; its objects may wait for finalizers of a program that \
                     doesn't run",
                    GONE.as_secs()
                )));
            }
            gone.push(name.to_owned());
        }
        Ok(gone)
    }
}
