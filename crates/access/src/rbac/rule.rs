//! One rule of a role: which verbs on which resources, names or paths.

use homeostat_model::field::quote;
use serde_json::{Map, Value, json};

use crate::Attributes;

/// A `PolicyRule`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Rule {
    /// Verbs; `*` for all.
    pub verbs: Vec<String>,
    /// API groups; `*` for all.
    pub groups: Vec<String>,
    /// Resources: `pods`, `pods/log`, `*/scale`, `*`.
    pub resources: Vec<String>,
    /// Names; none for all.
    pub names: Vec<String>,
    /// Paths, with `*` at the end for all that start so.
    pub urls: Vec<String>,
}

fn strings(of: &Value, key: &str) -> Vec<String> {
    of[key].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn has(list: &[String], all: &str, wanted: &str) -> bool {
    list.iter().any(|x| x == all || x == wanted)
}

fn covers_path(rule: &str, path: &str) -> bool {
    rule == path || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}

impl Rule {
    /// From JSON; what has another type is as if it were absent.
    pub fn from_value(rule: &Value) -> Self {
        Self {
            verbs: strings(rule, "verbs"),
            groups: strings(rule, "apiGroups"),
            resources: strings(rule, "resources"),
            names: strings(rule, "resourceNames"),
            urls: strings(rule, "nonResourceURLs"),
        }
    }

    /// From a list of rules, which may be null.
    pub fn list(rules: &Value) -> Vec<Self> {
        rules.as_array().into_iter().flatten().map(Self::from_value).collect()
    }

    /// As JSON; empty lists are left out.
    pub fn to_value(&self) -> Value {
        let lists = [
            ("verbs", &self.verbs),
            ("apiGroups", &self.groups),
            ("resources", &self.resources),
            ("resourceNames", &self.names),
            ("nonResourceURLs", &self.urls),
        ];
        let lists = lists.into_iter().filter(|(_, l)| !l.is_empty());
        Value::Object(lists.map(|(k, l)| (k.to_owned(), json!(l))).collect::<Map<_, _>>())
    }

    /// Whether the rule permits a request.
    pub fn allows(&self, a: &Attributes<'_>) -> bool {
        if !has(&self.verbs, "*", a.verb) {
            return false;
        }
        if a.resource_request {
            has(&self.groups, "*", a.group)
                && self.resources.iter().any(|r| is_resource(r, a.resource, a.subresource))
                && (self.names.is_empty() || self.names.iter().any(|n| n == a.name))
        } else {
            self.urls.iter().any(|u| covers_path(u, a.path))
        }
    }

    /// Whether everything that `sub`, a rule of [`Rule::pieces`], permits is permitted by this rule too.
    pub fn covers(&self, sub: &Self) -> bool {
        let all = |list: &[String], any: &str, wanted: &[String]| wanted.iter().all(|w| has(list, any, w));
        let resource = |wanted: &String| {
            has(&self.resources, "*", wanted)
                || wanted.split_once('/').is_some_and(|(_, sub)| self.resources.contains(&format!("*/{sub}")))
        };
        let names = match (self.names.is_empty(), sub.names.is_empty()) {
            (true, _) => true,
            (false, true) => false,
            (false, false) => sub.names.iter().all(|n| self.names.contains(n)),
        };
        all(&self.verbs, "*", &sub.verbs)
            && all(&self.groups, "*", &sub.groups)
            && sub.resources.iter().all(resource)
            && names
            && sub.urls.iter().all(|u| self.urls.iter().any(|rule| covers_path(rule, u)))
    }

    /// Rules of one verb, group, resource and name each, which together permit the same.
    pub fn pieces(&self) -> Vec<Self> {
        let mut out = Vec::new();
        for group in &self.groups {
            for resource in &self.resources {
                for verb in &self.verbs {
                    let one = Self {
                        verbs: vec![verb.clone()],
                        groups: vec![group.clone()],
                        resources: vec![resource.clone()],
                        ..Self::default()
                    };
                    if self.names.is_empty() {
                        out.push(one);
                    } else {
                        out.extend(self.names.iter().map(|n| Self { names: vec![n.clone()], ..one.clone() }));
                    }
                }
            }
        }
        for url in &self.urls {
            for verb in &self.verbs {
                out.push(Self { verbs: vec![verb.clone()], urls: vec![url.clone()], ..Self::default() });
            }
        }
        out
    }
}

/// Whether a rule's resource is the requested one. A star stands for a whole resource only: `deployments/*` is
/// nothing but its letters.
fn is_resource(rule: &str, resource: &str, subresource: &str) -> bool {
    if rule == "*" {
        return true;
    }
    if subresource.is_empty() {
        return rule == resource;
    }
    match rule.len().checked_sub(subresource.len() + 1) {
        Some(at) if rule.as_bytes()[at] == b'/' && rule.ends_with(subresource) => {
            matches!(&rule[..at], head if head == resource || head == "*")
        }
        _ => false,
    }
}

impl std::fmt::Display for Rule {
    /// As escalation errors name it: `{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let lists = [
            ("APIGroups", &self.groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.urls),
            ("ResourceNames", &self.names),
            ("Verbs", &self.verbs),
        ];
        let shown: Vec<String> = lists
            .into_iter()
            .filter(|(_, l)| !l.is_empty())
            .map(|(name, l)| format!("{name}:{}", quoted_list(l)))
            .collect();
        write!(f, "{{{}}}", shown.join(", "))
    }
}

