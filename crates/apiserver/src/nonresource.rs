//! Paths that are no resources: health, version and the like. Discovery and OpenAPI have modules of their own.

use homeostat_model::status::Result;
use http::header;
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
pub(crate) fn serve(server: &Server, call: &Call) -> Result<Answer> {
    let path = call.info.path.as_str();
    let (root, check) = match path.trim_start_matches('/').split_once('/') {
        Some((root, rest)) => (root, rest),
        None => (path.trim_start_matches('/'), ""),
    };
    match root {
        "healthz" => Ok(health("healthz", LIVEZ, check, call)),
        "livez" => Ok(health("livez", LIVEZ, check, call)),
        "readyz" => Ok(health("readyz", READYZ, check, call)),
        "version" if check.is_empty() => Ok(version(server)),
        _ => Ok(Answer::page_not_found()),
    }
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
