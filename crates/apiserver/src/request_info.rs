//! What a request is about, read from its method, path and query: the one place that parses paths.
//!
//! It does not know what is served; `/apis/nobody.example.com/v1/things` parses like any other resource path.
//! Invariant: the same rules as apiserver's `RequestInfoFactory`, so that authorization sees the reference's
//! attributes.

use http::Method;

use crate::options::Query;

/// Attributes of one request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestInfo {
    /// The whole path.
    pub path: String,
    /// Whether the path names a resource; otherwise only `path` and `verb` are meant.
    pub is_resource: bool,
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`, `deletecollection`; for paths that are no
    /// resource, the method in lower case.
    pub verb: String,
    /// `api` or `apis`.
    pub prefix: String,
    /// Group; empty for core.
    pub group: String,
    /// Version.
    pub version: String,
    /// Namespace; empty outside one.
    pub namespace: String,
    /// Plural.
    pub resource: String,
    /// Subresource, or empty.
    pub subresource: String,
    /// Object's name as authorization sees it (lists by `metadata.name=x` have it too).
    pub name: String,
    /// Name that stands in the path.
    pub path_name: String,
    /// What follows the subresource, such as a proxied path.
    pub rest: Vec<String>,
    /// The path came in the old `/watch/` form.
    pub old_watch: bool,
}

/// Subresources of namespaces, which are not resources inside one.
const NAMESPACE_SUBRESOURCES: [&str; 2] = ["status", "finalize"];

impl RequestInfo {
    /// Parses a request's line.
    pub fn parse(method: &Method, path: &str, query: &Query) -> Self {
        let mut info =
            Self { path: path.to_owned(), verb: method.as_str().to_ascii_lowercase(), ..Self::default() };
        let parts: Vec<String> = path
            .trim_matches('/')
            .split('/')
            .map(|p| percent_encoding::percent_decode_str(p).decode_utf8_lossy().into_owned())
            .collect();
        let mut rest: &[String] = &parts;
        let Some((prefix, tail)) = rest.split_first() else { return info };
        if prefix != "api" && prefix != "apis" || rest.len() < 3 {
            return info;
        }
        info.prefix.clone_from(prefix);
        rest = tail;
        if prefix == "apis" {
            if rest.len() < 3 {
                return info;
            }
            info.group.clone_from(&rest[0]);
            rest = &rest[1..];
        }
        info.is_resource = true;
        info.version.clone_from(&rest[0]);
        rest = &rest[1..];
        info.verb = match *method {
            Method::POST => "create",
            Method::GET | Method::HEAD => "get",
            Method::PUT => "update",
            Method::PATCH => "patch",
            Method::DELETE => "delete",
            _ => "",
        }
        .to_owned();
        if rest[0] == "watch" && rest.len() > 1 {
            info.verb = "watch".to_owned();
            info.old_watch = true;
            rest = &rest[1..];
        }
        if rest[0] == "namespaces" && rest.len() > 1 {
            info.namespace.clone_from(&rest[1]);
            if rest.len() > 2 && !NAMESPACE_SUBRESOURCES.contains(&rest[2].as_str()) {
                rest = &rest[2..];
            }
        }
        info.resource.clone_from(&rest[0]);
        if let Some(name) = rest.get(1) {
            info.name.clone_from(name);
            info.path_name.clone_from(name);
        }
        if let Some(sub) = rest.get(2) {
            info.subresource.clone_from(sub);
            info.rest = rest[3..].to_vec();
        }
        if info.name.is_empty() && (info.verb == "get" || info.verb == "watch") {
            if info.verb == "get" {
                info.verb = if query.flag("watch") { "watch" } else { "list" }.to_owned();
            }
            // resourceNames in a role may then permit the list.
            if let Some(name) = query.get("fieldSelector").and_then(name_in_selector) {
                info.name = name;
            }
        }
        if info.name.is_empty() && info.verb == "delete" {
            info.verb = "deletecollection".to_owned();
        }
        if info.verb == "deletecollection"
            && let Some(name) = query.get("fieldSelector").and_then(name_in_selector)
        {
            info.name = name;
        }
        info
    }

    /// Whether the request may last longer than the request timeout.
    pub fn long_running(&self) -> bool {
        self.verb == "watch"
            || matches!(self.subresource.as_str(), "log" | "exec" | "attach" | "portforward" | "proxy")
    }

    /// Whether it changes nothing.
    pub fn read_only(&self) -> bool {
        matches!(self.verb.as_str(), "get" | "list" | "watch" | "head" | "options")
    }
}

/// `metadata.name=x` among a field selector's terms.
fn name_in_selector(selector: &str) -> Option<String> {
    selector.split(',').find_map(|term| {
        let name = term.trim().strip_prefix("metadata.name=")?;
        let name = name.strip_prefix('=').unwrap_or(name);
        (!name.is_empty() && !name.contains('/') && !name.contains('%')).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Expectation: `verb group/version namespace resource name subresource`, `-` where empty.
    fn check(method: Method, uri: &str, expect: &str) {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let i = RequestInfo::parse(&method, path, &Query::parse(query));
        let dash = |s: &str| if s.is_empty() { "-".to_owned() } else { s.to_owned() };
        let got = if i.is_resource {
            format!(
                "{} {}/{} {} {} {} {}",
                dash(&i.verb),
                dash(&i.group),
                i.version,
                dash(&i.namespace),
                i.resource,
                dash(&i.name),
                dash(&i.subresource)
            )
        } else {
            format!("{} {}", i.verb, i.path)
        };
        assert_eq!(got, expect, "{uri}");
    }

    #[test]
    fn paths_parse_as_the_reference_parses_them() {
        check(Method::GET, "/api/v1/pods", "list -/v1 - pods - -");
        check(Method::GET, "/api/v1/pods?watch=1", "watch -/v1 - pods - -");
        check(Method::GET, "/api/v1/namespaces", "list -/v1 - namespaces - -");
        check(Method::GET, "/api/v1/namespaces/a", "get -/v1 a namespaces a -");
        check(Method::PUT, "/api/v1/namespaces/a/finalize", "update -/v1 a namespaces a finalize");
        check(Method::PUT, "/api/v1/namespaces/a/status", "update -/v1 a namespaces a status");
        check(Method::POST, "/api/v1/namespaces/a/pods", "create -/v1 a pods - -");
        check(Method::POST, "/api/v1/namespaces/a/pods/b/binding", "create -/v1 a pods b binding");
        check(Method::DELETE, "/api/v1/namespaces/a/pods", "deletecollection -/v1 a pods - -");
        check(Method::PATCH, "/apis/e.com/v1/namespaces/a/ws/b/scale", "patch e.com/v1 a ws b scale");
        check(Method::GET, "/apis/e.com/v1/ws?fieldSelector=metadata.name=x", "list e.com/v1 - ws x -");
        check(Method::GET, "/api/v1/watch/namespaces/a/pods", "watch -/v1 a pods - -");
        check(Method::GET, "/api", "get /api");
        check(Method::GET, "/apis/e.com/v1", "get /apis/e.com/v1");
        check(Method::HEAD, "/apis/e.com/v1/namespaces/n/ws/a", "get e.com/v1 n ws a -");
        check(Method::OPTIONS, "/apis/e.com/v1/namespaces/n/ws", "- e.com/v1 n ws - -");
        check(Method::GET, "/healthz", "get /healthz");
        check(Method::GET, "/", "get /");
    }
}
