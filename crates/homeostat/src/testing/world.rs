//! A control plane with operators at work, for one test.
//!
//! Everything here panics where it doesn't get what it waits for, with a text that says what there was instead.

use std::sync::Mutex;
use std::time::Duration;

use homeostat_cluster::{Cluster, ClusterOptions};
use homeostat_sdk::{CancellationToken, Clock, Entropy, Health, Manager, Object, Operator, conditions};
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding, RoleRef, Subject};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::{ObjectMeta, Request};
use kube::runtime::wait::conditions::is_crd_established;
use kube::{Api, Client, CustomResourceExt};
use serde_json::Value;

use super::settle::{Settle, Settled};
use super::ticker::Ticker;
use super::{snapshot, tree};

/// How long anything may take: ten minutes, which pass in no time where time is paused.
const PATIENCE: Duration = Duration::from_secs(600);
/// How often is looked.
const LOOK: Duration = Duration::from_millis(50);

/// Waits until `holds`; panics with `what` where it doesn't within ten minutes.
pub async fn until(what: &str, holds: impl AsyncFn() -> bool) {
    let (began, ticker) = (tokio::time::Instant::now(), Ticker::start());
    while !holds().await {
        assert!(began.elapsed() < PATIENCE && !ticker.is_exhausted(), "never: {what}");
        ticker.nap(LOOK).await;
    }
}

/// A control plane, and operators at work in it. They end with it.
///
/// Unnamed namespaces are `default`.
pub struct World {
    cluster: Cluster,
    client: Client,
    clock: Clock,
    entropy: Entropy,
    /// How long operators keep their watches open.
    watch: Duration,
    stop: CancellationToken,
    running: Mutex<Vec<Health>>,
}

impl std::fmt::Debug for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("World").finish_non_exhaustive()
    }
}

impl Drop for World {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl World {
    /// One node, all controllers, a clock that starts on 2 January 2026 and chance that is the same each time.
    pub async fn start() -> Self {
        Self::with(ClusterOptions {
            clock: Clock::starting_at(Self::beginning()),
            entropy: Entropy::seeded(1),
            ..ClusterOptions::default()
        })
        .await
    }

    fn beginning() -> homeostat_sdk::Timestamp {
        // 2026-01-02T03:04:05Z
        homeostat_sdk::Timestamp::from_second(1_767_323_045).unwrap_or_default()
    }

    /// A control plane of one's own making. Operators share its clock and chance.
    pub async fn with(options: ClusterOptions) -> Self {
        let (clock, entropy, watch) =
            (options.clock.clone(), options.entropy.clone(), options.cadence.watch());
        let cluster = match Cluster::with(options).await {
            Ok(cluster) => cluster,
            Err(error) => panic!("no control plane: {error}"),
        };
        let client = cluster.client();
        let (stop, running) = (CancellationToken::new(), Mutex::default());
        Self { cluster, client, clock, entropy, watch, stop, running }
    }

    /// A client with all rights.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The control plane itself.
    pub fn cluster(&self) -> &Cluster {
        &self.cluster
    }

    /// Its clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Defines the kind of a type that derives `CustomResource`, and waits until it is served.
    pub async fn define<K: CustomResourceExt>(&self) {
        self.define_as(K::crd()).await;
    }

    /// As [`define`](Self::define), by a definition, such as one with several versions.
    pub async fn define_as(&self, definition: CustomResourceDefinition) {
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        let name = definition.metadata.name.clone().unwrap_or_default();
        if let Err(error) = api.create(&PostParams::default(), &definition).await {
            panic!("{name} can't be defined: {error}");
        }
        let served = kube::runtime::wait::await_condition(api, &name, is_crd_established());
        match tokio::time::timeout(PATIENCE, served).await {
            Ok(Ok(_)) => {}
            Ok(Err(error)) => panic!("{name} is not established: {error}"),
            Err(_) => panic!("{name} is never established"),
        }
    }

