//! `cargo xtask apply-types`: the setters of `crates/apply`, made from the schemas of the built-in types.
//!
//! It reads what `cargo xtask data` wrote and needs nothing else. What it writes is committed; building never runs it,
//! and a test tells when it is behind.
//! Invariant: the same schemas give the same bytes.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Files of schemas whose kinds get apply configurations, with the API version and the module of k8s-openapi's types.
const GROUPS: &[(&str, &str, &str)] = &[
    ("apps.v1", "apps/v1", "apps::v1"),
    ("autoscaling.v2", "autoscaling/v2", "autoscaling::v2"),
    ("batch.v1", "batch/v1", "batch::v1"),
    ("coordination.v1", "coordination.k8s.io/v1", "coordination::v1"),
    ("core.v1", "v1", "core::v1"),
    ("discovery.v1", "discovery.k8s.io/v1", "discovery::v1"),
    ("networking.v1", "networking.k8s.io/v1", "networking::v1"),
    ("policy.v1", "policy/v1", "policy::v1"),
    ("rbac.v1", "rbac.authorization.k8s.io/v1", "rbac::v1"),
    ("scheduling.v1", "scheduling.k8s.io/v1", "scheduling::v1"),
    ("storage.v1", "storage.k8s.io/v1", "storage::v1"),
];

/// Kinds that nobody applies: they are created once, as requests.
const REQUESTS: &[&str] = &["Binding", "ComponentStatus", "Eviction", "Event"];

/// Fields of kinds that `new` sets, or that are the server's.
const OF_KINDS: &[&str] = &["apiVersion", "kind", "metadata", "status"];

/// Fields of metadata that only the server sets.
const OF_THE_SERVER: &[&str] = &[
    "creationTimestamp",
    "deletionGracePeriodSeconds",
    "deletionTimestamp",
    "generation",
    "managedFields",
    "selfLink",
];

/// Names that Rust keeps for itself.
const KEYWORDS: &[&str] =
    &["type", "continue", "default", "ref", "static", "match", "for", "in", "as", "use", "enum"];

type Schemas = BTreeMap<String, Value>;

/// Writes `crates/apply/generated/*.rs`.
pub(crate) fn run() -> Result<(), String> {
    let folder = root().join("crates/apply/generated");
    let files = generate()?;
    let mut total = 0;
    for (name, text) in &files {
        let path = folder.join(name);
        total += text.len();
        fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    }
    println!("{} files, {total} bytes", files.len());
    Ok(())
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned()
}

/// The files by name.
fn generate() -> Result<BTreeMap<String, String>, String> {
    let schemas = schemas()?;
    let mut kinds = BTreeMap::new();
    for (file, version, module) in GROUPS {
        for (name, schema) in &schemas {
            if file_of(name).as_deref() == Some(file) && is_kind(schema) && !REQUESTS.contains(&short(name)) {
                kinds.insert(name.clone(), (*version, *module));
            }
        }
    }
    let reached = reachable(&schemas, kinds.keys().cloned().collect())?;
    let mut files: BTreeMap<String, Vec<&String>> = BTreeMap::new();
    for name in &reached {
        files.entry(file_of(name).ok_or_else(|| format!("{name}: of no group"))?).or_default().push(name);
    }
    let mut written = BTreeMap::new();
    for (file, names) in files {
        let mut text = String::from("// Made by `cargo xtask apply-types`.\n\ntypes! {\n");
        let (mut parts, mut of_kinds) = (String::new(), String::new());
        for name in names {
            let schema = &schemas[name];
            let kind = kinds.get(name);
            let what =
                name.rsplit('.').take(2).collect::<Vec<_>>().into_iter().rev().collect::<Vec<_>>().join(".");
            let what = format!("{}.{what}", file.split('.').next().unwrap_or_default());
            let _ = writeln!(text, "    \"{what}\" {} {{", short(name));
            for (field, schema) in fields(name, schema) {
                let how = how(schema).map_err(|why| format!("{name}.{field}: {why}"))?;
                let _ = writeln!(text, "        {} \"{field}\" {how};", setter(field));
            }
            text.push_str("    }\n");
            match kind {
                Some((version, module)) => {
                    let short = short(name);
                    let _ =
                        writeln!(of_kinds, "    {short} \"{version}\" k8s_openapi::api::{module}::{short};");
                }
                None => {
                    let _ = writeln!(parts, "    {}", short(name));
                }
            }
        }
        text.push_str("}\n");
        for (name, list) in [("parts", parts), ("kinds", of_kinds)] {
            if !list.is_empty() {
                let _ = write!(text, "\n{name}! {{\n{list}}}\n");
            }
        }
        written.insert(format!("{}.rs", file.replace('.', "_")), text);
    }
    Ok(written)
}

fn schemas() -> Result<Schemas, String> {
    let folder = root().join("crates/resources/data/definitions");
    let mut schemas = Schemas::new();
    for entry in fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
        let path = entry.path();
        let bytes = fs::read(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        let file: Schemas = serde_json::from_slice(&bytes).map_err(|e| format!("{}: {e}", path.display()))?;
        schemas.extend(file);
    }
    Ok(schemas)
}

/// The file of a definition: `io.k8s.api.apps.v1.StatefulSet` is of `apps.v1`.
fn file_of(name: &str) -> Option<String> {
    let mut parts = name.rsplit('.');
    let (_, version, group) = (parts.next()?, parts.next()?, parts.next()?);
    Some(format!("{group}.{version}"))
}

