//! What a simulated node does at a moment: heard of or lost, with which conditions and devices.
//!
//! A function of the behavior, of when both were made, and of the moment; nothing is remembered. A node whose stages
//! are over is well.

use std::collections::BTreeMap;
use std::time::Duration;

use homeostat_model::Timestamp;

use super::{Choice, Condition, NodeBehavior, NodeStage};

/// A node at a moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeState {
    /// Nothing is heard of it.
    pub lost: bool,
    /// Reboots that are over.
    pub boots: u64,
    /// Conditions that it reports instead of its own.
    pub conditions: Vec<Condition>,
    /// Unhealthy devices, by resource.
    pub unhealthy: BTreeMap<String, i64>,
    /// When this changes; `None`: as far as is known, never.
    pub until: Option<Timestamp>,
}

/// The state of the node `name` with these labels, made at `made`, at `now`.
pub fn state(
    choice: &Choice,
    name: &str,
    labels: &BTreeMap<String, String>,
    made: Timestamp,
    now: Timestamp,
) -> NodeState {
    let Some((behavior, since)) = choice.node(name, labels) else { return NodeState::default() };
    let jitter = |stage: usize, s: &NodeStage| choice.node_jitter(name, stage, s.jitter);
    at(behavior, jitter, made.max(since), now)
}

fn at(
    behavior: &NodeBehavior,
    jitter: impl Fn(usize, &NodeStage) -> Duration,
    origin: Timestamp,
    now: Timestamp,
) -> NodeState {
    let elapsed = Duration::try_from(now.duration_since(origin)).unwrap_or(Duration::ZERO);
    let lasts = |i: usize, s: &NodeStage| s.lasts.map(|l| l.0 + jitter(i, s));
    let endless = behavior.stages.iter().any(|s| s.lasts.is_none());
    let turn: Duration = behavior.stages.iter().enumerate().filter_map(|(i, s)| lasts(i, s)).sum();
    let turn = turn.max(Duration::from_secs(1));
    let repeats = behavior.repeat && !endless;
    let turns = if repeats { elapsed.as_nanos() / turn.as_nanos() } else { 0 };
    let past = turn.saturating_mul(u32::try_from(turns).unwrap_or(u32::MAX));
    let reboots = behavior.stages.iter().filter(|s| s.reboot).count() as u64;
    let mut boots = reboots * u64::try_from(turns).unwrap_or(u64::MAX);
    let when = |d: Duration| origin.checked_add(d).ok();
    let mut begin = past;
    for (i, stage) in behavior.stages.iter().enumerate() {
        let end = lasts(i, stage).map(|l| begin + l);
        if end.is_none_or(|end| elapsed < end) {
            return NodeState {
                lost: stage.lost || stage.reboot,
                boots,
                conditions: stage.conditions.clone(),
                unhealthy: stage.unhealthy.clone(),
                until: end.and_then(when),
            };
        }
        boots += u64::from(stage.reboot);
        begin = end.unwrap_or(begin);
    }
    NodeState { boots, until: if repeats { when(past + turn) } else { None }, ..NodeState::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn second(s: i64) -> Timestamp {
        Timestamp::from_second(1_700_000_000 + s).unwrap()
    }

    /// `lost boots unhealthy until` at a second.
    #[track_caller]
    fn check(behavior: &serde_json::Value, s: i64, want: (bool, u64, i64, Option<i64>)) {
        let behavior: NodeBehavior = serde_json::from_value(behavior.clone()).unwrap();
        let state = at(&behavior, |_, _| Duration::ZERO, second(0), second(s));
        let gpus = state.unhealthy.values().sum();
        let until = state.until.map(|t| t.as_second() - 1_700_000_000);
        assert_eq!((state.lost, state.boots, gpus, until), want, "at {s}");
    }

    #[test]
    fn a_node_goes_and_comes_back() {
        let b = json!({"stages": [{"for": "60s"}, {"for": "30s", "lost": true}]});
        check(&b, 0, (false, 0, 0, Some(60)));
        check(&b, 60, (true, 0, 0, Some(90)));
        check(&b, 90, (false, 0, 0, None));
        check(&b, -5, (false, 0, 0, Some(60)));
    }

    #[test]
    fn reboots_are_counted_in_every_turn() {
        let b = json!({"repeat": true, "stages": [{"for": "5s"}, {"for": "5s", "reboot": true}]});
        check(&b, 7, (true, 0, 0, Some(10)));
        check(&b, 12, (false, 1, 0, Some(15)));
        check(&b, 31, (false, 3, 0, Some(35)));
    }

    #[test]
    fn devices_turn_unhealthy_for_ever_where_nothing_says_how_long() {
        let b = json!({"stages": [{"for": "5s"}, {"unhealthy": {"nvidia.com/gpu": 2}}]});
        check(&b, 4, (false, 0, 0, Some(5)));
        check(&b, 500, (false, 0, 2, None));
    }
}
