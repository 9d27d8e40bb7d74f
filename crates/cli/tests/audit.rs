//! `homeostat up --audit-log`: the file that a person gets, by default and by a policy, and what wrong options say.

use std::path::Path;
use std::process::{Command, Output};

use k8s_openapi::api::core::v1::{ConfigMap, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, PostParams};
use serde_json::Value;

#[path = "shared/up.rs"]
mod up;

/// A server alone.
fn server(folder: &Path, args: &[&str]) -> Command {
    let args = [&["--nodes", "0", "--controllers", ""], args].concat();
    up::command(folder, &args)
}

/// Creates a ConfigMap and a Secret on a server with these options, and ends it; what it said, and the log's events.
async fn session(folder: &Path, args: &[&str]) -> (Output, Vec<Value>) {
    let server = server(folder, args).spawn().expect("homeostat runs");
    let client = up::client(folder).await;
    let named = |name: &str| ObjectMeta { name: Some(name.to_owned()), ..Default::default() };
    let map = ConfigMap { metadata: named("seen"), ..ConfigMap::default() };
    Api::namespaced(client.clone(), "default").create(&PostParams::default(), &map).await.expect("created");
    let secret = Secret { metadata: named("hidden"), ..Secret::default() };
    Api::namespaced(client, "default").create(&PostParams::default(), &secret).await.expect("created");
    let ended = Command::new("kill").arg(server.id().to_string()).status().expect("kill runs");
    assert!(ended.success());
    let output = tokio::task::spawn_blocking(move || server.wait_with_output()).await.expect("no panic");
    let text = std::fs::read_to_string(folder.join("audit.log")).expect("a log");
    let events = text.lines().map(|l| serde_json::from_str(l).expect("a line of JSON")).collect();
    (output.expect("it ended"), events)
}

fn creates(events: &[Value], resource: &str) -> Vec<Value> {
    let of = |e: &&Value| e["verb"] == "create" && e["objectRef"]["resource"] == resource;
    events.iter().filter(of).cloned().collect()
}

#[tokio::test]
async fn everything_is_logged_at_metadata() {
    let folder = tempfile::tempdir().expect("a folder");
    let (output, events) = session(folder.path(), &["--audit-log-path", "audit.log"]).await;
    assert!(output.status.success(), "{output:?}");
    let made = creates(&events, "configmaps");
    let stages: Vec<&Value> = made.iter().map(|e| &e["stage"]).collect();
    assert_eq!(stages, ["RequestReceived", "ResponseComplete"]);
    let last = &made[1];
    assert_eq!(
        (&last["level"], &last["user"]["username"], &last["responseStatus"]["code"]),
        (&"Metadata".into(), &"kubernetes-admin".into(), &201.into())
    );
    assert_eq!(last["objectRef"]["name"], "seen");
    assert_eq!(last["sourceIPs"][0], "127.0.0.1");
    assert_eq!(last["annotations"]["authorization.k8s.io/decision"], "allow");
    assert_eq!(last.get("requestObject"), None);
    assert_eq!(creates(&events, "secrets").len(), 2);
}

#[tokio::test]
async fn a_policy_chooses() {
    let folder = tempfile::tempdir().expect("a folder");
    let policy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nomitStages: [RequestReceived]\nrules:\n\
                  - {level: None, resources: [{group: '', resources: [secrets]}]}\n- {level: RequestResponse, verbs: [create]}\n";
    std::fs::write(folder.path().join("policy.yaml"), policy).expect("written");
    let args = ["--audit-log", "audit.log", "--audit-policy-file", "policy.yaml"];
    let (output, events) = session(folder.path(), &args).await;
    assert!(output.status.success(), "{output:?}");
    let made = creates(&events, "configmaps");
    assert_eq!(made.len(), 1, "{events:?}");
    assert_eq!(made[0]["requestObject"]["metadata"]["name"], "seen");
    assert!(made[0]["responseObject"]["metadata"]["uid"].is_string());
    assert!(creates(&events, "secrets").is_empty());
    assert!(events.iter().all(|e| e["verb"] == "create"), "{events:?}");
}

/// What `up` says, in one line, before it starts anything.
fn check(args: &[&str], want: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let wrong = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Everything}]\n";
    std::fs::write(folder.path().join("wrong.yaml"), wrong).expect("written");
    let output = server(folder.path(), args).output().expect("homeostat runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && said.trim_end().lines().count() == 1, "{said}");
    assert!(said.contains(want), "{said}");
}

#[test]
fn wrong_options_are_refused() {
    check(
        &["--audit-log", "a", "--audit-policy-file", "wrong.yaml"],
        "wrong.yaml: rules[0].level: Unsupported value: \"Everything\"",
    );
    check(&["--audit-log", "a", "--audit-policy-file", "nowhere.yaml"], "cannot read nowhere.yaml: ");
    check(&["--audit-log", "no/such/folder/a"], "cannot write no/such/folder/a: ");
    check(&["--audit-policy-file", "wrong.yaml"], "--audit-log <FILE>");
}
