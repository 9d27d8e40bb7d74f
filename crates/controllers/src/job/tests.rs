//! The planner in tables, and Jobs lived through step by step.

use std::sync::Arc;

use homeostat_model::Timestamp;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};

use super::plan::{Plan, State, outcome, plan};
use super::template::{self, Failures, New};
use super::{TRACKING, indexes};

const NOW: i64 = 1_000_000;

fn time(offset: i64) -> String {
    Timestamp::from_second(NOW + offset).unwrap().to_string()
}

fn job(extra: Value, status: Value) -> Job {
    let mut spec = json!({"parallelism": 1, "completions": 1, "backoffLimit": 6,
        "template": {"spec": {"containers": [{"name": "c"}], "restartPolicy": "Never"}}});
    for (k, v) in extra.as_object().unwrap() {
        if v.is_null() {
            spec.as_object_mut().unwrap().remove(k);
        } else {
            spec[k] = v.clone();
        }
    }
    serde_json::from_value(json!({"metadata": {"name": "j"}, "spec": spec, "status": status})).unwrap()
}

/// `name` and a state: `.` running, `s` succeeded, `f` failed (a minute ago), `F` just now; then `-` on its way out,
/// `c` counted (without its finalizer), `#n` with an index, `!n` after so many failures of the index.
fn pods(text: &str) -> Vec<Arc<Pod>> {
    let one = |word: &str| {
        let (word, failures) = word.split_once('!').map_or((word, None), |(w, n)| (w, Some(n)));
        let (word, index) = word.split_once('#').map_or((word, None), |(w, i)| (w, Some(i)));
        let (name, flags) = word.split_at(1);
        let phase = match &flags[..1] {
            "s" => "Succeeded",
            "f" | "F" => "Failed",
            _ => "Running",
        };
        let ended = time(if flags.starts_with('F') { 0 } else { -60 });
        let finalizers = if flags.contains('c') { json!([]) } else { json!([TRACKING]) };
        let mut pod = json!({"metadata": {"name": name, "uid": name, "finalizers": finalizers},
            "status": {"phase": phase, "containerStatuses": [{"name": "c", "ready": false, "restartCount": 0,
                "image": "", "imageID": "", "state": {"terminated": {"exitCode": 1, "finishedAt": ended}}}]}});
        if flags.contains('-') {
            pod["metadata"]["deletionTimestamp"] = time(0).into();
        }
        if let Some(index) = index {
            pod["metadata"]["annotations"] = json!({"batch.kubernetes.io/job-completion-index": index});
        }
        if let Some(failures) = failures {
            pod["metadata"]["annotations"]["batch.kubernetes.io/job-index-failure-count"] = failures.into();
        }
        Arc::new(serde_json::from_value(pod).unwrap())
    };
    text.split_whitespace().map(one).collect()
}

fn planned(job: &Job, pods: &[Arc<Pod>]) -> Plan {
    let spec = job.spec.as_ref().unwrap();
    plan(&State { job, spec, pods, now: Timestamp::from_second(NOW).unwrap() })
}

fn show(plan: &Plan) -> String {
    let names = |prefix: &str, pods: &[Arc<Pod>]| -> Vec<String> {
        pods.iter().map(|p| format!("{prefix}{}", p.metadata.name.as_deref().unwrap())).collect()
    };
    let mut out: Vec<String> = plan
        .create
        .iter()
        .map(|n| format!("+{}", n.index.map_or(String::new(), |i| i.to_string())))
        .collect();
    out.extend(names("-", &plan.stop));
    out.extend(names("~", &plan.take_back));
    out.extend(names("c", &plan.counted));
    let held = plan.status.conditions.iter().flatten().filter(|c| c.status == "True");
    out.extend(held.map(|c| format!("{}/{}", c.type_, c.reason.as_deref().unwrap())));
    out.join(" ")
}

#[track_caller]
fn check(extra: Value, status: Value, has: &str, want: &str) -> Plan {
    let plan = planned(&job(extra, status), &pods(has));
    assert_eq!(show(&plan), want, "{has}");
    plan
}

