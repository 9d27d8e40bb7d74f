//! Types that a project has a controller for, but didn't make: Kubernetes' own, and those of other crates. Pure.
//!
//! Whether there is such a type only the compiler knows; here is how it would be called.

/// Kubernetes' groups: the module in `k8s_openapi::api`, which is also what kubebuilder calls the group, and the full
/// name.
const GROUPS: &[(&str, &str)] = &[
    ("admissionregistration", "admissionregistration.k8s.io"),
    ("apps", "apps"),
    ("autoscaling", "autoscaling"),
    ("batch", "batch"),
    ("certificates", "certificates.k8s.io"),
    ("coordination", "coordination.k8s.io"),
    ("core", ""),
    ("discovery", "discovery.k8s.io"),
    ("events", "events.k8s.io"),
    ("flowcontrol", "flowcontrol.apiserver.k8s.io"),
    ("networking", "networking.k8s.io"),
    ("node", "node.k8s.io"),
    ("policy", "policy"),
    ("rbac", "rbac.authorization.k8s.io"),
    ("resource", "resource.k8s.io"),
    ("scheduling", "scheduling.k8s.io"),
    ("storage", "storage.k8s.io"),
];

/// The full name of Kubernetes' group that `name` means, and its module.
fn group(name: &str) -> Option<(&'static str, &'static str)> {
    GROUPS.iter().find(|(module, full)| name == *module || (name == *full && !name.is_empty())).copied()
}

/// The full group that is meant where a type isn't the project's.
pub(crate) fn full(name: &str) -> &str {
    group(name).map_or(name, |(_, full)| full)
}

/// The Rust type of Kubernetes' own kind, as far as there is such a group.
pub(crate) fn kubernetes(name: &str, version: &str, kind: &str) -> Option<String> {
    group(name).map(|(module, _)| format!("k8s_openapi::api::{module}::{version}::{kind}"))
}

/// The path of a Rust type.
pub(crate) fn path(path: &str) -> Result<(), String> {
    let name = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
            && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    };
    if path.contains("::") && path.split("::").all(name) {
        return Ok(());
    }
    Err(format!("{path:?} is no Rust path; write it as some_crate::v1::Certificate"))
}

/// The `use` that brings the type at `path` in as `kind`.
pub(crate) fn import(path: &str, kind: &str) -> String {
    if path.rsplit("::").next() == Some(kind) { path.to_owned() } else { format!("{path} as {kind}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_of_kubernetes_are_found_by_either_name() {
        for (name, full_group, found) in [
            ("apps", "apps", Some("k8s_openapi::api::apps::v1::X")),
            ("core", "", Some("k8s_openapi::api::core::v1::X")),
            ("networking", "networking.k8s.io", Some("k8s_openapi::api::networking::v1::X")),
            ("networking.k8s.io", "networking.k8s.io", Some("k8s_openapi::api::networking::v1::X")),
            ("cert-manager.io", "cert-manager.io", None),
            ("", "", None),
        ] {
            assert_eq!(full(name), full_group, "{name}");
            assert_eq!(kubernetes(name, "v1", "X").as_deref(), found, "{name}");
        }
    }

    #[test]
    fn paths_of_types() {
        for (text, valid) in [
            ("a::B", true),
            ("a_1::v1::B", true),
            ("B", false),
            ("a::", false),
            ("a::b c", false),
            ("a::1", false),
        ] {
            assert_eq!(path(text).is_ok(), valid, "{text}");
        }
        assert_eq!(import("a::B", "B"), "a::B");
        assert_eq!(import("a::B", "C"), "a::B as C");
    }
}
