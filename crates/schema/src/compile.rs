//! From OpenAPI JSON to [`Node`]s: CRD schemas at once, built-in definitions one by one when first asked for.
//!
//! It takes what it understands and leaves the judgement whether a CRD's schema is structural to the CRD's own
//! validation. Invariant: what compiles is at most [`MAX_DEPTH`] levels deep (references not counted).

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock, Weak};

use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::cel::Rule;
use crate::formats::Format;
use crate::node::{Child, Kind, ListType, MapType, Node, Special};
use crate::pattern;
use crate::rules::Rules;

/// Levels of a schema; more is refused rather than risked on the stack.
pub const MAX_DEPTH: usize = 128;

/// Why a schema doesn't compile.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The document isn't JSON of the expected form.
    #[error("{0}")]
    Malformed(String),
    /// A schema is neither an object nor, where that is allowed, a boolean.
    #[error("{0}: a schema must be an object")]
    NotAnObject(String),
    /// A pattern that RE2 doesn't take.
    #[error("{path}: invalid pattern {pattern:?}: {why}")]
    Pattern {
        /// Place in the schema.
        path: String,
        /// The expression.
        pattern: String,
        /// What the parser says.
        why: String,
    },
    /// Deeper than [`MAX_DEPTH`].
    #[error("the schema is nested deeper than {MAX_DEPTH} levels")]
    TooDeep,
    /// A `$ref` to a definition that is absent.
    #[error("{path}: no definition named {name:?}")]
    UnknownDefinition {
        /// Place in the schema.
        path: String,
        /// What is referred to.
        name: String,
    },
}

/// Named definitions that refer to each other with `"$ref": "name"`, each compiled when first used.
///
/// Meant to live as long as the process: compiled nodes hold references to their definitions.
pub struct Definitions {
    names: BTreeMap<Box<str>, usize>,
    slots: Vec<Slot>,
    /// So that compiled nodes can refer back.
    this: Weak<Definitions>,
}

struct Slot {
    name: Box<str>,
    source: Box<RawValue>,
    node: OnceLock<Node>,
}

impl Definitions {
    /// Reads a JSON object of name -> schema. Schemas themselves are read when they are first used.
    pub fn parse(json: &[u8]) -> Result<Arc<Self>, CompileError> {
        let raw: BTreeMap<String, Box<RawValue>> =
            serde_json::from_slice(json).map_err(|e| CompileError::Malformed(e.to_string()))?;
        let mut names = BTreeMap::new();
        let mut slots = Vec::with_capacity(raw.len());
        for (name, source) in raw {
            names.insert(name.clone().into_boxed_str(), slots.len());
            slots.push(Slot { name: name.into(), source, node: OnceLock::new() });
        }
        Ok(Arc::new_cyclic(|this| Self { names, slots, this: this.clone() }))
    }

    /// No definitions.
    pub fn none() -> Arc<Self> {
        let slot = Slot { name: "Any".into(), source: RawValue::NULL.to_owned(), node: OnceLock::new() };
        Arc::new(Self { names: BTreeMap::new(), slots: vec![slot], this: Weak::new() })
    }

    /// Names of all definitions, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.keys().map(|n| &**n)
    }

    /// The JSON of a definition.
    pub fn source(&self, name: &str) -> Option<&str> {
        self.names.get(name).map(|at| self.slots[*at].source.get())
    }

    /// Compiles every definition, to find what is wrong with the data in a test rather than at a request.
    pub fn check(&self) -> Result<(), CompileError> {
        self.slots.iter().try_for_each(|slot| self.compile(slot).map(drop))
    }

    pub(crate) fn index(&self, name: &str) -> Option<usize> {
        self.names.get(name).copied()
    }

    /// The compiled definition; one that doesn't compile (see [`Definitions::check`]) takes any value.
    pub(crate) fn node(&self, at: usize) -> &Node {
        self.slots[at].node.get_or_init(|| self.compile(&self.slots[at]).unwrap_or_default())
    }

    fn compile(&self, slot: &Slot) -> Result<Node, CompileError> {
        let schema: Value =
            serde_json::from_str(slot.source.get()).map_err(|e| CompileError::Malformed(e.to_string()))?;
        let cx = Cx { definitions: self.this.upgrade() };
        let mut node = cx.node(&schema, &Path::Root(&slot.name), 0)?;
        node.special = special(&slot.name);
        node.defaults_below = true;
        match node.special {
            Special::None | Special::Duration => {}
            Special::Time | Special::MicroTime => node.kind = Kind::String,
            Special::Quantity => node.kind = Kind::String,
            Special::Raw | Special::FieldsV1 | Special::Json => {
                node.kind = Kind::Any;
                node.preserve = true;
                node.map_type = MapType::Atomic;
                node.properties.clear();
            }
        }
        if slot.name.ends_with(".IntOrString") {
            node.kind = Kind::IntOrString;
        }
        if node.special == Special::Json
            && let Some((package, name)) = slot.name.rsplit_once('.')
            && name.starts_with("JSONSchemaPropsOr")
            && let (Some(definitions), Some(at)) =
                (&cx.definitions, self.index(&format!("{package}.JSONSchemaProps")))
        {
            node.inner = Some(Child::Ref(definitions.clone(), at));
        }
        node.go = Some(go_type(&slot.name));
        Ok(node)
    }
}

