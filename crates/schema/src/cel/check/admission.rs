//! The environments of admission: which variables an expression of a policy or webhook has, of which types, and what
//! it may come to.
//!
//! Objects have no type when a policy is registered, for it may match several; [`Environment::typed`] is for warnings
//! afterwards. Nothing costs too much here: policies have a budget at run time only. Invariant: what compiles names only
//! variables that its evaluation will have.

use std::rc::Rc;

use super::decl::{self, Decl};
use super::infer::{Env, Node, OBJECT, PATCH};
use super::signatures::{AUTHORIZER, RESOURCE_CHECK};
use super::types::{self, Type};
use crate::cel::program::Program;
use crate::cel::{parse, report};
use crate::schema::Schema;

/// What an expression is to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// A condition.
    Bool,
    /// A message.
    Text,
    /// The value of an annotation, or none.
    TextOrNull,
    /// An apply configuration: `Object{…}`.
    Object,
    /// The operations of a JSON patch: `[JSONPatch{…}]`.
    Patches,
    /// Anything.
    Any,
}

/// What an expression may use besides the variables that all have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uses {
    /// `authorizer`.
    pub authorizer: bool,
    /// `variables`.
    pub variables: bool,
}

/// Variables and their types. See the module's head.
#[derive(Debug)]
pub struct Environment {
    object: Rc<Decl>,
    params: Option<Rc<Decl>>,
    request: Rc<Decl>,
    namespace: Rc<Decl>,
    variables: Vec<(String, Type)>,
    /// Whether `authorizer.requestResource` is known, which the reference forgets where it checks types.
    request_resource: bool,
}

impl Environment {
    /// Of a policy or webhook; `params` where it names a kind of parameters.
    pub fn new(params: bool) -> Self {
        let dynamic = || Rc::new(decl::plain(Type::Dyn));
        Self {
            object: dynamic(),
            params: params.then(dynamic),
            request: Rc::new(request()),
            namespace: Rc::new(namespace()),
            variables: Vec::new(),
            request_resource: true,
        }
    }

    /// Of a policy on objects of a kind, whose schema and name these are. Parameters of a kind without schema may be
    /// anything.
    pub fn typed(object: (&Schema, &str), params: Option<Option<(&Schema, &str)>>) -> Self {
        let declare = |(schema, kind): (&Schema, &str)| {
            Rc::new(decl::published(schema, kind).unwrap_or_else(|| decl::plain(Type::Dyn)))
        };
        let dynamic = Rc::new(decl::plain(Type::Dyn));
        Self {
            object: declare(object),
            params: params.map(|p| p.map_or(dynamic, declare)),
            request_resource: false,
            ..Self::new(false)
        }
    }

    /// Compiles a variable, which later expressions then have; where it is wrong it may be anything.
    ///
    /// # Errors
    /// As [`Environment::compile`].
    pub fn variable(&mut self, name: &str, source: &str) -> Result<Program, String> {
        let compiled = self.judge(source, Uses { authorizer: true, variables: true }, Wanted::Any);
        let ty = compiled.as_ref().map_or(Type::Dyn, |(_, ty)| ty.kept());
        self.variables.retain(|(known, _)| known != name);
        self.variables.push((name.to_owned(), ty));
        compiled.map(|(program, _)| program).map_err(failed)
    }

    /// Compiles an expression.
    ///
    /// # Errors
    /// `compilation failed: ERROR: …` with all errors, or `must evaluate to …`.
    pub fn compile(&self, source: &str, wanted: Wanted, uses: Uses) -> Result<Program, String> {
        let (program, ty) = self.judge(source, uses, wanted).map_err(failed)?;
        let shown = types::Declared(&ty);
        let (fits, name) = match wanted {
            Wanted::Any => (true, ""),
            Wanted::Bool => (matches!(ty, Type::Bool), "bool"),
            Wanted::Text => (matches!(ty, Type::Text), "string"),
            Wanted::TextOrNull => (matches!(ty, Type::Text | Type::Null), "one of [string null_type]"),
            Wanted::Object => (matches!(&ty, Type::Struct(name) if **name == *OBJECT), OBJECT),
            Wanted::Patches => {
                let patches = |item: &Type| matches!(item, Type::Struct(name) if **name == *PATCH);
                (matches!(&ty, Type::List(item) if patches(item)), "list(JSONPatch)")
            }
        };
        if fits { Ok(program) } else { Err(format!("must evaluate to {name} but got {shown}")) }
    }