    /// Runs an operator with exactly the rights that follow from its types, and waits until it works. Its webhooks are
    /// served, too; they are asked over sockets, whose time can't be paused, so a test of them runs in real time.
    pub async fn run<O: Operator>(&self, operator: O) {
        self.grant::<O>().await;
        let client = self.cluster.client_as(O::name(), &[]);
        let manager = Manager::new(client)
            .with_clock(self.clock.clone())
            .with_entropy(self.entropy.clone())
            .with_watch_timeout(self.watch);
        self.manage(manager.with_name(Self::name_of::<O>()).with(operator)).await;
    }

    /// The operator's name as a DNS name.
    fn name_of<O: Operator>() -> String {
        O::name().to_lowercase().replace(|c: char| !c.is_ascii_alphanumeric(), "-")
    }

    /// Runs a manager of one's own making, and waits until it is ready.
    pub async fn manage(&self, manager: Manager) {
        let health = manager.health();
        self.running().push(health.clone());
        let run = manager.run(self.stop.child_token());
        tokio::spawn(async move {
            if let Err(error) = run.await {
                panic!("a manager ended: {error}");
            }
        });
        let waiting = || format!("a manager is ready; {:?} wait", health.waiting());
        let (began, ticker) = (tokio::time::Instant::now(), Ticker::start());
        while !health.ready() {
            assert!(began.elapsed() < PATIENCE && !ticker.is_exhausted(), "never: {}", waiting());
            ticker.nap(LOOK).await;
        }
    }

    fn running(&self) -> std::sync::MutexGuard<'_, Vec<Health>> {
        self.running.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    async fn grant<O: Operator>(&self) {
        let metadata = ObjectMeta { name: Some(O::name().to_owned()), ..ObjectMeta::default() };
        let group = "rbac.authorization.k8s.io".to_owned();
        let mut rules = homeostat_sdk::rules::<O>();
        rules.extend(homeostat_sdk::webhook::rules(&Self::name_of::<O>(), &O::webhooks()).0);
        let role = ClusterRole { metadata: metadata.clone(), rules: Some(rules), ..ClusterRole::default() };
        let binding = ClusterRoleBinding {
            metadata,
            role_ref: RoleRef {
                api_group: Some(group.clone()),
                kind: "ClusterRole".into(),
                name: O::name().into(),
            },
            subjects: Some(vec![Subject {
                api_group: Some(group),
                kind: "User".into(),
                name: O::name().into(),
                namespace: None,
            }]),
        };
        self.put(&role).await;
        self.put(&binding).await;
    }

    fn path<K: Object>(object: &K) -> String {
        let namespace = object.meta().namespace.as_deref().unwrap_or("default");
        K::url_path(&(), Some(namespace).filter(|_| K::is_namespaced()))
    }

    /// Creates an object.
    pub async fn create<K: Object>(&self, object: &K) -> K {
        let body = serde_json::to_vec(object).unwrap_or_default();
        let request = Request::new(Self::path(object)).create(&PostParams::default(), body);
        self.ask("created", object, request).await
    }

    /// Makes an object have what is set in it, as `kubectl apply --server-side` by the user `test`.
    pub async fn put<K: Object>(&self, object: &K) -> K {
        let name = object.meta().name.clone().unwrap_or_default();
        let body = match homeostat_sdk::sparse(object) {
            Ok(body) => body,
            Err(error) => panic!("{name} can't be applied: {error}"),
        };
        let params = PatchParams::apply("test").force();
        let request = Request::new(Self::path(object)).patch(&name, &params, &Patch::Apply(body));
        self.ask("applied", object, request).await
    }

    async fn ask<K: Object>(
        &self,
        verb: &str,
        object: &K,
        request: Result<http::Request<Vec<u8>>, kube::core::request::Error>,
    ) -> K {
        let name = object.meta().name.clone().unwrap_or_default();
        let request = match request {
            Ok(request) => request,
            Err(error) => panic!("{} {name} can't be {verb}: {error}", K::display_kind()),
        };
        match self.client.request(request).await {
            Ok(object) => object,
            Err(error) => panic!("{} {name} can't be {verb}: {error}", K::display_kind()),
        }
    }

