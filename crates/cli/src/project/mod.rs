//! A project: its `homeostat.toml`, and the files that follow from it.
//!
//! `homeostat.toml` is what the generator knows of a project: its name, its domain, its kinds. Nothing about objects
//! stands in it, since that follows from the Rust types. Invariant: a project that a newer homeostat has written is
//! refused, not half understood.

pub(crate) mod foreign;
pub(crate) mod names;
pub(crate) mod plan;
pub(crate) mod templates;

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::complaint::Complaint;
use plan::Plan;

/// The project file.
pub(crate) const FILE: &str = "homeostat.toml";
/// The layout that this version writes. It grows when older versions could no longer read the file.
const LAYOUT: u32 = 1;
/// More kinds than this are more than one program should hold.
const MOST_APIS: usize = 200;

/// How the generated Cargo.toml names the SDK.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) struct Sdk {
    /// A folder with the `homeostat` package, rather than a version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
}

/// What webhooks a version of a kind has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct Webhooks {
    pub(crate) defaulting: bool,
    pub(crate) validation: bool,
    pub(crate) conversion: bool,
}

impl Webhooks {
    pub(crate) fn any(self) -> bool {
        self.defaulting || self.validation || self.conversion
    }
}

/// A version of a kind.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Api {
    /// The full group.
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) kind: String,
    pub(crate) plural: String,
    pub(crate) namespaced: bool,
    /// Whether the project reconciles it: the same for all versions of a kind.
    #[serde(default = "yes")]
    pub(crate) controller: bool,
    /// The path of its Rust type, where the project didn't make it and only reconciles it.
    #[serde(default, rename = "type", skip_serializing_if = "Option::is_none")]
    pub(crate) external: Option<String>,
    #[serde(default)]
    pub(crate) webhooks: Webhooks,
}

impl Api {
    /// The module of the kind.
    pub(crate) fn module(&self) -> String {
        names::module(&self.kind)
    }

    /// The name of its CustomResourceDefinition, if it has one.
    pub(crate) fn definition(&self) -> String {
        if self.group.is_empty() { self.plural.clone() } else { format!("{}.{}", self.plural, self.group) }
    }
}

/// The project file's contents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Project {
    /// See [`LAYOUT`].
    pub(crate) layout: u32,
    /// The homeostat that wrote it last.
    pub(crate) homeostat: String,
    pub(crate) name: String,
    pub(crate) domain: String,
    /// The program works in its own namespace only.
    #[serde(default)]
    pub(crate) namespaced: bool,
    /// Where the SDK comes from.
    #[serde(default = "published")]
    pub(crate) sdk: Sdk,
    #[serde(default, rename = "api")]
    pub(crate) apis: Vec<Api>,
}

fn yes() -> bool {
    true
}

fn published() -> Sdk {
    Sdk { path: None }
}

/// What is read before anything else, whatever else is in the file.
#[derive(Deserialize)]
struct Stamp {
    layout: u32,
    #[serde(default)]
    homeostat: String,
}

impl Project {
    /// An empty project.
    pub(crate) fn new(name: &str, domain: &str, namespaced: bool, sdk: Sdk) -> Self {
        Self {
            layout: LAYOUT,
            homeostat: env!("CARGO_PKG_VERSION").to_owned(),
            name: name.to_owned(),
            domain: domain.to_owned(),
            namespaced,
            sdk,
            apis: Vec::new(),
        }
    }

    /// The project that `folder` is in, and its root.
    pub(crate) fn find(folder: &Path) -> Result<(PathBuf, Self), Complaint> {
        let start = std::path::absolute(folder)?;
        let mut here = Some(start.as_path());
        while let Some(root) = here {
            let file = root.join(FILE);
            if file.is_file() {
                return Ok((root.to_owned(), Self::read(&file)?));
            }
            here = root.parent();
        }
        Err(Complaint::new(format!(
            "there is no {FILE} in {} or above it; make a project with `homeostat init`, or go to one",
            start.display()
        )))
    }

