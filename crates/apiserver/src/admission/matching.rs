//! Which requests a webhook, a policy or a binding is for: rules of operations and resources, selectors of namespaces and
//! objects, and through which version of a resource it wants to see them.
//!
//! Invariant: a rule that names the version asked for is found before any that names another.

use std::borrow::Cow;

use homeostat_model::selector::Labels;
use homeostat_model::status::Result;
use serde_json::Value;

use super::{Operation, Subject};
use crate::convert;
use crate::registry::Target;
use crate::write::Writing;

/// A write as admission is told of it.
#[derive(Clone, Copy)]
pub(super) struct Attributes<'a> {
    pub(super) w: &'a Writing<'a>,
    pub(super) subject: &'a Subject,
    /// Absent on deletes.
    pub(super) object: Option<&'a Value>,
    /// Absent on creates.
    pub(super) old: Option<&'a Value>,
}

/// The word for an operation.
pub(super) fn word(operation: Operation) -> &'static str {
    match operation {
        Operation::Create => "CREATE",
        Operation::Update => "UPDATE",
        Operation::Delete => "DELETE",
    }
}

/// Whether a request is for what configures admission, which nobody is asked about.
pub(super) fn is_exempt(w: &Writing<'_>) -> bool {
    &*w.target.resource.id.group == "admissionregistration.k8s.io"
}

/// In which version a request is matched.
pub(super) enum Matched {
    /// In the one that was asked for.
    AsAsked,
    /// Through another version of the same objects.
    Through(Box<Target>),
}

impl Matched {
    /// The version.
    pub(super) fn target<'a>(&'a self, w: &'a Writing<'a>) -> &'a Target {
        match self {
            Self::AsAsked => w.target,
            Self::Through(target) => target,
        }
    }
}

/// One rule.
struct Rule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// Resource and subresource.
    resources: Vec<(String, String)>,
    scope: Scope,
    /// Empty: all.
    names: Vec<String>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Any,
    Namespaced,
    Cluster,
}

fn has(list: &[String], value: &str) -> bool {
    list.iter().any(|v| v == "*" || v == value)
}

