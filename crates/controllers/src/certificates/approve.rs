//! Approves kubelets' requests for their own client certificates, where they have the right to be approved.
//!
//! The right is asked of the API server (`selfnodeclient`, `nodeclient`), for the user who made the request.

use homeostat_sdk::{Context, Error, Next, Operator, Result};
use k8s_openapi::api::authorization::v1::{ResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use k8s_openapi::api::certificates::v1::{
    CertificateSigningRequest, CertificateSigningRequestCondition, CertificateSigningRequestSpec,
};
use kube::Api;
use kube::api::PostParams;

use super::request::{self, Request};
use super::{condition, is_issued, signers};

/// The controller.
pub(crate) struct Approving;

/// A way to be approved.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Recognized {
    pub(super) right: &'static str,
    message: &'static str,
}

/// The ways in which a request may be approved, in the order in which they are tried.
pub(super) fn recognize(spec: &CertificateSigningRequestSpec, request: &Request) -> Vec<Recognized> {
    let usages = spec.usages.as_deref().unwrap_or_default();
    if spec.signer_name != signers::KUBELET_CLIENT || signers::kubelet_client(request, usages).is_some() {
        return Vec::new();
    }
    let own = Recognized {
        right: "selfnodeclient",
        message: "Auto approving self kubelet client certificate after SubjectAccessReview.",
    };
    let any = Recognized {
        right: "nodeclient",
        message: "Auto approving kubelet client certificate after SubjectAccessReview.",
    };
    if spec.username.as_deref() == Some(&request.common_name) { vec![own, any] } else { vec![any] }
}

async fn may(spec: &CertificateSigningRequestSpec, right: &str, cx: &Context<Approving>) -> Result<bool> {
    let review = SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            user: spec.username.clone(),
            uid: spec.uid.clone(),
            groups: spec.groups.clone(),
            extra: spec.extra.clone(),
            resource_attributes: Some(ResourceAttributes {
                group: Some("certificates.k8s.io".into()),
                resource: Some("certificatesigningrequests".into()),
                verb: Some("create".into()),
                subresource: Some(right.into()),
                version: Some("*".into()),
                ..ResourceAttributes::default()
            }),
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    };
    let api = Api::<SubjectAccessReview>::all(cx.client().clone());
    let answer = api.create(&PostParams::default(), &review).await?;
    Ok(answer.status.is_some_and(|s| s.allowed))
}

impl Operator for Approving {
    type Resource = CertificateSigningRequest;
    type Owns = ();
    type Reads = ();

    fn name() -> &'static str {
        "certificatesigningrequest-approving-controller"
    }

    async fn reconcile(&self, csr: &CertificateSigningRequest, cx: &Context<Self>) -> Result<Next> {
        let decided = condition(csr, "Approved").or(condition(csr, "Denied")).is_some();
        if decided || is_issued(csr) || csr.spec.signer_name != signers::KUBELET_CLIENT {
            return Ok(Next::done());
        }
        let parsed = request::parse(&csr.spec.request.0)
            .map_err(|why| Error::msg(format!("unable to parse csr {:?}: {why}", cx.name())).terminal())?;
        let mut tried = Vec::new();
        for way in recognize(&csr.spec, &parsed) {
            if may(&csr.spec, way.right, cx).await? {
                let mut new = csr.clone();
                let status = new.status.get_or_insert_default();
                status.conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
                    type_: "Approved".into(),
                    status: "True".into(),
                    reason: Some("AutoApproved".into()),
                    message: Some(way.message.into()),
                    ..CertificateSigningRequestCondition::default()
                });
                let api = Api::<CertificateSigningRequest>::all(cx.client().clone());
                api.replace_subresource("approval", cx.name(), &PostParams::default(), &new).await?;
                return Ok(Next::done());
            }
            tried.push(way.right);
        }
        if tried.is_empty() {
            return Ok(Next::done());
        }
        // The right may be given later.
        let text = format!(
            "recognized csr {:?} as [{}] but subject access review was not approved",
            cx.name(),
            tried.join(" ")
        );
        Err(Error::msg(text))
    }
}
