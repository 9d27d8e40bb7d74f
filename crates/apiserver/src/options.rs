//! Query parameters as the API's option types: parsed strictly where the reference does, ignored where unknown.
//!
//! It validates each option by itself (`dryRun`, `fieldValidation`, `resourceVersionMatch` …); what an option means
//! is the verbs' affair.

use homeostat_model::gvk::GroupKind;
use homeostat_model::status::Result;
use homeostat_model::{Status, field};
use percent_encoding::percent_decode_str;

/// A query string, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Parses `a=b&c=d`; `+` is a space. At most 1,000 parameters are kept.
    pub fn parse(text: &str) -> Self {
        let decode = |s: &str| percent_decode_str(&s.replace('+', " ")).decode_utf8_lossy().into_owned();
        Self(
            text.split('&')
                .filter(|p| !p.is_empty())
                .take(1000)
                .map(|pair| {
                    let (k, v) = pair.split_once('=').unwrap_or((pair, ""));
                    (decode(k), decode(v))
                })
                .collect(),
        )
    }

    /// First value of a parameter.
    pub fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// Whether the parameter is there, even empty.
    pub fn has(&self, key: &str) -> bool {
        self.0.iter().any(|(k, _)| k == key)
    }

    /// A boolean as apimachinery converts it: absent, `false` and `0` are false; anything else is true.
    pub fn flag(&self, key: &str) -> bool {
        self.get(key).is_some_and(|v| v != "false" && v != "0")
    }

    fn optional_flag(&self, key: &str) -> Option<bool> {
        self.has(key).then(|| self.flag(key))
    }

    fn int(&self, key: &str) -> Result<Option<i64>> {
        match self.get(key) {
            None | Some("") => Ok(None),
            Some(v) => parse_int(v).map(Some).map_err(Status::bad_request),
        }
    }

    fn text(&self, key: &str) -> String {
        self.get(key).unwrap_or_default().to_owned()
    }
}

/// Go's `strconv.ParseInt`, with its error text.
pub(crate) fn parse_int(v: &str) -> std::result::Result<i64, String> {
    v.parse::<i64>().map_err(|e| {
        let why = match e.kind() {
            std::num::IntErrorKind::PosOverflow | std::num::IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        format!("strconv.ParseInt: parsing {}: {why}", field::quote(v))
    })
}

/// Go's `strconv.ParseUint`, with its error text.
pub(crate) fn parse_uint(v: &str) -> std::result::Result<u64, String> {
    let digits = v.bytes().all(|b| b.is_ascii_digit());
    v.parse::<u64>().ok().filter(|_| digits).ok_or_else(|| {
        let why = if digits && !v.is_empty() { "value out of range" } else { "invalid syntax" };
        format!("strconv.ParseUint: parsing {}: {why}", field::quote(v))
    })
}

/// `resourceVersionMatch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// Exactly the version asked for.
    Exact,
    /// That version or a newer one.
    NotOlderThan,
}

/// Options of lists and watches.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    /// Label selector, unparsed.
    pub label_selector: String,
    /// Field selector, unparsed.
    pub field_selector: String,
    /// Whether a watch is asked for.
    pub watch: bool,
    /// Whether bookmarks are welcome.
    pub bookmarks: bool,
    /// Version, unparsed.
    pub resource_version: String,
    /// How the version is meant.
    pub version_match: Option<Match>,
    /// Seconds after which a watch ends.
    pub timeout: Option<i64>,
    /// Most items of a page; 0 is all.
    pub limit: i64,
    /// Token of the next page.
    pub continue_token: String,
    /// Whether a watch starts with what is there.
    pub send_initial_events: Option<bool>,
}

impl ListOptions {
    /// Parses and validates.
    pub fn parse(q: &Query, watch: bool) -> Result<Self> {
        let mut errors = Vec::new();
        let o = Self {
            label_selector: q.text("labelSelector"),
            field_selector: q.text("fieldSelector"),
            watch,
            bookmarks: q.flag("allowWatchBookmarks"),
            resource_version: q.text("resourceVersion"),
            timeout: q.int("timeoutSeconds")?,
            limit: q.int("limit")?.unwrap_or(0).max(0),
            continue_token: q.text("continue"),
            send_initial_events: q.optional_flag("sendInitialEvents"),
            version_match: match q.get("resourceVersionMatch") {
                Some("Exact") => Some(Match::Exact),
                Some("NotOlderThan") => Some(Match::NotOlderThan),
                _ => None,
            },
        };
        let given = q.text("resourceVersionMatch");
        if watch {
            o.check_watch(&given, &mut errors)
        } else {
            o.check_list(&given, &mut errors)
        }
        if errors.is_empty() {
            return Ok(o);
        }
        Err(Status::invalid(&GroupKind::new("meta.k8s.io", "ListOptions"), "", &errors))
    }

