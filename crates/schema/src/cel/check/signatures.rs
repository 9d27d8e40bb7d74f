//! Overloads of every function and operator that a rule may use, as text, read once.
//!
//! `string.split(string) list(string)`: target, arguments, result; without a target the function stands alone. One
//! capital letter is a type parameter. The list is that of Kubernetes 1.36's environments: that CRDs have no authorizer
//! to ask is a matter of variables, not of functions.

use std::collections::BTreeMap;
use std::rc::Rc;

use super::types::Type;

/// One overload.
#[derive(Clone, Debug)]
pub(super) struct Signature {
    pub(super) target: Option<Type>,
    pub(super) args: Vec<Type>,
    pub(super) result: Type,
}

const TABLE: &[(&str, &str)] = &[
    ("!_", "(bool) bool"),
    ("-_", "(int) int; (double) double"),
    ("_&&_", "(bool, bool) bool"),
    ("_||_", "(bool, bool) bool"),
    ("_==_", "(A, A) bool"),
    ("_!=_", "(A, A) bool"),
    (
        "_+_",
        "(int, int) int; (uint, uint) uint; (double, double) double; (string, string) string; \
             (bytes, bytes) bytes; (list(A), list(A)) list(A); (timestamp, duration) timestamp; \
             (duration, timestamp) timestamp; (duration, duration) duration",
    ),
    (
        "_-_",
        "(int, int) int; (uint, uint) uint; (double, double) double; (timestamp, timestamp) duration; \
             (timestamp, duration) timestamp; (duration, duration) duration",
    ),
    ("_*_", "(int, int) int; (uint, uint) uint; (double, double) double"),
    ("_/_", "(int, int) int; (uint, uint) uint; (double, double) double"),
    ("_%_", "(int, int) int; (uint, uint) uint"),
    ("@in", "(A, list(A)) bool; (A, map(A, B)) bool"),
    (
        "size",
        "(string) int; (bytes) int; (list(A)) int; (map(A, B)) int; string.() int; bytes.() int; \
              list(A).() int; map(A, B).() int",
    ),
    ("contains", "string.(string) bool"),
    ("startsWith", "string.(string) bool"),
    ("endsWith", "string.(string) bool"),
    ("matches", "string.(string) bool; (string, string) bool"),
    ("dyn", "(A) dyn"),
    ("type", "(A) type"),
    ("int", "(int) int; (uint) int; (double) int; (string) int; (timestamp) int"),
    ("uint", "(uint) uint; (int) uint; (double) uint; (string) uint"),
    ("double", "(double) double; (int) double; (uint) double; (string) double"),
    (
        "string",
        "(string) string; (bool) string; (int) string; (uint) string; (double) string; (bytes) string; \
                (timestamp) string; (duration) string; (ip) string; (cidr) string",
    ),
    ("bytes", "(bytes) bytes; (string) bytes"),
    ("bool", "(bool) bool; (string) bool"),
    ("timestamp", "(timestamp) timestamp; (string) timestamp; (int) timestamp"),
    ("duration", "(duration) duration; (string) duration; (int) duration"),
    ("getFullYear", "timestamp.() int; timestamp.(string) int"),
    ("getMonth", "timestamp.() int; timestamp.(string) int"),
    ("getDate", "timestamp.() int; timestamp.(string) int"),
    ("getDayOfMonth", "timestamp.() int; timestamp.(string) int"),
    ("getDayOfWeek", "timestamp.() int; timestamp.(string) int"),
    ("getDayOfYear", "timestamp.() int; timestamp.(string) int"),
    ("getHours", "timestamp.() int; timestamp.(string) int; duration.() int"),
    ("getMinutes", "timestamp.() int; timestamp.(string) int; duration.() int"),
    ("getSeconds", "timestamp.() int; timestamp.(string) int; duration.() int"),
    ("getMilliseconds", "timestamp.() int; timestamp.(string) int; duration.() int"),
    ("charAt", "string.(int) string"),
    ("indexOf", "string.(string) int; string.(string, int) int; list(A).(A) int"),
    ("lastIndexOf", "string.(string) int; string.(string, int) int; list(A).(A) int"),
    ("join", "list(string).() string; list(string).(string) string"),
    ("lowerAscii", "string.() string"),
    ("upperAscii", "string.() string"),
    ("replace", "string.(string, string) string; string.(string, string, int) string"),
    ("split", "string.(string) list(string); string.(string, int) list(string)"),
    ("substring", "string.(int) string; string.(int, int) string"),
    ("trim", "string.() string"),
    ("strings.quote", "(string) string"),
    ("format", "string.(list(dyn)) string"),
    ("find", "string.(string) string"),
    ("findAll", "string.(string) list(string); string.(string, int) list(string)"),
    (
        "isSorted",
        "list(int).() bool; list(uint).() bool; list(double).() bool; list(bool).() bool; \
                  list(string).() bool; list(bytes).() bool; list(timestamp).() bool; list(duration).() bool",
    ),
    ("sum", "list(int).() int; list(uint).() uint; list(double).() double; list(duration).() duration"),
    (
        "min",
        "list(int).() int; list(uint).() uint; list(double).() double; list(bool).() bool; \
             list(string).() string; list(bytes).() bytes; list(timestamp).() timestamp; \
             list(duration).() duration",
    ),
    (
        "max",
        "list(int).() int; list(uint).() uint; list(double).() double; list(bool).() bool; \
             list(string).() string; list(bytes).() bytes; list(timestamp).() timestamp; \
             list(duration).() duration",
    ),
    ("distinct", "list(A).() list(A)"),
    ("flatten", "list(list(A)).() list(A); list(A).() list(dyn); list(dyn).(int) list(dyn)"),
    ("lists.range", "(int) list(int)"),
    ("reverse", "list(A).() list(A)"),
    ("slice", "list(A).(int, int) list(A)"),
    (
        "sort",
        "list(int).() list(int); list(uint).() list(uint); list(double).() list(double); \
              list(bool).() list(bool); list(string).() list(string); list(bytes).() list(bytes); \
              list(timestamp).() list(timestamp); list(duration).() list(duration)",
    ),
    ("first", "list(A).() optional(A)"),
    ("last", "list(A).() optional(A)"),
    ("sets.contains", "(list(A), list(A)) bool"),
    ("sets.equivalent", "(list(A), list(A)) bool"),
    ("sets.intersects", "(list(A), list(A)) bool"),
    ("optional.of", "(A) optional(A)"),
    ("optional.none", "() optional(A)"),
    ("optional.ofNonZeroValue", "(A) optional(A)"),
    ("optional.unwrap", "(list(optional(A))) list(A)"),
    ("unwrapOpt", "list(optional(A)).() list(A)"),
    ("hasValue", "optional(A).() bool"),
    ("value", "optional(A).() A"),
    ("or", "optional(A).(optional(A)) optional(A)"),
    ("orValue", "optional(A).(A) A"),
    ("isQuantity", "(string) bool"),
    ("quantity", "(string) quantity"),
    ("isInteger", "quantity.() bool"),
    ("asInteger", "quantity.() int"),
    ("asApproximateFloat", "quantity.() double"),
    ("isGreaterThan", "quantity.(quantity) bool; semver.(semver) bool"),
    ("isLessThan", "quantity.(quantity) bool; semver.(semver) bool"),
    ("compareTo", "quantity.(quantity) int; semver.(semver) int"),
    ("add", "quantity.(quantity) quantity; quantity.(int) quantity"),
    ("sub", "quantity.(quantity) quantity; quantity.(int) quantity"),
    ("isIP", "(string) bool"),
    ("ip", "(string) ip; cidr.() ip"),
    ("ip.isCanonical", "(string) bool"),
    ("family", "ip.() int"),
    ("isUnspecified", "ip.() bool"),
    ("isLoopback", "ip.() bool"),
    ("isLinkLocalMulticast", "ip.() bool"),
    ("isLinkLocalUnicast", "ip.() bool"),
    ("isGlobalUnicast", "ip.() bool"),
    ("isCIDR", "(string) bool"),
    ("cidr", "(string) cidr"),
    ("containsIP", "cidr.(string) bool; cidr.(ip) bool"),
    ("containsCIDR", "cidr.(string) bool; cidr.(cidr) bool"),
    ("masked", "cidr.() cidr"),
    ("prefixLength", "cidr.() int"),
    ("isURL", "(string) bool"),
    ("url", "(string) url"),
    ("getScheme", "url.() string"),
    ("getHost", "url.() string"),
    ("getHostname", "url.() string"),
    ("getPort", "url.() string"),
    ("getEscapedPath", "url.() string"),
    ("getQuery", "url.() map(string, list(string))"),
    ("isSemver", "(string) bool; (string, bool) bool"),
    ("semver", "(string) semver; (string, bool) semver"),
    ("major", "semver.() int"),
    ("minor", "semver.() int"),
    ("patch", "semver.() int"),
    ("format.named", "(string) optional(format)"),
    ("validate", "format.(string) optional(list(string))"),
    ("format.dns1123Label", "() format"),
    ("format.dns1123Subdomain", "() format"),
    ("format.dns1035Label", "() format"),
    ("format.qualifiedName", "() format"),
    ("format.dns1123LabelPrefix", "() format"),
    ("format.dns1123SubdomainPrefix", "() format"),
    ("format.dns1035LabelPrefix", "() format"),
    ("format.labelValue", "() format"),
    ("format.uri", "() format"),
    ("format.uuid", "() format"),
    ("format.byte", "() format"),
    ("format.date", "() format"),
    ("format.datetime", "() format"),
    ("path", "authorizer.(string) pathcheck"),
    ("group", "authorizer.(string) groupcheck"),
    ("serviceAccount", "authorizer.(string, string) authorizer"),
    ("resource", "groupcheck.(string) resourcecheck"),
    ("subresource", "resourcecheck.(string) resourcecheck"),
    ("namespace", "resourcecheck.(string) resourcecheck"),
    ("name", "resourcecheck.(string) resourcecheck"),
    ("fieldSelector", "resourcecheck.(string) resourcecheck"),
    ("labelSelector", "resourcecheck.(string) resourcecheck"),
    ("check", "pathcheck.(string) decision; resourcecheck.(string) decision"),
    ("errored", "decision.() bool"),
    ("error", "decision.() string"),
    ("allowed", "decision.() bool"),
    ("reason", "decision.() string"),
    ("jsonpatch.escapeKey", "(string) string"),
];

