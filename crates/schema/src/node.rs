//! A compiled schema: what a value at one place of an object may be, and how lists and maps there merge.
//!
//! Structural schemas of CRDs and the definitions of built-in types compile to the same nodes; references (and
//! with them recursion, as in JSONSchemaProps) are followed behind the accessors. It holds no object and knows no
//! path. Invariant: a node never changes once it is compiled.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::compile::{self, Definitions};
use crate::formats::Format;
use crate::rules::Rules;

/// The JSON type that a node asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// No type is asked for: any JSON.
    Any,
    /// `object`.
    Object,
    /// `array`.
    Array,
    /// `string`.
    String,
    /// `integer`.
    Integer,
    /// `number`.
    Number,
    /// `boolean`.
    Boolean,
    /// `x-kubernetes-int-or-string`.
    IntOrString,
}

impl Kind {
    /// The type's name in a schema; empty where there is none.
    pub fn name(self) -> &'static str {
        match self {
            Self::Any | Self::IntOrString => "",
            Self::Object => "object",
            Self::Array => "array",
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
        }
    }
}

/// `x-kubernetes-list-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ListType {
    /// The list is replaced as a whole.
    #[default]
    Atomic,
    /// Items are scalars, each at most once.
    Set,
    /// Items are objects, told apart by [`Node::list_keys`].
    Map,
}

/// `x-kubernetes-map-type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum MapType {
    /// Fields merge one by one.
    #[default]
    Granular,
    /// The object is replaced as a whole.
    Atomic,
}

/// `x-kubernetes-patch-strategy`: how strategic merge patch treats a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PatchStrategy {
    /// List items merge (by [`Node::patch_merge_key`], or as a set) instead of being replaced.
    pub merge: bool,
    /// Keys that the patch's `$retainKeys` doesn't name are dropped.
    pub retain_keys: bool,
}

/// Types whose Go code reads JSON in its own way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Special {
    /// None.
    #[default]
    None,
    /// `resource.Quantity`: a string or a number.
    Quantity,
    /// `metav1.Time`: RFC 3339.
    Time,
    /// `metav1.MicroTime`: RFC 3339 with six fraction digits.
    MicroTime,
    /// `metav1.Duration`: `1m30s`.
    Duration,
    /// `runtime.RawExtension`: an object of any kind.
    Raw,
    /// `metav1.FieldsV1`: kept as it is.
    FieldsV1,
    /// JSON of any type: apiextensions' `JSON`, `JSONSchemaPropsOrBool` and their like.
    Json,
}

/// One place of a schema. See the module's head.
pub struct Node {
    pub(crate) kind: Kind,
    pub(crate) nullable: bool,
    /// Sorted by name.
    pub(crate) properties: Vec<(Box<str>, Child)>,
    pub(crate) additional: Option<Child>,
    /// `additionalProperties: true`: any value, nothing is pruned below.
    pub(crate) open: bool,
    pub(crate) items: Option<Child>,
    /// What objects in a [`Special::Json`] are, where they are schemas again.
    pub(crate) inner: Option<Child>,
    pub(crate) preserve: bool,
    pub(crate) embedded: bool,
    /// Whether apiVersion, kind and metadata are those of an API object: at the root, and where `embedded`.
    pub(crate) is_resource: bool,
    /// Whether this node or one below it is an embedded resource.
    pub(crate) embedded_below: bool,
    /// Whether this node or one below it is a list of type set or map.
    pub(crate) unique_below: bool,
    /// Whether this node or one below it has rules in CEL.
    pub(crate) rules_below: bool,
    /// Fields that an object of this type always has (OpenAPI's `required` of built-in types, which Go's structs
    /// write even when empty). What validation demands stands in the rules.
    pub(crate) always: Vec<String>,
    pub(crate) list_type: ListType,
    pub(crate) list_keys: Vec<String>,
    pub(crate) map_type: MapType,
    pub(crate) default: Option<Value>,
    /// Whether this node or one below it has a default; built-ins, which may recur, always say yes.
    pub(crate) defaults_below: bool,
    pub(crate) patch: PatchStrategy,
    pub(crate) patch_key: Option<String>,
    pub(crate) format: Option<Box<str>>,
    /// The format, where it is one of strings that validation looks at.
    pub(crate) checked_format: Option<Format>,
    pub(crate) special: Special,
    /// The Go type, as decoding errors print it (`v1.PodSpec`); only on definitions of built-in types.
    pub(crate) go: Option<Box<str>>,
    pub(crate) rules: Option<Box<Rules>>,
    /// What a schema says of `metadata` at the root or of an embedded resource: rules of its name, no structure.
    pub(crate) metadata_rules: Option<Box<Node>>,
}

