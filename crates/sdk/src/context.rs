//! What a reconcile works with: reads from caches, and writes that are owned, named and permitted by the types.
//!
//! Every method that names a kind demands that the operator declared it, so what isn't watched can't be read and what
//! isn't owned can't be applied. For the rare rest there are [`Context::writer`] and [`Context::client`], which check
//! nothing and whose rights the derived RBAC doesn't include.

use std::any::TypeId;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::FutureExt;
use futures::future::BoxFuture;
use homeostat_model::selector::Labels;
use homeostat_model::{Clock, Entropy};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, Patch, Preconditions};
use kube::core::{ApiResource, DynamicObject};
use kube::{Client, Resource};
use serde::Serialize;
use serde_json::Value;

use crate::apply::{Applies, strip_nulls};
use crate::cache::Cache;
use crate::dependencies::{Dependencies, KindId, Reads};
use crate::dynamic::{self, Dynamic};
use crate::error::{Error, Result};
use crate::event::{Event, Recorder};
use crate::key::Key;
use crate::kinds::{Has, Kinds, Sees, Visitor, Writes};
use crate::object::Object;
use crate::operator::Operator;
use crate::watches::{Handles, View};
use crate::write::Writer;

/// What all reconciles of one operator share.
pub(crate) struct Shared {
    pub(crate) writer: Writer,
    pub(crate) recorder: Recorder,
    pub(crate) clock: Clock,
    pub(crate) entropy: Entropy,
    pub(crate) handles: Arc<Handles>,
    pub(crate) dependencies: Dependencies,
    pub(crate) sent: Sent,
    pub(crate) dynamic: Dynamic,
}

/// What was sent last, to not send it again.
#[derive(Default)]
pub(crate) struct Sent(Mutex<BTreeMap<(What, Key), Last>>);

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum What {
    Object(TypeId),
    Status,
}

struct Last {
    hash: [u64; 2],
    version: Option<String>,
}

impl Sent {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<(What, Key), Last>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version that the object had after `hash` was sent, where that was the last.
    fn version(&self, what: What, key: &Key, hash: [u64; 2]) -> Option<Option<String>> {
        let sent = self.lock();
        sent.get(&(what, key.clone())).filter(|l| l.hash == hash).map(|l| l.version.clone())
    }

    fn remember(&self, what: What, key: &Key, hash: [u64; 2], version: Option<String>) {
        self.lock().insert((what, key.clone()), Last { hash, version });
    }

    pub(crate) fn forget(&self, what: What, key: &Key) {
        self.lock().remove(&(what, key.clone()));
    }
}

/// 128 bits that don't depend on the process.
fn hash(body: &Value) -> [u64; 2] {
    let text = body.to_string();
    [0u8, 1].map(|salt| {
        let mut hasher = DefaultHasher::new();
        (salt, &text).hash(&mut hasher);
        hasher.finish()
    })
}

/// What a reconcile of one object works with.
pub struct Context<O: Operator> {
    shared: Arc<Shared>,
    key: Key,
    object: Option<Arc<O::Resource>>,
    reads: Reads,
    /// What this reconcile applied, created or kept: see [`Context::prune`].
    kept: Mutex<BTreeSet<(TypeId, Key)>>,
    operator: PhantomData<fn() -> O>,
}

impl<O: Operator> fmt::Debug for Context<O> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("operator", &O::name())
            .field("key", &self.key)
            .finish_non_exhaustive()
    }
}

impl<O: Operator> Context<O> {
    pub(crate) fn new(shared: Arc<Shared>, key: Key, object: Option<Arc<O::Resource>>) -> Self {
        Self { shared, key, object, reads: Reads::default(), kept: Mutex::default(), operator: PhantomData }
    }

    /// The reconcile is over: what it read becomes what it depends on.
    pub(crate) fn settle(self) {
        self.shared.dependencies.settle(self.reads, &self.key);
    }

    /// The key that is reconciled.
    pub fn key(&self) -> &Key {
        &self.key
    }

    /// The name of the object that is reconciled.
    pub fn name(&self) -> &str {
        self.key.name()
    }

    /// Its namespace; `None` where it is cluster-scoped.
    pub fn namespace(&self) -> Option<&str> {
        self.key.namespace()
    }

    /// The clock to tell the time by.
    pub fn clock(&self) -> &Clock {
        &self.shared.clock
    }

    /// The source of chance.
    pub fn entropy(&self) -> &Entropy {
        &self.shared.entropy
    }

