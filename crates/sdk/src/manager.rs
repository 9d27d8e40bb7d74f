//! Runs operators and tasks side by side, on shared caches, until told to stop.
//!
//! A manager holds no state about objects. It starts everything, says when all of it is ready, and ends in order:
//! operators first, with time to finish what they do, then leases and webhooks, then the watches.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use homeostat_model::{Clock, Entropy};
use kube::Client;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::cache::Caches;
use crate::election::{Candidate, Fence, Gate, Keeper, LeaderElection, Member, Sharding};
use crate::error::{Error, Result};
use crate::event::Recorder;
use crate::guard::guarded;
use crate::health::Health;
use crate::metrics::{Common, Exposed};
use crate::object::Watched;
use crate::operator::Operator;
use crate::runner::Runner;
use crate::task::{Task, TaskContext, run_task};
use crate::webhook::{self, Webhook, WebhookOptions, Webhooks};
use crate::write::Writer;
use crate::{probes, process};

/// How long running reconciles may take to finish after a stop (controller-runtime's default).
const GRACE: Duration = Duration::from_secs(30);
/// How long leases and webhooks may take to be given up after that.
const FAREWELL: Duration = Duration::from_secs(5);

/// What everything in a manager shares.
#[derive(Clone)]
pub(crate) struct Env {
    pub(crate) client: Client,
    pub(crate) caches: Caches,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    /// Only objects of this namespace are looked at.
    pub(crate) namespace: Option<Arc<str>>,
    /// What this process may work on.
    pub(crate) gate: Gate,
    instance: Option<Arc<str>>,
}

impl Env {
    /// Who reports, for events: this process where it has a name, else the operator.
    pub(crate) fn instance_of(&self, operator: &str) -> Arc<str> {
        self.instance.clone().unwrap_or_else(|| operator.into())
    }
}

type Start = Box<dyn FnOnce(&Env, CancellationToken) -> BoxFuture<'static, ()> + Send>;

/// An operator or a task that was added.
struct Added {
    name: String,
    /// What it writes through, where that isn't the manager's client.
    client: Option<Client>,
    start: Start,
}

/// How one process of several is chosen.
enum Election {
    Leader(LeaderElection),
    Shards(Sharding),
}

/// Operators and tasks that run together.
///
/// ```no_run
/// # use homeostat_sdk::{Context, LeaderElection, Manager, Next, Operator, Result, process};
/// # use k8s_openapi::api::core::v1::ServiceAccount;
/// # struct Greeter;
/// # impl Operator for Greeter {
/// #     type Resource = ServiceAccount;
/// #     type Owns = ();
/// #     type Reads = ();
/// #     async fn reconcile(&self, _: &ServiceAccount, _: &Context<Self>) -> Result<Next> { Ok(Next::done()) }
/// # }
/// #[tokio::main]
/// async fn main() -> Result<()> {
///     let client = process::client(None, None).await?;
///     Manager::new(client)
///         .with(Greeter)
///         .with_leader_election(LeaderElection::new("greeter"))
///         .with_metrics(([0, 0, 0, 0], 8080).into())
///         .with_probes(([0, 0, 0, 0], 8081).into())
///         .run(process::shutdown())
///         .await?;
///     Ok(())
/// }
/// ```
pub struct Manager {
    env: Env,
    /// The client as it was given: neither fenced nor counted.
    plain: Client,
    fence: Fence,
    common: Arc<Common>,
    name: Option<String>,
    /// Whether everything goes through the guard: [`guarded`].
    guards: bool,
    /// What is added from now on writes through this, where that isn't the manager's client.
    through: Option<Client>,
    added: Vec<Added>,
    webhooks: Vec<Webhook>,
    webhook_options: WebhookOptions,
    election: Option<Election>,
    metrics: Option<SocketAddr>,
    probes: Option<SocketAddr>,
    health: Health,
}

impl std::fmt::Debug for Manager {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names: Vec<&str> = self.added.iter().map(|a| a.name.as_str()).collect();
        f.debug_struct("Manager").field("runs", &names).finish_non_exhaustive()
    }
}