fn started() -> Value {
    json!({"startTime": time(-100)})
}

#[test]
fn pods_are_made_as_many_as_run_at_a_time() {
    check(json!({}), json!({}), "", "+");
    check(json!({"completions": 5, "parallelism": 3}), json!({}), "", "+ + +");
    check(json!({"completions": 5, "parallelism": 3}), json!({}), "a. b.", "+");
    check(json!({"completions": 5, "parallelism": 3}), json!({"succeeded": 4}), "a.", "");
    check(json!({"completions": 5, "parallelism": 1}), json!({}), "a. b.", "~a");
    check(json!({"completions": 5, "parallelism": 0}), json!({}), "a.", "~a");
    check(json!({"completions": null, "parallelism": 2}), json!({}), "", "+ +");
    check(json!({"completions": null, "parallelism": 2}), json!({"succeeded": 1}), "a.", "");
}

#[test]
fn a_job_completes_in_two_steps() {
    let plan = check(json!({}), started(), "as", "ca SuccessCriteriaMet/CompletionsReached");
    assert_eq!(json!(plan.status.uncounted_terminated_pods), json!({"succeeded": ["a"]}));
    assert_eq!(plan.status.succeeded, None);
    let status = json!(plan.status);
    let plan =
        check(json!({}), status, "asc", "SuccessCriteriaMet/CompletionsReached Complete/CompletionsReached");
    assert_eq!((plan.status.succeeded, plan.events.len()), (Some(1), 1));
    assert_eq!(json!(plan.status.uncounted_terminated_pods), json!({}));
    assert!(plan.status.completion_time.is_some());
    let done = job(json!({}), json!(plan.status));
    assert_eq!(outcome(&done), Some(true));
    assert_eq!(json!(planned(&done, &pods("asc")).status), json!(done.status));
}

#[test]
fn work_queues_wait_for_all() {
    let queue = || json!({"completions": null, "parallelism": 2});
    check(queue(), started(), "as b.", "ca");
    check(
        queue(),
        json!({"succeeded": 1, "startTime": time(-9)}),
        "asc bs",
        "cb SuccessCriteriaMet/CompletionsReached",
    );
}

#[test]
fn failures_are_made_good_after_a_while() {
    let plan = check(json!({}), started(), "aF", "ca");
    assert_eq!(plan.again.unwrap().as_secs(), 10);
    check(json!({}), started(), "af", "+ ca");
    let plan = check(json!({}), json!({"failed": 2, "startTime": time(-9)}), "afc bFc", "");
    assert_eq!(plan.again.unwrap().as_secs(), 20);
    // A success in between sets it back.
    let plan = check(
        json!({"completions": 3}),
        json!({"failed": 1, "succeeded": 1, "startTime": time(-9)}),
        "afc bsc",
        "+",
    );
    assert_eq!(plan.again, None);
}

#[test]
fn too_many_failures_end_a_job() {
    let limit = || json!({"backoffLimit": 1, "completions": 3, "parallelism": 2});
    let plan = check(
        limit(),
        json!({"failed": 1, "startTime": time(-9)}),
        "af b.",
        "-b ca cb FailureTarget/BackoffLimitExceeded",
    );
    let plan = check(limit(), json!(plan.status), "afc b.-", "cb FailureTarget/BackoffLimitExceeded");
    let plan = check(
        limit(),
        json!(plan.status),
        "afc",
        "FailureTarget/BackoffLimitExceeded Failed/BackoffLimitExceeded",
    );
    assert_eq!(plan.status.failed, Some(3));
    assert_eq!(plan.events.len(), 1);
}

#[test]
fn a_deadline_ends_a_job() {
    let plan = check(json!({"activeDeadlineSeconds": 130}), started(), "a.", "");
    assert_eq!(plan.again.unwrap().as_secs(), 30);
    check(json!({"activeDeadlineSeconds": 100}), started(), "a.", "-a ca FailureTarget/DeadlineExceeded");
}

