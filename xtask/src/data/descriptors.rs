//! `cargo xtask data`, protobuf part: which field of which message has which number.
//!
//! The numbers come from the published crate `k8s-pb`; names in JSON, and what is written when empty, from our own
//! definitions; what the crate's release lacks is written by hand in `crates/protobuf/data/additions.txt`. The
//! outcome is `crates/protobuf/data/messages.txt`, whose form that crate's `descriptor` module describes.
//! Invariant: a property of a definition without a number is an error, never a guess.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use cargo_metadata::MetadataCommand;
use regex::Regex;
use serde_json::{Map, Value};

/// The crate, and the release whose numbers are taken.
const CRATE: (&str, &str) = ("k8s-pb", "=0.9.0");

/// A field as the crate declares it.
#[derive(Clone, Debug)]
struct Declared {
    number: u32,
    /// As Rust spells it: `cluster_ip`.
    name: String,
    /// `string`, `int32`, … or the path of a message.
    of: String,
    /// `[]`, `{}` or nothing.
    label: &'static str,
}

/// A line of the additions, and of the outcome.
#[derive(Clone, Debug)]
struct Field {
    name: String,
    of: String,
    marks: BTreeSet<String>,
}

#[derive(Default)]
struct Addition {
    words: Vec<String>,
    fields: BTreeMap<u32, Field>,
}

/// What is said of one message.
struct Message {
    words: Vec<String>,
    fields: BTreeMap<u32, Field>,
}

/// Regenerates `crates/protobuf/data/messages.txt`.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let declared = declared(&source(root)?)?;
    let definitions = definitions(&root.join("crates/resources/data/definitions"))?;
    let marks = read(&root.join("crates/resources/data/encoding.json"))?;
    let marks: Map<String, Value> =
        serde_json::from_str(&marks).map_err(|e| format!("encoding.json: {e}"))?;
    let folder = root.join("crates/protobuf/data");
    let additions = additions(&read(&folder.join("additions.txt"))?)?;

    let world = World { declared, definitions, marks, additions };
    let messages = world.messages()?;
    let mut text =
        String::from("# Made by `cargo xtask data`; the form is described in src/descriptor.rs.\n");
    for (name, message) in &messages {
        let words: String = message.words.iter().map(|w| format!(" {w}")).collect();
        let _ = writeln!(text, "{name}{words}");
        for (number, field) in &message.fields {
            let marks: String = field.marks.iter().map(|m| format!(" {m}")).collect();
            let _ = writeln!(text, "{number} {} {}{marks}", field.name, field.of);
        }
    }
    let path = folder.join("messages.txt");
    fs::write(&path, &text).map_err(|e| format!("{}: {e}", path.display()))?;
    println!("{} protobuf messages, {} bytes", messages.len(), text.len());
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))
}

/// Where cargo keeps the crate's source; a package of its own asks for it, so that our lock file doesn't.
fn source(root: &Path) -> Result<PathBuf, String> {
    let folder = root.join("target/data").join(CRATE.0);
    let manifest = folder.join("Cargo.toml");
    let text = format!(
        "[package]\nname = \"numbers\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[dependencies]\n{} = \"{}\"\n[workspace]\n",
        CRATE.0, CRATE.1
    );
    fs::create_dir_all(folder.join("src")).map_err(|e| format!("{}: {e}", folder.display()))?;
    fs::write(folder.join("src/lib.rs"), "").map_err(|e| format!("{}: {e}", folder.display()))?;
    fs::write(&manifest, text).map_err(|e| format!("{}: {e}", manifest.display()))?;
    let metadata =
        MetadataCommand::new().manifest_path(&manifest).exec().map_err(|e| format!("{}: {e}", CRATE.0))?;
    let package = metadata.packages.iter().find(|p| p.name.as_str() == CRATE.0);
    let package = package.ok_or_else(|| format!("cargo did not find {}", CRATE.0))?;
    Ok(package.manifest_path.parent().ok_or("a manifest without a folder")?.as_std_path().join("src"))
}

/// All messages of the crate by path: `api.core.v1.Pod`.
fn declared(folder: &Path) -> Result<BTreeMap<String, Vec<Declared>>, String> {
    let mut out = BTreeMap::new();
    let mut todo = vec![(folder.to_owned(), Vec::<String>::new())];
    let pattern = Regex::new(r"(?m)^pub struct (\w+) \{\}|^pub struct (\w+) \{\n(?s:(.*?))\n\}")
        .map_err(|e| e.to_string())?;
    let field = Regex::new(r#"(?s)#\[prost\((.*?)tag = "(\d+)"\)\]\s*pub (?:r#)?(\w+):\s*(.*),\s*\z"#)
        .map_err(|e| e.to_string())?;
    while let Some((folder, path)) = todo.pop() {
        for entry in fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
            let at = entry.path();
            if at.is_dir() {
                let mut path = path.clone();
                path.push(entry.file_name().to_string_lossy().into_owned());
                todo.push((at, path));
            } else if entry.file_name() == "mod.rs" {
                for found in pattern.captures_iter(&read(&at)?) {
                    let group = |i: usize| found.get(i).map_or("", |m| m.as_str());
                    let name = if group(1).is_empty() { group(2) } else { group(1) };
                    let fields =
                        fields(group(3), &path, &field).map_err(|e| format!("{path:?} {name}: {e}"))?;
                    out.insert(format!("{}.{name}", path.join(".")), fields);
                }
            }
        }
    }
    Ok(out)
}

