//! Audit policies: how much of which request is told, as an `audit.k8s.io/v1` Policy says it.
//!
//! The first rule that fits a request decides; where none does, nothing is told. A pure function of the policy and the
//! request's attributes. Source: apiserver `pkg/audit/policy` and `pkg/apis/audit/validation`.

use homeostat_access::Attributes;
use homeostat_model::field;
use homeostat_model::validation;
use homeostat_schema::decode::{MAX_DEPTH, parse_yaml};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;

use super::{Interest, Level, Stage, Stages};

/// Rules by which the level of requests is decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    rules: Vec<Rule>,
    omit_stages: Stages,
    omit_managed_fields: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Rule {
    level: Level,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<Resources>,
    namespaces: Vec<String>,
    paths: Vec<String>,
    omit_stages: Stages,
    omit_managed_fields: Option<bool>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Resources {
    group: String,
    resources: Vec<String>,
    resource_names: Vec<String>,
}

/// A policy as it is written.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct Written {
    api_version: String,
    kind: String,
    #[serde(rename = "metadata")]
    _metadata: Option<IgnoredAny>,
    rules: Vec<Value>,
    omit_stages: Vec<String>,
    omit_managed_fields: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "camelCase")]
struct WrittenRule {
    level: String,
    users: Vec<String>,
    user_groups: Vec<String>,
    verbs: Vec<String>,
    resources: Vec<Resources>,
    namespaces: Vec<String>,
    #[serde(rename = "nonResourceURLs")]
    paths: Vec<String>,
    omit_stages: Vec<String>,
    omit_managed_fields: Option<bool>,
}

const LEVELS: [(&str, Level); 4] = [
    ("None", Level::None),
    ("Metadata", Level::Metadata),
    ("Request", Level::Request),
    ("RequestResponse", Level::RequestResponse),
];

impl Policy {
    /// The policy that tells the same of every request.
    pub fn all(level: Level) -> Self {
        let rule = Rule { level, ..Rule::default() };
        Self { rules: vec![rule], omit_stages: Stages::default(), omit_managed_fields: false }
    }

    /// Reads a policy in YAML or JSON. Fields that the type does not have are refused: a rule that is not what its
    /// author meant would silently tell too little.
    ///
    /// # Errors
    /// One line that says what is wrong, with the reference's words for what the reference refuses.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (mut value, duplicates) =
            parse_yaml(text.as_bytes(), MAX_DEPTH).map_err(|e| format!("failed decoding: {e}"))?;
        if let Some(first) = duplicates.first() {
            return Err(format!("failed decoding: {first}"));
        }
        drop_nulls(&mut value);
        let written: Written = serde_json::from_value(value).map_err(|e| format!("failed decoding: {e}"))?;
        if written.api_version != "audit.k8s.io/v1" || written.kind != "Policy" {
            return Err(format!(
                "unknown group version field {}, Kind={} in policy; write apiVersion: audit.k8s.io/v1 and kind: Policy",
                written.api_version, written.kind
            ));
        }
        let mut errors = Vec::new();
        let omit_stages = stages(&written.omit_stages, "omitStages", &mut errors);
        let mut rules = Vec::with_capacity(written.rules.len());
        for (i, rule) in written.rules.into_iter().enumerate() {
            let path = field::index("rules", i);
            let rule = serde_json::from_value(rule).map_err(|e| format!("failed decoding: {path}: {e}"))?;
            rules.push(Rule::check(rule, &path, &mut errors));
        }
        match errors.as_slice() {
            [] if rules.is_empty() => Err("loaded illegal policy with 0 rules".to_owned()),
            [] => Ok(Self { rules, omit_stages, omit_managed_fields: written.omit_managed_fields }),
            [one] => Err(one.to_string()),
            many => Err(format!("[{}]", many.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "))),
        }
    }

    /// How much of a request is told.
    pub fn interest(&self, request: &Attributes<'_>) -> Interest {
        match self.rules.iter().find(|r| r.fits(request)) {
            None => Interest { omit_stages: self.omit_stages, ..Interest::default() },
            Some(rule) => Interest {
                level: rule.level,
                omit_stages: self.omit_stages.and(rule.omit_stages),
                omit_managed_fields: rule.omit_managed_fields.unwrap_or(self.omit_managed_fields),
            },
        }
    }
}

/// To Go an explicit null is as good as an absent field.
fn drop_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, v| !v.is_null());
            map.values_mut().for_each(drop_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(drop_nulls),
        _ => {}
    }
}

