//! Certificates (RFC 5280), made of a request and an authority's key. Pure but for the signature's randomness.
//!
//! Subject, key and alternative names are the request's own bytes; usages and lifetime are what was asked of the API.

use std::time::Duration;

use homeostat_model::Timestamp;
use rcgen::{KeyPair, SigningKey};
use x509_parser::prelude::ParsedExtension;
use yasna::models::ObjectIdentifier;
use yasna::{DERWriter, DERWriterSeq};

use super::request::Request;

/// How long certificates live where nothing shorter is asked for (the reference's default).
const YEAR: Duration = Duration::from_secs(365 * 24 * 3600);
/// Certificates are valid from a little before now, for clocks that are behind.
const BACKDATE: Duration = Duration::from_secs(300);
/// Those that live shorter than this aren't shortened by the backdating.
const SHORT: Duration = Duration::from_secs(8 * 3600);
const SHORTEST: Duration = Duration::from_secs(600);

/// Why nothing can be issued.
#[derive(Debug, thiserror::Error)]
pub(super) enum IssueError {
    /// The authority's certificate can't be read.
    #[error("the authority's certificate can't be read: {0}")]
    Authority(String),
    /// The authority's key can't be used.
    #[error("the authority's key can't be used: {0}")]
    Key(#[from] rcgen::Error),
    /// There is no such usage.
    #[error("unrecognized usage: {0}")]
    Usage(String),
}

/// An authority that signs.
pub(super) struct Authority {
    key: KeyPair,
    /// DER of its subject.
    subject: Vec<u8>,
    key_id: Option<Vec<u8>>,
    not_after: i64,
}

impl Authority {
    /// From certificate and key, both PEM.
    pub(super) fn new(certificate: &str, key: &str) -> Result<Self, IssueError> {
        let unreadable = |e: &dyn std::fmt::Display| IssueError::Authority(e.to_string());
        let (_, pem) =
            x509_parser::pem::parse_x509_pem(certificate.as_bytes()).map_err(|e| unreadable(&e))?;
        let parsed = pem.parse_x509().map_err(|e| unreadable(&e))?;
        let key_id = parsed.extensions().iter().find_map(|e| match e.parsed_extension() {
            ParsedExtension::SubjectKeyIdentifier(id) => Some(id.0.to_vec()),
            _ => None,
        });
        Ok(Self {
            key: KeyPair::from_pem(key)?,
            subject: parsed.subject().as_raw().to_vec(),
            key_id,
            not_after: parsed.validity().not_after.timestamp(),
        })
    }

    /// The DER of the signature's algorithm.
    fn algorithm(&self, writer: DERWriter<'_>) {
        let algorithm = self.key.algorithm();
        let (oid, null): (&[u64], bool) = if *algorithm == rcgen::PKCS_ECDSA_P384_SHA384 {
            (&[1, 2, 840, 10045, 4, 3, 3], false)
        } else if *algorithm == rcgen::PKCS_ED25519 {
            (&[1, 3, 101, 112], false)
        } else if *algorithm == rcgen::PKCS_RSA_SHA256 {
            (&[1, 2, 840, 113_549, 1, 1, 11], true)
        } else {
            (&[1, 2, 840, 10045, 4, 3, 2], false)
        };
        writer.write_sequence(|w| {
            w.next().write_oid(&ObjectIdentifier::from_slice(oid));
            if null {
                w.next().write_null();
            }
        });
    }

    /// Signs a certificate for a request; PEM.
    pub(super) fn issue(
        &self,
        request: &Request,
        usages: &[String],
        seconds: Option<i32>,
        serial: [u8; 16],
        now: Timestamp,
    ) -> Result<String, IssueError> {
        let usages = Usages::of(usages)?;
        let (from, until) = lifetime(seconds, now, self.not_after);
        let to_be_signed = yasna::construct_der(|w| {
            w.write_sequence(|w| {
                w.next().write_tagged(yasna::Tag::context(0), |w| w.write_u8(2));
                let mut serial = serial;
                // Positive, and never zero.
                serial[0] = serial[0] & 0x7f | 0x40;
                w.next().write_bigint_bytes(&serial, true);
                self.algorithm(w.next());
                w.next().write_der(&self.subject);
                w.next().write_sequence(|w| {
                    write_time(w.next(), from);
                    write_time(w.next(), until);
                });
                w.next().write_der(&request.subject);
                w.next().write_der(&request.public_key);
                w.next().write_tagged(yasna::Tag::context(3), |w| {
                    w.write_sequence(|w| self.extensions(w, request, &usages));
                });
            });
        });
        let signature = self.key.sign(&to_be_signed)?;
        let certificate = yasna::construct_der(|w| {
            w.write_sequence(|w| {
                w.next().write_der(&to_be_signed);
                self.algorithm(w.next());
                w.next().write_bitvec_bytes(&signature, signature.len() * 8);
            });
        });
        Ok(pem(&certificate))
    }

