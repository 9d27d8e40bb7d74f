//! Schemas and versions as the reference prints them in errors: its internal types, field by field, without tags.
//!
//! Only for texts; nothing is decided by what is printed here.

use homeostat_model::field;
use serde_json::Value;

use super::props::{Props, flag, some, text};
use super::spec::VersionView;

/// How a field of the internal schema type prints when set.
#[derive(Clone, Copy)]
enum Form {
    Text,
    Bool,
    Json,
    Schema,
    Schemas,
    Map,
    Items,
    OrBool,
    Dependencies,
    Docs,
    Rules,
}

/// JSON name, Go name and form of every field, in the order of the Go type.
const FIELDS: [(&str, &str, Form); 43] = [
    ("id", "ID", Form::Text),
    ("$schema", "Schema", Form::Text),
    ("$ref", "Ref", Form::Json),
    ("description", "Description", Form::Text),
    ("type", "Type", Form::Text),
    ("nullable", "Nullable", Form::Bool),
    ("format", "Format", Form::Text),
    ("title", "Title", Form::Text),
    ("default", "Default", Form::Json),
    ("maximum", "Maximum", Form::Json),
    ("exclusiveMaximum", "ExclusiveMaximum", Form::Bool),
    ("minimum", "Minimum", Form::Json),
    ("exclusiveMinimum", "ExclusiveMinimum", Form::Bool),
    ("maxLength", "MaxLength", Form::Json),
    ("minLength", "MinLength", Form::Json),
    ("pattern", "Pattern", Form::Text),
    ("maxItems", "MaxItems", Form::Json),
    ("minItems", "MinItems", Form::Json),
    ("uniqueItems", "UniqueItems", Form::Bool),
    ("multipleOf", "MultipleOf", Form::Json),
    ("enum", "Enum", Form::Json),
    ("maxProperties", "MaxProperties", Form::Json),
    ("minProperties", "MinProperties", Form::Json),
    ("required", "Required", Form::Json),
    ("items", "Items", Form::Items),
    ("allOf", "AllOf", Form::Schemas),
    ("oneOf", "OneOf", Form::Schemas),
    ("anyOf", "AnyOf", Form::Schemas),
    ("not", "Not", Form::Schema),
    ("properties", "Properties", Form::Map),
    ("additionalProperties", "AdditionalProperties", Form::OrBool),
    ("patternProperties", "PatternProperties", Form::Map),
    ("dependencies", "Dependencies", Form::Dependencies),
    ("additionalItems", "AdditionalItems", Form::OrBool),
    ("definitions", "Definitions", Form::Map),
    ("externalDocs", "ExternalDocs", Form::Docs),
    ("example", "Example", Form::Json),
    ("x-kubernetes-preserve-unknown-fields", "XPreserveUnknownFields", Form::Json),
    ("x-kubernetes-embedded-resource", "XEmbeddedResource", Form::Bool),
    ("x-kubernetes-int-or-string", "XIntOrString", Form::Bool),
    ("x-kubernetes-list-map-keys", "XListMapKeys", Form::Json),
    ("x-kubernetes-list-type", "XListType", Form::Json),
    ("x-kubernetes-map-type", "XMapType", Form::Json),
];
const RULES: (&str, &str, Form) = ("x-kubernetes-validations", "XValidations", Form::Rules);

fn fields() -> impl Iterator<Item = &'static (&'static str, &'static str, Form)> {
    FIELDS.iter().chain(std::iter::once(&RULES))
}

/// Names of the Go fields of a schema that aren't zero, in the type's order: (JSON name, Go name).
pub(crate) fn set_fields(p: &Props) -> impl Iterator<Item = (&'static str, &'static str)> {
    fields().filter(|(json, ..)| super::props::nonzero(p, json)).map(|(json, go, _)| (*json, *go))
}

fn json_text(s: &str) -> String {
    field::go_json(&Value::String(s.to_owned()))
}

fn join(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(",")
}

fn null_or(value: Option<&Value>, print: impl Fn(&Value) -> String) -> String {
    value.map_or_else(|| "null".to_owned(), print)
}