fn stages(names: &[String], path: &str, errors: &mut Vec<field::Error>) -> Stages {
    let find = |name: &str| Stage::ALL.into_iter().find(|s| s.name() == name);
    for (i, name) in names.iter().enumerate().filter(|(_, name)| find(name).is_none()) {
        let allowed = Stage::ALL.map(Stage::name).join(",");
        let why = format!("allowed stages are {allowed}");
        errors.push(field::Error::invalid(field::index(path, i), name.as_str(), why));
    }
    names.iter().filter_map(|name| find(name)).collect()
}

impl Rule {
    fn check(rule: WrittenRule, path: &str, errors: &mut Vec<field::Error>) -> Self {
        let at = |name: &str| field::child(path, name);
        let level = LEVELS.iter().find(|(name, _)| *name == rule.level).map(|(_, level)| *level);
        if rule.level.is_empty() {
            errors.push(field::Error::required(at("level"), ""));
        } else if level.is_none() {
            errors.push(field::Error::not_supported(
                at("level"),
                rule.level.as_str(),
                &LEVELS.map(|(name, _)| name),
            ));
        }
        for (i, url) in rule.paths.iter().enumerate().filter(|(_, url)| *url != "*") {
            let mut refuse = |why: &str| {
                errors.push(field::Error::invalid(
                    field::index(&at("nonResourceURLs"), i),
                    url.as_str(),
                    why,
                ));
            };
            if !url.starts_with('/') {
                refuse("non-resource URL rules must begin with a '/' character");
            }
            if url.strip_suffix('*').unwrap_or(url).contains('*') {
                refuse("non-resource URL wildcards '*' must be the final character of the rule");
            }
        }
        for of in &rule.resources {
            let why = validation::dns1123_subdomain(&of.group, false);
            if !of.group.is_empty() && !why.is_empty() {
                let path = field::child(&at("resources"), "group");
                errors.push(field::Error::invalid(path, of.group.as_str(), why.join(",")));
            }
            if !of.resource_names.is_empty() && of.resources.is_empty() {
                let path = field::child(&at("resources"), "resourceNames");
                let why = "using resourceNames requires at least one resource";
                errors.push(field::Error::invalid(path, of.resource_names.clone(), why));
            }
        }
        let omit_stages = stages(&rule.omit_stages, &at("omitStages"), errors);
        let of_resources = !rule.resources.is_empty() || !rule.namespaces.is_empty();
        if !rule.paths.is_empty() && of_resources {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(field::Error::invalid(at("nonResourceURLs"), rule.paths.clone(), why));
        }
        Self {
            level: level.unwrap_or_default(),
            users: rule.users,
            groups: rule.user_groups,
            verbs: rule.verbs,
            resources: rule.resources,
            namespaces: rule.namespaces,
            paths: rule.paths,
            omit_stages,
            omit_managed_fields: rule.omit_managed_fields,
        }
    }

    fn fits(&self, r: &Attributes<'_>) -> bool {
        let free_or =
            |list: &[String], has: &dyn Fn(&String) -> bool| list.is_empty() || list.iter().any(has);
        if !free_or(&self.users, &|u| *u == r.user.name)
            || !free_or(&self.groups, &|g| r.user.is_in(g))
            || !free_or(&self.verbs, &|v| v == r.verb)
        {
            return false;
        }
        if !self.namespaces.is_empty() || !self.resources.is_empty() {
            return r.resource_request
                && free_or(&self.namespaces, &|n| n == r.namespace)
                && (self.resources.is_empty() || self.resources.iter().any(|of| of.fits(r)));
        }
        self.paths.is_empty() || (!r.resource_request && self.paths.iter().any(|p| path_fits(p, r.path)))
    }
}

impl Resources {
    fn fits(&self, r: &Attributes<'_>) -> bool {
        if self.group != r.group {
            return false;
        }
        if self.resources.is_empty() {
            return true;
        }
        let named = self.resource_names.is_empty() || self.resource_names.iter().any(|n| n == r.name);
        named && self.resources.iter().any(|of| resource_fits(of, r.resource, r.subresource))
    }
}

