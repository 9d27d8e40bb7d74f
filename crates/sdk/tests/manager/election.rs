//! Several processes with the same operator: one works, or each on its share, and never two on one key.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use homeostat_sdk::{Context, LeaderElection, Manager, Next, Operator, Result, Sharding};
use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
use serde_json::json;
use tokio::time::Instant;

use crate::server::Server;
use crate::{ACCOUNTS, Running, manager_of, run};

/// From when to when a process worked on a key.
#[derive(Clone, Debug)]
struct Span {
    key: String,
    who: &'static str,
    from: Instant,
    to: Instant,
}

type Log = Arc<Mutex<Vec<Span>>>;

/// Takes a second for each key, writes, and comes again; notes when it works, also when it is dropped.
struct Works {
    who: &'static str,
    log: Log,
}

struct Working(Log, Span);

impl Drop for Working {
    fn drop(&mut self) {
        self.1.to = Instant::now();
        self.0.lock().unwrap().push(self.1.clone());
    }
}

impl Operator for Works {
    type Resource = ServiceAccount;
    type Owns = (ConfigMap,);
    type Reads = ();

    async fn reconcile(&self, _: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
        let now = Instant::now();
        let span = Span { key: cx.name().to_owned(), who: self.who, from: now, to: now };
        let working = Working(self.log.clone(), span);
        tokio::time::sleep(Duration::from_secs(1)).await;
        let mut map = ConfigMap::default();
        map.metadata.name = Some(cx.name().to_owned());
        map.data = Some([("by".to_owned(), format!("{} at {:?}", self.who, now))].into());
        cx.apply(map).await?;
        drop(working);
        Ok(Next::after(Duration::from_secs(1)))
    }
}

struct World {
    server: Server,
    log: Log,
}

struct Process {
    running: Running,
    cut: Arc<AtomicBool>,
}

impl World {
    fn new(objects: usize) -> Self {
        let server = Server::default();
        for i in 0..objects {
            server.put(&format!("{ACCOUNTS}/x{i:02}"), json!({}));
        }
        Self { server, log: Log::default() }
    }

    fn start(&self, who: &'static str, elect: impl FnOnce(Manager) -> Manager) -> Process {
        let cut = Arc::new(AtomicBool::new(false));
        let manager = manager_of(self.server.client_with(&cut));
        let running = run(elect(manager).with(Works { who, log: self.log.clone() }));
        Process { running, cut }
    }

    fn leading(&self, who: &'static str) -> Process {
        self.start(who, |m| m.with_leader_election(LeaderElection::new("works").as_identity(who)))
    }

    fn sharing(&self, who: &'static str) -> Process {
        self.start(who, |m| m.with_sharding(Sharding::new("works").as_identity(who)))
    }

    /// Who worked on which keys in the last ten seconds.
    fn lately(&self) -> BTreeMap<&'static str, BTreeSet<String>> {
        let mut lately: BTreeMap<&'static str, BTreeSet<String>> = BTreeMap::new();
        for span in self.log.lock().unwrap().iter() {
            if span.from.elapsed() < Duration::from_secs(10) {
                lately.entry(span.who).or_default().insert(span.key.clone());
            }
        }
        lately
    }

    /// Nobody worked on a key while another process did.
    #[track_caller]
    fn check_alone(&self) {
        let mut spans = self.log.lock().unwrap().clone();
        spans.sort_by_key(|s| s.from);
        let mut last: BTreeMap<&str, &Span> = BTreeMap::new();
        for span in &spans {
            if let Some(before) = last.get(&*span.key) {
                assert!(before.who == span.who || before.to <= span.from, "{before:?} and {span:?}");
            }
            match last.get(&*span.key) {
                Some(before) if before.to > span.to => {}
                _ => _ = last.insert(&span.key, span),
            }
        }
        assert!(spans.len() > 20, "{}", spans.len());
    }
}

async fn seconds(n: u64) {
    tokio::time::sleep(Duration::from_secs(n)).await;
}

fn keys(n: usize) -> BTreeSet<String> {
    (0..n).map(|i| format!("x{i:02}")).collect()
}

