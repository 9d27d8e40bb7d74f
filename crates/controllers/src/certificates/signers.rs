//! What the built-in signers demand of a request: the reference's rules, in its words. Pure.

use super::request::Request;

pub(super) const CLIENT: &str = "kubernetes.io/kube-apiserver-client";
pub(super) const KUBELET_CLIENT: &str = "kubernetes.io/kube-apiserver-client-kubelet";
pub(super) const KUBELET_SERVING: &str = "kubernetes.io/kubelet-serving";
pub(super) const LEGACY: &str = "kubernetes.io/legacy-unknown";

const NODES: &str = "system:nodes";
const NODE: &str = "system:node:";

/// Whether a signer is one of these.
pub(super) fn is_built_in(signer: &str) -> bool {
    [CLIENT, KUBELET_CLIENT, KUBELET_SERVING, LEGACY].contains(&signer)
}

/// Why a built-in signer refuses a request.
pub(super) fn refusal(signer: &str, request: &Request, usages: &[String]) -> Option<String> {
    match signer {
        KUBELET_CLIENT => kubelet_client(request, usages),
        KUBELET_SERVING => kubelet_serving(request, usages),
        CLIENT => client(usages),
        _ => None,
    }
}

fn client(usages: &[String]) -> Option<String> {
    let allowed = ["digital signature", "key encipherment", "client auth"];
    if let Some(other) = usages.iter().find(|u| !allowed.contains(&u.as_str())) {
        return Some(format!("invalid usage for client certificate: {other}"));
    }
    let has = usages.iter().any(|u| u == "client auth");
    (!has).then(|| "missing required usage for client certificate: client auth".into())
}

fn is_node(request: &Request) -> Option<&'static str> {
    if request.organizations != [NODES] {
        return Some("subject organization is not system:nodes");
    }
    (!request.common_name.starts_with(NODE))
        .then_some("subject common name does not begin with system:node: ")
}

/// The usages must be these, `key encipherment` as one likes.
fn exactly(usages: &[String], purpose: &str) -> Option<String> {
    let mut sorted: Vec<&str> =
        usages.iter().map(String::as_str).filter(|u| *u != "key encipherment").collect();
    sorted.sort_unstable();
    let mut wanted = ["digital signature", purpose];
    wanted.sort_unstable();
    let mut all = ["digital signature", "key encipherment", purpose];
    all.sort_unstable();
    (sorted != wanted).then(|| format!("usages did not match [{}]", all.join(" ")))
}

/// A kubelet's certificate as a client.
pub(super) fn kubelet_client(request: &Request, usages: &[String]) -> Option<String> {
    let why = is_node(request);
    let why = why.or((request.dns_names > 0).then_some("DNS subjectAltNames are not allowed"));
    let why = why.or((request.emails > 0).then_some("Email subjectAltNames are not allowed"));
    let why = why.or((request.addresses > 0).then_some("IP subjectAltNames are not allowed"));
    let why = why.or((request.uris > 0).then_some("URI subjectAltNames are not allowed"));
    why.map(str::to_owned).or_else(|| exactly(usages, "client auth"))
}

/// A kubelet's certificate as a server.
fn kubelet_serving(request: &Request, usages: &[String]) -> Option<String> {
    let why = is_node(request);
    let nameless = request.dns_names + request.addresses == 0;
    let why = why.or(nameless.then_some("DNS or IP subjectAltName is required"));
    let why = why.or((request.emails > 0).then_some("Email subjectAltNames are not allowed"));
    let why = why.or((request.uris > 0).then_some("URI subjectAltNames are not allowed"));
    why.map(str::to_owned).or_else(|| exactly(usages, "server auth"))
}
