//! Tokens in Secrets: a Secret of the type `kubernetes.io/service-account-token` is filled with a token of its account
//! that dies with the Secret, and goes with the account.
//!
//! The token is asked of the API server like any other, so no key is needed here.

use homeostat_sdk::{Context, Next, Operator, Result, Selection, Watches};
use k8s_openapi::ByteString;
use k8s_openapi::api::authentication::v1::{BoundObjectReference, TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::{Secret, ServiceAccount};
use kube::Api;
use kube::api::{DeleteParams, PostParams, Preconditions};

const TYPE: &str = "kubernetes.io/service-account-token";
const NAME: &str = "kubernetes.io/service-account.name";
const UID: &str = "kubernetes.io/service-account.uid";
/// The longest that the API allows: the token is to live as long as the Secret.
const SECONDS: i64 = 1 << 32;

/// The controller.
pub(crate) struct Tokens {
    /// PEM of the authority of the API server; may be empty.
    pub(crate) root_ca: String,
}

fn annotation<'a>(secret: &'a Secret, key: &str) -> Option<&'a str> {
    secret.metadata.annotations.as_ref()?.get(key).map(String::as_str).filter(|v| !v.is_empty())
}

/// Whether an account is the one that a Secret means.
fn is_meant(secret: &Secret, account: &ServiceAccount) -> bool {
    annotation(secret, UID).is_none_or(|uid| account.metadata.uid.as_deref() == Some(uid))
}

impl Tokens {
    /// The Secret with everything but the token, and whether it lacks that.
    fn complete(&self, secret: &Secret, account: &ServiceAccount) -> (Secret, bool) {
        let mut new = secret.clone();
        let uid = account.metadata.uid.clone().unwrap_or_default();
        new.metadata.annotations.get_or_insert_default().insert(UID.into(), uid);
        let data = new.data.get_or_insert_default();
        if !self.root_ca.is_empty() {
            data.insert("ca.crt".into(), ByteString(self.root_ca.clone().into_bytes()));
        }
        let namespace = secret.metadata.namespace.clone().unwrap_or_default();
        data.insert("namespace".into(), ByteString(namespace.into_bytes()));
        let lacks = data.get("token").is_none_or(|t| t.0.is_empty());
        (new, lacks)
    }
}

impl Operator for Tokens {
    type Resource = Secret;
    type Owns = ();
    type Reads = (ServiceAccount,);

    fn name() -> &'static str {
        "serviceaccount-token-controller"
    }

    async fn reconcile(&self, secret: &Secret, cx: &Context<Self>) -> Result<Next> {
        let Some(name) = annotation(secret, NAME) else { return Ok(Next::done()) };
        let account = cx.read::<ServiceAccount, _>(name).filter(|a| is_meant(secret, a));
        let Some(account) = account else {
            // The cache may not have heard of it yet.
            let key = homeostat_sdk::Key::new(cx.namespace(), name);
            let there = cx.writer().get::<ServiceAccount>(&key).await?;
            if there.is_none_or(|a| !is_meant(secret, &a)) {
                let preconditions = Preconditions {
                    uid: secret.metadata.uid.clone(),
                    resource_version: secret.metadata.resource_version.clone(),
                };
                let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
                cx.writer().delete::<Secret>(cx.key(), &params).await?;
            }
            return Ok(Next::done());
        };
        let (mut new, lacks) = self.complete(secret, &account);
        if lacks {
            let request = TokenRequest {
                spec: Some(TokenRequestSpec {
                    audiences: None,
                    expiration_seconds: Some(SECONDS),
                    bound_object_ref: Some(BoundObjectReference {
                        api_version: Some("v1".into()),
                        kind: Some("Secret".into()),
                        name: secret.metadata.name.clone(),
                        uid: secret.metadata.uid.clone(),
                    }),
                }),
                ..TokenRequest::default()
            };
            let api =
                Api::<ServiceAccount>::namespaced(cx.client().clone(), cx.namespace().unwrap_or_default());
            let answer = api.create_token_request(name, &PostParams::default(), &request).await?;
            let token = answer.status.and_then(|s| s.token).unwrap_or_default();
            new.data.get_or_insert_default().insert("token".into(), ByteString(token.into_bytes()));
        }
        if new != *secret {
            cx.writer().update(&new).await?;
        }
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.select::<Secret, _>(Selection::fields(format!("type={TYPE}")));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn secret(annotations: Value, data: Value) -> Secret {
        serde_json::from_value(
            json!({"metadata": {"name": "s", "namespace": "d", "annotations": annotations}, "data": data}),
        )
        .unwrap()
    }

    #[test]
    fn secrets_are_completed_for_their_account() {
        let account: ServiceAccount =
            serde_json::from_value(json!({"metadata": {"name": "a", "uid": "u"}})).unwrap();
        let tokens = Tokens { root_ca: "pem".into() };
        let (new, lacks) = tokens.complete(&secret(json!({NAME: "a"}), json!({})), &account);
        assert!(lacks);
        assert_eq!(json!(new)["data"], json!({"ca.crt": "cGVt", "namespace": "ZA=="}));
        assert_eq!(annotation(&new, UID), Some("u"));
        let full = secret(
            json!({NAME: "a", UID: "u"}),
            json!({"ca.crt": "cGVt", "namespace": "ZA==", "token": "eA=="}),
        );
        assert_eq!(tokens.complete(&full, &account), (full, false));
        assert!(!is_meant(&secret(json!({UID: "other"}), json!({})), &account));
        assert!(is_meant(&secret(json!({}), json!({})), &account));
    }
}
