//! A request for a certificate, approved by a person, and the certificate at the server's door.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeostat_cluster::pki::Identity;
use homeostat_cluster::{Cluster, kubeconfig};
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::PostParams;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use rcgen::{CertificateParams, DnType, KeyPair};
use serde_json::json;
use tokio::net::TcpListener;

fn request(name: &str, organization: &str, key: &KeyPair) -> String {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, organization);
    STANDARD.encode(params.serialize_request(key).unwrap().pem().unwrap())
}

async fn until(
    api: &Api<CertificateSigningRequest>,
    name: &str,
    holds: impl Fn(&CertificateSigningRequest) -> bool,
) -> CertificateSigningRequest {
    for _ in 0..2000 {
        let csr = api.get(name).await.unwrap();
        if holds(&csr) {
            return csr;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("never happened to {name}: {:?}", api.get(name).await.unwrap().status);
}

fn conditions(csr: &CertificateSigningRequest) -> Vec<(String, Option<String>)> {
    let all = csr.status.iter().flat_map(|s| s.conditions.iter().flatten());
    all.map(|c| (c.type_.clone(), c.reason.clone())).collect()
}

async fn create(
    api: &Api<CertificateSigningRequest>,
    name: &str,
    signer: &str,
    request: &str,
    usages: &[&str],
) -> CertificateSigningRequest {
    let csr = json!({"metadata": {"name": name}, "spec": {"signerName": signer, "request": request, "usages": usages}});
    api.create(&PostParams::default(), &serde_json::from_value(csr).unwrap()).await.unwrap()
}

/// What `kubectl certificate approve` does.
async fn approve(api: &Api<CertificateSigningRequest>, csr: CertificateSigningRequest) {
    let mut csr = serde_json::to_value(csr).unwrap();
    csr["status"] = json!({"conditions": [{"type": "Approved", "status": "True", "reason": "KubectlApprove",
        "message": "This CSR was approved by kubectl certificate approve."}]});
    let csr: CertificateSigningRequest = serde_json::from_value(csr).unwrap();
    let name = csr.metadata.name.clone().unwrap();
    api.replace_subresource("approval", &name, &PostParams::default(), &csr).await.unwrap();
}

#[tokio::test]
async fn an_approved_request_becomes_an_identity() {
    let cluster = Cluster::start().await.unwrap();
    let endpoint = cluster.serve(TcpListener::bind("127.0.0.1:0").await.unwrap()).await.unwrap();
    let api: Api<CertificateSigningRequest> = Api::all(cluster.client());
    let key = KeyPair::generate().unwrap();
    let signer = "kubernetes.io/kube-apiserver-client";
    let csr = create(&api, "jane", signer, &request("jane", "devs", &key), &["client auth"]).await;
    approve(&api, csr).await;
    let issued = until(&api, "jane", |c| c.status.as_ref().is_some_and(|s| s.certificate.is_some())).await;
    let certificate = String::from_utf8(issued.status.unwrap().certificate.unwrap().0).unwrap();

    let identity = Identity { certificate, key: key.serialize_pem() };
    let text = kubeconfig::text(&endpoint.url(), endpoint.authority().pem(), &identity);
    let config = Kubeconfig::from_yaml(&text).unwrap();
    let config = Config::from_custom_kubeconfig(config, &KubeConfigOptions::default()).await.unwrap();
    let jane = Client::try_from(config).unwrap();
    let review: Api<SelfSubjectReview> = Api::all(jane);
    let who = review.create(&PostParams::default(), &SelfSubjectReview::default()).await.unwrap();
    let user = who.status.unwrap().user_info.unwrap();
    assert_eq!(user.username.as_deref(), Some("jane"));
    assert!(user.groups.unwrap().contains(&"devs".to_owned()));
    cluster.stop(Duration::from_secs(5)).await;
}

#[tokio::test]
async fn signers_refuse_and_kubelets_are_approved() {
    let cluster = Cluster::start().await.unwrap();
    let api: Api<CertificateSigningRequest> = Api::all(cluster.client());
    let key = KeyPair::generate().unwrap();
    let kubelet = "kubernetes.io/kube-apiserver-client-kubelet";
    let usages = ["digital signature", "client auth"];
    let csr = create(&api, "wrong", kubelet, &request("jane", "devs", &key), &usages).await;
    approve(&api, csr).await;
    let failed = until(&api, "wrong", |c| conditions(c).len() == 2).await;
    assert_eq!(conditions(&failed)[1], ("Failed".to_owned(), Some("SignerValidationFailure".to_owned())));

    // Who may create anything may ask for a node's certificate too.
    create(&api, "node", kubelet, &request("system:node:a", "system:nodes", &key), &usages).await;
    let approved = until(&api, "node", |c| c.status.as_ref().is_some_and(|s| s.certificate.is_some())).await;
    assert_eq!(conditions(&approved), [("Approved".to_owned(), Some("AutoApproved".to_owned()))]);

    // Nobody approves this one.
    create(&api, "other", "example.com/signer", &request("x", "y", &key), &["client auth"]).await;
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(conditions(&api.get("other").await.unwrap()), []);
    cluster.stop(Duration::from_secs(5)).await;
}
