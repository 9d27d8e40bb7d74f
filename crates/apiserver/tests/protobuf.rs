//! Kubernetes protobuf over the whole server, as Go's typed clients speak it: bodies in, objects, lists, watches and
//! errors out, and what custom resources have of it.
#![allow(missing_docs)]

mod support;

use std::time::Duration;

use homeostat_access::User;
use homeostat_apiserver::{ApiServer, Body};
use homeostat_protobuf::{MEDIA_TYPE, WATCH_MEDIA_TYPE, decode, encode};
use http::{Method, Request, Response, header};
use http_body_util::{BodyExt, Full};
use serde_json::{Value, json};
use support::{get, post, server};
use tower::Service;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";
const METADATA: &str = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

async fn call(
    server: &ApiServer,
    method: Method,
    path: &str,
    accept: &str,
    body: impl Into<bytes::Bytes>,
) -> Response<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(header::CONTENT_TYPE, MEDIA_TYPE)
        .header(header::ACCEPT, accept)
        .extension(User::administrator("test"))
        .body(Full::new(body.into()))
        .unwrap();
    server.clone().call(request).await.unwrap()
}

/// Code, content type and body.
async fn read(response: Response<Body>) -> (u16, String, Vec<u8>) {
    let code = response.status().as_u16();
    let kind = response.headers()[header::CONTENT_TYPE].to_str().unwrap().to_owned();
    (code, kind, response.into_body().collect().await.unwrap().to_bytes().to_vec())
}

/// Code and object of an answer that must be in protobuf.
async fn packed(response: Response<Body>) -> (u16, Value) {
    let (code, kind, bytes) = read(response).await;
    assert_eq!(kind, MEDIA_TYPE);
    (code, decode(&bytes).unwrap())
}

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"x": "y"}})
}

async fn with_widgets() -> ApiServer {
    let s = server();
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"scale": {
                    "specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas",
                }},
                "schema": {"openAPIV3Schema": {
                    "type": "object", "x-kubernetes-preserve-unknown-fields": true,
                }},
            }],
        },
    });
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    let (code, made) = packed(call(&s, Method::POST, path, MEDIA_TYPE, encode(&crd).unwrap()).await).await;
    assert_eq!((code, &made["spec"]["versions"][0]["name"]), (201, &json!("v1")));
    assert_eq!(
        made["spec"]["versions"][0]["schema"]["openAPIV3Schema"],
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    );
    for _ in 0..1000 {
        if get(&s, WIDGETS).await.code == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let widget = json!({
        "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"replicas": 2},
    });
    assert_eq!(post(&s, WIDGETS, widget).await.code, 201);
    s
}

#[tokio::test(start_paused = true)]
async fn objects_go_in_and_out_as_they_do_in_json() {
    let s = server();
    let (code, made) =
        packed(call(&s, Method::POST, MAPS, MEDIA_TYPE, encode(&map("a")).unwrap()).await).await;
    assert_eq!(code, 201);
    assert_eq!(made, get(&s, &format!("{MAPS}/a")).await.body);

    let (code, got) = packed(call(&s, Method::GET, &format!("{MAPS}/a"), MEDIA_TYPE, "").await).await;
    assert_eq!((code, &got), (200, &made));

    let mut changed = made.clone();
    changed["data"]["x"] = "z".into();
    let put = call(&s, Method::PUT, &format!("{MAPS}/a"), MEDIA_TYPE, encode(&changed).unwrap()).await;
    let (code, got) = packed(put).await;
    assert_eq!((code, &got["data"]), (200, &json!({"x": "z"})));

    let (code, list) = packed(call(&s, Method::GET, &format!("{MAPS}?limit=1"), MEDIA_TYPE, "").await).await;
    assert_eq!(code, 200);
    assert_eq!(list, get(&s, &format!("{MAPS}?limit=1")).await.body);
    let (_, pods) = packed(call(&s, Method::GET, "/api/v1/pods", MEDIA_TYPE, "").await).await;
    // An empty list is absent, and Go's decoder leaves it nil.
    assert_eq!((pods["kind"].as_str(), &pods["items"]), (Some("PodList"), &Value::Null));

    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": "another"},
    });
    let refused = call(&s, Method::DELETE, &format!("{MAPS}/a"), MEDIA_TYPE, encode(&options).unwrap()).await;
    let (code, status) = packed(refused).await;
    assert_eq!((code, status["reason"].as_str()), (409, Some("Conflict")));
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "gracePeriodSeconds": 0});
    let gone = call(&s, Method::DELETE, &format!("{MAPS}/a"), MEDIA_TYPE, encode(&options).unwrap()).await;
    let (code, status) = packed(gone).await;
    assert_eq!((code, status["status"].as_str()), (200, Some("Success")));
}

