//! Types of Kubernetes' CEL libraries: CIDRs, URLs, versions, named formats.

use std::cmp::Ordering;
use std::net::IpAddr;

use homeostat_model::field::quote;
use homeostat_model::validation;

use crate::formats::Format;
use crate::golang;

/// An address range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cidr {
    pub(super) ip: IpAddr,
    pub(super) bits: u8,
}

fn bits_of(ip: IpAddr) -> (u128, u8) {
    match ip {
        IpAddr::V4(a) => (u32::from(a).into(), 32),
        IpAddr::V6(a) => (a.into(), 128),
    }
}

impl Cidr {
    /// Parses `10.0.0.0/8`; host bits may be set.
    pub(super) fn parse(s: &str) -> Result<Self, String> {
        let why = || {
            format!("network address parse error during conversion from string: invalid CIDR {}", quote(s))
        };
        let (ip, bits) = s.rsplit_once('/').ok_or_else(why)?;
        let ip = ip_address(ip)?;
        let plain = !bits.is_empty()
            && bits.bytes().all(|b| b.is_ascii_digit())
            && (bits == "0" || !bits.starts_with('0'));
        let bits: u8 = bits.parse().map_err(|_| why())?;
        if !plain || bits > bits_of(ip).1 {
            return Err(why());
        }
        Ok(Self { ip, bits })
    }

    pub(super) fn masked(self) -> Self {
        let (value, width) = bits_of(self.ip);
        let host = u32::from(width - self.bits);
        let value = if host >= 128 { 0 } else { (value >> host) << host };
        let ip = match self.ip {
            IpAddr::V4(_) => IpAddr::from((value as u32).to_be_bytes()),
            IpAddr::V6(_) => IpAddr::from(value.to_be_bytes()),
        };
        Self { ip, bits: self.bits }
    }

    pub(super) fn contains(self, ip: IpAddr) -> bool {
        self.ip.is_ipv4() == ip.is_ipv4() && Self { ip, bits: self.bits }.masked().ip == self.masked().ip
    }

    pub(super) fn contains_cidr(self, other: Self) -> bool {
        self.bits <= other.bits && self.contains(other.ip)
    }
}

/// An address without zone; IPv4 in IPv6 is refused, and so are leading zeros.
pub(super) fn ip_address(s: &str) -> Result<IpAddr, String> {
    if s.contains('%') && s.contains(':') {
        return Err(format!("IP address {} with zone value is not allowed", quote(s)));
    }
    match s.parse::<IpAddr>() {
        Ok(IpAddr::V6(a)) if a.to_ipv4_mapped().is_some() => {
            Err(format!("IPv4-mapped IPv6 address {} is not allowed", quote(s)))
        }
        Ok(ip) => Ok(ip),
        Err(_) => Err(format!(
            "IP Address {} parse error during conversion from string: ParseAddr({}): unable to parse IP",
            quote(s),
            quote(s)
        )),
    }
}

/// An absolute URL or a path, as Go's `url.ParseRequestURI` takes it apart.
#[derive(Debug, PartialEq)]
pub(super) struct Url {
    pub(super) text: String,
    pub(super) scheme: String,
    /// With the port.
    pub(super) host: String,
    pub(super) path: String,
    pub(super) query: String,
}

impl Url {
    pub(super) fn parse(s: &str) -> Result<Self, String> {
        if !golang::request_uri(s) {
            return Err(format!(
                "URL parse error during conversion from string: parse {}: invalid URI for request",
                quote(s)
            ));
        }
        let (scheme, rest) = match s.split_once(':') {
            Some((scheme, rest)) if !s.starts_with('/') => (scheme, rest),
            _ => ("", s),
        };
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (host, path) = match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
            Some(after) => after.split_at(after.find('/').unwrap_or(after.len())),
            None => ("", rest),
        };
        let host = host.rsplit_once('@').map_or(host, |(_, host)| host);
        Ok(Self {
            text: s.into(),
            scheme: scheme.to_ascii_lowercase(),
            host: host.into(),
            path: path.into(),
            query: query.into(),
        })
    }

    /// Host without port and brackets, and the port.
    pub(super) fn host_port(&self) -> (&str, &str) {
        if let Some(rest) = self.host.strip_prefix('[') {
            let (host, rest) = rest.split_once(']').unwrap_or((rest, ""));
            return (host, rest.strip_prefix(':').unwrap_or(""));
        }
        self.host.rsplit_once(':').unwrap_or((&self.host, ""))
    }

    /// Parameters in order of their first appearance, values decoded.
    pub(super) fn parameters(&self) -> Vec<(String, Vec<String>)> {
        let mut out: Vec<(String, Vec<String>)> = Vec::new();
        for pair in self.query.split('&').filter(|p| !p.is_empty() && !p.contains(';')) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            let (key, value) = (decode(key), decode(value));
            match out.iter_mut().find(|(k, _)| *k == key) {
                Some((_, values)) => values.push(value),
                None => out.push((key, vec![value])),
            }
        }
        out
    }
}

