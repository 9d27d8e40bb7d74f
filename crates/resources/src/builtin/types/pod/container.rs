//! Rules of containers: names, images, ports, environment, mounts, probes, resources.

use std::collections::BTreeSet;

use homeostat_model::field::{self, Error, child, index};
use homeostat_model::validation::qualified_name;
use serde_json::Value;

use crate::builtin::rules::{self, config_key, port, port_or_name, required_label};
use crate::builtin::value::{Errors, at, empty, flag, has, int, items, non_negative, one_of, text, wrong};

/// What containers of a pod may refer to, and what is counted over all of them.
pub(super) struct Pod<'a> {
    pub(super) volumes: BTreeSet<&'a str>,
    pub(super) host_network: bool,
}

/// Rules of `spec.containers`.
pub(super) fn containers(errors: &mut Errors, path: &str, spec: &Value, pod: &Pod<'_>) {
    let path = child(path, "containers");
    let list = items(spec, "containers");
    if list.is_empty() {
        return errors.push(Error::required(path, ""));
    }
    let mut names = BTreeSet::new();
    let mut ports = BTreeSet::new();
    for (i, container) in list.iter().enumerate() {
        let path = index(&path, i);
        common(errors, &path, container, pod);
        host_ports(errors, &path, container, &mut ports);
        let name = text(container, "name");
        if !name.is_empty() && !names.insert(name) {
            errors.push(Error::duplicate(child(&path, "name"), name));
        }
        lifecycle(errors, &path, container);
        probes(errors, &path, container);
    }
}

/// Rules of `spec.initContainers`.
pub(super) fn init_containers(errors: &mut Errors, path: &str, spec: &Value, pod: &Pod<'_>) {
    let mut names: BTreeSet<&str> = items(spec, "containers").iter().map(|c| text(c, "name")).collect();
    for (i, container) in items(spec, "initContainers").iter().enumerate() {
        let path = index(&child(path, "initContainers"), i);
        common(errors, &path, container, pod);
        let sidecar = text(container, "restartPolicy") == "Always";
        if has(container, "restartPolicy") && !sidecar && !has(container, "restartPolicyRules") {
            one_of(errors, container, &path, "restartPolicy", &["Always"]);
        }
        let name = text(container, "name");
        if !name.is_empty() && !names.insert(name) {
            errors.push(Error::duplicate(child(&path, "name"), name));
        }
        if sidecar {
            lifecycle(errors, &path, container);
            probes(errors, &path, container);
        } else {
            let why = "may not be set for init containers without restartPolicy=Always";
            for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe"] {
                if has(container, field) {
                    errors.push(Error::forbidden(child(&path, field), why));
                }
            }
        }
    }
}

/// Rules of `spec.ephemeralContainers`.
pub(super) fn ephemeral_containers(errors: &mut Errors, path: &str, spec: &Value, pod: &Pod<'_>) {
    let mut names: BTreeSet<&str> = items(spec, "containers")
        .iter()
        .chain(items(spec, "initContainers"))
        .map(|c| text(c, "name"))
        .collect();
    let targets: BTreeSet<&str> = names.clone();
    for (i, container) in items(spec, "ephemeralContainers").iter().enumerate() {
        let path = index(&child(path, "ephemeralContainers"), i);
        common(errors, &path, container, pod);
        let name = text(container, "name");
        if !name.is_empty() && !names.insert(name) {
            errors.push(Error::duplicate(child(&path, "name"), name));
        }
        let target = text(container, "targetContainerName");
        if !target.is_empty() && !targets.contains(target) {
            errors.push(Error::not_found(child(&path, "targetContainerName"), target));
        }
        for field in ["lifecycle", "livenessProbe", "readinessProbe", "startupProbe", "ports", "resizePolicy"]
        {
            if !empty(container, field) {
                errors
                    .push(Error::forbidden(child(&path, field), "cannot be set for an Ephemeral Container"));
            }
        }
        if !empty(container, "resources") {
            let path = child(&path, "resources");
            errors.push(Error::forbidden(path, "cannot be set for an Ephemeral Container"));
        }
    }
}

fn common(errors: &mut Errors, path: &str, container: &Value, pod: &Pod<'_>) {
    required_label(errors, &child(path, "name"), text(container, "name"));
    let image = text(container, "image");
    if image.is_empty() {
        errors.push(Error::required(child(path, "image"), ""));
    } else if image.trim() != image {
        errors.push(Error::invalid(
            child(path, "image"),
            image,
            "must not have leading or trailing whitespace",
        ));
    }
    one_of(errors, container, path, "terminationMessagePolicy", &["FallbackToLogsOnError", "File"]);
    ports(errors, path, container, pod);
    for (i, env) in items(container, "env").iter().enumerate() {
        environment(errors, &index(&child(path, "env"), i), env);
    }
    for (i, source) in items(container, "envFrom").iter().enumerate() {
        environment_from(errors, &index(&child(path, "envFrom"), i), source);
    }
    mounts(errors, path, container, pod);
    one_of(errors, container, path, "imagePullPolicy", &["Always", "IfNotPresent", "Never"]);
    rules::container_resources(errors, &child(path, "resources"), at(container, "resources"));
    security(errors, &child(path, "securityContext"), at(container, "securityContext"));
}

