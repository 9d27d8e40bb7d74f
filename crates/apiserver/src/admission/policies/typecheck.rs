//! Types of a ValidatingAdmissionPolicy's expressions, checked against the kinds that it is for: warnings in its status.
//!
//! In the reference a controller does it; here a task of the server, for only it has the schemas. A warning changes
//! nothing about what the policy does. Invariant: `status.observedGeneration` is that of the expressions that were
//! checked.

use std::collections::BTreeSet;
use std::sync::{Arc, Weak};
use std::time::Duration;

use homeostat_access::User;
use homeostat_model::GroupVersion;
use homeostat_resources::{Resource, Version};
use homeostat_schema::Schema;
use homeostat_schema::cel::check::Environment;
use homeostat_schema::managed;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::object;
use crate::read;
use crate::registry::Table;
use crate::server::Server;
use crate::write::{Proposal, Writing};

const GROUP: &str = "admissionregistration.k8s.io";
const PLURAL: &str = "validatingadmissionpolicies";
const COLLECTION: &str = "validatingadmissionpolicies.admissionregistration.k8s.io";
const MANAGER: &str = "validatingadmissionpolicy-status";
/// Pause after a log that could not be followed.
const RETRY: Duration = Duration::from_millis(100);
/// Kinds that one rule is checked against.
const MOST: usize = 10;
/// Attempts against others who write the same policy.
const ATTEMPTS: usize = 16;

/// Checks every policy whenever one changes, until the server is gone or drained.
pub(crate) async fn run(server: Weak<Server>, stop: CancellationToken) {
    loop {
        let Some(s) = server.upgrade() else { return };
        let Ok(mut cursor) = s.config.store.watch(COLLECTION, s.config.store.revision()) else {
            tokio::time::sleep(RETRY).await;
            continue;
        };
        look(&s).await;
        drop(s);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => return,
                events = cursor.next() => if events.is_err() {
                    break;
                }
            }
            let Some(s) = server.upgrade() else { return };
            look(&s).await;
        }
    }
}

async fn look(server: &Arc<Server>) {
    let table = server.registry.table();
    let Some(target) = table.named(GROUP, PLURAL) else { return };
    let snapshot = server.config.store.snapshot();
    let user = User::administrator("system:apiserver");
    for record in snapshot.range(COLLECTION, "", None) {
        let policy = read::stored(record, &target);
        let generation = object::generation(&policy);
        if policy["status"]["observedGeneration"] == generation || object::deleting(&policy) {
            continue;
        }
        let name = object::name(&policy).to_owned();
        let mut checked = json!({});
        let warnings = warnings(&policy, &table);
        if !warnings.is_empty() {
            checked["expressionWarnings"] = warnings.into();
        }
        let applied = json!({
            "apiVersion": target.gv().to_string(), "kind": &*target.resource.kind, "metadata": {"name": name},
            "status": {"observedGeneration": generation, "typeChecking": checked},
        });
        let writing = || Writing {
            server,
            target: &target,
            user: &user,
            namespace: "",
            subresource: "status",
            manager: MANAGER.to_owned(),
            dry_run: false,
            options: Value::Null,
            warnings: Vec::new(),
            sink: None,
            trail: None,
        };
        let helper = writing();
        let mut attempt = |live: &Value, _: &mut Vec<String>| {
            let mut new = helper.managing(|cx| managed::apply(live, &applied, cx, true))?;
            crate::decode::defaults(&target, &mut new);
            Ok(Proposal { object: new, applied: true, uid: None })
        };
        match Box::pin(writing().update(&name, ATTEMPTS, &mut attempt)).await {
            Ok(_) => {}
            Err(s) if s.code == 404 => {}
            Err(s) => tracing::warn!(policy = name, error = s.message, "types could not be checked"),
        }
    }
}

/// The warnings of a policy, by the field that they are about.
fn warnings(policy: &Value, table: &Table) -> Vec<Value> {
    let spec = &policy["spec"];
    let kind = &spec["paramKind"];
    let params = kind.is_object().then(|| {
        let gv = GroupVersion::parse(kind["apiVersion"].as_str().unwrap_or_default())?;
        kinds(table).find(|(r, v)| v.gv == gv && kind["kind"] == *r.kind)
    });
    let mut environments: Vec<(String, Environment)> = Vec::new();
    for (resource, version) in checked(spec, table) {
        let shown = |(r, v): (&Resource, &Version)| (Schema::clone(&v.schema), r.kind.clone());
        let (object, params) = (shown((resource, version)), params.map(|p| p.map(shown)));
        let params = params.as_ref().map(|p| p.as_ref().map(|(schema, kind)| (schema, &**kind)));
        let mut env = Environment::typed((&object.0, &object.1), params);
        for variable in spec["variables"].as_array().into_iter().flatten() {
            let text = |key: &str| variable[key].as_str().unwrap_or_default();
            // What is wrong with a variable was said when it was registered, or is said where it is used.
            let _ = env.variable(text("name"), text("expression"));
        }
        let gv = &version.gv;
        environments.push((format!("{}/{}, Kind={}", gv.group, gv.version, resource.kind), env));
    }
    let mut out = Vec::new();
    for (i, validation) in spec["validations"].as_array().into_iter().flatten().enumerate() {
        for field in ["expression", "messageExpression"] {
            let Some(source) = validation[field].as_str().filter(|s| !s.is_empty()) else { continue };
            let wrong: Vec<String> = environments
                .iter()
                .filter_map(|(kind, env)| Some(format!("{kind}: {}\n", env.check(source).err()?)))
                .collect();
            if !wrong.is_empty() {
                let at = format!("spec.validations[{i}].{field}");
                out.push(json!({"fieldRef": at, "warning": wrong.join("\n")}));
            }
        }
    }
    out
}

/// Everything served, in its versions.
fn kinds(table: &Table) -> impl Iterator<Item = (&Resource, &Version)> {
    table.all().iter().flat_map(|r| r.versions.iter().filter(|v| v.served).map(move |v| (&**r, v)))
}

/// The kinds that a policy's rules name, without wildcards; sorted by group, version and kind.
fn checked<'a>(spec: &Value, table: &'a Table) -> Vec<(&'a Resource, &'a Version)> {
    let mut found = BTreeSet::new();
    let mut out: Vec<(&Resource, &Version)> = Vec::new();
    'rules: for rule in spec["matchConstraints"]["resourceRules"].as_array().into_iter().flatten() {
        let texts = |key: &str| {
            let list = rule[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            list.collect::<BTreeSet<&str>>()
        };
        let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
        if groups.iter().chain(&versions).any(|t| t.contains('*')) {
            continue;
        }
        let mut count = 0;
        for group in groups {
            for version in &versions {
                for resource in texts("resources").iter().filter(|r| !r.contains(['*', '/'])) {
                    // No group is any group, to the reference's mapper.
                    let fits = |r: &Resource, v: &Version| {
                        (group.is_empty() || *v.gv.group == *group)
                            && *v.gv.version == **version
                            && (*r.id.resource == **resource || r.singular == **resource)
                    };
                    for (r, v) in kinds(table).filter(|(r, v)| fits(r, v)) {
                        if found.insert((v.gv.clone(), r.kind.clone())) {
                            out.push((r, v));
                        }
                        count += 1;
                        if count == MOST {
                            break 'rules;
                        }
                    }
                }
            }
        }
    }
    out.sort_by(|(r, v), (s, w)| {
        (&v.gv.group, &v.gv.version, &r.kind).cmp(&(&w.gv.group, &w.gv.version, &s.kind))
    });
    out
}
