//! The generator and its verbs, as a person types them: what they refuse, and what they do to a cluster.
//!
//! The transcripts are in `tests/refusals` and `tests/cluster`; `tests/project` has whole projects, and what they do to a cluster.

use std::time::Duration;

use homeostat_cluster::{Cluster, ClusterOptions};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use kube::runtime::wait::{await_condition, conditions};
use serde_json::{Value, json};
use tokio::net::TcpListener;

fn cases() -> trycmd::TestCases {
    let cases = trycmd::TestCases::new();
    cases.env("HOME", "/nonexistent");
    cases.env("KUBECONFIG", "/nonexistent/kubeconfig");
    cases
}

#[test]
fn what_can_not_be_done_is_refused_in_one_line() {
    cases().case("tests/refusals/*.md");
}

/// A second user without rights, and a second cluster that isn't there.
fn more_contexts(text: &str) -> String {
    let mut config: Value = serde_saphyr::from_str(text).expect("a kubeconfig");
    let add = |list: &mut Value, value: Value| list.as_array_mut().expect("a list").push(value);
    let nowhere = json!({"name": "nowhere", "cluster": {"server": "https://127.0.0.1:1"}});
    add(&mut config["clusters"], nowhere);
    add(&mut config["users"], json!({"name": "nobody", "user": {"token": "nobodys-token"}}));
    for (name, cluster) in [("nobody", "homeostat"), ("nowhere", "nowhere")] {
        add(
            &mut config["contexts"],
            json!({"name": name, "context": {"cluster": cluster, "user": "nobody"}}),
        );
    }
    config.to_string()
}

/// Somebody else's definition, and an object of it.
async fn foreign(client: kube::Client) {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/cluster/install.in/foreign/config/crd/coffees.example.com.yaml"
    );
    let mut crd: Value =
        serde_saphyr::from_str(&std::fs::read_to_string(path).expect("a file")).expect("YAML");
    crd["metadata"].as_object_mut().expect("metadata").remove("labels");
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let name = "coffees.example.com";
    api.patch(name, &PatchParams::apply("somebody"), &Patch::Apply(&crd)).await.expect("a definition");
    await_condition(api, name, conditions::is_crd_established()).await.expect("it is served");
    let coffee = json!({"apiVersion": "example.com/v1", "kind": "Coffee", "metadata": {"name": "black"}});
    let coffee: DynamicObject = serde_json::from_value(coffee).expect("an object");
    let gvk = GroupVersionKind::gvk("example.com", "v1", "Coffee");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "coffees");
    let api: Api<DynamicObject> = Api::namespaced_with(client, "default", &resource);
    api.create(&PostParams::default(), &coffee).await.expect("a coffee");
}

#[test]
fn definitions_come_and_go_and_are_not_taken_from_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = folder.path().join("kubeconfig");
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let cluster = runtime.block_on(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let advertise = listener.local_addr().ok();
        let mut options = ClusterOptions { nodes: 0, advertise, ..ClusterOptions::default() };
        options.tokens("nobodys-token,nobody,nobody").expect("tokens");
        let cluster = Cluster::with(options).await.expect("a cluster");
        let endpoint = cluster.serve(listener).await.expect("an endpoint");
        std::fs::write(&config, more_contexts(&endpoint.kubeconfig())).expect("a kubeconfig");
        foreign(cluster.client()).await;
        cluster
    });
    let cases = cases();
    cases.env("KUBECONFIG", config.to_string_lossy().into_owned());
    cases.case("tests/cluster/*.md");
    cases.run();
    runtime.block_on(cluster.stop(Duration::from_secs(4)));
}
