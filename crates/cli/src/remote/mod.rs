//! A cluster that manifests are applied to: by server-side apply, after asking for the rights.
//!
//! Nothing here knows where the manifests come from. Invariant: before the first write it is known that all writes are
//! permitted, and that no CustomResourceDefinition of somebody else's would be taken over.

mod definitions;

use std::collections::BTreeMap;
use std::path::PathBuf;

use homeostat_sdk::process;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::{ApiResource, Scope};
use kube::{Api, Client};
use serde_json::Value;

use crate::complaint::Complaint;
pub(crate) use definitions::Definitions;

/// The field manager of what the tool applies.
pub(crate) const MANAGER: &str = "homeostat";

/// Which cluster.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Where {
    /// The kubeconfig [default: $KUBECONFIG, or ~/.kube/config]
    #[arg(long, value_name = "PATH")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// The kubeconfig's context, rather than its current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
}

impl Where {
    /// Connects, or says why that is impossible.
    pub(crate) async fn connect(&self) -> Result<Remote, Complaint> {
        let client = process::client(self.kubeconfig.as_deref(), self.context.as_deref())
            .await
            .map_err(|e| Complaint::new(e.to_string()))?;
        Ok(Remote::new(client))
    }
}

/// How a kind is addressed.
#[derive(Clone, Debug)]
pub(crate) struct Kind {
    resource: ApiResource,
    namespaced: bool,
}

/// What is about to be done to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intent {
    /// Create it, or change it where it is there.
    Apply,
    /// Delete it.
    Delete,
}

impl Intent {
    fn verbs(self) -> &'static [&'static str] {
        match self {
            Self::Apply => &["get", "create", "patch"],
            Self::Delete => &["get", "delete"],
        }
    }
}

/// A connected cluster.
pub(crate) struct Remote {
    client: Client,
    kinds: BTreeMap<(String, String), Option<Kind>>,
}

/// The name of an object, as in `deployment/redis-operator`.
pub(crate) fn display(object: &Value) -> String {
    let kind = object["kind"].as_str().unwrap_or("object").to_lowercase();
    format!("{kind}/{}", object["metadata"]["name"].as_str().unwrap_or_default())
}

impl Remote {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, kinds: BTreeMap::new() }
    }

    /// The client.
    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// How the object's kind is addressed; `None` where the cluster doesn't know it.
    pub(crate) async fn kind(&mut self, object: &Value) -> Result<Option<Kind>, Complaint> {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let key = (text("apiVersion"), text("kind"));
        if let Some(known) = self.kinds.get(&key) {
            return Ok(known.clone());
        }
        let (group, version) = key.0.split_once('/').unwrap_or(("", key.0.as_str()));
        let gvk = GroupVersionKind::gvk(group, version, &key.1);
        let found = match kube::discovery::pinned_kind(&self.client, &gvk).await {
            Ok((resource, capabilities)) => {
                Some(Kind { resource, namespaced: capabilities.scope == Scope::Namespaced })
            }
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(kube::Error::Discovery(_)) => None,
            Err(e) => return Err(e.into()),
        };
        self.kinds.insert(key, found.clone());
        Ok(found)
    }

    fn api(&self, kind: &Kind, object: &Value) -> Api<DynamicObject> {
        match object["metadata"]["namespace"].as_str().filter(|_| kind.namespaced) {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &kind.resource),
            None => Api::all_with(self.client.clone(), &kind.resource),
        }
    }

    /// Refuses, with names, where the user may not do all of `intent` to all of `objects`.
    pub(crate) async fn demand_rights(&mut self, intent: Intent, objects: &[Value]) -> Result<(), Complaint> {
        let mut asked: BTreeMap<(String, String, Option<String>), ()> = BTreeMap::new();
        let mut missing: Vec<String> = Vec::new();
        for object in objects {
            let Some(kind) = self.kind(object).await? else { continue };
            let namespace =
                object["metadata"]["namespace"].as_str().filter(|_| kind.namespaced).map(str::to_owned);
            let key = (kind.resource.group.clone(), kind.resource.plural.clone(), namespace.clone());
            if asked.insert(key, ()).is_some() {
                continue;
            }
            for verb in intent.verbs() {
                if !self.may(verb, &kind.resource, namespace.as_deref()).await? {
                    let group = if kind.resource.group.is_empty() {
                        String::new()
                    } else {
                        format!(".{}", kind.resource.group)
                    };
                    let place = namespace.as_ref().map_or(String::new(), |n| format!(" in {n}"));
                    missing.push(format!("{verb} {}{group}{place}", kind.resource.plural));
                }
            }
        }
        if missing.is_empty() {
            return Ok(());
        }
        let who = self.user().await.unwrap_or_else(|| "the kubeconfig's user".into());
        Err(Complaint::new(format!(
            "{who} may not: {}; ask for these rights, or name another user with --context",
            missing.join(", ")
        )))
    }

    async fn may(
        &self,
        verb: &str,
        resource: &ApiResource,
        namespace: Option<&str>,
    ) -> Result<bool, Complaint> {
        let review = SelfSubjectAccessReview {
            spec: SelfSubjectAccessReviewSpec {
                resource_attributes: Some(ResourceAttributes {
                    group: Some(resource.group.clone()),
                    resource: Some(resource.plural.clone()),
                    verb: Some(verb.to_owned()),
                    namespace: namespace.map(str::to_owned),
                    ..ResourceAttributes::default()
                }),
                ..SelfSubjectAccessReviewSpec::default()
            },
            ..SelfSubjectAccessReview::default()
        };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &review).await?;
        Ok(answer.status.is_some_and(|s| s.allowed))
    }

    /// The name of the user, where the cluster tells it.
    async fn user(&self) -> Option<String> {
        let api: Api<SelfSubjectReview> = Api::all(self.client.clone());
        let answer = api.create(&PostParams::default(), &SelfSubjectReview::default()).await.ok()?;
        answer.status?.user_info?.username
    }

    /// Applies an object; whether there was one to apply it to, or the cluster doesn't know its kind.
    pub(crate) async fn apply(&mut self, object: &Value) -> Result<bool, Complaint> {
        let Some(kind) = self.kind(object).await? else { return Ok(false) };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let params = PatchParams::apply(MANAGER).force();
        self.api(&kind, object)
            .patch(name, &params, &Patch::Apply(object))
            .await
            .map_err(|e| Complaint::new(format!("{}: {}", display(object), api_text(e))))?;
        Ok(true)
    }

    /// The object as it is in the cluster.
    pub(crate) async fn get(&mut self, object: &Value) -> Result<Option<DynamicObject>, Complaint> {
        let Some(kind) = self.kind(object).await? else { return Ok(None) };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        Ok(self.api(&kind, object).get_opt(name).await?)
    }

    /// Deletes an object; whether it was there.
    pub(crate) async fn delete(&mut self, object: &Value) -> Result<bool, Complaint> {
        let Some(kind) = self.kind(object).await? else { return Ok(false) };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        match self.api(&kind, object).delete(name, &DeleteParams::foreground()).await {
            Ok(_) => Ok(true),
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(false),
            Err(e) => Err(Complaint::new(format!("{}: {}", display(object), api_text(e)))),
        }
    }
}

/// What the API server said, without what kube says about it.
pub(crate) fn api_text(error: kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => other.to_string(),
    }
}
