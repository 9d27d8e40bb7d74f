//! What messages there are: their fields, the fields' numbers, types and names in JSON.
//!
//! They are read once, at first use, from `data/messages.txt`, which `cargo xtask data` makes. One line is one
//! message or one field of the message above it:
//!
//! ```text
//! apps.v1.Deployment apps/v1                    a message; the versions in which it is a kind of its own
//! 1 metadata meta.v1.ObjectMeta always          number, name in JSON, type, marks
//! 7 extra {}authorization.v1.ExtraValue         a map from strings; `[]` is a list
//! 2 - core.v1.VolumeSource inline               its fields stand in the object around it
//! authorization.v1.ExtraValue list              a message that is a plain array in JSON
//! ```
//!
//! `always`, `pointer` and `value` say what is written of a field that is empty; the crate's head explains them.
//! Invariant: the fields of a message are in ascending order of their numbers.

use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Type of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Type {
    Int32,
    Int64,
    Bool,
    Double,
    Text,
    Bytes,
    /// Index of a message.
    Message(usize),
}

/// How many values a field has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Label {
    One,
    Many,
    /// Keyed by strings.
    Map,
}

/// A field of a message.
#[derive(Debug)]
pub(crate) struct Field {
    pub(crate) number: u32,
    /// In JSON.
    pub(crate) name: &'static str,
    pub(crate) of: Type,
    pub(crate) label: Label,
    /// JSON has it even when it is empty.
    pub(crate) always: bool,
    /// Absent is something else than empty.
    pub(crate) pointer: bool,
    /// Its fields stand in the object around it.
    pub(crate) inline: bool,
}

/// What a message is in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// An object.
    Object,
    /// The array of its first field.
    List,
    Quantity,
    IntOrString,
    Time,
    MicroTime,
    /// Any JSON, kept as such in the message's bytes.
    Json,
    /// The same, or an object with its envelope.
    RawExtension,
    SchemaOrBool,
    SchemaOrArray,
    SchemaOrStrings,
}

/// A message.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) fields: Vec<Field>,
    /// Indices of the fields that JSON may have although the bytes lack them.
    pub(crate) fill: Vec<usize>,
}

impl Message {
    /// The name without group and version.
    pub(crate) fn short(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// Index of the field with a number.
    pub(crate) fn at(&self, number: u32) -> Option<usize> {
        self.fields.binary_search_by_key(&number, |f| f.number).ok()
    }
}

/// All messages.
#[derive(Debug)]
pub(crate) struct Messages {
    all: Vec<Message>,
    /// By apiVersion and kind.
    kinds: BTreeMap<(&'static str, &'static str), usize>,
}

/// Kinds that every group has in each of its versions.
const EVERYWHERE: [&str; 2] = ["DeleteOptions", "WatchEvent"];

static MESSAGES: LazyLock<Messages> = LazyLock::new(|| Messages::parse(include_str!("../data/messages.txt")));

/// The messages of this build.
pub(crate) fn messages() -> &'static Messages {
    &MESSAGES
}

impl Messages {
    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn get(&self, at: usize) -> &Message {
        &self.all[at]
    }

    /// The message of a kind.
    pub(crate) fn kind(&self, api_version: &str, kind: &str) -> Option<usize> {
        let version = if EVERYWHERE.contains(&kind) { "v1" } else { api_version };
        self.kinds.get(&(version, kind)).copied()
    }

    /// All kinds as (apiVersion, kind).
    pub(crate) fn kinds(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.kinds.keys().copied()
    }

