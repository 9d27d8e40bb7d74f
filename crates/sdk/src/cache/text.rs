//! An object's text, as far as a cache looks at it before it reads the object: what identifies it, and where its
//! `managedFields` are, which are left out.
//!
//! `managedFields` are often half of an object's text and most of its small allocations, and a server takes their
//! absence in an update for no change; so they are cut out of the text rather than read and dropped.

use std::borrow::Cow;
use std::ops::Range;

use kube::core::ObjectMeta;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;

use crate::key::Key;

/// The text of an object, and what has been looked at.
pub(crate) struct Text<'a> {
    text: &'a str,
    metadata: Identity<'a>,
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    metadata: Identity<'a>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Identity<'a> {
    name: Option<String>,
    namespace: Option<String>,
    uid: Option<String>,
    resource_version: Option<String>,
    #[serde(borrow)]
    managed_fields: Option<&'a RawValue>,
}

impl<'a> Text<'a> {
    pub(crate) fn of(text: &'a str) -> serde_json::Result<Self> {
        let Head { metadata } = serde_json::from_str(text)?;
        Ok(Self { text, metadata })
    }

    /// How long the whole text is.
    pub(crate) fn len(&self) -> usize {
        self.text.len()
    }

    /// The object's key; its name is empty where it has none.
    pub(crate) fn key(&self) -> Key {
        Key::new(self.metadata.namespace.as_deref(), self.metadata.name.as_deref().unwrap_or_default())
    }

    pub(crate) fn resource_version(&self) -> Option<String> {
        self.metadata.resource_version.clone()
    }

    /// What identifies the object, and nothing else.
    pub(crate) fn identity(&self) -> ObjectMeta {
        ObjectMeta {
            name: self.metadata.name.clone(),
            namespace: self.metadata.namespace.clone(),
            uid: self.metadata.uid.clone(),
            resource_version: self.metadata.resource_version.clone(),
            ..ObjectMeta::default()
        }
    }

    /// The text without `managedFields`.
    pub(crate) fn cut(&self) -> Cow<'a, str> {
        let Some(fields) = self.metadata.managed_fields.map(RawValue::get) else {
            return Cow::Borrowed(self.text);
        };
        let place = place(fields, self.text);
        match (self.text.get(..place.start), self.text.get(place.end..)) {
            (Some(before), Some(after)) => Cow::Owned([before, "null", after].concat()),
            // Can't be: it was read from this text.
            _ => Cow::Borrowed(self.text),
        }
    }

    /// The object, without `managedFields`.
    pub(crate) fn read<K: DeserializeOwned>(&self) -> serde_json::Result<K> {
        serde_json::from_str(&self.cut())
    }
}

/// Where `part`, which was read from `text` without copying, is in it.
pub(super) fn place(part: &str, text: &str) -> Range<usize> {
    let begin = part.as_ptr().addr().wrapping_sub(text.as_ptr().addr());
    begin..begin.saturating_add(part.len())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;

    use super::*;

    fn read(text: &str) -> serde_json::Result<ConfigMap> {
        Text::of(text)?.read()
    }

    #[test]
    fn managed_fields_are_left_out_wherever_they_stand() {
        let fields = r#"[{"manager":"é","fieldsV1":{"f:data":{}},"operation":"Update"}]"#;
        for text in [
            format!(
                r#"{{"metadata":{{"managedFields":{fields},"name":"a"}},"data":{{"managedFields":"x"}}}}"#
            ),
            format!(
                r#"{{"data":{{"managedFields":"x"}},"metadata":{{"name":"a", "managedFields" : {fields} }}}}"#
            ),
            r#"{"metadata":{"name":"a","managedFields":null},"data":{"managedFields":"x"}}"#.to_owned(),
            r#"{"metadata":{"name":"a"},"data":{"managedFields":"x"}}"#.to_owned(),
        ] {
            let map = read(&text).unwrap();
            assert_eq!(map.metadata.managed_fields, None, "{text}");
            assert_eq!(map.metadata.name.as_deref(), Some("a"), "{text}");
            assert_eq!(map.data.unwrap().get("managedFields").map(String::as_str), Some("x"), "{text}");
        }
    }

    #[test]
    fn what_is_no_object_is_an_error() {
        for text in ["", "[]", "{", "{\"metadata\":[]}"] {
            assert!(read(text).is_err(), "{text:?}");
        }
    }
}
