//! The files that a program's parts come to.
//!
//! Pure. Invariant: the order of files is the order in which they are to be applied, and the same parts give the same
//! files.

use serde_json::{Value, json};

use super::{File, Options, Parts, access, workload};
use crate::webhook::{self, Reach};

impl Parts {
    /// All manifests of the program, in the order in which they are to be applied; paths are relative to `config/`.
    ///
    /// # Errors
    /// As [`definitions`](Self::definitions).
    pub fn files(&self, options: &Options) -> Result<Vec<File>, Vec<String>> {
        let name = self.name.as_str();
        let service = webhook::service_name(name);
        let reach = Reach::Service { namespace: options.namespace.clone(), name: service, port: 443 };
        let hooks = webhook::configurations(name, &self.webhooks, &reach, None);
        let (webhook_cluster, webhook_namespace) = webhook::rules(name, &self.webhooks);
        let has_webhooks = !self.webhooks.is_empty();
        let mut files = Files(Vec::new());

        let mut people = Vec::new();
        for definition in &self.definitions()? {
            let mut crd = json!(definition);
            for (key, value) in workload::labels(name).as_object().into_iter().flatten() {
                crd["metadata"]["labels"][key] = value.clone();
            }
            let full = definition.metadata.name.clone().unwrap_or_default();
            if let Some((_, conversion)) = hooks.conversions.iter().find(|(of, _)| *of == full) {
                crd["spec"]["conversion"] = conversion.clone();
            }
            files.add(&format!("crd/{full}.yaml"), [crd]);
            people.push((full, access::for_people(name, definition)));
        }

        files.add("manager/namespace.yaml", [workload::namespace(name, options)]);
        files.add("rbac/service_account.yaml", [workload::service_account(name, options)]);
        let [role, binding] = access::role(name, options, "", &self.rules, !options.namespaced);
        files.add("rbac/role.yaml", [role]);
        files.add("rbac/role_binding.yaml", [binding]);
        files.add(
            "rbac/leader_election.yaml",
            access::role(name, options, "leader-election", &access::leases(), false),
        );
        if has_webhooks {
            let mut documents = Vec::new();
            if !webhook_cluster.is_empty() {
                documents.extend(access::role(name, options, "webhook", &webhook_cluster, true));
            }
            documents.extend(access::role(name, options, "webhook", &webhook_namespace, false));
            files.add("rbac/webhook.yaml", documents);
        }
        for (full, roles) in people {
            files.add(&format!("rbac/people_{full}.yaml"), roles);
        }

        files.add("manager/deployment.yaml", [workload::deployment(name, options, has_webhooks)]);
        files.add("manager/metrics_service.yaml", [workload::metrics_service(name, options)]);
        files.add("manager/pod_disruption_budget.yaml", [workload::disruption_budget(name, options)]);
        files.add("manager/network_policy.yaml", [workload::network_policy(name, options, has_webhooks)]);

        if has_webhooks {
            files.add("webhook/service.yaml", [workload::webhook_service(name, options)]);
        }
        let labelled = |kind: &str, configuration: Value| {
            let mut configuration = configuration;
            configuration["apiVersion"] = json!("admissionregistration.k8s.io/v1");
            configuration["kind"] = json!(kind);
            configuration["metadata"]["labels"] = workload::labels(name);
            configuration
        };
        if let Some(mutating) = hooks.mutating {
            let value = labelled("MutatingWebhookConfiguration", json!(mutating));
            files.add("webhook/mutating.yaml", [value]);
        }
        if let Some(validating) = hooks.validating {
            let value = labelled("ValidatingWebhookConfiguration", json!(validating));
            files.add("webhook/validating.yaml", [value]);
        }
        files.add("prometheus/service_monitor.yaml", [workload::service_monitor(name, options)]);
        Ok(files.0)
    }
}

struct Files(Vec<File>);

impl Files {
    fn add(&mut self, path: &str, documents: impl IntoIterator<Item = Value>) {
        self.0.push(File { path: path.to_owned(), documents: documents.into_iter().collect() });
    }
}