/// Go's `%q` of a list of strings.
pub(crate) fn quoted_list(list: &[String]) -> String {
    let list: Vec<String> = list.iter().map(|s| quote(s)).collect();
    format!("[{}]", list.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::User;
    use proptest::prelude::*;

    fn rule(v: Value) -> Rule {
        Rule::from_value(&v)
    }

    #[test]
    fn resources() {
        let user = User::default();
        for (resources, group, resource, sub, want) in [
            (json!(["pods"]), "", "pods", "", true),
            (json!(["pods"]), "", "pods", "log", false),
            (json!(["pods/log"]), "", "pods", "log", true),
            (json!(["pods/log"]), "", "pods", "", false),
            (json!(["*"]), "", "pods", "log", true),
            (json!(["*/scale"]), "", "deployments", "scale", true),
            (json!(["*/scale"]), "", "deployments", "autoscale", false),
            (json!(["deployments/*"]), "", "deployments", "scale", false),
            (json!(["xpods/log"]), "", "pods", "log", false),
            (json!(["é/log"]), "", "pods", "log", false),
            (json!(["log"]), "", "pods", "log", false),
            (json!(["pods"]), "apps", "pods", "", false),
        ] {
            let r = rule(json!({"verbs": ["get"], "apiGroups": [""], "resources": resources}));
            let a = Attributes::resource(&user, "get", group, resource).subresource(sub);
            assert_eq!(r.allows(&a), want, "{r} {resource}/{sub}");
        }
    }

    #[test]
    fn names_and_paths() {
        let user = User::default();
        let r =
            rule(json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["*"], "resourceNames": ["a"],
            "nonResourceURLs": ["/logs*", "/x"]}));
        let a = Attributes::resource(&user, "get", "g", "r");
        assert!(r.allows(&a.name("a")) && !r.allows(&a.name("b")) && !r.allows(&a));
        for (path, want) in
            [("/logs/a", true), ("/logs", true), ("/log", false), ("/x", true), ("/x/", false)]
        {
            assert_eq!(r.allows(&Attributes::path(&user, "get", path)), want, "{path}");
            assert!(!r.allows(&Attributes::path(&user, "post", path)));
        }
        // A resource rule gives no paths, a path rule no resources.
        assert!(
            !rule(json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}))
                .allows(&Attributes::path(&user, "get", "/"))
        );
    }

    #[test]
    fn coverage() {
        for (owner, servant, want) in [
            (
                json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}),
                true,
            ),
            (
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["*/log"]}),
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}),
                true,
            ),
            (
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}),
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}),
                false,
            ),
            (
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}),
                false,
            ),
            (
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
                true,
            ),
            (
                json!({"verbs": ["get"], "nonResourceURLs": ["/a/*"]}),
                json!({"verbs": ["get"], "nonResourceURLs": ["/a/b"]}),
                true,
            ),
            (
                json!({"verbs": ["get"], "nonResourceURLs": ["/a/b"]}),
                json!({"verbs": ["get"], "nonResourceURLs": ["/a/*"]}),
                false,
            ),
            (
                json!({"verbs": ["get"], "nonResourceURLs": ["*"]}),
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}),
                false,
            ),
        ] {
            let pieces = rule(servant.clone()).pieces();
            assert_eq!(pieces.iter().all(|p| rule(owner.clone()).covers(p)), want, "{owner} {servant}");
        }
    }

    #[test]
    fn texts() {
        let r = rule(
            json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"], "resourceNames": ["a"]}),
        );
        assert_eq!(
            r.to_string(),
            r#"{APIGroups:[""], Resources:["pods"], ResourceNames:["a"], Verbs:["get" "list"]}"#
        );
        assert_eq!(Rule::from_value(&r.to_value()), r);
    }

    proptest! {
        #[test]
        fn a_covering_rule_allows_whatever_the_covered_one_does(
            owner in any_rule(), servant in any_rule(), verb in "get|list", resource in "pods|jobs", sub in "|log",
            name in "|a|b",
        ) {
            let user = User::default();
            let a = Attributes::resource(&user, &verb, "", &resource).subresource(&sub).name(&name);
            if servant.pieces().iter().all(|p| owner.covers(p)) && servant.allows(&a) {
                prop_assert!(owner.allows(&a), "{} {}", owner, servant);
            }
        }

        #[test]
        fn pieces_allow_the_same(rule in any_rule(), verb in "get|list", resource in "pods|jobs", sub in "|log", name in "|a|b") {
            let user = User::default();
            let a = Attributes::resource(&user, &verb, "", &resource).subresource(&sub).name(&name);
            prop_assert_eq!(rule.allows(&a), rule.pieces().iter().any(|p| p.allows(&a)));
        }
    }

    fn any_rule() -> impl Strategy<Value = Rule> {
        let list = |re: &'static str| proptest::collection::vec(re, 0..3);
        (list("get|list|\\*"), list("|\\*"), list("pods|jobs|pods/log|\\*/log|\\*"), list("a|b")).prop_map(
            |(verbs, groups, resources, names)| Rule { verbs, groups, resources, names, urls: Vec::new() },
        )
    }
}
