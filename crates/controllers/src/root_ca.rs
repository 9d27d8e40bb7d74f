//! The ConfigMap `kube-root-ca.crt` of every namespace: the authority by which pods trust the API server.
//!
//! It is made where it is missing and mended where it says something else.

use std::collections::BTreeMap;

use homeostat_sdk::{Context, Edits, Key, Next, Operator, Result, Selection, Watches};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::common::pod_control;

const MAP: &str = "kube-root-ca.crt";
const KEY: &str = "ca.crt";
const ANNOTATION: &str = "kubernetes.io/description";
const DESCRIPTION: &str = "Contains a CA bundle that can be used to verify the kube-apiserver when using internal \
                           endpoints such as the internal service IP or kubernetes.default.svc. No other usage is \
                           guaranteed across distributions of Kubernetes clusters.";

/// The controller.
pub(crate) struct RootCa {
    pub(crate) pem: String,
}

impl RootCa {
    fn data(&self) -> BTreeMap<String, String> {
        [(KEY.to_owned(), self.pem.clone())].into()
    }

    fn is_right(&self, map: &ConfigMap) -> bool {
        let described = map.metadata.annotations.as_ref().is_some_and(|a| a.contains_key(ANNOTATION));
        described && map.data.as_ref() == Some(&self.data())
    }
}

impl Operator for RootCa {
    type Resource = Namespace;
    type Owns = ();
    type Reads = (Edits<ConfigMap>,);

    fn name() -> &'static str {
        "root-ca-certificate-publisher-controller"
    }

    async fn reconcile(&self, _: &Namespace, cx: &Context<Self>) -> Result<Next> {
        // Nothing is known here that would be better than what somebody else has published.
        if self.pem.is_empty() {
            return Ok(Next::done());
        }
        let has = cx.read_key::<ConfigMap, _>(&Key::namespaced(cx.name(), MAP));
        if has.as_ref().is_some_and(|m| self.is_right(m)) {
            return Ok(Next::done());
        }
        let mut map = has.as_deref().cloned().unwrap_or_else(|| ConfigMap {
            metadata: ObjectMeta {
                name: Some(MAP.into()),
                namespace: Some(cx.name().into()),
                ..ObjectMeta::default()
            },
            ..ConfigMap::default()
        });
        map.metadata.annotations.get_or_insert_default().insert(ANNOTATION.into(), DESCRIPTION.into());
        map.data = Some(self.data());
        let written = match has {
            Some(_) => cx.update::<ConfigMap, _>(&map).await,
            None => cx.create::<ConfigMap, _>(map).await,
        };
        match written {
            Ok(_) => Ok(Next::done()),
            Err(e) if e.is_already_exists() || pod_control::is_namespace_terminating(&e) => Ok(Next::done()),
            Err(e) => Err(e),
        }
    }

    async fn finalize(&self, _: &Namespace, _: &Context<Self>) -> Result<Next> {
        Ok(Next::done())
    }

    fn watches(&self, watches: &mut Watches<Self>) {
        watches.select::<ConfigMap, _>(Selection::fields(format!("metadata.name={MAP}")));
    }
}
