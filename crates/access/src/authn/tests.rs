//! Tokens from issue to user, in the reference's words.

use homeostat_model::Entropy;
use serde_json::json;

use super::service_account::{Reference, TokenSpec, validate_request};
use super::*;

const API: &str = "https://kubernetes.default.svc";

fn time(seconds: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + seconds).unwrap()
}

fn authenticator() -> Authenticator {
    let tokens = TokenFile::parse("admintoken,admin,admin,\"system:masters\"").unwrap();
    let issuer = Issuer::new(API, Vec::new(), Entropy::seeded(1));
    Authenticator { tokens, issuer: Arc::new(issuer), anonymous: true }
}

fn reference(name: &str) -> Reference {
    Reference { name: name.into(), uid: format!("{name}-uid") }
}

fn spec() -> TokenSpec {
    TokenSpec {
        namespace: "d".into(),
        account: reference("op"),
        audiences: Vec::new(),
        seconds: 3600,
        pod: None,
        secret: None,
        node: None,
    }
}

/// A world in which every object exists, with the uid that [`reference`] gives it.
fn everything(_: &str, _: &str, name: &str) -> Option<Bound> {
    Some(Bound { uid: format!("{name}-uid"), deleted: None })
}

#[test]
fn a_token_is_its_account() {
    let a = authenticator();
    let token = a.issuer.issue(&spec(), time(0)).unwrap();
    assert_eq!(token.expires, time(3600));
    let got = a.token(&token.token, &[], time(1), &everything).unwrap();
    assert_eq!(got.audiences, [API]);
    assert_eq!(
        got.user.to_value(),
        json!({"username": "system:serviceaccount:d:op", "uid": "op-uid",
            "groups": ["system:serviceaccounts", "system:serviceaccounts:d", "system:authenticated"],
            "extra": {"authentication.kubernetes.io/credential-id": got.user.extra[crate::CREDENTIAL_ID]}})
    );
    let bound = TokenSpec { pod: Some(reference("p")), node: Some(reference("n")), ..spec() };
    let token = a.issuer.issue(&bound, time(0)).unwrap().token;
    let user = a.token(&token, &[], time(1), &everything).unwrap().user;
    assert_eq!(user.extra["authentication.kubernetes.io/pod-name"], ["p"]);
    assert_eq!(user.extra["authentication.kubernetes.io/node-uid"], ["n-uid"]);
}

#[test]
fn audiences() {
    let a = authenticator();
    let op = a.issuer.issue(&spec(), time(0)).unwrap().token;
    let vault =
        a.issuer.issue(&TokenSpec { audiences: vec!["vault".into()], ..spec() }, time(0)).unwrap().token;
    for (token, wanted, want) in [
        (&*op, vec![], Ok(vec![API])),
        (&vault, vec!["vault", "other"], Ok(vec!["vault"])),
        ("admintoken", vec![], Ok(vec![API])),
        ("admintoken", vec!["vault"], Err("invalid bearer token")),
        ("wrong", vec![], Err("invalid bearer token")),
        (
            &vault,
            vec![],
            Err(
                r#"[invalid bearer token, token audiences ["vault"] is invalid for the target audiences ["https://kubernetes.default.svc"]]"#,
            ),
        ),
        (
            &op,
            vec!["vault"],
            Err(
                r#"[invalid bearer token, token audiences ["https://kubernetes.default.svc"] is invalid for the target audiences ["vault"]]"#,
            ),
        ),
    ] {
        let wanted: Vec<String> = wanted.into_iter().map(str::to_owned).collect();
        let got = a.token(token, &wanted, time(1), &everything);
        let got =
            got.as_ref().map(|v| v.audiences.iter().map(|a| &**a).collect::<Vec<_>>()).map_err(|e| &**e);
        assert_eq!(got, want);
    }
}

