//! Lives of pods in virtual time, as tables: what is to be seen at which second, and laws that hold of all lives.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Timestamp;
use k8s_openapi::api::core::v1::Pod;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::{Advance, News, Phase, Plan, Sandbox};
use crate::behavior::choice::Delays;
use crate::behavior::{Behavior, Choice};
use crate::events::events;
use crate::references::Lacking;
use crate::status::{Facts, status};

/// Without delays of its own, so that seconds can be read.
pub(crate) const PLAIN: Delays = Delays {
    sandbox: Duration::ZERO,
    pull: Duration::ZERO,
    start: Duration::ZERO,
    init: Duration::from_secs(1),
    job: Duration::from_secs(1),
    stop: Duration::from_secs(1),
    notice: Duration::ZERO,
    resize: Duration::ZERO,
};

pub(crate) fn at(s: f64) -> Timestamp {
    Timestamp::from_millisecond(1_700_000_000_000 + (s * 1000.0) as i64).unwrap()
}

/// A pod's life under some behaviors.
pub(crate) struct Life {
    pub(crate) pod: Pod,
    pub(crate) sandbox: Sandbox,
    choice: Choice,
    told: Vec<String>,
    lacking: Lacking,
    pub(crate) next: Option<Timestamp>,
}

impl Life {
    pub(crate) fn new(spec: Value, behaviors: &[Value]) -> Self {
        Self::with(PLAIN, spec, behaviors)
    }

    pub(crate) fn with(delays: Delays, spec: Value, behaviors: &[Value]) -> Self {
        let meta = json!({"name": "p", "namespace": "ns", "uid": "u", "generation": 1});
        let pod: Pod = serde_json::from_value(json!({"metadata": meta, "spec": spec})).unwrap();
        let behaviors = behaviors.iter().enumerate().map(|(i, b)| {
            Arc::new(Behavior::new(&format!("b{i:02}"), serde_json::from_value(b.clone()).unwrap()))
        });
        let choice = Choice::new(7, delays, behaviors);
        let sandbox = Sandbox::new(at(0.0), [10, 244, 0, 2].into());
        Self { pod, sandbox, choice, told: Vec::new(), lacking: Lacking::default(), next: None }
    }

