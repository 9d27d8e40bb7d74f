//! The objects that make an API server ask webhooks: a MutatingWebhookConfiguration, a ValidatingWebhookConfiguration,
//! and the `spec.conversion` of CustomResourceDefinitions.
//!
//! Pure functions of the declarations. Without a CA bundle they are manifests; the manager applies them with one.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhook, MutatingWebhookConfiguration, RuleWithOperations, ServiceReference, ValidatingWebhook,
    ValidatingWebhookConfiguration, WebhookClientConfig,
};
use k8s_openapi::api::rbac::v1::PolicyRule;
use kube::core::ObjectMeta;
use serde_json::{Value, json};

use super::{Role, Webhook};

/// How the API server reaches the process that serves the webhooks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reach {
    /// By a Service in the cluster.
    Service {
        /// Its namespace.
        namespace: String,
        /// Its name.
        name: String,
        /// Its port, 443 as a rule.
        port: u16,
    },
    /// At an address that the API server can connect to, such as `https://127.0.0.1:9443`: a process on the machine
    /// that the API server runs on.
    Url(String),
}

impl Reach {
    /// The name by which the server is called, which its certificate must have.
    pub(crate) fn host(&self) -> String {
        match self {
            Self::Service { namespace, name, .. } => format!("{name}.{namespace}.svc"),
            Self::Url(url) => {
                let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
                let authority = rest.split('/').next().unwrap_or_default();
                let host = authority.rsplit_once(':').map_or(authority, |(host, _)| host);
                host.trim_start_matches('[').trim_end_matches(']').to_owned()
            }
        }
    }

    fn client_config(&self, path: &str, ca_bundle: Option<&str>) -> WebhookClientConfig {
        let ca_bundle = ca_bundle.map(|pem| ByteString(pem.as_bytes().to_vec()));
        match self {
            Self::Service { namespace, name, port } => WebhookClientConfig {
                ca_bundle,
                service: Some(ServiceReference {
                    namespace: namespace.clone(),
                    name: name.clone(),
                    path: Some(path.to_owned()),
                    port: Some((*port).into()),
                }),
                url: None,
            },
            Self::Url(base) => WebhookClientConfig {
                ca_bundle,
                service: None,
                url: Some(format!("{}{path}", base.trim_end_matches('/'))),
            },
        }
    }
}

/// What makes an API server ask.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Configurations {
    /// For all defaulting webhooks.
    pub mutating: Option<MutatingWebhookConfiguration>,
    /// For all validating webhooks.
    pub validating: Option<ValidatingWebhookConfiguration>,
    /// For each conversion, the CustomResourceDefinition's name and its `spec.conversion`.
    pub conversions: Vec<(String, Value)>,
}

/// The configurations of `webhooks`, which are to be called `name`. `ca_bundle` is PEM.
///
/// ```
/// use homeostat_sdk::webhook::{Reach, Validator, Webhook, configurations};
/// # use k8s_openapi::api::core::v1::ConfigMap;
/// # struct Rules;
/// # impl Validator for Rules { type Resource = ConfigMap; }
/// let reach = Reach::Service { namespace: "shop".into(), name: "rules-webhook".into(), port: 443 };
/// let made = configurations("rules", &[Webhook::validating(Rules)], &reach, None);
/// let webhooks = made.validating.unwrap().webhooks.unwrap();
/// assert_eq!(webhooks[0].name, "validate.v1.configmaps.core");
/// assert!(made.mutating.is_none());
/// ```
pub fn configurations(
    name: &str,
    webhooks: &[Webhook],
    reach: &Reach,
    ca_bundle: Option<&str>,
) -> Configurations {
    let of = |role: Role| webhooks.iter().filter(move |w| w.role == role);
    let metadata = || ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let mutating: Vec<MutatingWebhook> = of(Role::Mutating)
        .map(|w| MutatingWebhook {
            admission_review_versions: vec!["v1".into()],
            client_config: reach.client_config(&w.path(), ca_bundle),
            failure_policy: Some(policy(w)),
            match_conditions: some(&w.match_conditions),
            match_policy: Some("Equivalent".into()),
            name: w.name(),
            namespace_selector: w.namespace_selector.clone(),
            object_selector: w.object_selector.clone(),
            reinvocation_policy: None,
            rules: Some(vec![rule(w)]),
            side_effects: "None".into(),
            timeout_seconds: Some(seconds(w)),
        })
        .collect();
    let validating: Vec<ValidatingWebhook> = of(Role::Validating)
        .map(|w| ValidatingWebhook {
            admission_review_versions: vec!["v1".into()],
            client_config: reach.client_config(&w.path(), ca_bundle),
            failure_policy: Some(policy(w)),
            match_conditions: some(&w.match_conditions),
            match_policy: Some("Equivalent".into()),
            name: w.name(),
            namespace_selector: w.namespace_selector.clone(),
            object_selector: w.object_selector.clone(),
            rules: Some(vec![rule(w)]),
            side_effects: "None".into(),
            timeout_seconds: Some(seconds(w)),
        })
        .collect();
    Configurations {
        mutating: some(&mutating)
            .map(|w| MutatingWebhookConfiguration { metadata: metadata(), webhooks: Some(w) }),
        validating: some(&validating)
            .map(|w| ValidatingWebhookConfiguration { metadata: metadata(), webhooks: Some(w) }),
        conversions: of(Role::Converting)
            .map(|w| (definition(w), conversion(&reach.client_config(&w.path(), None), ca_bundle)))
            .collect(),
    }
}

