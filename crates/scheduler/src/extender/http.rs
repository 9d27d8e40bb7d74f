//! Extenders over the network: HTTP, or HTTPS with what the configuration says about trust.
//!
//! The connection is kube's client, pointed at the extender: it pools, and knows TLS.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use http_body_util::{BodyExt, Limited};
use kube::client::Body;
use kube::{Client, Config};

use super::Transport;
use crate::config::{ConfigurationError, ExtenderConfig};

/// The largest answer that is read.
const MOST_BYTES: usize = 64 << 20;

/// A connection to one extender.
#[derive(Clone)]
pub struct Http {
    client: Client,
}

impl std::fmt::Debug for Http {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

/// What a field holds itself, or the file that it names.
fn load(data: Option<&String>, file: Option<&String>) -> Result<Option<Vec<u8>>, String> {
    match (data, file) {
        (Some(data), _) => STANDARD.decode(data).map(Some).map_err(|e| e.to_string()),
        (None, Some(file)) => std::fs::read(file).map(Some).map_err(|e| format!("{file}: {e}")),
        (None, None) => Ok(None),
    }
}

impl Http {
    /// To the extender that a configuration describes. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If its certificates can't be read.
    pub fn new(config: &ExtenderConfig) -> Result<Self, ConfigurationError> {
        Self::open(config)
            .map_err(|why| ConfigurationError::new(format!("extender {}", config.url_prefix), why))
    }

    fn open(config: &ExtenderConfig) -> Result<Self, String> {
        let url: http::Uri = config.url_prefix.parse().map_err(|e| format!("{e}"))?;
        // The path is part of each request.
        let mut base = http::uri::Parts::default();
        base.scheme = url.scheme().cloned();
        base.authority = url.authority().cloned();
        base.path_and_query = Some(http::uri::PathAndQuery::from_static("/"));
        let mut to = Config::new(http::Uri::from_parts(base).map_err(|e| e.to_string())?);
        to.default_retry = false;
        to.disable_compression = true;
        let tls = config.tls_config.clone().unwrap_or_default();
        let pem = load(tls.ca_data.as_ref(), tls.ca_file.as_ref())?;
        // As the reference: HTTPS without an authority trusts whoever answers.
        to.accept_invalid_certs = tls.insecure || (config.enable_https && pem.is_none());
        if let Some(pem) = pem {
            use rustls_pki_types::pem::PemObject;
            let all: Result<Vec<_>, _> = rustls_pki_types::CertificateDer::pem_slice_iter(&pem).collect();
            let all = all.map_err(|e| format!("caData: {e}"))?;
            to.root_cert = Some(all.into_iter().map(|c| c.to_vec()).collect());
        }
        to.tls_server_name = tls.server_name;
        to.auth_info.client_certificate_data =
            load(tls.cert_data.as_ref(), tls.cert_file.as_ref())?.map(|b| STANDARD.encode(b));
        to.auth_info.client_key_data =
            load(tls.key_data.as_ref(), tls.key_file.as_ref())?.map(|b| STANDARD.encode(b).into());
        Ok(Self { client: Client::try_from(to).map_err(|e| e.to_string())? })
    }
}

impl Transport for Http {
    fn post<'a>(&'a self, url: &'a str, body: Vec<u8>) -> BoxFuture<'a, Result<(u16, Vec<u8>), String>> {
        async move {
            let url: http::Uri = url.parse().map_err(|e| format!("{url}: {e}"))?;
            let path = url.path_and_query().map_or("/", http::uri::PathAndQuery::as_str).to_owned();
            let request = http::Request::post(path)
                .header(http::header::CONTENT_TYPE, "application/json")
                .body(Body::from(body))
                .map_err(|e| e.to_string())?;
            let fail = |e: &dyn std::fmt::Display| format!("Post {:?}: {e}", url.to_string());
            let response = self.client.send(request).await.map_err(|e| fail(&e))?;
            let code = response.status().as_u16();
            let body =
                Limited::new(response.into_body(), MOST_BYTES).collect().await.map_err(|e| fail(&e))?;
            Ok((code, body.to_bytes().to_vec()))
        }
        .boxed()
    }
}