fn ports(errors: &mut Errors, path: &str, container: &Value, pod: &Pod<'_>) {
    let mut names = BTreeSet::new();
    for (i, item) in items(container, "ports").iter().enumerate() {
        let path = index(&child(path, "ports"), i);
        let name = text(item, "name");
        if !name.is_empty() {
            let bad = rules::port_name(name);
            if bad.is_empty() && !names.insert(name) {
                errors.push(Error::duplicate(child(&path, "name"), name));
            }
            wrong(errors, &child(&path, "name"), name, bad);
        }
        let number = int(item, "containerPort").unwrap_or_default();
        match number {
            0 => errors.push(Error::required(child(&path, "containerPort"), "")),
            n => port(errors, &child(&path, "containerPort"), n),
        }
        let host = int(item, "hostPort").unwrap_or_default();
        if host != 0 {
            port(errors, &child(&path, "hostPort"), host);
            if pod.host_network && host != number {
                let why = "must match `containerPort` when `hostNetwork` is true";
                errors.push(Error::invalid(child(&path, "hostPort"), host, why));
            }
        }
        one_of(errors, item, &path, "protocol", &["SCTP", "TCP", "UDP"]);
    }
}

fn host_ports<'a>(
    errors: &mut Errors,
    path: &str,
    container: &'a Value,
    seen: &mut BTreeSet<(i64, &'a str, &'a str)>,
) {
    for (i, item) in items(container, "ports").iter().enumerate() {
        let Some(host) = int(item, "hostPort").filter(|p| *p != 0) else { continue };
        let (ip, protocol) = (text(item, "hostIP"), text(item, "protocol"));
        if !seen.insert((host, ip, protocol)) {
            let path = child(&index(&child(path, "ports"), i), "hostPort");
            errors.push(Error::duplicate(path, format!("{protocol}/{ip}/{host}")));
        }
    }
}

fn variable_name(errors: &mut Errors, path: &str, name: &str) {
    if !name.bytes().all(|b| (0x20..0x7f).contains(&b) && b != b'=') {
        let why = "a valid environment variable name must consist only of printable ASCII characters other than '='";
        errors.push(Error::invalid(path, name, why));
    }
}

/// Paths that an environment variable may take from its pod, as error texts list them.
const FIELD_PATHS: [&str; 9] = [
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
];

fn environment(errors: &mut Errors, path: &str, env: &Value) {
    let name = text(env, "name");
    if name.is_empty() {
        errors.push(Error::required(child(path, "name"), ""));
    } else {
        variable_name(errors, &child(path, "name"), name);
    }
    let source = at(env, "valueFrom");
    if source.is_null() {
        return;
    }
    let path = child(path, "valueFrom");
    let sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"];
    let given = sources.iter().filter(|s| has(source, s)).count();
    if has(source, "fieldRef") {
        field_ref(
            errors,
            &child(&path, "fieldRef"),
            at(source, "fieldRef"),
            &FIELD_PATHS,
            &["labels", "annotations"],
        );
    }
    if has(source, "resourceFieldRef") {
        resource_field_ref(errors, &child(&path, "resourceFieldRef"), at(source, "resourceFieldRef"));
    }
    for kind in ["configMapKeyRef", "secretKeyRef"] {
        if has(source, kind) {
            let (path, reference) = (child(&path, kind), at(source, kind));
            rules::required(errors, reference, &path, "name");
            let key = text(reference, "key");
            if key.is_empty() {
                errors.push(Error::required(child(&path, "key"), ""));
            } else {
                wrong(errors, &child(&path, "key"), key, config_key(key));
            }
        }
    }
    if given == 0 {
        let why = "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or `fileKeyRef`";
        errors.push(Error::invalid(&*path, "", why));
    } else if !text(env, "value").is_empty() {
        errors.push(Error::invalid(&*path, "", "may not be specified when `value` is not empty"));
    } else if given > 1 {
        errors.push(Error::invalid(&*path, "", "may not have more than one field specified at a time"));
    }
}

