//! The `scale` subresource, of any kind that has one.
//!
//! Errors are sentences, in client-go's words, since they end up in conditions and events.

use kube::Client;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::served::Served;

/// The target as its `scale` subresource shows it.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Scale {
    metadata: Value,
    #[serde(default)]
    pub(crate) spec: ScaleSpec,
    #[serde(default)]
    pub(crate) status: ScaleStatus,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ScaleSpec {
    pub(crate) replicas: i32,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ScaleStatus {
    pub(crate) replicas: i32,
    pub(crate) selector: String,
}

/// A request's failure in the words of client-go; `what` is the verb and the resource.
pub(crate) fn explain(error: kube::Error, what: &str) -> String {
    match error {
        kube::Error::Api(status) if status.code == 404 && status.details.is_none() => {
            format!("the server could not find the requested resource ({what})")
        }
        kube::Error::Api(status) if status.code == 503 => {
            format!("the server is currently unable to handle the request ({what})")
        }
        kube::Error::Api(status) => status.message.clone(),
        error => error.to_string(),
    }
}

/// Reads what is at a path.
pub(crate) async fn get<T: DeserializeOwned>(client: &Client, path: &str) -> Result<T, kube::Error> {
    let request = http_get(path)?;
    client.request(request).await
}

fn http_get(path: &str) -> Result<http::Request<Vec<u8>>, kube::Error> {
    http::Request::get(path).body(Vec::new()).map_err(kube::Error::HttpError)
}

/// The scale of an object.
pub(crate) async fn of(client: &Client, of: &Served, namespace: &str, name: &str) -> Result<Scale, String> {
    let path = format!("{}/{name}/scale", of.path(Some(namespace)));
    get(client, &path).await.map_err(|e| explain(e, &format!("get {}", of.full_name())))
}

/// Sets the number of replicas, if nobody did anything else to the object in the meantime.
pub(crate) async fn set(
    client: &Client,
    of: &Served,
    namespace: &str,
    scale: &Scale,
    replicas: i32,
) -> Result<(), String> {
    let name = scale.metadata["name"].as_str().unwrap_or_default();
    let path = format!("{}/{name}/scale", of.path(Some(namespace)));
    let body = json!({"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": scale.metadata,
        "spec": {"replicas": replicas}});
    let request = http::Request::put(path)
        .header("content-type", "application/json")
        .body(body.to_string().into_bytes())
        .map_err(|e| e.to_string())?;
    let done = client.request::<Value>(request).await;
    done.map(drop).map_err(|e| explain(e, &format!("put {}", of.full_name())))
}
