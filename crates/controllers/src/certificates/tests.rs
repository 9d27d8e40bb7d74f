//! Requests as clients make them, the rules of the signers, and certificates that verify.

use homeostat_model::Timestamp;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestSpec};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, KeyPair, KeyUsagePurpose, SanType};
use serde_json::{Value, json};
use x509_parser::extensions::ParsedExtension;

use super::issue::Authority;
use super::request::{self, Request};
use super::{approve, clean, signers};

fn now() -> Timestamp {
    "2026-05-06T07:08:09Z".parse().unwrap()
}

fn usages(list: &[&str]) -> Vec<String> {
    list.iter().map(|u| (*u).to_owned()).collect()
}

/// A request for a common name and an organization.
fn csr(name: &str, organization: &str, names: Vec<SanType>) -> Request {
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, name);
    params.distinguished_name.push(DnType::OrganizationName, organization);
    params.subject_alt_names = names;
    let pem = params.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap();
    request::parse(pem.as_bytes()).unwrap()
}

fn dns() -> Vec<SanType> {
    vec![SanType::DnsName("n1.local".try_into().unwrap()), SanType::IpAddress([10, 0, 0, 1].into())]
}

fn authority() -> (Authority, String) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.not_after = rcgen::date_time_ymd(2031, 1, 1);
    let certificate = params.self_signed(&key).unwrap().pem();
    (Authority::new(&certificate, &key.serialize_pem()).unwrap(), certificate)
}

#[test]
fn requests_are_read_and_checked() {
    let got = csr("jane", "devs", dns());
    assert_eq!((got.common_name.as_str(), &*got.organizations), ("jane", &["devs".to_owned()][..]));
    assert_eq!((got.dns_names, got.addresses, got.emails, got.uris), (1, 1, 0, 0));
    assert!(request::parse(b"nothing").is_err());
    // A request whose signature isn't its own.
    let pem = CertificateParams::default().serialize_request(&KeyPair::generate().unwrap()).unwrap();
    let mut der = pem.der().to_vec();
    let last = der.len() - 1;
    der[last] ^= 1;
    let forged = super::issue::pem(&der).replace("CERTIFICATE", "CERTIFICATE REQUEST");
    assert!(request::parse(forged.as_bytes()).is_err());
}

#[test]
fn signers_have_rules() {
    let node = || csr("system:node:a", "system:nodes", vec![]);
    let check = |signer: &str, request: &Request, list: &[&str], want: Option<&str>| {
        assert_eq!(signers::refusal(signer, request, &usages(list)).as_deref(), want, "{signer}");
    };
    let client = ["digital signature", "client auth"];
    check(signers::KUBELET_CLIENT, &node(), &client, None);
    check(signers::KUBELET_CLIENT, &node(), &["key encipherment", "digital signature", "client auth"], None);
    let wrong = "usages did not match [client auth digital signature key encipherment]";
    check(signers::KUBELET_CLIENT, &node(), &["client auth"], Some(wrong));
    let other = csr("system:node:a", "devs", vec![]);
    check(signers::KUBELET_CLIENT, &other, &client, Some("subject organization is not system:nodes"));
    let other = csr("jane", "system:nodes", vec![]);
    let why = "subject common name does not begin with system:node: ";
    check(signers::KUBELET_CLIENT, &other, &client, Some(why));
    let named = csr("system:node:a", "system:nodes", dns());
    check(signers::KUBELET_CLIENT, &named, &client, Some("DNS subjectAltNames are not allowed"));
    let server = ["digital signature", "server auth"];
    check(signers::KUBELET_SERVING, &named, &server, None);
    check(signers::KUBELET_SERVING, &node(), &server, Some("DNS or IP subjectAltName is required"));
    let jane = csr("jane", "devs", vec![]);
    check(signers::CLIENT, &jane, &["client auth"], None);
    let why = "invalid usage for client certificate: server auth";
    check(signers::CLIENT, &jane, &["client auth", "server auth"], Some(why));
    let why = "missing required usage for client certificate: client auth";
    check(signers::CLIENT, &jane, &["digital signature"], Some(why));
}

