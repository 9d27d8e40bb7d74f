//! Renames what differs between runs, in order of first appearance within a scenario.
//!
//! Uids become uid1, uid2 …, an object's resourceVersions rv1, rv2 … (so that "unchanged" and "changed" are
//! compared), times `<time>`, addresses `<ip>`. What is left is what a client may rely on.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::{Map, Value};

const TIME_KEYS: &[&str] = &[
    "creationTimestamp",
    "deletionTimestamp",
    "time",
    "lastTransitionTime",
    "lastUpdateTime",
    "lastProbeTime",
    "lastHeartbeatTime",
    "firstTimestamp",
    "lastTimestamp",
    "eventTime",
    "startTime",
    "completionTime",
    "expirationTimestamp",
    "acquireTime",
    "renewTime",
    "lastScheduleTime",
    "lastSuccessfulTime",
    "lastObservedTime",
];

fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap_or_else(|e| unreachable!("constant pattern {text}: {e}"))
}

static TIME: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$"));
static TIME_IN_TEXT: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)"));
static UID: LazyLock<Regex> =
    LazyLock::new(|| pattern(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));
static IP: LazyLock<Regex> = LazyLock::new(|| pattern(r"^\d+\.\d+\.\d+\.\d+$"));

/// The names given so far in one scenario.
#[derive(Default)]
pub(super) struct Names {
    uids: BTreeMap<String, String>,
    versions: BTreeMap<String, BTreeMap<String, String>>,
}

impl Names {
    fn uid(&mut self, uid: &str) -> String {
        let next = self.uids.len() + 1;
        self.uids.entry(uid.to_owned()).or_insert_with(|| format!("uid{next}")).clone()
    }

    fn version(&mut self, owner: &str, version: &str) -> String {
        let seen = self.versions.entry(owner.to_owned()).or_default();
        let next = seen.len() + 1;
        seen.entry(version.to_owned()).or_insert_with(|| format!("rv{next}")).clone()
    }