#[test]
fn tokens_die_with_what_they_are_bound_to() {
    let a = authenticator();
    let full = TokenSpec { pod: Some(reference("p")), secret: Some(reference("s")), ..spec() };
    let token = a.issuer.issue(&full, time(0)).unwrap().token;
    let check = |now: i64, lookup: &dyn Lookup, want: &str| {
        assert_eq!(
            a.token(&token, &[], time(now), lookup).unwrap_err(),
            format!("[invalid bearer token, {want}]")
        );
    };
    let without = |gone: &'static str| {
        move |resource: &str, _: &str, name: &str| {
            (resource != gone).then(|| everything("", "", name)).flatten()
        }
    };
    let other = |changed: &'static str| {
        move |resource: &str, _: &str, name: &str| {
            let uid = if resource == changed { "new".into() } else { format!("{name}-uid") };
            Some(Bound { uid, deleted: None })
        }
    };
    assert!(a.token(&token, &[], time(3600), &everything).is_ok());
    check(3700, &everything, "service account token has expired");
    check(-100, &everything, "service account token is not valid yet");
    check(1, &without("serviceaccounts"), "serviceaccounts \"op\" not found");
    check(1, &without("pods"), "service account token has been invalidated");
    check(1, &without("secrets"), "service account token has been invalidated");
    check(1, &other("serviceaccounts"), "service account UID (new) does not match claim (op-uid)");
    check(1, &other("pods"), "pod UID (new) does not match service account pod ref claim (p-uid)");
    let deleted =
        |_: &str, _: &str, name: &str| Some(Bound { uid: format!("{name}-uid"), deleted: Some(time(10)) });
    assert!(a.token(&token, &[], time(11), &deleted).is_ok());
    check(100, &deleted, "service account d/op has been deleted");
}

#[test]
fn forgeries() {
    let a = authenticator();
    let token = a.issuer.issue(&spec(), time(0)).unwrap().token;
    // Another issuer's key under the same name, and a changed payload.
    let other = authenticator().issuer.issue(&spec(), time(0)).unwrap().token;
    assert!(a.token(&other, &[], time(1), &everything).is_err());
    let mut parts: Vec<&str> = token.split('.').collect();
    let payload = other.split('.').nth(1).unwrap();
    parts[1] = payload;
    if token.split('.').nth(1) != Some(payload) {
        assert!(a.token(&parts.join("."), &[], time(1), &everything).is_err());
    }
    let unsigned = format!("eyJhbGciOiJub25lIn0.{}.", token.split('.').nth(1).unwrap());
    assert!(a.token(&unsigned, &[], time(1), &everything).is_err());
}

#[test]
fn a_kept_key_keeps_tokens_valid() {
    let a = authenticator();
    let token = a.issuer.issue(&spec(), time(0)).unwrap().token;
    let again =
        Issuer::new(API, Vec::new(), Entropy::seeded(2)).with_key(a.issuer.key_pem().unwrap()).unwrap();
    assert!(again.verify(&token, &[API.to_owned()], time(1), &everything).unwrap().is_some());
    assert_eq!(again.jwks(), a.issuer.jwks());
    assert_eq!(again.jwks().unwrap()["keys"][0]["kty"], "EC");
    let document = a.issuer.openid_configuration("https://x/openid/v1/jwks");
    assert_eq!(document["id_token_signing_alg_values_supported"], json!(["ES256"]));
    assert!(Issuer::new(API, Vec::new(), Entropy::seeded(2)).with_key("no key").is_err());
}

#[test]
fn kubelets_tokens_outlive_what_they_say() {
    let a = authenticator();
    let token =
        a.issuer.issue(&TokenSpec { seconds: 3607, pod: Some(reference("p")), ..spec() }, time(0)).unwrap();
    assert_eq!(token.expires, time(3607));
    assert!(a.token(&token.token, &[], time(100_000), &everything).is_ok());
}

#[test]
fn requests() {
    let a = authenticator();
    let token = a.issuer.issue(&spec(), time(0)).unwrap().token;
    for (header, want) in [
        (None, Ok("system:anonymous")),
        (Some("Basic eDp5".to_owned()), Ok("system:anonymous")),
        (Some("Bearer ".to_owned()), Ok("system:anonymous")),
        (Some("Bearer admintoken".to_owned()), Ok("admin")),
        (Some("bearer admintoken".to_owned()), Ok("admin")),
        (Some(format!("Bearer {token}")), Ok("system:serviceaccount:d:op")),
        (Some("Bearer wrong".to_owned()), Err(401)),
    ] {
        let got =
            a.request(header.as_deref(), None, time(1), &everything).map(|u| u.name).map_err(|s| s.code);
        assert_eq!(got.as_deref().map_err(|c| *c), want, "{header:?}");
    }
    let closed = Authenticator { anonymous: false, ..a };
    assert_eq!(closed.request(None, None, time(1), &everything).unwrap_err().code, 401);
}

#[test]
fn token_requests_last_ten_minutes_at_least() {
    let texts = |seconds: i64| {
        validate_request(&json!({"expirationSeconds": seconds}))
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
    };
    assert_eq!(
        texts(60),
        ["spec.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes"]
    );
    assert!(texts(600).is_empty() && texts(1 << 32).is_empty());
    assert_eq!(texts((1 << 32) + 1).len(), 1);
    assert!(validate_request(&json!({})).is_empty());
}