    fn extensions(&self, w: &mut DERWriterSeq<'_>, request: &Request, usages: &Usages) {
        if usages.bits != 0 {
            let [high, low] = usages.bits.to_be_bytes();
            let bytes: &[u8] = if low == 0 { &[high] } else { &[high, low] };
            let length = 16 - usages.bits.trailing_zeros() as usize;
            let value = yasna::construct_der(|w| w.write_bitvec_bytes(bytes, length));
            extension(w.next(), &[2, 5, 29, 15], true, &value);
        }
        if !usages.purposes.is_empty() {
            let value = yasna::construct_der(|w| {
                w.write_sequence(|w| {
                    for oid in &usages.purposes {
                        w.next().write_oid(&ObjectIdentifier::from_slice(oid));
                    }
                });
            });
            extension(w.next(), &[2, 5, 29, 37], false, &value);
        }
        let none = yasna::construct_der(|w| w.write_sequence(|_| {}));
        extension(w.next(), &[2, 5, 29, 19], true, &none);
        if let Some(id) = &self.key_id {
            let value = yasna::construct_der(|w| {
                w.write_sequence(|w| {
                    w.next().write_tagged_implicit(yasna::Tag::context(0), |w| w.write_bytes(id));
                });
            });
            extension(w.next(), &[2, 5, 29, 35], false, &value);
        }
        if let Some(names) = &request.names {
            // Without a subject the names are all that there is.
            let nameless = request.subject == [0x30, 0];
            extension(w.next(), &[2, 5, 29, 17], nameless, names);
        }
    }
}

fn extension(writer: DERWriter<'_>, oid: &[u64], critical: bool, value: &[u8]) {
    writer.write_sequence(|w| {
        w.next().write_oid(&ObjectIdentifier::from_slice(oid));
        if critical {
            w.next().write_bool(true);
        }
        w.next().write_bytes(value);
    });
}

/// When a certificate begins and ends to be valid.
fn lifetime(seconds: Option<i32>, now: Timestamp, authority_ends: i64) -> (Timestamp, Timestamp) {
    let asked = seconds.and_then(|s| u64::try_from(s).ok()).map(Duration::from_secs);
    let lives = asked.map_or(YEAR, |a| a.clamp(SHORTEST, YEAR));
    let from = now.checked_sub(BACKDATE).unwrap_or(now);
    let start = if lives < SHORT { now } else { from };
    let until = start.checked_add(lives).unwrap_or(Timestamp::MAX);
    let end = Timestamp::from_second(authority_ends).unwrap_or(Timestamp::MAX);
    (from, until.min(end))
}

/// RFC 5280: years until 2049 in two digits, later ones in four.
fn write_time(writer: DERWriter<'_>, time: Timestamp) {
    let zoned = time.to_zoned(jiff::tz::TimeZone::UTC);
    let (tag, text) = if zoned.year() < 2050 {
        (yasna::tags::TAG_UTCTIME, zoned.strftime("%y%m%d%H%M%SZ").to_string())
    } else {
        (yasna::tags::TAG_GENERALIZEDTIME, zoned.strftime("%Y%m%d%H%M%SZ").to_string())
    };
    writer.write_tagged_implicit(tag, |w| w.write_bytes(text.as_bytes()));
}

/// A certificate in PEM.
pub(super) fn pem(der: &[u8]) -> String {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(der);
    let mut out = String::from("-----BEGIN CERTIFICATE-----\n");
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let (line, more) = rest.split_at(rest.len().min(64));
        out.push_str(line);
        out.push('\n');
        rest = more;
    }
    out.push_str("-----END CERTIFICATE-----\n");
    out
}

/// What a key may be used for.
#[derive(Debug, Default)]
struct Usages {
    /// The bits of the extension, the first one highest.
    bits: u16,
    purposes: Vec<&'static [u64]>,
}

impl Usages {
    fn of(names: &[String]) -> Result<Self, IssueError> {
        let mut all = Self::default();
        for name in names {
            let bit = match name.as_str() {
                "signing" | "digital signature" => Some(0),
                "content commitment" => Some(1),
                "key encipherment" => Some(2),
                "data encipherment" => Some(3),
                "key agreement" => Some(4),
                "cert sign" => Some(5),
                "crl sign" => Some(6),
                "encipher only" => Some(7),
                "decipher only" => Some(8),
                _ => None,
            };
            if let Some(bit) = bit {
                all.bits |= 0x8000 >> bit;
                continue;
            }
            let purpose: &[u64] = match name.as_str() {
                "any" => &[2, 5, 29, 37, 0],
                "server auth" => &[1, 3, 6, 1, 5, 5, 7, 3, 1],
                "client auth" => &[1, 3, 6, 1, 5, 5, 7, 3, 2],
                "code signing" => &[1, 3, 6, 1, 5, 5, 7, 3, 3],
                "email protection" | "s/mime" => &[1, 3, 6, 1, 5, 5, 7, 3, 4],
                "ipsec end system" => &[1, 3, 6, 1, 5, 5, 7, 3, 5],
                "ipsec tunnel" => &[1, 3, 6, 1, 5, 5, 7, 3, 6],
                "ipsec user" => &[1, 3, 6, 1, 5, 5, 7, 3, 7],
                "timestamping" => &[1, 3, 6, 1, 5, 5, 7, 3, 8],
                "ocsp signing" => &[1, 3, 6, 1, 5, 5, 7, 3, 9],
                "microsoft sgc" => &[1, 3, 6, 1, 4, 1, 311, 10, 3, 3],
                "netscape sgc" => &[2, 16, 840, 1, 113_730, 4, 1],
                _ => return Err(IssueError::Usage(name.clone())),
            };
            if !all.purposes.contains(&purpose) {
                all.purposes.push(purpose);
            }
        }
        Ok(all)
    }
}