    /// Checks an expression that may come to anything. The error is only the errors' text.
    ///
    /// # Errors
    /// All that is wrong.
    pub fn check(&self, source: &str) -> Result<(), String> {
        self.judge(source, Uses { authorizer: true, variables: true }, Wanted::Any).map(drop)
    }

    fn judge(&self, source: &str, uses: Uses, wanted: Wanted) -> Result<(Program, Type), String> {
        let expr = parse::parse(source)?;
        let variables = self.declared();
        let dynamic = |ty: Type| Node::new(ty, (1, 1));
        let mut known: Vec<(&str, Node)> = vec![
            ("object", Node::of(&self.object, (1, 1))),
            ("oldObject", Node::of(&self.object, (1, 1))),
            ("request", Node::of(&self.request, (1, 1))),
            ("namespaceObject", Node::of(&self.namespace, (1, 1))),
        ];
        if let Some(params) = &self.params {
            known.push(("params", Node::of(params, (1, 1))));
        }
        if uses.authorizer {
            known.push(("authorizer", dynamic(AUTHORIZER)));
            if self.request_resource {
                known.push(("authorizer.requestResource", dynamic(RESOURCE_CHECK)));
            }
        }
        if uses.variables {
            known.push(("variables", Node::of(&variables, (1, 1))));
        }
        let mut env = Env::new(self.object.clone(), known);
        if matches!(wanted, Wanted::Object | Wanted::Patches) {
            env = env.patching();
        }
        let ty = env.judge(&expr).map(|node| node.ty).map_err(|faults| report::display(source, faults))?;
        Ok((Program::new(source, expr), ty))
    }

    /// The type of `variables`.
    fn declared(&self) -> Rc<Decl> {
        let fields = self.variables.iter().map(|(name, ty)| (name.as_str(), decl::plain(ty.clone())));
        Rc::new(decl::object("kubernetes.variables", fields))
    }
}

fn failed(why: String) -> String {
    format!("compilation failed: {why}")
}

fn text() -> Decl {
    decl::plain(Type::Text)
}

fn texts() -> Decl {
    decl::list(text())
}

/// The request, without what is a variable of its own.
fn request() -> Decl {
    let kind = || {
        let fields = [("group", text()), ("version", text()), ("kind", text())];
        decl::object("kubernetes.GroupVersionKind", fields)
    };
    let resource = || {
        let fields = [("group", text()), ("version", text()), ("resource", text())];
        decl::object("kubernetes.GroupVersionResource", fields)
    };
    let user = decl::object(
        "kubernetes.UserInfo",
        [("username", text()), ("uid", text()), ("groups", texts()), ("extra", decl::map(texts()))],
    );
    decl::object(
        "kubernetes.AdmissionRequest",
        [
            ("kind", kind()),
            ("resource", resource()),
            ("subResource", text()),
            ("requestKind", kind()),
            ("requestResource", resource()),
            ("requestSubResource", text()),
            ("name", text()),
            ("namespace", text()),
            ("operation", text()),
            ("userInfo", user),
            ("dryRun", decl::plain(Type::Bool)),
            ("options", decl::plain(Type::Dyn)),
        ],
    )
}