    fn with_plan<T>(&mut self, f: impl FnOnce(&Plan<'_>, &mut Sandbox, &mut Vec<News>) -> T) -> T {
        let plan = Plan::new(&self.pod, &self.choice, |_| true).lacking(self.lacking.clone());
        let mut news = Vec::new();
        let result = f(&plan, &mut self.sandbox, &mut news);
        for item in &news {
            let offset = (item.at.as_millisecond() - at(0.0).as_millisecond()) as f64 / 1000.0;
            for event in events(&plan, &self.sandbox, item) {
                let event = format!("{event:?}");
                let field = |name: &str| {
                    let rest = event.split_once(&format!("{name}: \"")).map_or("", |(_, r)| r);
                    rest.split("\", ").next().unwrap_or_default().replace("\\\"", "'")
                };
                self.told.push(format!("{offset} {}: {}", field("reason"), field("note")));
            }
        }
        result
    }

    /// At once to a second.
    pub(crate) fn to(&mut self, s: f64) -> &mut Self {
        self.go_on(at(s))
    }

    fn go_on(&mut self, t: Timestamp) -> &mut Self {
        self.next = self.with_plan(|plan, sandbox, told| {
            let Advance { next, news } = sandbox.advance(plan, t, |_| (0, 0));
            told.extend(news);
            next
        });
        self
    }

    /// Event by event to a second.
    fn punctually_to(&mut self, s: f64) {
        self.to(0.0);
        while let Some(next) = self.next.filter(|n| *n <= at(s)) {
            self.go_on(next);
        }
    }

    pub(crate) fn delete(&mut self, s: f64, grace: u64) -> &mut Self {
        self.to(s);
        self.with_plan(|plan, sandbox, told| sandbox.delete(plan, at(s), Duration::from_secs(grace), told));
        self.to(s)
    }

    pub(crate) fn status(&mut self, s: f64) -> k8s_openapi::api::core::v1::PodStatus {
        self.with_plan(|plan, sandbox, _| {
            status(plan, sandbox, &Facts { host: "172.18.0.2", pending: None, now: at(s) })
        })
    }

    /// `Phase name:state[restarts]…`, a `+` after what is ready.
    fn seen(&mut self, s: f64) -> String {
        let status = self.status(s);
        let mut text = status.phase.clone().unwrap();
        let all = [
            &status.init_container_statuses,
            &status.container_statuses,
            &status.ephemeral_container_statuses,
        ];
        for c in all.into_iter().flatten().flatten() {
            let state = c.state.clone().unwrap();
            let state = match (state.waiting, state.running, state.terminated) {
                (Some(w), _, _) => w.reason.unwrap(),
                (_, Some(_), _) => "running".to_owned(),
                (_, _, Some(t)) => format!("{}({})", t.reason.unwrap(), t.exit_code),
                _ => "nothing".to_owned(),
            };
            let _ =
                write!(text, " {}:{state}[{}]{}", c.name, c.restart_count, if c.ready { "+" } else { "" });
        }
        text
    }
}

/// What is to be seen at some seconds of a life.
#[track_caller]
fn check(spec: Value, behaviors: &[Value], want: &[(f64, &str)]) {
    let mut life = Life::new(spec, behaviors);
    for (s, want) in want {
        let got = life.to(*s).seen(*s);
        assert_eq!(&got, want, "at {s} s");
    }
}

#[track_caller]
fn check_told(life: &Life, want: &[&str]) {
    assert_eq!(life.told, want);
}

fn stages(stages: Value) -> Value {
    json!({"container": {"run": {"stages": stages}}})
}

fn of(containers: Value, behavior: Value) -> Value {
    let mut behavior = behavior;
    behavior["selector"] = json!({"containers": containers});
    behavior
}

#[test]
fn a_plain_pod_passes_through_the_real_phases() {
    let mut life =
        Life::with(Delays::default(), json!({"containers": [{"name": "c", "image": "redis:7"}]}), &[]);
    for (s, want) in [
        (0.0, "Pending c:ContainerCreating[0]"),
        (0.04, "Pending c:ContainerCreating[0]"),
        (0.09, "Running c:running[0]+"),
        (500.0, "Running c:running[0]+"),
    ] {
        assert_eq!(life.to(s).seen(s), want, "at {s}");
    }
    assert_eq!(life.next, None);
    assert_eq!(life.delete(600.0, 30).seen(600.0), "Running c:running[0]+");
    assert_eq!(life.to(600.04).seen(600.04), "Succeeded c:Completed(0)[0]");
    check_told(
        &life,
        &[
            "0.03 Pulled: Container image 'redis:7' already present on machine and can be accessed by the pod",
            "0.09 Created: Container created",
            "0.09 Started: Container started",
            "600 Killing: Stopping container c",
        ],
    );
}

#[test]
fn a_container_waits_for_what_it_is_configured_with() {
    let mut life = Life::new(json!({"containers": [{"name": "c", "image": "i"}, {"name": "d"}]}), &[]);
    life.lacking.containers.insert("c".into(), "secret \"x\" not found".into());
    assert_eq!(life.to(5.0).seen(5.0), "Pending c:CreateContainerConfigError[0] d:running[0]+");
    let waiting = life.status(5.0).container_statuses.unwrap()[0].state.clone().unwrap().waiting.unwrap();
    assert_eq!(waiting.message.as_deref(), Some("secret \"x\" not found"));
    life.to(15.0);
    life.lacking = Lacking::default();
    assert_eq!(life.to(19.0).seen(19.0), "Pending c:CreateContainerConfigError[0] d:running[0]+");
    assert_eq!(life.to(20.0).seen(20.0), "Running c:running[0]+ d:running[0]+");
    let told: Vec<&String> = life.told.iter().filter(|t| t.contains("Failed:")).collect();
    let want = ["0 Failed: Error: secret 'x' not found", "10 Failed: Error: secret 'x' not found"];
    assert_eq!(told, want);
}

#[test]
fn a_pod_waits_for_its_volumes() {
    let spec = json!({"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]});
    let mut life = Life::new(spec, &[]);
    life.lacking.volume = Some(("v".into(), "configmap \"x\" not found".into()));
    assert_eq!(life.to(3.0).seen(3.0), "Pending i:PodInitializing[0] c:PodInitializing[0]");
    assert_eq!(life.status(3.0).pod_ip, None);
    life.lacking = Lacking::default();
    // Tried at 0, 0.5, 1.5, 3.5 s.
    assert_eq!(life.to(3.4).seen(3.4), "Pending i:PodInitializing[0] c:PodInitializing[0]");
    assert_eq!(life.to(5.0).seen(5.0), "Running i:Completed(0)[0]+ c:running[0]+");
    let why = "FailedMount: MountVolume.SetUp failed for volume 'v' : configmap 'x' not found";
    let told: Vec<&String> = life.told.iter().filter(|t| t.contains("FailedMount")).collect();
    assert_eq!(
        told,
        [format!("0 {why}"), format!("0.5 {why}"), format!("1.5 {why}")].iter().collect::<Vec<_>>()
    );
}

#[test]
fn a_crashing_container_is_restarted_after_growing_delays() {
    let spec = json!({"containers": [{"name": "c"}]});
    check(
        spec.clone(),
        &[stages(json!([{"for": "1s", "exit": {"code": 3}}]))],
        &[
            (0.5, "Running c:running[0]+"),
            // The first restart comes at once, the second after 10 s.
            (1.5, "Running c:running[1]+"),
            (2.5, "Running c:CrashLoopBackOff[1]"),
            (12.5, "Running c:running[2]+"),
            (13.5, "Running c:CrashLoopBackOff[2]"),
            (33.5, "Running c:running[3]+"),
            (34.5, "Running c:CrashLoopBackOff[3]"),
        ],
    );
    let mut life = Life::new(spec, &[stages(json!([{"for": "1s", "exit": {"code": 3, "message": "no"}}]))]);
    let status = life.to(2.5).status(2.5).container_statuses.unwrap().remove(0);
    let waiting = status.state.unwrap().waiting.unwrap();
    assert_eq!(waiting.message.unwrap(), "back-off 10s restarting failed container=c pod=p_ns(u)");
    let last = status.last_state.unwrap().terminated.unwrap();
    assert_eq!(
        (last.exit_code, last.reason.unwrap().as_str(), last.message.unwrap().as_str()),
        (3, "Error", "no")
    );
    assert!(
        life.told.contains(&"2 BackOff: Back-off restarting failed container c in pod p_ns(u)".to_owned())
    );
}

#[test]
fn a_long_run_makes_the_delays_begin_anew() {
    let crash = |restarts: Value, seconds: u64| {
        let mut b = stages(json!([{"for": format!("{seconds}s"), "exit": {"code": 1}}]));
        b["selector"] = json!({"restarts": restarts});
        b
    };
    let behaviors =
        [crash(json!({"to": 1}), 1), crash(json!({"from": 2, "to": 2}), 700), crash(json!({"from": 3}), 1)];
    check(
        json!({"containers": [{"name": "c"}]}),
        &behaviors,
        &[
            (2.5, "Running c:CrashLoopBackOff[1]"),
            (12.5, "Running c:running[2]+"),
            (712.5, "Running c:running[3]+"),
        ],
    );
}

#[test]
fn restart_policies_decide_who_comes_again() {
    let ends = |code: i32| [stages(json!([{"for": "1s", "exit": {"code": code}}]))];
    let pod = |policy: &str| json!({"restartPolicy": policy, "containers": [{"name": "c"}]});
    check(pod("Never"), &ends(0), &[(1.5, "Succeeded c:Completed(0)[0]")]);
    check(pod("Never"), &ends(1), &[(1.5, "Failed c:Error(1)[0]")]);
    check(pod("OnFailure"), &ends(0), &[(1.5, "Succeeded c:Completed(0)[0]")]);
    check(pod("OnFailure"), &ends(1), &[(1.5, "Running c:running[1]+")]);
    check(pod("Always"), &ends(0), &[(1.5, "Running c:running[1]+"), (2.5, "Running c:CrashLoopBackOff[1]")]);
    // A container's own policy and rules come before the pod's.
    let own = json!({"restartPolicy": "Always", "containers": [{"name": "c", "restartPolicy": "Never"}]});
    check(own, &ends(1), &[(1.5, "Failed c:Error(1)[0]")]);
    let rules = json!([{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]);
    let ruled = json!({"restartPolicy": "Never", "containers": [
        {"name": "c", "restartPolicy": "Never", "restartPolicyRules": rules}]});
    check(ruled.clone(), &ends(42), &[(1.5, "Running c:running[1]+")]);
    check(ruled, &ends(1), &[(1.5, "Failed c:Error(1)[0]")]);
}

#[test]
fn out_of_memory_is_told_as_such() {
    check(
        json!({"restartPolicy": "Never", "containers": [{"name": "c"}, {"name": "d"}]}),
        &[of(json!(["c"]), stages(json!([{"for": "5s", "exit": {"code": 137, "reason": "OOMKilled"}}])))],
        &[(5.5, "Running c:OOMKilled(137)[0] d:running[0]+")],
    );
}

#[test]
fn init_containers_run_one_by_one_and_sidecars_go_on() {
    let spec = json!({
        "initContainers": [{"name": "i"}, {"name": "s", "restartPolicy": "Always"}, {"name": "j"}],
        "containers": [{"name": "m"}]
    });
    check(
        spec.clone(),
        &[],
        &[
            (0.5, "Pending i:running[0] s:PodInitializing[0] j:PodInitializing[0] m:PodInitializing[0]"),
            (1.5, "Pending i:Completed(0)[0]+ s:running[0]+ j:running[0] m:PodInitializing[0]"),
            (2.5, "Running i:Completed(0)[0]+ s:running[0]+ j:Completed(0)[0]+ m:running[0]+"),
        ],
    );
    // The sidecar ends after the main container, and a second after its signal.
    let mut life = Life::new(spec, &[]);
    let ends = "Running i:Completed(0)[0]+ s:running[0]+ j:Completed(0)[0]+ m:Completed(0)[0]";
    life.delete(10.0, 30);
    assert_eq!(life.to(11.5).seen(11.5), ends);
    let over = "Succeeded i:Completed(0)[0]+ s:Completed(0)[0] j:Completed(0)[0]+ m:Completed(0)[0]";
    assert_eq!(life.to(12.5).seen(12.5), over);
}

#[test]
fn a_failing_init_container_holds_up_the_pod_or_fails_it() {
    let spec = |policy: &str| json!({"restartPolicy": policy, "initContainers": [{"name": "i"}], "containers": [{"name": "m"}]});
    let fails = [of(json!(["i"]), stages(json!([{"for": "1s", "exit": {"code": 1}}])))];
    check(spec("Never"), &fails, &[(1.5, "Failed i:Error(1)[0] m:PodInitializing[0]")]);
    check(
        spec("Always"),
        &fails,
        &[
            (1.5, "Pending i:running[1] m:PodInitializing[0]"),
            (2.5, "Pending i:CrashLoopBackOff[1] m:PodInitializing[0]"),
        ],
    );
    let once = {
        let mut b = fails[0].clone();
        b["selector"]["restarts"] = json!({"to": 0});
        [b]
    };
    check(spec("OnFailure"), &once, &[(2.5, "Running i:Completed(0)[1]+ m:running[0]+")]);
}

#[test]
fn a_job_with_a_sidecar_finishes() {
    let spec = json!({
        "restartPolicy": "Never",
        "initContainers": [{"name": "s", "restartPolicy": "Always"}], "containers": [{"name": "m"}]
    });
    check(
        spec,
        &[of(json!(["m"]), stages(json!([{"for": "2s", "exit": {"code": 0}}])))],
        &[
            (1.5, "Running s:running[0]+ m:running[0]+"),
            (2.5, "Running s:running[0]+ m:Completed(0)[0]"),
            (3.5, "Succeeded s:Completed(0)[0] m:Completed(0)[0]"),
        ],
    );
}

#[test]
fn a_sidecar_must_have_started_before_the_next_begins() {
    let probe = json!({"tcpSocket": {"port": 1}, "periodSeconds": 1, "failureThreshold": 30});
    let spec = json!({
        "initContainers": [{"name": "s", "restartPolicy": "Always", "startupProbe": probe}],
        "containers": [{"name": "m"}]
    });
    check(
        spec,
        &[of(json!(["s"]), stages(json!([{"for": "3s", "started": false}, {}])))],
        &[(2.5, "Pending s:running[0] m:PodInitializing[0]"), (3.5, "Running s:running[0]+ m:running[0]+")],
    );
}

#[test]
fn absent_images_are_tried_again_after_growing_delays() {
    let spec = json!({"containers": [{"name": "c", "image": "nope:1"}]});
    let absent = json!({"container": {"pull": {"error": "not found"}}});
    let mut delays = PLAIN;
    delays.notice = Duration::from_secs(1);
    let mut life = Life::with(delays, spec.clone(), &[absent]);
    for (s, want) in [
        (0.5, "Pending c:ErrImagePull[0]"),
        (1.5, "Pending c:ImagePullBackOff[0]"),
        (10.5, "Pending c:ErrImagePull[0]"),
        (29.5, "Pending c:ImagePullBackOff[0]"),
        (30.5, "Pending c:ErrImagePull[0]"),
    ] {
        assert_eq!(life.to(s).seen(s), want, "at {s}");
    }
    let waiting =
        life.to(35.0).status(35.0).container_statuses.unwrap().remove(0).state.unwrap().waiting.unwrap();
    assert_eq!(waiting.message.unwrap(), "Back-off pulling image \"nope:1\": ErrImagePull: not found");
    assert_eq!(
        life.told[..5],
        [
            "0 Pulling: Pulling image 'nope:1'",
            "0 Failed: Failed to pull image 'nope:1': not found",
            "0 Failed: Error: ErrImagePull",
            "1 BackOff: Back-off pulling image 'nope:1'",
            "1 Failed: Error: ImagePullBackOff",
        ]
    );
    let later = json!({"container": {"pull": {"error": "not yet", "failures": 2}}});
    check(
        spec,
        &[later],
        &[(29.5, "Pending c:ImagePullBackOff[0]"), (30.5, "Running c:running[0]+")].map(|x| x),
    );
    let never = json!({"containers": [{"name": "c", "image": "i", "imagePullPolicy": "Never"}]});
    let absent = json!({"container": {"pull": {"error": "not found"}}});
    check(never, &[absent], &[(5.0, "Pending c:ErrImageNeverPull[0]")]);
}

#[test]
fn pulls_take_their_time() {
    let spec = json!({"containers": [{"name": "c", "image": "i", "imagePullPolicy": "Always"}]});
    let slow = json!({"container": {"pull": {"delay": "4.5s", "size": 7}, "start": {"delay": "2s"}}});
    let mut life = Life::new(spec, &[slow]);
    assert_eq!(life.to(6.0).seen(6.0), "Pending c:ContainerCreating[0]");
    assert_eq!(life.to(6.5).seen(6.5), "Running c:running[0]+");
    assert_eq!(
        life.told[..2],
        [
            "0 Pulling: Pulling image 'i'",
            "4.5 Pulled: Successfully pulled image 'i' in 4.5s (4.5s including waiting). Image size: 7 bytes.",
        ]
    );
}

#[test]
fn what_cannot_start_crashes() {
    let fails = json!({"container": {"start": {"error": "exec: no such file"}}});
    let mut life = Life::new(json!({"containers": [{"name": "c"}]}), &[fails]);
    assert_eq!(life.to(5.0).seen(5.0), "Running c:CrashLoopBackOff[1]");
    let last = life.status(5.0).container_statuses.unwrap().remove(0).last_state.unwrap().terminated.unwrap();
    assert_eq!((last.exit_code, last.reason.as_deref()), (128, Some("StartError")));
    assert!(life.told.iter().any(|t| t == "0 Failed: Error: exec: no such file"), "{:?}", life.told);
}

fn probed(probes: Value) -> Value {
    let mut container = json!({"name": "c"});
    for (name, numbers) in probes.as_object().unwrap() {
        let mut probe = json!({"httpGet": {"port": 80}});
        for (k, v) in numbers.as_object().unwrap() {
            probe[k] = v.clone();
        }
        container[name] = probe;
    }
    json!({"containers": [container]})
}

#[test]
fn readiness_follows_the_probe_with_its_delays_and_thresholds() {
    let spec = |success: i32| {
        probed(json!({"readinessProbe":
            {"initialDelaySeconds": 5, "periodSeconds": 10, "failureThreshold": 2, "successThreshold": success}}))
    };
    check(spec(1), &[], &[(4.5, "Running c:running[0]"), (5.5, "Running c:running[0]+")]);
    check(spec(3), &[], &[(24.5, "Running c:running[0]"), (25.5, "Running c:running[0]+")]);
    // Unready from 30 s: asked at 35 and 45; ready from 60 s: asked at 65.
    let flaps = stages(json!([{"for": "30s"}, {"for": "30s", "ready": false}, {}]));
    check(
        spec(1),
        std::slice::from_ref(&flaps),
        &[
            (44.5, "Running c:running[0]+"),
            (45.5, "Running c:running[0]"),
            (64.5, "Running c:running[0]"),
            (65.5, "Running c:running[0]+"),
        ],
    );
    let mut life = Life::new(spec(1), &[flaps]);
    life.to(100.0);
    let unhealthy: Vec<&String> = life.told.iter().filter(|t| t.contains("Unhealthy")).collect();
    let text = "Unhealthy: Readiness probe failed: HTTP probe failed with statuscode: 503";
    assert_eq!(unhealthy, [&format!("35 {text}"), &format!("45 {text}")]);
}

#[test]
fn readiness_flaps_for_ever_where_the_stages_repeat() {
    let spec = probed(json!({"readinessProbe": {"periodSeconds": 1, "failureThreshold": 1}}));
    let flaps = json!({"container": {"run": {"repeat": true, "stages": [{"for": "10s"}, {"for": "10s", "ready": false}]}}});
    let want: Vec<(f64, &str)> = (0..20)
        .map(|i| {
            (f64::from(i) * 10.0 + 1.5, ["Running c:running[0]+", "Running c:running[0]"][i as usize % 2])
        })
        .collect();
    check(spec, &[flaps], &want);
}

#[test]
fn a_failed_liveness_probe_restarts_the_container() {
    let spec = probed(json!({"livenessProbe": {"periodSeconds": 10, "failureThreshold": 3}}));
    let dies = stages(json!([{"for": "15s"}, {"live": false}]));
    let mut life = Life::new(spec, &[dies]);
    // Asked at 20, 30 and 40; then it takes a second to stop.
    for (s, want) in [(40.5, "Running c:running[0]+"), (41.5, "Running c:running[1]+")] {
        assert_eq!(life.to(s).seen(s), want);
    }
    assert!(
        life.told.iter().any(|t| t == "40 Killing: Container c failed liveness probe, will be restarted")
    );
    assert_eq!(life.told.iter().filter(|t| t.contains("Liveness probe failed")).count(), 3);
}

#[test]
fn a_startup_probe_holds_the_others_back_and_kills_in_the_end() {
    let startup = json!({"periodSeconds": 5, "failureThreshold": 3});
    let spec = probed(
        json!({"startupProbe": startup, "livenessProbe": {"periodSeconds": 1, "failureThreshold": 1}}),
    );
    let slow = stages(json!([{"for": "8s", "started": false, "live": false}, {}]));
    check(spec.clone(), &[slow], &[(9.0, "Running c:running[0]"), (10.5, "Running c:running[0]+")]);
    let never = stages(json!([{"started": false}]));
    let mut life = Life::new(spec, &[never]);
    assert_eq!(life.to(10.5).seen(10.5), "Running c:running[0]");
    assert_eq!(life.to(11.5).seen(11.5), "Running c:running[1]");
    assert!(life.told.iter().any(|t| t == "10 Killing: Container c failed startup probe, will be restarted"));
}

#[test]
fn the_end_keeps_to_hooks_and_grace() {
    let hook = json!({"preStop": {"sleep": {"seconds": 5}}});
    let spec = json!({"containers": [{"name": "c", "lifecycle": hook}]});
    let seen =
        |behaviors: &[Value], grace, s| Life::new(spec.clone(), behaviors).delete(10.0, grace).to(s).seen(s);
    assert_eq!(seen(&[], 30, 15.5), "Running c:running[0]+");
    assert_eq!(seen(&[], 30, 16.5), "Succeeded c:Completed(0)[0]");
    // Longer than the grace period: killed.
    assert_eq!(seen(&[], 3, 13.5), "Failed c:Error(137)[0]");
    let deaf = [json!({"container": {"stop": {"ignore": true}}})];
    assert_eq!(seen(&deaf, 30, 39.5), "Running c:running[0]+");
    assert_eq!(seen(&deaf, 30, 40.5), "Failed c:Error(137)[0]");
    let code = [json!({"container": {"stop": {"code": 143, "delay": "2s"}}})];
    assert_eq!(seen(&code, 30, 17.5), "Failed c:Error(143)[0]");
    // Told again with less.
    let mut life = Life::new(spec.clone(), &deaf);
    life.delete(10.0, 30).delete(12.0, 1);
    assert_eq!(life.to(13.5).seen(13.5), "Failed c:Error(137)[0]");
}

#[test]
fn sidecars_end_in_reverse_order_and_get_what_is_left_of_the_grace() {
    let sidecar = |name: &str| json!({"name": name, "restartPolicy": "Always"});
    let spec = json!({"initContainers": [sidecar("a"), sidecar("b")], "containers": [{"name": "m"}]});
    let mut life = Life::new(spec.clone(), &[]);
    life.delete(10.0, 30);
    for (s, want) in [
        (10.5, "Running a:running[0]+ b:running[0]+ m:running[0]+"),
        (11.5, "Running a:running[0]+ b:running[0]+ m:Completed(0)[0]"),
        (12.5, "Running a:running[0]+ b:Completed(0)[0] m:Completed(0)[0]"),
        (13.5, "Succeeded a:Completed(0)[0] b:Completed(0)[0] m:Completed(0)[0]"),
    ] {
        assert_eq!(life.to(s).seen(s), want, "at {s}");
    }
    // The main container takes the whole grace period: sidecars get two seconds at least.
    let mut life = Life::new(spec, &[of(json!(["m"]), json!({"container": {"stop": {"ignore": true}}}))]);
    life.delete(10.0, 5);
    assert_eq!(life.to(15.5).seen(15.5), "Running a:running[0]+ b:running[0]+ m:Error(137)[0]");
    assert_eq!(life.to(16.5).seen(16.5), "Failed a:Completed(0)[0] b:Completed(0)[0] m:Error(137)[0]");
}

#[test]
fn a_pod_past_its_deadline_fails() {
    let mut life = Life::new(json!({"activeDeadlineSeconds": 10, "containers": [{"name": "c"}]}), &[]);
    assert_eq!(life.to(10.5).seen(10.5), "Running c:running[0]+");
    assert_eq!(life.to(11.5).seen(11.5), "Failed c:Completed(0)[0]");
    let status = life.status(11.5);
    assert_eq!(status.reason.as_deref(), Some("DeadlineExceeded"));
    assert_eq!(
        status.message.as_deref(),
        Some("Pod was active on the node longer than the specified deadline")
    );
}

#[test]
fn a_pod_deleted_before_it_ran_fails() {
    let spec = json!({"containers": [{"name": "c", "image": "i"}]});
    let absent = json!({"container": {"pull": {"error": "no"}}});
    let mut life = Life::new(spec, &[absent]);
    assert_eq!(life.delete(3.0, 30).seen(3.0), "Failed c:ContainerStatusUnknown(137)[0]");
}

#[test]
fn ephemeral_containers_run_once_beside_the_others() {
    let mut life = Life::new(json!({"containers": [{"name": "c"}]}), &[]);
    life.to(5.0);
    let debug = json!([{"name": "debug", "image": "busybox"}]);
    life.pod.spec.as_mut().unwrap().ephemeral_containers = serde_json::from_value(debug).unwrap();
    life.sandbox.touch(at(5.0));
    assert_eq!(life.to(5.5).seen(5.5), "Running c:running[0]+ debug:running[0]");
    assert_eq!(life.delete(6.0, 30).to(7.5).seen(7.5), "Succeeded c:Completed(0)[0] debug:Completed(0)[0]");
}

/// Any small pod with any behaviors.
fn lives() -> impl Strategy<Value = (Value, Vec<Value>)> {
    let probe = prop::option::of((0_i32..5, 1_i32..7, 1_i32..4));
    let probe = move || {
        probe.clone().prop_map(|p| {
            p.map(|(delay, period, failures)| {
                json!({"tcpSocket": {"port": 1}, "initialDelaySeconds": delay, "periodSeconds": period,
                    "failureThreshold": failures})
            })
        })
    };
    let container = |name: &'static str| {
        (probe(), probe(), probe()).prop_map(move |(startup, readiness, liveness)| {
            json!({"name": name, "image": name, "startupProbe": startup, "readinessProbe": readiness,
                "livenessProbe": liveness})
        })
    };
    let policy = prop::sample::select(vec!["Always", "OnFailure", "Never"]);
    let stage = (0_u32..20, 0_u32..3, any::<[bool; 3]>(), prop::option::of(0_i32..3)).prop_map(
        |(lasts, jitter, [started, ready, live], code)| {
            let exit = code.map(|code| json!({"code": code}));
            json!({"for": format!("{lasts}s"), "jitter": format!("{jitter}s"), "started": started, "ready": ready,
                "live": live, "exit": exit})
        },
    );
    let behavior = (
        prop::collection::vec(stage, 0..4),
        any::<bool>(),
        prop::sample::select(vec!["i", "s", "m", "*"]),
        prop::option::weighted(0.2, 0_i32..3),
    )
        .prop_map(|(stages, repeat, whom, failures)| {
            let pull = failures.map(|n| json!({"error": "no", "failures": n}));
            json!({"selector": {"containers": [whom]},
                "container": {"run": {"stages": stages, "repeat": repeat}, "pull": pull}})
        });
    let spec = (policy, container("i"), container("s"), container("m"), any::<[bool; 2]>()).prop_map(
        |(policy, mut init, mut sidecar, main, [with_init, with_sidecar])| {
            for probe in ["startupProbe", "readinessProbe", "livenessProbe"] {
                init.as_object_mut().unwrap().remove(probe);
            }
            sidecar["restartPolicy"] = json!("Always");
            let mut inits = Vec::new();
            inits.extend(with_init.then_some(init));
            inits.extend(with_sidecar.then_some(sidecar));
            json!({"restartPolicy": policy, "initContainers": inits, "containers": [main],
                "terminationGracePeriodSeconds": 5})
        },
    );
    (spec, prop::collection::vec(behavior, 0..3))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn late_is_punctual((spec, behaviors) in lives(), until in 0_u32..2000) {
        let until = f64::from(until) / 2.0;
        let (mut late, mut punctual) = (
            Life::with(Delays::default(), spec.clone(), &behaviors),
            Life::with(Delays::default(), spec, &behaviors),
        );
        late.to(until);
        punctual.punctually_to(until);
        prop_assert_eq!(&late.sandbox, &punctual.sandbox);
        prop_assert_eq!(late.next, punctual.next);
    }

    #[test]
    fn lives_keep_the_laws((spec, behaviors) in lives(), delete in 0_u32..190) {
        let mut life = Life::with(Delays::default(), spec, &behaviors);
        let (mut restarts, mut over) = (0, false);
        for s in 0..200 {
            let s = f64::from(s) * 1.5;
            if s == f64::from(delete) * 1.5 {
                life.delete(s, 5);
            }
            life.to(s);
            // What is due lies ahead.
            prop_assert!(life.next.is_none_or(|n| n > at(s)), "at {s}");
            let first = life.status(s);
            life.pod.status = Some(first.clone());
            prop_assert_eq!(life.status(s + 0.5), first.clone());
            let all = first.init_container_statuses.iter().chain(&first.container_statuses).flatten();
            let now: i32 = all.map(|c| c.restart_count).sum();
            prop_assert!(now >= restarts, "restarts go back at {s}");
            restarts = now;
            let ended = matches!(first.phase.as_deref(), Some("Succeeded" | "Failed"));
            prop_assert!(ended || !over, "a pod that was over runs again at {s}");
            over = ended;
            if ended {
                prop_assert!(!life.sandbox.containers.iter().any(super::Record::is_up));
            }
        }
        // Five seconds of grace, two for sidecars, and nobody is left.
        prop_assert!(life.sandbox.is_stopped());
        prop_assert!(!life.sandbox.containers.iter().any(|r| matches!(r.phase, Phase::Running)));
    }
}