    fn check_list(&self, given: &str, errors: &mut Vec<field::Error>) {
        if self.send_initial_events.is_some() {
            errors.push(field::Error::forbidden(
                "sendInitialEvents",
                "sendInitialEvents is forbidden for list",
            ));
        }
        if given.is_empty() {
            return;
        }
        let path = "resourceVersionMatch";
        if self.resource_version.is_empty() {
            errors.push(field::Error::forbidden(
                path,
                "resourceVersionMatch is forbidden unless resourceVersion is provided",
            ));
        }
        if !self.continue_token.is_empty() {
            errors.push(field::Error::forbidden(
                path,
                "resourceVersionMatch is forbidden when continue is provided",
            ));
        }
        if self.version_match.is_none() {
            errors.push(field::Error::not_supported(path, given, &["Exact", "NotOlderThan", ""]));
        }
        if self.version_match == Some(Match::Exact) && self.resource_version == "0" {
            errors.push(field::Error::forbidden(
                path,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"",
            ));
        }
    }

    fn check_watch(&self, given: &str, errors: &mut Vec<field::Error>) {
        let path = "resourceVersionMatch";
        if self.send_initial_events.is_some() {
            if self.version_match != Some(Match::NotOlderThan) {
                errors.push(field::Error::forbidden(
                    path,
                    "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan",
                ));
                if !given.is_empty() {
                    errors.push(field::Error::not_supported(path, given, &["NotOlderThan"]));
                }
            }
            if !self.continue_token.is_empty() {
                errors.push(field::Error::forbidden(
                    path,
                    "resourceVersionMatch is forbidden when continue is provided",
                ));
            }
        } else if !given.is_empty() {
            errors.push(field::Error::forbidden(
                path,
                "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided",
            ));
        }
    }
}

/// `fieldValidation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValidation {
    /// Unknown and duplicate fields are dropped silently.
    Ignore,
    /// They are dropped with a warning.
    Warn,
    /// They are an error.
    Strict,
}

/// Options of writes.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    /// Nothing is stored.
    pub dry_run: bool,
    /// What becomes of unknown fields.
    pub field_validation: FieldValidation,
    /// Field manager, or empty.
    pub field_manager: String,
    /// Apply takes fields of other managers.
    pub force: bool,
}

/// The option type that an error names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteKind {
    /// `CreateOptions`
    Create,
    /// `UpdateOptions`
    Update,
    /// `PatchOptions` of an apply.
    Apply,
    /// `PatchOptions` of the other patches.
    Patch,
}

impl WriteKind {
    fn name(self) -> &'static str {
        match self {
            Self::Create => "CreateOptions",
            Self::Update => "UpdateOptions",
            Self::Apply | Self::Patch => "PatchOptions",
        }
    }
}

const DRY_RUN: &[&str] = &["All"];

fn check_dry_run<'a>(values: impl Iterator<Item = &'a str>, errors: &mut Vec<field::Error>) -> bool {
    let values: Vec<&str> = values.collect();
    if values.iter().any(|v| *v != "All") {
        let list = serde_json::Value::from(values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>());
        errors.push(field::Error::not_supported("dryRun", list, DRY_RUN));
    }
    !values.is_empty()
}

impl WriteOptions {
    /// Parses and validates.
    pub fn parse(q: &Query, kind: WriteKind) -> Result<Self> {
        let mut errors = Vec::new();
        let field_manager = q.text("fieldManager");
        match kind {
            WriteKind::Apply if field_manager.is_empty() => {
                errors.push(field::Error::required("fieldManager", "is required for apply patch"));
            }
            WriteKind::Patch if q.has("force") => {
                errors.push(field::Error::forbidden("force", "may not be specified for non-apply patch"));
            }
            _ => {}
        }
        errors.extend(homeostat_schema::managed::check_name(&field_manager, "fieldManager"));
        let dry_run = check_dry_run(q.all("dryRun"), &mut errors);
        let field_validation = match q.get("fieldValidation").unwrap_or_default() {
            "Ignore" => FieldValidation::Ignore,
            "" | "Warn" => FieldValidation::Warn,
            "Strict" => FieldValidation::Strict,
            other => {
                errors.push(field::Error::not_supported(
                    "fieldValidation",
                    other,
                    &["", "Ignore", "Strict", "Warn"],
                ));
                FieldValidation::Warn
            }
        };
        if errors.is_empty() {
            return Ok(Self { dry_run, field_validation, field_manager, force: q.flag("force") });
        }
        Err(Status::invalid(&GroupKind::new("meta.k8s.io", kind.name()), "", &errors))
    }
}

