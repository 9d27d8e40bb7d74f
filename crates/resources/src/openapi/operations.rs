//! Which requests a group and version answers, independent of OpenAPI's version: paths, operations, parameters.

use std::collections::BTreeMap;

use super::published;
use super::{Served, Slot};
use crate::definition::{OpenApi, Origin, Subresource};

/// A query parameter.
pub(super) struct Param {
    pub(super) name: &'static str,
    pub(super) kind: &'static str,
    pub(super) about: &'static str,
}

const fn param(name: &'static str, kind: &'static str, about: &'static str) -> Param {
    Param { name, kind, about }
}

pub(super) const PRETTY: Param = param("pretty", "string", "If 'true', then the output is pretty printed.");
pub(super) const DRY_RUN: Param = param(
    "dryRun",
    "string",
    "When present, indicates that modifications should not be persisted. Valid values are: All.",
);
const FIELD_MANAGER: Param =
    param("fieldManager", "string", "A name of the actor or entity that is making these changes.");
const FIELD_VALIDATION: Param = param(
    "fieldValidation",
    "string",
    "How the server handles unknown or duplicate fields in the request: Ignore, Warn or Strict.",
);
const FORCE: Param =
    param("force", "boolean", "Re-acquire conflicting fields owned by others; apply requests only.");
const GRACE: Param = param("gracePeriodSeconds", "integer", "Seconds before the object should be deleted.");
const ORPHAN: Param = param("orphanDependents", "boolean", "Deprecated: use propagationPolicy.");
const PROPAGATION: Param = param(
    "propagationPolicy",
    "string",
    "Whether and how garbage collection is performed: Orphan, Background or Foreground.",
);
const RESOURCE_VERSION: Param = param(
    "resourceVersion",
    "string",
    "A constraint on what resource versions a request may be served from.",
);
static LIST: [Param; 10] = [
    param("allowWatchBookmarks", "boolean", "Requests watch events with type BOOKMARK."),
    param("continue", "string", "Retrieves more results of an earlier list with a limit."),
    param("fieldSelector", "string", "Restricts the list of returned objects by their fields."),
    param("labelSelector", "string", "Restricts the list of returned objects by their labels."),
    param("limit", "integer", "The maximum number of responses to return."),
    RESOURCE_VERSION,
    param("resourceVersionMatch", "string", "How resourceVersion is applied to list calls."),
    param("sendInitialEvents", "boolean", "Begin a watch with synthetic events of the present state."),
    param("timeoutSeconds", "integer", "Timeout for the list/watch call."),
    param("watch", "boolean", "Watch for changes and return them as a stream of notifications."),
];
static WRITE: [Param; 3] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION];
static PATCH: [Param; 4] = [DRY_RUN, FIELD_MANAGER, FIELD_VALIDATION, FORCE];
static DELETE: [Param; 4] = [DRY_RUN, GRACE, ORPHAN, PROPAGATION];
static COLLECTION: [&[Param]; 2] = [&DELETE, &LIST];

/// What a body is.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Body {
    /// A definition by name.
    Definition(String),
    /// Text, or a stream.
    Text,
}

/// An operation of a path.
pub(super) struct Operation {
    /// `get`, `post` …
    pub(super) method: &'static str,
    /// `x-kubernetes-action`.
    pub(super) action: &'static str,
    pub(super) id: String,
    pub(super) about: String,
    pub(super) tag: String,
    pub(super) gvk: (String, String, String),
    pub(super) params: Vec<&'static Param>,
    pub(super) request: Option<String>,
    pub(super) consumes: Vec<&'static str>,
    pub(super) response: Body,
    /// Codes beside 200 with the same body.
    pub(super) codes: &'static [&'static str],
}