#[test]
fn a_policy_says_what_a_failure_means() {
    let policy = |rule: Value| json!({"podFailurePolicy": {"rules": [rule]}});
    let on = |action: &str, operator: &str, code: i32| {
        policy(json!({"action": action, "onExitCodes": {"operator": operator, "values": [code]}}))
    };
    check(on("FailJob", "In", 1), started(), "af", "ca FailureTarget/PodFailurePolicy");
    check(on("FailJob", "In", 2), started(), "af", "+ ca");
    check(on("FailJob", "NotIn", 2), started(), "af", "ca FailureTarget/PodFailurePolicy");
    let plan = check(on("Ignore", "In", 1), started(), "af", "+ ca");
    assert_eq!(json!(plan.status.uncounted_terminated_pods), json!({}));
}

#[test]
fn a_suspended_job_has_no_pods() {
    let suspended = || json!({"suspend": true});
    let plan = check(suspended(), started(), "a.", "~a Suspended/JobSuspended");
    assert_eq!((plan.status.start_time.clone(), plan.events.len()), (None, 1));
    let plan = check(suspended(), json!(plan.status), "", "Suspended/JobSuspended");
    assert!(plan.events.is_empty());
    let plan = check(json!({}), json!(plan.status), "", "+");
    assert!(plan.status.start_time.is_some());
}

#[test]
fn indexes_are_done_once_each() {
    let indexed = || json!({"completionMode": "Indexed", "completions": 4, "parallelism": 3});
    check(indexed(), started(), "", "+0 +1 +2");
    check(indexed(), started(), "a.#0 b.#2", "+1");
    let plan = check(indexed(), started(), "as#0 bs#2", "+1 +3 ca cb");
    assert_eq!((plan.status.succeeded, plan.status.completed_indexes.as_deref()), (Some(2), Some("0,2")));
    let status = json!({"completedIndexes": "0-2", "succeeded": 3, "startTime": time(-9)});
    check(indexed(), status, "as#3", "ca SuccessCriteriaMet/CompletionsReached");
}

#[test]
fn a_pod_knows_its_index() {
    let job = job(json!({"completionMode": "Indexed"}), json!({}));
    let pod = template::pod("j", job.spec.as_ref().unwrap(), New { index: Some(2), failures: None });
    assert_eq!(template::index(&pod), Some(2));
    assert_eq!(pod.metadata.generate_name.as_deref(), Some("j-2-"));
    assert_eq!(pod.metadata.finalizers.as_deref(), Some(&[TRACKING.to_owned()][..]));
    assert_eq!(pod.spec.as_ref().unwrap().hostname.as_deref(), Some("j-2"));
    assert_eq!(
        pod.spec.as_ref().unwrap().containers[0].env.as_ref().unwrap()[0].name,
        "JOB_COMPLETION_INDEX"
    );
}

fn per_index(extra: Value) -> Value {
    let mut spec = json!({"completionMode": "Indexed", "completions": 3, "parallelism": 3, "backoffLimit": i32::MAX,
        "backoffLimitPerIndex": 1});
    for (k, v) in extra.as_object().unwrap() {
        spec[k] = v.clone();
    }
    spec
}