    fn parse(text: &'static str) -> Self {
        let lines = || text.lines().filter(|l| !l.starts_with('#') && !l.is_empty());
        let heading = |line: &str| !line.starts_with(|c: char| c.is_ascii_digit());
        let names: BTreeMap<&str, usize> = lines()
            .filter(|l| heading(l))
            .enumerate()
            .map(|(i, l)| (l.split(' ').next().unwrap_or(l), i))
            .collect();
        let mut out = Self { all: Vec::with_capacity(names.len()), kinds: BTreeMap::new() };
        for line in lines() {
            let mut words = line.split(' ');
            let first = words.next().unwrap_or_default();
            if heading(line) {
                let mut message =
                    Message { name: first, form: form(first), fields: Vec::new(), fill: Vec::new() };
                for word in words {
                    match word {
                        "list" => message.form = Form::List,
                        version => {
                            out.kinds.insert((version, message.short()), out.all.len());
                        }
                    }
                }
                out.all.push(message);
            } else if let (Ok(number), Some(name), Some(of), Some(message)) =
                (first.parse(), words.next(), words.next(), out.all.last_mut())
            {
                let (label, of) = match (of.strip_prefix("[]"), of.strip_prefix("{}")) {
                    (Some(of), _) => (Label::Many, of),
                    (_, Some(of)) => (Label::Map, of),
                    _ => (Label::One, of),
                };
                let of = match of {
                    "int32" => Type::Int32,
                    "int64" => Type::Int64,
                    "bool" => Type::Bool,
                    "double" => Type::Double,
                    "bytes" => Type::Bytes,
                    other => names.get(other).map_or(Type::Text, |i| Type::Message(*i)),
                };
                let mut field =
                    Field { number, name, of, label, always: false, pointer: false, inline: false };
                for mark in words {
                    match mark {
                        "always" => field.always = true,
                        "pointer" => field.pointer = true,
                        "inline" => field.inline = true,
                        _ => {}
                    }
                }
                if field.always || field.inline {
                    message.fill.push(message.fields.len());
                }
                message.fields.push(field);
            }
        }
        out
    }
}

fn form(name: &str) -> Form {
    match name {
        "resource.Quantity" => Form::Quantity,
        "intstr.IntOrString" => Form::IntOrString,
        "meta.v1.Time" => Form::Time,
        "meta.v1.MicroTime" => Form::MicroTime,
        "meta.v1.FieldsV1" | "apiextensions.v1.JSON" => Form::Json,
        "runtime.RawExtension" => Form::RawExtension,
        "apiextensions.v1.JSONSchemaPropsOrBool" => Form::SchemaOrBool,
        "apiextensions.v1.JSONSchemaPropsOrArray" => Form::SchemaOrArray,
        "apiextensions.v1.JSONSchemaPropsOrStringArray" => Form::SchemaOrStrings,
        _ => Form::Object,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_of_the_descriptors_is_understood() {
        let all = messages();
        assert!(all.all.len() > 500);
        for message in &all.all {
            let numbers: Vec<u32> = message.fields.iter().map(|f| f.number).collect();
            assert!(numbers.is_sorted_by(|a, b| a < b), "{}", message.name);
            for field in &message.fields {
                let embeds = matches!(field.of, Type::Message(_)) && field.label == Label::One;
                assert!(!field.inline || embeds, "{} {}", message.name, field.name);
                assert!(field.number > 0 && !field.name.is_empty(), "{}", message.name);
            }
            match message.form {
                Form::Object => {}
                Form::List => assert_eq!(message.fields[0].label, Label::Many, "{}", message.name),
                _ => assert!(!message.fields.is_empty(), "{}", message.name),
            }
        }
        // Only these words may follow a type, and only these scalars exist; anything else would be read as text.
        for line in include_str!("../data/messages.txt").lines() {
            let words: Vec<&str> = line.split(' ').collect();
            if words[0].parse::<u32>().is_ok() {
                let of = words[2].trim_start_matches(['[', ']', '{', '}']);
                let scalar = ["int32", "int64", "bool", "double", "string", "bytes"].contains(&of);
                assert!(scalar || all.all.iter().any(|m| m.name == of), "{line}");
                let known = ["always", "pointer", "inline", "value"];
                assert!(words[3..].iter().all(|w| known.contains(w)), "{line}");
            }
        }
    }

    #[test]
    fn kinds_are_found_by_version_and_name() {
        let check = |version: &str, kind: &str, expect: Option<&str>| {
            let got = messages().kind(version, kind).map(|at| messages().get(at).name);
            assert_eq!(got, expect, "{version} {kind}");
        };
        check("v1", "Pod", Some("core.v1.Pod"));
        check("apps/v1", "DeploymentList", Some("apps.v1.DeploymentList"));
        check("v1", "Status", Some("meta.v1.Status"));
        check("v1", "List", Some("meta.v1.List"));
        check("apps/v1", "DeleteOptions", Some("meta.v1.DeleteOptions"));
        check("meta.k8s.io/v1", "PartialObjectMetadataList", Some("meta.v1.PartialObjectMetadataList"));
        check(
            "authorization.k8s.io/v1",
            "SelfSubjectAccessReview",
            Some("authorization.v1.SelfSubjectAccessReview"),
        );
        check("apps/v1", "Pod", None);
        check("example.com/v1", "Widget", None);
        check("v1", "PodSpec", None);
    }
}
