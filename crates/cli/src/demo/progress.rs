//! What the demo sees through the API: RedisClusters, StatefulSets and Pods as they change.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use futures::stream::{BoxStream, select_all};
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt as _, watcher as watch};
use kube::{Api, Client, ResourceExt as _};
use redis_operator::RedisCluster;

use crate::complaint::Complaint;

/// One line of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) ready: String,
    pub(super) state: String,
    pub(super) node: String,
}

enum Change {
    Redis(Event<RedisCluster>),
    Set(Event<StatefulSet>),
    Pod(Event<Pod>),
}

/// A view of the three kinds, kept by watches.
pub(super) struct Progress {
    changes: BoxStream<'static, Result<Change, watcher::Error>>,
    rows: BTreeMap<(u8, String), Row>,
    wanted: BTreeMap<String, (i32, i32)>,
}

impl Progress {
    /// Opens the watches.
    pub(super) async fn watch(client: &Client) -> Result<Self, Complaint> {
        let config = watcher::Config::default();
        let redis = watch(Api::<RedisCluster>::default_namespaced(client.clone()), config.clone());
        let sets = watch(Api::<StatefulSet>::default_namespaced(client.clone()), config.clone());
        let pods = watch(Api::<Pod>::default_namespaced(client.clone()), config);
        let changes = select_all([
            redis.default_backoff().map(|e| e.map(Change::Redis)).boxed(),
            sets.default_backoff().map(|e| e.map(Change::Set)).boxed(),
            pods.default_backoff().map(|e| e.map(Change::Pod)).boxed(),
        ]);
        Ok(Self { changes: changes.boxed(), rows: BTreeMap::new(), wanted: BTreeMap::new() })
    }

    /// The next change in words; several where one event says several things.
    pub(super) async fn next(&mut self) -> Result<Vec<String>, Complaint> {
        loop {
            let Some(change) = self.changes.next().await else {
                return Err(Complaint::new("the watches ended"));
            };
            // The watcher retries by itself; what it reports in between is not the user's concern.
            let Ok(change) = change else { continue };
            let said = match change {
                Change::Redis(Event::Apply(r) | Event::InitApply(r)) => self.redis(&r),
                Change::Set(Event::Apply(s) | Event::InitApply(s)) => self.set(&s),
                Change::Pod(Event::Apply(p) | Event::InitApply(p)) => self.pod(&p),
                Change::Redis(Event::Delete(r)) => {
                    self.wanted.remove(&r.name_any());
                    self.remove(0, "rediscluster", r.name_any())
                }
                Change::Set(Event::Delete(s)) => self.remove(1, "statefulset", s.name_any()),
                Change::Pod(Event::Delete(p)) => self.remove(2, "pod", p.name_any()),
                _ => continue,
            };
            if !said.is_empty() {
                return Ok(said);
            }
        }
    }

    fn redis(&mut self, redis: &RedisCluster) -> Vec<String> {
        let name = redis.name_any();
        let ready = redis.status.as_ref().and_then(|s| s.ready_replicas).unwrap_or(0);
        self.wanted.insert(name.clone(), (redis.spec.replicas, ready));
        let state = if ready == redis.spec.replicas { "Converged" } else { "Converging" };
        self.put(
            0,
            "rediscluster",
            name,
            format!("{ready}/{}", redis.spec.replicas),
            state.into(),
            String::new(),
        )
    }

    fn set(&mut self, set: &StatefulSet) -> Vec<String> {
        let wanted = set.spec.as_ref().and_then(|s| s.replicas).unwrap_or(1);
        let ready = set.status.as_ref().and_then(|s| s.ready_replicas).unwrap_or(0);
        let state = if ready == wanted { "Complete" } else { "Rolling" };
        self.put(1, "statefulset", set.name_any(), format!("{ready}/{wanted}"), state.into(), String::new())
    }

    fn pod(&mut self, pod: &Pod) -> Vec<String> {
        let statuses = pod.status.as_ref().and_then(|s| s.container_statuses.as_deref()).unwrap_or_default();
        let ready = statuses.iter().filter(|c| c.ready).count();
        let all = pod.spec.as_ref().map_or(0, |s| s.containers.len());
        let waiting = statuses.iter().find_map(|c| c.state.as_ref()?.waiting.as_ref()?.reason.clone());
        let phase = pod.status.as_ref().and_then(|s| s.phase.clone());
        let state = match (&pod.metadata.deletion_timestamp, waiting) {
            (Some(_), _) => "Terminating".to_owned(),
            (None, Some(reason)) => reason,
            (None, None) => phase.unwrap_or_else(|| "Pending".to_owned()),
        };
        let node = pod.spec.as_ref().and_then(|s| s.node_name.clone()).unwrap_or_default();
        self.put(2, "pod", pod.name_any(), format!("{ready}/{all}"), state, node)
    }

    fn put(
        &mut self,
        rank: u8,
        kind: &'static str,
        name: String,
        ready: String,
        state: String,
        node: String,
    ) -> Vec<String> {
        let row = Row { kind, name: name.clone(), ready, state, node };
        let on = if row.node.is_empty() { String::new() } else { format!(" on {}", row.node) };
        let said = match self.rows.get(&(rank, name.clone())) {
            Some(old) if *old == row => return Vec::new(),
            _ => format!("{kind}/{name}: {}, ready {}{on}", row.state, row.ready),
        };
        self.rows.insert((rank, name), row);
        vec![said]
    }

    fn remove(&mut self, rank: u8, kind: &str, name: String) -> Vec<String> {
        let said = format!("{kind}/{name}: gone");
        self.rows.remove(&(rank, name));
        vec![said]
    }

    /// The table: RedisClusters, then StatefulSets, then Pods.
    pub(super) fn rows(&self) -> Vec<Row> {
        self.rows.values().cloned().collect()
    }

    /// Whether as many replicas are ready as are wanted.
    pub(super) fn converged(&self, name: &str) -> bool {
        self.wanted.get(name).is_some_and(|(wanted, ready)| wanted == ready)
    }

    /// What stands between here and there.
    pub(super) fn missing(&self, name: &str) -> String {
        let mut parts = Vec::new();
        match self.wanted.get(name) {
            Some((wanted, ready)) => parts.push(format!("{ready} of {wanted} replicas of {name} are ready")),
            None => parts.push(format!("rediscluster {name} has not been seen")),
        }
        let unready = self.rows.values().filter(|r| r.kind == "pod" && r.state != "Running");
        parts.extend(unready.map(|r| format!("pod {} is {}", r.name, r.state)));
        parts.join("; ")
    }
}
