//! The policy: all roles and bindings, indexed by subject, kept up to date object by object.
//!
//! A decision visits only the bindings of the user's name and groups. Where several allow, the reason names the
//! first: the user's own before the groups', cluster-wide before the namespace's, by name.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use homeostat_model::field::quote;
use serde_json::Value;

use super::{GROUP, Rule};
use crate::{Attributes, MASTERS, User, service_account_username};

/// What the policy says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the request may go on.
    pub allowed: bool,
    /// Why, or which references could not be followed; may be empty.
    pub reason: String,
}

/// Namespace (empty for cluster-wide) and name.
type Id = (Box<str>, Box<str>);

#[derive(Debug, PartialEq, Eq)]
struct Subject {
    kind: Box<str>,
    name: Box<str>,
    namespace: Box<str>,
}

#[derive(Debug)]
struct Binding {
    namespace: Box<str>,
    name: Box<str>,
    role_kind: Box<str>,
    role: Box<str>,
    subjects: Vec<Subject>,
}

/// Bindings of one subject: by namespace, then by the binding's name.
type Bound = HashMap<Box<str>, BTreeMap<Box<str>, Arc<Binding>>>;

/// Bindings by subject: user names (service accounts' too), or groups.
type Index = HashMap<Box<str>, Bound>;

/// Rules of roles by name.
type Roles = HashMap<Box<str>, Arc<[Rule]>>;

/// All roles and bindings. Cheap enough to clone for a snapshot: rules and bindings are shared.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    /// By namespace; cluster roles under the empty one.
    roles: HashMap<Box<str>, Roles>,
    bindings: BTreeMap<Id, Arc<Binding>>,
    users: Index,
    groups: Index,
}

fn text(of: &Value, key: &str) -> Box<str> {
    of[key].as_str().unwrap_or_default().into()
}

impl Binding {
    fn parse(object: &Value, namespaced: bool) -> Self {
        let metadata = &object["metadata"];
        let subjects = object["subjects"].as_array().into_iter().flatten();
        Self {
            namespace: if namespaced { text(metadata, "namespace") } else { "".into() },
            name: text(metadata, "name"),
            role_kind: text(&object["roleRef"], "kind"),
            role: text(&object["roleRef"], "name"),
            subjects: subjects
                .map(|s| Subject {
                    kind: text(s, "kind"),
                    name: text(s, "name"),
                    namespace: text(s, "namespace"),
                })
                .collect(),
        }
    }

    /// The user name of a service account subject; one without a namespace is in the binding's.
    fn account(&self, subject: &Subject) -> Option<String> {
        let namespace = if subject.namespace.is_empty() { &self.namespace } else { &subject.namespace };
        (!namespace.is_empty()).then(|| service_account_username(namespace, &subject.name))
    }

    fn is_for(&self, subject: &Subject, user: &User) -> bool {
        match &*subject.kind {
            "User" => user.name == *subject.name,
            "Group" => user.is_in(&subject.name),
            "ServiceAccount" => self.account(subject).is_some_and(|name| name == user.name),
            _ => false,
        }
    }

    /// `RoleBinding "b/ns" of Role "r" to User "u"`.
    fn describe(&self, user: &User) -> String {
        let subject = self.subjects.iter().find(|s| self.is_for(s, user));
        let subject = subject.map_or_else(String::new, |s| match (&*s.kind, s.namespace.is_empty()) {
            ("ServiceAccount", true) => {
                format!("{} {}", s.kind, quote(&format!("{}/{}", s.name, self.namespace)))
            }
            ("ServiceAccount", false) => {
                format!("{} {}", s.kind, quote(&format!("{}/{}", s.name, s.namespace)))
            }
            (kind, _) => format!("{kind} {}", quote(&s.name)),
        });
        let binding = if self.namespace.is_empty() {
            format!("ClusterRoleBinding {}", quote(&self.name))
        } else {
            format!("RoleBinding {}", quote(&format!("{}/{}", self.name, self.namespace)))
        };
        format!("{binding} of {} {} to {subject}", self.role_kind, quote(&self.role))
    }
}

/// Several errors in one line, each once.
fn join(mut errors: Vec<String>) -> String {
    let mut seen = std::collections::BTreeSet::new();
    errors.retain(|e| seen.insert(e.clone()));
    match errors.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}

