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
    pub reason: Arc<str>,
}

/// Namespace (empty for cluster-wide) and name.
type Id = (Arc<str>, Arc<str>);

/// Who is meant by a binding's subject.
#[derive(Debug)]
enum Who {
    /// A user, or a service account by its user name.
    User(Arc<str>),
    Group(Arc<str>),
}

#[derive(Debug)]
struct Subject {
    who: Who,
    /// What a decision says that this subject of the binding allows.
    reason: Arc<str>,
}

#[derive(Debug)]
struct Binding {
    namespace: Arc<str>,
    name: Arc<str>,
    role_kind: Arc<str>,
    role: Arc<str>,
    /// Those that can be somebody.
    subjects: Vec<Subject>,
}

/// The bindings of one subject, by name.
#[derive(Clone, Debug, Default)]
struct Bound {
    cluster: BTreeMap<Arc<str>, Arc<Binding>>,
    namespaces: HashMap<Arc<str>, BTreeMap<Arc<str>, Arc<Binding>>>,
}

impl Bound {
    fn insert(&mut self, binding: &Arc<Binding>) {
        let names = if binding.namespace.is_empty() {
            &mut self.cluster
        } else {
            self.namespaces.entry(binding.namespace.clone()).or_default()
        };
        names.insert(binding.name.clone(), Arc::clone(binding));
    }

    /// Whether nothing is left.
    fn remove(&mut self, binding: &Binding) -> bool {
        if binding.namespace.is_empty() {
            self.cluster.remove(&binding.name);
        } else if let Some(names) = self.namespaces.get_mut(&binding.namespace) {
            names.remove(&binding.name);
            if names.is_empty() {
                self.namespaces.remove(&binding.namespace);
            }
        }
        self.cluster.is_empty() && self.namespaces.is_empty()
    }
}

/// Bindings by subject: user names (service accounts' too), or groups.
type Index = HashMap<Arc<str>, Bound>;

/// Rules of roles by name.
type Roles = HashMap<Arc<str>, Arc<[Rule]>>;

/// All roles and bindings. Cheap enough to clone for a snapshot: rules and bindings are shared.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    cluster_roles: Roles,
    /// By namespace.
    roles: HashMap<Arc<str>, Roles>,
    bindings: BTreeMap<Id, Arc<Binding>>,
    users: Index,
    groups: Index,
}

fn text(of: &Value, key: &str) -> Arc<str> {
    of[key].as_str().unwrap_or_default().into()
}

impl Binding {
    fn parse(object: &Value, namespaced: bool) -> Self {
        let metadata = &object["metadata"];
        let mut binding = Self {
            namespace: if namespaced { text(metadata, "namespace") } else { "".into() },
            name: text(metadata, "name"),
            role_kind: text(&object["roleRef"], "kind"),
            role: text(&object["roleRef"], "name"),
            subjects: Vec::new(),
        };
        let subjects = object["subjects"].as_array().into_iter().flatten();
        binding.subjects = subjects.filter_map(|s| binding.subject(s)).collect();
        binding
    }

    fn subject(&self, subject: &Value) -> Option<Subject> {
        let (kind, name) = (text(subject, "kind"), text(subject, "name"));
        let (who, shown) = match &*kind {
            "User" => (Who::User(name.clone()), name),
            "Group" => (Who::Group(name.clone()), name),
            "ServiceAccount" => {
                // One without a namespace is in the binding's.
                let own = text(subject, "namespace");
                let namespace = if own.is_empty() { &self.namespace } else { &own };
                if namespace.is_empty() {
                    return None;
                }
                let username = service_account_username(namespace, &name).into();
                (Who::User(username), format!("{name}/{namespace}").into())
            }
            _ => return None,
        };
        let binding = if self.namespace.is_empty() {
            format!("ClusterRoleBinding {}", quote(&self.name))
        } else {
            format!("RoleBinding {}", quote(&format!("{}/{}", self.name, self.namespace)))
        };
        let role = format!("{} {}", self.role_kind, quote(&self.role));
        let reason = format!("RBAC: allowed by {binding} of {role} to {kind} {}", quote(&shown)).into();
        Some(Subject { who, reason })
    }

