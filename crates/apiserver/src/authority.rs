//! Who asks and whether they may: the server's authenticator, and the RBAC policy kept up with the store.
//!
//! The policy follows the store's log when it is asked and something has changed; it has no task of its own.
//! Invariant: a decision sees every RBAC object committed before the question.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use homeostat_access::authn::service_account::Issuer;
use homeostat_access::authn::token_file::TokenFile;
use homeostat_access::authn::{Authenticator, Bound};
use homeostat_access::{Attributes, Decision, MASTERS, Policy, User};
use homeostat_model::status::Result;
use homeostat_store::{Cursor, Store};
use http::header;
use serde_json::Value;

use crate::config::Config;
use crate::meta::Meta;
use crate::serve::PeerCertificate;
use crate::server::{Call, Server};

const COLLECTIONS: [&str; 4] = [
    "clusterroles.rbac.authorization.k8s.io",
    "clusterrolebindings.rbac.authorization.k8s.io",
    "roles.rbac.authorization.k8s.io",
    "rolebindings.rbac.authorization.k8s.io",
];

/// Issuer of tokens where the configuration names none.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

/// Authentication and authorization of one server.
pub(crate) struct Authority {
    pub(crate) authenticator: Authenticator,
    policy: ArcSwap<Policy>,
    follower: Mutex<Follower>,
}

struct Follower {
    seen: u64,
    cursors: Vec<Cursor<Meta>>,
}

impl Authority {
    /// From the configuration. A token file or key that cannot be read leaves its source of users out, and says so.
    pub(crate) fn new(config: &Config) -> Self {
        let a = &config.authentication;
        let tokens = a.token_file.as_deref().map(TokenFile::parse).transpose().unwrap_or_else(|e| {
            tracing::error!(error = %e, "the token file is not used");
            None
        });
        let url = a.issuer.clone().unwrap_or_else(|| ISSUER.to_owned());
        let issuer = || Issuer::new(url.clone(), Vec::new(), config.entropy.clone());
        let issuer = match &a.service_account_key {
            None => issuer(),
            Some(pem) => issuer().with_key(pem).unwrap_or_else(|e| {
                tracing::error!(error = e, "the service account key is not used; a new one is made");
                issuer()
            }),
        };
        let authenticator =
            Authenticator { tokens: tokens.unwrap_or_default(), issuer: Arc::new(issuer), anonymous: true };
        Self {
            authenticator,
            policy: ArcSwap::from_pointee(Policy::default()),
            follower: Mutex::new(Follower { seen: 0, cursors: Vec::new() }),
        }
    }

    /// The policy as of now.
    pub(crate) fn policy(&self, store: &dyn Store<Meta>) -> Arc<Policy> {
        let revision = store.revision();
        let mut f = self.follower.lock().unwrap_or_else(PoisonError::into_inner);
        if f.seen < revision && !self.follow(&mut f) {
            self.rebuild(&mut f, store);
        }
        f.seen = f.seen.max(revision);
        self.policy.load_full()
    }

    /// Applies what the cursors have; false where they cannot go on.
    fn follow(&self, f: &mut Follower) -> bool {
        if f.cursors.is_empty() {
            return false;
        }
        let mut policy: Option<Policy> = None;
        for cursor in &mut f.cursors {
            loop {
                let Ok(events) = cursor.try_next() else { return false };
                if events.is_empty() {
                    break;
                }
                let p = policy.get_or_insert_with(|| Policy::clone(&self.policy.load()));
                for e in events {
                    let parse = |b: &[u8]| serde_json::from_slice::<Value>(b).unwrap_or_default();
                    match (&e.now, &e.prev) {
                        (Some(now), _) => p.upsert(&parse(&now.bytes)),
                        (None, Some(prev)) => p.remove(&parse(&prev.bytes)),
                        (None, None) => {}
                    }
                }
            }
        }
        if let Some(p) = policy {
            self.policy.store(Arc::new(p));
        }
        true
    }

    fn rebuild(&self, f: &mut Follower, store: &dyn Store<Meta>) {
        let snapshot = store.snapshot();
        let objects: Vec<Value> = COLLECTIONS
            .iter()
            .flat_map(|c| snapshot.range(c, "", None))
            .map(|r| serde_json::from_slice(&r.bytes).unwrap_or_default())
            .collect();
        self.policy.store(Arc::new(Policy::from_objects(&objects)));
        f.seen = snapshot.revision();
        f.cursors = COLLECTIONS.iter().filter_map(|c| store.watch(c, f.seen).ok()).collect();
        if f.cursors.len() != COLLECTIONS.len() {
            f.cursors.clear();
            f.seen = 0;
        }
    }
}

/// The object that a service account token is bound to.
pub(crate) fn bound(server: &Server, resource: &str, namespace: &str, name: &str) -> Option<Bound> {
    let record = server.config.store.get(resource, &crate::object::store_name(namespace, name))?;
    let deleted = match record.meta.deleting {
        false => None,
        true => {
            let v: Value = serde_json::from_slice(&record.bytes).unwrap_or_default();
            crate::object::meta_str(&v, "deletionTimestamp").parse().ok()
        }
    };
    Some(Bound { uid: record.meta.uid.to_string(), deleted })
}

/// The user of a request.
pub(crate) fn authenticate(server: &Server, call: &Call) -> Result<User> {
    // Only in-process callers can put a user into the extensions.
    if let Some(user) = call.parts.extensions.get::<User>() {
        return Ok(user.clone().authenticated());
    }
    let certificate = call.parts.extensions.get::<PeerCertificate>().map(|c| c.0.as_ref());
    let lookup = |resource: &str, namespace: &str, name: &str| bound(server, resource, namespace, name);
    let now = server.config.clock.now();
    server.authority.authenticator.request(call.header(header::AUTHORIZATION), certificate, now, &lookup)
}

/// The attributes of a request, as authorization sees it.
pub(crate) fn attributes<'a>(call: &'a Call, user: &'a User) -> Attributes<'a> {
    let i = &call.info;
    Attributes {
        user,
        verb: &i.verb,
        group: &i.group,
        version: &i.version,
        resource: &i.resource,
        subresource: &i.subresource,
        name: &i.name,
        namespace: &i.namespace,
        path: &i.path,
        resource_request: i.is_resource,
    }
}

/// Whether a user may do something.
pub(crate) fn decide(server: &Server, a: &Attributes<'_>) -> Decision {
    if a.user.is_in(MASTERS) {
        return Decision { allowed: true, ..Decision::default() };
    }
    server.authority.policy(server.config.store.as_ref()).allows(a)
}

/// 403 unless the user may make this request.
pub(crate) fn authorize_request(server: &Server, call: &Call) -> Result<()> {
    let a = attributes(call, &call.user);
    let d = decide(server, &a);
    if let Some(trail) = &call.trail {
        trail.annotate("authorization.k8s.io/decision", if d.allowed { "allow" } else { "forbid" });
        trail.annotate("authorization.k8s.io/reason", &d.reason);
    }
    if d.allowed { Ok(()) } else { Err(a.forbidden(&d.reason)) }
}