impl Policy {
    /// The policy of a set of RBAC objects; objects of other kinds are passed over.
    pub fn from_objects<'a>(objects: impl IntoIterator<Item = &'a Value>) -> Self {
        let mut policy = Self::default();
        for object in objects {
            policy.upsert(object);
        }
        policy
    }

    /// Takes in a new object, or a new state of a known one.
    pub fn upsert(&mut self, object: &Value) {
        let kind = object["kind"].as_str().unwrap_or_default();
        match kind {
            "Role" | "ClusterRole" => {
                let (namespace, name) = Self::id(kind, object);
                self.roles.entry(namespace).or_default().insert(name, Rule::list(&object["rules"]).into());
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                self.remove(object);
                let binding = Arc::new(Binding::parse(object, kind == "RoleBinding"));
                for subject in &binding.subjects {
                    let Some((map, key)) = self.entry(&binding, subject) else { continue };
                    let bound = map.entry(key).or_default().entry(binding.namespace.clone()).or_default();
                    bound.insert(binding.name.clone(), Arc::clone(&binding));
                }
                self.bindings.insert((binding.namespace.clone(), binding.name.clone()), binding);
            }
            _ => {}
        }
    }

    /// Forgets an object; only its kind, namespace and name count.
    pub fn remove(&mut self, object: &Value) {
        let kind = object["kind"].as_str().unwrap_or_default();
        let (namespace, name) = Self::id(kind, object);
        match kind {
            "Role" | "ClusterRole" => {
                if let Some(names) = self.roles.get_mut(&namespace) {
                    names.remove(&name);
                    if names.is_empty() {
                        self.roles.remove(&namespace);
                    }
                }
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                let Some(binding) = self.bindings.remove(&(namespace, name)) else { return };
                for subject in &binding.subjects {
                    let Some((map, key)) = self.entry(&binding, subject) else { continue };
                    let Some(bound) = map.get_mut(&*key) else { continue };
                    if let Some(names) = bound.get_mut(&binding.namespace) {
                        names.remove(&binding.name);
                        if names.is_empty() {
                            bound.remove(&binding.namespace);
                        }
                    }
                    if bound.is_empty() {
                        map.remove(&*key);
                    }
                }
            }
            _ => {}
        }
    }

    fn id(kind: &str, object: &Value) -> Id {
        let metadata = &object["metadata"];
        let namespace = if kind.starts_with("Cluster") { "".into() } else { text(metadata, "namespace") };
        (namespace, text(metadata, "name"))
    }

    /// Where the index keeps a binding's subject; `None` for subjects that can be nobody.
    fn entry(&mut self, binding: &Binding, subject: &Subject) -> Option<(&mut Index, Box<str>)> {
        match &*subject.kind {
            "User" => Some((&mut self.users, subject.name.clone())),
            "Group" => Some((&mut self.groups, subject.name.clone())),
            "ServiceAccount" => Some((&mut self.users, binding.account(subject)?.into())),
            _ => None,
        }
    }

    /// Whether a user may do something. Members of `system:masters` may do everything, without a reason.
    pub fn allows(&self, a: &Attributes<'_>) -> Decision {
        if a.user.is_in(MASTERS) {
            return Decision { allowed: true, reason: String::new() };
        }
        let mut errors = Vec::new();
        let found = self.visit(a.user, a.namespace, &mut |binding, rules| match rules {
            Ok(rules) => rules.iter().any(|r| r.allows(a)).then(|| binding.describe(a.user)),
            Err(e) => {
                errors.push(e);
                None
            }
        });
        match found {
            Some(source) => Decision { allowed: true, reason: format!("RBAC: allowed by {source}") },
            None if errors.is_empty() => Decision::default(),
            None => Decision { allowed: false, reason: format!("RBAC: {}", join(errors)) },
        }
    }

    /// The rules that hold for a user in a namespace (empty: cluster-wide only), and what could not be found.
    pub fn rules_for(&self, user: &User, namespace: &str) -> (Vec<&Rule>, Option<String>) {
        let (mut all, mut errors) = (Vec::new(), Vec::new());
        let mut seen = std::collections::BTreeSet::new();
        self.visit(user, namespace, &mut |binding, rules| -> Option<()> {
            match rules {
                Ok(rules) if seen.insert((&binding.namespace, &binding.name)) => all.extend(rules),
                Ok(_) => {}
                Err(e) => errors.push(e),
            }
            None
        });
        (all, Some(join(errors)).filter(|e| !e.is_empty()))
    }

    /// The rules of the role that a binding refers to. `namespace` is the binding's.
    pub fn role_rules(&self, kind: &str, name: &str, namespace: &str) -> Result<&[Rule], String> {
        let (scope, resource) = match kind {
            "Role" => (namespace, "role"),
            "ClusterRole" => ("", "clusterrole"),
            _ => return Err(format!("unsupported role reference kind: {}", quote(kind))),
        };
        let rules = self.roles.get(scope).and_then(|names| names.get(name));
        rules.map(|r| &**r).ok_or_else(|| format!("{resource}.{GROUP} {} not found", quote(name)))
    }

    /// Visits the bindings of a user, cluster-wide ones first, until one yields something.
    fn visit<'p, T>(
        &'p self,
        user: &User,
        namespace: &str,
        visitor: &mut dyn FnMut(&'p Binding, Result<&'p [Rule], String>) -> Option<T>,
    ) -> Option<T> {
        let scopes = ["", namespace];
        for scope in &scopes[..if namespace.is_empty() { 1 } else { 2 }] {
            let own = self.users.get(&*user.name);
            let groups = user.groups.iter().filter_map(|g| self.groups.get(&**g));
            for binding in
                own.into_iter().chain(groups).filter_map(|bound| bound.get(*scope)).flat_map(BTreeMap::values)
            {
                let rules = self.role_rules(&binding.role_kind, &binding.role, &binding.namespace);
                if let Some(found) = visitor(binding, rules) {
                    return Some(found);
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
