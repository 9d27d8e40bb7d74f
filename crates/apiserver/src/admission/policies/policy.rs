//! Policies and bindings as they are kept: parsed, their expressions compiled.
//!
//! What cannot be compiled is kept as its error, which whoever evaluates it meets; registration lets none through.

use homeostat_model::selector::Labels;
use homeostat_schema::cel::check::{Environment, Uses, Wanted};
use homeostat_schema::cel::{Program, Variables};
use homeostat_store::Revision;
use serde_json::Value;

use crate::admission::matching::Criteria;

/// A compiled expression, or why there is none.
pub(super) type Compiled = Result<Program, String>;

/// A policy.
pub(super) struct Policy {
    pub(super) name: String,
    pub(super) revision: Revision,
    /// Whether a request fails with an expression (`failurePolicy: Fail`).
    pub(super) fail: bool,
    pub(super) criteria: Criteria,
    pub(super) param_kind: Option<ParamKind>,
    pub(super) conditions: Vec<Compiled>,
    pub(super) variables: Variables,
    pub(super) validations: Vec<Validation>,
    pub(super) annotations: Vec<Annotation>,
    pub(super) mutations: Vec<Mutation>,
    /// Whether it looks again at what others change after it.
    pub(super) again: bool,
}

/// The kind of a policy's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ParamKind {
    pub(super) api_version: String,
    pub(super) kind: String,
}

/// What must be true of a request.
pub(super) struct Validation {
    pub(super) expression: Compiled,
    pub(super) message_expression: Option<Compiled>,
    /// The message, or what is said where there is none.
    pub(super) message: String,
    pub(super) reason: &'static str,
}

/// What is said of a request to whoever audits it.
pub(super) struct Annotation {
    pub(super) key: String,
    pub(super) value: Compiled,
}

/// A change.
pub(super) enum Mutation {
    /// An apply configuration.
    Apply(Compiled),
    /// Operations of a JSON patch.
    Patch(Compiled),
}

fn list(v: &Value) -> impl Iterator<Item = &Value> {
    v.as_array().into_iter().flatten()
}

fn text<'a>(v: &'a Value, key: &str) -> &'a str {
    v[key].as_str().unwrap_or_default()
}

impl Policy {
    /// Compiles the spec of a policy.
    pub(super) fn compile(name: &str, revision: Revision, spec: &Value, mutating: bool) -> Self {
        let kind = &spec["paramKind"];
        let mut env = Environment::new(!kind.is_null());
        let full = Uses { authorizer: true, variables: true };
        let variables = list(&spec["variables"])
            .map(|v| (text(v, "name").to_owned(), env.variable(text(v, "name"), text(v, "expression"))))
            .collect();
        let compile = |source: &str, wanted| env.compile(source, wanted, full);
        let mutation = |m: &Value| match text(m, "patchType") {
            "JSONPatch" => Mutation::Patch(compile(text(&m["jsonPatch"], "expression"), Wanted::Patches)),
            _ => Mutation::Apply(compile(text(&m["applyConfiguration"], "expression"), Wanted::Object)),
        };
        Self {
            name: name.to_owned(),
            revision,
            fail: spec["failurePolicy"] != "Ignore",
            criteria: Criteria::resources(&spec["matchConstraints"]),
            param_kind: kind.is_object().then(|| ParamKind {
                api_version: text(kind, "apiVersion").to_owned(),
                kind: text(kind, "kind").to_owned(),
            }),
            conditions: list(&spec["matchConditions"])
                .map(|c| compile(text(c, "expression"), Wanted::Bool))
                .collect(),
            variables,
            validations: list(&spec["validations"]).map(|v| Validation::compile(v, &env)).collect(),
            annotations: list(&spec["auditAnnotations"])
                .map(|v| Annotation {
                    key: text(v, "key").to_owned(),
                    value: compile(text(v, "valueExpression"), Wanted::TextOrNull),
                })
                .collect(),
            mutations: list(&spec["mutations"]).filter(|_| mutating).map(mutation).collect(),
            again: spec["reinvocationPolicy"] == "IfNeeded",
        }
    }
}

impl Validation {
    fn compile(v: &Value, env: &Environment) -> Self {
        let full = Uses { authorizer: true, variables: true };
        let source = text(v, "expression");
        let message = match text(v, "message").trim() {
            "" => format!("failed expression: {}", source.trim()),
            message => message.to_owned(),
        };
        Self {
            expression: env.compile(source, Wanted::Bool, full),
            message_expression: Some(text(v, "messageExpression"))
                .filter(|m| !m.is_empty())
                .map(|m| env.compile(m, Wanted::Text, Uses { authorizer: false, variables: true })),
            message,
            reason: match text(v, "reason") {
                "Forbidden" => "Forbidden",
                "RequestEntityTooLarge" => "RequestEntityTooLarge",
                "Unauthorized" => "Unauthorized",
                _ => "Invalid",
            },
        }
    }
}

/// What puts a policy in force.
pub(super) struct Binding {
    pub(super) name: String,
    /// Absent: for all requests that the policy is for.
    pub(super) criteria: Option<Criteria>,
    pub(super) params: Option<ParamRef>,
    /// `Deny`, `Warn`, `Audit`.
    pub(super) actions: Vec<String>,
}

/// Which parameters a binding means.
pub(super) struct ParamRef {
    /// Empty where they are selected.
    pub(super) name: String,
    /// Empty: the request's.
    pub(super) namespace: String,
    pub(super) selector: Option<Labels>,
    /// Whether a request is denied where there are none.
    pub(super) required: bool,
}

impl Binding {
    /// Parses the spec of a binding.
    pub(super) fn parse(name: &str, spec: &Value) -> Self {
        let reference = &spec["paramRef"];
        Self {
            name: name.to_owned(),
            criteria: spec["matchResources"]
                .is_object()
                .then(|| Criteria::resources(&spec["matchResources"])),
            params: reference.is_object().then(|| ParamRef {
                name: text(reference, "name").to_owned(),
                namespace: text(reference, "namespace").to_owned(),
                selector: reference["selector"]
                    .is_object()
                    .then(|| Labels::from_valid(&reference["selector"])),
                required: reference["parameterNotFoundAction"] == "Deny",
            }),
            actions: list(&spec["validationActions"]).filter_map(Value::as_str).map(str::to_owned).collect(),
        }
    }
}