/// Only expressions that make patches have it.
pub(in crate::cel) const ESCAPE_KEY: &str = "jsonpatch.escapeKey";

/// The type of the variable `authorizer`.
pub(super) const AUTHORIZER: Type = Type::Library("authorization.Authorizer");
/// The type of `authorizer.requestResource`.
pub(super) const RESOURCE_CHECK: Type = Type::Library("authorization.ResourceCheck");

thread_local! {
    /// Read once per thread: types hold pointers that aren't shared between threads.
    static SIGNATURES: BTreeMap<&'static str, Rc<[Signature]>> = read();
}

/// Overloads of a function; `None` where there is no such function.
pub(super) fn overloads(function: &str) -> Option<Rc<[Signature]>> {
    SIGNATURES.with(|s| s.get(function).cloned())
}

fn read() -> BTreeMap<&'static str, Rc<[Signature]>> {
    let mut table: BTreeMap<&'static str, Rc<[Signature]>> =
        TABLE.iter().map(|(name, text)| (*name, text.split(';').map(signature).collect())).collect();
    // Numbers of all kinds compare with each other, though they are never equal but within one.
    let mut ordered: Vec<Signature> = Vec::new();
    let pair =
        |a: &Type, b: &Type| Signature { target: None, args: vec![a.clone(), b.clone()], result: Type::Bool };
    for ty in [Type::Bool, Type::Text, Type::Bytes, Type::Timestamp, Type::Duration] {
        ordered.push(pair(&ty, &ty));
    }
    let numbers = [Type::Int, Type::Uint, Type::Double];
    ordered.extend(numbers.iter().flat_map(|a| numbers.iter().map(move |b| pair(a, b))));
    for name in ["_<_", "_<=_", "_>_", "_>=_"] {
        table.insert(name, ordered.clone().into());
    }
    table
}

