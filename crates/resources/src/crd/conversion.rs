//! Rules of `spec.conversion`, under the names that the reference's internal type has.

use homeostat_model::field::{Error, child, index};
use homeostat_model::validation;
use serde_json::Value;

use super::props::{Props, object, some, text, texts};
use crate::webhook;

const REVIEW_VERSIONS: [&str; 2] = ["v1", "v1beta1"];

/// Whether one of the versions is understood, or none is given.
pub(crate) fn has_known_review_version(conversion: Option<&Props>) -> bool {
    let versions =
        conversion.and_then(|c| object(c, "webhook")).map(|w| texts(w, "conversionReviewVersions"));
    versions.is_none_or(|v| v.is_empty() || v.iter().any(|v| REVIEW_VERSIONS.contains(v)))
}

/// Errors of a conversion. `known_version`: one of the review versions must be one that the server speaks;
/// `any_bundle`: the CA bundle isn't looked at, because the type isn't established yet or had a bad one before.
pub(crate) fn validate(
    path: &str,
    conversion: Option<&Props>,
    known_version: bool,
    any_bundle: bool,
    errors: &mut Vec<Error>,
) {
    let Some(conversion) = conversion else { return };
    let strategy = text(conversion, "strategy");
    match strategy {
        "" => errors.push(Error::required(child(path, "strategy"), "")),
        "None" | "Webhook" => {}
        other => errors.push(Error::not_supported(child(path, "strategy"), other, &["None", "Webhook"])),
    }
    let hook = object(conversion, "webhook");
    let config = hook.and_then(|h| object(h, "clientConfig"));
    let versions = hook.map(|h| texts(h, "conversionReviewVersions")).unwrap_or_default();
    let config_path = child(path, "webhookClientConfig");
    let versions_path = child(path, "conversionReviewVersions");
    if strategy != "Webhook" {
        let rule = "should not be set when strategy is not set to Webhook";
        if config.is_some() {
            errors.push(Error::forbidden(config_path, rule));
        }
        if !versions.is_empty() {
            errors.push(Error::forbidden(versions_path, rule));
        }
        return;
    }
    match config {
        None => errors.push(Error::required(&config_path, "required when strategy is set to Webhook")),
        Some(config) => client_config(&config_path, config, any_bundle, errors),
    }
    review_versions(&versions_path, &versions, known_version, errors);
}

fn client_config(path: &str, config: &Props, any_bundle: bool, errors: &mut Vec<Error>) {
    let url = some(config, "url").and_then(Value::as_str);
    match (url, object(config, "service")) {
        (Some(url), None) => errors.extend(webhook::validate_url(&child(path, "url"), url)),
        (None, Some(service)) => {
            // The reference takes the name for the namespace here, and the other way round.
            let port = service.get("port").and_then(Value::as_i64).unwrap_or(0);
            let hook_path = some(service, "path").and_then(Value::as_str);
            let (namespace, name) = (text(service, "name"), text(service, "namespace"));
            errors.extend(webhook::validate_service(
                &child(path, "service"),
                namespace,
                name,
                hook_path,
                port,
            ));
        }
        _ => errors.push(Error::required(path, "exactly one of url or service is required")),
    }
    let bundle = text(config, "caBundle");
    if !bundle.is_empty() && !any_bundle {
        errors.extend(webhook::validate_ca_bundle(&child(path, "caBundle"), bundle));
    }
}

fn review_versions(path: &str, versions: &[&str], known_version: bool, errors: &mut Vec<Error>) {
    if versions.is_empty() {
        errors.push(Error::required(path, ""));
        return;
    }
    for (i, v) in versions.iter().enumerate() {
        if versions[..i].contains(v) {
            errors.push(Error::invalid(index(path, i), *v, "duplicate version"));
            continue;
        }
        for rule in validation::dns1035_label(v, false) {
            errors.push(Error::invalid(index(path, i), *v, rule));
        }
    }
    if known_version && !versions.iter().any(|v| REVIEW_VERSIONS.contains(v)) {
        let rule = format!("must include at least one of {}", REVIEW_VERSIONS.join(", "));
        errors.push(Error::invalid(path, versions.to_vec(), rule));
    }
}
