//! Waiting until nothing more happens, and telling who doesn't let it.
//!
//! It looks at the API server's revision, which every commit moves, and at the queues of the managers that it is told
//! of. Renewals of Leases don't count: they are meant to go on for ever.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use homeostat_sdk::Health;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::ListParams;
use kube::{Api, Client};
use serde_json::Value;
use tokio::time::Instant;

use super::snapshot::{Objects, look};
use super::ticker::Ticker;

/// How long nothing must happen, and how much may happen before.
///
/// ```
/// # use std::time::Duration;
/// use homeostat::testing::Settle;
///
/// let strict = Settle { writes: 20, ..Settle::default() };
/// assert_eq!(strict.quiet, Duration::from_secs(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Settle {
    /// Nothing happens for so long: 1 s.
    pub quiet: Duration,
    /// At most so many writes until then: 10,000.
    pub writes: u64,
    /// At most so long until then: 10 min.
    pub patience: Duration,
}

impl Default for Settle {
    fn default() -> Self {
        Self { quiet: Duration::from_secs(1), writes: 10_000, patience: Duration::from_secs(600) }
    }
}

/// What it took.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Writes until it was quiet, renewals of Leases left out.
    pub writes: u64,
}

/// It doesn't settle, and who is why.
#[derive(Debug)]
pub struct Unsettled {
    /// Writes so far.
    pub writes: u64,
    /// How long was waited.
    pub waited: Duration,
    /// A line for each object that still changes: what of it, and which field manager wrote it.
    pub changes: Vec<String>,
    /// The operators whose queues aren't empty.
    pub busy: Vec<String>,
}

impl fmt::Display for Unsettled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "it doesn't settle: {} writes in {:?}, and it goes on", self.writes, self.waited)?;
        for change in &self.changes {
            writeln!(f, "  {change}")?;
        }
        if !self.busy.is_empty() {
            writeln!(f, "  busy: {}", self.busy.join(", "))?;
        }
        Ok(())
    }
}

impl std::error::Error for Unsettled {}

/// Lines of changes that a report shows.
const MOST_LINES: usize = 20;
/// Looks at what changes, until all of it is seen.
const LOOKS: u32 = 16;
/// What a line says of an object that was written and is as before.
const UNSEEN: &str = "nothing to be seen";
/// Fields that a line names.
const MOST_FIELDS: usize = 5;

impl Settle {
    /// Waits until it is quiet: no commits, and the managers of `healths` have nothing to do.
    ///
    /// # Errors
    /// [`Unsettled`] where it isn't within the limits. Errors of the API server count as not quiet.
    pub async fn wait(&self, client: &Client, healths: &[Health]) -> Result<Settled, Unsettled> {
        let (began, ticker) = (Instant::now(), Ticker::start());
        let mut writes = 0;
        loop {
            let before = revision(client).await.ok();
            let end = Instant::now() + self.quiet;
            // A flood of writes may let paused time stand still; the ticker notices.
            let happened = loop {
                let is_over = tokio::select! { biased;
                    () = ticker.tick() => false,
                    () = tokio::time::sleep_until(end) => true,
                };
                let happened = match before {
                    Some(before) => commits_since(client, before).await.ok(),
                    None => None,
                };
                if is_over || happened.is_none_or(|h| writes + h > self.writes) || ticker.is_exhausted() {
                    break happened;
                }
            };
            writes += happened.unwrap_or(0);
            if happened == Some(0) && healths.iter().all(Health::idle) {
                return Ok(Settled { writes });
            }
            if writes > self.writes || began.elapsed() > self.patience || ticker.is_exhausted() {
                let changes = self.accuse(client, &ticker).await.unwrap_or_default();
                let busy = healths.iter().flat_map(Health::metrics);
                let busy = busy.filter(|m| m.ready + m.active > 0).map(|m| m.operator).collect();
                return Err(Unsettled { writes, waited: began.elapsed(), changes, busy });
            }
        }
    }

    /// Looks at what changes, and who changes it.
    async fn accuse(&self, client: &Client, ticker: &Ticker) -> kube::Result<Vec<String>> {
        let (mut before, mut lines) = (look(client, None).await?, Vec::new());
        for look_again in 1..=LOOKS {
            ticker.nap(self.quiet / look_again).await;
            let after = look(client, None).await?;
            lines = differences(&before, &after);
            // What two write by turns may be by chance what it was.
            if !lines.iter().any(|line| line.contains(UNSEEN)) {
                break;
            }
            before = after;
        }
        Ok(lines)
    }
}

