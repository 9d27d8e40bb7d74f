//! The ConfigMaps and Secrets that a pod names, and what is missing of them: a volume that can't be mounted keeps the
//! whole pod back, a variable only its container.
//!
//! What is optional is no reference, nor is the certificate that every namespace is given: each pod mounts it, and a read
//! for each would tell nothing. Texts are the kubelet's (`kubelet_pods.go`, the volume plugins).

use std::collections::{BTreeMap, BTreeSet};

use homeostat_sdk::{Key, Result, Writer};
use k8s_openapi::api::core::v1::{ConfigMap, EnvFromSource, EnvVar, KeyToPath, Pod, Secret, Volume};

/// In every namespace, by the root-ca-certificate-publisher.
const ROOT_CERTIFICATE: &str = "kube-root-ca.crt";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    ConfigMap,
    Secret,
}

/// What needs an object.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Use<'a> {
    Volume(&'a str),
    Container(&'a str),
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Reference<'a> {
    by: Use<'a>,
    kind: Kind,
    name: &'a str,
    /// The keys that must be in it.
    keys: Vec<&'a str>,
}

/// What is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lacking {
    /// A volume that can't be mounted, and why.
    pub volume: Option<(String, String)>,
    /// Why a container can't be made, by its name.
    pub containers: BTreeMap<String, String>,
}

/// The keys of objects that are there.
type Known = BTreeMap<(Kind, String), Option<BTreeSet<String>>>;

fn of_volume<'a>(volume: &'a Volume) -> Vec<Reference<'a>> {
    let reference =
        |kind, name: Option<&'a String>, items: Option<&'a Vec<KeyToPath>>, optional: Option<bool>| {
            let name = name.filter(|n| !n.is_empty() && optional != Some(true))?.as_str();
            let keys = items.into_iter().flatten().map(|i| i.key.as_str()).collect();
            Some(Reference { by: Use::Volume(&volume.name), kind, name, keys })
        };
    let mut all = Vec::new();
    if let Some(s) = &volume.secret {
        all.extend(reference(Kind::Secret, s.secret_name.as_ref(), s.items.as_ref(), s.optional));
    }
    if let Some(c) = &volume.config_map {
        all.extend(reference(Kind::ConfigMap, Some(&c.name), c.items.as_ref(), c.optional));
    }
    for source in volume.projected.iter().flat_map(|p| p.sources.iter().flatten()) {
        if let Some(s) = &source.secret {
            all.extend(reference(Kind::Secret, Some(&s.name), s.items.as_ref(), s.optional));
        }
        if let Some(c) = &source.config_map {
            all.extend(reference(Kind::ConfigMap, Some(&c.name), c.items.as_ref(), c.optional));
        }
    }
    all
}

fn of_container<'a>(
    container: &'a str,
    env: Option<&'a Vec<EnvVar>>,
    from: Option<&'a Vec<EnvFromSource>>,
) -> Vec<Reference<'a>> {
    let reference = |kind, name: &'a String, key: Option<&'a String>, optional: Option<bool>| {
        (!name.is_empty() && optional != Some(true)).then(|| Reference {
            by: Use::Container(container),
            kind,
            name,
            keys: key.map(String::as_str).into_iter().collect(),
        })
    };
    let mut all = Vec::new();
    for source in from.into_iter().flatten() {
        if let Some(c) = &source.config_map_ref {
            all.extend(reference(Kind::ConfigMap, &c.name, None, c.optional));
        }
        if let Some(s) = &source.secret_ref {
            all.extend(reference(Kind::Secret, &s.name, None, s.optional));
        }
    }
    for source in env.into_iter().flatten().filter_map(|e| e.value_from.as_ref()) {
        if let Some(c) = &source.config_map_key_ref {
            all.extend(reference(Kind::ConfigMap, &c.name, Some(&c.key), c.optional));
        }
        if let Some(s) = &source.secret_key_ref {
            all.extend(reference(Kind::Secret, &s.name, Some(&s.key), s.optional));
        }
    }
    all
}

/// Everything that a pod can't do without, in the order in which a kubelet comes to it.
fn references(pod: &Pod) -> Vec<Reference<'_>> {
    let Some(spec) = &pod.spec else { return Vec::new() };
    let mut all: Vec<Reference<'_>> = spec.volumes.iter().flatten().flat_map(of_volume).collect();
    for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
        all.extend(of_container(&container.name, container.env.as_ref(), container.env_from.as_ref()));
    }
    for container in spec.ephemeral_containers.iter().flatten() {
        all.extend(of_container(&container.name, container.env.as_ref(), container.env_from.as_ref()));
    }
    all.retain(|r| (r.kind, r.name) != (Kind::ConfigMap, ROOT_CERTIFICATE));
    all
}