    /// The client, for what the typed methods don't offer. Derived RBAC doesn't know what it is used for.
    pub fn client(&self) -> &Client {
        self.shared.writer.client()
    }

    /// Writes of any kind, unowned and unchecked. Derived RBAC doesn't know what it is used for.
    pub fn writer(&self) -> &Writer {
        &self.shared.writer
    }

    fn cached<T: Object>(&self) -> Cache<T> {
        self.shared.handles.get()
    }

    // Reads.

    /// The object of this name, from the cache: in the namespace of the reconciled object, or cluster-scoped.
    ///
    /// When it changes, appears or goes, the reconciled object comes back.
    pub fn read<T: Object, P>(&self, name: &str) -> Option<Arc<T>>
    where
        O: Sees<T, P>,
    {
        let namespace = if T::is_namespaced() { self.namespace() } else { None };
        self.read_key::<T, P>(&Key::new(namespace, name))
    }

    /// As [`read`](Self::read), in any namespace.
    pub fn read_key<T: Object, P>(&self, key: &Key) -> Option<Arc<T>>
    where
        O: Sees<T, P>,
    {
        self.shared.dependencies.read(KindId::of::<T>(), &self.reads, &self.key, key);
        self.cached::<T>().get(key)
    }

    /// All objects of the kind in the namespace of the reconciled object (or all, where it is cluster-scoped), from
    /// the cache, in the order of their names.
    ///
    /// When any of them changes, the reconciled object comes back. Where that is too often, read from
    /// [`cache`](Self::cache) and declare what matters in [`Operator::watches`].
    pub fn list<T: Object, P>(&self) -> Vec<Arc<T>>
    where
        O: Sees<T, P>,
    {
        let namespace = if T::is_namespaced() { self.namespace() } else { None };
        self.shared.dependencies.listed(KindId::of::<T>(), &self.reads, &self.key, namespace, None);
        match namespace {
            Some(ns) => self.cached::<T>().in_namespace(ns),
            None => self.cached::<T>().list(),
        }
    }

    /// As [`list`](Self::list), those whose labels match.
    pub fn select<T: Object, P>(&self, labels: &Labels) -> Vec<Arc<T>>
    where
        O: Sees<T, P>,
    {
        let namespace = if T::is_namespaced() { self.namespace() } else { None };
        self.shared.dependencies.listed(KindId::of::<T>(), &self.reads, &self.key, namespace, Some(labels));
        self.cached::<T>().select(namespace, labels)
    }

    /// What the reconciled object controls of this kind, in the order of their names.
    pub fn owned<T: Object, I>(&self) -> Vec<Arc<T>>
    where
        O::Owns: Has<T, I>,
    {
        match self.object.as_ref().and_then(|o| o.meta().uid.as_deref()) {
            Some(uid) => self.cached::<T>().owned_by(uid),
            None => Vec::new(),
        }
    }

