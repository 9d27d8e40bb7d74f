//! Which objects of a resource a request means: namespace, name, label and field selectors, matched against the
//! indexed metadata of stored records without parsing them.

use homeostat_model::Status;
use homeostat_model::selector::{Fields, Labels};
use homeostat_model::status::Result;
use homeostat_store::Record;

use crate::meta::Meta;
use crate::options::ListOptions;
use crate::registry::Target;

/// A parsed selection.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    labels: Labels,
    fields: Fields,
    /// `namespace/`, or empty for all.
    pub(crate) prefix: String,
}

impl Selection {
    /// Parses a request's selectors; unknown field labels are refused.
    pub(crate) fn parse(target: &Target, namespace: &str, name: &str, options: &ListOptions) -> Result<Self> {
        let labels = Labels::parse(&options.label_selector).map_err(Status::bad_request)?;
        let fields = match (name, options.field_selector.as_str()) {
            ("", text) => Fields::parse(text),
            (name, "") => Fields::parse(&format!("metadata.name={name}")),
            (name, text) => Fields::parse(&format!("{text},metadata.name={name}")),
        };
        let fields = fields.map_err(Status::bad_request)?;
        let known = target.resource.strategy.selectable_labels();
        for (label, _, _) in fields.requirements() {
            let custom = target.version().selectable.iter().any(|(l, _)| l == label);
            let everywhere =
                label == "metadata.name" || (label == "metadata.namespace" && target.resource.namespaced);
            if everywhere || custom || known.contains(&label.as_str()) {
                continue;
            }
            return Err(Status::bad_request(if target.built_in() && known.is_empty() {
                format!(
                    "\"{label}\" is not a known field selector: only \"metadata.name\", \"metadata.namespace\""
                )
            } else {
                format!("field label not supported: {label}")
            }));
        }
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        Ok(Self { labels, fields, prefix })
    }

    /// Whether there is a selector at all.
    pub(crate) fn selects(&self) -> bool {
        !self.labels.is_empty() || !self.fields.is_empty()
    }

    /// Name of the only object that can match, as the store names it, where the selection says so.
    pub(crate) fn single(&self, namespaced: bool) -> Option<String> {
        let name = self.fields.exact("metadata.name")?;
        match (namespaced, self.prefix.is_empty()) {
            (false, _) => Some(name.to_owned()),
            (true, false) => Some(format!("{}{name}", self.prefix)),
            (true, true) => self.fields.exact("metadata.namespace").map(|ns| format!("{ns}/{name}")),
        }
    }

    /// Whether a record lies in the namespace and matches.
    pub(crate) fn matches(&self, record: &Record<Meta>) -> bool {
        if !record.key.name.starts_with(&self.prefix) {
            return false;
        }
        if !self.labels.is_empty() && !self.labels.matches(|key| record.meta.label(key)) {
            return false;
        }
        self.fields.is_empty()
            || self.fields.matches(|field| match field {
                "metadata.name" => Some(record.key.name.rsplit('/').next().unwrap_or_default()),
                "metadata.namespace" => {
                    Some(record.key.name.split_once('/').map(|(ns, _)| ns).unwrap_or_default())
                }
                other => Some(record.meta.field(other)),
            })
    }
}
