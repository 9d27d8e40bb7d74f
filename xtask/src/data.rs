//! `cargo xtask data`: the schemas and the table of the built-in types, made from their published sources.
//!
//! It downloads the wheel that carries the reference's definitions with their list and patch marks, reduces them to
//! what the server needs (names, types, formats, references, marks; no descriptions), merges the hand-written
//! defaults in, and writes one file per API group. What it writes is committed; building never runs it.
//! Invariant: the same wheel and the same hand-written files give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Map, Value, json};

mod descriptors;

/// The package and the release whose definitions are taken.
const PACKAGE: &str = "kubernetes-validate==1.37.0";
/// The definitions inside the wheel.
const MEMBER: &str = "kubernetes_validate/kubernetes-json-schema/v1.36.0-local/_definitions.json";
/// Where definitions of metav1 live.
const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.";

/// Regenerates `crates/resources/data/definitions/*.json`.
///
/// The served types are read from `crates/resources/data/types.json`, the defaults from
/// `crates/resources/data/defaults.json`; both are written by hand.
pub(crate) fn run() -> Result<(), String> {
    let data = root().join("crates/resources/data");
    let types = read_json(&data.join("types.json"))?;
    let defaults = read_json(&data.join("defaults.json"))?;
    let source = definitions()?;
    let source = source.get("$defs").and_then(Value::as_object).ok_or("the wheel's file has no $defs")?;

    let reached = reachable(source, &roots(source, &types)?)?;
    let mut files: BTreeMap<String, Vec<(String, Value)>> = BTreeMap::new();
    for name in &reached {
        let mut schema = reduce(name, &source[name]);
        if let Some(fields) = defaults.get(name) {
            merge_defaults(name, &mut schema, fields)?;
        }
        files.entry(file_of(name)).or_default().push((name.clone(), schema));
    }
    for name in defaults.as_object().ok_or("defaults.json is not an object")?.keys() {
        if !reached.contains(name) {
            return Err(format!("defaults.json names {name}, which nothing served refers to"));
        }
    }

    let folder = data.join("definitions");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    }
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut total = 0;
    for (file, schemas) in &files {
        // One definition a line: a reader finds its lines without parsing the rest, and diffs are readable.
        let lines: Vec<String> = schemas.iter().map(|(n, s)| format!("{}:{s}", json!(n))).collect();
        let text = format!("{{\n{}\n}}\n", lines.join(",\n"));
        total += text.len();
        let path = folder.join(format!("{file}.json"));
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    println!("{} definitions in {} files, {total} bytes", reached.len(), files.len());
    descriptors::run(&root())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}

fn read_json(path: &Path) -> Result<Value, String> {
    let bytes = fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
    serde_json::from_slice(&bytes).map_err(|e| format!("{}: {e}", path.display()))
}

/// Downloads the wheel into `target/data` (once) and reads the definitions out of it.
fn definitions() -> Result<Value, String> {
    let folder = root().join("target/data");
    let find = || -> Option<PathBuf> {
        let mut wheels: Vec<PathBuf> =
            fs::read_dir(&folder).ok()?.filter_map(|e| Some(e.ok()?.path())).collect();
        wheels.retain(|p| p.extension().is_some_and(|e| e == "whl"));
        wheels.sort();
        wheels.pop()
    };
    let wheel = match find() {
        Some(wheel) => wheel,
        None => {
            let status = Command::new("pip")
                .args(["download", "--no-deps", "--quiet", "--dest"])
                .arg(&folder)
                .arg(PACKAGE)
                .status()
                .map_err(|e| format!("cannot run pip ({e}); install Python's pip to regenerate the data"))?;
            if !status.success() {
                return Err(format!("pip could not download {PACKAGE}: {status}"));
            }
            find().ok_or("pip downloaded no wheel")?
        }
    };
    let file = fs::File::open(&wheel).map_err(|e| format!("{}: {e}", wheel.display()))?;
    let mut archive = zip::ZipArchive::new(file).map_err(|e| format!("{}: {e}", wheel.display()))?;
    let mut member = archive.by_name(MEMBER).map_err(|e| format!("{MEMBER}: {e}"))?;
    let mut bytes = Vec::new();
    member.read_to_end(&mut bytes).map_err(|e| format!("{MEMBER}: {e}"))?;
    serde_json::from_slice(&bytes).map_err(|e| format!("{MEMBER}: {e}"))
}

/// Definitions that requests and answers start from: served kinds, their lists, bodies of subresources, metav1.
fn roots(source: &Map<String, Value>, types: &Value) -> Result<BTreeSet<String>, String> {
    let mut by_kind: BTreeMap<(String, String, String), String> = BTreeMap::new();
    for (name, schema) in source {
        for gvk in
            schema.get("x-kubernetes-group-version-kind").and_then(Value::as_array).into_iter().flatten()
        {
            let part = |k: &str| gvk[k].as_str().unwrap_or_default().to_owned();
            by_kind.entry((part("group"), part("version"), part("kind"))).or_insert_with(|| name.clone());
        }
    }
    let mut roots: BTreeSet<String> = source.keys().filter(|n| n.starts_with(META)).cloned().collect();
    let mut add = |group: &str, version: &str, kind: &str| -> bool {
        let found = by_kind.get(&(group.to_owned(), version.to_owned(), kind.to_owned()));
        roots.extend(found.cloned());
        found.is_some()
    };
    for t in types["types"].as_array().ok_or("types.json has no list `types`")? {
        let part = |k: &str| t[k].as_str().unwrap_or_default();
        let (group, version, kind) = (part("group"), part("version"), part("kind"));
        if !add(group, version, kind) {
            return Err(format!("no definition of {group}/{version} {kind}"));
        }
        // Reviews and bindings have no lists.
        add(group, version, &format!("{kind}List"));
        for sub in t["subresources"].as_array().into_iter().flatten() {
            let part = |k: &str, or: &str| sub[k].as_str().map_or_else(|| or.to_owned(), str::to_owned);
            add(&part("group", group), &part("version", version), &part("kind", ""));
        }
    }
    Ok(roots)
}

