//! What a plugin answers where it doesn't agree: a code, and reasons in the words of events and conditions.
//!
//! The reference's `Success` is `Ok` here, its `Skip` and `Wait` are variants of what the extension points return, so
//! a status is always a refusal. Invariant: the framework, not the plugin, fills in which plugin it comes from.

use std::borrow::Cow;

/// What a refusal means for the pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Code {
    /// Something broke: an API error, an extender that doesn't answer. The pod is tried again after a backoff.
    Error,
    /// Not now; taking pods away may help.
    Unschedulable,
    /// Not now, and taking pods away doesn't help.
    UnschedulableAndUnresolvable,
    /// It is up to somebody outside; retried without backoff when an event says so.
    Pending,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What it means.
    pub code: Code,
    /// Why, such as `Insufficient cpu`.
    pub reasons: Vec<Cow<'static, str>>,
    /// The plugin that refuses; empty until the framework has filled it in.
    pub plugin: &'static str,
}

impl Status {
    /// A refusal for one reason.
    pub fn new(code: Code, reason: impl Into<Cow<'static, str>>) -> Self {
        Self { code, reasons: vec![reason.into()], plugin: "" }
    }

    /// [`Code::Unschedulable`].
    pub fn unschedulable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Unschedulable, reason)
    }

    /// [`Code::UnschedulableAndUnresolvable`].
    pub fn unresolvable(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::UnschedulableAndUnresolvable, reason)
    }

    /// [`Code::Error`].
    pub fn error(reason: impl Into<Cow<'static, str>>) -> Self {
        Self::new(Code::Error, reason)
    }

    /// As given, from this plugin.
    #[must_use]
    pub fn by(mut self, plugin: &'static str) -> Self {
        self.plugin = plugin;
        self
    }

    /// As given, from this plugin at this extension point: where something broke, the text says where.
    #[must_use]
    pub fn at(mut self, point: &str, plugin: &'static str) -> Self {
        if !self.is_rejected() {
            let text = format!("running {point} plugin {plugin:?}: {}", self.message());
            self.reasons = vec![text.into()];
        }
        self.by(plugin)
    }

    /// Whether the pod was refused, rather than something broken.
    pub fn is_rejected(&self) -> bool {
        self.code != Code::Error
    }

    /// All reasons in one text.
    pub fn message(&self) -> String {
        self.reasons.join(", ")
    }
}
