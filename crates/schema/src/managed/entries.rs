//! `metadata.managedFields` read and written: one entry per manager, operation, subresource and, for updates,
//! version.

use std::cell::OnceCell;
use std::collections::BTreeMap;

use homeostat_model::field::quote;
use serde_json::{Map, Value};

use crate::fields::FieldSet;
use crate::typed::go;

/// How a manager got its fields. Applying entries sort before updating ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Operation {
    Apply,
    Update,
}

impl Operation {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }
}

/// One manager's entry. Its set is read when it is asked for: most writes touch fields of few managers.
#[derive(Clone, Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) manager: String,
    pub(crate) operation: Operation,
    pub(crate) api_version: String,
    pub(crate) subresource: String,
    /// RFC 3339, UTC, seconds.
    pub(crate) time: Option<String>,
    fields: OnceCell<FieldSet>,
    /// fieldsV1 as the object has it, until the set changes.
    source: Option<&'a Value>,
}

impl<'a> Entry<'a> {
    pub(crate) fn new(
        manager: &str,
        operation: Operation,
        api_version: &str,
        subresource: &str,
        fields: FieldSet,
    ) -> Self {
        Self {
            manager: if manager.is_empty() { "unknown" } else { manager }.to_owned(),
            operation,
            api_version: api_version.to_owned(),
            subresource: subresource.to_owned(),
            time: None,
            fields: OnceCell::from(fields),
            source: None,
        }
    }

    pub(crate) fn fields(&self) -> &FieldSet {
        // What can't be read was never written by us, and is nobody's.
        self.fields.get_or_init(|| self.source.and_then(|s| FieldSet::parse(s).ok()).unwrap_or_default())
    }

    pub(crate) fn set_fields(&mut self, fields: FieldSet) {
        self.fields = OnceCell::from(fields);
        self.source = None;
    }

    /// The set as it was read, if it hasn't been parsed or changed since.
    pub(crate) fn unread(&self) -> Option<&'a Value> {
        if self.fields.get().is_some() { None } else { self.source }
    }

    pub(crate) fn is_empty(&self) -> bool {
        match self.unread() {
            Some(source) => source.as_object().is_none_or(|m| m.is_empty()),
            None => self.fields().is_empty(),
        }
    }

    /// Whether a path is in both sets.
    pub(crate) fn intersects(&self, set: &FieldSet) -> bool {
        match self.unread() {
            Some(source) => set.intersects_json(source),
            None => self.fields().intersects(set),
        }
    }

    /// What tells managers apart: the reference's JSON, which is also the order in which conflicts are listed.
    /// An applying manager has one entry whatever its version.
    pub(crate) fn id(&self) -> String {
        let version = if self.operation == Operation::Update { self.api_version.as_str() } else { "" };
        id(&self.manager, self.operation, version, &self.subresource)
    }
}

fn id(manager: &str, operation: Operation, api_version: &str, subresource: &str) -> String {
    let mut out = String::with_capacity(96);
    out.push('{');
    if !manager.is_empty() {
        out.push_str("\"manager\":");
        go::json_string(manager, &mut out);
        out.push(',');
    }
    out.push_str("\"operation\":\"");
    out.push_str(operation.name());
    out.push('"');
    for (key, value) in [("apiVersion", api_version), ("subresource", subresource)] {
        if !value.is_empty() {
            out.push_str(",\"");
            out.push_str(key);
            out.push_str("\":");
            go::json_string(value, &mut out);
        }
    }
    out.push('}');
    out
}

/// All entries of an object, by [`Entry::id`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Managed<'a> {
    pub(crate) entries: BTreeMap<String, Entry<'a>>,
}