/// The namespace that the object is in, as far as expressions see it.
fn namespace() -> Decl {
    let (int, time) = (|| decl::plain(Type::Int), || decl::plain(Type::Timestamp));
    let labels = || decl::map(text());
    let metadata = decl::object(
        "kubernetes.NamespaceMetadata",
        [
            ("name", text()),
            ("generateName", text()),
            ("namespace", text()),
            ("labels", labels()),
            ("annotations", labels()),
            ("UID", text()),
            ("creationTimestamp", time()),
            ("deletionGracePeriodSeconds", int()),
            ("deletionTimestamp", time()),
            ("generation", int()),
            ("resourceVersion", text()),
            ("finalizers", texts()),
        ],
    );
    let condition = decl::object(
        "kubernetes.NamespaceCondition",
        [
            ("status", text()),
            ("type", text()),
            ("lastTransitionTime", time()),
            ("message", text()),
            ("reason", text()),
        ],
    );
    let spec = decl::object("kubernetes.NamespaceSpec", [("finalizers", texts())]);
    let status = [("conditions", decl::list(condition)), ("phase", text())];
    let status = decl::object("kubernetes.NamespaceStatus", status);
    decl::object("kubernetes.Namespace", [("metadata", metadata), ("spec", spec), ("status", status)])
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ALL: Uses = Uses { authorizer: true, variables: true };

    fn first_line(why: &str) -> &str {
        why.lines().next().unwrap_or_default()
    }

    #[test]
    fn expressions_compile_or_say_why_not() {
        let mut env = Environment::new(true);
        assert!(env.variable("names", "object.spec.containers.map(c, c.name)").is_ok());
        assert!(env.variable("big", "object.spec.replicas > 5").is_ok());
        for (source, wanted, want) in [
            ("object.spec.x == params.y && oldObject == null", Wanted::Bool, ""),
            ("variables.big && variables.names.exists(n, n == 'a')", Wanted::Bool, ""),
            ("object.ok", Wanted::Bool, "must evaluate to bool but got dyn"),
            ("object.n + 1", Wanted::Bool, "must evaluate to bool but got int"),
            ("1", Wanted::Text, "must evaluate to string but got int"),
            ("null", Wanted::TextOrNull, ""),
            (
                "timestamp('2024-01-01T00:00:00Z')",
                Wanted::TextOrNull,
                "must evaluate to one of [string null_type] but got google.protobuf.Timestamp",
            ),
            (
                "'a' == 1",
                Wanted::Bool,
                "compilation failed: ERROR: <input>:1:5: found no matching overload for '_==_' applied to '(string, int)'",
            ),
            (
                "foo('x')",
                Wanted::Bool,
                "compilation failed: ERROR: <input>:1:4: undeclared reference to 'foo' (in container '')",
            ),
            (
                "variables.none",
                Wanted::Any,
                "compilation failed: ERROR: <input>:1:10: undefined field 'none'",
            ),
            (
                "request.object == 1",
                Wanted::Bool,
                "compilation failed: ERROR: <input>:1:8: undefined field 'object'",
            ),
            (
                "request.userInfo.groups.exists(g, g == 1)",
                Wanted::Bool,
                "compilation failed: ERROR: <input>:1:37: found no matching overload for '_==_' applied to '(string, int)'",
            ),
            (
                "request.kind == 1",
                Wanted::Bool,
                "compilation failed: ERROR: <input>:1:14: found no matching overload for '_==_' applied to '(kubernetes.GroupVersionKind, int)'",
            ),
            ("namespaceObject.metadata.labels['a'] == 'b'", Wanted::Bool, ""),
            ("authorizer.requestResource.check('get').allowed()", Wanted::Bool, ""),
            (
                "authorizer.group('').resource('pods').namespace('a').name('b').check('get').reason() == ''",
                Wanted::Bool,
                "",
            ),
            (
                "authorizer.requests",
                Wanted::Any,
                "compilation failed: ERROR: <input>:1:11: unexpected failed resolution of 'kubernetes.authorization.Authorizer'",
            ),
            ("Object{spec: Object.spec{a: 1, list: [Object.spec.list{name: 'a'}]}}", Wanted::Object, ""),
            ("1", Wanted::Object, "must evaluate to Object but got int"),
            ("Object{}", Wanted::Patches, "must evaluate to list(JSONPatch) but got Object"),
            ("[]", Wanted::Patches, "must evaluate to list(JSONPatch) but got list(dyn)"),
            (
                "[JSONPatch{op: 'add', path: '/a/' + jsonpatch.escapeKey('b'), value: [1]}]",
                Wanted::Patches,
                "",
            ),
            (
                "[JSONPatch{op: 1}]",
                Wanted::Patches,
                "compilation failed: ERROR: <input>:1:14: expected type of field 'op' is 'string' but provided type is 'int'",
            ),
            (
                "[JSONPatch{ops: 'a'}]",
                Wanted::Patches,
                "compilation failed: ERROR: <input>:1:15: undefined field 'ops'",
            ),
            (
                "Objekt{}",
                Wanted::Object,
                "compilation failed: ERROR: <input>:1:7: undeclared reference to 'Objekt' (in container '')",
            ),
            (
                "Object{} == null",
                Wanted::Bool,
                "compilation failed: ERROR: <input>:1:7: undeclared reference to 'Object' (in container '')",
            ),
            (
                "duration('x') == duration('1s')",
                Wanted::Bool,
                "compilation failed: ERROR: <input>:1:10: invalid duration argument",
            ),
        ] {
            let got = env.compile(source, wanted, ALL).err().unwrap_or_default();
            assert_eq!(first_line(&got), want, "{source}");
        }
    }

    #[test]
    fn all_errors_are_told() {
        let env = Environment::new(false);
        let why = env.compile("params.x == 1 && foo(1) && 'a' > 1", Wanted::Bool, ALL).unwrap_err();
        let lines: Vec<&str> = why.lines().filter(|l| l.contains("ERROR: ")).collect();
        assert_eq!(
            lines,
            [
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')",
                "ERROR: <input>:1:21: undeclared reference to 'foo' (in container '')",
                "ERROR: <input>:1:32: found no matching overload for '_>_' applied to '(string, int)'",
            ]
        );
        let why = env.compile("jsonpatch.escapeKey('a') == ''", Wanted::Bool, ALL).unwrap_err();
        assert!(why.contains(":1:1: undeclared reference to 'jsonpatch'"), "{why}");
        assert!(why.contains(":1:20: undeclared reference to 'escapeKey'"), "{why}");
        let bare = Uses::default();
        assert!(env.compile("variables.x", Wanted::Any, bare).is_err());
        assert!(env.compile("authorizer.path('/').check('get').allowed()", Wanted::Bool, bare).is_err());
    }

    #[test]
    fn types_of_objects_are_known_afterwards() {
        let schema = Schema::compile(&json!({"type": "object", "properties": {"spec": {"type": "object", "properties": {
            "replicas": {"type": "integer"}, "any": {"x-kubernetes-int-or-string": true},
            "items": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}}}}}}))
        .unwrap();
        let mut env = Environment::typed((&schema, "Widget"), Some(None));
        assert!(env.variable("n", "object.spec.replicas").is_ok());
        for (source, want) in [
            ("object.spec.replicas > 1 && params.anything == 1 && object.spec.any == 'x'", ""),
            ("object.spec.items.all(i, i.name != '') && object.metadata.labels['a'] == 'b'", ""),
            ("object.replicas > 1", "ERROR: <input>:1:7: undefined field 'replicas'"),
            (
                "object.spec.replicas > '1'",
                "ERROR: <input>:1:22: found no matching overload for '_>_' applied to '(int, string)'",
            ),
            (
                "variables.n == 'x'",
                "ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(int, string)'",
            ),
            (
                "object.spec == 1",
                "ERROR: <input>:1:13: found no matching overload for '_==_' applied to '(Widget.spec, int)'",
            ),
        ] {
            let got = env.check(source).err().unwrap_or_default();
            assert_eq!(first_line(&got), want, "{source}");
        }
    }
}
