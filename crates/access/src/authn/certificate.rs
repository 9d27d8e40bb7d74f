//! Client certificates: the common name is the user, the organizations are the groups.
//!
//! The chain has been verified by TLS before; here a certificate is only read.

use sha2::{Digest, Sha256};
use x509_parser::prelude::*;

use super::extra;
use crate::{CREDENTIAL_ID, User};

/// Attribute of the subject that holds the user's uid (Kubernetes 1.34 and later).
const UID: &[u64] = &[1, 3, 6, 1, 4, 1, 57683, 2];

/// The user of a certificate in DER form; `None` where it cannot be read or has no common name.
pub fn user(der: &[u8]) -> Option<User> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let subject = certificate.subject();
    let text = |a: &AttributeTypeAndValue<'_>| a.as_str().ok().map(str::to_owned);
    let name = subject.iter_common_name().filter_map(text).last().filter(|n| !n.is_empty())?;
    let groups = subject.iter_organization().filter_map(text).collect();
    let uid =
        subject.iter_attributes().find(|a| a.attr_type().iter().is_some_and(|i| i.eq(UID.iter().copied())));
    let id: String = Sha256::digest(der).iter().map(|b| format!("{b:02x}")).collect();
    Some(User {
        name,
        groups,
        uid: uid.and_then(text).unwrap_or_default(),
        extra: extra([(CREDENTIAL_ID, format!("X509SHA256={id}"))]),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    fn certificate(attributes: &[(DnType, &str)]) -> Vec<u8> {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in attributes {
            params.distinguished_name.push(kind.clone(), *value);
        }
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    #[test]
    fn subjects() {
        let der = certificate(&[
            (DnType::CommonName, "jane"),
            (DnType::OrganizationName, "devs"),
            (DnType::CustomDnType(UID.to_vec()), "u1"),
        ]);
        let user = user(&der).unwrap();
        assert_eq!((&*user.name, &*user.uid, &*user.groups), ("jane", "u1", &["devs".to_owned()][..]));
        assert!(user.extra[CREDENTIAL_ID][0].starts_with("X509SHA256="));
        assert_eq!(super::user(&certificate(&[(DnType::OrganizationName, "devs")])), None);
        assert_eq!(super::user(b"no certificate"), None);
    }
}