impl Manager {
    /// Runs nothing yet. Time and chance are the machine's; see [`with_clock`](Self::with_clock) and
    /// [`with_entropy`](Self::with_entropy).
    pub fn new(client: Client) -> Self {
        let entropy = Entropy::system();
        let caches = Caches::new(client.clone(), entropy.clone());
        let plain = client.clone();
        let env = Env {
            client,
            caches,
            clock: Clock::system(),
            entropy,
            namespace: None,
            gate: Gate::open(),
            instance: None,
        };
        Self {
            env,
            plain,
            fence: Fence::open(),
            common: Arc::default(),
            name: None,
            guards: false,
            through: None,
            added: Vec::new(),
            webhooks: Vec::new(),
            webhook_options: WebhookOptions::default(),
            election: None,
            metrics: None,
            probes: None,
            health: Health::default(),
        }
    }

    /// Names this manager, for what it makes for itself: a webhook configuration, a Secret. By default it is the name
    /// of the first operator, as a DNS name.
    #[must_use]
    pub fn with_name(mut self, name: impl Into<String>) -> Self {
        self.name = Some(name.into());
        self
    }

    /// Tells the time by `clock`.
    #[must_use]
    pub fn with_clock(mut self, clock: Clock) -> Self {
        self.env.clock = clock;
        self
    }

    /// Takes chance from `entropy`.
    #[must_use]
    pub fn with_entropy(mut self, entropy: Entropy) -> Self {
        self.env.caches = self.env.caches.anew(self.env.client.clone(), entropy.clone());
        self.env.entropy = entropy;
        self
    }

    /// Names this process as the reporting instance of events, such as its pod's name.
    #[must_use]
    pub fn with_instance(mut self, name: impl Into<Arc<str>>) -> Self {
        self.env.instance = Some(name.into());
        self
    }

    /// Looks only at one namespace: all operators' caches hold only objects of it, so that a Role is enough for what
    /// they read. Kinds that live in no namespace are seen whole.
    #[must_use]
    pub fn in_namespace(mut self, namespace: impl Into<Arc<str>>) -> Self {
        self.env.namespace = Some(namespace.into());
        self
    }

    /// Keeps objects of kind `K` in the caches as `f` leaves them: without what nobody here reads, such as the data of
    /// Secrets of which only the names count.
    ///
    /// ```no_run
    /// # use homeostat_sdk::Manager;
    /// # use k8s_openapi::api::core::v1::Secret;
    /// # fn example(manager: Manager) {
    /// let manager = manager.with_transform::<Secret>(|secret| {
    ///     secret.data = None;
    ///     secret.metadata.annotations = None;
    /// });
    /// # }
    /// ```
    #[must_use]
    pub fn with_transform<K: Watched>(self, f: impl Fn(&mut K) + Send + Sync + 'static) -> Self {
        self.env.caches.transform(f);
        self
    }

    /// Keeps objects of kind `K` in the caches as the text that they came in, without `managedFields`, and as typed
    /// objects only those that were used last (64, and one in 32). It is for kinds of which there are very many: a Pod
    /// takes several times its text as a struct.
    ///
    /// To read a text again costs some microseconds per kilobyte. Whoever looks up a few objects by key, owner or index
    /// will not feel it; whoever lists a large cache in each reconcile will, and so will others that wait meanwhile. The
    /// first list is still read whole. A [transform](Self::with_transform) of the same kind takes precedence.
    ///
    /// ```no_run
    /// # use homeostat_sdk::Manager;
    /// # use k8s_openapi::api::core::v1::Pod;
    /// # fn example(manager: Manager) {
    /// let manager = manager.with_compact::<Pod>();
    /// # }
    /// ```
    #[must_use]
    pub fn with_compact<K: Watched>(self) -> Self {
        self.env.caches.compact::<K>();
        self
    }

    /// Has servers keep watches open for `timeout` instead of some five minutes, after which they are asked for anew:
    /// longer where that itself costs too much, as in months of virtual time. At least a second. It comes before
    /// [`caches`](Self::caches).
    #[must_use]
    pub fn with_watch_timeout(mut self, timeout: Duration) -> Self {
        self.env.caches = self.env.caches.with_watch_timeout(timeout.max(Duration::from_secs(1)));
        self
    }

