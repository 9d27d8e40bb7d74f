//! Plain writes, for any kind: what is written is in the process' caches when the call returns.
//!
//! A writer checks nothing against an operator's declarations; [`Context`](crate::Context) does that and is what
//! operators use. Tasks and controllers that don't reconcile one resource use a writer directly.

use std::fmt::Debug;
use std::sync::Arc;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::HeaderValue;
use http::header::ACCEPT;
use kube::Client;
use kube::Resource;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::core::params::GetParams;
use kube::core::{Request, Status};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::apply::{complete_types, sparse, strip_nulls};
use crate::cache::Caches;
use crate::cache::text::Text;
use crate::error::{Error, Result};
use crate::key::Key;
use crate::object::{Object, Watched, display_kind};
use crate::span;

/// A CRD without a status subresource was to get a status.
#[derive(Debug, thiserror::Error)]
#[error(
    "{kind} has no status subresource: add `subresources: {{status: {{}}}}` to version {version} of its \
     CustomResourceDefinition, or keep what you report elsewhere"
)]
pub struct NoStatusSubresource {
    /// The kind, as `Widget.example.com`.
    pub kind: String,
    /// The version that was asked for.
    pub version: String,
}

/// Asks for no more than an object's metadata in answer.
const METADATA_ONLY: HeaderValue =
    HeaderValue::from_static("application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1");

/// A request that could be made, or not.
type Built = Result<http::Request<Vec<u8>>, kube::core::request::Error>;

/// Writes objects under one field manager's name. Cheap to clone.
#[derive(Clone)]
pub struct Writer {
    client: Client,
    caches: Caches,
    manager: Arc<str>,
}

impl Debug for Writer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").field("manager", &self.manager).finish_non_exhaustive()
    }
}

