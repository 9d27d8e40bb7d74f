//! Service account tokens: issue and verify, and the documents by which others verify them.
//!
//! Tokens are JWTs signed with ES256 whose claims are the reference's: audiences, expiry, and under `kubernetes.io`
//! the account and the pod, secret or node that the token dies with. The key is made when first needed.
//! Source: kubernetes `pkg/serviceaccount`.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use homeostat_model::field::{self, quote};
use homeostat_model::{Entropy, Timestamp};
use serde_json::{Value, json};

use super::jwt::{self, Key};
use super::{Bound, Lookup, Verified, extra, intersection};
use crate::{CREDENTIAL_ID, User, service_account_username};

/// Names the object by which a token is bound, or the account itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// `metadata.name`.
    pub name: String,
    /// `metadata.uid`.
    pub uid: String,
}

impl Reference {
    fn to_value(&self) -> Value {
        json!({"name": self.name, "uid": self.uid})
    }

    fn from_value(v: &Value) -> Option<Self> {
        let text = |k: &str| v[k].as_str().unwrap_or_default().to_owned();
        v.is_object().then(|| Self { name: text("name"), uid: text("uid") })
    }
}

/// What a token shall say.
#[derive(Clone, Debug)]
pub struct TokenSpec {
    /// The account's namespace.
    pub namespace: String,
    /// The account.
    pub account: Reference,
    /// For whom it is; none for the API server.
    pub audiences: Vec<String>,
    /// Seconds until it expires.
    pub seconds: i64,
    /// The pod that it dies with.
    pub pod: Option<Reference>,
    /// The secret that it dies with.
    pub secret: Option<Reference>,
    /// The pod's node, or the node that it dies with.
    pub node: Option<Reference>,
}

/// A token and when it expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The token.
    pub token: String,
    /// When it expires, as its holder is told.
    pub expires: Timestamp,
}

/// Kubelets ask for tokens of this many seconds; these live for a year in truth, and are only reported as stale.
const EXTENDED: i64 = 60 * 60 + 7;
const YEAR: i64 = 365 * 24 * 60 * 60;
/// Tokens whose signature has been checked are remembered, up to so many.
const REMEMBERED: usize = 1024;
/// How long an object's deletion may be past before its tokens are refused, and the tolerance for clocks.
const LEEWAY: i64 = 60;

/// Issues and verifies tokens.
#[derive(Debug)]
pub struct Issuer {
    url: String,
    audiences: Vec<String>,
    entropy: Entropy,
    key: OnceLock<Result<Key, String>>,
    genuine: Mutex<HashMap<String, Arc<Value>>>,
}

impl Issuer {
    /// An issuer that will make its own key. `audiences` are those of the API server; none: the issuer's URL.
    pub fn new(url: impl Into<String>, mut audiences: Vec<String>, entropy: Entropy) -> Self {
        let url = url.into();
        if audiences.is_empty() {
            audiences.push(url.clone());
        }
        Self { url, audiences, entropy, key: OnceLock::new(), genuine: Mutex::default() }
    }

    /// The same issuer with a key in PEM (PKCS#8, P-256).
    pub fn with_key(self, pem: &str) -> Result<Self, String> {
        let key = Key::from_pem(pem)?;
        Ok(Self { key: OnceLock::from(Ok(key)), ..self })
    }

    /// The private key in PEM, to keep tokens valid beyond the process.
    pub fn key_pem(&self) -> Result<&str, String> {
        self.key().map(Key::pem)
    }

    /// The API server's audiences.
    pub fn audiences(&self) -> &[String] {
        &self.audiences
    }

    /// The issuer's URL: the claim `iss`.
    pub fn url(&self) -> &str {
        &self.url
    }

    fn key(&self) -> Result<&Key, String> {
        self.key.get_or_init(Key::generate).as_ref().map_err(Clone::clone)
    }

    /// Issues a token.
    pub fn issue(&self, spec: &TokenSpec, now: Timestamp) -> Result<Token, String> {
        let start = now.as_second();
        let audiences = if spec.audiences.is_empty() { &self.audiences } else { &spec.audiences };
        let for_us = audiences.iter().all(|a| self.audiences.contains(a));
        let extended = spec.seconds == EXTENDED && spec.pod.is_some() && for_us;
        let mut kubernetes = json!({"namespace": spec.namespace, "serviceaccount": spec.account.to_value()});
        for (key, bound) in [("pod", &spec.pod), ("secret", &spec.secret), ("node", &spec.node)] {
            if let Some(bound) = bound {
                kubernetes[key] = bound.to_value();
            }
        }
        if extended {
            kubernetes["warnafter"] = json!(start + spec.seconds);
        }
        let claims = json!({
            "aud": audiences,
            "exp": start + if extended { YEAR } else { spec.seconds },
            "iat": start,
            "iss": self.url,
            "jti": self.entropy.uid(),
            "kubernetes.io": kubernetes,
            "nbf": start,
            "sub": service_account_username(&spec.namespace, &spec.account.name),
        });
        let token = self.key()?.sign(&claims)?;
        let expires = Timestamp::from_second(start.saturating_add(spec.seconds)).unwrap_or(Timestamp::MAX);
        Ok(Token { token, expires })
    }

