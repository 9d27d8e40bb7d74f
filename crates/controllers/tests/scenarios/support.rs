//! A cluster per test, and waiting for conditions.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use homeostat_cluster::audit::Audit;
use homeostat_cluster::{Cluster, ClusterOptions};
use k8s_openapi::NamespaceResourceScope;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::ApiResource;
use kube::{Api, Client, Resource};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::virtual_time::Count;

/// The namespace that tests work in.
pub(crate) const NS: &str = "default";

/// A running cluster and a client with all rights.
pub(crate) struct World {
    cluster: Cluster,
    count: Arc<Count>,
    pub(crate) client: Client,
}

impl World {
    pub(crate) async fn start() -> Self {
        Self::with_nodes(1).await
    }

    /// Without nodes pods stay as they are, until the test says what becomes of them.
    pub(crate) async fn with_nodes(nodes: u32) -> Self {
        let count = Arc::new(Count::default());
        let audit = Some(count.clone() as Arc<dyn Audit>);
        let options = ClusterOptions { nodes: nodes.try_into().unwrap(), audit, ..ClusterOptions::default() };
        let cluster = Cluster::with(options).await.unwrap();
        let client = cluster.client();
        let world = Self { cluster, count, client };
        // Pods are refused until their account is there.
        let account = "/api/v1/namespaces/default/serviceaccounts/default";
        world.until("the account of pods", || async { world.get::<Value>(account).await }).await;
        world
    }

    pub(crate) async fn stop(self) {
        self.cluster.stop(Duration::from_secs(5)).await;
        self.count.assert_rights();
    }

    pub(crate) fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), NS)
    }

    /// An object's JSON by path; `None` where there is none.
    pub(crate) async fn get<T: DeserializeOwned>(&self, path: &str) -> Option<T> {
        let request = http::Request::get(path).body(Vec::new()).unwrap();
        match self.client.request::<T>(request).await {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(e) => panic!("GET {path}: {e}"),
        }
    }

    /// Creates an object of any kind, in the test's namespace where it has none.
    pub(crate) async fn create(&self, object: Value) -> DynamicObject {
        let (api, object) = self.dynamic(&object);
        api.create(&PostParams::default(), &object).await.unwrap()
    }

    pub(crate) fn dynamic(&self, object: &Value) -> (Api<DynamicObject>, DynamicObject) {
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        let api_version = text(&object["apiVersion"]);
        let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
        let kind = text(&object["kind"]);
        let plural = format!("{}s", kind.to_lowercase());
        let ar = ApiResource {
            group: group.into(),
            version: version.into(),
            api_version: api_version.clone(),
            kind: kind.clone(),
            plural,
        };
        let cluster =
            ["Namespace", "CustomResourceDefinition", "Node", "ClusterRole"].contains(&kind.as_str());
        let api = if cluster {
            Api::all_with(self.client.clone(), &ar)
        } else {
            let ns = object["metadata"]["namespace"].as_str().unwrap_or(NS);
            Api::namespaced_with(self.client.clone(), ns, &ar)
        };
        (api, serde_json::from_value(object.clone()).unwrap())
    }

    pub(crate) async fn merge<K>(&self, name: &str, patch: Value)
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + Debug
            + Serialize,
    {
        self.api::<K>().patch(name, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
    }

    /// All objects of a kind in the test's namespace.
    pub(crate) async fn list<K>(&self) -> Vec<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()> + Clone + DeserializeOwned + Debug,
    {
        self.api::<K>().list(&ListParams::default()).await.unwrap().items
    }

    /// Waits until `f` gives something.
    pub(crate) async fn until<T, F: Future<Output = Option<T>>>(&self, what: &str, f: impl Fn() -> F) -> T {
        let wait = async {
            loop {
                if let Some(found) = f().await {
                    return found;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), wait)
            .await
            .unwrap_or_else(|_| panic!("never happened: {what}"))
    }
}

/// `Some(())` where it holds, for [`World::until`].
pub(crate) fn holds(condition: bool) -> Option<()> {
    condition.then_some(())
}
