//! HorizontalPodAutoscalers: by what simulated pods use, and by metrics that an API of custom resources stands in for.

use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const SCALERS: &str = "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/default/deployments";
const BEHAVIORS: &str = "/apis/simulation.homeostat.dev/v1alpha1/behaviors";
const QUEUE: &str = "/apis/external.metrics.k8s.io/v1beta1/namespaces/default/queue";

/// An external metric `queue`, as a custom resource.
fn metric() -> Value {
    json!({"metadata": {"name": "queue.external.metrics.k8s.io",
            "annotations": {"api-approved.kubernetes.io": "unapproved, a test"}},
        "spec": {"group": "external.metrics.k8s.io", "scope": "Namespaced",
            "names": {"plural": "queue", "kind": "ExternalMetricValue"},
            "versions": [{"name": "v1beta1", "served": true, "storage": true, "schema": {"openAPIV3Schema":
                {"type": "object", "properties": {"value": {"x-kubernetes-int-or-string": true}}}}}]}})
}

fn condition<'a>(scaler: &'a Value, kind: &str) -> &'a Value {
    let all = scaler["status"]["conditions"].as_array().unwrap();
    all.iter().find(|c| c["type"] == kind).unwrap_or(&Value::Null)
}

fn scaler(name: &str, target: &str, metric: Value) -> Value {
    json!({"metadata": {"name": name}, "spec": {"minReplicas": 1, "maxReplicas": 12, "metrics": [metric],
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": target}}})
}

#[test]
fn a_deployment_follows_its_queue() {
    simulate(async || {
        let world = Simulation::start(5, 1).await;
        world.create("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", metric()).await;
        let deployment = json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        world.create(DEPLOYMENTS, deployment).await;
        world.pass(30).await;
        world.create(QUEUE, json!({"apiVersion": "external.metrics.k8s.io/v1beta1", "kind": "ExternalMetricValue",
            "metadata": {"name": "all"}, "value": "90"})).await;
        let external = json!({"type": "External", "external": {"metric": {"name": "queue"},
            "target": {"type": "AverageValue", "averageValue": "10"}}});
        world.create(SCALERS, scaler("web", "web", external)).await;
        world.pass(20).await;
        let got = world.get(&format!("{SCALERS}/web")).await;
        assert_eq!(condition(&got, "ScalingLimited")["reason"], "ScaleUpLimit", "{got:#}");
        assert_eq!(condition(&got, "AbleToScale")["reason"], "SucceededRescale");
        world.pass(60).await;
        let got = world.get(&format!("{SCALERS}/web")).await;
        assert_eq!((&got["status"]["currentReplicas"], &got["status"]["desiredReplicas"]), (&json!(9), &json!(9)));
        assert_eq!(condition(&got, "AbleToScale")["reason"], "ReadyForNewScale");
        assert_eq!(condition(&got, "ScalingActive")["reason"], "ValidMetricFound");
        assert_eq!(got["status"]["currentMetrics"][0]["external"]["current"]["averageValue"], "10");
        // Less to do is believed after five minutes.
        world.merge(&format!("{QUEUE}/all"), json!({"value": "20"})).await;
        world.pass(240).await;
        assert_eq!(world.get(&format!("{DEPLOYMENTS}/web")).await["spec"]["replicas"], 9);
        let got = world.get(&format!("{SCALERS}/web")).await;
        assert_eq!(condition(&got, "AbleToScale")["reason"], "ScaleDownStabilized");
        world.pass(120).await;
        assert_eq!(world.get(&format!("{DEPLOYMENTS}/web")).await["spec"]["replicas"], 2);
        let events = world.items("/api/v1/namespaces/default/events").await;
        let told = |text: &str| events.iter().any(|e| e["message"] == text);
        assert!(told("New size: 9; reason: external metric queue(nil) above target"), "{events:#?}");
        assert!(told("New size: 2; reason: All metrics below target"));
    })
    .unwrap();
}

#[test]
fn a_deployment_follows_what_its_pods_use() {
    simulate(async || {
        let world = Simulation::start(5, 2).await;
        let used = |cpu: &str| json!({"spec": {"selector": {"images": ["web:*"]}, "container": {"usage": {"cpu": cpu}}}});
        let mut busy = used("150m");
        busy["metadata"] = json!({"name": "busy"});
        busy["apiVersion"] = json!("simulation.homeostat.dev/v1alpha1");
        busy["kind"] = json!("Behavior");
        world.create(BEHAVIORS, busy).await;
        let container = json!({"name": "c", "image": "web:1", "resources": {"requests": {"cpu": "100m"}}});
        let deployment = json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}}});
        world.create(DEPLOYMENTS, deployment).await;
        let cpu = json!({"type": "Resource", "resource": {"name": "cpu",
            "target": {"type": "Utilization", "averageUtilization": 50}}});
        let mut web = scaler("web", "web", cpu);
        web["spec"]["minReplicas"] = json!(2);
        web["spec"]["maxReplicas"] = json!(6);
        world.create(SCALERS, web).await;
        world.pass(600).await;
        let replicas = async || world.get(&format!("{DEPLOYMENTS}/web")).await["status"]["readyReplicas"].clone();
        assert_eq!(replicas().await, 6);
        let got = world.get(&format!("{SCALERS}/web")).await;
        let current = &got["status"]["currentMetrics"][0]["resource"]["current"];
        assert_eq!(current, &json!({"averageUtilization": 150, "averageValue": "150m"}), "{got:#}");
        assert_eq!(condition(&got, "ScalingLimited")["reason"], "TooManyReplicas");
        world.merge(&format!("{BEHAVIORS}/busy"), used("10m")).await;
        world.pass(900).await;
        assert_eq!(replicas().await, 2);
        let got = world.get(&format!("{SCALERS}/web")).await;
        assert_eq!(condition(&got, "ScalingLimited")["reason"], "TooFewReplicas", "{got:#}");
    })
    .unwrap();
}

#[test]
fn what_is_missing_is_said() {
    simulate(async || {
        let world = Simulation::start(6, 0).await;
        let custom = json!({"type": "Pods", "pods": {"metric": {"name": "qps"},
            "target": {"type": "AverageValue", "averageValue": "1"}}});
        world.create(SCALERS, scaler("nothing", "absent", custom.clone())).await;
        let deployment = json!({"metadata": {"name": "web"}, "spec": {"selector": {"matchLabels": {"app": "web"}},
            "template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}}});
        world.create(DEPLOYMENTS, deployment).await;
        world.create(SCALERS, scaler("web", "web", custom)).await;
        world.pass(30).await;
        let got = world.get(&format!("{SCALERS}/nothing")).await;
        let able = condition(&got, "AbleToScale");
        assert_eq!((&able["status"], &able["reason"]), (&json!("False"), &json!("FailedGetScale")));
        assert_eq!(
            able["message"],
            "the HPA controller was unable to get the target's current scale: deployments.apps \"absent\" not found"
        );
        let got = world.get(&format!("{SCALERS}/web")).await;
        let active = condition(&got, "ScalingActive");
        assert_eq!((&active["status"], &active["reason"]), (&json!("False"), &json!("FailedGetPodsMetric")));
        assert_eq!(
            active["message"],
            "the HPA was unable to compute the replica count: unable to get metric qps: unable to fetch metrics from \
             custom metrics API: no custom metrics API (custom.metrics.k8s.io) registered"
        );
    })
    .unwrap();
}
