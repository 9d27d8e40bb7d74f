//! Rules of where webhooks are called: URLs, services and CA bundles, shared by CRD conversion and admission.

use base64::Engine;
use homeostat_model::field::{Error, child};
use homeostat_model::validation;

/// The most that the loader of a bundle is asked to look at.
const MAX_BUNDLE: usize = 1 << 20;

/// Errors of a webhook's URL: `https://host[/path]` and nothing else.
pub fn validate_url(path: &str, url: &str) -> Vec<Error> {
    const FORM: &str = "; desired format: https://host[/path]";
    let mut errors = Vec::new();
    let (rest, fragment) = url.split_once('#').unwrap_or((url, ""));
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    let (scheme, rest) = match rest.split_once(':') {
        Some((scheme, rest)) if is_scheme(scheme) => (scheme, rest),
        Some((before, _)) if !before.contains('/') => {
            let why = match before {
                "" => format!("parse {}: missing protocol scheme", homeostat_model::field::quote(url)),
                _ => format!(
                    "parse {}: first path segment in URL cannot contain colon",
                    homeostat_model::field::quote(url)
                ),
            };
            errors.push(Error::required(path, format!("url must be a valid URL: {why}{FORM}")));
            return errors;
        }
        _ => ("", rest),
    };
    let authority =
        rest.strip_prefix("//").map(|r| r.split('/').next().unwrap_or_default()).unwrap_or_default();
    let (user, host) = authority.rsplit_once('@').map_or((None, authority), |(u, h)| (Some(u), h));
    let scheme = scheme.to_ascii_lowercase();
    if scheme != "https" {
        errors.push(Error::invalid(path, scheme, format!("'https' is the only allowed URL scheme{FORM}")));
    }
    if host.is_empty() {
        errors.push(Error::invalid(path, host, format!("host must be specified{FORM}")));
    }
    if let Some(user) = user {
        errors.push(Error::invalid(path, user, "user information is not permitted in the URL"));
    }
    if !fragment.is_empty() {
        errors.push(Error::invalid(path, fragment, "fragments are not permitted in the URL"));
    }
    if !query.is_empty() {
        errors.push(Error::invalid(path, query, "query parameters are not permitted in the URL"));
    }
    errors
}

fn is_scheme(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
}

/// Errors of a webhook's service; an absent path is `None`.
pub fn validate_service(
    path: &str,
    namespace: &str,
    name: &str,
    url_path: Option<&str>,
    port: i64,
) -> Vec<Error> {
    let mut errors = Vec::new();
    if name.is_empty() {
        errors.push(Error::required(child(path, "name"), "service name is required"));
    }
    if namespace.is_empty() {
        errors.push(Error::required(child(path, "namespace"), "service namespace is required"));
    }
    if !(1..=65535).contains(&port) {
        let rule = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(Error::invalid(child(path, "port"), port, rule));
    }
    let Some(url_path) = url_path.filter(|p| !matches!(*p, "" | "/")) else { return errors };
    let at = child(path, "path");
    if url_path == "//" {
        errors.push(Error::invalid(at, url_path, "segment[0] may not be empty"));
        return errors;
    }
    if !url_path.starts_with('/') {
        errors.push(Error::invalid(&at, url_path, "must start with a '/'"));
    }
    let mut rest = url_path.chars();
    rest.next();
    let rest = rest.as_str();
    for (i, segment) in rest.strip_suffix('/').unwrap_or(rest).split('/').enumerate() {
        if segment.is_empty() {
            errors.push(Error::invalid(&at, url_path, format!("segment[{i}] may not be empty")));
            continue;
        }
        for rule in validation::dns1123_subdomain(segment, false) {
            errors.push(Error::invalid(&at, url_path, format!("segment[{i}]: {rule}")));
        }
    }
    errors
}

/// Errors of a CA bundle, base64 as the API carries it: it must hold at least one PEM certificate.
pub fn validate_ca_bundle(path: &str, bundle: &str) -> Vec<Error> {
    let bytes = base64::engine::general_purpose::STANDARD.decode(bundle).unwrap_or_default();
    let pem = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_BUNDLE)]);
    let certificate = pem
        .split("-----BEGIN CERTIFICATE-----")
        .nth(1)
        .and_then(|rest| rest.split_once("-----END CERTIFICATE-----"))
        .map(|(body, _)| body.chars().filter(|c| !c.is_whitespace()).collect::<String>())
        .and_then(|body| base64::engine::general_purpose::STANDARD.decode(body).ok());
    match certificate {
        Some(der) if der.first() == Some(&0x30) => Vec::new(),
        Some(_) => vec![Error::invalid(
            path,
            bundle,
            "unable to load root certificates: x509: malformed certificate",
        )],
        None => {
            let rule = "unable to load root certificates: unable to parse bytes as PEM block";
            vec![Error::invalid(path, bundle, rule)]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(errors: Vec<Error>, want: &[&str]) {
        let found: Vec<String> = errors.iter().map(ToString::to_string).collect();
        assert_eq!(found, want);
    }

    #[test]
    fn urls_are_https_and_bare() {
        check(validate_url("u", "https://hook.example.com/convert"), &[]);
        check(
            validate_url("u", "http://me@hook.example.com/?a=b#c"),
            &[
                "u: Invalid value: \"http\": 'https' is the only allowed URL scheme; desired format: \
                 https://host[/path]",
                "u: Invalid value: \"me\": user information is not permitted in the URL",
                "u: Invalid value: \"c\": fragments are not permitted in the URL",
                "u: Invalid value: \"a=b\": query parameters are not permitted in the URL",
            ],
        );
    }

    #[test]
    fn services_have_a_name_a_port_and_a_plain_path() {
        check(validate_service("s", "ns", "hook", Some("/a/b/"), 443), &[]);
        check(
            validate_service("s", "ns", "", Some("a//b"), 0),
            &[
                "s.name: Required value: service name is required",
                "s.port: Invalid value: 0: port is not valid: must be between 1 and 65535, inclusive",
                "s.path: Invalid value: \"a//b\": must start with a '/'",
                "s.path: Invalid value: \"a//b\": segment[0] may not be empty",
                "s.path: Invalid value: \"a//b\": segment[1] may not be empty",
            ],
        );
    }
}