fn some<T: Clone>(items: &[T]) -> Option<Vec<T>> {
    if items.is_empty() { None } else { Some(items.to_vec()) }
}

fn policy(webhook: &Webhook) -> String {
    if webhook.ignore_failures { "Ignore" } else { "Fail" }.to_owned()
}

fn seconds(webhook: &Webhook) -> i32 {
    i32::try_from(webhook.timeout.as_secs()).unwrap_or(30).clamp(1, 30)
}

fn rule(webhook: &Webhook) -> RuleWithOperations {
    let target = &webhook.target;
    RuleWithOperations {
        api_groups: Some(vec![target.group.clone()]),
        api_versions: Some(vec![target.version.clone()]),
        operations: Some(webhook.operations.iter().map(|o| o.as_str().to_owned()).collect()),
        resources: Some(vec![target.plural.clone()]),
        scope: None,
    }
}

/// The name of the CustomResourceDefinition of a conversion.
fn definition(webhook: &Webhook) -> String {
    format!("{}.{}", webhook.target.plural, webhook.target.group)
}

fn conversion(config: &WebhookClientConfig, ca_bundle: Option<&str>) -> Value {
    let mut client = json!({});
    if let Some(pem) = ca_bundle {
        client["caBundle"] = STANDARD.encode(pem).into();
    }
    if let Some(url) = &config.url {
        client["url"] = url.as_str().into();
    }
    if let Some(service) = &config.service {
        client["service"] = json!({"namespace": service.namespace, "name": service.name,
            "path": service.path, "port": service.port});
    }
    json!({"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}})
}

/// The rights that a manager needs to register `webhooks` under `name` by itself, for a ClusterRole, and to keep their
/// certificate in a Secret, for a Role in its own namespace: `(cluster, namespace)`.
pub fn rules(name: &str, webhooks: &[Webhook]) -> (Vec<PolicyRule>, Vec<PolicyRule>) {
    if webhooks.is_empty() {
        return (Vec::new(), Vec::new());
    }
    let rule = |group: &str, resource: &str, verbs: &[&str], names: Option<Vec<String>>| PolicyRule {
        api_groups: Some(vec![group.to_owned()]),
        resources: Some(vec![resource.to_owned()]),
        resource_names: names,
        verbs: verbs.iter().map(|v| (*v).to_owned()).collect(),
        ..PolicyRule::default()
    };
    let mut cluster = Vec::new();
    let admission = "admissionregistration.k8s.io";
    for (role, resource) in [
        (Role::Mutating, "mutatingwebhookconfigurations"),
        (Role::Validating, "validatingwebhookconfigurations"),
    ] {
        if webhooks.iter().any(|w| w.role == role) {
            // A name can't be named for a creation.
            cluster.push(rule(admission, resource, &["create"], None));
            cluster.push(rule(admission, resource, &["get", "patch", "delete"], Some(vec![name.to_owned()])));
        }
    }
    let definitions: Vec<String> =
        webhooks.iter().filter(|w| w.role == Role::Converting).map(definition).collect();
    if !definitions.is_empty() {
        let verbs = ["get", "patch"];
        cluster.push(rule("apiextensions.k8s.io", "customresourcedefinitions", &verbs, Some(definitions)));
    }
    let secret = super::secret_name(name);
    let namespace = vec![
        rule("", "secrets", &["create"], None),
        rule("", "secrets", &["get", "update"], Some(vec![secret])),
    ];
    (cluster, namespace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_is_for_the_name_that_is_called() {
        for (reach, host) in [
            (Reach::Url("https://127.0.0.1:9443".into()), "127.0.0.1"),
            (Reach::Url("https://[::1]:9443/".into()), "::1"),
            (Reach::Url("https://host.docker.internal:1".into()), "host.docker.internal"),
            (Reach::Service { namespace: "shop".into(), name: "rules".into(), port: 443 }, "rules.shop.svc"),
        ] {
            assert_eq!(reach.host(), host);
        }
    }
}
