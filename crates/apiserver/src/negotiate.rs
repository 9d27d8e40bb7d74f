//! Content negotiation: which form of an answer a client accepts, and in what form its body comes.
//!
//! `Accept` is a list with preferences and fallbacks; a clause may ask for a transformed view (`as=Table`). It does
//! no encoding. Source: apiserver's `negotiation` package, RFC 9110 section 12.5.1.

use homeostat_model::Status;
use homeostat_model::status::Result;

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// JSON.
    Json,
    /// JSON, indented.
    PrettyJson,
    /// YAML.
    Yaml,
    /// Kubernetes protobuf.
    Protobuf,
}

impl Format {
    /// The `Content-Type` of an answer.
    pub fn content_type(self) -> &'static str {
        match self {
            Self::Json | Self::PrettyJson => "application/json",
            Self::Yaml => "application/yaml",
            Self::Protobuf => homeostat_protobuf::MEDIA_TYPE,
        }
    }
}

/// What of an object is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// All of it.
    Object,
    /// `Table` of `meta.k8s.io` in the version named.
    Table(&'static str),
    /// `PartialObjectMetadata`.
    Metadata(&'static str),
    /// `PartialObjectMetadataList`.
    MetadataList(&'static str),
}

/// The outcome of a negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// How.
    pub format: Format,
    /// What.
    pub view: View,
}

impl Accepted {
    /// Plain JSON, which is what in-process code and error paths take.
    pub const JSON: Self = Self { format: Format::Json, view: View::Object };
}

/// One clause of an `Accept` header.
#[derive(Debug, Clone)]
pub(crate) struct Clause<'a> {
    pub(crate) kind: &'a str,
    pub(crate) subtype: &'a str,
    pub(crate) params: Vec<(&'a str, &'a str)>,
    quality: f32,
}

impl Clause<'_> {
    pub(crate) fn param(&self, key: &str) -> Option<&str> {
        self.params.iter().find(|(k, _)| *k == key).map(|(_, v)| *v)
    }

    pub(crate) fn matches(&self, kind: &str, subtype: &str) -> bool {
        (self.kind == "*" || self.kind == kind) && (self.subtype == "*" || self.subtype == subtype)
    }
}

/// Parses an `Accept` header; most preferred first. At most 64 clauses are looked at.
pub(crate) fn clauses(header: &str) -> Vec<Clause<'_>> {
    let mut out: Vec<Clause<'_>> = header
        .split(',')
        .take(64)
        .filter_map(|text| {
            let mut parts = text.split(';').map(str::trim);
            let (kind, subtype) = match parts.next()? {
                "" => return None,
                "*" => ("*", "*"),
                media => media.split_once('/')?,
            };
            let mut clause =
                Clause { kind: kind.trim(), subtype: subtype.trim(), params: Vec::new(), quality: 1.0 };
            for p in parts {
                let (k, v) = p.split_once('=').unwrap_or((p, ""));
                let (k, v) = (k.trim(), v.trim().trim_matches('"'));
                if k == "q" {
                    clause.quality = v.parse().unwrap_or(1.0);
                } else {
                    clause.params.push((k, v));
                }
            }
            Some(clause)
        })
        .collect();
    // Stable: equal preferences keep the client's order, more specific ones go before wildcards.
    let wild = |c: &Clause<'_>| (c.kind == "*") as u8 + (c.subtype == "*") as u8;
    out.sort_by(|a, b| b.quality.total_cmp(&a.quality).then(wild(a).cmp(&wild(b))));
    out.retain(|c| c.quality > 0.0);
    out
}

/// The 406 of a request that nothing satisfies.
pub fn not_acceptable() -> Status {
    Status::new(
        406,
        "NotAcceptable",
        "only the following media types are accepted: application/json, application/yaml, \
         application/vnd.kubernetes.protobuf",
    )
}

/// Chooses the form of an answer. `views`: whether tables and metadata-only views exist for it; `packed`: whether it
/// has a form in protobuf. (Metadata-only views always have one, tables never.)
pub fn accept(
    header: Option<&str>,
    pretty: Option<&str>,
    user_agent: &str,
    views: bool,
    packed: bool,
) -> Result<Accepted> {
    let header = header.map(str::trim).filter(|h| !h.is_empty()).unwrap_or("*/*");
    let browser =
        user_agent.starts_with("Mozilla") || user_agent.starts_with("curl") || user_agent.starts_with("Wget");
    let pretty = match pretty {
        Some(p) => p != "0" && p != "false",
        None => browser,
    };
    for clause in clauses(header) {
        let format = if clause.matches("application", "json") {
            if pretty || clause.param("pretty") == Some("1") { Format::PrettyJson } else { Format::Json }
        } else if clause.matches("application", "yaml") {
            Format::Yaml
        } else if clause.matches("application", "vnd.kubernetes.protobuf") {
            Format::Protobuf
        } else {
            continue;
        };
        match view(&clause, views) {
            None => {}
            Some(View::Object) if format == Format::Protobuf && !packed => {}
            Some(View::Table(_)) if format == Format::Protobuf => {}
            Some(view) => return Ok(Accepted { format, view }),
        }
    }
    Err(not_acceptable())
}