/// Types that Go reads in their own way, by the last parts of their definition's name.
fn special(name: &str) -> Special {
    match name.rsplit('.').next().unwrap_or(name) {
        "Quantity" => Special::Quantity,
        "Time" => Special::Time,
        "MicroTime" => Special::MicroTime,
        "Duration" => Special::Duration,
        "RawExtension" => Special::Raw,
        "FieldsV1" => Special::FieldsV1,
        "JSON" | "JSONSchemaPropsOrBool" | "JSONSchemaPropsOrArray" | "JSONSchemaPropsOrStringArray" => {
            Special::Json
        }
        _ => Special::None,
    }
}

/// `v1.PodSpec` of `io.k8s.api.core.v1.PodSpec`.
fn go_type(name: &str) -> Box<str> {
    let mut parts = name.rsplit('.');
    match (parts.next(), parts.next()) {
        (Some(name), Some(package)) => format!("{package}.{name}").into(),
        _ => format!("v1.{name}").into(),
    }
}

/// Drops formats that the reference doesn't check for the type, and finds the checker of others.
fn keep_known_format(node: &mut Node) {
    let format = node.format.as_deref().unwrap_or_default();
    let known = match node.kind {
        Kind::Any | Kind::String | Kind::IntOrString => {
            node.checked_format = Format::named(format);
            node.checked_format.is_some()
        }
        Kind::Integer => matches!(format, "int32" | "int64"),
        Kind::Number => matches!(format, "float" | "double"),
        Kind::Object | Kind::Array | Kind::Boolean => false,
    };
    if !known {
        node.format = None;
    }
}

/// A `$ref` with marks beside it.
pub(crate) struct Marked {
    definitions: Arc<Definitions>,
    at: usize,
    marks: Map<String, Value>,
}

impl Marked {
    pub(crate) fn has_default(&self) -> bool {
        self.marks.contains_key("default")
    }

    pub(crate) fn compile(&self) -> Node {
        let slot = &self.definitions.slots[self.at];
        let mut node = self.definitions.compile(slot).unwrap_or_default();
        apply_marks(&mut node, &self.marks);
        node
    }
}

/// Marks that change how a field merges or defaults, and so may differ from place to place of one definition.
const MARKS: [&str; 8] = [
    "default",
    "nullable",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
    "x-kubernetes-patch-strategy",
    "x-kubernetes-patch-merge-key",
    "x-kubernetes-embedded-resource",
];

fn apply_marks(node: &mut Node, schema: &Map<String, Value>) {
    let text = |key: &str| schema.get(key).and_then(Value::as_str);
    if schema.get("nullable").and_then(Value::as_bool) == Some(true) {
        node.nullable = true;
    }
    if let Some(default) = schema.get("default") {
        node.default = Some(default.clone()).filter(|d| !d.is_null());
        node.defaults_below |= node.default.is_some();
    }
    match text("x-kubernetes-list-type") {
        Some("set") => node.list_type = ListType::Set,
        Some("map") => node.list_type = ListType::Map,
        Some("atomic") => node.list_type = ListType::Atomic,
        _ => {}
    }
    if let Some(keys) = schema.get("x-kubernetes-list-map-keys").and_then(Value::as_array) {
        node.list_keys = keys.iter().filter_map(|k| k.as_str().map(str::to_owned)).collect();
    }
    match text("x-kubernetes-map-type") {
        Some("atomic") => node.map_type = MapType::Atomic,
        Some("granular") => node.map_type = MapType::Granular,
        _ => {}
    }
    if let Some(strategy) = text("x-kubernetes-patch-strategy") {
        node.patch.merge = strategy.split(',').any(|s| s == "merge");
        node.patch.retain_keys = strategy.split(',').any(|s| s == "retainKeys");
    }
    if let Some(key) = text("x-kubernetes-patch-merge-key") {
        node.patch_key = Some(key.to_owned());
    }
}