/// The version of the latest commit, of whatever object.
async fn revision(client: &Client) -> kube::Result<u64> {
    let api: Api<Namespace> = Api::all(client.clone());
    let list = api.list_metadata(&ListParams::default().limit(1)).await?;
    Ok(list.metadata.resource_version.and_then(|v| v.parse().ok()).unwrap_or(0))
}

/// Commits since `before`, those of Leases left out.
async fn commits_since(client: &Client, before: u64) -> kube::Result<u64> {
    let api: Api<Lease> = Api::all(client.clone());
    let leases = api.list_metadata(&ListParams::default()).await?;
    let renewed = leases.iter().filter_map(|l| l.metadata.resource_version.as_deref()?.parse::<u64>().ok());
    let renewed = renewed.filter(|v| *v > before).count() as u64;
    // Of a lease that was renewed twice only the last renewal is seen; so a window should be shorter than they are.
    Ok(revision(client).await?.saturating_sub(before).saturating_sub(renewed))
}

fn differences(before: &Objects, after: &Objects) -> Vec<String> {
    let mut lines = Vec::new();
    let places: BTreeSet<_> = before.keys().chain(after.keys()).collect();
    for place in places {
        let (kind, namespace, name) = place;
        if kind == "Lease.coordination.k8s.io" {
            continue;
        }
        let what = match namespace {
            Some(namespace) => format!("{kind} {namespace}/{name}"),
            None => format!("{kind} {name}"),
        };
        match (before.get(place), after.get(place)) {
            (None, Some(new)) => lines.push(format!("{what}: created by {}", writers(&Value::Null, new))),
            (Some(_), None) => lines.push(format!("{what}: deleted")),
            (Some(old), Some(new))
                if old["metadata"]["resourceVersion"] != new["metadata"]["resourceVersion"] =>
            {
                let mut fields = Vec::new();
                changed("", old, new, &mut fields);
                let more = fields.len().saturating_sub(MOST_FIELDS);
                fields.truncate(MOST_FIELDS);
                let mut fields = if fields.is_empty() { UNSEEN.to_owned() } else { fields.join(", ") };
                if more > 0 {
                    fields.push_str(&format!(" and {more} more"));
                }
                lines.push(format!("{what}: {fields} by {}", writers(old, new)));
            }
            _ => {}
        }
        if lines.len() == MOST_LINES {
            lines.push("…".to_owned());
            break;
        }
    }
    lines
}

/// The field managers whose part of an object changed.
fn writers(old: &Value, new: &Value) -> String {
    let managers =
        |object: &Value| object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let before = managers(old);
    let mut names: Vec<String> = managers(new)
        .into_iter()
        .filter(|entry| !before.contains(entry))
        .filter_map(|entry| Some(format!("`{}`", entry["manager"].as_str()?)))
        .collect();
    names.dedup();
    // Within one second an entry's time is the same, and so is the entry.
    if names.is_empty() {
        let latest = managers(new).into_iter().max_by_key(|e| e["time"].as_str().map(str::to_owned));
        names.extend(latest.and_then(|e| Some(format!("`{}`", e["manager"].as_str()?))));
    }
    if names.is_empty() { "nobody known".to_owned() } else { names.join(", ") }
}

/// The paths of fields that differ, server's book-keeping left out.
fn changed(path: &str, old: &Value, new: &Value, out: &mut Vec<String>) {
    if old == new
        || ["metadata.resourceVersion", "metadata.managedFields", "metadata.generation"].contains(&path)
    {
        return;
    }
    match (old, new) {
        (Value::Object(a), Value::Object(b)) => {
            let keys: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let inner = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                changed(&inner, &old[key], &new[key], out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                changed(&format!("{path}[{i}]"), a, b, out);
            }
        }
        _ => out.push(path.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn changes_name_their_fields_and_writers() {
        let object = |version: &str, value: &str, time: &str| {
            json!({"metadata": {"resourceVersion": version, "managedFields": [
                {"manager": "kubectl", "time": "1"}, {"manager": "copy", "time": time}]},
                "data": {"value": value, "same": "x"}, "list": [{"a": 1}]})
        };
        let place = |name: &str| ("ConfigMap".to_owned(), Some("default".to_owned()), name.to_owned());
        let before: Objects = [
            (place("changed"), object("1", "a", "2")),
            (place("gone"), object("1", "a", "2")),
            (place("same"), object("1", "a", "2")),
        ]
        .into();
        let after: Objects = [
            (place("changed"), object("2", "b", "3")),
            (place("new"), object("3", "a", "2")),
            (place("same"), object("1", "a", "2")),
        ]
        .into();
        assert_eq!(
            differences(&before, &after),
            [
                "ConfigMap default/changed: data.value by `copy`",
                "ConfigMap default/gone: deleted",
                "ConfigMap default/new: created by `kubectl`, `copy`",
            ]
        );
    }
}
