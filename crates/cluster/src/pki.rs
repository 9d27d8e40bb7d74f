//! The control plane's own certificate authority, and the certificates that it issues.
//!
//! Keys are P-256 (a key takes microseconds, an RSA key a second). Nothing is written to disk here: a cluster that
//! lives in memory makes a new authority at each start. A simulation's authority follows from its seed (Ed25519, whose
//! signatures have no chance in them) and keeps no secret. Invariant: a private key leaves this module only as PEM or
//! DER that the caller asked for.

use std::net::IpAddr;

use homeostat_model::{Entropy, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, PKCS_ED25519, SanType, date_time_ymd,
};
use rustls_pki_types::PrivatePkcs8KeyDer;

/// Days that issued certificates are valid, a day of clock skew before now included.
const VALID_DAYS: i64 = 366;

/// What stands before the 32 bytes of an Ed25519 key in PKCS #8 (RFC 8410, section 7).
const ED25519: [u8; 16] =
    [0x30, 0x2e, 0x02, 0x01, 0x00, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x04, 0x22, 0x04, 0x20];

/// An authority: its certificate and its key.
pub struct Authority {
    pem: String,
    der: Vec<u8>,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate with its key, both PEM.
#[derive(Clone)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// Its private key, PKCS #8.
    pub key: String,
}

impl Authority {
    /// Makes a new authority named `name`.
    pub fn new(name: &str, now: Timestamp) -> Result<Self, rcgen::Error> {
        Self::with_key(name, now, KeyPair::generate()?)
    }

    /// Makes the authority that follows from `entropy`: the same bytes for the same seed.
    pub fn simulated(name: &str, now: Timestamp, entropy: &Entropy) -> Result<Self, rcgen::Error> {
        let mut der = [0; 48];
        let (head, secret) = der.split_at_mut(ED25519.len());
        head.copy_from_slice(&ED25519);
        entropy.fill(secret);
        let der = PrivatePkcs8KeyDer::from(der.as_slice());
        Self::with_key(name, now, KeyPair::from_pkcs8_der_and_sign_algo(&der, &PKCS_ED25519)?)
    }

    fn with_key(name: &str, now: Timestamp, key: KeyPair) -> Result<Self, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
            KeyUsagePurpose::KeyEncipherment,
        ];
        validity(&mut params, now, 10 * VALID_DAYS);
        let certificate = params.self_signed(&key)?;
        Ok(Self { pem: certificate.pem(), der: certificate.der().to_vec(), issuer: Issuer::new(params, key) })
    }

    /// The authority's certificate, PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// The authority's certificate, DER.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// The authority's private key, PEM: for who signs in its name.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// A server's certificate for these names and addresses.
    pub fn server(
        &self,
        names: &[&str],
        addresses: &[IpAddr],
        now: Timestamp,
    ) -> Result<Identity, rcgen::Error> {
        let mut params = CertificateParams::new(names.iter().map(|n| (*n).to_owned()).collect::<Vec<_>>())?;
        params.subject_alt_names.extend(addresses.iter().map(|a| SanType::IpAddress(*a)));
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        self.issue(params, now)
    }

    /// A client's certificate: a user's name and group, as the API server reads them (CN and O). One group, for rcgen
    /// keeps one value for each part of a name.
    pub fn client(&self, user: &str, group: &str, now: Timestamp) -> Result<Identity, rcgen::Error> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, user);
        params.distinguished_name.push(DnType::OrganizationName, group);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.issue(params, now)
    }

    fn issue(&self, mut params: CertificateParams, now: Timestamp) -> Result<Identity, rcgen::Error> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        validity(&mut params, now, VALID_DAYS);
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?;
        Ok(Identity { certificate: certificate.pem(), key: key.serialize_pem() })
    }
}

/// From yesterday, for clients whose clock is behind, until `days` from now.
fn validity(params: &mut CertificateParams, now: Timestamp, days: i64) {
    let date = |t: Timestamp| {
        let d = t.to_zoned(jiff::tz::TimeZone::UTC).date();
        date_time_ymd(d.year().into(), d.month().unsigned_abs(), d.day().unsigned_abs())
    };
    let day = jiff::SignedDuration::from_hours(24);
    params.not_before = date(now.saturating_sub(day).unwrap_or(now));
    params.not_after = date(now.saturating_add(day * i32::try_from(days).unwrap_or(1)).unwrap_or(now));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificates_name_their_user_and_verify() {
        let now: Timestamp = "2026-05-06T07:08:09Z".parse().unwrap();
        let ca = Authority::new("homeostat-ca", now).unwrap();
        let id = ca.client("kubernetes-admin", "system:masters", now).unwrap();
        let (_, pem) = x509_parser::pem::parse_x509_pem(id.certificate.as_bytes()).unwrap();
        let cert = pem.parse_x509().unwrap();
        assert_eq!(cert.subject().iter_common_name().next().unwrap().as_str().unwrap(), "kubernetes-admin");
        assert_eq!(cert.subject().iter_organization().next().unwrap().as_str().unwrap(), "system:masters");
        let (_, root) = x509_parser::parse_x509_certificate(ca.der()).unwrap();
        assert_eq!(cert.issuer(), root.subject());
        assert!(cert.validity().not_before.timestamp() < now.as_second());
        assert!(cert.validity().not_after.timestamp() > now.as_second() + 364 * 86_400);
    }
}
