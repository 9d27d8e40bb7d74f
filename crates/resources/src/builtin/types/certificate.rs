//! CertificateSigningRequests: who asks is the server's to say, approval and issue have doors of their own.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use homeostat_model::clock;
use homeostat_model::field::{self, Error, index};
use homeostat_model::validation::dns1123_subdomain_value;
use serde_json::Value;

use crate::builtin::value::{Errors, at, carry, each, has, int, items, remove, set, text, texts};
use crate::strategy::{Cx, Strategy};

/// CertificateSigningRequests.
pub(super) struct SigningRequests;

const USAGES: [&str; 23] = [
    "any",
    "cert sign",
    "client auth",
    "code signing",
    "content commitment",
    "crl sign",
    "data encipherment",
    "decipher only",
    "digital signature",
    "email protection",
    "encipher only",
    "ipsec end system",
    "ipsec tunnel",
    "ipsec user",
    "key agreement",
    "key encipherment",
    "microsoft sgc",
    "netscape sgc",
    "ocsp signing",
    "s/mime",
    "server auth",
    "signing",
    "timestamping",
];

impl Strategy for SigningRequests {
    fn prepare_create(&self, cx: &Cx<'_>, new: &mut Value) {
        for field in ["spec.uid", "spec.extra"] {
            remove(new, field);
        }
        set(new, "spec.username", cx.user);
        set(new, "spec.groups", cx.groups.to_vec());
    }

    fn prepare_update(&self, _cx: &Cx<'_>, new: &mut Value, old: &Value) {
        carry(new, old, "spec");
    }

    fn prepare_status(&self, cx: &Cx<'_>, new: &mut Value, old: &Value) {
        if cx.subresource == "approval" {
            let conditions = at(new, "status.conditions").clone();
            carry(new, old, "status");
            if conditions.is_null() {
                remove(new, "status.conditions");
            } else {
                set(new, "status.conditions", conditions);
            }
        }
        let now = clock::seconds(cx.now);
        each(new, "status.conditions", |condition| {
            if !has(condition, "lastUpdateTime") {
                set(condition, "lastUpdateTime", &*now);
            }
            if !has(condition, "lastTransitionTime") {
                let same = items(old, "status.conditions").iter().find(|c| {
                    text(c, "type") == text(condition, "type")
                        && text(c, "status") == text(condition, "status")
                });
                let time = same.map(|c| at(c, "lastTransitionTime").clone()).filter(|t| !t.is_null());
                set(condition, "lastTransitionTime", time.unwrap_or_else(|| now.as_str().into()));
            }
        });
    }

    fn validate(&self, _cx: &Cx<'_>, new: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        let spec = &new["spec"];
        if pem_blocks(text(spec, "request")).first().map(String::as_str) != Some("CERTIFICATE REQUEST") {
            let why = "PEM block type must be CERTIFICATE REQUEST";
            errors.push(Error::invalid("spec.request", text(spec, "request"), why));
        }
        let usages = texts(spec, "usages");
        if usages.is_empty() {
            errors.push(Error::required("spec.usages", ""));
        }
        let mut seen = BTreeSet::new();
        for (i, usage) in usages.into_iter().enumerate() {
            let path = index("spec.usages", i);
            if !seen.insert(usage) {
                errors.push(Error::duplicate(&*path, usage));
            }
            if !USAGES.contains(&usage) {
                errors.push(Error::not_supported(path, usage, &USAGES));
            }
        }
        signer(&mut errors, text(spec, "signerName"));
        if let Some(seconds) = int(spec, "expirationSeconds").filter(|s| *s < 600) {
            let why = "may not specify a duration less than 600 seconds (10 minutes)";
            errors.push(Error::invalid("spec.expirationSeconds", seconds, why));
        }
        errors
    }

    fn validate_update(&self, _cx: &Cx<'_>, _new: &Value, _old: &Value) -> Vec<field::Error> {
        Vec::new()
    }

