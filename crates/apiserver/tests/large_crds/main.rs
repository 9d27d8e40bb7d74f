//! Large CRDs registered and served: those that other projects publish, and five of our own in the shape of the
//! ecosystem's largest (several versions, thousands of lines, whole pod templates, rules on lists).
//!
//! The published ones are fetched by `cargo xtask test` (`HOMEOSTAT_CRDS`); without them the test says so and, in CI,
//! fails. Invariant: whatever a CRD says of a version, an object that is valid is served in all of them.
#![allow(missing_docs, unreachable_pub)]

mod pods;
mod sample;
mod shapes;
#[path = "../support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::time::Duration;

use homeostat_apiserver::ApiServer;
use homeostat_schema::decode::{MAX_DEPTH, parse_yaml};
use http::Method;
use serde_json::{Value, json};
use shapes::Shape;
use support::{apply, get, post, read, send, server};

const CRDS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

/// A CRD under test.
struct Served {
    crd: Value,
}

impl Served {
    fn spec(&self) -> &Value {
        &self.crd["spec"]
    }

    fn group(&self) -> &str {
        self.spec()["group"].as_str().unwrap()
    }

    fn versions(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.spec()["versions"].as_array().unwrap().iter().map(|v| (v["name"].as_str().unwrap(), v))
    }

    fn storage(&self) -> &str {
        self.versions().find(|(_, v)| v["storage"] == true).unwrap().0
    }

    fn collection(&self, version: &str) -> String {
        let plural = self.spec()["names"]["plural"].as_str().unwrap();
        match self.spec()["scope"].as_str() {
            Some("Cluster") => format!("/apis/{}/{version}/{plural}", self.group()),
            _ => format!("/apis/{}/{version}/namespaces/default/{plural}", self.group()),
        }
    }

    /// An object of a version.
    fn object(&self, version: &str, name: &str, spec: &Value) -> Value {
        json!({
            "apiVersion": format!("{}/{version}", self.group()), "kind": self.spec()["names"]["kind"],
            "metadata": {"name": name}, "spec": spec,
        })
    }
}