impl Default for Node {
    fn default() -> Self {
        Self {
            kind: Kind::Any,
            nullable: false,
            properties: Vec::new(),
            additional: None,
            open: false,
            items: None,
            inner: None,
            preserve: false,
            embedded: false,
            is_resource: false,
            embedded_below: false,
            unique_below: false,
            rules_below: false,
            always: Vec::new(),
            list_type: ListType::Atomic,
            list_keys: Vec::new(),
            map_type: MapType::Granular,
            default: None,
            defaults_below: false,
            patch: PatchStrategy::default(),
            patch_key: None,
            format: None,
            checked_format: None,
            special: Special::None,
            go: None,
            rules: None,
            metadata_rules: None,
        }
    }
}

/// A child in place, or a reference to a definition.
pub(crate) enum Child {
    Own(Box<Node>),
    /// A definition, with the marks that stand beside the `$ref` (patch strategy, default …).
    Ref(Arc<Definitions>, usize),
    /// A reference with marks of its own: the node is the definition's, compiled again with them.
    Marked(std::sync::OnceLock<Box<Node>>, Box<compile::Marked>),
}

impl Child {
    pub(crate) fn node(&self) -> &Node {
        match self {
            Self::Own(node) => node,
            Self::Ref(definitions, at) => definitions.node(*at),
            Self::Marked(cell, source) => cell.get_or_init(|| Box::new(source.compile())),
        }
    }

    /// Whether it is worth compiling to look for a default. (Definitions have none at their root: defaults stand
    /// beside the reference.)
    pub(crate) fn may_have_default(&self) -> bool {
        match self {
            Self::Own(node) => node.default.is_some(),
            Self::Ref(..) => false,
            Self::Marked(_, source) => source.has_default(),
        }
    }
}

impl Node {
    /// The JSON type that is asked for.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// Whether null is a value here.
    pub fn nullable(&self) -> bool {
        self.nullable
    }

    /// The node of a named property; not of a map's values (see [`Node::additional`]).
    pub fn property(&self, name: &str) -> Option<&Node> {
        let at = self.properties.binary_search_by(|(n, _)| (**n).cmp(name)).ok()?;
        Some(self.properties[at].1.node())
    }

    /// The node of a field of an object: the property, or else what `additionalProperties` says.
    pub fn field(&self, name: &str) -> Option<&Node> {
        self.property(name).or_else(|| self.additional())
    }

    /// All named properties, sorted by name.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &Node)> {
        self.properties.iter().map(|(name, child)| (&**name, child.node()))
    }

    /// Names of the properties, sorted, without compiling what they refer to.
    pub fn property_names(&self) -> impl Iterator<Item = &str> {
        self.properties.iter().map(|(name, _)| &**name)
    }

    /// The node of a map's values.
    pub fn additional(&self) -> Option<&Node> {
        self.additional.as_ref().map(Child::node)
    }

    /// Whether unknown fields stay: `x-kubernetes-preserve-unknown-fields`, or `additionalProperties: true`.
    pub fn preserves_unknown(&self) -> bool {
        self.preserve || self.open
    }

    /// `x-kubernetes-embedded-resource`: the object has apiVersion, kind and metadata.
    pub fn embedded(&self) -> bool {
        self.embedded
    }

    /// The node of an array's items.
    pub fn items(&self) -> Option<&Node> {
        self.items.as_ref().map(Child::node)
    }

    /// How the list merges.
    pub fn list_type(&self) -> ListType {
        self.list_type
    }

    /// The keys of a [`ListType::Map`].
    pub fn list_keys(&self) -> &[String] {
        &self.list_keys
    }

    /// How the object merges.
    pub fn map_type(&self) -> MapType {
        self.map_type
    }

    /// The default.
    pub fn default(&self) -> Option<&Value> {
        self.default.as_ref()
    }

    /// How strategic merge patch treats the field.
    pub fn patch_strategy(&self) -> PatchStrategy {
        self.patch
    }

    /// The key by which strategic merge patch tells list items apart.
    pub fn patch_merge_key(&self) -> Option<&str> {
        self.patch_key.as_deref()
    }

    /// OpenAPI's `format`.
    pub fn format(&self) -> Option<&str> {
        self.format.as_deref()
    }

    /// Fields that Go writes even when they are empty; only on definitions of built-in types.
    pub fn always_present(&self) -> &[String] {
        &self.always
    }

    pub(crate) fn is_object_meta(&self) -> bool {
        self.go.as_deref() == Some("v1.ObjectMeta")
    }

    /// Whether Go reads this type in a way of its own.
    pub fn special(&self) -> Special {
        self.special
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // References may recur, so children are named and not followed.
        f.debug_struct("Node")
            .field("kind", &self.kind)
            .field("properties", &self.property_names().collect::<Vec<_>>())
            .field("list_type", &self.list_type)
            .finish_non_exhaustive()
    }
}
