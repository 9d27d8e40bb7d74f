//! OpenAPI documents: one of version 3 per group and version with an index of their hashes, and one of version 2
//! (Swagger) of everything, as JSON and in the protobuf form that kubectl asks for.
//!
//! They say enough for `kubectl explain`, `apply`, client-side validation and generated clients; descriptions of
//! built-in fields are left out. Nothing is built before it is asked for, and a changed definition rebuilds only
//! its own group and version. Invariant: equal definitions give equal bytes and hashes.

mod custom;
mod operations;
mod proto;
mod published;
mod v2;
mod v3;

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, OnceLock};

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::builtin;
use crate::definition::{OpenApi, Resource, Version};
use crate::discovery::hex;

/// Version that documents carry as theirs.
const VERSION: &str = "v1.36.2";
/// Changes when the same definitions are published in another form, so that clients' caches let go of the old one.
const FORM: &str = "1";

/// The media type by which clients ask for [`Documents::v2_proto`].
pub const V2_PROTO_MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";
/// The Content-Type of the answer: Go's clients can't parse the `@` that they sent.
pub const V2_PROTO_CONTENT_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";

/// An encoded document.
#[derive(Debug)]
pub struct Document {
    /// The bytes to send.
    pub bytes: Arc<[u8]>,
    /// SHA-256 in hex, upper case; in quotes it is the ETag.
    pub hash: String,
}

impl Document {
    fn new(bytes: Vec<u8>) -> Arc<Self> {
        let hash = hex(&Sha256::digest(&bytes)).to_uppercase();
        Arc::new(Self { bytes: bytes.into(), hash })
    }

    fn json(value: &Value) -> Arc<Self> {
        Self::new(value.to_string().into_bytes())
    }
}

/// Resources of one group and version, with what was built of them.
struct Slot {
    resources: Vec<Arc<Resource>>,
    group: String,
    version: String,
    hash: OnceLock<String>,
    v3: OnceLock<Arc<Document>>,
    v2: OnceLock<v2::Fragment>,
    v2_proto: OnceLock<v2::ProtoFragment>,
}

/// The served versions in a slot, resource by resource.
type Served<'a> = (&'a Resource, &'a Version);

impl Slot {
    fn served(&self) -> impl Iterator<Item = Served<'_>> {
        self.resources.iter().filter_map(|r| {
            let here =
                |v: &&Version| v.served && *v.gv.group == *self.group && *v.gv.version == *self.version;
            Some((&**r, r.versions.iter().find(here)?))
        })
    }

    /// Same resources, unchanged since.
    fn is(&self, resources: &[Arc<Resource>]) -> bool {
        self.resources.len() == resources.len()
            && self.resources.iter().zip(resources).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// A hash of what the document is made of, so that the index needs no document.
    fn hash(&self) -> &str {
        self.hash.get_or_init(|| {
            let mut hasher = Sha256::new();
            hasher.update(FORM);
            hasher.update(builtin_hash());
            for (r, v) in self.served() {
                hasher.update(
                    json!([*r.id.group, *r.id.resource, *r.kind, r.list_kind, r.namespaced]).to_string(),
                );
                hasher.update(json!([*v.gv.version, v.verbs, v.selectable]).to_string());
                for s in &v.subresources {
                    let gv = s.gv.as_ref().map(ToString::to_string);
                    hasher.update(json!([s.name, s.kind, gv, s.verbs]).to_string());
                }
                match &v.openapi {
                    OpenApi::Definition(name) => hasher.update(name),
                    OpenApi::Inline(schema) => hasher.update(schema.to_string()),
                }
            }
            hex(&hasher.finalize()).to_uppercase()
        })
    }
}

