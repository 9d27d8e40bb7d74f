//! Five CRDs of our own, in the shape of what operators for certificates, workflows, deliveries, routes and monitoring
//! bring: several versions, deep nesting, whole pod templates, unions by `oneOf`, and rules in CEL on lists.

use serde_json::{Map, Value, json};

use crate::pods::{core, map, string};

/// A CRD with the `spec` of a valid object, and of invalid ones with what the refusal says.
pub struct Shape {
    pub crd: Value,
    pub valid: Value,
    pub invalid: Vec<(Value, &'static str)>,
}

fn object(properties: Value, required: &[&str]) -> Value {
    let mut out = json!({"type": "object", "properties": properties});
    if !required.is_empty() {
        out["required"] = json!(required);
    }
    out
}

fn list(of: Value) -> Value {
    json!({"type": "array", "items": of})
}

fn keyed(of: Value, key: &str) -> Value {
    json!({"type": "array", "items": of, "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]})
}

fn one_of(values: &[&str]) -> Value {
    json!({"type": "string", "enum": values})
}

fn duration() -> Value {
    json!({"type": "string", "pattern": "^([0-9]+(\\.[0-9]+)?(ms|s|m|h))+$", "maxLength": 32})
}

fn anything() -> Value {
    json!({"x-kubernetes-preserve-unknown-fields": true})
}

fn int(least: i64, most: i64) -> Value {
    json!({"type": "integer", "format": "int32", "minimum": least, "maximum": most})
}

fn secret_key() -> Value {
    let mut key = object(
        json!({"name": {"type": "string", "default": ""}, "key": string(), "optional": {"type": "boolean"}}),
        &["key"],
    );
    key["x-kubernetes-map-type"] = "atomic".into();
    key
}

fn conditions() -> Value {
    let condition = object(
        json!({
            "type": {"type": "string", "maxLength": 316, "pattern": "^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"},
            "status": one_of(&["True", "False", "Unknown"]), "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
            "message": {"type": "string", "maxLength": 32768}, "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        }),
        &["type", "status", "lastTransitionTime", "reason", "message"],
    );
    object(
        json!({"conditions": keyed(condition, "type"), "observedGeneration": {"type": "integer", "format": "int64"}}),
        &[],
    )
}

fn rules(mut schema: Value, all: &[(&str, &str)]) -> Value {
    let rules: Vec<Value> =
        all.iter().map(|(rule, message)| json!({"rule": rule, "message": message})).collect();
    schema["x-kubernetes-validations"] = rules.into();
    schema
}

fn columns(all: &[(&str, &str, &str)]) -> Value {
    let columns = all.iter().map(|(name, kind, path)| json!({"name": name, "type": kind, "jsonPath": path}));
    columns.collect::<Vec<_>>().into()
}

fn version(name: &str, spec: &Value, status: &Value, more: Value) -> Value {
    let mut out = json!({
        "name": name, "served": true, "storage": false, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": object(json!({
            "apiVersion": string(), "kind": string(), "metadata": {"type": "object"}, "spec": spec, "status": status,
        }), &["spec"])},
    });
    out.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
    out
}

fn crd(group: &str, plural: &str, kind: &str, versions: Vec<Value>) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "versions": versions,
            "names": {"plural": plural, "singular": kind.to_lowercase(), "kind": kind, "listKind": format!("{kind}List"),
                "categories": ["large"]}},
    })
}

fn with(base: &Value, path: &str, value: Value) -> Value {
    let mut out = base.clone();
    let mut at = &mut out;
    for part in path.split('.') {
        at = match part.parse::<usize>() {
            Ok(i) if at.is_array() => &mut at[i],
            _ => &mut at[part],
        };
    }
    *at = value;
    out
}

