//! From the wanted number of replicas to the one that is set: bounds, stabilization windows and rates of change.
//!
//! It remembers recent recommendations and changes of one autoscaler. Forgetting them (a restart) lets a change happen
//! sooner, nothing worse.
//! Invariant: nothing older than the longest window is kept.

use std::time::Duration;

use homeostat_model::Timestamp;
use k8s_openapi::api::autoscaling::v2::{HPAScalingRules, HorizontalPodAutoscalerBehavior};

/// How long a lower recommendation has to hold where nothing is said (the reference's default).
const DOWN_WINDOW: i32 = 300;

/// What an autoscaler lately wanted and did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct History {
    recommendations: Vec<(i32, Timestamp)>,
    ups: Vec<(i32, Timestamp)>,
    downs: Vec<(i32, Timestamp)>,
}

/// Bounds and the present.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) current: i32,
    pub(super) min: i32,
    pub(super) max: i32,
    pub(super) now: Timestamp,
}

/// A reason and its message.
pub(super) type Why = (&'static str, &'static str);

/// What is set, and why it isn't what was wanted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Normal {
    pub(super) replicas: i32,
    /// Of `AbleToScale`.
    pub(super) able: Why,
    /// Of `ScalingLimited`, and whether it is.
    pub(super) limited: (bool, Why),
}

const READY: Why = ("ReadyForNewScale", "recommended size matches current size");
const UP_STABILIZED: Why = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const DOWN_STABILIZED: Why = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const WITHIN: Why = ("DesiredWithinRange", "the desired count is within the acceptable range");
const TOO_FEW: Why = ("TooFewReplicas", "the desired replica count is less than the minimum replica count");
const TOO_MANY: Why = ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const UP_LIMIT: Why =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const DOWN_LIMIT: Why =
    ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");

fn ago(now: Timestamp, seconds: i32) -> Timestamp {
    now.checked_sub(Duration::from_secs(u64::try_from(seconds).unwrap_or(0))).unwrap_or(Timestamp::MIN)
}

/// Rules with the API's defaults filled in.
struct Rules<'a> {
    window: i32,
    select: &'a str,
    /// Whether it counts pods (else percents), how many, in how many seconds.
    policies: Vec<(bool, i32, i32)>,
}

fn rules(given: Option<&HPAScalingRules>, up: bool) -> Rules<'_> {
    let given_policies = given.and_then(|r| r.policies.as_deref()).filter(|p| !p.is_empty());
    let policies = match given_policies {
        Some(all) => all.iter().map(|p| (p.type_ == "Pods", p.value, p.period_seconds)).collect(),
        None if up => vec![(true, 4, 15), (false, 100, 15)],
        None => vec![(false, 100, 15)],
    };
    Rules {
        window: given.and_then(|r| r.stabilization_window_seconds).unwrap_or(if up {
            0
        } else {
            DOWN_WINDOW
        }),
        select: given.and_then(|r| r.select_policy.as_deref()).unwrap_or("Max"),
        policies,
    }
}

/// The sum of changes in the last `period` seconds.
fn changed(events: &[(i32, Timestamp)], period: i32, now: Timestamp) -> i32 {
    let cutoff = ago(now, period);
    events.iter().filter(|(_, at)| *at > cutoff).map(|(n, _)| n).sum()
}

impl History {
    /// The first time that an autoscaler is looked at, what there is counts as recommended.
    pub(super) fn begin(&mut self, current: i32, now: Timestamp) {
        if self.recommendations.is_empty() {
            self.recommendations.push((current, now));
        }
    }

    fn recommend(&mut self, wanted: i32, window: i32, now: Timestamp) {
        let cutoff = ago(now, window);
        self.recommendations.retain(|(_, at)| *at >= cutoff);
        self.recommendations.push((wanted, now));
    }

    /// What is set where `wanted` is wanted.
    pub(super) fn normalize(
        &mut self,
        behavior: Option<&HorizontalPodAutoscalerBehavior>,
        bounds: Bounds,
        wanted: i32,
    ) -> Normal {
        let (stable, why) = match behavior {
            None => (self.stabilize_down(wanted, bounds.now), DOWN_STABILIZED),
            Some(b) => self.stabilize(b, bounds, wanted),
        };
        let (replicas, limit) = match behavior {
            None => bound(bounds, stable),
            Some(b) => self.rate(b, bounds, stable),
        };
        Normal {
            replicas,
            able: if stable == wanted { READY } else { why },
            limited: (replicas != stable, limit),
        }
    }

    fn stabilize_down(&mut self, wanted: i32, now: Timestamp) -> i32 {
        let cutoff = ago(now, DOWN_WINDOW);
        let recent = self.recommendations.iter().filter(|(_, at)| *at >= cutoff).map(|(n, _)| *n);
        let stable = recent.max().unwrap_or(wanted).max(wanted);
        self.recommend(wanted, DOWN_WINDOW, now);
        stable
    }

