//! One scenario: its steps, performed in order on one server and compared with what was recorded.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use regex::Regex;
use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::client::{Answer, Client};
use super::compare::{Difference, differences, dig, drop, trim};
use super::hooks::Hooks;
use super::names::Names;
use super::watch::Watch;

/// A recorded conversation.
pub(super) struct Scenario {
    name: String,
    steps: Vec<Value>,
}

/// What a replay found.
pub(super) struct Outcome {
    pub(super) name: String,
    pub(super) steps: usize,
    pub(super) failures: Vec<Failure>,
    /// Message texts that differ, whether they count or not.
    pub(super) texts: usize,
    pub(super) took: Duration,
}

/// A step whose answer was another.
pub(super) struct Failure {
    pub(super) step: usize,
    pub(super) what: String,
    pub(super) differences: Vec<Difference>,
}

impl Scenario {
    /// Reads a recording.
    pub(super) fn read(path: &Path) -> Result<Self, String> {
        let bad = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
        let text = std::fs::read(path).map_err(|e| bad(&e))?;
        let mut file: Value = serde_json::from_slice(&text).map_err(|e| bad(&e))?;
        match file["steps"].take() {
            Value::Array(steps) => Ok(Self { name: super::stem(path), steps }),
            _ => Err(bad(&"no list of steps")),
        }
    }

    /// Performs every step; a failing one does not end the scenario.
    pub(super) async fn play(self, client: Arc<Client>, exact: bool) -> Outcome {
        let begin = Instant::now();
        let mut run = Run {
            client,
            names: Names::default(),
            vars: BTreeMap::new(),
            watches: BTreeMap::new(),
            hooks: None,
        };
        let (mut failures, mut texts) = (Vec::new(), 0);
        for (i, step) in self.steps.iter().enumerate() {
            let got = trim(run.perform(step).await.unwrap_or_else(|e| json!({"failed": e})), "");
            let mut found = differences(&step["expect"], &got);
            texts += found.iter().filter(|d| d.text).count();
            found.retain(|d| exact || !d.text);
            if !found.is_empty() {
                failures.push(Failure { step: i, what: describe(step), differences: found });
            }
        }
        Outcome { name: self.name, steps: self.steps.len(), failures, texts, took: begin.elapsed() }
    }
}

fn describe(step: &Value) -> String {
    let text = |k: &str| step[k].as_str().unwrap_or_default().to_owned();
    let mut out =
        [text("step"), text("method"), if step.get("path").is_some() { text("path") } else { text("name") }]
            .into_iter()
            .filter(|s| !s.is_empty())
            .collect::<Vec<_>>()
            .join(" ");
    if let Some(note) = step["note"].as_str() {
        out.push_str(&format!("  ({note})"));
    }
    out
}

static VARIABLE: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(r"\{\{([\w.-]+)\}\}").unwrap_or_else(|e| unreachable!("constant pattern: {e}"))
});

struct Run {
    client: Arc<Client>,
    names: Names,
    vars: BTreeMap<String, Value>,
    watches: BTreeMap<String, Watch>,
    hooks: Option<Hooks>,
}

impl Drop for Run {
    fn drop(&mut self) {
        self.watches.values().for_each(Watch::close);
    }
}

impl Run {
    async fn perform(&mut self, step: &Value) -> Result<Value, String> {
        let text = |k: &str| step[k].as_str().unwrap_or_default();
        let seconds = |or: f64| Duration::from_secs_f64(step["seconds"].as_f64().unwrap_or(or));
        match text("step") {
            "request" => self.request(step).await,
            "wait" => self.wait(step, seconds(20.0)).await,
            "watch" => {
                let (path, headers) = (self.fill_text(text("path")), self.fill(&step["headers"]));
                let watch = Watch::open(&self.client, &path, &headers).await;
                let status = watch.status.clone();
                self.watches.insert(text("name").to_owned(), watch);
                Ok(json!({"status": status}))
            }
            "events" => self.events(step, seconds(10.0)).await,
            "hook" => {
                if self.hooks.is_none() {
                    self.hooks = Some(Hooks::start().await?);
                }
                let Some(hooks) = &self.hooks else { return Err("no hooks".into()) };
                let name = text("name");
                hooks.rule(name, step["rule"].clone());
                let url = format!("https://127.0.0.1:{}/{name}", hooks.port);
                self.vars.insert(format!("hook.{name}.url"), url.into());
                self.vars.insert("hook.ca".into(), hooks.ca.clone().into());
                Ok(json!({}))
            }
            "asked" => {
                let asked = self.hooks.as_ref().map(|h| h.asked(text("name"))).unwrap_or_default();
                let cleaned: Vec<Value> =
                    asked.into_iter().map(|(r, text)| self.forget(r, &text, step)).collect();
                Ok(json!({"asked": self.mask(cleaned.into())}))
            }
            "pause" => {
                tokio::time::sleep(seconds(1.0)).await;
                Ok(json!({}))
            }
            other => Err(format!("unknown step {other:?}")),
        }
    }