fn fields(body: &str, path: &[String], pattern: &Regex) -> Result<Vec<Declared>, String> {
    // Documentation may hold anything; without it a field begins at its attribute and ends before the next one.
    let bare: String =
        body.lines().filter(|l| !l.trim_start().starts_with("///")).map(|l| format!("{l}\n")).collect();
    let mut out = Vec::new();
    for piece in bare.split("#[prost(").skip(1) {
        let piece = format!("#[prost({piece}");
        let found = pattern.captures(&piece).ok_or_else(|| format!("unknown form: {piece}"))?;
        let attribute = &found[1];
        let label = match attribute {
            a if a.starts_with("btree_map") => "{}",
            a if a.contains("repeated") => "[]",
            _ => "",
        };
        let scalar = match attribute.split_once("btree_map = \"string, ") {
            Some((_, rest)) => rest.split('"').next().unwrap_or_default(),
            None => attribute.split([',', ' ']).next().unwrap_or_default(),
        };
        let of = if scalar == "message" { resolve(&found[4], path)? } else { scalar.to_owned() };
        out.push(Declared {
            number: found[2].parse().map_err(|e| format!("{e}"))?,
            name: found[3].to_owned(),
            of,
            label,
        });
    }
    Ok(out)
}

/// The message that a Rust type holds: the last path in it, seen from the module at `path`.
fn resolve(rust: &str, path: &[String]) -> Result<String, String> {
    let inner = rust
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
        .rfind(|p| !p.is_empty())
        .ok_or_else(|| format!("no type in {rust}"))?;
    let mut at = path.to_vec();
    for part in inner.split("::") {
        match part.trim() {
            "super" => {
                at.pop();
            }
            part => at.push(part.to_owned()),
        }
    }
    Ok(at.join("."))
}

fn definitions(folder: &Path) -> Result<BTreeMap<String, Value>, String> {
    let mut out = BTreeMap::new();
    for entry in fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?.flatten() {
        let all: BTreeMap<String, Value> = serde_json::from_str(&read(&entry.path())?)
            .map_err(|e| format!("{}: {e}", entry.path().display()))?;
        out.extend(all);
    }
    Ok(out)
}

/// Reads lines in the form of the outcome.
fn additions(text: &str) -> Result<BTreeMap<String, Addition>, String> {
    let mut out: BTreeMap<String, Addition> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
        let mut words = line.split(' ').map(str::to_owned);
        let first = words.next().unwrap_or_default();
        if let Ok(number) = first.parse() {
            let (Some(name), Some(of)) = (words.next(), words.next()) else {
                return Err(format!("additions.txt: {line}"));
            };
            let field = Field { name, of, marks: words.collect() };
            out.entry(current.clone()).or_default().fields.insert(number, field);
        } else {
            out.entry(first.clone()).or_default().words.extend(words);
            current = first;
        }
    }
    Ok(out)
}

/// `apps.v1.Deployment` of `io.k8s.api.apps.v1.Deployment` and of `api.apps.v1.Deployment`.
fn short(path: &str) -> String {
    let parts: Vec<&str> = path.split('.').collect();
    let versioned = parts.len() >= 3 && parts[parts.len() - 2].starts_with('v');
    parts[parts.len() - if versioned { 3 } else { 2 }..].join(".")
}

/// The same for every spelling: `clusterIP`, `cluster_ip`, `$ref`.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

struct World {
    declared: BTreeMap<String, Vec<Declared>>,
    definitions: BTreeMap<String, Value>,
    marks: Map<String, Value>,
    additions: BTreeMap<String, Addition>,
}

