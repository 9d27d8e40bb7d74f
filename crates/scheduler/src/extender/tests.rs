//! Extenders that answer from within the test, in the reference's JSON.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use futures::FutureExt;
use serde_json::{Value, json};

use super::*;
use crate::config::Configuration;
use crate::framework::Code;

type Answer = Box<dyn Fn(&str, &Value) -> Result<(u16, Value), String> + Send + Sync>;

/// Answers each verb with a function of what it was asked, and remembers that.
struct Answers {
    answer: Answer,
    asked: Mutex<Vec<(String, Value)>>,
}

impl Transport for Answers {
    fn post<'a>(&'a self, url: &'a str, body: Vec<u8>) -> BoxFuture<'a, Result<(u16, Vec<u8>), String>> {
        let body: Value = serde_json::from_slice(&body).unwrap();
        let answer = (self.answer)(url.rsplit('/').next().unwrap(), &body);
        self.asked.lock().unwrap().push((url.to_owned(), body));
        async move { answer.map(|(code, body)| (code, body.to_string().into_bytes())) }.boxed()
    }
}

fn extender(
    config: &str,
    answer: impl Fn(&str, &Value) -> Result<(u16, Value), String> + Send + Sync + 'static,
) -> (Extenders, Arc<Answers>) {
    let text = format!(
        "{{apiVersion: kubescheduler.config.k8s.io/v1, kind: KubeSchedulerConfiguration, extenders: \
         [{{urlPrefix: 'http://x/scheduler', {config}}}]}}"
    );
    let config = Configuration::parse(&text).unwrap().extenders.remove(0);
    let answers = Arc::new(Answers { answer: Box::new(answer), asked: Mutex::default() });
    (Extenders(vec![Extender::new(config, answers.clone())]), answers)
}

fn world(names: &[&str]) -> (Snapshot, Arc<PodInfo>, Vec<Arc<NodeInfo>>) {
    let node = |n: &&str| serde_json::from_value(json!({"metadata": {"name": n}})).unwrap();
    let victim = json!({"metadata": {"name": "v", "uid": "uv"}, "spec": {"nodeName": "a", "containers": []}});
    let mut snapshot = Snapshot::new(names.iter().map(node), [serde_json::from_value(victim).unwrap()]);
    let pod = json!({"metadata": {"name": "p", "namespace": "d", "uid": "u"}, "spec": {"priority": 5, "containers":
        [{"name": "c", "resources": {"limits": {"a.b/c": "1"}}}]}});
    let pod = snapshot.read(Arc::new(serde_json::from_value(pod).unwrap()));
    let nodes = snapshot.nodes().cloned().collect();
    (snapshot, pod, nodes)
}

fn names(nodes: &[Arc<NodeInfo>]) -> Vec<String> {
    nodes.iter().map(|n| n.name.to_string()).collect()
}

#[tokio::test]
async fn a_filter_narrows_the_nodes_and_says_why() {
    let (_, pod, nodes) = world(&["a", "b", "c"]);
    let (extenders, asked) = extender("filterVerb: filter", |_, asked| {
        let list = asked["Nodes"]["items"][0].clone();
        Ok((
            200,
            json!({"Nodes": {"items": [list]}, "FailedNodes": {"b": "too far", "c": "too far"},
            "FailedAndUnresolvableNodes": {"c": "never"}}),
        ))
    });
    let mut diagnosis = Diagnosis::new(3);
    let left = extenders.filter(&pod, nodes, &mut diagnosis).await.unwrap();
    assert_eq!(names(&left), ["a"]);
    assert_eq!(
        (diagnosis.code("b"), diagnosis.code("c")),
        (Some(Code::Unschedulable), Some(Code::UnschedulableAndUnresolvable))
    );
    assert_eq!(diagnosis.plugins, BTreeSet::from([EXTENDER]));
    let (url, body) = asked.asked.lock().unwrap()[0].clone();
    assert_eq!((url.as_str(), &body["Pod"]["metadata"]["name"]), ("http://x/scheduler/filter", &json!("p")));
    assert_eq!(body["NodeNames"], Value::Null);
}

