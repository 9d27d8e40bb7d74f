//! A server in the test's process and a client that speaks JSON to it.
#![allow(dead_code, missing_docs, unreachable_pub)]

use std::sync::Arc;

use bytes::Bytes;
use homeostat_access::User;
use homeostat_apiserver::{ApiServer, Body, Config};
use homeostat_model::{Clock, Entropy};
use homeostat_store::Memory;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::Service;

/// A server with a fixed start of time and a seed.
pub fn server() -> ApiServer {
    server_with(|_| ())
}

/// As [`server`], with its configuration changed.
pub fn server_with(change: impl FnOnce(&mut Config)) -> ApiServer {
    let mut config = Config::new(Arc::new(Memory::new()));
    config.clock = Clock::starting_at("2026-01-02T03:04:05Z".parse().unwrap());
    config.entropy = Entropy::seeded(7);
    change(&mut config);
    ApiServer::new(config)
}

pub struct Answer {
    pub code: u16,
    pub body: Value,
    pub warnings: Vec<String>,
}

/// Sends a request as an administrator; `kind` is the content type.
pub async fn send(
    server: &ApiServer,
    method: Method,
    path: &str,
    kind: &str,
    body: impl Into<Bytes>,
) -> Response<Body> {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header("Content-Type", kind)
        .header("User-Agent", "test/1.0")
        .extension(User::administrator("test"))
        .body(Full::new(body.into()))
        .unwrap();
    server.clone().call(request).await.unwrap()
}

pub async fn read(response: Response<Body>) -> Answer {
    let code = response.status().as_u16();
    let warnings =
        response.headers().get_all("warning").iter().map(|v| v.to_str().unwrap().to_owned()).collect();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    Answer { code, body: serde_json::from_slice(&bytes).unwrap_or(Value::Null), warnings }
}

pub async fn get(server: &ApiServer, path: &str) -> Answer {
    read(send(server, Method::GET, path, "application/json", "").await).await
}

pub async fn post(server: &ApiServer, path: &str, body: Value) -> Answer {
    read(send(server, Method::POST, path, "application/json", body.to_string()).await).await
}

pub async fn put(server: &ApiServer, path: &str, body: Value) -> Answer {
    read(send(server, Method::PUT, path, "application/json", body.to_string()).await).await
}

pub async fn merge(server: &ApiServer, path: &str, body: Value) -> Answer {
    read(send(server, Method::PATCH, path, "application/merge-patch+json", body.to_string()).await).await
}

pub async fn apply(server: &ApiServer, path: &str, body: Value) -> Answer {
    read(send(server, Method::PATCH, path, "application/apply-patch+yaml", body.to_string()).await).await
}

pub async fn delete(server: &ApiServer, path: &str) -> Answer {
    read(send(server, Method::DELETE, path, "application/json", "").await).await
}

/// A watch under way.
pub struct Watch {
    body: Body,
    rest: Vec<u8>,
}

pub async fn watch(server: &ApiServer, path: &str) -> Watch {
    let response = send(server, Method::GET, path, "application/json", "").await;
    assert_eq!(response.status(), StatusCode::OK);
    Watch { body: response.into_body(), rest: Vec::new() }
}

impl Watch {
    /// The next event; `None` at the end.
    pub async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(end) = self.rest.iter().position(|b| *b == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                return Some(serde_json::from_slice(&line).unwrap());
            }
            let frame = self.body.frame().await?.unwrap();
            self.rest.extend_from_slice(&frame.into_data().unwrap());
        }
    }

    /// Type and name of the next event, `END` at the end.
    pub async fn brief(&mut self) -> String {
        match self.next().await {
            None => "END".to_owned(),
            Some(e) => {
                let name = e["object"]["metadata"]["name"].as_str().unwrap_or_default();
                format!("{} {name}", e["type"].as_str().unwrap_or_default()).trim_end().to_owned()
            }
        }
    }
}

impl Watch {
    /// Bytes of the next frame, unread; 0 at the end.
    pub async fn frame(&mut self) -> usize {
        match self.body.frame().await {
            Some(frame) => frame.unwrap().into_data().map_or(0, |d| d.len()),
            None => 0,
        }
    }
}