fn name<K: Resource>(dt: &K::DynamicType, object: &K) -> Result<String> {
    match object.meta().name.as_deref() {
        Some(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(Error::msg(format!("a {} without metadata.name can't be written", display_kind::<K>(dt)))),
    }
}

impl Writer {
    /// Writes through `client` as `manager`, into `caches`.
    pub fn new(client: Client, caches: Caches, manager: impl Into<Arc<str>>) -> Self {
        Self { client, caches, manager: manager.into() }
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    fn post(&self) -> PostParams {
        PostParams { field_manager: Some(self.manager.to_string()), ..PostParams::default() }
    }

    /// Sends a request. Not generic, and boxed, so that it is compiled once.
    fn exchange(&self, request: Built) -> BoxFuture<'static, Result<String>> {
        let client = self.client.clone();
        async move {
            let mut request = request.map_err(kube::Error::BuildRequest)?;
            let name = span::request(request.method());
            request.extensions_mut().insert(name);
            Ok(client.request_text(request).await?)
        }
        .boxed()
    }

    /// Reads the server's answer, and puts it into the caches.
    fn take<K: Watched>(&self, dt: &K::DynamicType, answer: &str) -> Result<K> {
        let text = Text::of(answer)?;
        let object: K = text.read()?;
        self.caches.wrote(dt, &object, &text);
        Ok(object)
    }

    async fn send<K: Watched>(&self, dt: &K::DynamicType, request: Built) -> Result<K> {
        let answer = self.exchange(request).await?;
        self.take(dt, &answer)
    }

    /// Reads an object from the API server itself, past any cache, `managedFields` included (which objects in caches,
    /// and what other calls return, do not have). `None` where there is none.
    pub async fn get<K: Object>(&self, key: &Key) -> Result<Option<K>> {
        self.get_with(&(), key).await
    }

    /// [`get`](Self::get) of a kind known at run time.
    pub async fn get_with<K: Watched>(&self, dt: &K::DynamicType, key: &Key) -> Result<Option<K>> {
        let request = Request::new(K::url_path(dt, key.namespace()));
        match self.exchange(request.get(key.name(), &GetParams::default())).await {
            Ok(answer) => {
                self.take::<K>(dt, &answer)?;
                Ok(Some(serde_json::from_str(&answer)?))
            }
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// Creates an object; a `generateName` will do for a name.
    pub async fn create<K: Watched + Serialize>(&self, object: &K) -> Result<K>
    where
        K::DynamicType: Default,
    {
        self.create_with(&K::DynamicType::default(), object).await
    }

    /// [`create`](Self::create) of a kind known at run time.
    pub async fn create_with<K: Watched + Serialize>(&self, dt: &K::DynamicType, object: &K) -> Result<K> {
        let request = Request::new(K::url_path(dt, object.meta().namespace.as_deref()));
        self.send(dt, request.create(&self.post(), serde_json::to_vec(object)?)).await
    }

    /// As [`create`](Self::create), where nobody wants to know what became of the object: the server needn't answer more
    /// than its metadata, which isn't read, and no cache hears of it before its watch does.
    pub(crate) async fn create_unread<K: Object>(&self, object: &K) -> Result<()> {
        let request = Request::new(K::url_path(&(), object.meta().namespace.as_deref()));
        let mut request = request.create(&self.post(), serde_json::to_vec(object)?);
        if let Ok(request) = &mut request {
            request.headers_mut().insert(ACCEPT, METADATA_ONLY);
        }
        self.exchange(request).await?;
        Ok(())
    }

    /// Replaces an object. It conflicts where the object changed since `object` was read.
    pub async fn update<K: Object>(&self, object: &K) -> Result<K> {
        let request = Request::new(K::url_path(&(), object.meta().namespace.as_deref()));
        let name = name(&(), object)?;
        self.send(&(), request.replace(&name, &self.post(), serde_json::to_vec(object)?)).await
    }

    /// Replaces an object's status (and what else its strategy takes through this subresource).
    pub async fn update_status<K: Object>(&self, object: &K) -> Result<K> {
        let request = Request::new(K::url_path(&(), object.meta().namespace.as_deref()));
        let name = name(&(), object)?;
        let body = serde_json::to_vec(object)?;
        self.send(&(), request.replace_subresource("status", &name, &self.post(), body)).await
    }

    /// Applies what is set in `object` (server-side apply; conflicts are taken over).
    pub async fn apply<K: Object>(&self, object: &K) -> Result<K> {
        let body = sparse(object)?;
        let key = Key::new(object.meta().namespace.as_deref(), &name(&(), object)?);
        self.apply_value(&key, &body).await
    }

    /// Applies a body as it is.
    pub async fn apply_value<K: Object>(&self, key: &Key, body: &Value) -> Result<K> {
        let params = PatchParams::apply(&self.manager).force();
        let request = Request::new(K::url_path(&(), key.namespace()));
        self.send(&(), request.patch(key.name(), &params, &Patch::Apply(body))).await
    }

    /// Patches an object.
    pub async fn patch<K: Object, P: Serialize + Debug>(&self, key: &Key, patch: &Patch<P>) -> Result<K> {
        self.patch_with(&(), key, None, patch).await
    }

    /// Patches an object's status.
    pub async fn patch_status<K: Object, P: Serialize + Debug>(
        &self,
        key: &Key,
        patch: &Patch<P>,
    ) -> Result<K> {
        self.patch_with(&(), key, Some("status"), patch).await
    }

    /// Patches an object or a subresource, of a kind known at run time.
    pub async fn patch_with<K: Watched, P: Serialize + Debug>(
        &self,
        dt: &K::DynamicType,
        key: &Key,
        subresource: Option<&str>,
        patch: &Patch<P>,
    ) -> Result<K> {
        let params = PatchParams {
            field_manager: Some(self.manager.to_string()),
            force: matches!(patch, Patch::Apply(_)),
            ..PatchParams::default()
        };
        let request = Request::new(K::url_path(dt, key.namespace()));
        let request = match subresource {
            Some(sub) => request.patch_subresource(sub, key.name(), &params, patch),
            None => request.patch(key.name(), &params, patch),
        };
        self.send(dt, request).await
    }

    /// Applies the status of an object: fields that this manager set before and no longer sets are removed.
    pub async fn apply_status<K: Object>(&self, key: &Key, status: &Value) -> Result<K> {
        let mut root = serde_json::Map::new();
        complete_types::<K>(&mut root);
        let mut meta = json!({"name": key.name()});
        if let Some(ns) = key.namespace() {
            meta["namespace"] = ns.into();
        }
        root.insert("metadata".into(), meta);
        root.insert("status".into(), status.clone());
        let mut body = Value::Object(root);
        strip_nulls(&mut body);
        let result = self.patch_status::<K, _>(key, &Patch::Apply(&body)).await;
        let Err(error) = result else { return result };
        // A 404 is either of the object or of the subresource; the object tells which.
        if error.is_not_found() && matches!(self.get::<K>(key).await, Ok(Some(_))) {
            let kind = K::display_kind();
            return Err(
                Error::from(NoStatusSubresource { kind, version: K::version(&()).into_owned() }).terminal()
            );
        }
        Err(error)
    }

    /// Creates a subresource of an object, such as a pod's `binding` or `eviction`.
    pub async fn create_subresource<K: Object, B: Serialize, R: DeserializeOwned>(
        &self,
        key: &Key,
        subresource: &str,
        body: &B,
    ) -> Result<R> {
        let request = Request::new(K::url_path(&(), key.namespace()));
        let request =
            request.create_subresource(subresource, key.name(), &self.post(), serde_json::to_vec(body)?);
        Ok(serde_json::from_str(&self.exchange(request).await?)?)
    }

    /// Deletes an object. Whether it was there; an object with finalizers or a grace period remains for a while.
    pub async fn delete<K: Watched>(&self, key: &Key, params: &DeleteParams) -> Result<bool>
    where
        K::DynamicType: Default,
    {
        self.delete_with::<K>(&K::DynamicType::default(), key, params).await
    }

    /// [`delete`](Self::delete) of a kind known at run time.
    pub async fn delete_with<K: Watched>(
        &self,
        dt: &K::DynamicType,
        key: &Key,
        params: &DeleteParams,
    ) -> Result<bool> {
        let request = Request::new(K::url_path(dt, key.namespace()));
        match self.exchange(request.delete(key.name(), params)).await {
            Ok(answer) => self.took_away::<K>(dt, key, &answer).map(|()| true),
            Err(e) if e.is_not_found() => Ok(false),
            Err(e) => Err(e),
        }
    }

    fn took_away<K: Watched>(&self, dt: &K::DynamicType, key: &Key, answer: &str) -> Result<()> {
        #[derive(serde::Deserialize)]
        struct Kind {
            kind: Option<String>,
        }
        let kind: Kind = serde_json::from_str(answer)?;
        if kind.kind.as_deref() == Some("Status") {
            let status: Status = serde_json::from_str(answer)?;
            let uid = status.details.map(|d| d.uid).filter(|u| !u.is_empty());
            if uid.is_some() {
                self.caches.deleted::<K>(dt, key, uid.as_deref());
            }
            return Ok(());
        }
        // The object as it was last, or as it is while it waits for its finalizers: the watch tells which.
        if let Ok(text) = Text::of(answer)
            && let Ok(object) = text.read::<K>()
            && object.meta().deletion_timestamp.is_some()
        {
            self.caches.wrote(dt, &object, &text);
        }
        Ok(())
    }
}