    fn stabilize(
        &mut self,
        behavior: &HorizontalPodAutoscalerBehavior,
        bounds: Bounds,
        wanted: i32,
    ) -> (i32, Why) {
        let up = rules(behavior.scale_up.as_ref(), true).window;
        let down = rules(behavior.scale_down.as_ref(), false).window;
        let since = |window| {
            let cutoff = ago(bounds.now, window);
            self.recommendations.iter().filter(move |(_, at)| *at > cutoff).map(|(n, _)| *n)
        };
        let at_least = since(up).min().unwrap_or(wanted).min(wanted);
        let at_most = since(down).max().unwrap_or(wanted).max(wanted);
        let stable = bounds.current.max(at_least).min(at_most);
        self.recommend(wanted, up.max(down), bounds.now);
        (stable, if wanted >= bounds.current { UP_STABILIZED } else { DOWN_STABILIZED })
    }

    fn rate(&self, behavior: &HorizontalPodAutoscalerBehavior, bounds: Bounds, wanted: i32) -> (i32, Why) {
        let Bounds { current, min, max, .. } = bounds;
        if wanted > current {
            let limit = self.up_limit(&rules(behavior.scale_up.as_ref(), true), bounds).max(current);
            let (most, why) = if max > limit { (limit, UP_LIMIT) } else { (max, TOO_MANY) };
            if wanted > most {
                return (most, why);
            }
        } else if wanted < current {
            let limit = self.down_limit(&rules(behavior.scale_down.as_ref(), false), bounds).min(current);
            let (least, why) = if min < limit { (limit, DOWN_LIMIT) } else { (min, TOO_FEW) };
            if wanted < least {
                return (least, why);
            }
        }
        (wanted, WITHIN)
    }

    fn begun_with(&self, period: i32, bounds: Bounds) -> i32 {
        let (ups, downs) = (changed(&self.ups, period, bounds.now), changed(&self.downs, period, bounds.now));
        bounds.current.saturating_sub(ups).saturating_add(downs)
    }

    fn up_limit(&self, rules: &Rules<'_>, bounds: Bounds) -> i32 {
        let proposals = rules.policies.iter().map(|&(pods, value, period)| {
            let start = self.begun_with(period, bounds);
            // Rounded up: a small percentage of few would never grow.
            if pods { start.saturating_add(value) } else { percent(start, 100 + i64::from(value), true) }
        });
        match rules.select {
            "Disabled" => bounds.current,
            "Min" => proposals.min().unwrap_or(i32::MAX),
            _ => proposals.max().unwrap_or(0),
        }
    }

    fn down_limit(&self, rules: &Rules<'_>, bounds: Bounds) -> i32 {
        let proposals = rules.policies.iter().map(|&(pods, value, period)| {
            let start = self.begun_with(period, bounds);
            if pods { start.saturating_sub(value) } else { percent(start, 100 - i64::from(value), false) }
        });
        match rules.select {
            "Disabled" => bounds.current,
            "Min" => proposals.max().unwrap_or(i32::MIN),
            _ => proposals.min().unwrap_or(i32::MAX),
        }
    }

    /// Remembers a change that was made.
    pub(super) fn changed(
        &mut self,
        behavior: Option<&HorizontalPodAutoscalerBehavior>,
        from: i32,
        to: i32,
        now: Timestamp,
    ) {
        let Some(behavior) = behavior else { return };
        let up = to > from;
        let given = if up { behavior.scale_up.as_ref() } else { behavior.scale_down.as_ref() };
        let longest = rules(given, up).policies.iter().map(|p| p.2).max().unwrap_or(0);
        let events = if up { &mut self.ups } else { &mut self.downs };
        let cutoff = ago(now, longest);
        events.retain(|(_, at)| *at >= cutoff);
        events.push((to.abs_diff(from).try_into().unwrap_or(i32::MAX), now));
    }
}

fn percent(of: i32, percent: i64, up: bool) -> i32 {
    let hundredths = i64::from(of) * percent + if up { 99 } else { 0 };
    i32::try_from(hundredths.div_euclid(100)).unwrap_or(i32::MAX)
}

/// Without a behavior: at most twice as many at a time, or four.
fn bound(bounds: Bounds, wanted: i32) -> (i32, Why) {
    let limit = bounds.current.saturating_mul(2).max(4);
    let (most, why) = if bounds.max > limit { (limit, UP_LIMIT) } else { (bounds.max, TOO_MANY) };
    if wanted < bounds.min {
        (bounds.min, TOO_FEW)
    } else if wanted > most {
        (most, why)
    } else {
        (wanted, WITHIN)
    }
}