/// A reference to a field of the pod; `maps` are those of which one key may be taken, as `metadata.labels['k']`.
pub(super) fn field_ref(errors: &mut Errors, path: &str, reference: &Value, allowed: &[&str], maps: &[&str]) {
    let wanted = text(reference, "fieldPath");
    let path = child(path, "fieldPath");
    if wanted.is_empty() {
        return errors.push(Error::required(path, ""));
    }
    let subscript = wanted.strip_suffix("']").and_then(|p| p.split_once("['"));
    if let Some((base, key)) = subscript
        && let Some(map) = base.strip_prefix("metadata.").filter(|m| maps.contains(m))
    {
        let key = if map == "annotations" { key.to_lowercase() } else { key.to_owned() };
        return wrong(errors, &path, &key, qualified_name(&key));
    }
    let known = allowed.contains(&wanted)
        || FIELD_PATHS.contains(&wanted)
        || matches!(
            wanted,
            "metadata.labels" | "metadata.annotations" | "spec.restartPolicy" | "spec.schedulerName"
        );
    if !known {
        let why = format!("error converting fieldPath: field label not supported: {wanted}");
        errors.push(Error::invalid(path, wanted, why));
    } else if !allowed.contains(&wanted) {
        errors.push(Error::not_supported(path, wanted, allowed));
    }
}

pub(super) fn resource_field_ref(errors: &mut Errors, path: &str, reference: &Value) {
    let resource = text(reference, "resource");
    let allowed = [
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
    ];
    let pages = resource.starts_with("limits.hugepages-") || resource.starts_with("requests.hugepages-");
    if resource.is_empty() {
        errors.push(Error::required(child(path, "resource"), ""));
    } else if !allowed.contains(&resource) && !pages {
        errors.push(Error::not_supported(child(path, "resource"), resource, &allowed));
    }
}

fn environment_from(errors: &mut Errors, path: &str, source: &Value) {
    let prefix = text(source, "prefix");
    variable_name(errors, &child(path, "prefix"), prefix);
    let given: Vec<&str> = ["configMapRef", "secretRef"].into_iter().filter(|k| has(source, k)).collect();
    for kind in &given {
        rules::required(errors, at(source, kind), &child(path, kind), "name");
    }
    match given.len() {
        0 => errors.push(Error::invalid(path, "", "must specify one of: `configMapRef` or `secretRef`")),
        1 => {}
        _ => errors.push(Error::invalid(path, "", "may not have more than one field specified at a time")),
    }
}

fn mounts(errors: &mut Errors, path: &str, container: &Value, pod: &Pod<'_>) {
    let devices: BTreeSet<&str> =
        items(container, "volumeDevices").iter().map(|d| text(d, "devicePath")).collect();
    let mut seen = BTreeSet::new();
    for (i, mount) in items(container, "volumeMounts").iter().enumerate() {
        let path = index(&child(path, "volumeMounts"), i);
        let name = text(mount, "name");
        if name.is_empty() {
            errors.push(Error::required(child(&path, "name"), ""));
        } else if !pod.volumes.contains(name) {
            errors.push(Error::not_found(child(&path, "name"), name));
        }
        let target = text(mount, "mountPath");
        if target.is_empty() {
            errors.push(Error::required(child(&path, "mountPath"), ""));
        }
        if !seen.insert(target) {
            errors.push(Error::invalid(child(&path, "mountPath"), target, "must be unique"));
        }
        if devices.contains(target) {
            let why = "must not already exist as a path in volumeDevices";
            errors.push(Error::invalid(child(&path, "mountPath"), target, why));
        }
        for field in ["subPath", "subPathExpr"] {
            if !text(mount, field).is_empty() {
                descending_path(errors, &child(&path, field), text(mount, field));
            }
        }
        if !text(mount, "subPath").is_empty() && !text(mount, "subPathExpr").is_empty() {
            let why = "subPathExpr and subPath are mutually exclusive";
            errors.push(Error::invalid(child(&path, "subPathExpr"), text(mount, "subPathExpr"), why));
        }
        one_of(errors, mount, &path, "mountPropagation", &["Bidirectional", "HostToContainer", "None"]);
        if text(mount, "mountPropagation") == "Bidirectional"
            && !flag(container, "securityContext.privileged")
        {
            let why = "Bidirectional mount propagation is available only to privileged containers";
            errors.push(Error::forbidden(child(&path, "mountPropagation"), why));
        }
    }
    for (i, device) in items(container, "volumeDevices").iter().enumerate() {
        let path = index(&child(path, "volumeDevices"), i);
        if rules::required(errors, device, &path, "name") && !pod.volumes.contains(text(device, "name")) {
            errors.push(Error::not_found(child(&path, "name"), text(device, "name")));
        }
        rules::required(errors, device, &path, "devicePath");
    }
}

/// A relative path that doesn't climb.
pub(super) fn descending_path(errors: &mut Errors, path: &str, value: &str) {
    if value.starts_with('/') {
        errors.push(Error::invalid(path, value, "must be a relative path"));
    }
    if value.split('/').any(|part| part == "..") {
        errors.push(Error::invalid(path, value, "must not contain '..'"));
    }
}

