//! Addresses and node ports of Services: which are free is derived from the stored Services.
//!
//! The allocator follows the store's log when it is asked; what is being written just now is reserved until the
//! write has ended. Invariant: no two Services are given the same address or port by one server, and none by two
//! whose writes see each other.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};

use homeostat_model::status::Result;
use homeostat_model::{Status, field};
use homeostat_store::{Cursor, Store};
use ipnet::IpNet;
use serde_json::{Value, json};

use crate::meta::Meta;
use crate::server::Server;
use crate::write::Writing;

const COLLECTION: &str = "services";
/// Draws by chance before the range is walked.
const DRAWS: usize = 32;

/// What is taken.
#[derive(Default)]
pub(crate) struct Allocator(Mutex<State>);

#[derive(Default)]
struct State {
    seen: u64,
    cursor: Option<Cursor<Meta>>,
    addresses: BTreeMap<IpAddr, String>,
    ports: BTreeMap<u16, String>,
    /// Of writes under way: how many hold each.
    reserved_addresses: BTreeMap<IpAddr, usize>,
    reserved_ports: BTreeMap<u16, usize>,
}

/// Keeps what a write was given until it has ended.
pub(crate) struct Reservation<'a> {
    server: &'a Server,
    addresses: Vec<IpAddr>,
    ports: Vec<u16>,
}

impl Drop for Reservation<'_> {
    fn drop(&mut self) {
        let mut s = self.server.services.0.lock().unwrap_or_else(PoisonError::into_inner);
        for ip in &self.addresses {
            release(&mut s.reserved_addresses, ip);
        }
        for port in &self.ports {
            release(&mut s.reserved_ports, port);
        }
    }
}

fn release<K: Ord>(map: &mut BTreeMap<K, usize>, key: &K) {
    if let Some(n) = map.get_mut(key) {
        *n -= 1;
        if *n == 0 {
            map.remove(key);
        }
    }
}

fn addresses(service: &Value) -> Vec<IpAddr> {
    let spec = &service["spec"];
    let list = spec["clusterIPs"].as_array().into_iter().flatten().chain([&spec["clusterIP"]]);
    let mut out: Vec<IpAddr> = list.filter_map(Value::as_str).filter_map(|t| t.parse().ok()).collect();
    out.dedup();
    out
}

fn node_ports(service: &Value) -> Vec<u16> {
    let number = |p: &Value| p.as_u64().and_then(|n| u16::try_from(n).ok()).filter(|n| *n > 0);
    let ports = service["spec"]["ports"].as_array().into_iter().flatten();
    let mut out: Vec<u16> = ports.filter_map(|p| number(&p["nodePort"])).collect();
    out.extend(number(&service["spec"]["healthCheckNodePort"]));
    out.sort_unstable();
    out.dedup();
    out
}

impl State {
    fn put(&mut self, name: &str, bytes: &[u8]) {
        let v: Value = serde_json::from_slice(bytes).unwrap_or_default();
        for ip in addresses(&v) {
            self.addresses.insert(ip, name.to_owned());
        }
        for port in node_ports(&v) {
            self.ports.insert(port, name.to_owned());
        }
    }

    fn forget(&mut self, name: &str, bytes: &[u8]) {
        let v: Value = serde_json::from_slice(bytes).unwrap_or_default();
        for ip in addresses(&v) {
            if self.addresses.get(&ip).is_some_and(|n| n == name) {
                self.addresses.remove(&ip);
            }
        }
        for port in node_ports(&v) {
            if self.ports.get(&port).is_some_and(|n| n == name) {
                self.ports.remove(&port);
            }
        }
    }

    /// Brings the state up to the store.
    fn follow(&mut self, store: &dyn Store<Meta>) {
        let revision = store.revision();
        if self.cursor.is_some() && self.seen >= revision {
            return;
        }
        while let Some(mut cursor) = self.cursor.take() {
            let Ok(events) = cursor.try_next() else { break };
            if events.is_empty() {
                self.cursor = Some(cursor);
                self.seen = revision;
                return;
            }
            for e in events {
                if let Some(prev) = &e.prev {
                    self.forget(&e.key.name, &prev.bytes);
                }
                if let Some(now) = &e.now {
                    self.put(&e.key.name, &now.bytes);
                }
            }
            self.cursor = Some(cursor);
        }
        let snapshot = store.snapshot();
        self.addresses.clear();
        self.ports.clear();
        for record in snapshot.range(COLLECTION, "", None) {
            self.put(&record.key.name, &record.bytes);
        }
        self.seen = snapshot.revision();
        self.cursor = store.watch(COLLECTION, self.seen).ok();
    }