/// A schema.
pub(crate) fn schema(p: &Props) -> String {
    let field = |(json, go, form): &(&str, &str, Form)| {
        let value = some(p, json);
        let printed = match form {
            Form::Text => json_text(text(p, json)),
            Form::Bool => flag(p, json).to_string(),
            Form::Json => null_or(value, field::go_json),
            Form::Schema => null_or(value, any_schema),
            Form::Schemas => null_or(value, schemas),
            Form::Map => null_or(value, map),
            Form::Items => null_or(value, |v| match v {
                Value::Array(_) => format!("{{\"Schema\":null,\"JSONSchemas\":{}}}", schemas(v)),
                v => format!("{{\"Schema\":{},\"JSONSchemas\":null}}", any_schema(v)),
            }),
            Form::OrBool => null_or(value, |v| match v {
                Value::Bool(b) => format!("{{\"Allows\":{b},\"Schema\":null}}"),
                v => format!("{{\"Allows\":true,\"Schema\":{}}}", any_schema(v)),
            }),
            Form::Dependencies => null_or(value, |v| {
                let entries = v.as_object().into_iter().flatten().map(|(k, v)| {
                    let (schema, property) = match v {
                        Value::Array(_) => ("null".to_owned(), field::go_json(v)),
                        v => (any_schema(v), "null".to_owned()),
                    };
                    format!("{}:{{\"Schema\":{schema},\"Property\":{property}}}", json_text(k))
                });
                format!("{{{}}}", join(entries))
            }),
            Form::Docs => null_or(value, |v| {
                let get = |k: &str| json_text(v[k].as_str().unwrap_or_default());
                format!("{{\"Description\":{},\"URL\":{}}}", get("description"), get("url"))
            }),
            Form::Rules => null_or(value, |v| {
                let rules = v.as_array().into_iter().flatten().filter_map(Value::as_object).map(rule);
                format!("[{}]", join(rules))
            }),
        };
        format!("\"{go}\":{printed}")
    };
    // Go's encoder leaves out none, not even a nil default.
    format!("{{{}}}", join(fields().map(field)))
}

fn any_schema(v: &Value) -> String {
    v.as_object().map_or_else(|| "null".to_owned(), schema)
}

fn schemas(v: &Value) -> String {
    format!("[{}]", join(v.as_array().into_iter().flatten().map(any_schema)))
}

fn map(v: &Value) -> String {
    let entries =
        v.as_object().into_iter().flatten().map(|(k, v)| format!("{}:{}", json_text(k), any_schema(v)));
    format!("{{{}}}", join(entries))
}

/// A rule of `x-kubernetes-validations`.
pub(crate) fn rule(p: &Props) -> String {
    let optional = |key: &str| null_or(some(p, key), field::go_json);
    format!(
        "{{\"Rule\":{},\"Message\":{},\"MessageExpression\":{},\"Reason\":{},\"FieldPath\":{},\"OptionalOldSelf\":{}}}",
        json_text(text(p, "rule")),
        json_text(text(p, "message")),
        json_text(text(p, "messageExpression")),
        optional("reason"),
        json_text(text(p, "fieldPath")),
        optional("optionalOldSelf"),
    )
}

/// `spec.versions`; `None` prints as `null`.
pub(crate) fn versions(versions: Option<&[VersionView<'_>]>) -> String {
    let Some(versions) = versions else { return "null".to_owned() };
    format!("[{}]", join(versions.iter().map(version)))
}

fn version(v: &VersionView<'_>) -> String {
    let text = |key: &str| json_text(text(v.raw, key));
    let optional = |key: &str| null_or(some(v.raw, key), field::go_json);
    let columns = v.columns.iter().filter_map(Value::as_object).map(|c| {
        let get = |k: &str| json_text(super::props::text(c, k));
        format!(
            "{{\"Name\":{},\"Type\":{},\"Format\":{},\"Description\":{},\"Priority\":{},\"JSONPath\":{}}}",
            get("name"),
            get("type"),
            get("format"),
            get("description"),
            c.get("priority").and_then(Value::as_i64).unwrap_or(0),
            get("jsonPath"),
        )
    });
    let selectable = v.selectable.iter().filter_map(Value::as_object);
    let selectable =
        selectable.map(|f| format!("{{\"JSONPath\":{}}}", json_text(super::props::text(f, "jsonPath"))));
    format!(
        "{{\"Name\":{},\"Served\":{},\"Storage\":{},\"Deprecated\":{},\"DeprecationWarning\":{},\"Schema\":{},\
         \"Subresources\":{},\"AdditionalPrinterColumns\":{},\"SelectableFields\":{}}}",
        text("name"),
        flag(v.raw, "served"),
        flag(v.raw, "storage"),
        flag(v.raw, "deprecated"),
        optional("deprecationWarning"),
        v.validation.map_or_else(
            || "null".to_owned(),
            |w| { format!("{{\"OpenAPIV3Schema\":{}}}", null_or(some(w, "openAPIV3Schema"), any_schema)) }
        ),
        v.subresources.map_or_else(|| "null".to_owned(), subresources),
        list_or_null(columns),
        list_or_null(selectable),
    )
}

fn list_or_null(parts: impl Iterator<Item = String>) -> String {
    let list = join(parts);
    if list.is_empty() { "null".to_owned() } else { format!("[{list}]") }
}

fn subresources(p: &Props) -> String {
    let scale = null_or(some(p, "scale"), |s| {
        let get = |k: &str| json_text(s[k].as_str().unwrap_or_default());
        let selector = match &s["labelSelectorPath"] {
            Value::String(path) => json_text(path),
            _ => "null".to_owned(),
        };
        format!(
            "{{\"SpecReplicasPath\":{},\"StatusReplicasPath\":{},\"LabelSelectorPath\":{selector}}}",
            get("specReplicasPath"),
            get("statusReplicasPath"),
        )
    });
    format!("{{\"Status\":{},\"Scale\":{scale}}}", null_or(some(p, "status"), |_| "{}".to_owned()))
}