impl<'a> Managed<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn insert(&mut self, entry: Entry<'a>) {
        self.entries.insert(entry.id(), entry);
    }

    /// Reads managedFields. `stored` says that they were written by [`Managed::encode`], so that sets can be taken
    /// as they are.
    pub(crate) fn decode(list: Option<&'a Value>, stored: bool) -> Result<Self, String> {
        let mut out = Self::default();
        let list = match list {
            None | Some(Value::Null) => return Ok(out),
            Some(Value::Array(list)) => list,
            Some(_) => return Err("managedFields must be a list".to_owned()),
        };
        for (i, value) in list.iter().enumerate() {
            out.insert(decode(i, value, stored)?);
        }
        Ok(out)
    }

    /// The value of managedFields; `None` if nobody manages anything.
    pub(crate) fn encode(self) -> Option<Value> {
        if self.is_empty() {
            return None;
        }
        let mut entries: Vec<Entry<'_>> = self.entries.into_values().collect();
        // Times of one form sort as text; no time is before all.
        entries.sort_by(|a, b| {
            (a.operation, &a.time, &a.manager, &a.api_version, &a.subresource).cmp(&(
                b.operation,
                &b.time,
                &b.manager,
                &b.api_version,
                &b.subresource,
            ))
        });
        Some(Value::Array(entries.into_iter().map(encode).collect()))
    }
}

fn decode(i: usize, value: &Value, stored: bool) -> Result<Entry<'_>, String> {
    let text = |key: &str| match value.get(key) {
        None | Some(Value::Null) => Ok(""),
        Some(Value::String(s)) => Ok(s.as_str()),
        Some(other) => {
            Err(format!("{key} must be a string in managed fields entry {i}, not {}", go::type_name(other)))
        }
    };
    if !value.is_object() {
        return Err(format!("managed fields entry {i} must be an object"));
    }
    let operation = match text("operation")? {
        "Apply" => Operation::Apply,
        "Update" => Operation::Update,
        _ => return Err("operation must be `Apply` or `Update`".to_owned()),
    };
    let api_version = text("apiVersion")?;
    if api_version.is_empty() {
        return Err("apiVersion must not be empty".to_owned());
    }
    match text("fieldsType")? {
        "FieldsV1" => {}
        "" => return Err(format!("missing fieldsType in managed fields entry {i}")),
        other => return Err(format!("invalid fieldsType {} in managed fields entry {i}", quote(other))),
    }
    let time = match text("time")? {
        "" => None,
        time => Some(normal_time(time).ok_or_else(|| format!("invalid time in managed fields entry {i}"))?),
    };
    let source = value.get("fieldsV1").unwrap_or(&Value::Null);
    let fields = OnceCell::new();
    if !stored {
        let set = FieldSet::parse(source).map_err(|e| {
            format!("error decoding versioned set from {}: error decoding set: {e}", go::v(value))
        })?;
        let _ = fields.set(set);
    }
    Ok(Entry {
        manager: text("manager")?.to_owned(),
        operation,
        api_version: api_version.to_owned(),
        subresource: text("subresource")?.to_owned(),
        time,
        fields,
        source: stored.then_some(source),
    })
}

fn encode(entry: Entry<'_>) -> Value {
    let mut map = Map::new();
    let mut put = |key: &str, value: Value| {
        map.insert(key.to_owned(), value);
    };
    let fields = match entry.source {
        Some(source @ Value::Object(_)) => source.clone(),
        _ => entry.fields.into_inner().unwrap_or_default().to_value(),
    };
    put("apiVersion", entry.api_version.into());
    put("fieldsType", "FieldsV1".into());
    put("fieldsV1", fields);
    if !entry.manager.is_empty() {
        put("manager", entry.manager.into());
    }
    put("operation", entry.operation.name().into());
    if !entry.subresource.is_empty() {
        put("subresource", entry.subresource.into());
    }
    if let Some(time) = entry.time {
        put("time", time.into());
    }
    Value::Object(map)
}

/// A time as the server writes it: UTC, whole seconds.
fn normal_time(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    if bytes.len() == 20 && bytes[19] == b'Z' && bytes[10] == b'T' {
        let digits = bytes
            .iter()
            .enumerate()
            .all(|(i, b)| matches!(i, 4 | 7 | 10 | 13 | 16 | 19) || b.is_ascii_digit());
        if digits {
            return Some(text.to_owned());
        }
    }
    let time: jiff::Timestamp = text.parse().ok()?;
    Some(time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}