#[tokio::test(start_paused = true)]
async fn reviews_and_subresources_are_of_types_that_have_the_form() {
    let s = server();
    let review = json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}},
    });
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let (code, got) = packed(call(&s, Method::POST, path, MEDIA_TYPE, encode(&review).unwrap()).await).await;
    assert_eq!((code, &got["status"]["allowed"]), (201, &json!(true)));

    let s = with_widgets().await;
    let (code, scale) =
        packed(call(&s, Method::GET, &format!("{WIDGETS}/w/scale"), MEDIA_TYPE, "").await).await;
    assert_eq!((code, &scale["kind"], &scale["spec"]), (200, &json!("Scale"), &json!({"replicas": 2})));
}

/// Where objects of some kinds are created, with little in them.
fn little() -> Vec<(&'static str, &'static str, &'static str, Value)> {
    let template =
        json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}});
    let labels = json!({"matchLabels": {"a": "b"}});
    let all = |plural, version, kind, rest: Value| (plural, version, kind, rest);
    vec![
        all("namespaces/default/pods", "v1", "Pod", json!({})),
        all("namespaces/default/pods", "v1", "Pod", json!({"spec": template["spec"]})),
        all(
            "namespaces/default/pods",
            "v1",
            "Pod",
            json!({"spec": {"containers": [{"name": "c"}], "priority": 7}}),
        ),
        all("namespaces/default/secrets", "v1", "Secret", json!({"data": {"a": "Yg==", "e": ""}})),
        all(
            "namespaces/default/secrets",
            "v1",
            "Secret",
            json!({"stringData": {"a": "b"}, "immutable": false}),
        ),
        all("namespaces/default/services", "v1", "Service", json!({"spec": {"ports": [{"port": 80}]}})),
        all(
            "namespaces/default/services",
            "v1",
            "Service",
            json!({"spec": {"ports": [{"port": 80, "targetPort": "x"}]}}),
        ),
        all("namespaces/default/endpoints", "v1", "Endpoints", json!({})),
        all("namespaces/default/serviceaccounts", "v1", "ServiceAccount", json!({})),
        all(
            "namespaces/default/resourcequotas",
            "v1",
            "ResourceQuota",
            json!({"spec": {"hard": {"cpu": "1500m"}}}),
        ),
        all(
            "namespaces/default/limitranges",
            "v1",
            "LimitRange",
            json!({"spec": {"limits": [{"type": "Pod"}]}}),
        ),
        all("namespaces/default/limitranges", "v1", "LimitRange", json!({})),
        all(
            "namespaces/default/persistentvolumeclaims",
            "v1",
            "PersistentVolumeClaim",
            json!({"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}),
        ),
        all("persistentvolumes", "v1", "PersistentVolume", json!({"spec": {}})),
        all("nodes", "v1", "Node", json!({"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}]}})),
        all(
            "namespaces/default/events",
            "v1",
            "Event",
            json!({"involvedObject": {"kind": "Pod", "namespace": "default"}}),
        ),
        all("namespaces/default/deployments", "apps/v1", "Deployment", json!({})),
        all(
            "namespaces/default/deployments",
            "apps/v1",
            "Deployment",
            json!({"spec": {"replicas": 0, "selector": labels, "template": template}}),
        ),
        all(
            "namespaces/default/statefulsets",
            "apps/v1",
            "StatefulSet",
            json!({"spec": {"selector": labels, "template": template, "serviceName": "s"}}),
        ),
        all(
            "namespaces/default/daemonsets",
            "apps/v1",
            "DaemonSet",
            json!({"spec": {"selector": labels, "template": template}}),
        ),
        all(
            "namespaces/default/controllerrevisions",
            "apps/v1",
            "ControllerRevision",
            json!({"revision": 0, "data": {"a": [1, null, "x"]}}),
        ),
        all("namespaces/default/jobs", "batch/v1", "Job", json!({"spec": {"template": template}})),
        all(
            "namespaces/default/cronjobs",
            "batch/v1",
            "CronJob",
            json!({"spec": {
            "schedule": "@daily", "jobTemplate": {"spec": {"template": {"spec": {
                "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}}}),
        ),
        all(
            "namespaces/default/poddisruptionbudgets",
            "policy/v1",
            "PodDisruptionBudget",
            json!({"spec": {"maxUnavailable": 0, "selector": {}}}),
        ),
        all("namespaces/default/roles", "rbac.authorization.k8s.io/v1", "Role", json!({})),
        all(
            "clusterroles",
            "rbac.authorization.k8s.io/v1",
            "ClusterRole",
            json!({"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}),
        ),
        all("namespaces/default/rolebindings", "rbac.authorization.k8s.io/v1", "RoleBinding", json!({})),
        all(
            "namespaces/default/leases",
            "coordination.k8s.io/v1",
            "Lease",
            json!({"spec": {"leaseDurationSeconds": 15, "renewTime": "2026-01-02T03:04:05.000006Z"}}),
        ),
        all(
            "namespaces/default/ingresses",
            "networking.k8s.io/v1",
            "Ingress",
            json!({"spec": {"defaultBackend": {
            "service": {"name": "s", "port": {"number": 80}}}}}),
        ),
        all(
            "namespaces/default/networkpolicies",
            "networking.k8s.io/v1",
            "NetworkPolicy",
            json!({"spec": {}}),
        ),
        all(
            "namespaces/default/horizontalpodautoscalers",
            "autoscaling/v2",
            "HorizontalPodAutoscaler",
            json!({"spec": {
            "maxReplicas": 3, "scaleTargetRef": {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}}}),
        ),
        all("storageclasses", "storage.k8s.io/v1", "StorageClass", json!({"provisioner": "p"})),
        all("priorityclasses", "scheduling.k8s.io/v1", "PriorityClass", json!({"value": 0})),
        all("priorityclasses", "scheduling.k8s.io/v1", "PriorityClass", json!({})),
        all("customresourcedefinitions", "apiextensions.k8s.io/v1", "CustomResourceDefinition", json!({})),
        all(
            "validatingwebhookconfigurations",
            "admissionregistration.k8s.io/v1",
            "ValidatingWebhookConfiguration",
            json!({"webhooks": [{}]}),
        ),
        all(
            "certificatesigningrequests",
            "certificates.k8s.io/v1",
            "CertificateSigningRequest",
            json!({"spec": {}}),
        ),
        all(
            "namespaces/default/endpointslices",
            "discovery.k8s.io/v1",
            "EndpointSlice",
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"]}]}),
        ),
        all("flowschemas", "flowcontrol.apiserver.k8s.io/v1", "FlowSchema", json!({})),
        all("namespaces/default/resourceclaims", "resource.k8s.io/v1", "ResourceClaim", json!({"spec": {}})),
    ]
}

#[tokio::test(start_paused = true)]
async fn a_body_in_protobuf_is_taken_as_the_same_in_json() {
    // What differs between any two creates.
    fn strip(mut v: Value) -> Value {
        if let Some(m) = v["metadata"].as_object_mut() {
            m.retain(|k, _| {
                !["uid", "creationTimestamp", "resourceVersion", "managedFields"].contains(&k.as_str())
            });
        }
        for key in ["clusterIP", "clusterIPs"] {
            if let Some(spec) = v["spec"].as_object_mut() {
                spec.remove(key);
            }
        }
        v
    }
    let s = server();
    let account = json!({
        "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"},
        "automountServiceAccountToken": false,
    });
    post(&s, "/api/v1/namespaces/default/serviceaccounts", account).await;
    let mut faults = Vec::new();
    for (plural, version, kind, mut object) in little() {
        object["apiVersion"] = version.into();
        object["kind"] = kind.into();
        object["metadata"] = json!({"name": "x"});
        let root = if version.contains('/') { "apis" } else { "api" };
        let path = format!("/{root}/{version}/{plural}?dryRun=All");
        let plain = post(&s, &path, object.clone()).await;
        let (code, got) =
            packed(call(&s, Method::POST, &path, MEDIA_TYPE, encode(&object).unwrap()).await).await;
        if ![201, 403, 422].contains(&code)
            || (code, strip(got.clone())) != (plain.code, strip(plain.body.clone()))
        {
            faults.push(format!("{object}\n  protobuf: {code} {got}\n  JSON: {} {}", plain.code, plain.body));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[tokio::test(start_paused = true)]
async fn broken_bodies_are_refused_in_the_reference_s_words() {
    let s = server();
    let whole = encode(&map("a")).unwrap();
    let check = async |body: Vec<u8>, expect: &str| {
        let (code, status) = packed(call(&s, Method::POST, MAPS, MEDIA_TYPE, body).await).await;
        assert_eq!((code, status["message"].as_str()), (400, Some(expect)));
    };
    let of = "the object provided is unrecognized (must be of type ConfigMap)";
    let cut = &whole[..30];
    check(cut.to_vec(), &format!("{of}: unexpected EOF ({})", hex(cut))).await;
    check(b"{}".to_vec(), &format!("{of}: provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] ({{}})")).await;
    check(b"k8s\0".to_vec(), &format!("{of}: empty body (6b387300)")).await;
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    check(
        encode(&pod).unwrap(),
        "Pod in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): unknown conversion",
    )
    .await;
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

#[tokio::test(start_paused = true)]
async fn custom_resources_have_the_form_for_their_metadata_only() {
    let s = with_widgets().await;
    let (code, list) = packed(call(&s, Method::GET, WIDGETS, METADATA, "").await).await;
    assert_eq!((code, list["kind"].as_str()), (200, Some("PartialObjectMetadataList")));
    assert_eq!(list["items"][0]["metadata"]["name"], "w");
    assert!(list["items"][0].get("spec").is_none());

    let (code, kind, _) = read(call(&s, Method::GET, WIDGETS, MEDIA_TYPE, "").await).await;
    assert_eq!((code, kind.as_str()), (406, "application/json"));
    let accept = format!("{MEDIA_TYPE},application/json");
    let (code, kind, _) = read(call(&s, Method::GET, WIDGETS, &accept, "").await).await;
    assert_eq!((code, kind.as_str()), (200, "application/json"));

    let (code, kind, body) =
        read(call(&s, Method::POST, WIDGETS, &accept, encode(&map("a")).unwrap()).await).await;
    assert_eq!((code, kind.as_str()), (400, "application/json"));
    assert!(String::from_utf8_lossy(&body).contains("does not implement the protobuf marshalling interface"));
}

/// The next frame of a watch.
async fn frame(body: &mut Body, rest: &mut Vec<u8>) -> Value {
    loop {
        if let Some((length, more)) = rest.split_first_chunk::<4>()
            && more.len() >= u32::from_be_bytes(*length) as usize
        {
            let end = 4 + u32::from_be_bytes(*length) as usize;
            let event: Vec<u8> = rest.drain(..end).skip(4).collect();
            // A bare WatchEvent: put into an envelope it can be read.
            let mut whole = b"k8s\0\x0a\x10\x0a\x02v1\x12\x0aWatchEvent\x12".to_vec();
            let mut length = event.len();
            while length >= 0x80 {
                whole.push(length as u8 | 0x80);
                length >>= 7;
            }
            whole.push(length as u8);
            whole.extend(event);
            return decode(&whole).unwrap();
        }
        rest.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
    }
}

#[tokio::test(start_paused = true)]
async fn watches_send_frames_with_objects_bookmarks_and_errors() {
    let s = server();
    post(&s, MAPS, map("a")).await;
    let path = format!(
        "{MAPS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=1"
    );
    let response = call(&s, Method::GET, &path, MEDIA_TYPE, "").await;
    assert_eq!(response.headers()[header::CONTENT_TYPE], WATCH_MEDIA_TYPE);
    let (mut body, mut rest) = (response.into_body(), Vec::new());
    let mut event = async || frame(&mut body, &mut rest).await;

    let got = event().await;
    assert_eq!(got["type"], "ADDED");
    assert_eq!(got["object"], get(&s, &format!("{MAPS}/a")).await.body);
    let got = event().await;
    assert_eq!(got["type"], "BOOKMARK");
    assert_eq!(got["object"]["kind"], "ConfigMap");
    assert_eq!(got["object"]["metadata"]["annotations"]["k8s.io/initial-events-end"], "true");
    post(&s, MAPS, map("b")).await;
    let got = event().await;
    assert_eq!(
        (got["type"].as_str(), &got["object"]),
        (Some("ADDED"), &get(&s, &format!("{MAPS}/b")).await.body)
    );

    let path = format!("{MAPS}?watch=1&resourceVersion=1");
    let accept = METADATA.replace("List", "");
    let response = call(&s, Method::GET, &path, &accept, "").await;
    let (mut body, mut rest) = (response.into_body(), Vec::new());
    let got = frame(&mut body, &mut rest).await;
    assert_eq!(got["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(got["object"]["apiVersion"], "meta.k8s.io/v1");
}
