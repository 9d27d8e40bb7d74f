//! Takes away requests that are of no more use: an hour after they were decided, a day after nobody did.

use std::time::Duration;

use homeostat_model::Timestamp;
use homeostat_sdk::{Context, Next, Operator, Result};
use k8s_openapi::api::certificates::v1::CertificateSigningRequest;
use kube::api::{DeleteParams, Preconditions};

use super::is_issued;

const DECIDED: Duration = Duration::from_secs(3600);
const PENDING: Duration = Duration::from_secs(24 * 3600);

/// The controller.
pub(crate) struct Cleaning;

/// When a request may go.
pub(super) fn ends(csr: &CertificateSigningRequest) -> Option<Timestamp> {
    let conditions = csr.status.as_ref().and_then(|s| s.conditions.as_deref()).unwrap_or_default();
    let since = |kind: &str| {
        let condition = conditions.iter().find(|c| c.type_ == kind)?;
        let time = condition.last_update_time.as_ref().or(condition.last_transition_time.as_ref());
        time.or(csr.metadata.creation_timestamp.as_ref()).map(|t| t.0)
    };
    let later = |t: Timestamp, by| t.checked_add(by).ok();
    let decided = [since("Approved").filter(|_| is_issued(csr)), since("Denied"), since("Failed")];
    let mut all: Vec<Timestamp> = decided.into_iter().flatten().filter_map(|t| later(t, DECIDED)).collect();
    if conditions.is_empty() && !is_issued(csr) {
        all.extend(csr.metadata.creation_timestamp.as_ref().and_then(|t| later(t.0, PENDING)));
    }
    let pem = csr.status.as_ref().and_then(|s| s.certificate.as_ref());
    let expires = pem.and_then(|pem| {
        let (_, block) = x509_parser::pem::parse_x509_pem(&pem.0).ok()?;
        let until = block.parse_x509().ok()?.validity().not_after.timestamp();
        Timestamp::from_second(until).ok()
    });
    all.extend(expires);
    all.into_iter().min()
}

impl Operator for Cleaning {
    type Resource = CertificateSigningRequest;
    type Owns = ();
    type Reads = ();

    fn name() -> &'static str {
        "certificatesigningrequest-cleaner-controller"
    }

    async fn reconcile(&self, csr: &CertificateSigningRequest, cx: &Context<Self>) -> Result<Next> {
        let Some(ends) = ends(csr) else { return Ok(Next::done()) };
        let left = Duration::try_from(ends.duration_since(cx.clock().now())).unwrap_or_default();
        if !left.is_zero() {
            return Ok(Next::after(left));
        }
        let preconditions = Preconditions {
            uid: csr.metadata.uid.clone(),
            resource_version: csr.metadata.resource_version.clone(),
        };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        cx.writer().delete::<CertificateSigningRequest>(cx.key(), &params).await?;
        Ok(Next::done())
    }
}
