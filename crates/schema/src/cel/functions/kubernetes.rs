//! Kubernetes' libraries: quantities, addresses, URLs, versions, named formats.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use homeostat_model::quantity::Quantity;

use crate::cel::eval::{Eval, Out, fault, no_overload};
use crate::cel::types::{Cidr, Named, Semver, Url, ip_address};
use crate::cel::value::{Key, Val};

pub(super) fn call(_: &mut Eval<'_>, name: &str, target: Option<&Val>, args: &[Val]) -> Option<Out> {
    match target {
        None => global(name, args),
        Some(Val::Quantity(q, whole)) => quantity(name, q, *whole, args),
        Some(Val::Ip(ip)) if args.is_empty() => address(name, *ip),
        Some(Val::Cidr(c)) => range(name, *c, args),
        Some(Val::Url(u)) if args.is_empty() => url(name, u),
        Some(Val::Semver(s)) => semver(name, s, args),
        Some(Val::Format(format)) => match (name, args) {
            ("validate", [Val::String(s)]) => {
                let why = format.validate(s);
                Some(Ok(if why.is_empty() {
                    Val::NONE
                } else {
                    Val::some(Val::list(why.iter().map(Val::text).collect()))
                }))
            }
            _ => None,
        },
        _ => None,
    }
}

fn global(name: &str, args: &[Val]) -> Option<Out> {
    let bool = |b: bool| Some(Ok(Val::Bool(b)));
    if let Some(format) = name.strip_prefix("format.").and_then(Named::by_name)
        && args.is_empty()
    {
        return Some(Ok(Val::Format(format)));
    }
    let (Some(Val::String(s)), rest) = (args.first(), args.get(1..).unwrap_or_default()) else { return None };
    match (name, rest) {
        ("isQuantity", []) => bool(Quantity::parse(s).is_ok()),
        ("quantity", []) => Some(match Quantity::parse(s) {
            Ok(q) => Ok(Val::Quantity(
                Arc::new(q),
                !s.contains(['.', 'n', 'u', 'm']) && !s.contains("e-") && !s.contains("E-"),
            )),
            Err(why) => fault(why.to_string()),
        }),
        ("isIP", []) => bool(ip_address(s).is_ok()),
        ("ip", []) => Some(ip_address(s).map(Val::Ip).or_else(fault)),
        ("ip.isCanonical", []) => Some(match ip_address(s) {
            Ok(ip) => Ok(Val::Bool(ip.to_string() == **s)),
            Err(why) => fault(why),
        }),
        ("isCIDR", []) => bool(Cidr::parse(s).is_ok()),
        ("cidr", []) => Some(Cidr::parse(s).map(Val::Cidr).or_else(fault)),
        ("isURL", []) => bool(Url::parse(s).is_ok()),
        ("url", []) => Some(Url::parse(s).map(|u| Val::Url(Arc::new(u))).or_else(fault)),
        ("isSemver", []) => bool(Semver::parse(s).is_ok()),
        ("isSemver", [Val::Bool(normalize)]) => bool(version(s, *normalize).is_ok()),
        ("semver", []) => Some(version(s, false).map(|v| Val::Semver(Arc::new(v))).or_else(fault)),
        ("semver", [Val::Bool(normalize)]) => {
            Some(version(s, *normalize).map(|v| Val::Semver(Arc::new(v))).or_else(fault))
        }
        ("format.named", []) => Some(Ok(Named::by_name(s).map_or(Val::NONE, |f| Val::some(Val::Format(f))))),
        _ => None,
    }
}

fn version(s: &str, normalize: bool) -> Result<Semver, String> {
    if normalize { Semver::parse(&Semver::normalized(s)) } else { Semver::parse(s) }
}

fn sign(order: Ordering) -> Val {
    Val::Int(order as i64)
}

