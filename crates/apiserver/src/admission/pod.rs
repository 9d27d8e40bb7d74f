//! Plugins that look at pods: ServiceAccount (the default account and its token volume) and Priority.

use homeostat_model::Status;
use homeostat_model::status::Result;
use homeostat_resources::builtin::admit;
use serde_json::{Value, json};

use super::{Operation, Subject};
use crate::read;
use crate::write::Writing;

/// Where containers find their token.
const TOKEN_MOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

pub(super) fn admit(w: &Writing<'_>, subject: &Subject, pod: &mut Value, _old: Option<&Value>) -> Result<()> {
    let id = &w.target.resource.id;
    let pods = id.group.is_empty() && &*id.resource == "pods" && w.subresource.is_empty();
    if !pods || !pod["spec"].is_object() {
        return Ok(());
    }
    if subject.operation != Operation::Create {
        if w.server.config.admits("DefaultTolerationSeconds") {
            admit::pods::default_tolerations(pod);
        }
        return Ok(());
    }
    if w.server.config.admits("RuntimeClass") {
        runtime_class(w, subject, pod)?;
    }
    if w.server.config.admits("DefaultTolerationSeconds") {
        admit::pods::default_tolerations(pod);
    }
    if w.server.config.admits("Priority") {
        priority(w, subject, pod)?;
    }
    if w.server.config.admits("ServiceAccount") {
        service_account(w, subject, pod)?;
    }
    Ok(())
}

/// Overhead and scheduling follow from the runtime class.
fn runtime_class(w: &Writing<'_>, subject: &Subject, pod: &mut Value) -> Result<()> {
    let Some(name) = pod["spec"]["runtimeClassName"].as_str().filter(|n| !n.is_empty()) else {
        return Ok(());
    };
    let class = w.server.registry.table().named("node.k8s.io", "runtimeclasses").and_then(|classes| {
        let record = w.server.config.store.get(&classes.resource.collection, name)?;
        Some(read::stored(&record, &classes))
    });
    admit::pods::runtime_class(pod, class.as_ref())
        .map_err(|why| Status::forbidden(&w.target.resource.id, &subject.name, &why))
}

/// The pod's priority follows from its class.
fn priority(w: &Writing<'_>, subject: &Subject, pod: &mut Value) -> Result<()> {
    let table = w.server.registry.table();
    let Some(classes) = table.named("scheduling.k8s.io", "priorityclasses") else { return Ok(()) };
    let snapshot = w.server.config.store.snapshot();
    let collection = &classes.resource.collection;
    let name = pod["spec"]["priorityClassName"].as_str().unwrap_or_default().to_owned();
    let class = if name.is_empty() {
        // The global default; of several the one of least value, as the reference chooses.
        snapshot
            .range(collection, "", None)
            .map(|r| read::stored(r, &classes))
            .filter(|c| c["globalDefault"] == true)
            .min_by_key(|c| c["value"].as_i64().unwrap_or(0))
    } else {
        let found = snapshot.get(collection, &name).map(|r| read::stored(r, &classes));
        if found.is_none() {
            let why = format!("no PriorityClass with name {name} was found");
            return Err(Status::forbidden(&w.target.resource.id, &subject.name, &why));
        }
        found
    };
    let value = class.as_ref().and_then(|c| c["value"].as_i64()).unwrap_or(0);
    let policy =
        class.as_ref().and_then(|c| c["preemptionPolicy"].as_str()).unwrap_or("PreemptLowerPriority");
    if let Some(given) = pod["spec"]["priority"].as_i64()
        && given != value
    {
        let why = format!(
            "the integer value of priority ({given}) must not be provided in pod spec; priority admission controller \
             computed {value} from the given PriorityClass name"
        );
        return Err(Status::forbidden(&w.target.resource.id, &subject.name, &why));
    }
    if let Some(c) = &class
        && name.is_empty()
    {
        pod["spec"]["priorityClassName"] = c["metadata"]["name"].clone();
    }
    pod["spec"]["priority"] = value.into();
    if pod["spec"]["preemptionPolicy"].is_null() {
        pod["spec"]["preemptionPolicy"] = policy.into();
    }
    Ok(())
}

/// The pod gets an account, the account's token as a volume, and its image pull secrets.
fn service_account(w: &Writing<'_>, subject: &Subject, pod: &mut Value) -> Result<()> {
    // Mirror pods have no account.
    if pod["metadata"]["annotations"]["kubernetes.io/config.mirror"].is_string() {
        return Ok(());
    }
    let spec = &mut pod["spec"];
    let name = match spec["serviceAccountName"].as_str() {
        Some(n) if !n.is_empty() => n.to_owned(),
        _ => "default".to_owned(),
    };
    spec["serviceAccountName"] = name.as_str().into();
    spec["serviceAccount"] = name.as_str().into();
    let Some(record) = w.server.config.store.get("serviceaccounts", &format!("{}/{name}", w.namespace))
    else {
        return Err(Status::forbidden(
            &w.target.resource.id,
            &subject.name,
            &format!(
                "error looking up service account {}/{name}: serviceaccount \"{name}\" not found",
                w.namespace
            ),
        ));
    };
    let account: Value = serde_json::from_slice(&record.bytes).unwrap_or_default();
    if spec["imagePullSecrets"].as_array().is_none_or(Vec::is_empty)
        && account["imagePullSecrets"].as_array().is_some_and(|a| !a.is_empty())
    {
        spec["imagePullSecrets"] = account["imagePullSecrets"].clone();
    }
    let wanted = spec["automountServiceAccountToken"]
        .as_bool()
        .or_else(|| account["automountServiceAccountToken"].as_bool())
        .unwrap_or(true);
    if wanted {
        mount_token(w, spec);
    }
    Ok(())
}

fn mount_token(w: &Writing<'_>, spec: &mut Value) {
    let existing = spec["volumes"].as_array().and_then(|volumes| {
        volumes
            .iter()
            .filter_map(|v| v["name"].as_str())
            .find(|n| n.starts_with("kube-api-access-"))
            .map(str::to_owned)
    });
    let volume =
        existing.clone().unwrap_or_else(|| format!("kube-api-access-{}", w.server.config.entropy.suffix(5)));
    let mut mounted = false;
    for list in ["initContainers", "containers"] {
        for container in spec[list].as_array_mut().into_iter().flatten() {
            let mounts = &mut container["volumeMounts"];
            let taken = mounts.as_array().is_some_and(|m| m.iter().any(|m| m["mountPath"] == TOKEN_MOUNT));
            if taken || !container.is_object() {
                continue;
            }
            let mount = json!({"name": volume, "readOnly": true, "mountPath": TOKEN_MOUNT});
            match container["volumeMounts"].as_array_mut() {
                Some(m) => m.push(mount),
                None => container["volumeMounts"] = json!([mount]),
            }
            mounted = true;
        }
    }
    for list in ["initContainers"] {
        if spec[list].is_null()
            && let Some(s) = spec.as_object_mut()
        {
            s.remove(list);
        }
    }
    if !mounted || existing.is_some() {
        return;
    }
    let projected = json!({
        "name": volume,
        "projected": {
            "defaultMode": 420,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
        },
    });
    match spec["volumes"].as_array_mut() {
        Some(v) => v.push(projected),
        None => spec["volumes"] = json!([projected]),
    }
}