/// A place in the schema, kept on the stack and printed only in errors.
enum Path<'a> {
    Root(&'a str),
    Key(&'a Path<'a>, &'a str),
}

impl std::fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root(name) => f.write_str(name),
            Self::Key(parent, key) => write!(f, "{parent}.{key}"),
        }
    }
}

struct Cx {
    definitions: Option<Arc<Definitions>>,
}

impl Cx {
    fn child(&self, schema: &Value, path: &Path<'_>, depth: usize) -> Result<Child, CompileError> {
        let Some(name) = schema.get("$ref").and_then(Value::as_str) else {
            return Ok(Child::Own(Box::new(self.node(schema, path, depth)?)));
        };
        let name = name.rsplit('/').next().unwrap_or(name);
        let unknown = || CompileError::UnknownDefinition { path: path.to_string(), name: name.to_owned() };
        let definitions = self.definitions.as_ref().ok_or_else(unknown)?;
        let at = definitions.index(name).ok_or_else(unknown)?;
        let marks: Map<String, Value> = schema
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(k, _)| MARKS.contains(&k.as_str()))
            .map(|(k, v)| (k.clone(), v.clone()))
            .collect();
        if marks.is_empty() {
            return Ok(Child::Ref(definitions.clone(), at));
        }
        Ok(Child::Marked(OnceLock::new(), Box::new(Marked { definitions: definitions.clone(), at, marks })))
    }

    fn node(&self, schema: &Value, path: &Path<'_>, depth: usize) -> Result<Node, CompileError> {
        if depth > MAX_DEPTH {
            return Err(CompileError::TooDeep);
        }
        let Some(map) = schema.as_object() else {
            return match schema {
                Value::Bool(_) => Ok(Node { open: true, ..Default::default() }),
                _ => Err(CompileError::NotAnObject(path.to_string())),
            };
        };
        let flag = |key: &str| map.get(key).and_then(Value::as_bool) == Some(true);
        let mut node = Node { kind: kind(map), ..Default::default() };
        apply_marks(&mut node, map);
        node.preserve = flag("x-kubernetes-preserve-unknown-fields");
        node.embedded = flag("x-kubernetes-embedded-resource");
        node.format = map.get("format").and_then(Value::as_str).map(Into::into);
        if self.definitions.is_none() {
            keep_known_format(&mut node);
        }
        if let Some(properties) = map.get("properties").and_then(Value::as_object) {
            // serde_json's maps are sorted.
            for (name, schema) in properties {
                let child = self.child(schema, &Path::Key(path, name), depth + 1)?;
                node.properties.push((name.as_str().into(), child));
            }
        }
        match map.get("additionalProperties") {
            Some(Value::Bool(true)) => node.open = true,
            Some(schema @ Value::Object(_)) => {
                node.additional =
                    Some(self.child(schema, &Path::Key(path, "additionalProperties"), depth + 1)?);
            }
            _ => {}
        }
        match map.get("items") {
            Some(schema @ Value::Object(_)) => {
                node.items = Some(self.child(schema, &Path::Key(path, "items"), depth + 1)?);
            }
            // v1 CRDs have one schema for all items; an older form listed it.
            Some(Value::Array(list)) if list.len() == 1 => {
                node.items = Some(self.child(&list[0], &Path::Key(path, "items"), depth + 1)?);
            }
            _ => {}
        }
        let mut rules = self.rules(map, path, depth)?;
        if self.definitions.is_some() {
            node.always = std::mem::take(&mut rules.required);
        }
        if !rules.is_empty() {
            node.rules = Some(Box::new(rules));
        }
        let below = |f: fn(&Node) -> bool, of_references: bool| {
            let mut children =
                node.properties.iter().map(|(_, c)| c).chain(&node.additional).chain(&node.items);
            children.any(|c| match c {
                Child::Own(node) => f(node),
                Child::Ref(..) | Child::Marked(..) => of_references,
            })
        };
        let has_rules =
            node.rules.as_ref().is_some_and(|r| !r.cel.is_empty() || r.all_of.iter().any(|n| n.rules_below));
        (node.defaults_below, node.embedded_below, node.unique_below, node.rules_below) = (
            node.default.is_some() || below(|n| n.defaults_below, true),
            node.embedded || below(|n| n.embedded_below, false),
            node.list_type != ListType::Atomic || below(|n| n.unique_below, false),
            has_rules || below(|n| n.rules_below, false),
        );
        if self.definitions.is_none() && (node.embedded || depth == 0) {
            add_resource_fields(&mut node);
        }
        Ok(node)
    }

    fn rules(&self, map: &Map<String, Value>, path: &Path<'_>, depth: usize) -> Result<Rules, CompileError> {
        let flag = |key: &str| map.get(key).and_then(Value::as_bool) == Some(true);
        let float = |key: &str| map.get(key).and_then(Value::as_f64);
        let size = |key: &str| map.get(key).and_then(|v| v.as_i64().map(|n| u64::try_from(n).unwrap_or(0)));
        let list = |key: &'static str| -> Result<Vec<Node>, CompileError> {
            let Some(list) = map.get(key).and_then(Value::as_array) else { return Ok(Vec::new()) };
            list.iter().map(|s| self.node(s, &Path::Key(path, key), depth + 1)).collect()
        };
        let pattern = match map.get("pattern").and_then(Value::as_str) {
            None | Some("") => None,
            Some(source) => Some(pattern::compile(source).map_err(|why| CompileError::Pattern {
                path: path.to_string(),
                pattern: source.to_owned(),
                why,
            })?),
        };
        Ok(Rules {
            r#enum: map.get("enum").and_then(Value::as_array).cloned().unwrap_or_default(),
            minimum: float("minimum"),
            exclusive_minimum: flag("exclusiveMinimum"),
            maximum: float("maximum"),
            exclusive_maximum: flag("exclusiveMaximum"),
            multiple_of: float("multipleOf"),
            min_length: size("minLength"),
            max_length: size("maxLength"),
            pattern,
            min_items: size("minItems"),
            max_items: size("maxItems"),
            unique_items: flag("uniqueItems"),
            min_properties: size("minProperties"),
            max_properties: size("maxProperties"),
            required: map
                .get("required")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(|v| v.as_str().map(str::to_owned))
                .collect(),
            // Composition of built-ins only says "a number or a string", which their special types know.
            all_of: if self.definitions.is_some() { Vec::new() } else { list("allOf")? },
            any_of: if self.definitions.is_some() { Vec::new() } else { list("anyOf")? },
            one_of: if self.definitions.is_some() { Vec::new() } else { list("oneOf")? },
            not: match map.get("not") {
                Some(schema) if self.definitions.is_none() => {
                    Some(self.node(schema, &Path::Key(path, "not"), depth + 1)?)
                }
                _ => None,
            },
            cel: map
                .get("x-kubernetes-validations")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(Rule::compile)
                .collect(),
        })
    }
}

