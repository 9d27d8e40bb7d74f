//! Certificates of a webhook server: an authority of its own, and what it issues.
//!
//! Pure functions of the time: keys come from aws-lc-rs, everything else from the arguments. A [`Bundle`] is what is
//! kept in a Secret, as text; it is renewed before it ends, its authority long before, so that whoever trusts the old
//! one trusts the new one in time.
//! Invariant: a certificate that is served was issued by an authority that is in the bundle's roots.

use std::sync::Arc;

use homeostat_model::Timestamp;
use jiff::SignedDuration;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use x509_parser::extensions::{GeneralName, ParsedExtension};

/// Days that an authority is valid.
const AUTHORITY_DAYS: i64 = 3650;
/// Days that a server's certificate is valid.
const SERVER_DAYS: i64 = 90;

/// What can be wrong with a bundle.
#[derive(Debug, thiserror::Error)]
pub(super) enum CertificateError {
    /// It can't be made.
    #[error("cannot make a certificate: {0}")]
    Make(#[from] rcgen::Error),
    /// It can't be read.
    #[error("not a certificate with its key: {0}")]
    Read(String),
}

fn unreadable(why: impl std::fmt::Display) -> CertificateError {
    CertificateError::Read(why.to_string())
}

/// An authority and a server's certificate, all PEM.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Bundle {
    /// Whom clients should trust: the authority, and the one before while it is valid.
    pub(super) roots: String,
    /// The authority's key.
    pub(super) authority_key: String,
    /// The server's certificate.
    pub(super) certificate: String,
    /// Its key.
    pub(super) key: String,
}

/// What is to be done with a bundle.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Due {
    /// Nothing before this time.
    Until(Timestamp),
    /// A new server's certificate.
    Server,
    /// A new authority, added to the roots; and then a new server's certificate at its own time.
    Authority,
    /// Everything: nothing of it is of use.
    Everything,
}

impl Bundle {
    /// Makes everything anew.
    pub(super) fn new(host: &str, now: Timestamp) -> Result<Self, CertificateError> {
        let (root, authority_key) = authority(now)?;
        let (certificate, key) = issue(&authority_key, host, now)?;
        Ok(Self { roots: root, authority_key, certificate, key })
    }

    /// What is due at `now` for a server that is called `host`.
    pub(super) fn due(&self, host: &str, now: Timestamp) -> Due {
        let Some(root) = self.root() else { return Due::Everything };
        let (Ok(authority), Ok(server)) = (Validity::of(root), Validity::of(&self.certificate)) else {
            return Due::Everything;
        };
        if authority.is_over(now) || !authority.signed(&server) && !self.any_root_signed(&server) {
            return Due::Everything;
        }
        if authority.should_be_renewed() <= now {
            return Due::Authority;
        }
        if server.should_be_renewed() <= now || !server.names(host) || self.certified().is_err() {
            return Due::Server;
        }
        Due::Until(server.should_be_renewed().min(authority.should_be_renewed()))
    }

    /// Does what is due.
    pub(super) fn renewed(&self, host: &str, now: Timestamp) -> Result<Self, CertificateError> {
        match self.due(host, now) {
            Due::Until(_) => Ok(self.clone()),
            Due::Everything => Self::new(host, now),
            Due::Server => {
                let (certificate, key) = issue(&self.authority_key, host, now)?;
                Ok(Self { certificate, key, ..self.clone() })
            }
            Due::Authority => {
                let (root, authority_key) = authority(now)?;
                let mut roots = root;
                // The one before signed what is served now; older ones are over.
                if let Some(before) = self.root() {
                    roots.push_str(before);
                }
                let renewed = Self { roots, authority_key, ..self.clone() };
                match renewed.due(host, now) {
                    Due::Server => renewed.renewed(host, now),
                    _ => Ok(renewed),
                }
            }
        }
    }

    /// The authority that issues now: the first of the roots.
    fn root(&self) -> Option<&str> {
        let end = "-----END CERTIFICATE-----";
        let at = self.roots.find(end)? + end.len();
        let rest = self.roots[at..].find(|c: char| !c.is_whitespace()).map_or(self.roots.len(), |n| at + n);
        Some(&self.roots[..rest])
    }

