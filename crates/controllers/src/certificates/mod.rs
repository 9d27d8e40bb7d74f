//! CertificateSigningRequests: kubelets' own are approved, what is approved is signed, what is old goes.
//!
//! [`request`] reads what is asked for, [`signers`] says what each built-in signer demands, [`issue`] makes the
//! certificate; all pure. Requests to other signers are left to those.
//! Invariant: nothing is signed that isn't approved, and no certificate outlives the authority.

pub(crate) mod approve;
pub(crate) mod clean;
mod issue;
mod request;
pub(crate) mod sign;
mod signers;
#[cfg(test)]
mod tests;

use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};

/// The condition of a type.
fn condition<'a>(
    csr: &'a CertificateSigningRequest,
    kind: &str,
) -> Option<&'a CertificateSigningRequestCondition> {
    csr.status.as_ref()?.conditions.iter().flatten().find(|c| c.type_ == kind)
}

/// Whether the certificate is there.
fn is_issued(csr: &CertificateSigningRequest) -> bool {
    csr.status.as_ref().and_then(|s| s.certificate.as_ref()).is_some_and(|c| !c.0.is_empty())
}