    /// Of several processes only the leader works; the others stand by with warm caches. What the leader writes after
    /// it lost its lease is not sent.
    #[must_use]
    pub fn with_leader_election(mut self, election: LeaderElection) -> Self {
        self.election = Some(Election::Leader(election));
        self.fence = Fence::closed();
        self.guard();
        self
    }

    /// All processes of a group work, each on its share of the keys. A key belongs to one of them at a time, and moves
    /// to another when processes come or go: the old owner stops before the new one starts. Tasks run in one of them.
    #[must_use]
    pub fn with_sharding(mut self, sharding: Sharding) -> Self {
        self.election = Some(Election::Shards(sharding));
        self.fence = Fence::closed();
        self.guard();
        self
    }

    /// Serves `/metrics` on this address, in Prometheus' text format under controller-runtime's names, and with them
    /// `/healthz` and `/readyz`.
    #[must_use]
    pub fn with_metrics(mut self, address: SocketAddr) -> Self {
        self.metrics = Some(address);
        self.guard();
        self
    }

    /// Serves `/healthz` (the process runs) and `/readyz` (every operator has its caches, webhooks are served) on this
    /// address. `/readyz?verbose` says what is missing.
    #[must_use]
    pub fn with_probes(mut self, address: SocketAddr) -> Self {
        self.probes = Some(address);
        self
    }

    /// Everything goes through the guarded client from now on.
    fn guard(&mut self) {
        self.guards = true;
        self.env.client = guarded(self.plain.clone(), self.fence.clone(), self.common.clone());
        self.env.caches = self.env.caches.anew(self.env.client.clone(), self.env.entropy.clone());
    }

    /// Adds a webhook that belongs to no operator. Those of operators are added with them.
    pub fn add_webhook(&mut self, webhook: Webhook) -> &mut Self {
        self.webhooks.push(webhook);
        self
    }

    /// Adds a webhook, as a builder.
    ///
    /// ```no_run
    /// # use homeostat_sdk::{Manager, webhook::{Validator, Webhook}};
    /// # use k8s_openapi::api::core::v1::ConfigMap;
    /// # struct Rules;
    /// # impl Validator for Rules { type Resource = ConfigMap; }
    /// # async fn example(client: kube::Client) {
    /// let manager = Manager::new(client).with_name("rules").with_webhook(Webhook::validating(Rules));
    /// # }
    /// ```
    #[must_use]
    pub fn with_webhook(mut self, webhook: Webhook) -> Self {
        self.add_webhook(webhook);
        self
    }

    /// Says how webhooks are served; the defaults fit a pod and a laptop.
    #[must_use]
    pub fn with_webhook_options(mut self, options: WebhookOptions) -> Self {
        self.webhook_options = options;
        self
    }

    /// Adds an operator.
    pub fn add<O: Operator>(&mut self, operator: O) -> &mut Self {
        let runner = Runner::new(operator);
        self.health.inner().operators.push(runner.status.clone());
        let start: Start = Box::new(move |env, stop| runner.run(env, stop));
        self.push(O::name(), start);
        self.webhooks.extend(O::webhooks());
        self.name.get_or_insert_with(|| dns_name(O::name()));
        self
    }

    /// Adds an operator, as a builder.
    #[must_use]
    pub fn with<O: Operator>(mut self, operator: O) -> Self {
        self.add(operator);
        self
    }

    /// Adds a task that shares the caches, for what doesn't reconcile one resource: a scheduler, heartbeats, a sweep.
    ///
    /// It is started again, after a growing delay, when it fails or panics, and is done when it returns `Ok`. Its
    /// name is the field manager of its writes.
    pub fn add_task<F, Fut>(&mut self, name: &str, task: F) -> &mut Self
    where
        F: Fn(TaskContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        let label = name.to_owned();
        let task: Task = Box::new(move |cx| task(cx).boxed());
        let start: Start = Box::new(move |env, stop| run_task(label, task, env.clone(), stop).boxed());
        self.push(name, start);
        self
    }