    /// The user of a token, for some of the wanted audiences. `Ok(None)`: it is none of ours. An error is in the
    /// reference's words.
    pub fn verify(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
        lookup: &dyn Lookup,
    ) -> Result<Option<Verified>, String> {
        let Some(claims) = self.genuine(token)? else { return Ok(None) };
        let meant: Vec<String> = match &claims["aud"] {
            Value::String(one) => vec![one.clone()],
            Value::Array(many) => many.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
            _ => self.audiences.clone(),
        };
        let both = intersection(&meant, audiences);
        if both.is_empty() {
            let list =
                |l: &[String]| format!("[{}]", l.iter().map(|a| quote(a)).collect::<Vec<_>>().join(" "));
            return Err(format!(
                "token audiences {} is invalid for the target audiences {}",
                list(&meant),
                list(audiences)
            ));
        }
        Ok(Some(Verified { user: user_of(&claims, now, lookup)?, audiences: both }))
    }

    /// The claims of a token that we signed; `None` for what was issued elsewhere.
    fn genuine(&self, token: &str) -> Result<Option<Arc<Value>>, String> {
        let known = || self.genuine.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(claims) = known().get(token) {
            return Ok(Some(Arc::clone(claims)));
        }
        if jwt::peek(token).is_none_or(|claims| claims["iss"] != self.url.as_str()) {
            return Ok(None);
        }
        let key = self.key()?;
        let id = jwt::key_id(token);
        if !id.is_empty() && id != key.id {
            return Err("invalid signature, no keys found".to_owned());
        }
        let claims = Arc::new(key.open(token)?);
        let mut known = known();
        if known.len() >= REMEMBERED {
            known.clear();
        }
        known.insert(token.to_owned(), Arc::clone(&claims));
        Ok(Some(claims))
    }

    /// The document at `/openid/v1/jwks`.
    pub fn jwks(&self) -> Result<Value, String> {
        Ok(json!({"keys": [self.key()?.jwk()]}))
    }

    /// The document at `/.well-known/openid-configuration`; `jwks_uri` is where the keys are served.
    pub fn openid_configuration(&self, jwks_uri: &str) -> Value {
        json!({
            "issuer": self.url,
            "jwks_uri": jwks_uri,
            "response_types_supported": ["id_token"],
            "subject_types_supported": ["public"],
            "id_token_signing_alg_values_supported": ["ES256"],
        })
    }
}

/// The user of genuine claims, if time and the objects that the token is bound to allow.
fn user_of(claims: &Value, now: Timestamp, lookup: &dyn Lookup) -> Result<User, String> {
    let seconds = |key: &str| claims[key].as_i64();
    if seconds("nbf").is_some_and(|t| now.as_second() + LEEWAY < t) {
        return Err("service account token is not valid yet".to_owned());
    }
    if seconds("exp").is_some_and(|t| now.as_second() - LEEWAY > t) {
        return Err("service account token has expired".to_owned());
    }
    let private = &claims["kubernetes.io"];
    let namespace = private["namespace"].as_str().unwrap_or_default();
    let part = |key: &str| Reference::from_value(&private[key]);
    let gone = |b: &Bound| b.deleted.is_some_and(|t| t.as_second() < now.as_second() - LEEWAY);

    let account = part("serviceaccount").unwrap_or(Reference { name: String::new(), uid: String::new() });
    let found = lookup
        .bound("serviceaccounts", namespace, &account.name)
        .ok_or_else(|| format!("serviceaccounts {} not found", quote(&account.name)))?;
    if gone(&found) {
        return Err(format!("service account {namespace}/{} has been deleted", account.name));
    }
    if found.uid != account.uid {
        return Err(format!("service account UID ({}) does not match claim ({})", found.uid, account.uid));
    }
    let (pod, node) = (part("pod"), part("node"));
    // The node of a pod-bound token is information; alone, it is what the token is bound to.
    let bound_node = node.clone().filter(|_| pod.is_none());
    for (kind, resource, namespace, reference) in [
        ("secret", "secrets", namespace, part("secret")),
        ("pod", "pods", namespace, pod.clone()),
        ("node", "nodes", "", bound_node),
    ] {
        let Some(reference) = reference else { continue };
        let found = lookup.bound(resource, namespace, &reference.name).filter(|b| !gone(b));
        let found = found.ok_or("service account token has been invalidated")?;
        if found.uid != reference.uid {
            return Err(format!(
                "{kind} UID ({}) does not match service account {kind} ref claim ({})",
                found.uid, reference.uid
            ));
        }
    }

    let mut user = User::service_account(namespace, &account.name, account.uid);
    let id = claims["jti"].as_str().map(|id| (CREDENTIAL_ID, format!("JTI={id}")));
    let pod = pod.into_iter().flat_map(|p| {
        [("authentication.kubernetes.io/pod-name", p.name), ("authentication.kubernetes.io/pod-uid", p.uid)]
    });
    let node = node.into_iter().flat_map(|n| {
        [("authentication.kubernetes.io/node-name", n.name), ("authentication.kubernetes.io/node-uid", n.uid)]
    });
    user.extra = extra(id.into_iter().chain(pod).chain(node).filter(|(_, v)| !v.is_empty()));
    Ok(user)
}

/// What is wrong with a TokenRequest's `spec`. (Its default for `expirationSeconds` is 3600.)
pub fn validate_request(spec: &Value) -> Vec<field::Error> {
    let seconds = spec["expirationSeconds"].as_i64().unwrap_or(3600);
    let why = match seconds {
        ..600 => "may not specify a duration less than 10 minutes",
        4_294_967_297.. => "may not specify a duration larger than 2^32 seconds",
        _ => return Vec::new(),
    };
    vec![field::Error::invalid("spec.expirationSeconds", seconds, why)]
}
