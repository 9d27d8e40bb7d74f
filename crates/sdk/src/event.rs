//! Events of an operator about its objects (`events.k8s.io/v1`): the same event again becomes a series, and one
//! object's flood is held back.
//!
//! Events inform people; nothing may depend on them. So recording one never fails a reconcile, it only logs.
//! Limits are client-go's: a series ends after six minutes of silence, and an object may have a burst of 25 events,
//! then one in five minutes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use homeostat_model::Clock;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1 as api;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::Patch;
use serde_json::json;
use tokio::time::Instant;
use tracing::debug;

use crate::error::Result;
use crate::key::Key;
use crate::recent::Recent;
use crate::write::Writer;

/// A series ends after this long without the event.
const SERIES_ENDS: Duration = Duration::from_secs(6 * 60);
/// A series' count is written at most this often, once it is past [`COUNT_EACH`].
const COUNT_EVERY: Duration = Duration::from_secs(30);
const COUNT_EACH: i32 = 10;
/// Events per object: a burst, then one per period.
const BURST: f64 = 25.0;
const REFILL: Duration = Duration::from_secs(300);
/// Events about one name at one moment.
const SAME_MOMENT: i128 = 32;
/// The API's limit of a note.
const NOTE_LIMIT: usize = 1024;

/// What to tell about an object.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    warning: bool,
    reason: String,
    note: String,
    action: String,
    related: Option<ObjectReference>,
    field: Option<String>,
    instance: Option<String>,
}

impl Event {
    /// Something went as it should. `reason` in CamelCase, such as `Created`.
    pub fn normal(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self {
            warning: false,
            reason: reason.into(),
            note: note.into(),
            action: "Reconcile".into(),
            related: None,
            field: None,
            instance: None,
        }
    }

    /// Something needs a person's attention.
    pub fn warning(reason: impl Into<String>, note: impl Into<String>) -> Self {
        Self { warning: true, ..Self::normal(reason, note) }
    }

    /// What was done or tried, in CamelCase. `Reconcile` where it isn't said.
    #[must_use]
    pub fn action(mut self, action: impl Into<String>) -> Self {
        self.action = action.into();
        self
    }

    /// A second object that it is about.
    #[must_use]
    pub fn related(mut self, object: ObjectReference) -> Self {
        self.related = Some(object);
        self
    }

    /// The part of the object that it is about, as `regarding.fieldPath` has it: `spec.containers{web}` for a pod's
    /// container of that name. The same event about two parts is two events.
    #[must_use]
    pub fn field(mut self, path: impl Into<String>) -> Self {
        self.field = Some(path.into());
        self
    }

    /// Who tells it, where one recorder speaks for many: `reportingInstance`, such as the node of a kubelet. The
    /// recorder's own name where it isn't said.
    #[must_use]
    pub fn instance(mut self, name: impl Into<String>) -> Self {
        self.instance = Some(name.into());
        self
    }
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct Same {
    regarding: (Option<String>, Option<String>, Option<String>),
    warning: bool,
    reason: String,
    action: String,
    note: String,
    field: Option<String>,
    instance: Option<String>,
}

struct Series {
    key: Key,
    count: i32,
    last: Instant,
    written: Instant,
}

struct Allowance {
    tokens: f64,
    at: Instant,
}

#[derive(Default)]
struct Memory {
    series: Recent<Same, Series>,
    allowances: Recent<String, Allowance>,
}

/// Records events under one reporter's name. Cheap to clone.
#[derive(Clone)]
pub struct Recorder {
    writer: Writer,
    clock: Clock,
    instance: Arc<str>,
    memory: Arc<Mutex<Memory>>,
}

impl std::fmt::Debug for Recorder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Recorder").field("instance", &self.instance).finish_non_exhaustive()
    }
}

enum Step {
    Nothing,
    Create,
    Count(Key, i32),
}

impl Recorder {
    /// Reports as the writer's field manager, from `instance` (such as a pod's name).
    pub fn new(writer: Writer, clock: Clock, instance: impl Into<Arc<str>>) -> Self {
        Self { writer, clock, instance: instance.into(), memory: Arc::default() }
    }

    /// Tells `event` about an object. Failures are logged.
    pub async fn record(&self, regarding: ObjectReference, event: Event) {
        let reason = event.reason.clone();
        if let Err(error) = self.write(regarding, event).await {
            debug!(reason, %error, "event not recorded");
        }
    }