/// Options of a get.
#[derive(Clone, Debug, Default)]
pub struct GetOptions {
    /// Version, unparsed.
    pub resource_version: String,
}

impl GetOptions {
    /// Parses.
    pub fn parse(q: &Query) -> Self {
        Self { resource_version: q.text("resourceVersion") }
    }
}

/// Options of deletes, from the query or from a body of kind `DeleteOptions`.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    /// Seconds of grace.
    pub grace_period: Option<i64>,
    /// Nothing is stored.
    pub dry_run: bool,
    /// Precondition.
    pub uid: Option<String>,
    /// Precondition.
    pub resource_version: Option<String>,
    /// What becomes of children.
    pub propagation: Option<homeostat_resources::Propagation>,
    /// The options as the client gave them, for webhooks.
    pub told: serde_json::Value,
}

impl DeleteOptions {
    /// From the query.
    pub fn from_query(q: &Query) -> Result<Self> {
        let orphan = q.optional_flag("orphanDependents");
        let mut out = Self::build(
            q.int("gracePeriodSeconds")?,
            q.all("dryRun").map(str::to_owned).collect(),
            None,
            None,
            q.get("propagationPolicy").map(str::to_owned),
            orphan,
        )?;
        let mut told = serde_json::Map::new();
        let dry: Vec<&str> = q.all("dryRun").collect();
        if !dry.is_empty() {
            told.insert("dryRun".into(), dry.into());
        }
        if let Some(n) = out.grace_period {
            told.insert("gracePeriodSeconds".into(), n.into());
        }
        if let Some(p) = q.get("propagationPolicy") {
            told.insert("propagationPolicy".into(), p.into());
        }
        out.told = told.into();
        Ok(out)
    }

    /// From a body. Values of other types than the API's are the decoder's affair and ignored here.
    pub fn from_value(v: &serde_json::Value) -> Result<Self> {
        let text = |v: &serde_json::Value| v.as_str().map(str::to_owned);
        let pre = &v["preconditions"];
        let mut out = Self::build(
            v["gracePeriodSeconds"].as_i64(),
            v["dryRun"].as_array().map(|a| a.iter().filter_map(text).collect()).unwrap_or_default(),
            text(&pre["uid"]),
            text(&pre["resourceVersion"]),
            text(&v["propagationPolicy"]),
            v["orphanDependents"].as_bool(),
        )?;
        out.told = v.clone();
        Ok(out)
    }

    fn build(
        grace_period: Option<i64>,
        dry_run: Vec<String>,
        uid: Option<String>,
        resource_version: Option<String>,
        propagation: Option<String>,
        orphan: Option<bool>,
    ) -> Result<Self> {
        use homeostat_resources::Propagation;
        let mut errors = Vec::new();
        if orphan.is_some() && propagation.is_some() {
            errors.push(field::Error::invalid(
                "propagationPolicy",
                propagation.clone().unwrap_or_default(),
                "orphanDependents and deletionPropagation cannot be both set",
            ));
        }
        let policy = match propagation.as_deref() {
            Some("Foreground") => Some(Propagation::Foreground),
            Some("Background") => Some(Propagation::Background),
            Some("Orphan") => Some(Propagation::Orphan),
            Some(other) => {
                errors.push(field::Error::not_supported(
                    "propagationPolicy",
                    other,
                    &["Foreground", "Background", "Orphan", "nil"],
                ));
                None
            }
            None => orphan.map(|o| if o { Propagation::Orphan } else { Propagation::Background }),
        };
        let dry_run = check_dry_run(dry_run.iter().map(String::as_str), &mut errors);
        if errors.is_empty() {
            let told = serde_json::Value::Null;
            return Ok(Self { grace_period, dry_run, uid, resource_version, propagation: policy, told });
        }
        Err(Status::invalid(&GroupKind::new("meta.k8s.io", "DeleteOptions"), "", &errors))
    }
}