/// As Prometheus Operator's: containers and volumes of pods written out, remote writes, a scale subresource.
pub fn monitoring() -> Shape {
    let relabel = object(
        json!({
            "action": {"type": "string", "default": "replace", "enum": ["replace", "keep", "drop", "hashmod", "labelmap", "labeldrop"]},
            "regex": string(), "replacement": string(), "separator": string(), "targetLabel": string(),
            "modulus": {"type": "integer", "format": "int64"},
            "sourceLabels": list(json!({"type": "string", "pattern": "^[a-zA-Z_][a-zA-Z0-9_]*$"})),
        }),
        &[],
    );
    let basic = object(json!({"username": secret_key(), "password": secret_key()}), &[]);
    let oauth = object(
        json!({"clientId": secret_key(), "clientSecret": secret_key(), "scopes": list(string()),
            "tokenUrl": {"type": "string", "minLength": 1}, "endpointParams": map(string())}),
        &["clientId", "clientSecret", "tokenUrl"],
    );
    let remote = rules(
        object(
            json!({
                "url": {"type": "string", "minLength": 1, "maxLength": 2048}, "name": {"type": "string", "maxLength": 128}, "remoteTimeout": duration(),
                "headers": map(string()), "basicAuth": basic, "oauth2": oauth, "bearerTokenFile": string(),
                "writeRelabelConfigs": {"type": "array", "items": relabel, "maxItems": 50},
                "queueConfig": object(json!({"capacity": int(0, 1_000_000), "minShards": int(0, 1000), "maxShards": int(0, 1000),
                    "batchSendDeadline": duration(), "retryOnRateLimit": {"type": "boolean"}}), &[]),
            }),
            &["url"],
        ),
        &[
            ("!(has(self.basicAuth) && has(self.oauth2))", "basicAuth and oauth2 exclude each other"),
            (
                "!has(self.queueConfig) || !has(self.queueConfig.minShards) || !has(self.queueConfig.maxShards) || self.queueConfig.minShards <= self.queueConfig.maxShards",
                "minShards is more than maxShards",
            ),
        ],
    );
    let endpoints = object(
        json!({"alertmanagers": list(object(json!({
        "name": string(), "namespace": string(), "pathPrefix": string(), "scheme": one_of(&["http", "https"]),
        "port": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
        "relabelings": list(relabel.clone()), "timeout": duration(),
    }), &["name", "port"]))}),
        &["alertmanagers"],
    );
    let spec = |more: Value| {
        let mut properties = json!({
            "replicas": int(0, 1000), "shards": int(1, 1000), "version": string(), "retention": duration(),
            "containers": keyed(core("Container"), "name"), "initContainers": keyed(core("Container"), "name"),
            "volumes": keyed(core("Volume"), "name"), "affinity": core("Affinity"),
            "tolerations": list(core("Toleration")), "resources": core("ResourceRequirements"),
            "securityContext": core("PodSecurityContext"), "topologySpreadConstraints": list(core("TopologySpreadConstraint")),
            "storage": object(json!({"volumeClaimTemplate": object(json!({"metadata": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
                "spec": core("PersistentVolumeClaimSpec")}), &[])}), &[]),
            "alerting": endpoints, "externalLabels": map(string()),
            "remoteWrite": rules(json!({"type": "array", "items": remote, "maxItems": 64}), &[
                ("self.all(r, !has(r.name) || self.filter(x, has(x.name) && x.name == r.name).size() == 1)", "names must differ"),
            ]),
        });
        properties.as_object_mut().unwrap().extend(more.as_object().cloned().unwrap_or_default());
        object(properties, &[])
    };
    let status = {
        let mut status = conditions();
        for name in ["replicas", "availableReplicas"] {
            status["properties"][name] = json!({"type": "integer", "format": "int32"});
        }
        status["properties"]["selector"] = string();
        status
    };
    let scale = json!({"subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.replicas",
        "statusReplicasPath": ".status.replicas", "labelSelectorPath": ".status.selector"}}});
    let mut stored = scale.clone();
    stored["storage"] = true.into();
    stored["additionalPrinterColumns"] = columns(&[
        ("Version", "string", ".spec.version"),
        ("Desired", "integer", ".spec.replicas"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]);
    let valid = json!({
        "replicas": 2, "shards": 1, "version": "v3.0.0", "retention": "15d".replace('d', "h"),
        "containers": [{"name": "config", "image": "x", "ports": [{"containerPort": 80}], "resources": {"requests": {"cpu": "100m", "memory": 1}}}],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "remoteWrite": [{"url": "https://a", "name": "a", "writeRelabelConfigs": [{"sourceLabels": ["job"]}]},
            {"url": "https://b", "name": "b", "queueConfig": {"minShards": 1, "maxShards": 2}}],
        "alerting": {"alertmanagers": [{"name": "main", "port": "web"}, {"name": "other", "port": 9093}]},
    });
    Shape {
        crd: crd(
            "monitoring.large.example.com",
            "monitors",
            "Monitor",
            vec![
                version("v1", &spec(json!({})), &status, stored),
                version(
                    "v1alpha1",
                    &spec(json!({"mode": one_of(&["StatefulSet", "DaemonSet"])})),
                    &status,
                    scale,
                ),
            ],
        ),
        invalid: vec![
            (with(&valid, "replicas", json!(-1)), "spec.replicas"),
            (with(&valid, "retention", json!("soon")), "spec.retention"),
            (with(&valid, "remoteWrite.1.name", json!("a")), "names must differ"),
            (
                with(&valid, "remoteWrite.1.queueConfig.minShards", json!(3)),
                "minShards is more than maxShards",
            ),
            (
                with(&valid, "containers.0.resources.requests.cpu", json!("much")),
                "spec.containers[0].resources.requests.cpu",
            ),
            (with(&valid, "volumes", json!([{"name": "a"}, {"name": "a"}])), "Duplicate value"),
        ],
        valid,
    }
}