impl World {
    fn messages(&self) -> Result<BTreeMap<String, Message>, String> {
        // The crate spells some names in another case: `JsonSchemaProps`.
        let paths: BTreeMap<String, &String> = self
            .declared
            .keys()
            .filter(|p| !p.starts_with("metrics."))
            .map(|p| (short(p).to_ascii_lowercase(), p))
            .collect();
        let names: BTreeMap<String, &String> = self.definitions.keys().map(|n| (short(n), n)).collect();
        // (message, definition whose properties name its fields)
        let mut todo: Vec<(String, Option<String>)> =
            names.iter().map(|(s, n)| (s.clone(), Some((*n).clone()))).collect();
        todo.extend(self.additions.keys().filter(|n| !names.contains_key(*n)).map(|n| (n.clone(), None)));
        let mut out = BTreeMap::new();
        let mut faults = Vec::new();
        while let Some((name, definition)) = todo.pop() {
            if out.contains_key(&name) {
                continue;
            }
            let none = Addition::default();
            let addition = self.additions.get(&name).unwrap_or(&none);
            let fields = match paths.get(&name.to_ascii_lowercase()) {
                Some(path) => self.declared[*path].clone(),
                None => Vec::new(),
            };
            let message = self.message(&name, definition.as_deref(), fields, addition, &mut faults);
            for field in message.fields.values() {
                let of = field.of.trim_start_matches(['[', ']', '{', '}']);
                if of.contains('.') && !out.contains_key(of) {
                    let inline = field.marks.contains("inline");
                    let own = names.get(of).map(|n| (*n).clone());
                    todo.push((of.to_owned(), own.or_else(|| definition.clone().filter(|_| inline))));
                }
            }
            out.insert(name, message);
        }
        if faults.is_empty() { Ok(out) } else { Err(faults.join("\n")) }
    }

    /// Whether a field's own fields stand among those of the struct around it, where Go embeds one in the other.
    fn embedded(&self, field: &Declared, around: &BTreeMap<String, &String>) -> bool {
        let inner = self.declared.get(&field.of).filter(|f| !f.is_empty() && field.label.is_empty());
        inner.is_some_and(|inner| {
            inner.iter().all(|f| around.contains_key(&plain(&f.name)) || self.embedded(f, around))
        })
    }

    /// The name of a message as we spell it.
    fn spelling(&self, name: &str) -> String {
        let ours = self.definitions.keys().map(|n| short(n)).find(|n| n.eq_ignore_ascii_case(name));
        ours.unwrap_or_else(|| name.to_owned())
    }

    fn message(
        &self,
        name: &str,
        definition: Option<&str>,
        declared: Vec<Declared>,
        addition: &Addition,
        faults: &mut Vec<String>,
    ) -> Message {
        let schema = definition.and_then(|d| self.definitions.get(d));
        let own = definition.is_some_and(|d| short(d) == name);
        let properties = schema.and_then(|s| s["properties"].as_object());
        let spelled: BTreeMap<String, &String> =
            properties.into_iter().flatten().map(|(k, _)| (plain(k), k)).collect();
        let mark = |field: &str, which: &str| {
            let list = definition.and_then(|d| self.marks.get(d)).and_then(|m| m[which].as_array());
            list.is_some_and(|l| l.iter().any(|f| f == field))
        };
        let mut fields = BTreeMap::new();
        for d in declared {
            if addition.fields.contains_key(&d.number) {
                continue;
            }
            let of = if d.of.contains('.') { self.spelling(&short(&d.of)) } else { d.of.clone() };
            let is_message = d.of.contains('.');
            let mut marks = BTreeSet::new();
            let json = match spelled.get(&plain(&d.name)) {
                Some(json) => (*json).clone(),
                None if properties.is_some() && self.embedded(&d, &spelled) => {
                    marks.insert("inline".to_owned());
                    "-".to_owned()
                }
                None if properties.is_some() => {
                    faults.push(format!("{name}: {} has no property", d.name));
                    continue;
                }
                None => camel(&d.name),
            };
            let (always, keep) = (mark(&json, "always"), mark(&json, "keep"));
            if always {
                marks.insert("always".to_owned());
            }
            if keep || (is_message && d.label.is_empty() && !always && !marks.contains("inline")) {
                marks.insert("pointer".to_owned());
            }
            fields.insert(d.number, Field { name: json, of: format!("{}{of}", d.label), marks });
        }
        let kept = addition.fields.iter().filter(|(_, f)| !f.marks.contains("drop"));
        fields.extend(kept.map(|(n, f)| (*n, f.clone())));
        let mut words = addition.words.clone();
        if own {
            let known: BTreeSet<&str> = fields.values().map(|f| f.name.as_str()).collect();
            let embeds = fields.values().any(|f| f.marks.contains("inline"));
            for property in properties.into_iter().flatten().map(|(k, _)| k.as_str()) {
                let type_meta = matches!(property, "apiVersion" | "kind");
                if !known.contains(property) && !type_meta && !embeds {
                    faults.push(format!("{name}: no number for {property}"));
                }
            }
            let kinds = schema.and_then(|s| s["x-kubernetes-group-version-kind"].as_array());
            for gvk in kinds.into_iter().flatten() {
                let (group, version) =
                    (gvk["group"].as_str().unwrap_or_default(), gvk["version"].as_str().unwrap_or_default());
                words.push(if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") });
            }
        }
        Message { words, fields }
    }
}

/// `dry_run` to `dryRun`.
fn camel(name: &str) -> String {
    let mut out = String::new();
    let mut up = false;
    for c in name.chars() {
        match c {
            '_' => up = true,
            c if up => {
                out.extend(c.to_uppercase());
                up = false;
            }
            c => out.push(c),
        }
    }
    out
}