    async fn write(&self, regarding: ObjectReference, event: Event) -> Result<()> {
        let same = Same {
            regarding: (regarding.kind.clone(), regarding.uid.clone(), regarding.name.clone()),
            warning: event.warning,
            reason: event.reason.clone(),
            action: event.action.clone(),
            note: event.note.clone(),
            field: event.field.clone(),
            instance: event.instance.clone(),
        };
        let step = self.memory.lock().unwrap_or_else(PoisonError::into_inner).step(&same);
        match step {
            Step::Nothing => Ok(()),
            Step::Create => self.create(same, regarding, event).await,
            Step::Count(key, count) => {
                let last = homeostat_model::clock::micros(self.clock.now());
                let patch = json!({"series": {"count": count, "lastObservedTime": last}});
                match self.writer.patch::<api::Event, _>(&key, &Patch::Merge(&patch)).await {
                    Ok(_) => Ok(()),
                    // It expired on the server: begin anew.
                    Err(e) if e.is_not_found() => self.create(same, regarding, event).await,
                    Err(e) => Err(e),
                }
            }
        }
    }

    async fn create(&self, same: Same, mut regarding: ObjectReference, event: Event) -> Result<()> {
        if event.field.is_some() {
            regarding.field_path = event.field;
        }
        let now = self.clock.now();
        let namespace = regarding.namespace.clone().unwrap_or_else(|| "default".into());
        let about = regarding.name.clone().unwrap_or_default();
        let mut object = api::Event {
            metadata: kube::core::ObjectMeta { namespace: Some(namespace.clone()), ..Default::default() },
            action: Some(event.action),
            event_time: Some(MicroTime(now)),
            note: Some(shorten(event.note)),
            reason: Some(event.reason),
            regarding: Some(regarding),
            related: event.related,
            reporting_controller: Some(self.writer.manager().to_owned()),
            reporting_instance: Some(event.instance.unwrap_or_else(|| self.instance.to_string())),
            type_: Some(if event.warning { "Warning" } else { "Normal" }.into()),
            ..Default::default()
        };
        let mut later = 0;
        let name = loop {
            // client-go's form: the object's name and the time in hexadecimal nanoseconds.
            let name = format!("{about}.{:x}", now.as_nanosecond() + later);
            object.metadata.name = Some(name.clone());
            match self.writer.create_unread(&object).await {
                Ok(()) => break name,
                // Somebody told something at the same moment; in virtual time many do.
                Err(e) if e.is_already_exists() && later < SAME_MOMENT => later += 1,
                Err(e) => return Err(e),
            }
        };
        let at = Instant::now();
        let series = Series { key: Key::namespaced(namespace, name), count: 1, last: at, written: at };
        self.memory.lock().unwrap_or_else(PoisonError::into_inner).series.insert(same, series);
        Ok(())
    }
}

fn shorten(mut note: String) -> String {
    if note.len() > NOTE_LIMIT {
        let mut end = NOTE_LIMIT - 3;
        while !note.is_char_boundary(end) {
            end -= 1;
        }
        note.truncate(end);
        note.push_str("...");
    }
    note
}

impl Memory {
    fn step(&mut self, same: &Same) -> Step {
        let now = Instant::now();
        if let Some(series) = self.series.get_mut(same)
            && now.duration_since(series.last) < SERIES_ENDS
        {
            series.count = series.count.saturating_add(1);
            series.last = now;
            if series.count > COUNT_EACH && now.duration_since(series.written) < COUNT_EVERY {
                return Step::Nothing;
            }
            series.written = now;
            return Step::Count(series.key.clone(), series.count);
        }
        let (kind, uid, name) = &same.regarding;
        let object = format!("{kind:?}/{uid:?}/{name:?}");
        let Some(allowance) = self.allowances.get_mut(&object) else {
            self.allowances.insert(object, Allowance { tokens: BURST - 1.0, at: now });
            return Step::Create;
        };
        let refilled = now.duration_since(allowance.at).as_secs_f64() / REFILL.as_secs_f64();
        allowance.tokens = (allowance.tokens + refilled).min(BURST);
        allowance.at = now;
        if allowance.tokens < 1.0 {
            return Step::Nothing;
        }
        allowance.tokens -= 1.0;
        Step::Create
    }
}