/// As cert-manager's: four versions of which one is no longer served, issuers with solvers that carry pod templates.
pub fn certificates() -> Shape {
    let reference = object(
        json!({"name": {"type": "string", "minLength": 1}, "kind": string(), "group": string()}),
        &["name"],
    );
    let solver = object(
        json!({
            "selector": object(json!({"matchLabels": map(string()), "dnsNames": list(string()), "dnsZones": list(string())}), &[]),
            "http01": object(json!({"ingress": object(json!({
                "ingressClassName": string(), "serviceType": string(),
                "podTemplate": object(json!({
                    "metadata": object(json!({"labels": map(string()), "annotations": map(string())}), &[]),
                    "spec": object(json!({"affinity": core("Affinity"), "nodeSelector": map(string()), "serviceAccountName": string(),
                        "tolerations": list(core("Toleration")), "securityContext": core("PodSecurityContext"),
                        "imagePullSecrets": keyed(core("LocalObjectReference"), "name")}), &[]),
                }), &[]),
            }), &[])}), &[]),
            "dns01": object(json!({
                "cnameStrategy": one_of(&["None", "Follow"]),
                "webhook": object(json!({"groupName": string(), "solverName": string(), "config": anything()}), &["groupName", "solverName"]),
                "rfc2136": object(json!({"nameserver": string(), "tsigAlgorithm": string(), "tsigSecretSecretRef": secret_key()}), &["nameserver"]),
            }), &[]),
        }),
        &[],
    );
    let solver = with(&solver, "oneOf", json!([{"required": ["http01"]}, {"required": ["dns01"]}]));
    let mut key = secret_key();
    key["properties"].as_object_mut().unwrap().remove("optional");
    // Keys of list maps must be there.
    let mut solver = solver;
    let secrets = &mut solver["properties"]["http01"]["properties"]["ingress"]["properties"]["podTemplate"]["properties"]
        ["spec"]["properties"]["imagePullSecrets"];
    secrets["items"]["required"] = json!(["name"]);
    let spec = |uri_names: &str| {
        let mut properties = Map::new();
        for (name, of) in [
            ("secretName", json!({"type": "string", "minLength": 1})),
            ("duration", duration()),
            ("renewBefore", duration()),
            ("commonName", json!({"type": "string", "maxLength": 64})),
            (
                "dnsNames",
                json!({"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 253}, "x-kubernetes-list-type": "set"}),
            ),
            (
                uri_names,
                json!({"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 1024}}),
            ),
            ("issuerRef", reference.clone()),
            ("isCA", json!({"type": "boolean"})),
            ("literalSubject", json!({"type": "string", "maxLength": 1024})),
            ("subject", object(json!({"organizations": list(string()), "countries": list(string())}), &[])),
            (
                "usages",
                json!({"type": "array", "items": one_of(&["signing", "server auth", "client auth", "code signing"])}),
            ),
            (
                "privateKey",
                object(
                    json!({"algorithm": one_of(&["RSA", "ECDSA", "Ed25519"]), "size": int(0, 8192),
                "encoding": one_of(&["PKCS1", "PKCS8"]), "rotationPolicy": {"type": "string", "enum": ["Never", "Always"], "default": "Always"}}),
                    &[],
                ),
            ),
            (
                "keystores",
                object(
                    json!({"jks": object(json!({"create": {"type": "boolean"}, "passwordSecretRef": key.clone()}), &["create"])}),
                    &[],
                ),
            ),
            (
                "acme",
                object(
                    json!({"server": string(), "email": string(), "solvers": json!({"type": "array", "maxItems": 20, "items": solver.clone()})}),
                    &[],
                ),
            ),
        ] {
            properties.insert(name.into(), of);
        }
        rules(
            object(properties.into(), &["secretName", "issuerRef"]),
            &[
                (
                    "!(has(self.literalSubject) && (has(self.subject) || has(self.commonName)))",
                    "literalSubject excludes subject and commonName",
                ),
                (
                    "!has(self.privateKey) || !has(self.privateKey.algorithm) || self.privateKey.algorithm != 'Ed25519' || !has(self.privateKey.size)",
                    "Ed25519 has no size",
                ),
                (
                    "has(self.commonName) || has(self.literalSubject) || (has(self.dnsNames) && self.dnsNames.exists(n, n.size() > 0))",
                    "a certificate needs a name",
                ),
            ],
        )
    };
    let status = conditions();
    let old = |warning: &str| json!({"deprecated": true, "deprecationWarning": warning});
    let shown = columns(&[
        ("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
        ("Secret", "string", ".spec.secretName"),
        ("Issuer", "string", ".spec.issuerRef.name"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]);
    let valid = json!({
        "secretName": "web-tls", "duration": "2160h", "commonName": "example.com", "dnsNames": ["example.com", "www.example.com"],
        "issuerRef": {"name": "acme", "kind": "Issuer"}, "privateKey": {"algorithm": "ECDSA", "size": 256}, "usages": ["server auth"],
        "acme": {"server": "https://acme", "solvers": [
            {"http01": {"ingress": {"podTemplate": {"spec": {"tolerations": [{"operator": "Exists"}], "imagePullSecrets": [{"name": "a"}]}}}}},
            {"dns01": {"webhook": {"groupName": "g", "solverName": "s", "config": {"deep": [{"down": true}]}}}},
        ]},
    });
    Shape {
        crd: crd(
            "certificates.large.example.com",
            "certificates",
            "Certificate",
            vec![
                version(
                    "v1",
                    &spec("uris"),
                    &status,
                    json!({"storage": true, "additionalPrinterColumns": shown}),
                ),
                version(
                    "v1beta1",
                    &spec("uris"),
                    &status,
                    old("certificates.large.example.com/v1beta1 Certificate is deprecated; use v1"),
                ),
                version("v1alpha3", &spec("uriSANs"), &status, json!({"deprecated": true})),
                version("v1alpha2", &spec("uriSANs"), &status, json!({"served": false})),
            ],
        ),
        invalid: vec![
            (with(&valid, "literalSubject", json!("CN=x")), "literalSubject excludes subject and commonName"),
            (with(&valid, "privateKey.algorithm", json!("Ed25519")), "Ed25519 has no size"),
            (with(&valid, "dnsNames", json!(["a", "a"])), "spec.dnsNames[1]: Duplicate value"),
            (with(&valid, "issuerRef", json!({})), "spec.issuerRef.name: Required value"),
            (
                with(&valid, "acme.solvers.0.dns01", json!({})),
                "must validate one and only one schema (oneOf)",
            ),
            (with(&valid, "usages.0", json!("everything")), "spec.usages[0]: Unsupported value"),
        ],
        valid,
    }
}

/// As Argo Workflows': templates with whole containers, steps in lists of lists, parameters of any type.
pub fn workflows() -> Shape {
    let parameter = object(
        json!({"name": {"type": "string", "maxLength": 63}, "value": anything(), "default": anything(),
        "enum": list(string()), "valueFrom": object(json!({"path": string(), "expression": string(), "supplied": {"type": "object"}}), &[])}),
        &["name"],
    );
    let artifact = object(
        json!({"name": string(), "path": string(), "mode": int(0, 511), "archive": object(json!({"none": {"type": "object"}, "tar": object(json!({"compressionLevel": int(0, 9)}), &[])}), &[]),
            "s3": object(json!({"bucket": string(), "key": string(), "accessKeySecret": secret_key(), "secretKeySecret": secret_key()}), &[]),
            "git": object(json!({"repo": string(), "revision": string(), "depth": {"type": "integer", "format": "int64"}, "sshPrivateKeySecret": secret_key()}), &["repo"])}),
        &["name"],
    );
    let arguments = object(
        json!({"parameters": {"type": "array", "items": parameter, "maxItems": 100}, "artifacts": list(artifact)}),
        &[],
    );
    let step = object(
        json!({"name": string(), "template": string(), "when": string(), "arguments": arguments, "withItems": list(anything()),
            "continueOn": object(json!({"error": {"type": "boolean"}, "failed": {"type": "boolean"}}), &[])}),
        &["name"],
    );
    let template = rules(
        object(
            json!({
                "name": {"type": "string", "maxLength": 128}, "inputs": arguments, "outputs": arguments,
                "container": core("Container"), "script": core("Container"), "sidecars": list(core("Container")), "volumes": list(core("Volume")),
                "steps": {"type": "array", "maxItems": 100, "items": {"type": "array", "maxItems": 100, "items": step}},
                "dag": object(json!({"failFast": {"type": "boolean"}, "tasks": list(step.clone())}), &["tasks"]),
                "resource": object(json!({"action": one_of(&["get", "create", "apply", "delete"]), "manifest": string()}), &["action"]),
                "retryStrategy": object(json!({"limit": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true},
                    "backoff": object(json!({"duration": string(), "factor": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": true}}), &[])}), &[]),
                "affinity": core("Affinity"), "tolerations": list(core("Toleration")),
            }),
            &["name"],
        ),
        &[(
            "[has(self.container), has(self.script), has(self.steps), has(self.dag), has(self.resource)].filter(x, x).size() <= 1",
            "a template is of one type",
        )],
    );
    let spec = rules(
        object(
            json!({
                "entrypoint": string(), "arguments": arguments, "serviceAccountName": string(), "parallelism": {"type": "integer", "format": "int64"},
                "templates": {"type": "array", "maxItems": 200, "items": template},
                "volumeClaimTemplates": list(json!({"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true})),
                "podSpecPatch": string(), "ttlStrategy": object(json!({"secondsAfterCompletion": int(0, 1_000_000)}), &[]),
            }),
            &["entrypoint"],
        ),
        &[(
            "!has(self.templates) || self.templates.exists(t, t.name == self.entrypoint)",
            "the entrypoint must be a template",
        )],
    );
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let valid = json!({
        "entrypoint": "main",
        "arguments": {"parameters": [{"name": "n", "value": 3}, {"name": "o", "value": {"any": ["thing"]}}]},
        "templates": [
            {"name": "main", "steps": [[{"name": "a", "template": "say", "withItems": [1, "x", {"y": true}]}], [{"name": "b", "template": "say"}]]},
            {"name": "say", "container": {"name": "main", "image": "x", "command": ["echo"], "env": [{"name": "A", "value": "b"}],
                "readinessProbe": {"httpGet": {"port": "http"}}}, "retryStrategy": {"limit": "3"}},
        ],
        "volumeClaimTemplates": [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "work"}, "spec": {"accessModes": ["ReadWriteOnce"]}}],
    });
    let shown =
        columns(&[("Status", "string", ".status.phase"), ("Age", "date", ".metadata.creationTimestamp")]);
    Shape {
        crd: crd(
            "workflows.large.example.com",
            "workflows",
            "Workflow",
            vec![
                version(
                    "v1alpha1",
                    &spec,
                    &status,
                    json!({"storage": true, "additionalPrinterColumns": shown}),
                ),
                version("v1", &spec, &status, json!({})),
            ],
        ),
        invalid: vec![
            (with(&valid, "entrypoint", json!("nothing")), "the entrypoint must be a template"),
            (with(&valid, "templates.1.dag", json!({"tasks": []})), "a template is of one type"),
            (with(&valid, "templates.0.steps.0.0", json!("a")), "spec.templates[0].steps[0][0]"),
            (
                with(&valid, "templates.1.container.ports", json!([{"containerPort": "http"}])),
                "spec.templates[1].container.ports[0].containerPort",
            ),
            (
                with(&valid, "volumeClaimTemplates.0.kind", json!("")),
                "spec.volumeClaimTemplates[0].kind: Invalid value: \"\": must not be empty",
            ),
        ],
        valid,
    }
}

/// As Flux's: three versions, two of them deprecated, values of any shape, rules that exclude one another.
pub fn releases() -> Shape {
    let source = object(
        json!({"kind": one_of(&["HelmRepository", "GitRepository", "Bucket"]), "name": {"type": "string", "minLength": 1, "maxLength": 253},
        "namespace": {"type": "string", "minLength": 1, "maxLength": 63}}),
        &["name"],
    );
    let selector = object(
        json!({"group": string(), "version": string(), "kind": string(), "name": string(), "labelSelector": string()}),
        &[],
    );
    let kustomize = object(
        json!({
            "patches": list(object(json!({"patch": string(), "target": selector}), &["patch"])),
            "images": list(object(json!({"name": string(), "newName": string(), "newTag": string(), "digest": string()}), &["name"])),
        }),
        &[],
    );
    let remediation = object(
        json!({"retries": {"type": "integer"}, "ignoreTestFailures": {"type": "boolean"}, "remediateLastFailure": {"type": "boolean"},
        "strategy": one_of(&["rollback", "uninstall"])}),
        &[],
    );
    let action = object(
        json!({"timeout": duration(), "remediation": remediation, "disableWait": {"type": "boolean"}, "disableHooks": {"type": "boolean"},
        "crds": one_of(&["Skip", "Create", "CreateReplace"]), "cleanupOnFail": {"type": "boolean"}, "force": {"type": "boolean"}}),
        &[],
    );
    let drift = object(
        json!({"mode": {"type": "string", "enum": ["enabled", "warn", "disabled"]},
        "ignore": list(object(json!({"paths": list(string()), "target": selector}), &["paths"]))}),
        &[],
    );
    let spec = |three: bool| {
        let mut properties = json!({
            "interval": duration(), "timeout": duration(), "releaseName": {"type": "string", "minLength": 1, "maxLength": 53},
            "targetNamespace": {"type": "string", "minLength": 1, "maxLength": 63}, "suspend": {"type": "boolean"}, "maxHistory": {"type": "integer"},
            "chart": object(json!({"metadata": object(json!({"labels": map(string()), "annotations": map(string())}), &[]),
                "spec": object(json!({"chart": {"type": "string", "minLength": 1, "maxLength": 2048}, "version": {"type": "string", "default": "*"}, "interval": duration(),
                    "reconcileStrategy": {"type": "string", "enum": ["ChartVersion", "Revision"], "default": "ChartVersion"}, "sourceRef": source,
                    "valuesFiles": list(string()), "verify": object(json!({"provider": {"type": "string", "enum": ["cosign", "notation"], "default": "cosign"},
                        "secretRef": object(json!({"name": string()}), &["name"])}), &["provider"])}), &["chart", "sourceRef"])}), &["spec"]),
            "dependsOn": list(object(json!({"name": string(), "namespace": string()}), &["name"])),
            "valuesFrom": {"type": "array", "maxItems": 64, "items": object(json!({"kind": one_of(&["Secret", "ConfigMap"]), "name": {"type": "string", "minLength": 1, "maxLength": 253},
                "valuesKey": {"type": "string", "pattern": "^[\\-._a-zA-Z0-9]+$", "maxLength": 253}, "optional": {"type": "boolean"}}), &["kind", "name"])},
            "values": anything(), "install": action, "upgrade": action, "rollback": action, "uninstall": action, "test": action,
            "postRenderers": list(object(json!({"kustomize": kustomize}), &[])), "driftDetection": drift, "affinity": core("Affinity"),
            "kubeConfig": object(json!({"secretRef": object(json!({"name": string(), "key": string()}), &["name"])}), &["secretRef"]),
        });
        if three {
            properties["chartRef"] = object(
                json!({"kind": one_of(&["OCIRepository", "HelmChart"]), "name": {"type": "string", "minLength": 1, "maxLength": 253}}),
                &["kind", "name"],
            );
        }
        let spec = object(properties, &["interval"]);
        if !three {
            return spec;
        }
        rules(
            spec,
            &[
                (
                    "(has(self.chart) && !has(self.chartRef)) || (!has(self.chart) && has(self.chartRef))",
                    "either chart or chartRef must be set",
                ),
                (
                    "!has(self.valuesFrom) || self.valuesFrom.all(v, v.kind != 'Secret' || v.name.startsWith('helm-'))",
                    "secrets with values are named helm-",
                ),
            ],
        )
    };
    let mut status = conditions();
    status["properties"]["history"] = list(object(
        json!({"chartName": string(), "chartVersion": string(), "digest": string(), "status": string(),
        "version": {"type": "integer"}, "testHooks": map(object(json!({"phase": string(), "lastStarted": {"type": "string", "format": "date-time"}}), &[]))}),
        &["chartName"],
    ));
    let valid = json!({
        "interval": "5m", "chart": {"spec": {"chart": "podinfo", "sourceRef": {"kind": "HelmRepository", "name": "podinfo"}}},
        "values": {"replicas": 2, "ingress": {"hosts": [{"host": "a", "paths": ["/"]}]}, "none": false},
        "valuesFrom": [{"kind": "ConfigMap", "name": "a"}, {"kind": "Secret", "name": "helm-a", "valuesKey": "values.yaml"}],
        "install": {"remediation": {"retries": 3}}, "driftDetection": {"mode": "warn", "ignore": [{"paths": ["/spec/replicas"]}]},
    });
    let shown = columns(&[
        ("Age", "date", ".metadata.creationTimestamp"),
        ("Ready", "string", ".status.conditions[?(@.type==\"Ready\")].status"),
        ("Status", "string", ".status.conditions[?(@.type==\"Ready\")].message"),
    ]);
    let old = |name: &str| json!({"deprecated": true, "deprecationWarning": format!("{name} Release is deprecated, upgrade to v2"), "additionalPrinterColumns": shown});
    Shape {
        crd: crd(
            "delivery.large.example.com",
            "releases",
            "Release",
            vec![
                version(
                    "v2",
                    &spec(true),
                    &status,
                    json!({"storage": true, "additionalPrinterColumns": shown}),
                ),
                version("v2beta2", &spec(true), &status, old("v2beta2")),
                version("v2beta1", &spec(false), &status, old("v2beta1")),
            ],
        ),
        invalid: vec![
            (
                with(&valid, "chartRef", json!({"kind": "HelmChart", "name": "a"})),
                "either chart or chartRef must be set",
            ),
            (with(&valid, "valuesFrom.1.name", json!("a")), "secrets with values are named helm-"),
            (with(&valid, "interval", json!("often")), "spec.interval"),
            (
                with(&valid, "chart.spec.sourceRef.kind", json!("Ftp")),
                "spec.chart.spec.sourceRef.kind: Unsupported value",
            ),
        ],
        valid,
    }
}

/// As Istio's: three versions that are the same, matches that are one of several forms, durations judged in CEL.
pub fn routes() -> Shape {
    let exclusive = |forms: &[&str]| {
        let required: Vec<Value> = forms.iter().map(|f| json!({"required": [f]})).collect();
        let mut all = vec![json!({"not": {"anyOf": required}})];
        all.extend(required);
        all
    };
    let form = with(
        &object(json!({"exact": string(), "prefix": string(), "regex": string()}), &[]),
        "oneOf",
        exclusive(&["exact", "prefix", "regex"]).into(),
    );
    let time = rules(
        json!({"type": "string", "maxLength": 32}),
        &[("duration(self) >= duration('1ms')", "must be a duration of 1 ms at least")],
    );
    let destination = object(
        json!({"host": {"type": "string", "maxLength": 253}, "subset": string(), "port": object(json!({"number": {"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u64}}), &[])}),
        &["host"],
    );
    let change = object(json!({"add": map(string()), "set": map(string()), "remove": list(string())}), &[]);
    let headers = object(json!({"request": change, "response": change}), &[]);
    let weighted = object(
        json!({"destination": destination, "weight": {"type": "integer", "format": "int32", "minimum": 0}, "headers": headers}),
        &["destination"],
    );
    let percent =
        object(json!({"value": {"type": "number", "format": "double", "minimum": 0, "maximum": 100}}), &[]);
    let abort = with(
        &object(
            json!({"httpStatus": {"type": "integer", "format": "int32"}, "grpcStatus": string(), "percentage": percent}),
            &[],
        ),
        "oneOf",
        exclusive(&["httpStatus", "grpcStatus"]).into(),
    );
    let delay = with(
        &object(json!({"fixedDelay": time, "exponentialDelay": time, "percentage": percent}), &[]),
        "oneOf",
        exclusive(&["fixedDelay", "exponentialDelay"]).into(),
    );
    let matched = object(
        json!({"name": string(), "uri": form, "scheme": form, "method": form, "authority": form, "headers": map(form.clone()), "withoutHeaders": map(form.clone()),
            "queryParams": map(form.clone()), "port": {"type": "integer", "minimum": 0, "maximum": 4_294_967_295_u64}, "sourceLabels": map(string()),
            "gateways": list(string()), "ignoreUriCase": {"type": "boolean"}, "statPrefix": string()}),
        &[],
    );
    let http = object(
        json!({
            "name": {"type": "string", "maxLength": 128}, "match": {"type": "array", "maxItems": 50, "items": matched},
            "route": rules(json!({"type": "array", "maxItems": 50, "items": weighted}), &[
                ("self.size() < 2 || self.map(r, has(r.weight) ? r.weight : 0).sum() == 100", "weights must add up to 100"),
            ]),
            "redirect": object(json!({"uri": string(), "authority": string(), "redirectCode": {"type": "integer"}, "scheme": string()}), &[]),
            "delegate": object(json!({"name": string(), "namespace": string()}), &[]), "rewrite": object(json!({"uri": string(), "authority": string()}), &[]),
            "timeout": time, "retries": object(json!({"attempts": {"type": "integer", "format": "int32"}, "perTryTimeout": time, "retryOn": string(), "retryRemoteLocalities": {"type": "boolean", "nullable": true}}), &[]),
            "fault": object(json!({"abort": abort, "delay": delay}), &[]), "mirror": destination, "mirrorPercentage": percent,
            "mirrors": list(object(json!({"destination": destination, "percentage": percent}), &["destination"])),
            "corsPolicy": object(json!({"allowOrigins": list(form), "allowMethods": list(string()), "allowHeaders": list(string()), "exposeHeaders": list(string()),
                "maxAge": time, "allowCredentials": {"type": "boolean", "nullable": true}}), &[]),
            "headers": headers,
        }),
        &[],
    );
    let tls = object(
        json!({"match": list(object(json!({"sniHosts": list(string()), "destinationSubnets": list(string()), "port": {"type": "integer"},
        "sourceLabels": map(string()), "gateways": list(string())}), &["sniHosts"])), "route": list(weighted.clone())}),
        &["match"],
    );
    let tcp = object(
        json!({"match": list(object(json!({"destinationSubnets": list(string()), "port": {"type": "integer"}}), &[])), "route": list(weighted.clone())}),
        &[],
    );
    let spec = object(
        json!({"hosts": {"type": "array", "maxItems": 100, "items": {"type": "string", "maxLength": 253}}, "gateways": list(string()), "exportTo": list(string()),
            "http": {"type": "array", "maxItems": 50, "items": http}, "tls": list(tls), "tcp": list(tcp)}),
        &[],
    );
    let status = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    let valid = json!({
        "hosts": ["reviews"],
        "http": [{
            "match": [{"uri": {"prefix": "/a"}, "headers": {"x": {"exact": "y"}}}, {"uri": {}}],
            "route": [{"destination": {"host": "a", "port": {"number": 80}}, "weight": 25}, {"destination": {"host": "b"}, "weight": 75}],
            "timeout": "1.5s", "fault": {"delay": {"fixedDelay": "10ms", "percentage": {"value": 0.1}}},
        }],
        "tls": [{"match": [{"sniHosts": ["a"]}], "route": [{"destination": {"host": "a"}}]}],
    });
    let shown = columns(&[
        ("Gateways", "string", ".spec.gateways"),
        ("Hosts", "string", ".spec.hosts"),
        ("Age", "date", ".metadata.creationTimestamp"),
    ]);
    let more = |storage: bool| json!({"storage": storage, "additionalPrinterColumns": shown});
    Shape {
        crd: crd(
            "routes.large.example.com",
            "routes",
            "Route",
            vec![
                version("v1alpha3", &spec, &status, more(false)),
                version("v1beta1", &spec, &status, more(false)),
                version("v1", &spec, &status, more(true)),
            ],
        ),
        invalid: vec![
            (
                with(&valid, "http.0.match.0.uri.exact", json!("/b")),
                "must validate one and only one schema (oneOf)",
            ),
            (with(&valid, "http.0.route.0.weight", json!(50)), "weights must add up to 100"),
            (with(&valid, "http.0.timeout", json!("1us")), "must be a duration of 1 ms at least"),
            (
                with(&valid, "http.0.fault.delay.percentage.value", json!(101)),
                "should be less than or equal to 100",
            ),
            (with(&valid, "http.0.route.0.destination", json!({})), "destination.host: Required value"),
        ],
        valid,
    }
}