impl Rule {
    fn parse(v: &Value) -> Self {
        let texts = |key: &str| -> Vec<String> {
            v[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let split = |r: String| match r.split_once('/') {
            Some((main, sub)) => (main.to_owned(), sub.to_owned()),
            None => (r, String::new()),
        };
        Self {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").into_iter().map(split).collect(),
            scope: match v["scope"].as_str() {
                Some("Namespaced") => Scope::Namespaced,
                Some("Cluster") => Scope::Cluster,
                _ => Scope::Any,
            },
            names: texts("resourceNames"),
        }
    }

    fn list(v: &Value) -> Vec<Self> {
        v.as_array().into_iter().flatten().map(Self::parse).collect()
    }

    fn matches(&self, a: &Attributes<'_>, target: &Target) -> bool {
        let (gv, resource) = (target.gv(), &target.resource);
        let fits = match self.scope {
            Scope::Any => true,
            Scope::Namespaced => resource.namespaced,
            Scope::Cluster => !resource.namespaced,
        };
        fits && has(&self.operations, word(a.subject.operation))
            && has(&self.groups, &gv.group)
            && has(&self.versions, &gv.version)
            && self.resources.iter().any(|(main, sub)| {
                (main == "*" || *main == *resource.id.resource) && (sub == "*" || *sub == a.w.subresource)
            })
            && (self.names.is_empty() || self.names.contains(&a.subject.name))
    }
}

/// What a webhook, policy or binding asks for.
pub(super) struct Criteria {
    rules: Vec<Rule>,
    excluded: Vec<Rule>,
    namespaces: Labels,
    objects: Labels,
    equivalent: bool,
    /// Without rules all requests match, of bindings; none, of others.
    open: bool,
}

impl Criteria {
    /// Of a webhook.
    pub(super) fn webhook(v: &Value) -> Self {
        Self { rules: Rule::list(&v["rules"]), open: false, ..Self::selectors(v) }
    }

    /// Of a policy's `matchConstraints` or a binding's `matchResources`.
    pub(super) fn resources(v: &Value) -> Self {
        Self {
            rules: Rule::list(&v["resourceRules"]),
            excluded: Rule::list(&v["excludeResourceRules"]),
            ..Self::selectors(v)
        }
    }

    fn selectors(v: &Value) -> Self {
        Self {
            rules: Vec::new(),
            excluded: Vec::new(),
            namespaces: Labels::from_valid(&v["namespaceSelector"]),
            objects: Labels::from_valid(&v["objectSelector"]),
            equivalent: v["matchPolicy"] == "Equivalent",
            open: true,
        }
    }

    /// Whether a request matches, and in which version.
    pub(super) fn matches(&self, a: &Attributes<'_>) -> Option<Matched> {
        let matched =
            if self.rules.is_empty() && self.open { Matched::AsAsked } else { self.find(&self.rules, a)? };
        let excluded = !self.excluded.is_empty() && self.find(&self.excluded, a).is_some();
        (!excluded && self.selects(a)).then_some(matched)
    }

    fn find(&self, rules: &[Rule], a: &Attributes<'_>) -> Option<Matched> {
        if rules.iter().any(|r| r.matches(a, a.w.target)) {
            return Some(Matched::AsAsked);
        }
        // Most rules ask for other operations or resources, whatever the version.
        let operation = word(a.subject.operation);
        if !self.equivalent || !rules.iter().any(|r| has(&r.operations, operation)) {
            return None;
        }
        let others = equivalents(a.w);
        // Earlier rules first.
        let found = rules.iter().find_map(|r| others.iter().find(|t| r.matches(a, t)));
        found.map(|t| Matched::Through(Box::new(t.clone())))
    }

    /// Whether the selectors take the object and its namespace.
    pub(super) fn selects(&self, a: &Attributes<'_>) -> bool {
        let by = |labels: &Labels, o: Option<&Value>| {
            o.is_some_and(|o| labels.matches_value(&o["metadata"]["labels"]))
        };
        if !self.objects.is_empty() && !by(&self.objects, a.object) && !by(&self.objects, a.old) {
            return false;
        }
        if self.namespaces.is_empty() {
            return true;
        }
        let id = &a.w.target.resource.id;
        if id.group.is_empty() && &*id.resource == "namespaces" {
            return by(&self.namespaces, a.object.or(a.old));
        }
        if a.w.namespace.is_empty() {
            return true;
        }
        let record = a.w.server.config.store.get("namespaces", a.w.namespace);
        record.is_some_and(|r| self.namespaces.matches(|key| r.meta.label(key)))
    }
}

/// The other versions under which the same objects are served, those of another group included.
fn equivalents(w: &Writing<'_>) -> Vec<Target> {
    let resource = &w.target.resource;
    let sibling = w.target.sibling.as_deref();
    if resource.versions.len() == 1 && sibling.is_none() {
        return Vec::new();
    }
    let table = w.server.registry.table();
    [Some(&**resource), sibling]
        .into_iter()
        .flatten()
        .flat_map(|r| r.versions.iter().filter(|v| v.served).map(move |v| (r, v)))
        .filter(|(_, v)| v.gv != *w.target.gv())
        .filter(|(_, v)| w.subresource.is_empty() || v.subresource(w.subresource).is_some())
        .filter_map(|(r, v)| table.target(&v.gv.group, &v.gv.version, &r.id.resource))
        .collect()
}

/// The objects of a request in the version that someone wants to see.
pub(super) struct View<'a> {
    pub(super) target: &'a Target,
    pub(super) object: Option<Cow<'a, Value>>,
    pub(super) old: Option<Cow<'a, Value>>,
}

impl<'a> View<'a> {
    /// Converts the objects, where another version is wanted.
    pub(super) async fn of(a: &Attributes<'a>, matched: &'a Matched) -> Result<Self> {
        let Matched::Through(target) = matched else {
            let (object, old) = (a.object.map(Cow::Borrowed), a.old.map(Cow::Borrowed));
            return Ok(Self { target: a.w.target, object, old });
        };
        let mut out = [None, None];
        for (slot, object) in out.iter_mut().zip([a.object, a.old]) {
            if let Some(object) = object {
                *slot = Some(Cow::Owned(converted(a.w, a.w.target, object, target).await?));
            }
        }
        let [object, old] = out;
        Ok(Self { target, object, old })
    }
}

/// An object of one version in another.
pub(super) async fn converted(w: &Writing<'_>, from: &Target, object: &Value, to: &Target) -> Result<Value> {
    if convert::webhook(from).is_some() {
        let out = convert::convert(w.server, from, vec![object.clone()], to.gv(), false).await?;
        return Ok(out.into_iter().next().unwrap_or_default());
    }
    let mut object = object.clone();
    to.resource.strategy.convert(&mut object, to.gv());
    Ok(object)
}
