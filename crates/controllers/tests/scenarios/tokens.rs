//! Secrets with tokens of accounts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeostat_cluster::simulate;
use serde_json::{Value, json};

use crate::virtual_time::Simulation;

const SECRETS: &str = "/api/v1/namespaces/default/secrets";
const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";

fn secret(name: &str, account: &str) -> Value {
    json!({"metadata": {"name": name, "annotations": {"kubernetes.io/service-account.name": account}},
        "type": "kubernetes.io/service-account-token"})
}

#[test]
fn a_secret_gets_its_accounts_token_and_goes_with_it() {
    simulate(async || {
        let world = Simulation::start(111, 0).await;
        world.create(ACCOUNTS, json!({"metadata": {"name": "robot"}})).await;
        world.pass(5).await;
        world.create(SECRETS, secret("token", "robot")).await;
        world.create(SECRETS, secret("nobodys", "ghost")).await;
        world.pass(5).await;
        let account = world.get(&format!("{ACCOUNTS}/robot")).await;
        let filled = world.get(&format!("{SECRETS}/token")).await;
        let annotations = &filled["metadata"]["annotations"];
        assert_eq!(annotations["kubernetes.io/service-account.uid"], account["metadata"]["uid"]);
        let data = |key: &str| {
            let text = filled["data"][key].as_str().unwrap_or_default();
            String::from_utf8(STANDARD.decode(text).unwrap()).unwrap()
        };
        assert_eq!(data("namespace"), "default");
        assert!(data("ca.crt").starts_with("-----BEGIN CERTIFICATE-----"));
        let token = data("token");

        // The server knows whose it is.
        let review = async || {
            let body = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}});
            let request = http::Request::post("/apis/authentication.k8s.io/v1/tokenreviews");
            let request = request.body(body.to_string().into_bytes()).unwrap();
            world.client.request::<Value>(request).await.unwrap()["status"].clone()
        };
        assert_eq!(review().await["user"]["username"], "system:serviceaccount:default:robot");

        let names = async || {
            let secrets = world.items(SECRETS).await;
            secrets.iter().map(|s| s["metadata"]["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(names().await, ["token"], "one without an account goes");
        world.delete(&format!("{ACCOUNTS}/robot"), "Background").await;
        world.pass(5).await;
        assert!(names().await.is_empty());
        assert_ne!(review().await["authenticated"], true);
    })
    .unwrap();
}
