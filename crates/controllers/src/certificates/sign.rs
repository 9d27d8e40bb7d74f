//! Signs what is approved, with the cluster's authority.

use std::sync::OnceLock;

use homeostat_sdk::{Context, Error, Next, Operator, Result};
use k8s_openapi::ByteString;
use k8s_openapi::api::certificates::v1::{CertificateSigningRequest, CertificateSigningRequestCondition};

use super::issue::Authority;
use super::{condition, is_issued, request, signers};

/// The controller. Without a key it signs nothing.
#[derive(Default)]
pub(crate) struct Signing {
    certificate: String,
    key: String,
    authority: OnceLock<Option<Authority>>,
}

impl Signing {
    pub(crate) fn new(certificate: &str, key: &str) -> Self {
        Self { certificate: certificate.into(), key: key.into(), authority: OnceLock::new() }
    }

    /// Read when it is first needed: a start waits for nothing.
    fn authority(&self) -> Option<&Authority> {
        let read = || match Authority::new(&self.certificate, &self.key) {
            Ok(authority) => Some(authority),
            Err(error) => {
                tracing::warn!(%error, "certificates can't be signed");
                None
            }
        };
        if self.key.is_empty() {
            return None;
        }
        self.authority.get_or_init(read).as_ref()
    }
}

impl Operator for Signing {
    type Resource = CertificateSigningRequest;
    type Owns = ();
    type Reads = ();

    fn name() -> &'static str {
        "certificatesigningrequest-signing-controller"
    }

    async fn reconcile(&self, csr: &CertificateSigningRequest, cx: &Context<Self>) -> Result<Next> {
        let refused = condition(csr, "Denied").or(condition(csr, "Failed")).is_some();
        if condition(csr, "Approved").is_none() || refused || is_issued(csr) {
            return Ok(Next::done());
        }
        let spec = &csr.spec;
        if !signers::is_built_in(&spec.signer_name) {
            return Ok(Next::done());
        }
        let Some(authority) = self.authority() else { return Ok(Next::done()) };
        let usages = spec.usages.as_deref().unwrap_or_default();
        let parsed = request::parse(&spec.request.0)
            .map_err(|why| Error::msg(format!("unable to parse csr {:?}: {why}", cx.name())).terminal())?;
        let mut new = csr.clone();
        let status = new.status.get_or_insert_default();
        if let Some(why) = signers::refusal(&spec.signer_name, &parsed, usages) {
            status.conditions.get_or_insert_default().push(CertificateSigningRequestCondition {
                type_: "Failed".into(),
                status: "True".into(),
                reason: Some("SignerValidationFailure".into()),
                message: Some(why),
                ..CertificateSigningRequestCondition::default()
            });
        } else {
            let mut serial = [0; 16];
            cx.entropy().fill(&mut serial);
            let pem = authority
                .issue(&parsed, usages, spec.expiration_seconds, serial, cx.clock().now())
                .map_err(|e| Error::msg(format!("error auto signing csr: {e}")).terminal())?;
            status.certificate = Some(ByteString(pem.into_bytes()));
        }
        cx.writer().update_status(&new).await?;
        Ok(Next::done())
    }
}