#[tokio::test]
async fn one_with_a_cache_hears_and_says_names() {
    let (_, pod, nodes) = world(&["a", "b"]);
    let config = "filterVerb: filter, nodeCacheCapable: true";
    let (extenders, _) = extender(config, |_, asked| {
        assert_eq!((&asked["Nodes"], &asked["NodeNames"]), (&Value::Null, &json!(["a", "b"])));
        Ok((200, json!({"NodeNames": ["b"]})))
    });
    let left = extenders.filter(&pod, nodes.clone(), &mut Diagnosis::new(2)).await.unwrap();
    assert_eq!(names(&left), ["b"]);
    let (extenders, _) = extender(config, |_, _| Ok((200, json!({"NodeNames": ["z"]}))));
    let why = extenders.filter(&pod, nodes, &mut Diagnosis::new(2)).await.unwrap_err();
    assert_eq!(
        why.message(),
        "extender \"http://x/scheduler\" claims a filtered node \"z\" which is not found in the input node list"
    );
}

#[tokio::test]
async fn one_that_fails_stops_the_pod_unless_it_may_be_ignored() {
    let (_, pod, nodes) = world(&["a"]);
    for (answer, want) in [
        (Ok((500, json!({}))), "failed filter with extender at URL http://x/scheduler/filter, code 500"),
        (Ok((200, json!({"Error": "no idea"}))), "no idea"),
        (Err("connection refused".to_owned()), "connection refused"),
    ] {
        let reply = answer.clone();
        let (extenders, _) = extender("filterVerb: filter", move |_, _| reply.clone());
        let why = extenders.filter(&pod, nodes.clone(), &mut Diagnosis::new(1)).await.unwrap_err();
        assert_eq!((why.code, why.message().as_str()), (Code::Error, want));
        let (extenders, _) = extender("filterVerb: filter, ignorable: true", move |_, _| answer.clone());
        let left = extenders.filter(&pod, nodes.clone(), &mut Diagnosis::new(1)).await.unwrap();
        assert_eq!(names(&left), ["a"]);
    }
}

#[tokio::test]
async fn scores_are_weighed_and_their_absence_is_no_failure() {
    let (_, pod, nodes) = world(&["a", "b"]);
    let config = "prioritizeVerb: prioritize, weight: 2";
    let (extenders, _) = extender(config, |_, _| Ok((200, json!([{"Host": "b", "Score": 3}]))));
    let mut scores = [1, 1];
    extenders.score(&pod, &nodes, &mut scores).await;
    assert_eq!(scores, [1, 61]);
    let (extenders, _) = extender(config, |_, _| Err("gone".to_owned()));
    extenders.score(&pod, &nodes, &mut scores).await;
    assert_eq!(scores, [1, 61]);
}

#[tokio::test]
async fn one_that_looks_after_resources_is_asked_about_them_only() {
    let (mut snapshot, pod, nodes) = world(&["a"]);
    let config = "filterVerb: filter, managedResources: [{name: a.b/c}]";
    let (extenders, asked) = extender(config, |_, _| Ok((200, json!({"Nodes": {"items": []}}))));
    let plain = json!({"metadata": {"name": "q"}, "spec": {"containers": [{"name": "c"}]}});
    let plain = snapshot.read(Arc::new(serde_json::from_value(plain).unwrap()));
    let left = extenders.filter(&plain, nodes.clone(), &mut Diagnosis::new(1)).await.unwrap();
    assert_eq!((left.len(), asked.asked.lock().unwrap().len()), (1, 0));
    let left = extenders.filter(&pod, nodes, &mut Diagnosis::new(1)).await.unwrap();
    assert_eq!((left.len(), asked.asked.lock().unwrap().len()), (0, 1));
}