/// Registers a CRD and waits until it is served.
async fn register(s: &ApiServer, crd: &Value) -> Served {
    let made = post(s, CRDS, crd.clone()).await;
    let name = crd["metadata"]["name"].as_str().unwrap();
    assert_eq!(made.code, 201, "{name}: {}", made.body["message"]);
    for _ in 0..2000 {
        let live = get(s, &format!("{CRDS}/{name}")).await.body;
        let conditions = live["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let is = |kind: &str| conditions.iter().any(|c| c["type"] == kind && c["status"] == "True");
        if is("NamesAccepted") && is("Established") {
            let served = Served { crd: live };
            let path = served.collection(served.storage());
            if get(s, &path).await.code == 200 {
                return served;
            }
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("{name} was never established");
}

/// Registers it, and takes a valid object through everything that a client does with one.
async fn check(crd: &Value, spec: &Value, invalid: &[(Value, &str)]) {
    let s = server();
    let served = register(&s, crd).await;
    let name = crd["metadata"]["name"].as_str().unwrap();
    let storage = served.storage().to_owned();

    let path = served.collection(&storage);
    let made = post(&s, &path, served.object(&storage, "a", spec)).await;
    assert_eq!(made.code, 201, "{name}: {}", made.body);
    contains(&made.body["spec"], spec, "spec");

    let kind = "application/apply-patch+yaml";
    let same = served.object(&storage, "b", spec);
    for code in [201, 200] {
        let applied = apply(&s, &format!("{path}/b?fieldManager=test"), same.clone()).await;
        assert_eq!(applied.code, code, "{name}: {}", applied.body["message"]);
        contains(&applied.body["spec"], spec, "spec");
    }
    let before = get(&s, &format!("{path}/b")).await.body;
    let again = send(&s, Method::PATCH, &format!("{path}/b?fieldManager=test"), kind, same.to_string()).await;
    assert_eq!(read(again).await.body, before, "{name}: an apply that changes nothing writes nothing");

    for (version, v) in served.versions() {
        let path = served.collection(version);
        if v["served"] != true {
            assert_eq!(get(&s, &path).await.code, 404, "{name} {version}");
            continue;
        }
        let live = get(&s, &format!("{path}/a")).await;
        assert_eq!(live.code, 200, "{name} {version}: {}", live.body["message"]);
        assert_eq!(live.body["apiVersion"], format!("{}/{version}", served.group()));
        let warned = !live.warnings.is_empty();
        assert_eq!(warned, v["deprecated"] == true, "{name} {version}: {:?}", live.warnings);
        table(&s, &path, v).await;
        openapi(&s, &served, version).await;
    }
    for (spec, why) in invalid {
        let refused = post(&s, &path, served.object(&storage, "wrong", spec)).await;
        let message = refused.body["message"].as_str().unwrap_or_default();
        assert!(
            matches!(refused.code, 400 | 422) && message.contains(why),
            "{name}: {} {message}",
            refused.code
        );
    }
    assert_eq!(
        get(&s, &path).await.body["items"].as_array().unwrap().len(),
        2,
        "{name}: nothing else was stored"
    );
}

/// Everything that was sent is there; defaults may have joined it.
#[track_caller]
fn contains(got: &Value, sent: &Value, at: &str) {
    match (got, sent) {
        (Value::Object(got), Value::Object(sent)) => {
            for (key, sent) in sent {
                contains(got.get(key).unwrap_or(&Value::Null), sent, &format!("{at}.{key}"));
            }
        }
        (Value::Array(got), Value::Array(sent)) => {
            assert_eq!(got.len(), sent.len(), "{at}");
            got.iter().zip(sent).enumerate().for_each(|(i, (g, s))| contains(g, s, &format!("{at}[{i}]")));
        }
        _ => assert_eq!(got, sent, "{at}"),
    }
}

/// A list as kubectl asks for it: the version's columns, a row for each object.
async fn table(s: &ApiServer, path: &str, version: &Value) {
    let request = http::Request::get(path)
        .header("accept", "application/json;as=Table;v=v1;g=meta.k8s.io")
        .extension(homeostat_access::User::administrator("test"))
        .body(http_body_util::Full::new(bytes::Bytes::new()))
        .unwrap();
    let table = read(tower::Service::call(&mut s.clone(), request).await.unwrap()).await.body;
    assert_eq!(table["kind"], "Table", "{path}");
    assert_eq!(table["rows"].as_array().unwrap().len(), 2, "{path}");
    let columns = version["additionalPrinterColumns"].as_array().map_or(2, |c| c.len() + 1);
    assert_eq!(table["columnDefinitions"].as_array().unwrap().len(), columns, "{path}");
    assert_eq!(table["rows"][0]["cells"].as_array().unwrap().len(), columns, "{path}");
}

/// The group's document names the kind, and every reference in it leads somewhere.
async fn openapi(s: &ApiServer, served: &Served, version: &str) {
    let path = format!("apis/{}/{version}", served.group());
    let index = get(s, "/openapi/v3").await.body;
    let url = index["paths"][&path]["serverRelativeURL"].as_str().unwrap_or_else(|| panic!("no {path}"));
    let document = get(s, url).await;
    assert_eq!(document.code, 200);
    let schemas = document.body["components"]["schemas"].as_object().unwrap();
    let kind = &served.spec()["names"]["kind"];
    let of = |schema: &Value| {
        let kinds = schema["x-kubernetes-group-version-kind"].as_array().cloned().unwrap_or_default();
        kinds.iter().any(|k| k["kind"] == *kind && k["version"] == version)
    };
    let own = schemas.values().find(|s| of(s)).unwrap_or_else(|| panic!("{path} does not tell of {kind}"));
    assert!(own["properties"]["spec"]["properties"].is_object(), "{path}");
    references(&document.body, &mut |name| {
        assert!(schemas.contains_key(name), "{path}: {name} leads nowhere")
    });
}

fn references(value: &Value, seen: &mut dyn FnMut(&str)) {
    match value {
        Value::Object(map) => {
            if let Some(name) = map.get("$ref").and_then(Value::as_str) {
                seen(name.rsplit('/').next().unwrap());
            }
            map.values().for_each(|v| references(v, seen));
        }
        Value::Array(items) => items.iter().for_each(|v| references(v, seen)),
        _ => {}
    }
}

fn lines(crd: &Value) -> usize {
    serde_json::to_string_pretty(crd).unwrap().lines().count()
}

#[tokio::test]
async fn monitoring() {
    of_ours(shapes::monitoring(), 5_000).await;
}

#[tokio::test]
async fn certificates() {
    of_ours(shapes::certificates(), 3_000).await;
}

#[tokio::test]
async fn workflows() {
    of_ours(shapes::workflows(), 5_000).await;
}

#[tokio::test]
async fn releases() {
    of_ours(shapes::releases(), 1_000).await;
}

#[tokio::test]
async fn routes() {
    of_ours(shapes::routes(), 1_000).await;
}

async fn of_ours(shape: Shape, at_least: usize) {
    let lines = lines(&shape.crd);
    assert!(lines >= at_least, "{} has only {lines} lines", shape.crd["metadata"]["name"]);
    check(&shape.crd, &shape.valid, &shape.invalid).await;
}

/// The folder with published CRDs.
fn folder() -> Option<PathBuf> {
    let named = std::env::var_os("HOMEOSTAT_CRDS").map(PathBuf::from);
    let fetched = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/crds");
    named.or(Some(fetched)).filter(|f| f.is_dir())
}

#[tokio::test]
async fn published_ones() {
    let Some(folder) = folder() else {
        assert!(std::env::var("CI").is_err(), "there are no published CRDs; cargo xtask test fetches them");
        eprintln!("!! SKIPPED: there are no published CRDs on this machine");
        return;
    };
    let mut files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|x| x == "yaml"));
    files.sort();
    assert!(files.len() >= 4, "{}", folder.display());
    for file in files {
        let (crd, _) = parse_yaml(&std::fs::read(&file).unwrap(), MAX_DEPTH).unwrap();
        let served = Served { crd: crd.clone() };
        let (_, version) = served.versions().find(|(_, v)| v["storage"] == true).unwrap();
        let schema = &version["schema"]["openAPIV3Schema"]["properties"]["spec"];
        let spec = sample::valid(schema);
        let invalid = sample::broken(&spec);
        check(&crd, &spec, &[(invalid, "Invalid value")]).await;
    }
}