    /// What a decision says that rests on this binding: its first subject that the user is.
    fn reason(&self, user: &User) -> Arc<str> {
        let is = |s: &&Subject| match &s.who {
            Who::User(name) => user.name == **name,
            Who::Group(name) => user.is_in(name),
        };
        self.subjects.iter().find(is).map(|s| Arc::clone(&s.reason)).unwrap_or_default()
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
                let roles = if kind == "Role" {
                    self.roles.entry(namespace).or_default()
                } else {
                    &mut self.cluster_roles
                };
                roles.insert(name, Rule::list(&object["rules"]).into());
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                self.remove(object);
                let binding = Arc::new(Binding::parse(object, kind == "RoleBinding"));
                for subject in &binding.subjects {
                    let (index, key) = self.place(subject);
                    index.entry(key.into()).or_default().insert(&binding);
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
            "ClusterRole" => {
                self.cluster_roles.remove(&name);
            }
            "Role" => {
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
                    let (index, key) = self.place(subject);
                    if index.get_mut(key).is_some_and(|bound| bound.remove(&binding)) {
                        index.remove(key);
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

    /// The index that knows a subject, and its key there.
    fn place<'s>(&mut self, subject: &'s Subject) -> (&mut Index, &'s str) {
        match &subject.who {
            Who::User(name) => (&mut self.users, name),
            Who::Group(name) => (&mut self.groups, name),
        }
    }

    /// Whether a user may do something. Members of `system:masters` may do everything, without a reason.
    pub fn allows(&self, a: &Attributes<'_>) -> Decision {
        if a.user.is_in(MASTERS) {
            return Decision { allowed: true, reason: Arc::default() };
        }
        let mut errors = Vec::new();
        let found = self.visit(a.user, a.namespace, &mut |binding, rules| match rules {
            Ok(rules) => rules.iter().any(|r| r.allows(a)).then(|| binding.reason(a.user)),
            Err(e) => {
                errors.push(e);
                None
            }
        });
        match found {
            Some(reason) => Decision { allowed: true, reason },
            None if errors.is_empty() => Decision::default(),
            None => Decision { allowed: false, reason: format!("RBAC: {}", join(errors)).into() },
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
        let (roles, resource) = match kind {
            "Role" => (self.roles.get(namespace), "role"),
            "ClusterRole" => (Some(&self.cluster_roles), "clusterrole"),
            _ => return Err(format!("unsupported role reference kind: {}", quote(kind))),
        };
        let rules = roles.and_then(|names| names.get(name));
        rules.map(|r| &**r).ok_or_else(|| format!("{resource}.{GROUP} {} not found", quote(name)))
    }

    /// Visits the bindings of a user, cluster-wide ones first, until one yields something.
    fn visit<'p, T>(
        &'p self,
        user: &User,
        namespace: &str,
        visitor: &mut dyn FnMut(&'p Binding, Result<&'p [Rule], String>) -> Option<T>,
    ) -> Option<T> {
        let own = self.users.get(&*user.name);
        let groups = user.groups.iter().filter_map(|g| self.groups.get(&**g));
        let all: Vec<&'p Bound> = own.into_iter().chain(groups).collect();
        let cluster = all.iter().map(|bound| &bound.cluster);
        let local = all.iter().filter(|b| !namespace.is_empty() && !b.namespaces.is_empty());
        let local = local.filter_map(|bound| bound.namespaces.get(namespace));
        for binding in cluster.chain(local).flat_map(BTreeMap::values) {
            let rules = self.role_rules(&binding.role_kind, &binding.role, &binding.namespace);
            if let Some(found) = visitor(binding, rules) {
                return Some(found);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests;
