//! What is served right now: definitions by group, version and plural, replaced as a whole when a CRD changes.
//!
//! Readers take the present table and keep it for their request. It decides nothing about CRDs; the module `crds`
//! does. Invariant: a table is immutable; whoever watches a resource is told when its definition changes.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use homeostat_model::GroupVersion;
use homeostat_resources::openapi::Documents;
use homeostat_resources::{Origin, Resource, Version};
use tokio_util::sync::CancellationToken;

use crate::convert::{self, Converted};

/// How long watches live on after their definition has changed.
const OLD_WATCHES: Duration = Duration::from_secs(120);

/// A served resource, and the signal that its definition has changed.
#[derive(Clone)]
pub(crate) struct Served {
    pub(crate) resource: Arc<Resource>,
    pub(crate) changed: CancellationToken,
}

/// A resource in one of its versions: what a request is about.
#[derive(Clone)]
pub(crate) struct Target {
    pub(crate) resource: Arc<Resource>,
    at: usize,
    pub(crate) changed: CancellationToken,
    /// The other resource that is a view of the same objects (events).
    pub(crate) sibling: Option<Arc<Resource>>,
    /// What a webhook has converted for this request, where versions are converted by one.
    pub(crate) converted: Option<Arc<Converted>>,
}

impl Target {
    /// The version asked for.
    pub(crate) fn version(&self) -> &Version {
        &self.resource.versions[self.at]
    }

    /// A resource in its storage version.
    pub(crate) fn of(served: Served) -> Self {
        let at = served.resource.storage;
        Self { resource: served.resource, at, changed: served.changed, sibling: None, converted: None }
    }

    /// Group and version asked for.
    pub(crate) fn gv(&self) -> &GroupVersion {
        &self.version().gv
    }

    /// Whether stored objects are already in this version.
    pub(crate) fn is_storage(&self) -> bool {
        self.at == self.resource.storage
    }

    /// The same resource in its storage version.
    pub(crate) fn storage(&self) -> Self {
        Self { at: self.resource.storage, ..self.clone() }
    }

    /// Whether it is built in.
    pub(crate) fn built_in(&self) -> bool {
        self.resource.origin == Origin::BuiltIn
    }

    /// Whether its CRD is being deleted.
    pub(crate) fn terminating(&self) -> bool {
        matches!(self.resource.origin, Origin::Custom { terminating: true, .. })
    }
}

/// One table of everything served.
#[derive(Default)]
pub(crate) struct Table {
    all: Vec<Arc<Resource>>,
    by_path: BTreeMap<String, Target>,
    custom: BTreeMap<String, Served>,
    groups: BTreeMap<String, bool>,
    /// Documents about this table, made when first asked for.
    documents: Mutex<BTreeMap<String, Arc<Document>>>,
    openapi: Documents,
}

/// A document about what is served, with its tag.
pub(crate) struct Document {
    pub(crate) bytes: Bytes,
    pub(crate) etag: String,
}

fn path_key(group: &str, version: &str, plural: &str) -> String {
    let mut key = String::with_capacity(group.len() + version.len() + plural.len() + 2);
    key.push_str(group);
    key.push('/');
    key.push_str(version);
    key.push('/');
    key.push_str(plural);
    key
}

impl Table {
    /// `openapi` are the documents of the table before this one.
    fn build(built_in: &[Arc<Resource>], custom: BTreeMap<String, Served>, openapi: &Documents) -> Self {
        let mut table = Self { custom, ..Self::default() };
        let forever = CancellationToken::new();
        for resource in built_in {
            table.add(&Served { resource: resource.clone(), changed: forever.clone() });
        }
        for served in table.custom.clone().values() {
            table.add(served);
        }
        let all = table.all.clone();
        for target in table.by_path.values_mut().filter(|t| t.built_in()) {
            let own = &target.resource;
            target.sibling = all.iter().find(|r| r.collection == own.collection && r.id != own.id).cloned();
        }
        table.openapi = openapi.changed(&table.all);
        table
    }