#[tokio::test(start_paused = true)]
async fn one_leads_and_hands_over_when_it_stops() {
    let world = World::new(5);
    let a = world.leading("a");
    seconds(1).await;
    let b = world.leading("b");
    seconds(60).await;
    assert_eq!(world.lately(), [("a", keys(5))].into());
    assert!(a.running.health.ready() && b.running.health.ready(), "who stands by is ready, too");
    a.running.stopped().await.unwrap();
    let lease = world.server.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/works").unwrap();
    assert_eq!(
        (&lease["spec"]["holderIdentity"], &lease["spec"]["leaseDurationSeconds"]),
        (&json!(""), &json!(1))
    );
    // A released lease is taken at the next try.
    seconds(4).await;
    assert_eq!(world.lately()["b"], keys(5));
    seconds(10).await;
    assert_eq!(world.lately(), [("b", keys(5))].into());
    let lease = world.server.get("/apis/coordination.k8s.io/v1/namespaces/default/leases/works").unwrap();
    assert_eq!(
        (&lease["spec"]["holderIdentity"], &lease["spec"]["leaseTransitions"]),
        (&json!("b"), &json!(1))
    );
    let told: Vec<_> = world
        .server
        .calls()
        .into_iter()
        .filter(|c| c.line == "POST /apis/events.k8s.io/v1/namespaces/default/events")
        .map(|c| c.body["note"].clone())
        .collect();
    assert_eq!(told, ["a became leader", "a stopped leading", "b became leader"]);
    world.check_alone();
    b.running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_leader_that_is_cut_off_stops_before_another_starts_and_stands_by_again() {
    let world = World::new(5);
    let a = world.leading("a");
    seconds(1).await;
    let b = world.leading("b");
    seconds(30).await;
    for round in 0..3 {
        let (leader, other) = if round % 2 == 0 { (&a, "b") } else { (&b, "a") };
        leader.cut.store(true, Ordering::Relaxed);
        seconds(30).await;
        assert_eq!(world.lately(), [(other, keys(5))].into(), "round {round}");
        leader.cut.store(false, Ordering::Relaxed);
        seconds(30).await;
        assert_eq!(world.lately(), [(other, keys(5))].into(), "round {round}");
    }
    world.check_alone();
    a.running.stopped().await.unwrap();
    b.running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn keys_are_shared_and_move_when_processes_come_and_go() {
    let world = World::new(10);
    let a = world.sharing("a");
    seconds(20).await;
    assert_eq!(world.lately(), [("a", keys(10))].into());
    let b = world.sharing("b");
    let c = world.sharing("c");
    seconds(40).await;
    let shares = world.lately();
    assert_eq!(shares.len(), 3, "{shares:?}");
    assert_eq!(shares.values().map(BTreeSet::len).sum::<usize>(), 10, "each key is one process' {shares:?}");

    // One leaves in order: the others have its keys soon.
    b.running.stopped().await.unwrap();
    seconds(20).await;
    let shares = world.lately();
    assert_eq!(shares.keys().copied().collect::<Vec<_>>(), ["a", "c"]);
    assert_eq!(shares.values().map(BTreeSet::len).sum::<usize>(), 10);

    // One is cut off, and comes back.
    c.cut.store(true, Ordering::Relaxed);
    seconds(60).await;
    assert_eq!(world.lately(), [("a", keys(10))].into());
    c.cut.store(false, Ordering::Relaxed);
    seconds(60).await;
    assert_eq!(world.lately().len(), 2);

    // All come and go.
    for _ in 0..5 {
        let d = world.sharing("d");
        seconds(7).await;
        a.cut.store(true, Ordering::Relaxed);
        seconds(9).await;
        a.cut.store(false, Ordering::Relaxed);
        seconds(3).await;
        d.running.stopped().await.unwrap();
    }
    seconds(60).await;
    let shares = world.lately();
    assert_eq!(shares.values().map(BTreeSet::len).sum::<usize>(), 10, "{shares:?}");
    world.check_alone();
    a.running.stopped().await.unwrap();
    c.running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_in_one_process() {
    let server = Server::default();
    let at_work = Arc::new(Mutex::new(Vec::<&str>::new()));
    let start = |who: &'static str| {
        let at_work = at_work.clone();
        let manager = manager_of(server.client()).with_sharding(Sharding::new("works").as_identity(who));
        run(manager.with_task("sweep", move |cx| {
            let at_work = at_work.clone();
            async move {
                at_work.lock().unwrap().push(who);
                cx.shutdown().cancelled().await;
                Ok(())
            }
        }))
    };
    let (a, b) = (start("a"), start("b"));
    seconds(30).await;
    let who = at_work.lock().unwrap().clone();
    assert_eq!(who.len(), 1, "{who:?}");
    let (first, second) = if who == ["a"] { (a, b) } else { (b, a) };
    first.stopped().await.unwrap();
    seconds(10).await;
    assert_eq!(at_work.lock().unwrap().len(), 2);
    second.stopped().await.unwrap();
}
