//! Keeps a webhook server's certificate valid and the API server told of it.
//!
//! In a cluster the certificate is in a Secret that all replicas share: whoever finds it missing or due writes it, on
//! the condition that it is still as it was read, and everybody serves what is there. On a laptop it stays in memory.
//! The configurations are applied under a field manager of their own, again and again, so that what somebody changed
//! comes back.
//! Order: a bundle is in the configurations before a certificate is served that needs it.

use std::sync::Arc;
use std::time::Duration;

use homeostat_model::Clock;
use k8s_openapi::ByteString;
use k8s_openapi::api::admissionregistration::v1::{
    MutatingWebhookConfiguration, ValidatingWebhookConfiguration,
};
use k8s_openapi::api::core::v1::Secret;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;
use tokio_util::sync::CancellationToken;
use tracing::{debug, info, warn};

use super::certificates::{Bundle, Due};
use super::server::Served;
use super::{Reach, Webhook, configurations, secret_name};
use crate::error::{Error, Result};
use crate::metrics::{Common, count};
use crate::object::Object;

/// How often everything is looked at: long before a renewal matters, and soon after somebody's edit.
const PERIOD: Duration = Duration::from_secs(60);
/// The first delay after a failure, doubled up to the period.
const FIRST: Duration = Duration::from_millis(100);

const ROOTS: &str = "ca.crt";
const AUTHORITY_KEY: &str = "ca.key";
const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";

pub(super) struct Upkeep {
    /// The manager's name.
    pub(super) name: String,
    pub(super) webhooks: Vec<Webhook>,
    pub(super) reach: Reach,
    pub(super) client: Client,
    pub(super) clock: Clock,
    pub(super) served: Arc<Served>,
    pub(super) metrics: Arc<Common>,
    /// Whether configurations are applied, or only certificates kept.
    pub(super) register: bool,
    /// Cancelled when everything is in place for the first time.
    pub(super) ready: CancellationToken,
}

impl Upkeep {
    /// Until `stop`.
    pub(super) async fn run(self, stop: CancellationToken) {
        let mut bundle = None;
        let mut failures = 0u32;
        loop {
            let step = tokio::select! { biased;
                () = stop.cancelled() => break,
                step = self.step(&mut bundle) => step,
            };
            let delay = match step {
                Ok(()) => {
                    if !self.ready.is_cancelled() {
                        info!(webhooks = self.webhooks.len(), reach = ?self.reach, "webhooks are registered");
                        self.ready.cancel();
                    }
                    failures = 0;
                    PERIOD
                }
                Err(error) => {
                    failures += 1;
                    let delay = FIRST.saturating_mul(1 << (failures - 1).min(16)).min(PERIOD);
                    if failures == 3 {
                        warn!(?delay, "webhooks can't be registered: {error}");
                    } else {
                        debug!(failures, ?delay, "webhooks can't be registered: {error}");
                    }
                    delay
                }
            };
            tokio::select! { biased;
                () = stop.cancelled() => break,
                () = tokio::time::sleep(delay) => {}
            }
        }
        if self.register && matches!(self.reach, Reach::Url(_)) && bundle.is_some() {
            self.withdraw().await;
        }
    }

    async fn step(&self, has: &mut Option<Bundle>) -> Result<()> {
        let bundle = match self.reach {
            Reach::Service { .. } => self.shared().await?,
            Reach::Url(_) => {
                let now = self.clock.now();
                match has.as_ref() {
                    Some(bundle) => bundle.renewed(&self.reach.host(), now)?,
                    None => Bundle::new(&self.reach.host(), now)?,
                }
            }
        };
        // What was served so far is trusted by the new roots, too.
        let result = if self.register { self.register(&bundle).await } else { Ok(()) };
        if has.as_ref() != Some(&bundle) && (result.is_ok() || has.is_none()) {
            count(&self.metrics.certificate_reads);
            match bundle.certified() {
                Ok(key) => self.served.set(key),
                Err(error) => {
                    count(&self.metrics.certificate_errors);
                    return Err(error.into());
                }
            }
            *has = Some(bundle);
        }
        result
    }

