//! Paths that are no resources: health, version and the like. Discovery and OpenAPI have modules of their own.

mod discovery;
mod oidc;
mod openapi;

use homeostat_model::Status;
use homeostat_model::status::Result;
use http::{Method, header};
use serde_json::json;

use crate::respond::{Answer, Content};
use crate::server::{Call, Server};

/// Checks that `?verbose` lists, in the reference's order; each also has a path of its own.
const LIVEZ: &[&str] = &["ping", "log", "etcd", "poststarthook/start-apiextensions-controllers"];
const READYZ: &[&str] = &[
    "ping",
    "log",
    "etcd",
    "informer-sync",
    "poststarthook/start-apiextensions-controllers",
    "poststarthook/crd-informer-synced",
    "poststarthook/rbac/bootstrap-roles",
    "poststarthook/scheduling/bootstrap-system-priority-classes",
    "shutdown",
];

/// Answers a path that is no resource.
pub(crate) async fn serve(server: &Server, call: &Call) -> Result<Answer> {
    let path = call.info.path.as_str();
    let trimmed = path.trim_matches('/');
    let (root, check) = trimmed.split_once('/').unwrap_or((trimmed, ""));
    if !matches!(call.parts.method, Method::GET | Method::HEAD) {
        return match root {
            "healthz" | "livez" | "readyz" | "version" | "api" | "apis" | "openapi" => {
                Err(Status::method_not_allowed())
            }
            _ => Ok(Answer::page_not_found()),
        };
    }
    match root {
        "healthz" => Ok(health("healthz", LIVEZ, check, call)),
        "livez" => Ok(health("livez", LIVEZ, check, call)),
        "readyz" => Ok(health("readyz", READYZ, check, call)),
        "version" if check.is_empty() => Ok(version(server)),
        "api" | "apis" => Ok(discovery::serve(server, call)),
        "openapi" => Ok(openapi::serve(server, call)),
        ".well-known" if check == "openid-configuration" => oidc::configuration(server),
        "openid" if check == "v1/jwks" => oidc::keys(server),
        "" => Ok(index(server)),
        _ => Ok(Answer::page_not_found()),
    }
}

/// The paths that there are.
fn index(server: &Server) -> Answer {
    let mut paths = vec![
        "/.well-known/openid-configuration".to_owned(),
        "/api".to_owned(),
        "/api/v1".to_owned(),
        "/apis".to_owned(),
    ];
    let mut groups: Vec<String> = Vec::new();
    for r in server.registry.table().all() {
        for v in r.versions.iter().filter(|v| v.served && !v.gv.group.is_empty()) {
            groups.push(format!("/apis/{}", v.gv.group));
            groups.push(format!("/apis/{}", v.gv));
        }
    }
    groups.sort();
    groups.dedup();
    paths.extend(groups);
    paths.extend(
        ["/healthz", "/livez", "/openapi/v2", "/openapi/v3", "/openid/v1/jwks", "/readyz", "/version"]
            .map(str::to_owned),
    );
    Answer::value(json!({"paths": paths}))
}

fn health(name: &str, checks: &[&str], check: &str, call: &Call) -> Answer {
    if !check.is_empty() {
        if !checks.contains(&check) {
            return Answer::page_not_found();
        }
        return Answer::text(200, "ok");
    }
    let excluded: Vec<&str> = call.query.all("exclude").collect();
    if !call.query.has("verbose") {
        return Answer::text(200, "ok");
    }
    let mut out = String::new();
    for c in checks {
        let state = if excluded.contains(c) { "excluded: ok" } else { "ok" };
        out.push_str(&format!("[+]{c} {state}\n"));
    }
    out.push_str(&format!("{name} check passed\n"));
    Answer::text(200, out)
}

fn version(server: &Server) -> Answer {
    let v = &server.config.version;
    let value = json!({
        "major": "1",
        "minor": "36",
        "emulationMajor": "1",
        "emulationMinor": "36",
        "minCompatibilityMajor": "1",
        "minCompatibilityMinor": "35",
        "gitVersion": v.git_version,
        "gitCommit": v.git_commit,
        "gitTreeState": "clean",
        "buildDate": v.build_date,
        "goVersion": "none",
        "compiler": "rustc",
        "platform": format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH),
    });
    let bytes = serde_json::to_vec_pretty(&value).unwrap_or_default();
    let mut a = Answer::new(http::StatusCode::OK, Content::Json(bytes.into()));
    a.headers.insert(header::CACHE_CONTROL, header::HeaderValue::from_static("no-cache, private"));
    a
}
