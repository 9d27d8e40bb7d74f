//! What a PKCS #10 request asks for, its signature checked. Pure.

use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::cri_attributes::ParsedCriAttribute;
use x509_parser::extensions::GeneralName;
use x509_parser::oid_registry::OID_X509_EXT_SUBJECT_ALT_NAME;
use x509_parser::pem::parse_x509_pem;
use x509_parser::prelude::{FromDer, ParsedExtension};

/// A request. What is issued is copied from the raw parts, so that nothing of the subject is lost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) common_name: String,
    pub(super) organizations: Vec<String>,
    pub(super) dns_names: usize,
    pub(super) addresses: usize,
    pub(super) emails: usize,
    pub(super) uris: usize,
    /// DER of the subject.
    pub(super) subject: Vec<u8>,
    /// DER of the public key with its algorithm.
    pub(super) public_key: Vec<u8>,
    /// DER of the alternative names, where there are any.
    pub(super) names: Option<Vec<u8>>,
}

/// Reads a request in PEM.
pub(super) fn parse(pem: &[u8]) -> Result<Request, String> {
    let (_, block) = parse_x509_pem(pem).map_err(|e| e.to_string())?;
    if block.label != "CERTIFICATE REQUEST" {
        return Err("PEM block type must be CERTIFICATE REQUEST".into());
    }
    let (_, csr) = X509CertificationRequest::from_der(&block.contents).map_err(|e| e.to_string())?;
    csr.verify_signature().map_err(|e| e.to_string())?;
    let info = &csr.certification_request_info;
    let text = |a: &x509_parser::x509::AttributeTypeAndValue<'_>| a.as_str().ok().map(str::to_owned);
    let mut request = Request {
        common_name: info.subject.iter_common_name().filter_map(text).last().unwrap_or_default(),
        organizations: info.subject.iter_organization().filter_map(text).collect(),
        subject: info.subject.as_raw().to_vec(),
        public_key: info.subject_pki.raw.to_vec(),
        ..Request::default()
    };
    for attribute in info.iter_attributes() {
        let ParsedCriAttribute::ExtensionRequest(asked) = attribute.parsed_attribute() else { continue };
        let names = asked.extensions.iter().find(|e| e.oid == OID_X509_EXT_SUBJECT_ALT_NAME);
        let Some(extension) = names else { continue };
        request.names = Some(extension.value.to_vec());
        let ParsedExtension::SubjectAlternativeName(names) = extension.parsed_extension() else {
            return Err("the subject's alternative names can't be read".into());
        };
        for name in &names.general_names {
            match name {
                GeneralName::DNSName(_) => request.dns_names += 1,
                GeneralName::IPAddress(_) => request.addresses += 1,
                GeneralName::RFC822Name(_) => request.emails += 1,
                GeneralName::URI(_) => request.uris += 1,
                other => return Err(format!("an alternative name of this kind can't be issued: {other}")),
            }
        }
    }
    Ok(request)
}