fn quantity(name: &str, q: &Quantity, whole: bool, args: &[Val]) -> Option<Out> {
    let (other, both) = match args {
        [Val::Quantity(other, w)] => (Some((**other).clone()), whole && *w),
        [Val::Int(n)] if matches!(name, "add" | "sub") => (Quantity::parse(&n.to_string()).ok(), whole),
        _ => (None, whole),
    };
    let small = || whole.then(|| i64::try_from(q.value()).ok()).flatten();
    Some(Ok(match (name, other) {
        ("isInteger", None) if args.is_empty() => Val::Bool(small().is_some()),
        ("asInteger", None) if args.is_empty() => match small() {
            Some(n) => Val::Int(n),
            None => return Some(fault("cannot convert value to integer")),
        },
        ("asApproximateFloat", None) if args.is_empty() => Val::Double(q.scaled(-9) as f64 / 1e9),
        ("isGreaterThan", Some(o)) => Val::Bool(*q > o),
        ("isLessThan", Some(o)) => Val::Bool(*q < o),
        ("compareTo", Some(o)) => sign(q.cmp(&o)),
        ("add", Some(o)) => Val::Quantity(Arc::new(q + &o), both),
        ("sub", Some(o)) => Val::Quantity(Arc::new(q - &o), both),
        _ => return None,
    }))
}

fn address(name: &str, ip: IpAddr) -> Option<Out> {
    let link_local = |ip: IpAddr| match ip {
        IpAddr::V4(a) => a.is_link_local(),
        IpAddr::V6(a) => a.segments()[0] & 0xffc0 == 0xfe80,
    };
    Some(Ok(match name {
        "family" => Val::Int(if ip.is_ipv4() { 4 } else { 6 }),
        "isUnspecified" => Val::Bool(ip.is_unspecified()),
        "isLoopback" => Val::Bool(ip.is_loopback()),
        "isLinkLocalUnicast" => Val::Bool(link_local(ip)),
        "isLinkLocalMulticast" => Val::Bool(match ip {
            IpAddr::V4(a) => a.octets()[..3] == [224, 0, 0],
            IpAddr::V6(a) => a.segments()[0] & 0xff0f == 0xff02,
        }),
        "isGlobalUnicast" => {
            let broadcast = matches!(ip, IpAddr::V4(a) if a.is_broadcast());
            Val::Bool(
                !(ip.is_unspecified()
                    || ip.is_loopback()
                    || ip.is_multicast()
                    || link_local(ip)
                    || broadcast),
            )
        }
        _ => return None,
    }))
}

fn range(name: &str, c: Cidr, args: &[Val]) -> Option<Out> {
    Some(match (name, args) {
        ("containsIP", [Val::Ip(ip)]) => Ok(Val::Bool(c.contains(*ip))),
        ("containsIP", [Val::String(s)]) => match ip_address(s) {
            Ok(ip) => Ok(Val::Bool(c.contains(ip))),
            Err(why) => fault(why),
        },
        ("containsCIDR", [Val::Cidr(other)]) => Ok(Val::Bool(c.contains_cidr(*other))),
        ("containsCIDR", [Val::String(s)]) => match Cidr::parse(s) {
            Ok(other) => Ok(Val::Bool(c.contains_cidr(other))),
            Err(why) => fault(why),
        },
        ("ip", []) => Ok(Val::Ip(c.ip)),
        ("masked", []) => Ok(Val::Cidr(c.masked())),
        ("prefixLength", []) => Ok(Val::Int(c.bits.into())),
        _ => return None,
    })
}

fn url(name: &str, u: &Url) -> Option<Out> {
    Some(Ok(match name {
        "getScheme" => Val::text(&u.scheme),
        "getHost" => Val::text(&u.host),
        "getHostname" => Val::text(u.host_port().0),
        "getPort" => Val::text(u.host_port().1),
        "getEscapedPath" => Val::text(&u.path),
        "getQuery" => {
            let map: BTreeMap<Key, Val> = u
                .parameters()
                .into_iter()
                .map(|(k, v)| (Key::String(k.into()), Val::list(v.iter().map(Val::text).collect())))
                .collect();
            Val::Map(Arc::new(map))
        }
        _ => return None,
    }))
}

fn semver(name: &str, s: &Semver, args: &[Val]) -> Option<Out> {
    let number =
        |i: usize| Ok(i64::try_from(s.numbers[i]).map_or_else(|_| Val::Uint(s.numbers[i]), Val::Int));
    Some(match (name, args) {
        ("major", []) => number(0),
        ("minor", []) => number(1),
        ("patch", []) => number(2),
        ("isLessThan", [Val::Semver(o)]) => Ok(Val::Bool(s.compare(o) == Ordering::Less)),
        ("isGreaterThan", [Val::Semver(o)]) => Ok(Val::Bool(s.compare(o) == Ordering::Greater)),
        ("compareTo", [Val::Semver(o)]) => Ok(sign(s.compare(o))),
        ("isLessThan" | "isGreaterThan" | "compareTo", _) => no_overload(),
        _ => return None,
    })
}