/// Hash of all built-in definitions.
fn builtin_hash() -> &'static str {
    static HASH: LazyLock<String> = LazyLock::new(|| {
        let mut hasher = Sha256::new();
        let definitions = builtin::definitions();
        for name in definitions.names() {
            hasher.update(name);
            hasher.update(definitions.source(name).unwrap_or_default());
        }
        hex(&hasher.finalize())
    });
    &HASH
}

/// All documents of one set of definitions; by default of none.
#[derive(Default)]
pub struct Documents {
    slots: BTreeMap<String, Arc<Slot>>,
    index: OnceLock<Arc<Document>>,
    v2: OnceLock<Arc<Document>>,
    v2_proto: OnceLock<Arc<Document>>,
}

impl Documents {
    /// Documents of `resources`, each built when first asked for.
    pub fn new(resources: &[Arc<Resource>]) -> Self {
        Self::default().changed(resources)
    }

    /// Documents of a changed set of definitions. What was built of groups and versions whose resources are the
    /// same [`Arc`]s stays built.
    pub fn changed(&self, resources: &[Arc<Resource>]) -> Self {
        let mut by_path: BTreeMap<String, (String, String, Vec<Arc<Resource>>)> = BTreeMap::new();
        for r in resources {
            for v in r.versions.iter().filter(|v| v.served) {
                let (group, version) = (v.gv.group.to_string(), v.gv.version.to_string());
                let slot = by_path.entry(path(&group, &version)).or_insert((group, version, Vec::new()));
                slot.2.push(r.clone());
            }
        }
        let mut new = Self::default();
        for (path, (group, version, resources)) in by_path {
            let slot = match self.slots.get(&path) {
                Some(slot) if slot.is(&resources) => slot.clone(),
                _ => Arc::new(Slot {
                    resources,
                    group,
                    version,
                    hash: OnceLock::new(),
                    v3: OnceLock::new(),
                    v2: OnceLock::new(),
                    v2_proto: OnceLock::new(),
                }),
            };
            new.slots.insert(path, slot);
        }
        new
    }

    /// `/openapi/v3`: where each document is, with its hash.
    pub fn index(&self) -> Arc<Document> {
        let build = || {
            let entry = |(path, slot): (&String, &Arc<Slot>)| {
                let url = format!("/openapi/v3/{path}?hash={}", slot.hash());
                (path.clone(), json!({"serverRelativeURL": url}))
            };
            let paths: serde_json::Map<String, Value> = self.slots.iter().map(entry).collect();
            Document::json(&json!({"paths": paths}))
        };
        self.index.get_or_init(build).clone()
    }

    /// The hash that the index gives for `path` (`api/v1`, `apis/apps/v1`); `None` where there is no document.
    pub fn hash(&self, path: &str) -> Option<&str> {
        self.slots.get(path).map(|slot| slot.hash())
    }

    /// `/openapi/v3/{path}`.
    pub fn v3(&self, path: &str) -> Option<Arc<Document>> {
        let slot = self.slots.get(path)?;
        Some(slot.v3.get_or_init(|| Document::json(&v3::document(slot))).clone())
    }

    /// `/openapi/v2` as JSON.
    pub fn v2(&self) -> Arc<Document> {
        let build = || {
            let fragments = self.slots.values().map(|s| s.v2.get_or_init(|| v2::fragment(s)));
            Document::new(v2::json(fragments))
        };
        self.v2.get_or_init(build).clone()
    }

    /// `/openapi/v2` as `application/com.github.proto-openapi.spec.v2@v1.0+protobuf`.
    pub fn v2_proto(&self) -> Arc<Document> {
        let build = || {
            let fragments = self.slots.values().map(|s| s.v2_proto.get_or_init(|| v2::proto_fragment(s)));
            Document::new(v2::protobuf(fragments))
        };
        self.v2_proto.get_or_init(build).clone()
    }
}

/// The path of a group and version below `/openapi/v3/`.
fn path(group: &str, version: &str) -> String {
    if group.is_empty() { format!("api/{version}") } else { format!("apis/{group}/{version}") }
}
