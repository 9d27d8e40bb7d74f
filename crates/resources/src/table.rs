//! What `kubectl get` shows: `meta.k8s.io` Tables of objects, and objects cut down to their metadata.
//!
//! Columns come from the definition; cells of custom resources from JSON paths, those of built-in types from their
//! strategy. Nothing here reads the clock: ages are computed against a given time.

use homeostat_model::Timestamp;
use serde_json::{Map, Value, json};

use crate::definition::{Column, Resource, Version};
use crate::jsonpath::{self, Path};

/// How much of each object a row carries (query parameter `includeObject`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Include {
    /// Nothing.
    None,
    /// A `PartialObjectMetadata`.
    #[default]
    Metadata,
    /// The object.
    Object,
}

impl Include {
    /// From the query parameter; the error is the message of the reference's 400.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" | "Metadata" => Ok(Self::Metadata),
            "None" => Ok(Self::None),
            "Object" => Ok(Self::Object),
            other => Err(format!(
                "Unable to convert to Table as requested: includeObject: Invalid value: {}: must be 'Metadata', \
                 'Object', 'None', or empty",
                homeostat_model::field::quote(other)
            )),
        }
    }
}

/// Description of the Name column, from the field's documentation.
pub const NAME_DESCRIPTION: &str = "Name must be unique within a namespace. Is required when creating resources, \
    although some resources may allow a client to request the generation of an appropriate name automatically. Name \
    is primarily intended for creation idempotence and configuration definition. Cannot be updated. More info: \
    https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";

/// Description of columns that show when an object was created.
pub const CREATED_DESCRIPTION: &str = "CreationTimestamp is a timestamp representing the server time when this \
    object was created. It is not guaranteed to be set in happens-before order across separate operations. Clients \
    may not set this value. It is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. \
    Null for lists. More info: \
    https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

impl Column {
    /// The Name column that every table starts with.
    pub fn name() -> Self {
        Self {
            name: "Name".into(),
            kind: "string".into(),
            format: "name".into(),
            description: NAME_DESCRIPTION.into(),
            priority: 0,
            path: Some(".metadata.name".into()),
        }
    }

    /// The Age column of custom resources that define no columns.
    pub fn age() -> Self {
        Self {
            name: "Age".into(),
            kind: "date".into(),
            format: String::new(),
            description: CREATED_DESCRIPTION.into(),
            priority: 0,
            path: Some(".metadata.creationTimestamp".into()),
        }
    }

    /// The second column of built-in types without a printer of their own.
    pub fn created_at() -> Self {
        Self { name: "Created At".into(), path: None, ..Self::age() }
    }

    fn definition(&self) -> Value {
        // What every table shows is described by the fields' own documentation, as in the reference.
        let description = match self.name.as_str() {
            "Name" if self.format == "name" => NAME_DESCRIPTION,
            "Age" | "Created At" if self.path.is_none() => CREATED_DESCRIPTION,
            _ => &self.description,
        };
        json!({
            "name": self.name, "type": self.kind, "format": self.format, "description": description,
            "priority": self.priority,
        })
    }
}

/// Makes rows and tables of one version of a resource; parse the paths once, then use it for every object.
pub struct Printer<'a> {
    resource: &'a Resource,
    columns: Vec<Column>,
    paths: Vec<Option<Path>>,
    include: Include,
    meta_version: &'a str,
}

impl<'a> Printer<'a> {
    /// A printer; `meta_version` is `v1` or `v1beta1`, as the client asked for.
    pub fn new(resource: &'a Resource, version: &Version, include: Include, meta_version: &'a str) -> Self {
        let columns = if version.columns.is_empty() {
            vec![Column::name(), Column::created_at()]
        } else {
            version.columns.clone()
        };
        let paths = columns.iter().map(|c| c.path.as_deref().and_then(|p| Path::parse(p).ok())).collect();
        Self { resource, columns, paths, include, meta_version }
    }

    /// `columnDefinitions`.
    pub fn columns(&self) -> Value {
        self.columns.iter().map(Column::definition).collect()
    }

    /// One row.
    pub fn row(&self, object: &Value, now: Timestamp) -> Value {
        let cells = match self.resource.strategy.row(object, now) {
            Some(cells) => cells,
            None => {
                self.columns.iter().zip(&self.paths).map(|(c, p)| cell(c, p.as_ref(), object, now)).collect()
            }
        };
        let object = match self.include {
            Include::None => Value::Null,
            Include::Metadata => partial(object, self.meta_version),
            Include::Object => object.clone(),
        };
        json!({"cells": cells, "object": object})
    }

    /// A whole table. `metadata` is the list's, or for a single object its resourceVersion alone
    /// (see [`object_meta`]); `columns` is false in all events of a watch but the first.
    pub fn table<'v>(
        &self,
        objects: impl IntoIterator<Item = &'v Value>,
        metadata: Value,
        columns: bool,
        now: Timestamp,
    ) -> Value {
        let rows: Vec<Value> = objects.into_iter().map(|o| self.row(o, now)).collect();
        json!({
            "kind": "Table",
            "apiVersion": format!("meta.k8s.io/{}", self.meta_version),
            "metadata": metadata,
            "columnDefinitions": if columns { self.columns() } else { Value::Null },
            "rows": rows,
        })
    }
}