    /// An object of a kind that becomes known only at run time, from a cache that is opened when it is first asked for.
    /// When it changes, appears or goes, the reconciled object comes back.
    ///
    /// Until the kind is served and its cache complete, it is an error that is tried again: nobody should take what
    /// isn't known yet for absent. Derived RBAC knows nothing of the kind.
    ///
    /// ```no_run
    /// # use homeostat_sdk::{Context, Key, Operator, Result};
    /// use kube::core::{ApiResource, GroupVersionKind};
    ///
    /// # fn example<O: Operator>(cx: &Context<O>) -> Result<()> {
    /// let widgets = ApiResource::from_gvk(&GroupVersionKind::gvk("example.com", "v1", "Widget"));
    /// if let Some(widget) = cx.read_dynamic(&widgets, &Key::namespaced("default", "a"))? {
    ///     println!("{}", widget.data["spec"]["color"]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_dynamic(&self, resource: &ApiResource, key: &Key) -> Result<Option<Arc<DynamicObject>>> {
        self.shared.dependencies.read(dynamic::id(resource), &self.reads, &self.key, key);
        let Some(cache) = self.shared.dynamic.cache(resource, &self.shared) else {
            return Err(Error::msg("too many kinds were read that aren't declared").terminal());
        };
        if !cache.is_synced() {
            let what = format!("{}/{}", resource.api_version, resource.plural);
            return Err(Error::msg(format!(
                "{what} aren't known yet: the kind isn't served, or being listed"
            )));
        }
        Ok(cache.get(key))
    }

    /// The cache of a declared kind. Reading from it doesn't bring the reconciled object back: that is for
    /// [`Operator::watches`] to say.
    pub fn cache<T: Object, P>(&self) -> Cache<T>
    where
        O: Sees<T, P>,
    {
        self.cached()
    }

    /// The cache of the operator's resource.
    pub fn resources(&self) -> Cache<O::Resource> {
        self.cached()
    }

    /// All caches of the operator, as mappings see them.
    pub fn view(&self) -> View<O> {
        View { handles: self.shared.handles.clone(), operator: PhantomData }
    }

    // Writes.

    /// The controlling owner reference to the reconciled object.
    pub fn owner_reference(&self) -> Result<OwnerReference> {
        let object = self.reconciled()?;
        let mut reference = object
            .controller_owner_ref(&())
            .ok_or_else(|| Error::msg("an object that has no uid yet can't own anything"))?;
        reference.block_owner_deletion = Some(true);
        Ok(reference)
    }

    fn reconciled(&self) -> Result<&Arc<O::Resource>> {
        let gone = || Error::msg(format!("{} {} is gone", O::Resource::display_kind(), self.key));
        self.object.as_ref().ok_or_else(gone)
    }

    /// Sets the namespace where there is none; refuses what the reconciled object can't own.
    fn place<T: Object>(&self, object: &mut T, owned: bool) -> Result<()> {
        let kind = T::display_kind();
        let owner = || format!("{} {}", O::Resource::display_kind(), self.key);
        if !T::is_namespaced() {
            if owned && self.namespace().is_some() {
                let text =
                    format!("{} can't own a cluster-scoped {kind}: the owner has a namespace", owner());
                return Err(Error::msg(text).terminal());
            }
            return Ok(());
        }
        let meta = object.meta_mut();
        match (&meta.namespace, self.namespace()) {
            (None, Some(ns)) => meta.namespace = Some(ns.to_owned()),
            (None, None) => return Err(Error::msg(format!("{kind} needs metadata.namespace")).terminal()),
            (Some(theirs), Some(ours)) if owned && theirs != ours => {
                let text = format!("{} can't own a {kind} in another namespace ({theirs})", owner());
                return Err(Error::msg(text).terminal());
            }
            _ => {}
        }
        if owned {
            let references = object.meta_mut().owner_references.get_or_insert_default();
            if !references.iter().any(|r| r.controller == Some(true)) {
                references.push(self.owner_reference()?);
            }
        }
        Ok(())
    }

    /// As [`place`](Self::place), in the body of an apply, and its key. Not generic: it is compiled once per operator.
    fn place_body(&self, kind: &AppliedKind, body: &mut Value) -> Result<Key> {
        let terminal = |text: String| Err(Error::msg(text).terminal());
        let owner = || format!("{} {}", O::Resource::display_kind(), self.key);
        let kind_name = &kind.display;
        let Some(meta) = body.get_mut("metadata").and_then(Value::as_object_mut) else {
            return terminal(format!("a {kind_name} without metadata.name can't be applied"));
        };
        let text = |field: &str| {
            meta.get(field).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned)
        };
        let (name, namespace) = (text("name"), text("namespace"));
        if !kind.namespaced && self.namespace().is_some() {
            return terminal(format!(
                "{} can't own a cluster-scoped {kind_name}: the owner has a namespace",
                owner()
            ));
        }
        let namespace = match (kind.namespaced, namespace, self.namespace()) {
            (false, _, _) => None,
            (true, None, None) => return terminal(format!("{kind_name} needs metadata.namespace")),
            (true, Some(theirs), Some(ours)) if theirs != ours => {
                return terminal(format!(
                    "{} can't own a {kind_name} in another namespace ({theirs})",
                    owner()
                ));
            }
            (true, theirs, ours) => theirs.or_else(|| ours.map(str::to_owned)),
        };
        if let Some(namespace) = &namespace {
            meta.insert("namespace".into(), namespace.as_str().into());
        }
        let references = meta.entry("ownerReferences").or_insert_with(|| Value::Array(Vec::new()));
        if let Some(references) = references.as_array_mut()
            && !references.iter().any(|r| r["controller"] == true)
        {
            references.push(serde_json::to_value(self.owner_reference()?)?);
        }
        match name {
            Some(name) => Ok(Key::new(namespace.as_deref(), &name)),
            None => terminal(format!("a {kind_name} without metadata.name can't be applied")),
        }
    }

    /// Makes an owned object have what is set in `what`, and returns it as it is then.
    ///
    /// It is server-side apply under the operator's name: what is not set is left to others, and what this operator
    /// set before and no longer sets is removed. The namespace and the owner reference are filled in. Nothing is sent
    /// where the same was applied before and the object hasn't changed since.
    ///
    /// `what` is the kind itself, or an apply configuration of it (the crate `homeostat-apply`).
    pub async fn apply<A: Applies, I>(&self, what: A) -> Result<A::Kind>
    where
        O::Owns: Has<A::Kind, I>,
    {
        self.apply_body::<A::Kind>(what.into_body()?).await
    }

    async fn apply_body<T: Object>(&self, mut body: Value) -> Result<T> {
        let kind = AppliedKind { display: T::display_kind(), namespaced: T::is_namespaced() };
        let key = self.place_body(&kind, &mut body)?;
        self.keep_key::<T>(key.clone());
        let (what, hash) = (What::Object(TypeId::of::<T>()), hash(&body));
        if let Some(version) = self.shared.sent.version(what, &key, hash)
            && let Some(has) = self.cached::<T>().get(&key)
            && has.meta().resource_version == version
        {
            return Ok(T::clone(&has));
        }
        let applied: T = self.shared.writer.apply_value(&key, &body).await?;
        self.shared.sent.remember(what, &key, hash, applied.meta().resource_version.clone());
        Ok(applied)
    }

    /// Creates an object; `generateName` will do for a name. An owned kind gets the owner reference.
    pub async fn create<T: Object, P>(&self, object: T) -> Result<T>
    where
        O: Writes<T, P>,
    {
        let mut object = object;
        self.place(&mut object, <O as Writes<T, P>>::OWNED)?;
        let created: T = self.shared.writer.create(&object).await?;
        self.keep_key::<T>(Key::of(&created));
        Ok(created)
    }

    fn keep_key<T: Object>(&self, key: Key) {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).insert((TypeId::of::<T>(), key));
    }

    /// Keeps an owned object from [`prune`](Self::prune), though this reconcile doesn't apply it.
    pub fn keep<T: Object, I>(&self, object: &T)
    where
        O::Owns: Has<T, I>,
    {
        self.keep_key::<T>(Key::of(object));
    }

    /// Deletes what the reconciled object controls, of all kinds in [`Operator::Owns`], but this reconcile has neither
    /// applied nor created nor [kept](Self::keep). How many that were.
    ///
    /// Call it at the end, when everything that should be is applied:
    ///
    /// ```
    /// # use homeostat_sdk::{Context, Next, Operator, Result};
    /// # use k8s_openapi::api::core::v1::{ConfigMap, ServiceAccount};
    /// # struct Greeter;
    /// # impl Operator for Greeter {
    /// #     type Resource = ServiceAccount;
    /// #     type Owns = (ConfigMap,);
    /// #     type Reads = ();
    /// async fn reconcile(&self, account: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
    ///     for secret in account.secrets.iter().flatten() {
    ///         let mut map = ConfigMap::default();
    ///         map.metadata.name = secret.name.clone();
    ///         cx.apply(map).await?;
    ///     }
    ///     // The ConfigMaps of secrets that are no longer named go.
    ///     cx.prune().await?;
    ///     Ok(Next::done())
    /// }
    /// # }
    /// ```
    pub async fn prune(&self) -> Result<usize> {
        let Some(uid) = self.object.as_ref().and_then(|o| o.meta().uid.clone()) else { return Ok(0) };
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let mut leftover = Leftover { shared: &self.shared, uid: &uid, kept: &kept, deletions: Vec::new() };
        O::Owns::visit(&mut leftover);
        let mut gone = 0;
        for deletion in leftover.deletions {
            gone += usize::from(deletion.await?);
        }
        Ok(gone)
    }

    /// Replaces an object. It conflicts where the object changed since `object` was read.
    pub async fn update<T: Object, P>(&self, object: &T) -> Result<T>
    where
        O: Writes<T, P>,
    {
        self.shared.writer.update(object).await
    }

    /// Patches an object.
    pub async fn patch<T: Object, P>(&self, key: &Key, patch: &Patch<Value>) -> Result<T>
    where
        O: Writes<T, P>,
    {
        self.shared.writer.patch(key, patch).await
    }

    /// Patches an object's status.
    pub async fn patch_status<T: Object, P>(&self, key: &Key, patch: &Patch<Value>) -> Result<T>
    where
        O: Writes<T, P>,
    {
        self.shared.writer.patch_status(key, patch).await
    }

    /// Deletes this incarnation of an object: never one of the same name that came later. Whether it was there.
    pub async fn delete<T: Object, P>(&self, object: &T) -> Result<bool>
    where
        O: Writes<T, P>,
    {
        self.delete_with(object, DeleteParams::default()).await
    }

    /// As [`delete`](Self::delete), with grace period, propagation or dry run.
    pub async fn delete_with<T: Object, P>(&self, object: &T, params: DeleteParams) -> Result<bool>
    where
        O: Writes<T, P>,
    {
        let mut params = params;
        let preconditions =
            params.preconditions.get_or_insert(Preconditions { resource_version: None, uid: None });
        if preconditions.uid.is_none() {
            preconditions.uid = object.meta().uid.clone();
        }
        self.shared.writer.delete::<T>(&Key::of(object), &params).await
    }

    /// Patches the reconciled object itself, its status excepted.
    pub async fn patch_resource(&self, patch: &Patch<Value>) -> Result<O::Resource> {
        self.shared.writer.patch(&self.key, patch).await
    }

    /// Makes the reconciled object's status have what is set in `status`.
    ///
    /// It is server-side apply of the status subresource; nothing is sent where the status has all of it already.
    /// Where the type has no status subresource, the error says how to add one.
    pub async fn status(&self, status: impl Serialize) -> Result<()> {
        let object = self.reconciled()?;
        let mut status = serde_json::to_value(status)?;
        strip_nulls(&mut status);
        // As it is now: an earlier call in this reconcile may have changed it.
        let latest = self.cached::<O::Resource>().get(&self.key);
        let latest = latest.filter(|l| l.meta().uid == object.meta().uid);
        let mut current = serde_json::to_value(&**latest.as_ref().unwrap_or(object))?;
        let mut current = current.get_mut("status").map(Value::take).unwrap_or_default();
        strip_nulls(&mut current);
        let hash = hash(&status);
        if current == status
            || (self.shared.sent.version(What::Status, &self.key, hash).is_some()
                && covers(&current, &status))
        {
            return Ok(());
        }
        self.shared.writer.apply_status::<O::Resource>(&self.key, &status).await?;
        self.shared.sent.remember(What::Status, &self.key, hash, None);
        Ok(())
    }

    /// Tells people about the reconciled object (`kubectl events`, `kubectl describe`). Never fails; what repeats is
    /// counted.
    pub async fn event(&self, event: Event) {
        let regarding = match &self.object {
            Some(object) => object.object_ref(&()),
            None => return,
        };
        self.shared.recorder.record(regarding, event).await;
    }

    /// Tells people about another object.
    pub async fn event_about<T: Object>(&self, object: &T, event: Event) {
        self.shared.recorder.record(object.object_ref(&()), event).await;
    }
}