    /// Renames within a text.
    pub(super) fn text(&mut self, text: &str) -> String {
        let text = TIME_IN_TEXT.replace_all(text, "<time>");
        UID.replace_all(&text, |m: &regex::Captures<'_>| self.uid(&m[0])).into_owned()
    }

    /// Renames within an answer, whose text tells the order in which uids appear: our maps are sorted, the
    /// recorder's were not.
    pub(super) fn clean(&mut self, value: Value, text: &str) -> Value {
        let kept = value.to_string();
        for found in UID.find_iter(text).filter(|m| kept.contains(m.as_str())) {
            self.uid(found.as_str());
        }
        self.walk(value, "", None, "")
    }

    fn walk(&mut self, value: Value, key: &str, owner: Option<&str>, path: &str) -> Value {
        match value {
            Value::Object(map) => Value::Object(self.object(map, owner, path)),
            Value::Array(list) => {
                let inner = format!("{path}[]");
                let mut out: Vec<Value> =
                    list.into_iter().map(|x| self.walk(x, key, owner, &inner)).collect();
                // The order of managers depends on the second each entry fell in; causes promise none.
                match key {
                    "managedFields" => {
                        out.sort_by_key(|m| order(m, &["operation", "manager", "subresource", "apiVersion"]))
                    }
                    "causes" => out.sort_by_key(|c| order(c, &["field", "reason", "message"])),
                    _ => {}
                }
                Value::Array(out)
            }
            Value::String(s) if key != "default" && TIME.is_match(&s) => "<time>".into(),
            Value::String(s) => self.text(&s).into(),
            other => other,
        }
    }

    fn object(&mut self, map: Map<String, Value>, owner: Option<&str>, path: &str) -> Map<String, Value> {
        let meta = map.get("metadata").and_then(Value::as_object);
        let own = meta
            .and_then(|m| m.get("uid"))
            .and_then(Value::as_str)
            .filter(|u| !u.is_empty())
            .map(str::to_owned);
        let owner = match (own, meta.is_some() && map.contains_key("items")) {
            (Some(uid), _) => Some(uid),
            (None, true) => Some("<list>".to_owned()),
            (None, false) => owner.map(str::to_owned),
        };
        let owner = owner.as_deref();
        map.into_iter()
            .map(|(k, v)| {
                let renamed = self.entry(&k, v, owner, path);
                (k, renamed)
            })
            .collect()
    }

    fn entry(&mut self, key: &str, value: Value, owner: Option<&str>, path: &str) -> Value {
        if let Value::String(s) = &value {
            let whole_uid = UID.find(s).is_some_and(|m| m.len() == s.len());
            match key {
                "uid" if whole_uid => return self.uid(s).into(),
                "resourceVersion" => {
                    return match owner {
                        Some("<list>") if path.ends_with(".metadata") => {
                            if s != "0" && !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit()) {
                                "<rv>".into()
                            } else {
                                value
                            }
                        }
                        None => {
                            if s.is_empty() {
                                value
                            } else {
                                "<rv>".into()
                            }
                        }
                        Some(owner) => self.version(owner, s).into(),
                    };
                }
                "continue" if !s.is_empty() => return "<continue>".into(),
                "clusterIP" | "podIP" | "hostIP" if IP.is_match(s) => return "<ip>".into(),
                "token" if s.matches('.').count() == 2 => return "<token>".into(),
                k if TIME_KEYS.contains(&k) && TIME.is_match(s) => return "<time>".into(),
                _ => {}
            }
        }
        match (key, &value) {
            ("clusterIPs", Value::Array(ips)) => ips
                .iter()
                .map(
                    |ip| if ip.as_str().is_some_and(|s| IP.is_match(s)) { "<ip>".into() } else { ip.clone() },
                )
                .collect(),
            ("remainingItemCount", _) => value,
            ("nodePort" | "healthCheckNodePort", Value::Number(n)) if n.is_i64() || n.is_u64() => {
                "<port>".into()
            }
            _ => self.walk(value, key, owner, &format!("{path}.{key}")),
        }
    }
}

/// A sort key that reads absent values as the recorder prints them.
fn order(value: &Value, keys: &[&str]) -> Vec<String> {
    keys.iter()
        .map(|k| match value.get(*k) {
            None | Some(Value::Null) => "None".to_owned(),
            Some(Value::String(s)) => s.clone(),
            Some(other) => other.to_string(),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_count_per_object_and_uids_over_all() {
        let mut names = Names::default();
        let object = |rv: &str| {
            json!({"metadata": {"uid": "11111111-1111-4111-8111-111111111111", "resourceVersion": rv,
                "creationTimestamp": "2026-01-02T03:04:05Z"}})
        };
        let want = |rv: &str| json!({"metadata": {"uid": "uid1", "resourceVersion": rv, "creationTimestamp": "<time>"}});
        assert_eq!(names.clean(object("17"), ""), want("rv1"));
        assert_eq!(names.clean(object("19"), ""), want("rv2"));
        assert_eq!(names.clean(object("17"), ""), want("rv1"));
    }

    #[test]
    fn uids_are_named_as_they_appear_in_the_text() {
        let (a, b) = ("aaaaaaaa-1111-4111-8111-111111111111", "bbbbbbbb-1111-4111-8111-111111111111");
        let text = format!(r#"{{"z": {{"uid": "{b}"}}, "y": {{"uid": "{a}"}}}}"#);
        let value = serde_json::from_str(&text).unwrap();
        assert_eq!(Names::default().clean(value, &text), json!({"z": {"uid": "uid1"}, "y": {"uid": "uid2"}}));
    }

    #[test]
    fn a_list_has_a_version_of_its_own() {
        let list = json!({"metadata": {"resourceVersion": "99"}, "items": []});
        assert_eq!(
            Names::default().clean(list, ""),
            json!({"metadata": {"resourceVersion": "<rv>"}, "items": []})
        );
    }
}