    /// The bundle of the Secret, renewed there where that is due.
    async fn shared(&self) -> Result<Bundle> {
        let Reach::Service { namespace, .. } = &self.reach else {
            return Err(Error::msg("a URL has no Secret"));
        };
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let name = secret_name(&self.name);
        let (host, now) = (self.reach.host(), self.clock.now());
        let Some(mut secret) = api.get_opt(&name).await? else {
            let bundle = Bundle::new(&host, now)?;
            let mut secret = Secret { type_: Some("kubernetes.io/tls".into()), ..Secret::default() };
            secret.metadata.name = Some(name);
            write(&mut secret, &bundle);
            api.create(&self.post(), &secret).await?;
            return Ok(bundle);
        };
        let renewed = match read(&secret) {
            Some(bundle) if matches!(bundle.due(&host, now), Due::Until(_)) => return Ok(bundle),
            Some(bundle) => bundle.renewed(&host, now)?,
            None => Bundle::new(&host, now)?,
        };
        info!(secret = name, "renewing the webhooks' certificate");
        write(&mut secret, &renewed);
        // It conflicts where another replica was first; the next look finds what that one wrote.
        api.replace(&name, &self.post(), &secret).await?;
        Ok(renewed)
    }

    fn post(&self) -> PostParams {
        PostParams { field_manager: Some(self.manager()), ..PostParams::default() }
    }

    fn manager(&self) -> String {
        format!("{}-webhooks", self.name)
    }

    /// Applies everything that makes the API server ask. What of it can't be is tried to the end.
    async fn register(&self, bundle: &Bundle) -> Result<()> {
        let made = configurations(&self.name, &self.webhooks, &self.reach, Some(&bundle.roots));
        let mut result = Ok(());
        if let Some(mutating) = &made.mutating {
            result = result.and(self.apply(mutating).await);
        }
        if let Some(validating) = &made.validating {
            result = result.and(self.apply(validating).await);
        }
        for (definition, conversion) in &made.conversions {
            result = result.and(self.convert(definition, conversion).await);
        }
        result
    }

    async fn apply<K>(&self, object: &K) -> Result<()>
    where
        K: Object + kube::Resource<Scope = kube::core::ClusterResourceScope>,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let params = PatchParams::apply(&self.manager()).force();
        api.patch(&self.name, &params, &Patch::Apply(crate::apply::sparse(object)?)).await?;
        Ok(())
    }

    /// The definition comes from somebody else; it may come later.
    async fn convert(&self, definition: &str, conversion: &serde_json::Value) -> Result<()> {
        use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
        let api: Api<CustomResourceDefinition> = Api::all(self.client.clone());
        if api.get_metadata_opt(definition).await?.is_none() {
            return Err(Error::msg(format!("the CustomResourceDefinition {definition} isn't there yet")));
        }
        let body = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": definition}, "spec": {"conversion": conversion}});
        let params = PatchParams::apply(&self.manager()).force();
        api.patch(definition, &params, &Patch::Apply(body)).await?;
        Ok(())
    }

    /// Nobody will answer any more, and an API server that asks all the same refuses every request.
    async fn withdraw(&self) {
        let made = configurations(&self.name, &self.webhooks, &self.reach, None);
        let params = DeleteParams::default();
        if made.mutating.is_some() {
            let api: Api<MutatingWebhookConfiguration> = Api::all(self.client.clone());
            let gone = api.delete(&self.name, &params).await.is_ok();
            debug!(gone, "withdrew the defaulting webhooks");
        }
        if made.validating.is_some() {
            let api: Api<ValidatingWebhookConfiguration> = Api::all(self.client.clone());
            let gone = api.delete(&self.name, &params).await.is_ok();
            debug!(gone, "withdrew the validating webhooks");
        }
    }
}

fn read(secret: &Secret) -> Option<Bundle> {
    let data = secret.data.as_ref()?;
    let text = |key: &str| String::from_utf8(data.get(key)?.0.clone()).ok();
    Some(Bundle {
        roots: text(ROOTS)?,
        authority_key: text(AUTHORITY_KEY)?,
        certificate: text(CERTIFICATE)?,
        key: text(KEY)?,
    })
}

fn write(secret: &mut Secret, bundle: &Bundle) {
    let data = secret.data.get_or_insert_default();
    for (key, text) in [
        (ROOTS, &bundle.roots),
        (AUTHORITY_KEY, &bundle.authority_key),
        (CERTIFICATE, &bundle.certificate),
        (KEY, &bundle.key),
    ] {
        data.insert(key.to_owned(), ByteString(text.as_bytes().to_vec()));
    }
}