fn security(errors: &mut Errors, path: &str, context: &Value) {
    for field in ["runAsUser", "runAsGroup"] {
        if let Some(id) = int(context, field).filter(|id| !(0..=i64::from(i32::MAX)).contains(id)) {
            errors.push(Error::invalid(
                child(path, field),
                id,
                "must be between 0 and 2147483647, inclusive",
            ));
        }
    }
    one_of(errors, context, path, "procMount", &["Default", "Unmasked"]);
    if context["allowPrivilegeEscalation"] == false {
        let field = child(path, "allowPrivilegeEscalation");
        if flag(context, "privileged") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true";
            errors.push(Error::invalid(&*field, false, why));
        }
        if items(context, "capabilities.add").iter().any(|c| c == "CAP_SYS_ADMIN") {
            let why = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN";
            errors.push(Error::invalid(&*field, false, why));
        }
    }
    profile(errors, &child(path, "seccompProfile"), at(context, "seccompProfile"));
    profile(errors, &child(path, "appArmorProfile"), at(context, "appArmorProfile"));
}

/// A seccomp or AppArmor profile.
pub(super) fn profile(errors: &mut Errors, path: &str, profile: &Value) {
    if profile.is_null() {
        return;
    }
    let kind = text(profile, "type");
    match kind {
        "" => errors.push(Error::required(child(path, "type"), "type is required when profile is set")),
        "Localhost" if text(profile, "localhostProfile").is_empty() => {
            let why = "must be set when profile type is Localhost";
            errors.push(Error::required(child(path, "localhostProfile"), why));
        }
        "Localhost" => {}
        "RuntimeDefault" | "Unconfined" => {
            if has(profile, "localhostProfile") {
                let why = "can only be set when profile type is Localhost";
                errors.push(Error::invalid(
                    child(path, "localhostProfile"),
                    at(profile, "localhostProfile").clone(),
                    why,
                ));
            }
        }
        _ => one_of(errors, profile, path, "type", &["Localhost", "RuntimeDefault", "Unconfined"]),
    }
}

fn handler(errors: &mut Errors, path: &str, handler: &Value) {
    let given: Vec<&str> =
        ["exec", "httpGet", "tcpSocket", "grpc", "sleep"].into_iter().filter(|k| has(handler, k)).collect();
    for (i, kind) in given.iter().enumerate() {
        let path = child(path, kind);
        if i > 0 {
            errors.push(Error::forbidden(path, "may not specify more than 1 handler type"));
            continue;
        }
        let action = at(handler, kind);
        match *kind {
            "exec" if items(action, "command").is_empty() => {
                errors.push(Error::required(child(&path, "command"), ""))
            }
            "httpGet" => {
                rules::required(errors, action, &path, "path");
                port_or_name(errors, &child(&path, "port"), at(action, "port"));
                one_of(errors, action, &path, "scheme", &["HTTP", "HTTPS"]);
                for header in items(action, "httpHeaders") {
                    let name = text(header, "name");
                    if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
                        let why = "a valid HTTP header must consist of alphanumeric characters or '-' \
                                   (e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')";
                        errors.push(Error::invalid(child(&path, "httpHeaders"), name, why));
                    }
                }
            }
            "tcpSocket" => port_or_name(errors, &child(&path, "port"), at(action, "port")),
            "grpc" => port(errors, &child(&path, "port"), int(action, "port").unwrap_or_default()),
            _ => {}
        }
    }
    if given.is_empty() {
        errors.push(Error::required(path, "must specify a handler type"));
    }
}

fn lifecycle(errors: &mut Errors, path: &str, container: &Value) {
    for hook in ["postStart", "preStop"] {
        let value = at(container, &format!("lifecycle.{hook}"));
        if !value.is_null() {
            handler(errors, &format!("{path}.lifecycle.{hook}"), value);
        }
    }
}

fn probes(errors: &mut Errors, path: &str, container: &Value) {
    for kind in ["livenessProbe", "readinessProbe", "startupProbe"] {
        let probe = at(container, kind);
        if probe.is_null() {
            continue;
        }
        let path = child(path, kind);
        handler(errors, &path, probe);
        for field in
            ["initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold"]
        {
            non_negative(errors, probe, &path, field);
        }
        if let Some(grace) = int(probe, "terminationGracePeriodSeconds") {
            let field = child(&path, "terminationGracePeriodSeconds");
            if kind == "readinessProbe" {
                let why = "must not be set for readinessProbes";
                errors.push(Error::invalid(field, grace, why));
            } else if grace <= 0 {
                errors.push(Error::invalid(field, grace, "must be greater than 0"));
            }
        }
        let threshold = int(probe, "successThreshold").unwrap_or(1);
        if kind != "readinessProbe" && threshold != 1 {
            errors.push(Error::invalid(field::child(&path, "successThreshold"), threshold, "must be 1"));
        }
    }
}