fn view(clause: &Clause<'_>, views: bool) -> Option<View> {
    let Some(what) = clause.param("as") else {
        return Some(View::Object);
    };
    if !views || clause.param("g") != Some("meta.k8s.io") {
        return None;
    }
    let version = match clause.param("v") {
        Some("v1") => "v1",
        Some("v1beta1") => "v1beta1",
        _ => return None,
    };
    match what {
        "Table" => Some(View::Table(version)),
        "PartialObjectMetadata" => Some(View::Metadata(version)),
        "PartialObjectMetadataList" => Some(View::MetadataList(version)),
        _ => None,
    }
}

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes protobuf.
    Protobuf,
}

/// The media type of a `Content-Type` header, without parameters, in lower case.
pub fn media_type(header: Option<&str>) -> String {
    header.and_then(|h| h.split(';').next()).unwrap_or_default().trim().to_ascii_lowercase()
}

/// How the body of a create, update or delete is written; 415 where the server cannot read it.
pub fn input(header: Option<&str>) -> Result<Input> {
    match media_type(header).as_str() {
        "" | "application/json" => Ok(Input::Json),
        "application/yaml" => Ok(Input::Yaml),
        homeostat_protobuf::MEDIA_TYPE => Ok(Input::Protobuf),
        _ => {
            Err(unsupported(&["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"]))
        }
    }
}

/// The 415 of a body whose form is none of `known`.
pub fn unsupported(known: &[&str]) -> Status {
    Status::new(
        415,
        "UnsupportedMediaType",
        format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            known.join(", ")
        ),
    )
}

/// Whether the client takes gzip.
pub fn takes_gzip(accept_encoding: Option<&str>) -> bool {
    accept_encoding.is_some_and(|h| {
        h.split(',').any(|c| {
            let mut parts = c.split(';').map(str::trim);
            parts.next() == Some("gzip")
                && !parts.any(|p| matches!(p, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &str, expect: Option<(Format, View)>) {
        let got = accept(Some(header), None, "", true, false).ok().map(|a| (a.format, a.view));
        assert_eq!(got, expect, "{header}");
    }

    #[test]
    fn the_most_preferred_clause_that_can_be_served_wins() {
        check("application/json", Some((Format::Json, View::Object)));
        check("", Some((Format::Json, View::Object)));
        check("*/*", Some((Format::Json, View::Object)));
        check("application/yaml", Some((Format::Yaml, View::Object)));
        check("text/html", None);
        check("text/html, */*;q=0.1", Some((Format::Json, View::Object)));
        check("application/vnd.kubernetes.protobuf, application/json", Some((Format::Json, View::Object)));
        check("application/json;q=0.5, application/yaml", Some((Format::Yaml, View::Object)));
        check("application/json;as=Table;v=v1;g=meta.k8s.io", Some((Format::Json, View::Table("v1"))));
        check("application/json;as=Table;v=v2;g=meta.k8s.io", None);
        check("application/json;as=Chart;v=v1;g=meta.k8s.io", None);
        check(
            "application/json;as=Table;v=v2;g=meta.k8s.io,application/json",
            Some((Format::Json, View::Object)),
        );
        check(
            "application/json;as=PartialObjectMetadataList;v=v1beta1;g=meta.k8s.io",
            Some((Format::Json, View::MetadataList("v1beta1"))),
        );
        check(",;,,/", None);
    }

    #[test]
    fn protobuf_is_offered_where_the_answer_has_that_form() {
        const PROTO: &str = "application/vnd.kubernetes.protobuf";
        let check = |header: &str, packed: bool, expect: Option<(Format, View)>| {
            let got = accept(Some(header), None, "", true, packed).ok().map(|a| (a.format, a.view));
            assert_eq!(got, expect, "{header} {packed}");
        };
        check(PROTO, true, Some((Format::Protobuf, View::Object)));
        check(PROTO, false, None);
        check(&format!("{PROTO},application/json"), true, Some((Format::Protobuf, View::Object)));
        check(&format!("{PROTO},application/json"), false, Some((Format::Json, View::Object)));
        check(&format!("{PROTO};stream=watch"), true, Some((Format::Protobuf, View::Object)));
        check(&format!("application/json,{PROTO}"), true, Some((Format::Json, View::Object)));
        let metadata = format!("{PROTO};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1");
        check(&metadata, false, Some((Format::Protobuf, View::MetadataList("v1"))));
        let table = format!("{PROTO};as=Table;g=meta.k8s.io;v=v1");
        check(&table, true, None);
        check(&format!("{table},application/json"), true, Some((Format::Json, View::Object)));
    }

    #[test]
    fn gzip_is_a_matter_of_the_client() {
        assert!(takes_gzip(Some("gzip")));
        assert!(takes_gzip(Some("deflate, gzip;q=1.0")));
        assert!(!takes_gzip(Some("gzip;q=0")));
        assert!(!takes_gzip(Some("br")));
        assert!(!takes_gzip(None));
    }
}