    /// The object of this name, or `None`.
    pub async fn get<K: Object>(&self, name: &str) -> Option<K> {
        let namespace = Some("default").filter(|_| K::is_namespaced());
        let request = Request::new(K::url_path(&(), namespace)).get(name, &Default::default());
        match self.client.request(request.ok()?).await {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("{} {name} can't be read: {error}", K::display_kind()),
        }
    }

    /// Deletes an object. What finalizers and owners make of it takes its time; see [`settle`](Self::settle).
    pub async fn delete<K: Object>(&self, name: &str) {
        let namespace = Some("default").filter(|_| K::is_namespaced());
        let request = Request::new(K::url_path(&(), namespace)).delete(name, &DeleteParams::default());
        let Ok(request) = request else { panic!("{name:?} is no name") };
        if let Err(error) = self.client.request::<Value>(request).await {
            panic!("{} {name} can't be deleted: {error}", K::display_kind());
        }
    }

    /// Waits until nothing more happens: no writes, and all operators that run here have nothing to do.
    ///
    /// Panics where it goes on and on, and says which objects change, in which fields, and by whom.
    pub async fn settle(&self) -> Settled {
        self.settle_with(Settle::default()).await
    }

    /// As [`settle`](Self::settle), with other limits: a budget of writes, say, that a reconcile should keep.
    pub async fn settle_with(&self, limits: Settle) -> Settled {
        let healths = self.running().clone();
        match limits.wait(&self.client, &healths).await {
            Ok(settled) => settled,
            Err(unsettled) => panic!("{unsettled}"),
        }
    }

    /// Waits until a condition of an object holds (or doesn't).
    pub async fn condition<K: Object>(&self, name: &str, r#type: &str, holds: impl Into<conditions::Holds>) {
        let holds = holds.into().as_str();
        let (began, ticker) = (tokio::time::Instant::now(), Ticker::start());
        loop {
            let object = self.get::<K>(name).await;
            let all = object.as_ref().map(conditions_of).unwrap_or_default();
            if all.iter().any(|c| c.type_ == r#type && c.status == holds) {
                return;
            }
            if began.elapsed() >= PATIENCE || ticker.is_exhausted() {
                let has: Vec<String> = all
                    .iter()
                    .map(|c| format!("{}={} ({}: {})", c.type_, c.status, c.reason, c.message))
                    .collect();
                let there = if object.is_some() { "it has" } else { "it isn't there" };
                panic!("{} {name} never has {type}={holds}; {there} [{}]", K::display_kind(), has.join(", "));
            }
            ticker.nap(LOOK).await;
        }
    }

    /// The objects of a namespace as a tree of owners with what their status says: a text for snapshot tests. The same
    /// world gives the same text.
    pub async fn tree(&self, namespace: &str) -> String {
        match snapshot::look(&self.client, Some(namespace)).await {
            Ok(objects) => tree::text(&objects),
            Err(error) => panic!("the objects of {namespace} can't be read: {error}"),
        }
    }
}

fn conditions_of<K: Object>(object: &K) -> Vec<Condition> {
    let value = serde_json::to_value(object).unwrap_or_default();
    let conditions =
        value.pointer("/status/conditions").and_then(Value::as_array).cloned().unwrap_or_default();
    // Some kinds' conditions have less than metav1's.
    let read = |c: Value| {
        let text = |field: &str| c[field].as_str().unwrap_or_default().to_owned();
        Condition {
            type_: text("type"),
            status: text("status"),
            reason: text("reason"),
            message: text("message"),
            last_transition_time: k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(Default::default()),
            observed_generation: None,
        }
    };
    conditions.into_iter().map(read).collect()
}