#[test]
fn certificates_say_what_was_asked_and_verify() {
    let (authority, ca) = authority();
    let request = csr("jane", "devs", dns());
    let list = usages(&["digital signature", "key encipherment", "client auth"]);
    let issue = |seconds| authority.issue(&request, &list, seconds, [7; 16], now()).unwrap();
    let pem = issue(Some(3600));
    let (_, block) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
    let got = block.parse_x509().unwrap();
    let (_, ca) = x509_parser::pem::parse_x509_pem(ca.as_bytes()).unwrap();
    let ca = ca.parse_x509().unwrap();
    got.verify_signature(Some(ca.public_key())).unwrap();
    assert_eq!(got.issuer(), ca.subject());
    assert_eq!(got.subject().to_string(), "CN=jane, O=devs");
    assert_eq!(got.validity().not_before.timestamp(), now().as_second() - 300);
    assert_eq!(got.validity().not_after.timestamp(), now().as_second() + 3600);
    let usage = got.key_usage().unwrap().unwrap().value;
    assert!(usage.digital_signature() && usage.key_encipherment() && !usage.key_cert_sign());
    assert!(got.extended_key_usage().unwrap().unwrap().value.client_auth);
    assert!(!got.is_ca());
    let names = got.subject_alternative_name().unwrap().unwrap().value;
    assert_eq!(names.general_names.len(), 2);
    assert!(got.extensions().iter().any(|e| matches!(
        e.parsed_extension(),
        ParsedExtension::AuthorityKeyIdentifier(id) if id.key_identifier.is_some()
    )));
    let until = |pem: &str| {
        let (_, block) = x509_parser::pem::parse_x509_pem(pem.as_bytes()).unwrap();
        block.parse_x509().unwrap().validity().not_after.timestamp()
    };
    assert_eq!(until(&issue(None)), now().as_second() - 300 + 365 * 86_400);
    assert!(authority.issue(&request, &usages(&["odd"]), None, [7; 16], now()).is_err());
    // Nothing outlives the authority.
    let late: Timestamp = "2030-12-31T12:00:00Z".parse().unwrap();
    let pem = authority.issue(&request, &list, None, [7; 16], late).unwrap();
    assert_eq!(until(&pem), "2031-01-01T00:00:00Z".parse::<Timestamp>().unwrap().as_second());
}

#[test]
fn kubelets_are_recognized() {
    let rights = |signer: &str, user: &str, name: &str| {
        let spec: CertificateSigningRequestSpec =
            serde_json::from_value(json!({"request": "", "signerName": signer,
            "username": user, "usages": ["digital signature", "client auth"]}))
            .unwrap();
        let ways = approve::recognize(&spec, &csr(name, "system:nodes", vec![]));
        ways.into_iter().map(|w| w.right).collect::<Vec<_>>()
    };
    let kubelet = signers::KUBELET_CLIENT;
    assert_eq!(rights(kubelet, "system:node:a", "system:node:a"), ["selfnodeclient", "nodeclient"]);
    assert_eq!(rights(kubelet, "system:bootstrap:x", "system:node:a"), ["nodeclient"]);
    assert!(rights(kubelet, "jane", "jane").is_empty());
    assert!(rights(signers::CLIENT, "system:node:a", "system:node:a").is_empty());
}

#[test]
fn old_requests_go() {
    let check = |status: Value, want: Option<i64>| {
        let csr: CertificateSigningRequest = serde_json::from_value(json!({
            "metadata": {"creationTimestamp": now().to_string()}, "spec": {"request": "", "signerName": "a.b/c"},
            "status": status}))
        .unwrap();
        assert_eq!(clean::ends(&csr).map(|t| t.as_second() - now().as_second()), want);
    };
    let condition =
        |kind: &str| json!([{"type": kind, "status": "True", "lastUpdateTime": now().to_string()}]);
    check(json!({}), Some(86_400));
    check(json!({"conditions": condition("Denied")}), Some(3600));
    check(json!({"conditions": condition("Failed")}), Some(3600));
    check(json!({"conditions": condition("Approved")}), None);
    check(json!({"conditions": condition("Approved"), "certificate": "eA=="}), Some(3600));
}