    fn add(&mut self, served: &Served) {
        let resource = &served.resource;
        for (at, version) in resource.versions.iter().enumerate().filter(|(_, v)| v.served) {
            let key = path_key(&version.gv.group, &version.gv.version, &resource.id.resource);
            let target = Target {
                resource: resource.clone(),
                at,
                changed: served.changed.clone(),
                sibling: None,
                converted: None,
            };
            let built_in = target.built_in();
            self.groups.entry(format!("{}/{}", version.gv.group, version.gv.version)).or_insert(built_in);
            self.by_path.entry(key).or_insert(target);
        }
        self.all.push(resource.clone());
    }

    /// The resource under a path.
    pub(crate) fn target(&self, group: &str, version: &str, plural: &str) -> Option<Target> {
        let mut target = self.by_path.get(&path_key(group, version, plural)).cloned()?;
        if convert::webhook(&target).is_some() {
            target.converted = Some(Arc::default());
        }
        Some(target)
    }

    /// A built-in resource in its preferred version.
    pub(crate) fn named(&self, group: &str, plural: &str) -> Option<Target> {
        let resource = self.all.iter().find(|r| &*r.id.group == group && &*r.id.resource == plural)?;
        let at = resource.versions.iter().position(|v| v.served)?;
        let version = &resource.versions[at].gv;
        self.target(&version.group, &version.version, plural)
    }

    /// Everything served, built-ins first.
    pub(crate) fn all(&self) -> &[Arc<Resource>] {
        &self.all
    }

    /// A document by name, made by `make` unless it is there; `None` where `make` has none.
    pub(crate) fn document(
        &self,
        name: &str,
        make: impl FnOnce(&Self) -> Option<Bytes>,
    ) -> Option<Arc<Document>> {
        let lock = || self.documents.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(d) = lock().get(name) {
            return Some(d.clone());
        }
        let bytes = make(self)?;
        let document = Arc::new(Document { etag: homeostat_resources::discovery::etag(&bytes), bytes });
        lock().insert(name.to_owned(), document.clone());
        Some(document)
    }

    /// OpenAPI documents of this table.
    pub(crate) fn openapi(&self) -> &Documents {
        &self.openapi
    }

    /// Whether something built in is served under this group and version.
    pub(crate) fn built_in_group(&self, group: &str, version: &str) -> bool {
        self.groups.get(&format!("{group}/{version}")).copied().unwrap_or(false)
    }

    /// The resource that a CRD of this name makes.
    pub(crate) fn custom(&self, crd: &str) -> Option<&Served> {
        self.custom.get(crd)
    }
}

/// The present table.
pub(crate) struct Registry {
    built_in: Vec<Arc<Resource>>,
    table: ArcSwap<Table>,
}

impl Registry {
    /// A registry of built-in resources.
    pub(crate) fn new(built_in: Vec<Arc<Resource>>) -> Self {
        let table = ArcSwap::from_pointee(Table::build(&built_in, BTreeMap::new(), &Documents::default()));
        Self { built_in, table }
    }

    /// The table as it is now.
    pub(crate) fn table(&self) -> Arc<Table> {
        self.table.load_full()
    }

    /// Serves, changes or (with `None`) stops serving what the CRD of this name makes. Only one task calls it.
    pub(crate) fn set(&self, crd: &str, resource: Option<Resource>) {
        let old = self.table();
        let mut custom = old.custom.clone();
        let gone = resource.is_none();
        let before = custom.remove(crd);
        let mut ended = before.map(|b| (b.resource.epoch, b.changed));
        if let Some(r) = resource {
            // With the same schemas, watches go on (a definition that is being deleted, say).
            let changed = match ended.take_if(|(epoch, _)| *epoch == r.epoch) {
                Some((_, token)) => token,
                None => CancellationToken::new(),
            };
            custom.insert(crd.to_owned(), Served { resource: Arc::new(r), changed });
        }
        self.table.store(Arc::new(Table::build(&self.built_in, custom, &old.openapi)));
        let Some((_, token)) = ended else { return };
        if gone {
            token.cancel();
            return;
        }
        // Watches see a while on through the old definition, as the reference lets them, and then start anew.
        tokio::spawn(async move {
            tokio::time::sleep(OLD_WATCHES).await;
            token.cancel();
        });
    }
}
