//! Random requests and bodies: whatever comes, there is an answer, it is no panic, and the server goes on.
#![allow(missing_docs)]

mod support;

use http::Method;
use proptest::prelude::*;
use serde_json::{Value, json};
use support::{get, post, read, send, server};

/// Parts of paths, from sensible to nonsensical.
fn path() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("api"),
        Just("apis"),
        Just("v1"),
        Just("apps"),
        Just("namespaces"),
        Just("default"),
        Just("pods"),
        Just("configmaps"),
        Just("services"),
        Just("deployments"),
        Just("a"),
        Just("status"),
        Just("scale"),
        Just("example.com"),
        Just("widgets"),
        Just("binding"),
        Just("eviction"),
        Just("log"),
        Just("token"),
        Just("serviceaccounts"),
        Just("customresourcedefinitions"),
        Just("apiextensions.k8s.io"),
        Just("watch"),
        Just(""),
        Just("%2F"),
        Just("%FF"),
        Just(".."),
        Just("openapi"),
        Just("v3"),
        Just("healthz"),
        Just("finalize"),
    ];
    let known = prop_oneof![
        Just("/api/v1/namespaces/default/configmaps/a".to_owned()),
        Just("/api/v1/namespaces/default/configmaps".to_owned()),
        Just("/api/v1/namespaces/default/pods/a/status".to_owned()),
        Just("/api/v1/namespaces/default/pods".to_owned()),
        Just("/api/v1/namespaces/default/services".to_owned()),
        Just("/api/v1/namespaces".to_owned()),
        Just("/apis/apps/v1/namespaces/default/deployments/a/scale".to_owned()),
        Just("/apis/apps/v1/namespaces/default/deployments".to_owned()),
        Just("/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned()),
        Just("/apis/example.com/v1/namespaces/default/widgets".to_owned()),
        Just("/apis/example.com/v1/namespaces/default/widgets/a/scale".to_owned()),
    ];
    prop_oneof![known, prop::collection::vec(word, 0..8).prop_map(|parts| format!("/{}", parts.join("/")))]
}

fn query() -> impl Strategy<Value = String> {
    let value = prop_oneof![
        Just("1"),
        Just("0"),
        Just("-1"),
        Just("true"),
        Just("All"),
        Just("99999999999999999999"),
        Just("a%3Db"),
        Just("Exact"),
        Just("NotOlderThan"),
        Just("Strict"),
        Just("metadata.name%3Da"),
        Just("eyJ2IjoxfQ"),
        Just("%00"),
        Just("Foreground"),
        Just("Orphan"),
        Just(""),
    ];
    let key = prop_oneof![
        Just("limit"),
        Just("continue"),
        Just("resourceVersion"),
        Just("resourceVersionMatch"),
        Just("labelSelector"),
        Just("fieldSelector"),
        Just("dryRun"),
        Just("fieldValidation"),
        Just("fieldManager"),
        Just("force"),
        Just("gracePeriodSeconds"),
        Just("propagationPolicy"),
        Just("includeObject"),
        Just("pretty"),
        Just("hash"),
        Just("sendInitialEvents"),
        Just("verbose"),
        Just("container"),
    ];
    prop::collection::vec((key, value), 0..4)
        .prop_map(|ps| ps.into_iter().map(|(k, v)| format!("{k}={v}")).collect::<Vec<_>>().join("&"))
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-z./\\-_é\u{0}\"]{0,12}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        let key = prop_oneof![
            Just("metadata".to_owned()),
            Just("name".to_owned()),
            Just("spec".to_owned()),
            Just("status".to_owned()),
            Just("labels".to_owned()),
            Just("data".to_owned()),
            Just("finalizers".to_owned()),
            Just("replicas".to_owned()),
            Just("ownerReferences".to_owned()),
            Just("managedFields".to_owned()),
            Just("containers".to_owned()),
            Just("versions".to_owned()),
            Just("names".to_owned()),
            Just("ports".to_owned()),
            Just("op".to_owned()),
            Just("path".to_owned()),
            Just("value".to_owned()),
            Just("resourceVersion".to_owned()),
            "[a-zA-Z$:/]{0,6}",
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|m| Value::Object(m.into_iter().collect())),
        ]
    })
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let typed = (
        any_json(),
        any_json(),
        prop_oneof![
            Just("ConfigMap"),
            Just("Pod"),
            Just("Service"),
            Just("Deployment"),
            Just("Widget"),
            Just("Namespace"),
            Just("CustomResourceDefinition"),
            Just("Scale")
        ],
    )
        .prop_map(|(metadata, spec, kind)| {
            let version = match kind {
                "Deployment" => "apps/v1",
                "Widget" => "example.com/v1",
                "CustomResourceDefinition" => "apiextensions.k8s.io/v1",
                "Scale" => "autoscaling/v1",
                _ => "v1",
            };
            let mut metadata = metadata;
            if metadata.is_object() {
                metadata["name"] = "a".into();
            } else {
                metadata = json!({"name": "a"});
            }
            json!({"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec, "data": spec})
                .to_string()
                .into_bytes()
        });
    prop_oneof![
        4 => typed,
        2 => any_json().prop_map(|v| v.to_string().into_bytes()),
        1 => prop::collection::vec(any::<u8>(), 0..64),
        1 => Just(Vec::new()),
        1 => (1..400usize).prop_map(|n| "[".repeat(n).into_bytes()),
    ]
}

fn kind() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("application/json"),
        Just("application/yaml"),
        Just("application/merge-patch+json"),
        Just("application/json-patch+json"),
        Just("application/strategic-merge-patch+json"),
        Just("application/apply-patch+yaml"),
        Just("text/plain"),
        Just(""),
    ]
}

fn method() -> impl Strategy<Value = Method> {
    prop_oneof![
        Just(Method::GET),
        Just(Method::POST),
        Just(Method::PUT),
        Just(Method::PATCH),
        Just(Method::DELETE),
        Just(Method::HEAD),
        Just(Method::OPTIONS),
    ]
}

fn crd() -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "subresources": {"scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_request_has_an_answer(
        requests in prop::collection::vec((method(), path(), query(), kind(), body()), 1..40)
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build().unwrap();
        runtime.block_on(async {
            let s = server();
            post(&s, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd()).await;
            for (method, path, query, kind, body) in requests {
                let uri = format!("{path}?{query}");
                if uri.parse::<http::Uri>().is_err() || query.contains("watch") || path.contains("watch") {
                    continue;
                }
                let text = String::from_utf8_lossy(&body).into_owned();
                let r = read(send(&s, method.clone(), &uri, kind, body).await).await;
                let panicked = r.code == 500 && r.body["message"].as_str().is_some_and(|m| m.contains("panic"));
                assert!(!panicked, "{method} {uri} {kind}\n{text}");
            }
            assert_eq!(get(&s, "/readyz").await.code, 200);
            assert_eq!(get(&s, "/api/v1/namespaces/default").await.code, 200);
        });
    }
}