fn decode(s: &str) -> String {
    let b = s.as_bytes();
    let mut out = Vec::with_capacity(b.len());
    let mut i = 0;
    while i < b.len() {
        let hex = s.get(i + 1..i + 3).and_then(|h| u8::from_str_radix(h, 16).ok());
        match (b[i], hex) {
            (b'+', _) => out.push(b' '),
            (b'%', Some(byte)) => {
                out.push(byte);
                i += 2;
            }
            (byte, _) => out.push(byte),
        }
        i += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// A version by semver.org.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Semver {
    pub(super) numbers: [u64; 3],
    pub(super) pre: Vec<String>,
    pub(super) build: String,
}

impl Semver {
    pub(super) fn parse(s: &str) -> Result<Self, String> {
        let (rest, build) = s.split_once('+').unwrap_or((s, ""));
        let (core, pre) = rest.split_once('-').map_or((rest, None), |(core, pre)| (core, Some(pre)));
        let parts: Vec<&str> = core.split('.').collect();
        if parts.len() != 3 {
            return Err("No Major.Minor.Patch elements found".into());
        }
        let mut numbers = [0; 3];
        for (n, part) in numbers.iter_mut().zip(&parts) {
            if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
                return Err(format!("Invalid character(s) found in version number {}", quote(part)));
            }
            if part.len() > 1 && part.starts_with('0') {
                return Err(format!("Version number must not contain leading zeroes {}", quote(part)));
            }
            *n = part.parse().map_err(|_| format!("version number {} is too large", quote(part)))?;
        }
        let identifier = |p: &str| !p.is_empty() && p.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        let pre: Vec<String> = pre.map_or(Vec::new(), |p| p.split('.').map(str::to_owned).collect());
        for p in &pre {
            let numeric = p.bytes().all(|b| b.is_ascii_digit());
            if !identifier(p) || (numeric && p.len() > 1 && p.starts_with('0')) {
                return Err(format!("Invalid prerelease {}", quote(p)));
            }
        }
        if s.contains('+') && !build.split('.').all(identifier) {
            return Err(format!("Invalid build meta data {}", quote(build)));
        }
        Ok(Self { numbers, pre, build: build.into() })
    }

    /// `v1.2` and `01.2.3` become versions.
    pub(super) fn normalized(s: &str) -> String {
        let s = s.strip_prefix('v').unwrap_or(s);
        let end = s.find(['-', '+']).unwrap_or(s.len());
        let (core, rest) = s.split_at(end);
        let mut parts: Vec<String> = core
            .split('.')
            .map(|p| {
                let trimmed = p.trim_start_matches('0');
                if trimmed.is_empty() && !p.is_empty() { "0".to_owned() } else { trimmed.to_owned() }
            })
            .collect();
        while parts.len() < 3 {
            parts.push("0".into());
        }
        parts.join(".") + rest
    }

    pub(super) fn compare(&self, other: &Self) -> Ordering {
        let by_parts = || {
            if self.pre.is_empty() || other.pre.is_empty() {
                return self.pre.is_empty().cmp(&other.pre.is_empty());
            }
            for (a, b) in self.pre.iter().zip(&other.pre) {
                let order = match (a.parse::<u64>(), b.parse::<u64>()) {
                    (Ok(a), Ok(b)) => a.cmp(&b),
                    (Ok(_), Err(_)) => Ordering::Less,
                    (Err(_), Ok(_)) => Ordering::Greater,
                    (Err(_), Err(_)) => a.cmp(b),
                };
                if order != Ordering::Equal {
                    return order;
                }
            }
            self.pre.len().cmp(&other.pre.len())
        };
        self.numbers.cmp(&other.numbers).then_with(by_parts)
    }
}

/// A format of `format.dns1123Label()` and its like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Named {
    Dns1123Label,
    Dns1123Subdomain,
    Dns1035Label,
    QualifiedName,
    Dns1123LabelPrefix,
    Dns1123SubdomainPrefix,
    Dns1035LabelPrefix,
    LabelValue,
    Uri,
    Uuid,
    Byte,
    Date,
    DateTime,
}

impl Named {
    pub(super) fn by_name(name: &str) -> Option<Self> {
        Some(match name {
            "dns1123Label" => Self::Dns1123Label,
            "dns1123Subdomain" => Self::Dns1123Subdomain,
            "dns1035Label" => Self::Dns1035Label,
            "qualifiedName" => Self::QualifiedName,
            "dns1123LabelPrefix" => Self::Dns1123LabelPrefix,
            "dns1123SubdomainPrefix" => Self::Dns1123SubdomainPrefix,
            "dns1035LabelPrefix" => Self::Dns1035LabelPrefix,
            "labelValue" => Self::LabelValue,
            "uri" => Self::Uri,
            "uuid" => Self::Uuid,
            "byte" => Self::Byte,
            "date" => Self::Date,
            "datetime" => Self::DateTime,
            _ => return None,
        })
    }

    /// What is wrong with a text.
    pub(super) fn validate(self, s: &str) -> Vec<String> {
        let format = |format: Format, why: &str| {
            if format.accepts(s) { Vec::new() } else { vec![why.to_owned()] }
        };
        match self {
            Self::Dns1123Label => validation::dns1123_label_value(s),
            Self::Dns1123Subdomain => validation::dns1123_subdomain_value(s),
            Self::Dns1035Label => validation::dns1035_label(s, false),
            Self::QualifiedName => validation::qualified_name(s),
            Self::Dns1123LabelPrefix => validation::dns1123_label(s, true),
            Self::Dns1123SubdomainPrefix => validation::dns1123_subdomain(s, true),
            Self::Dns1035LabelPrefix => validation::dns1035_label(s, true),
            Self::LabelValue => validation::label_value(s),
            Self::Uri => format(Format::Uri, "invalid URI"),
            Self::Uuid => format(Format::Uuid, "does not match the UUID format"),
            Self::Byte => format(Format::Byte, "invalid base64"),
            Self::Date => format(Format::Date, "invalid date"),
            Self::DateTime => format(Format::DateTime, "invalid datetime"),
        }
    }
}
