//! Authentication: from a request's credentials to its [`User`].
//!
//! Credentials are client certificates (whose chain TLS has verified), bearer tokens from a file, and service account
//! tokens. Impersonation comes later and is authorization. Nothing here remembers a request.
//! Invariant: credentials that are present but wrong never end as anonymous.

pub mod certificate;
mod jwt;
pub mod service_account;
pub mod token_file;

use std::collections::BTreeMap;
use std::sync::Arc;

use homeostat_model::{Status, Timestamp};

use crate::User;
pub use service_account::Issuer;
pub use token_file::TokenFile;

/// What authentication must know of an object that a token is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// `metadata.uid`.
    pub uid: String,
    /// `metadata.deletionTimestamp`.
    pub deleted: Option<Timestamp>,
}

/// The objects that service account tokens are bound to. `resource` is `serviceaccounts`, `pods`, `secrets` or
/// `nodes` (with an empty namespace).
pub trait Lookup {
    /// The present state of an object, if there is one.
    fn bound(&self, resource: &str, namespace: &str, name: &str) -> Option<Bound>;
}

impl<F: Fn(&str, &str, &str) -> Option<Bound>> Lookup for F {
    fn bound(&self, resource: &str, namespace: &str, name: &str) -> Option<Bound> {
        self(resource, namespace, name)
    }
}

/// A token that proved a user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Whose it is, with `system:authenticated`.
    pub user: User,
    /// Those of the wanted audiences for which it is meant.
    pub audiences: Vec<String>,
}

/// All ways of authenticating that a server accepts.
#[derive(Clone, Debug)]
pub struct Authenticator {
    /// Tokens of a file.
    pub tokens: TokenFile,
    /// Service account tokens.
    pub issuer: Arc<Issuer>,
    /// Whether requests without credentials are served, as `system:anonymous`.
    pub anonymous: bool,
}

impl Authenticator {
    /// Verifies a bearer token for some of `audiences` (none: those of the API server). The error is in the words of
    /// a TokenReview.
    pub fn token(
        &self,
        token: &str,
        audiences: &[String],
        now: Timestamp,
        lookup: &dyn Lookup,
    ) -> Result<Verified, String> {
        let audiences = if audiences.is_empty() { self.issuer.audiences() } else { audiences };
        if let Some(user) = self.tokens.user(token) {
            // A token of the file is meant for the API server, and says so to no one else.
            let audiences = intersection(self.issuer.audiences(), audiences);
            if !audiences.is_empty() {
                return Ok(Verified { user: user.clone().authenticated(), audiences });
            }
        }
        match self.issuer.verify(token, audiences, now, lookup) {
            Ok(Some(verified)) => Ok(Verified { user: verified.user.authenticated(), ..verified }),
            Ok(None) => Err("invalid bearer token".to_owned()),
            Err(why) => Err(format!("[invalid bearer token, {why}]")),
        }
    }

    /// The user of a request: `authorization` is the header, `certificate` the DER form of the verified client
    /// certificate. 401 for wrong credentials, and for none where anonymous requests are refused.
    pub fn request(
        &self,
        authorization: Option<&str>,
        certificate: Option<&[u8]>,
        now: Timestamp,
        lookup: &dyn Lookup,
    ) -> Result<User, Status> {
        if let Some(user) = certificate.and_then(certificate::user) {
            return Ok(user.authenticated());
        }
        match authorization.and_then(bearer) {
            Some(token) => {
                let verified = self.token(token, &[], now, lookup).map_err(|_| Status::unauthorized())?;
                Ok(verified.user)
            }
            None if self.anonymous => Ok(User::anonymous()),
            None => Err(Status::unauthorized()),
        }
    }
}

/// The token of an `Authorization` header; `None` for other schemes and for an empty token.
fn bearer(header: &str) -> Option<&str> {
    let (scheme, rest) = header.trim().split_once(' ')?;
    let token = rest.split(' ').next().unwrap_or_default();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// What is in both, in the order of the first.
fn intersection(a: &[String], b: &[String]) -> Vec<String> {
    a.iter().filter(|x| b.contains(x)).cloned().collect()
}

/// Extra values of one entry each.
fn extra(entries: impl IntoIterator<Item = (&'static str, String)>) -> BTreeMap<String, Vec<String>> {
    entries.into_iter().map(|(k, v)| (k.to_owned(), vec![v])).collect()
}

#[cfg(test)]
mod tests;