fn reachable(source: &Map<String, Value>, roots: &BTreeSet<String>) -> Result<BTreeSet<String>, String> {
    fn refs(schema: &Value, found: &mut Vec<String>) {
        match schema {
            Value::Object(map) => {
                for (key, value) in map {
                    match value {
                        Value::String(target) if key == "$ref" => found.push(bare(target).to_owned()),
                        _ => refs(value, found),
                    }
                }
            }
            Value::Array(list) => list.iter().for_each(|v| refs(v, found)),
            _ => {}
        }
    }
    let mut seen = BTreeSet::new();
    let mut todo: Vec<String> = roots.iter().cloned().collect();
    while let Some(name) = todo.pop() {
        let schema = source.get(&name).ok_or_else(|| format!("{name} is referred to but absent"))?;
        if seen.insert(name) {
            refs(schema, &mut todo);
        }
    }
    Ok(seen)
}

/// The name at the end of `#/$defs/NAME`.
fn bare(target: &str) -> &str {
    target.rsplit('/').next().unwrap_or(target)
}

/// Group and version of a definition, as its file is called: `core.v1`, `meta.v1`, `apiextensions.v1`.
fn file_of(name: &str) -> String {
    let mut parts: Vec<&str> = name.split('.').collect();
    parts.pop();
    match parts.as_slice() {
        [.., group, version] if version.starts_with('v') => format!("{group}.{version}"),
        // Quantity, RawExtension, IntOrString.
        _ => "meta.v1".to_owned(),
    }
}

/// Scalars and open values whose published schema says too little.
fn special(name: &str) -> Option<Value> {
    Some(match name.strip_prefix("io.k8s.")?.rsplit('.').next()? {
        "Quantity" => json!({"x-kubernetes-int-or-string": true, "format": "quantity"}),
        "IntOrString" => json!({"x-kubernetes-int-or-string": true, "format": "int-or-string"}),
        "Time" => json!({"type": "string", "format": "date-time"}),
        "MicroTime" => json!({"type": "string", "format": "date-time"}),
        "RawExtension" | "FieldsV1" | "Patch" => {
            json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true})
        }
        "JSON" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrStringArray" => {
            json!({"x-kubernetes-preserve-unknown-fields": true})
        }
        _ => return None,
    })
}

fn reduce(name: &str, schema: &Value) -> Value {
    if let Some(schema) = special(name)
        && !(name.ends_with(".JSONPatch"))
    {
        return schema;
    }
    let mut out = node(schema);
    // DeleteOptions and WatchEvent belong to every group; clients look kinds up by the types' own definitions.
    if !name.starts_with(META)
        && let Some(gvk) = schema.get("x-kubernetes-group-version-kind")
        && let Some(out) = out.as_object_mut()
    {
        out.insert("x-kubernetes-group-version-kind".into(), gvk.clone());
    }
    out
}

fn node(schema: &Value) -> Value {
    const KEPT: [&str; 7] = [
        "format",
        "required",
        "x-kubernetes-list-type",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-map-type",
        "x-kubernetes-patch-strategy",
        "x-kubernetes-patch-merge-key",
    ];
    let mut out = Map::new();
    if let Some(target) = schema.get("$ref").and_then(Value::as_str) {
        out.insert("$ref".into(), bare(target).into());
    }
    match schema.get("type") {
        // The source writes optional fields as [TYPE, "null"]; every built-in field takes null.
        Some(Value::Array(types)) => {
            out.insert("type".into(), types.first().cloned().unwrap_or_default());
        }
        Some(t) => {
            out.insert("type".into(), t.clone());
        }
        None => {}
    }
    for key in KEPT {
        if let Some(value) = schema.get(key) {
            out.insert(key.into(), value.clone());
        }
    }
    if let Some(properties) = schema.get("properties").and_then(Value::as_object) {
        let properties: Map<String, Value> = properties.iter().map(|(k, v)| (k.clone(), node(v))).collect();
        out.insert("properties".into(), properties.into());
    }
    for key in ["items", "additionalProperties"] {
        if let Some(value) = schema.get(key).filter(|v| v.is_object()) {
            out.insert(key.into(), node(value));
        }
    }
    Value::Object(out)
}

fn merge_defaults(name: &str, schema: &mut Value, fields: &Value) -> Result<(), String> {
    for (field, default) in fields.as_object().ok_or_else(|| format!("defaults of {name} are no object"))? {
        let property = schema["properties"].get_mut(field).and_then(Value::as_object_mut);
        let property = property.ok_or_else(|| format!("defaults.json: {name} has no field {field}"))?;
        property.insert("default".into(), default.clone());
    }
    Ok(())
}