#[tokio::test]
async fn who_makes_room_is_agreed() {
    let (snapshot, pod, _) = world(&["a", "b"]);
    let victim = snapshot.placed("uv").unwrap().clone();
    let candidates = vec![
        Candidate { node: "a".into(), victims: vec![victim.clone()], violations: 1 },
        Candidate { node: "b".into(), victims: vec![victim], violations: 0 },
    ];
    let config = "preemptVerb: preempt, nodeCacheCapable: true";
    let (extenders, asked) = extender(config, |_, _| {
        Ok((200, json!({"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "uv"}], "NumPDBViolations": 1}}})))
    });
    let left = extenders.candidates(&pod, candidates.clone(), &snapshot).await.unwrap();
    assert_eq!(left, candidates[..1]);
    let body = asked.asked.lock().unwrap()[0].1.clone();
    let want = json!({"Pods": [{"UID": "uv"}], "NumPDBViolations": 1});
    assert_eq!((&body["NodeNameToMetaVictims"]["a"], &body["NodeNameToVictims"]), (&want, &Value::Null));
    // A victim that isn't there is no victim.
    let (extenders, _) = extender(config, |_, _| {
        Ok((200, json!({"NodeNameToMetaVictims": {"a": {"Pods": [{"UID": "other"}]}}})))
    });
    let why = extenders.candidates(&pod, candidates, &snapshot).await.unwrap_err();
    assert!(why.message().contains("but the pod is not found on that node"), "{}", why.message());
}

#[tokio::test]
async fn one_can_bind() {
    let (_, pod, _) = world(&["a"]);
    let (extenders, asked) = extender("bindVerb: bind", |_, _| Ok((200, json!({}))));
    assert_eq!(extenders.bind(&pod, "a").await, Ok(true));
    let want = json!({"PodName": "p", "PodNamespace": "d", "PodUID": "u", "Node": "a"});
    assert_eq!(asked.asked.lock().unwrap()[0].1, want);
    let (extenders, _) = extender("bindVerb: bind", |_, _| Ok((200, json!({"Error": "taken"}))));
    assert_eq!(extenders.bind(&pod, "a").await.unwrap_err().message(), "taken");
    let (extenders, _) = extender("filterVerb: f", |_, _| Ok((200, json!({}))));
    assert_eq!(extenders.bind(&pod, "a").await, Ok(false));
}

/// As an extender in another language may write, which kube-scheduler takes all the same.
#[tokio::test]
async fn answers_are_read_as_go_reads_them() {
    let (snapshot, pod, nodes) = world(&["a", "b", "c"]);
    let filter = |answer: Value, config: &'static str| {
        let (nodes, pod) = (nodes.clone(), pod.clone());
        async move {
            let (extenders, _) = extender(config, move |_, _| Ok((200, answer.clone())));
            let mut diagnosis = Diagnosis::new(3);
            let left = extenders.filter(&pod, nodes, &mut diagnosis).await;
            left.map(|left| (names(&left), diagnosis)).map_err(|why| why.message())
        }
    };
    let lower = json!({"nodes": {"items": [{"metadata": {"name": "a", "labels": null}}]}, "nodeNames": null,
        "failednodes": {"b": "too far", "c": null}, "failedAndUnresolvableNodes": null, "error": null, "more": 1});
    let (left, diagnosis) = filter(lower, "filterVerb: filter").await.unwrap();
    assert_eq!((left, diagnosis.code("c")), (vec!["a".to_owned()], Some(Code::Unschedulable)));
    let cached = "filterVerb: filter, nodeCacheCapable: true";
    let (left, _) = filter(json!({"NODENAMES": ["b"]}), cached).await.unwrap();
    assert_eq!(left, ["b"]);
    assert!(filter(Value::Null, cached).await.unwrap().0.is_empty());
    assert_eq!(filter(json!({"error": "no"}), cached).await.unwrap_err(), "no");
    let wrong = filter(json!({"nodeNames": "b"}), cached).await.unwrap_err();
    assert!(wrong.ends_with("NodeNames: string where an array is expected"), "{wrong}");

    let (extenders, _) = extender("prioritizeVerb: prioritize, weight: 1", |_, _| {
        Ok((200, json!([{"host": "b", "score": 3}, null, {"host": "c", "score": null}])))
    });
    let mut scores = [0, 0, 0];
    extenders.score(&pod, &nodes, &mut scores).await;
    assert_eq!(scores, [0, 30, 0]);

    let victim = snapshot.placed("uv").unwrap().clone();
    let candidates = vec![Candidate { node: "a".into(), victims: vec![victim], violations: 0 }];
    let (extenders, _) = extender("preemptVerb: preempt, nodeCacheCapable: true", |_, _| {
        Ok((
            200,
            json!({"nodeNameToMetaVictims": {"a": {"pods": [{"uid": "uv"}], "numPDBViolations": null}}}),
        ))
    });
    assert_eq!(extenders.candidates(&pod, candidates.clone(), &snapshot).await.unwrap(), candidates);

    let (extenders, _) = extender("bindVerb: bind", |_, _| Ok((200, json!({"error": "taken"}))));
    assert_eq!(extenders.bind(&pod, "a").await.unwrap_err().message(), "taken");
    let (extenders, _) = extender("bindVerb: bind", |_, _| Ok((200, Value::Null)));
    assert_eq!(extenders.bind(&pod, "a").await, Ok(true));
}