/// A path with its operations.
#[derive(Default)]
pub(super) struct PathItem {
    /// Path parameters in order: (name, what it is).
    pub(super) params: Vec<(&'static str, String)>,
    pub(super) operations: Vec<Operation>,
}

pub(super) const STATUS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Status";
const PATCH_BODY: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.Patch";
const DELETE_OPTIONS: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions";

/// Name of the definition of a resource's objects.
pub(super) fn object_name((r, v): Served<'_>) -> String {
    match &v.openapi {
        OpenApi::Definition(name) => name.clone(),
        OpenApi::Inline(_) => super::custom::name(&v.gv.group, &v.gv.version, &r.kind),
    }
}

/// Name of the definition of a resource's lists.
pub(super) fn list_name((r, v): Served<'_>) -> String {
    match &v.openapi {
        OpenApi::Definition(name) => format!("{name}List"),
        OpenApi::Inline(_) => super::custom::name(&v.gv.group, &v.gv.version, &r.list_kind),
    }
}

/// All paths of a group and version.
pub(super) fn paths(slot: &Slot) -> BTreeMap<String, PathItem> {
    let mut paths = BTreeMap::new();
    for served in slot.served() {
        add(served, &mut paths);
    }
    paths
}

fn title(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |c| c.to_uppercase().chain(chars).collect())
}

/// `AppsV1`, `CoreV1`, `ZzCachesExampleComV1`.
fn group_title(group: &str, version: &str) -> String {
    let parts = group_for_ids(group);
    parts.split(['.', '-']).map(title).chain([title(version)]).collect()
}

fn group_for_ids(group: &str) -> &str {
    let short = group.strip_suffix(".k8s.io").unwrap_or(group);
    if short.is_empty() { "core" } else { short }
}

struct Builder<'a> {
    served: Served<'a>,
    kind: String,
    gvk: (String, String, String),
    /// `Namespaced` where the path has a namespace.
    scope: &'static str,
    suffix: String,
    of: String,
}

impl Builder<'_> {
    fn operation(&self, method: &'static str, action: &'static str, verb: &str, response: Body) -> Operation {
        let (r, v) = self.served;
        let (group, version) = (&*v.gv.group, &*v.gv.version);
        let collection = if action == "deletecollection" { "Collection" } else { "" };
        let tag: String =
            group_for_ids(group).split(['.', '-']).enumerate().fold(String::new(), |mut tag, (i, p)| {
                tag.push_str(&if i == 0 { p.to_owned() } else { title(p) });
                tag
            });
        Operation {
            method,
            action,
            id: format!(
                "{verb}{}{collection}{}{}{}",
                group_title(group, version),
                self.scope,
                self.kind,
                self.suffix
            ),
            about: format!("{verb} {}{}", self.of, r.kind),
            tag: format!("{tag}_{version}"),
            gvk: self.gvk.clone(),
            params: Vec::new(),
            request: None,
            consumes: vec!["*/*"],
            response,
            codes: &[],
        }
    }

    /// GET, PUT and PATCH of one object or of a part of it.
    fn object_operations(&self, verbs: &[&str], body: &str, out: &mut Vec<Operation>) {
        let definition = || Body::Definition(body.to_owned());
        if verbs.contains(&"get") {
            out.push(self.operation("get", "get", "read", definition()));
        }
        if verbs.contains(&"update") {
            let mut o = self.operation("put", "put", "replace", definition());
            o.params = WRITE.iter().collect();
            o.request = Some(body.to_owned());
            o.codes = &["201"];
            out.push(o);
        }
        if verbs.contains(&"patch") {
            let mut o = self.operation("patch", "patch", "patch", definition());
            o.params = PATCH.iter().collect();
            o.request = Some(PATCH_BODY.to_owned());
            o.consumes = vec!["application/json-patch+json", "application/merge-patch+json"];
            if self.served.0.origin == Origin::BuiltIn {
                o.consumes.push("application/strategic-merge-patch+json");
            }
            o.consumes.push("application/apply-patch+yaml");
            o.codes = &["201"];
            out.push(o);
        }
    }

    fn create(&self, body: &str) -> Operation {
        let mut o = self.operation("post", "post", "create", Body::Definition(body.to_owned()));
        o.params = WRITE.iter().collect();
        o.request = Some(body.to_owned());
        o.codes = &["201", "202"];
        o
    }

    fn delete(&self) -> Operation {
        let mut o = self.operation("delete", "delete", "delete", Body::Definition(STATUS.to_owned()));
        o.params = DELETE.iter().collect();
        o.request = Some(DELETE_OPTIONS.to_owned());
        o.codes = &["202"];
        o
    }
}