#[test]
fn each_index_has_its_own_limit() {
    // The failed pod stays until its successor knows how often the index failed.
    let plan = check(per_index(json!({})), started(), "af#0!0 b.#1!0 c.#2!0", "+0");
    assert_eq!(plan.create[0].failures, Some(Failures { counted: 1, ignored: 0 }));
    assert_eq!(plan.status.failed, None);
    let plan = check(per_index(json!({})), started(), "aF#0!0 b.#1!0 c.#2!0", "");
    assert_eq!(plan.again.unwrap().as_secs(), 10);
    check(per_index(json!({})), started(), "af#0!0 d.#0!1 b.#1!0 c.#2!0", "ca");
    // The last try: the index is lost, the others go on.
    let plan = check(per_index(json!({})), started(), "df#0!1 b.#1!0 c.#2!0", "cd");
    assert_eq!(plan.status.failed_indexes.as_deref(), Some("0"));
    let lost = json!({"failedIndexes": "0", "failed": 2, "startTime": time(-9)});
    check(per_index(json!({})), lost, "bs#1!0 cs#2!0", "cb cc FailureTarget/FailedIndexes");
    check(
        per_index(json!({"maxFailedIndexes": 0})),
        started(),
        "df#0!1 b.#1!0",
        "-b cd cb FailureTarget/MaxFailedIndexesExceeded",
    );
    let policy = |action: &str| json!({"podFailurePolicy": {"rules": [{"action": action, "onExitCodes": {"operator": "In", "values": [1]}}]}});
    let plan = check(per_index(policy("FailIndex")), started(), "af#0!0 b.#1!0 c.#2!0", "ca");
    assert_eq!(plan.status.failed_indexes.as_deref(), Some("0"));
    let plan = check(per_index(policy("Ignore")), started(), "af#0!1 b.#1!0 c.#2!0", "+0");
    assert_eq!(plan.create[0].failures, Some(Failures { counted: 1, ignored: 1 }));
}

#[test]
fn a_policy_says_what_success_is() {
    let policy = |rules: Value| json!({"completionMode": "Indexed", "completions": 4, "parallelism": 4, "successPolicy": {"rules": rules}});
    let leader = || policy(json!([{"succeededIndexes": "0"}]));
    let plan =
        check(leader(), started(), "as#0 b.#1 c.#2 d.#3", "~b ~c ~d ca SuccessCriteriaMet/SuccessPolicy");
    let condition = &plan.status.conditions.as_ref().unwrap()[0];
    assert_eq!(condition.message.as_deref(), Some("Matched rules at index 0"));
    // What is stopped for it has not failed.
    let plan = check(leader(), json!(plan.status), "asc#0 b.-c#1", "SuccessCriteriaMet/SuccessPolicy");
    let done = "SuccessCriteriaMet/SuccessPolicy Complete/SuccessPolicy";
    let plan = check(leader(), json!(plan.status), "asc#0", done);
    assert_eq!((plan.status.succeeded, plan.status.failed), (Some(1), None));
    check(leader(), started(), "a.#0 bs#1 cs#2 d.#3", "cb cc");
    let two = || policy(json!([{"succeededIndexes": "1-3", "succeededCount": 2}, {"succeededCount": 4}]));
    check(two(), started(), "as#0 bs#1 c.#2 d.#3", "ca cb");
    check(two(), started(), "a.#0 bs#1 cs#2 d.#3", "~a ~d cb cc SuccessCriteriaMet/SuccessPolicy");
}

#[test]
fn indexes_have_one_pod_each() {
    let elastic = |n: i32| json!({"completionMode": "Indexed", "completions": n, "parallelism": n});
    check(elastic(2), started(), "a.#0 b.#0 c.#1", "~a");
    check(elastic(2), started(), "a.#0 b.#1 c.#2", "~c");
    check(elastic(2), started(), "a.#0 b.#1 c.", "~c");
    check(elastic(4), started(), "a.#0 b.#1", "+2 +3");
    // A smaller Job forgets what is beyond its end.
    let status = json!({"completedIndexes": "0,5", "succeeded": 2, "startTime": time(-9)});
    let plan = check(elastic(2), status, "b.#1", "");
    assert_eq!((plan.status.succeeded, plan.status.completed_indexes.as_deref()), (Some(1), Some("0")));
    assert_eq!(indexes::format(&indexes::parse("0,5", 2)), "0");
}

#[test]
fn a_policy_says_when_pods_are_replaced() {
    let failed_only = || json!({"podReplacementPolicy": "Failed"});
    check(failed_only(), started(), "a.-", "");
    check(failed_only(), started(), "af-", "+ ca");
    check(json!({"podReplacementPolicy": "TerminatingOrFailed"}), started(), "a.-", "+ ca");
    let plan = check(failed_only(), started(), "a.- b.", "");
    assert_eq!((plan.status.terminating, plan.status.active), (Some(1), Some(1)));
}
