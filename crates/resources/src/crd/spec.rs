//! A CRD's spec as the reference sees it inside: what all versions share stands once, at the top.
//!
//! Error paths and texts follow from that view (`spec.validation…`, `spec.additionalPrinterColumns…`) even though
//! the API has no such fields any more.

use serde_json::Value;

use super::props::{Props, array, object, text};

/// A version after what is common to all was moved to the top.
pub(crate) struct VersionView<'a> {
    /// The version as sent.
    pub(crate) raw: &'a Props,
    /// `schema`, unless it moved.
    pub(crate) validation: Option<&'a Props>,
    /// `subresources`, unless they moved.
    pub(crate) subresources: Option<&'a Props>,
    /// `additionalPrinterColumns`, unless they moved.
    pub(crate) columns: &'a [Value],
    /// `selectableFields`, unless they moved.
    pub(crate) selectable: &'a [Value],
}

impl<'a> VersionView<'a> {
    pub(crate) fn name(&self) -> &'a str {
        text(self.raw, "name")
    }

    pub(crate) fn schema(&self) -> Option<&'a Props> {
        self.validation.and_then(|v| object(v, "openAPIV3Schema"))
    }
}

/// The spec, hoisted.
pub(crate) struct SpecView<'a> {
    /// The spec as sent.
    pub(crate) raw: &'a Props,
    /// `None` where `versions` is absent, so that it prints as null.
    pub(crate) versions: Option<Vec<VersionView<'a>>>,
    /// The schema that all versions share.
    pub(crate) validation: Option<&'a Props>,
    /// Subresources that all versions share.
    pub(crate) subresources: Option<&'a Props>,
    /// Columns that all versions share.
    pub(crate) columns: &'a [Value],
    /// Selectable fields that all versions share.
    pub(crate) selectable: &'a [Value],
}

impl<'a> SpecView<'a> {
    pub(crate) fn new(raw: &'a Props) -> Self {
        let Some(list) = raw.get("versions").and_then(Value::as_array) else {
            return Self {
                raw,
                versions: None,
                validation: None,
                subresources: None,
                columns: &[],
                selectable: &[],
            };
        };
        let mut versions: Vec<VersionView<'a>> = list
            .iter()
            .filter_map(Value::as_object)
            .map(|v| VersionView {
                raw: v,
                validation: object(v, "schema"),
                subresources: object(v, "subresources"),
                columns: array(v, "additionalPrinterColumns"),
                selectable: array(v, "selectableFields"),
            })
            .collect();
        let mut view =
            Self { raw, versions: None, validation: None, subresources: None, columns: &[], selectable: &[] };
        let Some(first) = versions.first() else {
            view.versions = Some(versions);
            return view;
        };
        let (validation, subresources) = (first.validation, first.subresources);
        let (columns, selectable) = (first.columns, first.selectable);
        if versions.iter().all(|v| v.validation == validation) {
            view.validation = validation;
            versions.iter_mut().for_each(|v| v.validation = None);
        }
        if versions.iter().all(|v| v.subresources == subresources) {
            view.subresources = subresources;
            versions.iter_mut().for_each(|v| v.subresources = None);
        }
        if versions.iter().all(|v| v.columns == columns) {
            view.columns = columns;
            versions.iter_mut().for_each(|v| v.columns = &[]);
        }
        if versions.iter().all(|v| v.selectable == selectable) {
            view.selectable = selectable;
            versions.iter_mut().for_each(|v| v.selectable = &[]);
        }
        view.versions = Some(versions);
        view
    }

    pub(crate) fn list(&self) -> &[VersionView<'a>] {
        self.versions.as_deref().unwrap_or_default()
    }

    /// The shared schema.
    pub(crate) fn schema(&self) -> Option<&'a Props> {
        self.validation.and_then(|v| object(v, "openAPIV3Schema"))
    }

    /// All schemas, shared and per version.
    pub(crate) fn schemas(&self) -> impl Iterator<Item = &'a Props> {
        self.schema().into_iter().chain(self.list().iter().filter_map(VersionView::schema))
    }

    /// The schema of a version, wherever it stands.
    pub(crate) fn schema_of(&self, version: &str) -> Option<&'a Props> {
        let v = self.list().iter().find(|v| v.name() == version)?;
        self.schema().or_else(|| v.schema())
    }

    /// Name of the first version, which the internal type also has at the top.
    pub(crate) fn first(&self) -> &'a str {
        self.list().first().map(VersionView::name).unwrap_or_default()
    }

    /// The subresources of a version, wherever they stand.
    pub(crate) fn subresources_of(&self, version: &VersionView<'a>) -> Option<&'a Props> {
        if self.list().iter().any(|v| v.subresources.is_some()) {
            version.subresources
        } else {
            self.subresources
        }
    }
}