/// What must be known of a kind to place an object of it.
struct AppliedKind {
    display: String,
    namespaced: bool,
}

/// Deletions of what is owned and not kept.
struct Leftover<'a> {
    shared: &'a Shared,
    uid: &'a str,
    kept: &'a BTreeSet<(TypeId, Key)>,
    deletions: Vec<BoxFuture<'static, Result<bool>>>,
}

impl Visitor for Leftover<'_> {
    fn kind<T: Object>(&mut self, _edits: bool) {
        for object in self.shared.handles.get::<T>().owned_by(self.uid) {
            let key = Key::of(&*object);
            if object.meta().deletion_timestamp.is_some()
                || self.kept.contains(&(TypeId::of::<T>(), key.clone()))
            {
                continue;
            }
            let uid = object.meta().uid.clone();
            let params = DeleteParams {
                preconditions: Some(Preconditions { resource_version: None, uid }),
                ..DeleteParams::default()
            };
            let writer = self.shared.writer.clone();
            self.deletions.push(async move { writer.delete::<T>(&key, &params).await }.boxed());
        }
    }
}

/// Whether `has` has everything that `wants` has. Lists must be as long.
fn covers(has: &Value, wants: &Value) -> bool {
    match (has, wants) {
        (Value::Object(has), Value::Object(wants)) => {
            wants.iter().all(|(k, w)| has.get(k).is_some_and(|h| covers(h, w)))
        }
        (Value::Array(has), Value::Array(wants)) => {
            has.len() == wants.len() && has.iter().zip(wants).all(|(h, w)| covers(h, w))
        }
        _ => has == wants,
    }
}