fn signature(text: &str) -> Signature {
    let mut reader = Reader { rest: text.trim() };
    let target = if reader.rest.starts_with('(') { None } else { Some(reader.ty()) };
    reader.skip(".");
    let args = reader.list();
    Signature { target, args, result: reader.ty() }
}

struct Reader<'a> {
    rest: &'a str,
}

impl Reader<'_> {
    fn skip(&mut self, what: &str) -> bool {
        let trimmed = self.rest.trim_start();
        match trimmed.strip_prefix(what) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn list(&mut self) -> Vec<Type> {
        let mut out = Vec::new();
        self.skip("(");
        while !self.skip(")") && !self.rest.is_empty() {
            out.push(self.ty());
            self.skip(",");
        }
        out
    }

    fn ty(&mut self) -> Type {
        self.rest = self.rest.trim_start();
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let mut args = Vec::new();
        if matches!(name, "list" | "map" | "optional") {
            args = self.list();
        }
        let arg = |i: usize| Rc::new(args.get(i).cloned().unwrap_or(Type::Dyn));
        match name {
            "dyn" => Type::Dyn,
            "bool" => Type::Bool,
            "int" => Type::Int,
            "uint" => Type::Uint,
            "double" => Type::Double,
            "string" => Type::Text,
            "bytes" => Type::Bytes,
            "timestamp" => Type::Timestamp,
            "duration" => Type::Duration,
            "type" => Type::Meta,
            "list" => Type::List(arg(0)),
            "map" => Type::Map(arg(0), arg(1)),
            "optional" => Type::Optional(arg(0)),
            "quantity" => Type::Library("Quantity"),
            "ip" => Type::Library("IP"),
            "cidr" => Type::Library("CIDR"),
            "url" => Type::Library("URL"),
            "semver" => Type::Library("Semver"),
            "format" => Type::Library("NamedFormat"),
            "authorizer" => AUTHORIZER,
            "pathcheck" => Type::Library("authorization.PathCheck"),
            "groupcheck" => Type::Library("authorization.GroupCheck"),
            "resourcecheck" => RESOURCE_CHECK,
            "decision" => Type::Library("authorization.Decision"),
            _ => Type::Param(name.chars().next().unwrap_or('A')),
        }
    }
}
