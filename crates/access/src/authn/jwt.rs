//! Signed tokens: an ES256 key, its public form, signing and checking of signatures.
//!
//! Claims are judged elsewhere: here a token is genuine or not.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PublicKeyData};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

/// A key pair on the curve P-256.
pub(super) struct Key {
    encoding: EncodingKey,
    decoding: DecodingKey,
    /// Identifies the key in token headers: a hash of the public key, as the reference makes it.
    pub(super) id: String,
    /// The curve point: 0x04, x, y.
    point: Vec<u8>,
    pkcs8_pem: String,
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Key").field("id", &self.id).finish_non_exhaustive()
    }
}

impl Key {
    /// A new key. Its randomness is the cryptographic library's, not the replayable one.
    pub(super) fn generate() -> Result<Self, String> {
        KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(|e| e.to_string()).map(|pair| Self::of(&pair))
    }

    /// A key in PEM (PKCS#8).
    pub(super) fn from_pem(pem: &str) -> Result<Self, String> {
        let pair = KeyPair::from_pem(pem).map_err(|e| e.to_string())?;
        if !pair.is_compatible(&PKCS_ECDSA_P256_SHA256) {
            return Err("the key is not an elliptic-curve key on P-256".to_owned());
        }
        Ok(Self::of(&pair))
    }

    fn of(pair: &KeyPair) -> Self {
        let point = pair.der_bytes().to_vec();
        Self {
            encoding: EncodingKey::from_ec_der(&pair.serialize_der()),
            decoding: DecodingKey::from_ec_der(&point),
            id: URL_SAFE_NO_PAD.encode(Sha256::digest(pair.subject_public_key_info())),
            point,
            pkcs8_pem: pair.serialize_pem(),
        }
    }

    /// The private key, to keep it beyond the process.
    pub(super) fn pem(&self) -> &str {
        &self.pkcs8_pem
    }

    pub(super) fn sign(&self, claims: &Value) -> Result<String, String> {
        let header = Header { kid: Some(self.id.clone()), typ: None, ..Header::new(Algorithm::ES256) };
        jsonwebtoken::encode(&header, claims, &self.encoding).map_err(|e| e.to_string())
    }

    /// The claims of a token that this key has signed.
    pub(super) fn open(&self, token: &str) -> Result<Value, String> {
        let mut rules = Validation::new(Algorithm::ES256);
        rules.required_spec_claims.clear();
        (rules.validate_exp, rules.validate_aud, rules.validate_nbf) = (false, false, false);
        jsonwebtoken::decode(token, &self.decoding, &rules).map(|t| t.claims).map_err(|e| e.to_string())
    }

    /// The public key as a JSON Web Key.
    pub(super) fn jwk(&self) -> Value {
        let half = |from: usize| URL_SAFE_NO_PAD.encode(self.point.get(from..from + 32).unwrap_or_default());
        json!({"use": "sig", "kty": "EC", "kid": self.id, "crv": "P-256", "alg": "ES256", "x": half(1), "y": half(33)})
    }
}

/// The claims of a token, unverified: to see whether it is one of ours at all.
pub(super) fn peek(token: &str) -> Option<Value> {
    let mut parts = token.split('.');
    let (Some(_), Some(payload), Some(_), None) = (parts.next(), parts.next(), parts.next(), parts.next())
    else {
        return None;
    };
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(payload).ok()?).ok()
}

/// The key that a token's header names; empty if it names none.
pub(super) fn key_id(token: &str) -> String {
    jsonwebtoken::decode_header(token).ok().and_then(|h| h.kid).unwrap_or_default()
}