    fn read(file: &Path) -> Result<Self, Complaint> {
        let fail = |why: String| Complaint::new(format!("{}: {why}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|e| fail(e.to_string()))?;
        Self::parse(&text).map_err(fail)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let plain = |e: toml::de::Error| {
            let place = e.span().map(|s| text[..s.start.min(text.len())].lines().count().max(1));
            match place {
                Some(line) => format!("line {line}: {}", e.message()),
                None => e.message().to_owned(),
            }
        };
        let stamp: Stamp = toml::from_str(text).map_err(plain)?;
        let own = env!("CARGO_PKG_VERSION");
        if stamp.layout > LAYOUT {
            return Err(format!(
                "written by homeostat {} (layout {}), and this is {own} (layout {LAYOUT}); use that version or a newer one",
                stamp.homeostat, stamp.layout
            ));
        }
        if newer(&stamp.homeostat, own) {
            return Err(format!(
                "written by homeostat {}, which is newer than this one ({own}); use that version or a newer one",
                stamp.homeostat
            ));
        }
        let project: Self = toml::from_str(text).map_err(plain)?;
        project.check()?;
        Ok(project)
    }

    /// Whether a person's edits make sense.
    fn check(&self) -> Result<(), String> {
        names::project(&self.name)?;
        names::domain(&self.domain)?;
        if self.apis.len() > MOST_APIS {
            return Err(format!("more than {MOST_APIS} kinds are more than one program should hold"));
        }
        for (at, api) in self.apis.iter().enumerate() {
            match &api.external {
                Some(path) => {
                    foreign::path(path)?;
                    names::foreign_group(&api.group)?;
                }
                None => drop(names::group(&api.group, &api.group)?),
            }
            names::version(&api.version)?;
            names::kind(&api.kind)?;
            names::plural(&api.plural)?;
            self.fits(&self.apis[..at], api)?;
        }
        Ok(())
    }

    /// Whether `api` may stand beside `others`.
    fn fits(&self, others: &[Api], api: &Api) -> Result<(), String> {
        for other in others {
            let same_kind = other.kind == api.kind;
            if same_kind && other.group == api.group && other.version == api.version {
                return Err(format!(
                    "there is a {} in {}/{} already; --force generates it again",
                    api.kind, api.group, api.version
                ));
            }
            if same_kind && other.group != api.group {
                return Err(format!(
                    "there is a kind {} already, in group {}; a project has one kind of a name",
                    api.kind, other.group
                ));
            }
            if same_kind && (other.external.is_some() || api.external.is_some()) {
                return Err(format!(
                    "there is a {} in {}/{} already, and only kinds that a project made have several versions",
                    api.kind, other.group, other.version
                ));
            }
            if !same_kind && other.module() == api.module() {
                return Err(format!(
                    "kinds {} and {} would share the module {}",
                    other.kind,
                    api.kind,
                    api.module()
                ));
            }
            if !same_kind && other.group == api.group && other.plural == api.plural {
                return Err(format!(
                    "{} is the plural of {} already; give another with --plural",
                    api.plural, other.kind
                ));
            }
            if same_kind && (other.plural != api.plural || other.namespaced != api.namespaced) {
                return Err(format!(
                    "{} is {} with plural {} in {}: all versions of a kind have the same plural and scope",
                    api.kind,
                    if other.namespaced { "namespaced" } else { "cluster-scoped" },
                    other.plural,
                    other.version
                ));
            }
        }
        Ok(())
    }

    /// Adds `api`; with `force` it may be there already, and keeps its webhooks.
    pub(crate) fn add(&mut self, api: Api, force: bool) -> Result<(), String> {
        if let Some(there) = self
            .apis
            .iter_mut()
            .find(|a| force && a.kind == api.kind && a.group == api.group && a.version == api.version)
        {
            if there.plural != api.plural || there.namespaced != api.namespaced {
                return Err(format!(
                    "{} has plural {} and {} scope; delete it first to change that",
                    there.kind,
                    there.plural,
                    if there.namespaced { "namespaced" } else { "cluster" }
                ));
            }
            if there.external.is_some() != api.external.is_some() {
                return Err(format!(
                    "whether {} is a type of the project doesn't change; delete it first",
                    there.kind
                ));
            }
            there.external = api.external;
            return Ok(());
        }
        self.fits(&self.apis, &api)?;
        self.apis.push(api);
        Ok(())
    }

    /// The API that is meant, or which there are.
    pub(crate) fn api(&mut self, group: &str, version: &str, kind: &str) -> Result<&mut Api, String> {
        let (foreign, group) = (foreign::full(group), names::group(group, &self.domain)?);
        let known: Vec<String> =
            self.apis.iter().map(|a| format!("{}/{} {}", a.group, a.version, a.kind)).collect();
        let here = |a: &Api| if a.external.is_some() { a.group == foreign } else { a.group == group };
        let wanted = |a: &&mut Api| here(a) && a.version == version && a.kind == kind;
        self.apis.iter_mut().find(wanted).ok_or_else(|| {
            let there = if known.is_empty() { "none yet".to_owned() } else { known.join(", ") };
            format!("there is no {kind} in {group}/{version}; the project has: {there}")
        })
    }

    /// The versions of a kind, in the order in which they were added; the first is the stored one to begin with.
    pub(crate) fn versions(&self, kind: &str) -> impl Iterator<Item = &Api> {
        self.apis.iter().filter(move |a| a.kind == kind)
    }

    /// Whether the project reconciles the kind.
    pub(crate) fn has_controller(&self, kind: &str) -> bool {
        self.versions(kind).any(|a| a.controller)
    }

    /// Has the project reconcile the kind, in all its versions.
    pub(crate) fn add_controller(&mut self, kind: &str) {
        self.apis.iter_mut().filter(|a| a.kind == kind).for_each(|a| a.controller = true);
    }

    /// One API of each kind, in the order in which they were added.
    pub(crate) fn kinds(&self) -> Vec<&Api> {
        let mut kinds: Vec<&Api> = Vec::new();
        for api in &self.apis {
            if !kinds.iter().any(|k| k.kind == api.kind) {
                kinds.push(api);
            }
        }
        kinds
    }

    /// Plans every file that the generator makes for the project.
    pub(crate) fn generate(&self, plan: &mut Plan) -> Result<(), Complaint> {
        let mut stamped = self.clone();
        stamped.homeostat = env!("CARGO_PKG_VERSION").to_owned();
        for (path, text) in templates::files(&stamped)? {
            plan.generate(&path, text)?;
        }
        Ok(())
    }
}

/// Whether version `a` is newer than `b`; what isn't a version isn't newer.
fn newer(a: &str, b: &str) -> bool {
    let numbers = |text: &str| -> Option<Vec<u64>> {
        let plain = text.split(['-', '+']).next().unwrap_or(text);
        plain.split('.').map(|n| n.parse().ok()).collect()
    };
    matches!((numbers(a), numbers(b)), (Some(a), Some(b)) if a > b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn api(group: &str, version: &str, kind: &str, plural: &str) -> Api {
        Api {
            group: group.into(),
            version: version.into(),
            kind: kind.into(),
            plural: plural.into(),
            namespaced: true,
            controller: true,
            external: None,
            webhooks: Webhooks::default(),
        }
    }

    fn project() -> Project {
        let mut project = Project::new("shop", "example.com", false, published());
        project.add(api("cache.example.com", "v1", "RedisCluster", "redisclusters"), false).unwrap();
        project
    }

    #[test]
    fn kinds_that_do_not_fit_are_refused() {
        let cases = [
            (api("cache.example.com", "v1", "RedisCluster", "redisclusters"), "--force"),
            (api("db.example.com", "v1", "RedisCluster", "redisclusters"), "one kind of a name"),
            (api("cache.example.com", "v1", "Other", "redisclusters"), "give another with --plural"),
            (api("cache.example.com", "v2", "RedisCluster", "others"), "the same plural and scope"),
            (api("cache.example.com", "v1", "Rediscluster", "other"), ""),
        ];
        for (api, why) in cases {
            let result = project().add(api.clone(), false);
            match why {
                "" => result.expect("it fits"),
                why => assert!(result.unwrap_err().contains(why), "{api:?}"),
            }
        }
        project().add(api("cache.example.com", "v2", "RedisCluster", "redisclusters"), false).unwrap();
        project().add(api("cache.example.com", "v1", "RedisCluster", "redisclusters"), true).unwrap();
    }

    #[test]
    fn what_is_written_reads_back() {
        let mut project = project();
        let types = Api { controller: false, ..api("cache.example.com", "v1", "Shelf", "shelves") };
        project.add(types, false).unwrap();
        let foreign = Api {
            external: foreign::kubernetes("core", "v1", "Service"),
            ..api("", "v1", "Service", "services")
        };
        project.add(foreign, false).unwrap();
        let text = templates::files(&project).unwrap().into_iter().find(|(p, _)| p == FILE).unwrap().1;
        assert_eq!(Project::parse(&text).unwrap(), project, "{text}");
    }

    #[test]
    fn files_that_cannot_be_understood_are_refused() {
        let cases = [
            ("layout = 99\nhomeostat = \"9.0.0\"\nnew = true", "written by homeostat 9.0.0 (layout 99)"),
            (
                "layout = 1\nhomeostat = \"9.0.0\"\nname = \"a\"\ndomain = \"b.c\"",
                "which is newer than this one",
            ),
            ("layout = 1\nname = \"a\"\n", "missing field `homeostat`"),
            (
                "layout = 1\nhomeostat = \"0.1.0\"\nname = \"A\"\ndomain = \"b.c\"",
                "can't be a project's name",
            ),
            (
                "layout = 1\nhomeostat = \"0.1.0\"\nname = \"a\"\ndomain = \"b.c\"\nnmespaced = true",
                "unknown field",
            ),
            ("layout = ", "line 1"),
        ];
        for (text, why) in cases {
            let error = Project::parse(text).unwrap_err();
            assert!(error.contains(why), "{error}");
        }
    }
}