/// `*`, `pods`, `pods/log`, `pods/*` (pods and their subresources) or `*/scale`.
fn resource_fits(spec: &str, resource: &str, subresource: &str) -> bool {
    if spec == "*" {
        return true;
    }
    match spec.split_once('/') {
        None => spec == resource && subresource.is_empty(),
        Some((of, "*")) if of == resource => true,
        Some(("*", sub)) => !subresource.is_empty() && sub == subresource,
        Some((of, sub)) => of == resource && sub == subresource,
    }
}

fn path_fits(spec: &str, path: &str) -> bool {
    spec == "*" || spec == path || (spec.ends_with('*') && path.starts_with(spec.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use homeostat_access::User;

    use super::*;

    fn policy(rules: &str) -> Policy {
        Policy::parse(&format!("apiVersion: audit.k8s.io/v1\nkind: Policy\nrules:\n{rules}")).unwrap()
    }

    /// `verb group/resource[/sub] [namespace [name]]` or `verb /path`, by jane of developers.
    fn level(policy: &Policy, request: &str) -> Level {
        let jane = User::new("jane", ["developers"]);
        let words: Vec<&str> = request.split(' ').collect();
        let word = |i: usize| words.get(i).copied().unwrap_or_default();
        if word(1).starts_with('/') {
            return policy.interest(&Attributes::path(&jane, word(0), word(1))).level;
        }
        let (group, rest) = word(1).split_once(':').unwrap();
        let (resource, sub) = rest.split_once('/').unwrap_or((rest, ""));
        let a = Attributes::resource(&jane, word(0), group, resource).subresource(sub);
        policy.interest(&a.namespace(word(2)).name(word(3))).level
    }

    #[track_caller]
    fn check(rule: &str, fits: &[&str], not: &[&str]) {
        let p = policy(&format!("- {{level: Request, {rule}}}\n"));
        for request in fits {
            assert_eq!(level(&p, request), Level::Request, "{rule} and {request}");
        }
        for request in not {
            assert_eq!(level(&p, request), Level::None, "{rule} and {request}");
        }
    }

    #[test]
    fn rules_fit_as_the_references() {
        let (pods, log, scale) = ("get :pods d p", "get :pods/log d p", "patch apps:deployments/scale d w");
        let (node, path) = ("get :nodes  n", "get /healthz/ping");
        check("verbs: []", &[pods, log, scale, node, path], &[]);
        check("users: [jane, john]", &[pods, path], &[]);
        check("users: [john]", &[], &[pods, path]);
        check("userGroups: [ops, developers]", &[pods], &[]);
        check("userGroups: [ops]", &[], &[pods]);
        check("verbs: [patch, list]", &[scale], &[pods, path]);
        check("namespaces: [d]", &[pods, scale], &[node, path]);
        check("namespaces: ['']", &[node], &[pods, path]);
        check("resources: [{group: ''}]", &[pods, log, node], &[scale, path]);
        check("resources: [{resources: [pods]}]", &[pods], &[log, scale, node]);
        check("resources: [{resources: ['pods/*']}]", &[pods, log], &[node]);
        check("resources: [{resources: ['pods/log']}]", &[log], &[pods]);
        check("resources: [{resources: ['*/log']}]", &[log], &[pods, scale]);
        check("resources: [{resources: ['*']}]", &[pods, log, node], &[scale]);
        check("resources: [{group: apps, resources: ['*/scale']}]", &[scale], &[log]);
        check("resources: [{resources: [pods], resourceNames: [p]}]", &[pods], &["get :pods d q", log]);
        check("resources: [{group: apps}, {resources: [nodes]}]", &[scale, node], &[pods]);
        check("namespaces: [e], resources: [{resources: [pods]}]", &[], &[pods]);
        check("nonResourceURLs: ['/healthz*']", &[path, "get /healthz"], &[pods, "get /livez"]);
        check("nonResourceURLs: [/healthz]", &["get /healthz"], &[path]);
        check("nonResourceURLs: ['*']", &[path, "get /"], &[pods]);
    }

    #[test]
    fn the_first_rule_that_fits_decides() {
        let p = policy(
            "- {level: None, resources: [{resources: [secrets]}]}\n- {level: RequestResponse, verbs: [create]}\n- {level: Metadata}\n",
        );
        assert_eq!(level(&p, "create :secrets d s"), Level::None);
        assert_eq!(level(&p, "create :pods d s"), Level::RequestResponse);
        assert_eq!(level(&p, "get :pods d s"), Level::Metadata);
    }

    #[test]
    fn stages_add_up_and_managed_fields_are_overridden() {
        let p = Policy::parse(
            "apiVersion: audit.k8s.io/v1\nkind: Policy\nmetadata: {name: p}\nomitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n\
             - {level: Request, verbs: [get], omitStages: [Panic], omitManagedFields: false}\n- {level: Metadata, users: null}\n",
        )
        .unwrap();
        let jane = User::new("jane", [""; 0]);
        let get = p.interest(&Attributes::path(&jane, "get", "/"));
        let omitted = |i: Interest| Stage::ALL.map(|s| i.omit_stages.has(s));
        assert_eq!(omitted(get), [true, false, false, true]);
        assert!(!get.omit_managed_fields);
        let post = p.interest(&Attributes::path(&jane, "post", "/"));
        assert_eq!(omitted(post), [true, false, false, false]);
        assert!(post.omit_managed_fields);
    }

    #[test]
    fn wrong_policies_are_refused_in_one_line() {
        let head = "apiVersion: audit.k8s.io/v1\nkind: Policy\n";
        for (text, want) in [
            ("rules: []", "loaded illegal policy with 0 rules"),
            ("", "loaded illegal policy with 0 rules"),
            ("rules: [{verbs: [get]}]", "rules[0].level: Required value"),
            (
                "rules: [{level: Metadata}, {level: metadata}]",
                "rules[1].level: Unsupported value: \"metadata\": supported values: \"None\", \"Metadata\", \"Request\", \"RequestResponse\"",
            ),
            (
                "rules: [{level: None, nonResourceURLs: [healthz]}]",
                "rules[0].nonResourceURLs[0]: Invalid value: \"healthz\": non-resource URL rules must begin with a '/' character",
            ),
            (
                "rules: [{level: None, nonResourceURLs: ['/a*/b']}]",
                "rules[0].nonResourceURLs[0]: Invalid value: \"/a*/b\": non-resource URL wildcards '*' must be the final character of the rule",
            ),
            (
                "rules: [{level: None, nonResourceURLs: [/a], namespaces: [d]}]",
                "rules[0].nonResourceURLs: Invalid value: [\"/a\"]: rules cannot apply to both regular resources and non-resource URLs",
            ),
            (
                "rules: [{level: None, resources: [{resourceNames: [a]}]}]",
                "rules[0].resources.resourceNames: Invalid value: [\"a\"]: using resourceNames requires at least one resource",
            ),
            (
                "omitStages: [Done]\nrules: [{level: None}]",
                "omitStages[0]: Invalid value: \"Done\": allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic",
            ),
        ] {
            assert_eq!(Policy::parse(&format!("{head}{text}")), Err(want.to_owned()), "{text}");
        }
        for (text, want) in [
            (
                "rules: [{level: None, resources: [{group: a/v1}]}]",
                "rules[0].resources.group: Invalid value: \"a/v1\"",
            ),
            ("rules: [{level: None, verb: [get]}]", "failed decoding: rules[0]: unknown field `verb`"),
            ("rules: [{level: None, verbs: get}]", "failed decoding: rules[0]: invalid type: string"),
            ("rules: {", "failed decoding: "),
            ("rules: [{level: None}]\nrules: [{level: None}]", "failed decoding: "),
        ] {
            let why = Policy::parse(&format!("{head}{text}")).unwrap_err();
            assert!(why.starts_with(want) && !why.contains('\n'), "{text}: {why}");
        }
        for head in
            ["", "apiVersion: audit.k8s.io/v2\nkind: Policy\n", "apiVersion: audit.k8s.io/v1\nkind: Event\n"]
        {
            let why = Policy::parse(&format!("{head}rules: [{{level: None}}]")).unwrap_err();
            assert!(why.starts_with("unknown group version field "), "{why}");
        }
    }
}