    fn push(&mut self, name: &str, start: Start) {
        self.added.push(Added { name: name.to_owned(), client: self.through.clone(), start });
    }

    /// Has what is added from now on write, and read past the caches, through `client`: as another user, whose rights
    /// need to be no more than what it does. The caches are fed through the manager's own client all the same, since
    /// all share them, and so are leases and webhook configurations kept. It holds until the next call.
    /// kube-controller-manager calls it `--use-service-account-credentials`.
    ///
    /// ```no_run
    /// # use homeostat_sdk::{Context, Manager, Next, Operator, Result};
    /// # use k8s_openapi::api::core::v1::ServiceAccount;
    /// # struct Greeter;
    /// # impl Operator for Greeter {
    /// #     type Resource = ServiceAccount;
    /// #     type Owns = ();
    /// #     type Reads = ();
    /// #     async fn reconcile(&self, _: &ServiceAccount, _: &Context<Self>) -> Result<Next> { Ok(Next::done()) }
    /// # }
    /// # fn example(reader: kube::Client, greeter: kube::Client) {
    /// let mut manager = Manager::new(reader);
    /// manager.act_through(greeter).add(Greeter);
    /// # }
    /// ```
    pub fn act_through(&mut self, client: Client) -> &mut Self {
        self.through = Some(client);
        self
    }

    /// Adds a task, as a builder.
    #[must_use]
    pub fn with_task<F, Fut>(mut self, name: &str, task: F) -> Self
    where
        F: Fn(TaskContext) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<()>> + Send + 'static,
    {
        self.add_task(name, task);
        self
    }

    /// The caches, to read from outside. They are fed from when they are first asked for until the manager stops.
    pub fn caches(&self) -> &Caches {
        &self.env.caches
    }

    /// A handle on readiness and metrics that outlives [`run`](Self::run).
    pub fn health(&self) -> Health {
        self.health.clone()
    }