    fn address_free(&self, ip: &IpAddr, name: &str) -> bool {
        self.addresses.get(ip).is_none_or(|n| n == name) && !self.reserved_addresses.contains_key(ip)
    }

    fn port_free(&self, port: u16, name: &str) -> bool {
        self.ports.get(&port).is_none_or(|n| n == name) && !self.reserved_ports.contains_key(&port)
    }
}

/// Gives a Service what it needs; the reservation is to be held until the write has ended.
pub(crate) fn allocate<'a>(w: &Writing<'a>, new: &mut Value, name: &str) -> Result<Option<Reservation<'a>>> {
    let id = &w.target.resource.id;
    if !id.group.is_empty()
        || &*id.resource != COLLECTION
        || !w.subresource.is_empty()
        || !new["spec"].is_object()
    {
        return Ok(None);
    }
    let key = crate::object::store_name(w.namespace, name);
    let server: &'a Server = w.server;
    let mut s = server.services.0.lock().unwrap_or_else(PoisonError::into_inner);
    s.follow(server.config.store.as_ref());
    let mut held = Reservation { server, addresses: Vec::new(), ports: Vec::new() };
    let mut errors = Vec::new();
    if new["spec"]["type"] != "ExternalName" {
        families(server, new);
        address(server, &s, new, &key, &mut held, &mut errors);
    }
    let kind = new["spec"]["type"].as_str().unwrap_or_default();
    if kind == "NodePort" || (kind == "LoadBalancer" && new["spec"]["allocateLoadBalancerNodePorts"] != false)
    {
        ports(server, &s, new, &key, &mut held, &mut errors);
    }
    for ip in &held.addresses {
        *s.reserved_addresses.entry(*ip).or_default() += 1;
    }
    for port in &held.ports {
        *s.reserved_ports.entry(*port).or_default() += 1;
    }
    // The lock goes before the reservation may be dropped, which takes it again.
    drop(s);
    if errors.is_empty() {
        return Ok(Some(held));
    }
    Err(Status::invalid(&w.target.resource.group_kind(), name, &errors))
}

/// Fills in address families; the cluster has one.
fn families(server: &Server, new: &mut Value) {
    let own = if server.config.service_cluster_ip_range.addr().is_ipv4() { "IPv4" } else { "IPv6" };
    let other = if own == "IPv4" { "IPv6" } else { "IPv4" };
    let spec = &mut new["spec"];
    let bare =
        spec["clusterIP"] == "None" && spec["selector"].as_object().is_none_or(serde_json::Map::is_empty);
    if spec["ipFamilyPolicy"].as_str().is_none_or(str::is_empty) {
        spec["ipFamilyPolicy"] = if bare { "RequireDualStack" } else { "SingleStack" }.into();
    }
    if spec["ipFamilies"].as_array().is_none_or(Vec::is_empty) {
        spec["ipFamilies"] = if bare && spec["ipFamilyPolicy"] == "RequireDualStack" {
            json!([own, other])
        } else {
            json!([own])
        };
    }
}

fn address(
    server: &Server,
    s: &State,
    new: &mut Value,
    key: &str,
    held: &mut Reservation<'_>,
    errors: &mut Vec<field::Error>,
) {
    let range = server.config.service_cluster_ip_range;
    let given = new["spec"]["clusterIP"].as_str().unwrap_or_default().to_owned();
    match given.as_str() {
        "None" => {}
        "" => match free_address(server, s, range, key) {
            Some(ip) => {
                held.addresses.push(ip);
                new["spec"]["clusterIP"] = ip.to_string().into();
                new["spec"]["clusterIPs"] = json!([ip.to_string()]);
            }
            None => errors.push(field::Error::new(
                field::Kind::Internal,
                "spec.clusterIPs",
                Value::Null,
                "failed to allocate a serviceIP: range is full",
            )),
        },
        text => {
            let Ok(ip) = text.parse::<IpAddr>() else { return };
            let list = new["spec"]["clusterIPs"].clone();
            if s.addresses.get(&ip).is_some_and(|n| n == key) {
                return;
            }
            if !range.contains(&ip) {
                let why = format!(
                    "failed to allocate IP {ip}: the provided IP ({ip}) is not in the valid range. The range of valid \
                     IPs is {}",
                    range.trunc()
                );
                errors.push(field::Error::invalid("spec.clusterIPs", list, why));
            } else if !s.address_free(&ip, key) {
                let why = format!("failed to allocate IP {ip}: provided IP is already allocated");
                errors.push(field::Error::invalid("spec.clusterIPs", list, why));
            } else {
                held.addresses.push(ip);
                if new["spec"]["clusterIPs"].as_array().is_none_or(Vec::is_empty) {
                    new["spec"]["clusterIPs"] = json!([text]);
                }
            }
        }
    }
}