    fn any_root_signed(&self, server: &Validity) -> bool {
        let roots = CertificateDer::pem_slice_iter(self.roots.as_bytes()).flatten();
        roots.filter_map(|der| Validity::read(&der).ok()).any(|root| root.signed(server))
    }

    /// What a TLS server serves.
    pub(super) fn certified(&self) -> Result<Arc<CertifiedKey>, CertificateError> {
        let chain: Vec<CertificateDer<'static>> = CertificateDer::pem_slice_iter(self.certificate.as_bytes())
            .collect::<Result<_, _>>()
            .map_err(unreadable)?;
        let key = PrivateKeyDer::from_pem_slice(self.key.as_bytes()).map_err(unreadable)?;
        let key = CertifiedKey::new(chain, any_supported_type(&key).map_err(unreadable)?);
        key.keys_match().map_err(unreadable)?;
        Ok(Arc::new(key))
    }
}

/// What is read of a certificate.
struct Validity {
    from: i64,
    to: i64,
    names: Vec<String>,
    subject: Vec<u8>,
    issuer: Vec<u8>,
    /// The identifier of its own key, and of the key that signed it.
    own_key: Option<Vec<u8>>,
    authority_key: Option<Vec<u8>>,
}

impl Validity {
    fn of(pem: &str) -> Result<Self, CertificateError> {
        Self::read(&CertificateDer::from_pem_slice(pem.as_bytes()).map_err(unreadable)?)
    }

    fn read(der: &CertificateDer<'_>) -> Result<Self, CertificateError> {
        let (_, certificate) = x509_parser::parse_x509_certificate(der).map_err(unreadable)?;
        let mut read = Self {
            from: certificate.validity().not_before.timestamp(),
            to: certificate.validity().not_after.timestamp(),
            names: Vec::new(),
            subject: certificate.subject().as_raw().to_vec(),
            issuer: certificate.issuer().as_raw().to_vec(),
            own_key: None,
            authority_key: None,
        };
        for extension in certificate.extensions() {
            match extension.parsed_extension() {
                ParsedExtension::SubjectAlternativeName(names) => {
                    read.names = names.general_names.iter().filter_map(name).collect();
                }
                ParsedExtension::SubjectKeyIdentifier(id) => read.own_key = Some(id.0.to_vec()),
                ParsedExtension::AuthorityKeyIdentifier(id) => {
                    read.authority_key = id.key_identifier.as_ref().map(|k| k.0.to_vec());
                }
                _ => {}
            }
        }
        Ok(read)
    }

    fn is_over(&self, now: Timestamp) -> bool {
        now.as_second() >= self.to
    }

    /// When a third of its time is left, as cert-manager and kubelets have it.
    fn should_be_renewed(&self) -> Timestamp {
        Timestamp::from_second(self.from + (self.to - self.from) / 3 * 2).unwrap_or(Timestamp::MIN)
    }

    fn names(&self, host: &str) -> bool {
        self.names.iter().any(|n| n == host)
    }

    /// Whether this authority signed `other`. All our authorities have one name; their keys tell them apart.
    fn signed(&self, other: &Self) -> bool {
        self.subject == other.issuer && self.own_key.is_some() && self.own_key == other.authority_key
    }
}

fn name(name: &GeneralName<'_>) -> Option<String> {
    match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        GeneralName::IPAddress(bytes) => match bytes.len() {
            4 => <[u8; 4]>::try_from(*bytes).ok().map(|b| std::net::Ipv4Addr::from(b).to_string()),
            16 => <[u8; 16]>::try_from(*bytes).ok().map(|b| std::net::Ipv6Addr::from(b).to_string()),
            _ => None,
        },
        _ => None,
    }
}

fn authority_params() -> Result<CertificateParams, CertificateError> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, "homeostat-webhook-ca");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// A new authority: certificate and key.
fn authority(now: Timestamp) -> Result<(String, String), CertificateError> {
    let key = KeyPair::generate()?;
    let mut params = authority_params()?;
    validity(&mut params, now, AUTHORITY_DAYS);
    Ok((params.self_signed(&key)?.pem(), key.serialize_pem()))
}