    /// Runs everything until `shutdown` is cancelled.
    ///
    /// Running reconciles and tasks then have 30 s to finish; what still runs after that is dropped, which is an
    /// error. So is an address that can't be listened on.
    pub async fn run(self, shutdown: CancellationToken) -> Result<(), RunError> {
        let Self { mut env, plain, fence, common, name, added, webhooks, webhook_options, .. } = self;
        let health = self.health;
        let name = name.unwrap_or_else(|| "homeostat".to_owned());
        // Servers first: who can't listen shouldn't start to work.
        let mut around = JoinSet::new();
        let end = CancellationToken::new();
        for (address, metrics) in [(self.metrics, true), (self.probes, false)] {
            let Some(address) = address else { continue };
            let listener = TcpListener::bind(address).await.map_err(|e| RunError::Listen(address, e))?;
            health.listens(metrics, listener.local_addr().unwrap_or(address));
            let exposed = metrics.then(|| {
                let operators = health.inner().operators.clone();
                let (common, caches) = (common.clone(), env.caches.clone());
                move || Exposed {
                    operators: operators.clone(),
                    common: common.clone(),
                    caches: caches.clone(),
                }
            });
            around.spawn(probes::serve(listener, health.clone(), exposed, end.clone()));
        }
        if !webhooks.is_empty() {
            let ready = CancellationToken::new();
            health.waits_for_webhooks(ready.clone());
            let (client, clock, common) = (plain.clone(), env.clock.clone(), common.clone());
            let options = webhook_options;
            let webhooks = Webhooks { name, webhooks, options, client, clock, metrics: common, ready };
            let serving = webhook::start(webhooks, end.clone()).await.map_err(RunError::Webhooks)?;
            around.spawn(serving);
        }
        let stopped = CancellationToken::new();
        if let Some(election) = self.election {
            let (keeper, gate) = Keeper::new();
            env.gate = gate;
            let (fence, metrics) = (fence.clone(), common.clone());
            let setup = Setup { election, client: plain, fence, metrics };
            around.spawn(setup.run(&env, keeper, shutdown.clone(), stopped.clone()));
        }

        let stop = shutdown.child_token();
        let mut running = JoinSet::new();
        for Added { name, client, start } in added {
            let client = match client {
                None => env.client.clone(),
                Some(client) if self.guards => guarded(client, fence.clone(), common.clone()),
                Some(client) => client,
            };
            let run = start(&Env { client, ..env.clone() }, stop.clone());
            running.spawn(async move {
                run.await;
                name
            });
        }
        health.runs(true);
        shutdown.cancelled().await;
        health.runs(false);
        let finish = async { while running.join_next().await.is_some() {} };
        let finished = tokio::time::timeout(GRACE, finish).await.is_ok();
        running.shutdown().await;
        // Nobody works any more: give up leases and withdraw webhooks.
        stopped.cancel();
        end.cancel();
        let farewell = async { while around.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(FAREWELL, farewell).await;
        around.shutdown().await;
        env.caches.stop().await;
        if finished { Ok(()) } else { Err(RunError::Unfinished(GRACE)) }
    }

    /// As [`run`](Self::run), until a future such as a signal's resolves.
    pub async fn run_until(self, shutdown: impl Future<Output = ()>) -> Result<(), RunError> {
        let token = CancellationToken::new();
        let mut run = pin!(self.run(token.clone()));
        tokio::select! { biased;
            () = shutdown => token.cancel(),
            result = &mut run => return result,
        }
        run.await
    }
}

/// Why a manager ended otherwise than it should.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// Something didn't end in time after the stop.
    #[error("some reconciles did not finish within {0:?} of the stop and were dropped")]
    Unfinished(Duration),
    /// An address can't be listened on.
    #[error("can't listen on {0}: {1}")]
    Listen(SocketAddr, #[source] std::io::Error),
    /// Webhooks can't be served.
    #[error("{0}")]
    Webhooks(Error),
}

/// What an election needs besides the environment.
struct Setup {
    election: Election,
    client: Client,
    fence: Fence,
    metrics: Arc<Common>,
}

impl Setup {
    fn run(
        self,
        env: &Env,
        keeper: Keeper,
        stop: CancellationToken,
        stopped: CancellationToken,
    ) -> BoxFuture<'static, ()> {
        let Self { election, client, fence, metrics } = self;
        let namespace = |said: &Option<String>| {
            let own = said.clone().or_else(process::namespace);
            own.unwrap_or_else(|| client.default_namespace().to_owned())
        };
        // Two processes of one pod's name are two all the same.
        let identity = |said: &Option<String>| {
            let made = || format!("{}-{}", process::host(), env.entropy.suffix(5));
            said.clone().unwrap_or_else(made)
        };
        let (clock, entropy) = (env.clock.clone(), env.entropy.clone());
        match election {
            Election::Leader(election) => {
                let (namespace, identity) = (namespace(&election.namespace), identity(&election.identity));
                let caches = Caches::new(client.clone(), entropy.clone());
                let writer = Writer::new(client.clone(), caches, "leader-election");
                let recorder = Recorder::new(writer, clock.clone(), identity.as_str());
                let candidate = Candidate {
                    election,
                    client,
                    clock,
                    entropy,
                    namespace,
                    identity,
                    recorder,
                    fence,
                    metrics,
                };
                candidate.run(keeper, stop, stopped).boxed()
            }
            Election::Shards(sharding) => {
                let namespace = namespace(&sharding.namespace);
                let identity = dns_name(&identity(&sharding.identity)).into();
                let member = Member { sharding, client, clock, entropy, namespace, identity, fence, metrics };
                member.run(keeper, stop, stopped).boxed()
            }
        }
    }
}

/// `text` as a name that Kubernetes takes: lower case, words with dashes between.
fn dns_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii_uppercase() && name.ends_with(|p: char| p.is_ascii_lowercase() || p.is_ascii_digit()) {
            name.push('-');
        }
        match c.to_ascii_lowercase() {
            c if c.is_ascii_alphanumeric() || c == '-' || c == '.' => name.push(c),
            _ => name.push('-'),
        }
    }
    let name = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    if name.is_empty() { "homeostat".to_owned() } else { name.to_owned() }
}