/// Metadata of a table of one object: its resourceVersion.
pub fn object_meta(object: &Value) -> Value {
    match object["metadata"]["resourceVersion"].as_str() {
        Some(v) if !v.is_empty() => json!({"resourceVersion": v}),
        _ => json!({}),
    }
}

/// A `PartialObjectMetadata` of an object.
pub fn partial(object: &Value, meta_version: &str) -> Value {
    let metadata = object.get("metadata").cloned().unwrap_or_else(|| Value::Object(Map::new()));
    json!({
        "kind": "PartialObjectMetadata",
        "apiVersion": format!("meta.k8s.io/{meta_version}"),
        "metadata": metadata,
    })
}

/// A `PartialObjectMetadataList`; an empty continue token is left out.
pub fn partial_list<'v>(
    objects: impl IntoIterator<Item = &'v Value>,
    mut metadata: Value,
    meta_version: &str,
) -> Value {
    trim_list_meta(&mut metadata);
    let items: Vec<Value> = objects.into_iter().map(|o| partial(o, meta_version)).collect();
    json!({
        "kind": "PartialObjectMetadataList",
        "apiVersion": format!("meta.k8s.io/{meta_version}"),
        "metadata": metadata,
        "items": items,
    })
}

/// Drops what a typed ListMeta omits: custom resources' lists say `continue: ""`, tables of them do not.
pub fn trim_list_meta(metadata: &mut Value) {
    if let Some(m) = metadata.as_object_mut()
        && m.get("continue").is_some_and(|c| c == "")
    {
        m.remove("continue");
    }
}

fn cell(column: &Column, path: Option<&Path>, object: &Value, now: Timestamp) -> Value {
    let metadata = &object["metadata"];
    if column.format == "name" && column.name == "Name" {
        return metadata["name"].as_str().unwrap_or_default().into();
    }
    let Some(path) = path else {
        // The default printer of built-in types: names and times as they stand.
        return match column.kind.as_str() {
            "date" => metadata["creationTimestamp"].clone(),
            _ => Value::Null,
        };
    };
    let Some(value) = path.first(object) else { return Value::Null };
    match column.kind.as_str() {
        "string" => jsonpath::print(value).into(),
        "integer" => match value {
            Value::Number(n) => {
                n.as_i64().or_else(|| n.as_f64().map(|f| f as i64)).map_or(Value::Null, Value::from)
            }
            _ => Value::Null,
        },
        "number" => number(value),
        "boolean" => value.as_bool().map_or(Value::Null, Value::from),
        "date" => value.as_str().map_or(Value::Null, |text| age(text, now).into()),
        _ => Value::Null,
    }
}

/// Go encodes a whole float64 without a fraction.
fn number(value: &Value) -> Value {
    let Some(f) = value.as_f64() else { return Value::Null };
    if f.fract() == 0.0 && f.abs() < 1e15 {
        return (f as i64).into();
    }
    serde_json::Number::from_f64(f).map_or(Value::Null, Value::Number)
}

/// A time as tables show it: how long ago, `<invalid>` when it can't be read or lies ahead, `<unknown>` when empty.
pub fn age(time: &str, now: Timestamp) -> String {
    if time.is_empty() {
        return "<unknown>".to_owned();
    }
    match time.parse::<Timestamp>() {
        Ok(t) => human_duration(now.as_second() - t.as_second()),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// Seconds as `kubectl` prints ages: two units while they say something, one later.
pub fn human_duration(seconds: i64) -> String {
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let two = |big: i64, b: char, small: i64, s: char| match small {
        0 => format!("{big}{b}"),
        _ => format!("{big}{b}{small}{s}"),
    };
    match seconds {
        i64::MIN..=-2 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => two(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 24 * 8 => two(hours / 24, 'd', hours % 24, 'h'),
        _ if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        _ if hours < 24 * 365 * 8 => two(hours / 24 / 365, 'y', hours / 24 % 365, 'd'),
        _ => format!("{}y", hours / 24 / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_read_as_kubectl_prints_them() {
        for (seconds, want) in [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (601, "10m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 61, "3h1m"),
            (9 * 3600, "9h"),
            (50 * 3600, "2d2h"),
            (10 * 86400, "10d"),
            (800 * 86400, "2y70d"),
            (9 * 365 * 86400, "9y"),
        ] {
            assert_eq!(human_duration(seconds), want, "{seconds}");
        }
    }

    #[test]
    fn include_object_is_one_of_three() {
        assert_eq!(Include::parse(""), Ok(Include::Metadata));
        assert_eq!(
            Include::parse("Everything").unwrap_err(),
            "Unable to convert to Table as requested: includeObject: Invalid value: \"Everything\": must be \
             'Metadata', 'Object', 'None', or empty"
        );
    }
}