fn add(served: Served<'_>, paths: &mut BTreeMap<String, PathItem>) {
    let (r, v) = served;
    let (group, version) = (&*v.gv.group, &*v.gv.version);
    let root = format!("/{}", super::path(group, version));
    let (base, scope) = if r.namespaced {
        (format!("{root}/namespaces/{{namespace}}/{}", r.id.resource), "Namespaced")
    } else {
        (format!("{root}/{}", r.id.resource), "")
    };
    let gvk = (group.to_owned(), version.to_owned(), r.kind.to_string());
    let builder =
        Builder { served, kind: r.kind.to_string(), gvk, scope, suffix: String::new(), of: String::new() };
    let mut namespace = Vec::new();
    if r.namespaced {
        namespace
            .push(("namespace", "object name and auth scope, such as for teams and projects".to_owned()));
    }
    let (object, list) = (object_name(served), list_name(served));
    let verbs = v.verbs.as_slice();

    let mut collection = PathItem { params: namespace.clone(), operations: Vec::new() };
    if verbs.contains(&"list") {
        let list_of = |b: &Builder<'_>| {
            let mut o = b.operation("get", "list", "list", Body::Definition(list.clone()));
            o.params = LIST.iter().collect();
            o
        };
        collection.operations.push(list_of(&builder));
        if r.namespaced {
            let everywhere = Builder {
                scope: "",
                suffix: "ForAllNamespaces".into(),
                gvk: builder.gvk.clone(),
                kind: builder.kind.clone(),
                of: String::new(),
                served,
            };
            let operations = vec![list_of(&everywhere)];
            paths.insert(format!("{root}/{}", r.id.resource), PathItem { params: Vec::new(), operations });
        }
    }
    if verbs.contains(&"create") {
        collection.operations.push(builder.create(&object));
    }
    if verbs.contains(&"deletecollection") {
        let mut o =
            builder.operation("delete", "deletecollection", "delete", Body::Definition(STATUS.to_owned()));
        o.params = COLLECTION.iter().flat_map(|p| p.iter()).collect();
        o.request = Some(DELETE_OPTIONS.to_owned());
        collection.operations.push(o);
    }
    if !collection.operations.is_empty() {
        paths.insert(base.clone(), collection);
    }

    let mut params = namespace;
    params.push(("name", format!("name of the {}", r.kind)));
    let mut item = PathItem { params: params.clone(), operations: Vec::new() };
    builder.object_operations(verbs, &object, &mut item.operations);
    if verbs.contains(&"delete") {
        item.operations.push(builder.delete());
    }
    if !item.operations.is_empty() {
        paths.insert(format!("{base}/{{name}}"), item);
    }
    for s in &v.subresources {
        let item = PathItem { params: params.clone(), operations: subresource(&builder, s, &object) };
        paths.insert(format!("{base}/{{name}}/{}", s.name), item);
    }
}

fn subresource(parent: &Builder<'_>, s: &Subresource, object: &str) -> Vec<Operation> {
    let (r, v) = parent.served;
    let gv = s.gv.as_ref().unwrap_or(&v.gv);
    let of = format!("{} of ", s.name);
    let gvk = (gv.group.to_string(), gv.version.to_string(), s.kind.clone());
    let b = Builder {
        served: parent.served,
        kind: parent.kind.clone(),
        gvk,
        scope: parent.scope,
        suffix: title(&s.name),
        of,
    };
    let name = match (s.kind == *r.kind, published::name_of(&gv.group, &gv.version, &s.kind)) {
        (true, _) => Some(object.to_owned()),
        (false, name) => name,
    };
    let mut operations = Vec::new();
    match name {
        // Logs are text although their kind is the parent's.
        Some(_) if s.name == "log" => operations.push(b.operation("get", "get", "read", Body::Text)),
        Some(body) if !s.kind.ends_with("Options") => {
            b.object_operations(&s.verbs, &body, &mut operations);
            if s.verbs.contains(&"create") {
                operations.push(b.create(&body));
            }
        }
        _ => {
            let methods = [
                ("get", "get"),
                ("create", "post"),
                ("update", "put"),
                ("patch", "patch"),
                ("delete", "delete"),
            ];
            for (verb, method) in methods {
                if s.verbs.contains(&verb) {
                    let id = format!("connect{}", title(method));
                    operations.push(b.operation(method, "connect", &id, Body::Text));
                }
            }
        }
    }
    operations
}