fn lacking(pod: &Pod, known: &Known) -> Lacking {
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let mut lacking = Lacking::default();
    for reference in references(pod) {
        let Reference { kind, name, by, keys } = reference;
        let object = known.get(&(kind, name.to_owned())).and_then(Option::as_ref);
        let absent = object.and_then(|has| keys.iter().find(|k| !has.contains(**k)));
        let (short, long, in_volume) = match kind {
            Kind::ConfigMap => ("configmap", "ConfigMap", "config"),
            Kind::Secret => ("secret", "Secret", "secret"),
        };
        let why = match (object, absent, &by) {
            (None, ..) => format!("{short} \"{name}\" not found"),
            (_, None, _) => continue,
            (_, Some(key), Use::Volume(_)) => format!("references non-existent {in_volume} key: {key}"),
            (_, Some(key), _) => format!("couldn't find key {key} in {long} {namespace}/{name}"),
        };
        match by {
            Use::Volume(volume) => drop(lacking.volume.get_or_insert((volume.to_owned(), why))),
            Use::Container(container) => {
                lacking.containers.entry(container.to_owned()).or_insert(why);
            }
        }
    }
    lacking
}

/// Looks for what a pod names. Most name nothing, and cost nothing.
pub(crate) async fn look(pod: &Pod, writer: &Writer) -> Result<Lacking> {
    let wanted: BTreeSet<(Kind, &str)> = references(pod).iter().map(|r| (r.kind, r.name)).collect();
    let namespace = pod.metadata.namespace.as_deref().unwrap_or_default();
    let mut known = Known::new();
    for (kind, name) in wanted {
        let key = Key::namespaced(namespace, name);
        let keys: Option<BTreeSet<String>> = match kind {
            Kind::ConfigMap => writer.get::<ConfigMap>(&key).await?.map(|c| {
                let (text, bytes) = (c.data.unwrap_or_default(), c.binary_data.unwrap_or_default());
                text.into_keys().chain(bytes.into_keys()).collect()
            }),
            Kind::Secret => {
                writer.get::<Secret>(&key).await?.map(|s| s.data.unwrap_or_default().into_keys().collect())
            }
        };
        known.insert((kind, name.to_owned()), keys);
    }
    Ok(lacking(pod, &known))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    /// What a pod lacks where the ConfigMap and the Secret `there` have the key `k`: `volume: why`, `container: why`.
    #[track_caller]
    fn check(spec: Value, want: &[&str]) {
        let pod = json!({"metadata": {"name": "p", "namespace": "ns"}, "spec": spec});
        let pod: Pod = serde_json::from_value(pod).unwrap();
        let there = |kind| ((kind, "there".to_owned()), Some(BTreeSet::from(["k".to_owned()])));
        let known = [there(Kind::ConfigMap), there(Kind::Secret)].into();
        let Lacking { volume, containers } = lacking(&pod, &known);
        let volume = volume.map(|(volume, why)| format!("{volume}: {why}"));
        let containers = containers.into_iter().map(|(container, why)| format!("{container}: {why}"));
        let got: Vec<String> = volume.into_iter().chain(containers).collect();
        assert_eq!(got, want);
    }

    fn env(source: Value) -> Value {
        json!({"containers": [{"name": "c", "env": [{"name": "E", "value": "plain"}, {"name": "F", "valueFrom": source}]}]})
    }

    fn from(source: Value) -> Value {
        json!({"containers": [{"name": "c", "envFrom": [source]}]})
    }

    fn volume(mut source: Value) -> Value {
        source["name"] = "v".into();
        json!({"containers": [{"name": "c"}], "volumes": [{"name": "w", "emptyDir": {}}, source]})
    }

    #[test]
    fn what_is_missing_is_found() {
        check(json!({"containers": [{"name": "c"}]}), &[]);
        for (reference, short, long) in
            [("secretKeyRef", "secret", "Secret"), ("configMapKeyRef", "configmap", "ConfigMap")]
        {
            let of = |v: Value| env(json!({reference: v}));
            check(of(json!({"name": "there", "key": "k"})), &[]);
            check(of(json!({"name": "x", "key": "k"})), &[&format!("c: {short} \"x\" not found")]);
            check(of(json!({"name": "x", "key": "k", "optional": true})), &[]);
            let keyless = format!("c: couldn't find key l in {long} ns/there");
            check(of(json!({"name": "there", "key": "l"})), &[&keyless]);
        }
        check(from(json!({"secretRef": {"name": "x"}})), &["c: secret \"x\" not found"]);
        check(from(json!({"configMapRef": {"name": "x", "optional": true}})), &[]);
        check(volume(json!({"secret": {"secretName": "x"}})), &["v: secret \"x\" not found"]);
        check(volume(json!({"secret": {"secretName": "x", "optional": true}})), &[]);
        check(volume(json!({"configMap": {"name": "x"}})), &["v: configmap \"x\" not found"]);
        let items = json!({"configMap": {"name": "there", "items": [{"key": "l", "path": "l"}]}});
        check(volume(items), &["v: references non-existent config key: l"]);
        let projected = json!({"projected": {"sources": [{"serviceAccountToken": {"path": "t"}},
            {"configMap": {"name": "kube-root-ca.crt"}}, {"secret": {"name": "x"}}]}});
        check(volume(projected), &["v: secret \"x\" not found"]);
        // Each container has its own; the first volume speaks for all.
        let mut both = volume(json!({"configMap": {"name": "x"}}));
        both["initContainers"] =
            json!([{"name": "i", "envFrom": [{"secretRef": {"name": "y"}}, {"secretRef": {"name": "z"}}]}]);
        check(both, &["v: configmap \"x\" not found", "i: secret \"y\" not found"]);
    }
}