/// The host at an offset of a range, network and broadcast addresses left out.
fn nth(range: IpNet, n: u64) -> Option<IpAddr> {
    match range.network() {
        IpAddr::V4(base) => Some(IpAddr::V4(u32::from(base).checked_add(u32::try_from(n).ok()?)?.into())),
        IpAddr::V6(base) => Some(IpAddr::V6(u128::from(base).checked_add(u128::from(n))?.into())),
    }
}

fn free_address(server: &Server, s: &State, range: IpNet, key: &str) -> Option<IpAddr> {
    let bits = range.max_prefix_len() - range.prefix_len();
    let size = if bits >= 16 { 65_536 } else { 1_u64 << bits };
    // The first addresses are left to those who ask for one, as in the reference.
    let kept = (size / 16).clamp(16, 256).min(size.saturating_sub(2));
    let last = if range.addr().is_ipv4() { size.saturating_sub(1) } else { size };
    let free = |n: u64| nth(range, n).filter(|ip| s.address_free(ip, key));
    let span = last.saturating_sub(kept + 1);
    for _ in 0..DRAWS {
        if span == 0 {
            break;
        }
        if let Some(ip) = free(kept + 1 + server.config.entropy.below(span)) {
            return Some(ip);
        }
    }
    (kept + 1..last).chain(1..=kept.min(last.saturating_sub(1))).find_map(free)
}

fn ports(
    server: &Server,
    s: &State,
    new: &mut Value,
    key: &str,
    held: &mut Reservation<'_>,
    errors: &mut Vec<field::Error>,
) {
    let (low, high) = server.config.service_node_ports;
    let mine: Vec<u16> = s.ports.iter().filter(|(_, n)| *n == key).map(|(p, _)| *p).collect();
    let list = new["spec"]["ports"].as_array_mut().map(std::mem::take).unwrap_or_default();
    let mut out = list;
    for (i, port) in out.iter_mut().enumerate() {
        let path = format!("spec.ports[{i}].nodePort");
        let given = port["nodePort"].as_i64().unwrap_or(0);
        if given == 0 {
            match free_port(server, s, key, held, (low, high)) {
                Some(p) => {
                    held.ports.push(p);
                    port["nodePort"] = p.into();
                }
                None => errors.push(field::Error::new(
                    field::Kind::Internal,
                    path,
                    Value::Null,
                    "failed to allocate a nodePort: range is full",
                )),
            }
            continue;
        }
        let number = u16::try_from(given).unwrap_or(0);
        if mine.contains(&number) || held.ports.contains(&number) {
            continue;
        }
        if number < low || number > high {
            let why =
                format!("provided port is not in the valid range. The range of valid ports is {low}-{high}");
            errors.push(field::Error::invalid(path, given, why));
        } else if !s.port_free(number, key) {
            errors.push(field::Error::invalid(path, given, "provided port is already allocated"));
        } else {
            held.ports.push(number);
        }
    }
    new["spec"]["ports"] = out.into();
}

fn free_port(
    server: &Server,
    s: &State,
    key: &str,
    held: &Reservation<'_>,
    (low, high): (u16, u16),
) -> Option<u16> {
    let size = high.checked_sub(low)?.checked_add(1)?;
    let kept = (size / 32).clamp(16, 128).min(size - 1);
    let free = |p: u16| (s.port_free(p, key) && !held.ports.contains(&p)).then_some(p);
    for _ in 0..DRAWS {
        let n = u16::try_from(server.config.entropy.below(u64::from(size - kept))).unwrap_or(0);
        if let Some(p) = free(low + kept + n) {
            return Some(p);
        }
    }
    (low + kept..=high).chain(low..low + kept).find_map(free)
}
