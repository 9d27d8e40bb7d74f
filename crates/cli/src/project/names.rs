//! The names that a person gives on the command line: what they may be, and what follows from them.
//!
//! Pure. Every refusal says what the name may look like. Sources: the API conventions, RFC 1035 and 1123, the Rust
//! reference on keywords, and what Kubernetes keeps for itself.

/// A name that can't be used, in one line.
pub(crate) type Refusal = String;

/// Words that can't be a module (the Rust reference, keywords of the 2024 edition).
const KEYWORDS: &[&str] = &[
    "abstract", "as", "async", "await", "become", "box", "break", "const", "continue", "crate", "do", "dyn",
    "else", "enum", "extern", "false", "final", "fn", "for", "gen", "if", "impl", "in", "let", "loop",
    "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "return", "self", "static",
    "struct", "super", "trait", "true", "try", "type", "typeof", "union", "unsafe", "unsized", "use",
    "virtual", "where", "while", "yield",
];

/// Types that generated code uses by their short names, and those of the prelude.
const TAKEN_TYPES: &[&str] = &[
    "Box",
    "Clone",
    "Condition",
    "Context",
    "Copy",
    "CustomResource",
    "Debug",
    "Default",
    "Deserialize",
    "Eq",
    "Err",
    "Fn",
    "From",
    "Into",
    "Iterator",
    "JsonSchema",
    "Key",
    "KubeSchema",
    "Next",
    "None",
    "Ok",
    "Operator",
    "Option",
    "Ord",
    "PartialEq",
    "Result",
    "Self",
    "Send",
    "Serialize",
    "Some",
    "String",
    "Sync",
    "ToString",
    "TryFrom",
    "Vec",
    "Admission",
    "Defaulter",
    "Denied",
    "Validator",
    "Webhook",
];

/// Packages that a project depends on, or that Rust has of its own: no project is called like one.
const TAKEN_PACKAGES: &[&str] = &[
    "alloc",
    "build",
    "config",
    "core",
    "deps",
    "examples",
    "homeostat",
    "incremental",
    "k8s-openapi",
    "kube",
    "proc-macro",
    "schemars",
    "serde",
    "serde-json",
    "src",
    "std",
    "test",
    "tests",
    "tokio",
];

/// Modules beside the kinds.
const TAKEN_MODULES: &[&str] = &["lib", "main", "mod"];

fn label(text: &str, most: usize) -> bool {
    let edge = |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    text.len() <= most
        && edge(text.chars().next())
        && edge(text.chars().last())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
}

fn subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(|part| label(part, 63))
}

/// The name of a project: of its package, its Deployment, its ServiceAccount.
pub(crate) fn project(name: &str) -> Result<(), Refusal> {
    // Objects are called <name>-leader-election and the like, and a label's value has 63 characters at most.
    if !label(name, 40) || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(format!(
            "{name:?} can't be a project's name: lower-case letters, digits and '-', starting with a letter, 40 \
             characters at most, such as redis-operator"
        ));
    }
    if KEYWORDS.contains(&name) || TAKEN_PACKAGES.contains(&name) {
        return Err(format!(
            "{name:?} can't be a project's name: it means something else to Rust or cargo; choose another"
        ));
    }
    Ok(())
}

/// The domain that a project's groups end in.
pub(crate) fn domain(domain: &str) -> Result<(), Refusal> {
    if !subdomain(domain) || !domain.contains('.') {
        return Err(format!("{domain:?} can't be a domain: name one that is yours, such as example.com"));
    }
    protected(domain)
}

fn protected(group: &str) -> Result<(), Refusal> {
    for suffix in ["k8s.io", "kubernetes.io"] {
        if group == suffix || group.ends_with(&format!(".{suffix}")) {
            return Err(format!(
                "{group:?} belongs to the Kubernetes project (groups in {suffix} need its approval); use a domain of \
                 your own"
            ));
        }
    }
    Ok(())
}

/// The full API group: `group` under `domain`. A group that already ends in the domain stays as it is; without a group
/// it is the domain.
pub(crate) fn group(group: &str, domain: &str) -> Result<String, Refusal> {
    let full = if group.is_empty() || group == domain {
        domain.to_owned()
    } else if group.ends_with(&format!(".{domain}")) {
        group.to_owned()
    } else {
        format!("{group}.{domain}")
    };
    if !subdomain(&full) {
        return Err(format!(
            "{group:?} can't be a group: lower-case letters, digits, '-' and '.', such as cache (for cache.{domain})"
        ));
    }
    protected(&full)?;
    Ok(full)
}

/// The full group of a type that isn't the project's; empty for Kubernetes' first one.
pub(crate) fn foreign_group(group: &str) -> Result<(), Refusal> {
    if group.is_empty() || subdomain(group) {
        return Ok(());
    }
    Err(format!(
        "{group:?} can't be a group: lower-case letters, digits, '-' and '.', such as cert-manager.io"
    ))
}

/// A version, as kubectl orders them.
pub(crate) fn version(version: &str) -> Result<(), Refusal> {
    let number =
        |text: &str| !text.is_empty() && !text.starts_with('0') && text.chars().all(|c| c.is_ascii_digit());
    let valid = version.strip_prefix('v').is_some_and(|rest| {
        let stage = ["alpha", "beta"].iter().find_map(|s| rest.split_once(s));
        match stage {
            Some((major, minor)) => number(major) && number(minor),
            None => number(rest),
        }
    });
    if valid {
        return Ok(());
    }
    Err(format!("{version:?} can't be a version: v1, v2, or on the way there v1alpha1, v1beta2"))
}