/// A server's certificate and its key, by the authority with this key.
fn issue(authority_key: &str, host: &str, now: Timestamp) -> Result<(String, String), CertificateError> {
    let issuer = Issuer::new(authority_params()?, KeyPair::from_pem(authority_key)?);
    let mut names = vec![host.to_owned()];
    // A Service goes by its longer name, too.
    if host.ends_with(".svc") {
        names.push(format!("{host}.cluster.local"));
    }
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name.push(DnType::CommonName, "homeostat-webhook");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.use_authority_key_identifier_extension = true;
    validity(&mut params, now, SERVER_DAYS);
    let key = KeyPair::generate()?;
    Ok((params.signed_by(&key, &issuer)?.pem(), key.serialize_pem()))
}

/// From yesterday, for clients whose clock is behind, until `days` from now.
fn validity(params: &mut CertificateParams, now: Timestamp, days: i64) {
    let date = |t: Timestamp| {
        let d = t.to_zoned(jiff::tz::TimeZone::UTC).date();
        date_time_ymd(d.year().into(), d.month().unsigned_abs(), d.day().unsigned_abs())
    };
    let day = SignedDuration::from_hours(24);
    params.not_before = date(now.saturating_sub(day).unwrap_or(now));
    params.not_after = date(now.saturating_add(day * i32::try_from(days).unwrap_or(1)).unwrap_or(now));
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOST: &str = "rules-webhook.shop.svc";

    fn day(n: i64) -> Timestamp {
        let start: Timestamp = "2026-01-02T03:04:05Z".parse().unwrap();
        start.saturating_add(SignedDuration::from_hours(24 * n)).unwrap()
    }

    /// Ten thousand days of daily looks: what is served is always valid, named right, and trusted by whoever has the
    /// roots of the day before.
    #[test]
    fn nothing_that_is_served_is_ever_untrusted() {
        let mut bundle = Bundle::new(HOST, day(0)).unwrap();
        let mut renewals = (0, 0);
        for n in 1..10_000 {
            let now = day(n);
            let before = bundle.clone();
            bundle = bundle.renewed(HOST, now).unwrap();
            renewals.0 += usize::from(bundle.certificate != before.certificate);
            renewals.1 += usize::from(bundle.roots != before.roots);
            let server = Validity::of(&bundle.certificate).unwrap();
            assert!(!server.is_over(now) && server.names(HOST), "day {n}");
            assert!(before.any_root_signed(&server), "day {n}: trusted since yesterday");
            assert!(
                bundle.any_root_signed(&Validity::of(&before.certificate).unwrap()),
                "day {n}: still trusted"
            );
            if bundle != before {
                bundle.certified().unwrap();
            }
            assert!(CertificateDer::pem_slice_iter(bundle.roots.as_bytes()).count() <= 2);
        }
        assert!((160..170).contains(&renewals.0), "{renewals:?}");
        assert_eq!(renewals.1, 4, "authorities");
    }

    #[test]
    fn what_is_of_no_use_is_made_anew() {
        let good = Bundle::new(HOST, day(0)).unwrap();
        let other = Bundle::new(HOST, day(0)).unwrap();
        for (name, bundle, due) in [
            ("another name", good.clone(), Due::Server),
            ("no roots", Bundle { roots: String::new(), ..good.clone() }, Due::Everything),
            ("nonsense", Bundle { certificate: "x".into(), ..good.clone() }, Due::Everything),
            (
                "another's certificate",
                Bundle { certificate: other.certificate, ..good.clone() },
                Due::Everything,
            ),
            ("another's key", Bundle { key: other.key, ..good.clone() }, Due::Server),
        ] {
            let host = if name == "another name" { "elsewhere.shop.svc" } else { HOST };
            assert_eq!(bundle.due(host, day(1)), due, "{name}");
            let mended = bundle.renewed(host, day(1)).unwrap();
            assert!(matches!(mended.due(host, day(1)), Due::Until(_)), "{name}");
        }
        assert_eq!(good.due(HOST, day(4000)), Due::Everything);
    }

    #[test]
    fn addresses_are_named_as_addresses() {
        for host in ["127.0.0.1", "::1"] {
            let bundle = Bundle::new(host, day(0)).unwrap();
            assert!(Validity::of(&bundle.certificate).unwrap().names(host));
        }
    }
}