    fn validate_status(&self, cx: &Cx<'_>, new: &Value, old: &Value) -> Vec<field::Error> {
        let mut errors = Vec::new();
        conditions(&mut errors, cx.subresource, new, old);
        let path = "status.certificate";
        let (now, before) = (text(new, path), text(old, path));
        if !before.is_empty() && now != before {
            let why = "updates may not set certificate content if existing certificate content is present";
            errors.push(Error::forbidden(path, why));
        }
        if !now.is_empty() && now != before {
            let blocks = pem_blocks(now);
            let wrong = blocks.iter().find(|b| *b != "CERTIFICATE");
            if let Some(kind) = wrong {
                let why = format!("only CERTIFICATE PEM blocks are allowed, found \"{kind}\"");
                errors.push(Error::invalid(path, "<certificate data>", why));
            } else if blocks.is_empty() {
                let why = "must contain at least one CERTIFICATE PEM block";
                errors.push(Error::invalid(path, "<certificate data>", why));
            }
        }
        errors
    }

    fn selectable(&self, object: &Value) -> Vec<(&'static str, String)> {
        vec![("spec.signerName", text(object, "spec.signerName").to_owned())]
    }

    fn selectable_labels(&self) -> &'static [&'static str] {
        &["spec.signerName"]
    }
}

/// Types of the PEM blocks in base64 text.
fn pem_blocks(encoded: &str) -> Vec<String> {
    let text = String::from_utf8(STANDARD.decode(encoded).unwrap_or_default()).unwrap_or_default();
    text.lines()
        .filter_map(|l| l.trim().strip_prefix("-----BEGIN ")?.strip_suffix("-----").map(str::to_owned))
        .filter(|kind| text.contains(&format!("-----END {kind}-----")))
        .collect()
}

fn signer(errors: &mut Errors, name: &str) {
    let path = "spec.signerName";
    if name.is_empty() {
        return errors.push(Error::required(path, ""));
    }
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() != 2 {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        return errors.push(Error::invalid(path, name, why));
    }
    for part in &parts {
        for why in dns1123_subdomain_value(part) {
            errors.push(Error::invalid(path, *part, format!("validating label \"{part}\": {why}")));
        }
    }
    if parts[0].split('.').count() < 2 {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(Error::invalid(path, parts[0], why));
    }
}

fn conditions(errors: &mut Errors, subresource: &str, new: &Value, old: &Value) {
    let path = "status.conditions";
    let list = items(new, path);
    let mut seen = BTreeSet::new();
    for (i, condition) in list.iter().enumerate() {
        let at_condition = index(path, i);
        let kind = text(condition, "type");
        if kind.is_empty() {
            errors.push(Error::required(format!("{at_condition}.type"), ""));
        }
        let status = text(condition, "status");
        if matches!(kind, "Approved" | "Denied" | "Failed") {
            if status.is_empty() {
                errors.push(Error::required(format!("{at_condition}.status"), ""));
            } else if status != "True" {
                errors.push(Error::not_supported(format!("{at_condition}.status"), status, &["True"]));
            }
        } else if !matches!(status, "True" | "False" | "Unknown") {
            let allowed = ["False", "True", "Unknown"];
            errors.push(Error::not_supported(format!("{at_condition}.status"), status, &allowed));
        }
        let other = match kind {
            "Approved" => "Denied",
            "Denied" => "Approved",
            _ => "",
        };
        if !other.is_empty() && seen.contains(other) {
            let why = "Approved and Denied conditions are mutually exclusive";
            errors.push(Error::invalid(path, kind, why));
        }
        if !seen.insert(kind) {
            errors.push(Error::duplicate(format!("{at_condition}.type"), kind));
        }
    }
    for kind in ["Approved", "Denied", "Failed"] {
        let of = |object: &Value| -> Option<Value> {
            items(object, path).iter().find(|c| text(c, "type") == kind).cloned()
        };
        let (now, before) = (of(new), of(old));
        if before.is_some() && now.is_none() {
            let why = format!("updates may not remove a condition of type \"{kind}\"");
            errors.push(Error::forbidden(path, why));
        }
        if before.is_none() && now.is_some() && subresource == "status" && kind != "Failed" {
            let why = format!("updates may not add a condition of type \"{kind}\"");
            errors.push(Error::forbidden(path, why));
        }
    }
}