/// A kind.
pub(crate) fn kind(kind: &str) -> Result<(), Refusal> {
    let example = "such as RedisCluster";
    let first = kind.chars().next();
    if kind.len() > 63
        || !first.is_some_and(|c| c.is_ascii_uppercase())
        || !kind.chars().all(|c| c.is_ascii_alphanumeric())
    {
        return Err(format!(
            "{kind:?} can't be a kind: letters and digits in CamelCase, starting with a capital, {example}"
        ));
    }
    if kind.ends_with("List") {
        return Err(format!(
            "{kind:?} can't be a kind: names in -List belong to lists of objects; choose another"
        ));
    }
    let module = module(kind);
    if TAKEN_TYPES.contains(&kind)
        || KEYWORDS.contains(&module.as_str())
        || TAKEN_MODULES.contains(&module.as_str())
    {
        return Err(format!(
            "{kind:?} can't be a kind: Rust or generated code has another meaning for it; choose another, {example}"
        ));
    }
    Ok(())
}

/// A plural.
pub(crate) fn plural(plural: &str) -> Result<(), Refusal> {
    if label(plural, 63) && plural.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Ok(());
    }
    Err(format!(
        "{plural:?} can't be a plural: lower-case letters, digits and '-', starting with a letter, such as redisclusters"
    ))
}

/// The plural that kube's derive and Kubernetes' tools would choose.
pub(crate) fn pluralize(kind: &str) -> String {
    let word = kind.to_lowercase();
    if ["s", "x", "z", "ch", "sh"].iter().any(|end| word.ends_with(end)) {
        return format!("{word}es");
    }
    match word.strip_suffix('y') {
        Some(stem) if !stem.ends_with(['a', 'e', 'i', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{word}s"),
    }
}

/// The module of a kind: `redis_cluster` for `RedisCluster`, `https_proxy` for `HTTPSProxy`.
pub(crate) fn module(kind: &str) -> String {
    let chars: Vec<char> = kind.chars().collect();
    let mut out = String::new();
    for (at, c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).map(|i| chars[i]);
        let after = chars.get(at + 1);
        let starts = c.is_ascii_uppercase()
            && before
                .is_some_and(|b| !b.is_ascii_uppercase() || after.is_some_and(|a| a.is_ascii_lowercase()));
        if starts {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

/// The name of the library of a package.
pub(crate) fn library(project: &str) -> String {
    project.replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: std::fmt::Debug>(result: impl Fn(&str) -> Result<T, Refusal>, good: &[&str], bad: &[&str]) {
        for name in good {
            result(name).expect(name);
        }
        for name in bad {
            let why = result(name).expect_err(name);
            assert!(why.contains(&format!("{name:?}")) && !why.contains('\n'), "{why}");
        }
    }

    #[test]
    fn projects() {
        check(
            project,
            &["redis-operator", "a", "x2"],
            &["", "Redis", "2x", "-a", "a-", "a_b", "test", "match", "kube", "a.b"],
        );
    }

    #[test]
    fn domains_and_groups() {
        check(
            domain,
            &["example.com", "my.example.com"],
            &["", "com", "Example.com", "a..b", "k8s.io", "x.kubernetes.io"],
        );
        let with = |g: &str| group(g, "example.com");
        check(with, &["", "cache", "a.b"], &["Cache", "a_b", "a b", "-", ".cache", "a/b"]);
        assert_eq!(with("cache").unwrap(), "cache.example.com");
        assert_eq!(with("cache.example.com").unwrap(), "cache.example.com");
        assert_eq!(with("").unwrap(), "example.com");
    }

    #[test]
    fn versions() {
        check(
            version,
            &["v1", "v10", "v1alpha1", "v2beta3"],
            &["", "1", "v", "v0", "v1alpha", "v1.0", "v1gamma1", "V1", "v1alpha01"],
        );
    }

    #[test]
    fn kinds() {
        check(
            kind,
            &["RedisCluster", "X", "HTTPSProxy", "S3Bucket"],
            &[
                "",
                "redisCluster",
                "Redis_Cluster",
                "Redis-Cluster",
                "레디스",
                "PodList",
                "Self",
                "Type",
                "Option",
                "Match",
                "Operator",
            ],
        );
        check(plural, &["redisclusters", "a-b", "x"], &["", "Redisclusters", "1s", "a_b", "a.b", "a-"]);
    }

    #[test]
    fn what_follows_from_a_kind() {
        for (kind, module_name, plural) in [
            ("RedisCluster", "redis_cluster", "redisclusters"),
            ("Widget", "widget", "widgets"),
            ("HTTPSProxy", "https_proxy", "httpsproxies"),
            ("S3Bucket", "s3_bucket", "s3buckets"),
            ("Gateway", "gateway", "gateways"),
            ("Box2", "box2", "box2s"),
            ("Redis", "redis", "redises"),
        ] {
            assert_eq!((module(kind), pluralize(kind)), (module_name.to_owned(), plural.to_owned()));
        }
    }
}