fn short(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// The fields that get setters.
fn fields<'a>(name: &str, schema: &'a Value) -> impl Iterator<Item = (&'a String, &'a Value)> {
    let leave_out = match short(name) {
        "ObjectMeta" => OF_THE_SERVER,
        _ if is_kind(schema) => OF_KINDS,
        _ => &[],
    };
    properties(schema).filter(|(field, _)| !leave_out.contains(&field.as_str()))
}

fn is_kind(schema: &Value) -> bool {
    let has = |field: &str| schema.pointer(&format!("/properties/{field}")).is_some();
    schema.get("x-kubernetes-group-version-kind").is_some() && has("metadata") && !has("items")
}

/// What a schema refers to, itself or in its items.
fn reference(schema: &Value) -> Option<&str> {
    let inner = ["items", "additionalProperties"].into_iter().find_map(|k| schema.get(k));
    schema.get("$ref").and_then(Value::as_str).or_else(|| reference(inner?))
}

fn reachable(schemas: &Schemas, roots: Vec<String>) -> Result<BTreeSet<String>, String> {
    let mut reached = BTreeSet::new();
    let mut todo = roots;
    // Every kind's metadata can be given as such.
    todo.push("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta".to_owned());
    while let Some(name) = todo.pop() {
        let schema = schemas.get(&name).ok_or_else(|| format!("{name}: not among the schemas"))?;
        if simple(&name).is_some() || !reached.insert(name.clone()) {
            continue;
        }
        todo.extend(fields(&name, schema).filter_map(|(_, s)| reference(s)).map(str::to_owned));
    }
    Ok(reached)
}

/// How values of definitions without fields are given.
fn simple(name: &str) -> Option<&'static str> {
    match short(name) {
        "Quantity" | "Time" | "MicroTime" => Some("text"),
        "IntOrString" => Some("int_or_string"),
        "RawExtension" | "FieldsV1" | "JSON" => Some("json"),
        _ => None,
    }
}

/// How a field's value is given.
fn how(schema: &Value) -> Result<String, String> {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    if let Some(name) = text("$ref") {
        return match simple(name) {
            Some(how) => Ok(how.to_owned()),
            None => Ok(format!("one {}", path(name)?)),
        };
    }
    match (text("type"), text("format")) {
        (Some("string"), _) => Ok("text".into()),
        (Some("boolean"), _) => Ok("one bool".into()),
        (Some("integer"), Some("int32")) => Ok("one i32".into()),
        (Some("integer"), _) => Ok("one i64".into()),
        (Some("number"), _) => Ok("one f64".into()),
        (Some("array"), _) => {
            let items = schema.get("items").ok_or("an array without items")?;
            let item = how(items)?;
            Ok(match item.strip_prefix("one ") {
                Some(of) => format!("many {of}"),
                None if item == "text" => "texts".into(),
                None => "json".into(),
            })
        }
        (Some("object"), _) => {
            let Some(values) = schema.get("additionalProperties") else { return Ok("json".into()) };
            let bytes = values.get("format").and_then(Value::as_str) == Some("byte");
            Ok(match how(values)?.as_str() {
                "text" if bytes => "byte_map".into(),
                "text" => "text_map".into(),
                _ => "json".into(),
            })
        }
        (other, _) => Err(format!("no way to give a value of type {other:?}")),
    }
}

/// Where the type of a definition is.
fn path(name: &str) -> Result<String, String> {
    let file = file_of(name).ok_or_else(|| format!("{name}: of no group"))?;
    Ok(format!("crate::{}::{}", file.replace('.', "::"), short(name)))
}

/// `clusterIPs` is set by `cluster_ips`, `type` by `type_`.
fn setter(field: &str) -> String {
    let chars: Vec<char> = field.chars().collect();
    let mut name = String::new();
    for (i, c) in chars.iter().enumerate() {
        let before = i.checked_sub(1).and_then(|i| chars.get(i));
        // The s behind an abbreviation belongs to it.
        let plural = |at: usize| {
            chars.get(at) == Some(&'s') && chars.get(at + 1).is_none_or(|c| c.is_ascii_uppercase())
        };
        let begins = chars.get(i + 1).is_some_and(char::is_ascii_lowercase) && !plural(i + 1);
        if c.is_ascii_uppercase() && before.is_some_and(|b| !b.is_ascii_uppercase() || begins) {
            name.push('_');
        }
        if c.is_ascii_alphanumeric() {
            name.push(c.to_ascii_lowercase());
        } else {
            name.push('_');
        }
    }
    if KEYWORDS.contains(&name.as_str()) { format!("{name}_") } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setters_are_named_as_fields_are() {
        for (field, name) in [
            ("replicas", "replicas"),
            ("clusterIP", "cluster_ip"),
            ("clusterIPs", "cluster_ips"),
            ("hostIPC", "host_ipc"),
            ("podIPs", "pod_ips"),
            ("externalIPs", "external_ips"),
            ("allocateLoadBalancerNodePorts", "allocate_load_balancer_node_ports"),
            ("azureDisk", "azure_disk"),
            ("diskURI", "disk_uri"),
            ("type", "type_"),
            ("x-kubernetes-map-type", "x_kubernetes_map_type"),
        ] {
            assert_eq!(setter(field), name);
        }
    }

    #[test]
    fn what_is_committed_is_what_is_made() {
        for (name, text) in generate().unwrap() {
            let path = root().join("crates/apply/generated").join(&name);
            let has = fs::read_to_string(&path).unwrap_or_default();
            assert!(has == text, "{name} is behind the schemas: run `cargo xtask apply-types`");
        }
    }
}