    async fn request(&mut self, step: &Value) -> Result<Value, String> {
        let path = self.fill_text(step["path"].as_str().unwrap_or_default());
        let body = step.get("send").map(|b| self.fill(b));
        let headers = self.fill(&step["headers"]);
        let answer = self
            .client
            .send(step["method"].as_str().unwrap_or("GET"), &path, body.as_ref(), &headers)
            .await?;
        for (name, path) in step["capture"].as_object().into_iter().flatten() {
            let value = dig(&answer.json().unwrap_or_default(), path.as_str().unwrap_or_default());
            self.vars.insert(name.clone(), value);
        }
        let recorded = self.record(&answer, step);
        Ok(self.mask(recorded))
    }

    async fn wait(&mut self, step: &Value, patience: Duration) -> Result<Value, String> {
        let path = self.fill_text(step["path"].as_str().unwrap_or_default());
        let headers = self.fill(&step["headers"]);
        let field = step["field"].as_str().unwrap_or_default();
        let end = Instant::now() + patience;
        let mut last = Value::Null;
        while Instant::now() < end {
            let answer = self.client.send("GET", &path, None, &headers).await?;
            last = match field {
                "<status>" => answer.status.into(),
                _ => dig(&answer.json().unwrap_or_default(), field),
            };
            if last == step["equals"] {
                return Ok(json!({"reached": true}));
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(json!({"reached": false, "last": last}))
    }

    async fn events(&mut self, step: &Value, patience: Duration) -> Result<Value, String> {
        let name = step["name"].as_str().unwrap_or_default();
        let Some(mut watch) = self.watches.remove(name) else { return Err(format!("no watch {name:?}")) };
        let least = step["atLeast"].as_u64().unwrap_or(1) as usize;
        let skip = step["skip"].as_u64().unwrap_or(0) as usize;
        let events = watch.settle(least, patience).await;
        let cleaned: Vec<Value> =
            events.into_iter().skip(skip).map(|(e, text)| self.forget(e, &text, step)).collect();
        let mut out = json!({"events": self.mask(cleaned.into())});
        if step["ended"].as_bool() == Some(true) {
            out["ended"] = watch.ended(patience).await.into();
        }
        if step["close"].as_bool() == Some(true) {
            watch.close();
        }
        self.watches.insert(name.to_owned(), watch);
        Ok(out)
    }

    /// Drops what the step ignores and renames the rest.
    fn forget(&mut self, mut value: Value, text: &str, step: &Value) -> Value {
        for path in step["ignore"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            drop(&mut value, path);
        }
        self.names.clean(value, text)
    }

    fn record(&mut self, answer: &Answer, step: &Value) -> Value {
        let mut out = json!({"status": answer.status});
        match answer.json() {
            Some(Value::Null) | None if answer.raw.is_empty() => {}
            Some(body) if !body.is_null() => {
                out["body"] = self.forget(body, &String::from_utf8_lossy(&answer.raw), step);
            }
            _ => out["text"] = self.names.text(&String::from_utf8_lossy(&answer.raw)).into(),
        }
        let text = |v: &http::HeaderValue| Value::from(String::from_utf8_lossy(v.as_bytes()).into_owned());
        let warnings: Vec<Value> = answer.headers.get_all("warning").iter().map(text).collect();
        if !warnings.is_empty() {
            out["warnings"] = warnings.into();
        }
        for header in step["keepHeaders"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            out["headers"][header] = answer.headers.get(header).map_or(Value::Null, text);
        }
        out
    }

    fn fill_text(&self, text: &str) -> String {
        VARIABLE
            .replace_all(text, |m: &regex::Captures<'_>| match self.vars.get(&m[1]) {
                Some(Value::String(s)) => s.clone(),
                Some(Value::Null) => "None".to_owned(),
                Some(other) => other.to_string(),
                None => m[0].to_owned(),
            })
            .into_owned()
    }

    /// Puts captured values where the recording names them.
    fn fill(&self, value: &Value) -> Value {
        match value {
            Value::String(s) => {
                let whole = VARIABLE.captures(s).filter(|m| m[0].len() == s.len());
                match whole.and_then(|m| self.vars.get(&m[1])) {
                    Some(v) => v.clone(),
                    None => self.fill_text(s).into(),
                }
            }
            Value::Array(list) => list.iter().map(|v| self.fill(v)).collect(),
            Value::Object(map) => {
                map.iter().map(|(k, v)| (k.clone(), self.fill(v))).collect::<Map<_, _>>().into()
            }
            other => other.clone(),
        }
    }

    /// Names captured values again in an answer.
    fn mask(&self, value: Value) -> Value {
        match value {
            Value::String(mut s) => {
                let mut known: Vec<(&String, &str)> = self
                    .vars
                    .iter()
                    .filter_map(|(k, v)| v.as_str().filter(|v| v.len() > 5).map(|v| (k, v)))
                    .collect();
                known.sort_by_key(|(_, v)| std::cmp::Reverse(v.len()));
                for (name, v) in known {
                    s = s.replace(v, &format!("{{{{{name}}}}}"));
                }
                if let Some(hooks) = &self.hooks {
                    s = s.replace(&format!("127.0.0.1:{}", hooks.port), "{{hook}}");
                }
                s.into()
            }
            Value::Array(list) => list.into_iter().map(|v| self.mask(v)).collect(),
            Value::Object(map) => {
                map.into_iter().map(|(k, v)| (k, self.mask(v))).collect::<Map<_, _>>().into()
            }
            other => other,
        }
    }
}