fn kind(map: &Map<String, Value>) -> Kind {
    if map.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true)
        || map.get("format").and_then(Value::as_str) == Some("int-or-string")
    {
        return Kind::IntOrString;
    }
    let name = match map.get("type") {
        Some(Value::String(s)) => s.as_str(),
        // `["string", "null"]`: the second says that Go doesn't mind null, which decoding knows.
        Some(Value::Array(list)) => {
            list.iter().filter_map(Value::as_str).find(|t| *t != "null").unwrap_or("")
        }
        _ => "",
    };
    match name {
        "object" => Kind::Object,
        "array" => Kind::Array,
        "string" => Kind::String,
        "integer" => Kind::Integer,
        "number" => Kind::Number,
        "boolean" => Kind::Boolean,
        _ => Kind::Any,
    }
}

/// Gives a custom or embedded resource the fields that every object has, whether or not its schema names them.
fn add_resource_fields(node: &mut Node) {
    node.is_resource = true;
    let (metadata, at) = &*OBJECT_META;
    for name in ["apiVersion", "kind"] {
        if let Err(at) = node.properties.binary_search_by(|(n, _)| (**n).cmp(name)) {
            let child = Child::Own(Box::new(Node { kind: Kind::String, ..Default::default() }));
            node.properties.insert(at, (name.into(), child));
        }
    }
    let child = Child::Ref(metadata.clone(), *at);
    match node.properties.binary_search_by(|(n, _)| (**n).cmp("metadata")) {
        Ok(at) => {
            if let Child::Own(own) = std::mem::replace(&mut node.properties[at].1, child) {
                node.metadata_rules = Some(own);
            }
        }
        Err(at) => node.properties.insert(at, ("metadata".into(), child)),
    }
}

/// `metav1.ObjectMeta` for custom resources.
static OBJECT_META: LazyLock<(Arc<Definitions>, usize)> = LazyLock::new(|| {
    let definitions =
        Definitions::parse(include_bytes!("object_meta.json")).unwrap_or_else(|_| Definitions::none());
    let at = definitions.index("ObjectMeta").unwrap_or_default();
    (definitions, at)
});

/// The node of `metav1.ObjectMeta`.
pub(crate) fn object_meta() -> &'static Node {
    let (definitions, at) = &*OBJECT_META;
    definitions.node(*at)
}

/// Compiles a CRD's `openAPIV3Schema`.
pub(crate) fn structural(schema: &Value) -> Result<Node, CompileError> {
    Cx { definitions: None }.node(schema, &Path::Root("openAPIV3Schema"), 0)
}
