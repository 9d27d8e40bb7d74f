//! What the recordings don't show of managers: the cap on updaters, schemas that change, versions, resets.

use homeostat_schema::Schema;
use homeostat_schema::fields::FieldSet;
use homeostat_schema::managed::{self, ApplyError, ManagerCx, OneVersion, Versions, scale};
use serde_json::{Value, json};

fn thing() -> Schema {
    schema(json!({
        "replicas": {"type": "integer"}, "version": {"type": "string"},
        "users": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "args": {"type": "array", "items": {"type": "string"}},
        "auth": {"type": "object", "properties": {"user": {"type": "string"}, "secret": {"type": "string"}}},
        "ports": {"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "port": {"type": "integer"}}}}
    }))
}

fn schema(spec: Value) -> Schema {
    Schema::compile(&json!({"type": "object", "properties": {
        "spec": {"type": "object", "properties": spec},
        "status": {"type": "object", "properties": {"phase": {"type": "string"}}}
    }}))
    .unwrap()
}

const NOW: &str = "2024-01-01T00:00:00Z";

struct Request<'a> {
    schema: &'a Schema,
    manager: &'a str,
    now: &'a str,
    reset: FieldSet,
    versions: &'a dyn Versions,
}

impl<'a> Request<'a> {
    fn new(schema: &'a Schema, manager: &'a str) -> Self {
        Self { schema, manager, now: NOW, reset: FieldSet::new(), versions: &OneVersion }
    }

    fn cx(&self) -> ManagerCx<'_> {
        ManagerCx {
            schema: self.schema,
            api_version: "example.com/v1",
            kind: "Thing",
            manager: self.manager,
            subresource: "",
            now: self.now,
            reset: &self.reset,
            versions: self.versions,
        }
    }
}

fn object(spec: Value) -> Value {
    json!({"apiVersion": "example.com/v1", "kind": "Thing", "metadata": {"name": "t"}, "spec": spec})
}

/// `manager Operation time` of every entry, as it stands.
fn managers(object: &Value) -> Vec<String> {
    let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    list.into_iter()
        .flatten()
        .map(|e| {
            let text = |key: &str| e[key].as_str().unwrap_or("-").to_owned();
            format!("{} {} {}", text("manager"), text("operation"), text("time"))
        })
        .collect()
}

fn fields(object: &Value, manager: &str) -> String {
    let list = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let entry = list.into_iter().flatten().find(|e| e["manager"] == manager);
    entry.map(|e| e["fieldsV1"].to_string()).unwrap_or_default()
}

#[test]
fn the_oldest_updaters_become_one() {
    let schema = thing();
    let mut live = object(json!({"version": "0"}));
    live["metadata"]["uid"] = json!("u");
    // The object is tracked since its creation by the first of them.
    for i in 0..12 {
        let manager = format!("m{i:02}");
        let now = format!("2024-01-01T00:00:{i:02}Z");
        let request = Request { now: &now, ..Request::new(&schema, &manager) };
        let mut new = live.clone();
        new["metadata"]["labels"][&manager] = json!("x");
        let before = if i == 0 { Value::Null } else { live.clone() };
        managed::update(&before, &mut new, &request.cx());
        live = new;
    }
    let all = managers(&live);
    assert_eq!(all.len(), 10, "{all:#?}");
    // The time is that of the latest in it.
    assert_eq!(all[0], "ancient-changes Update 2024-01-01T00:00:02Z");
    assert_eq!(all[1], "m03 Update 2024-01-01T00:00:03Z");
    let ancient = fields(&live, "ancient-changes");
    for label in ["f:m00", "f:m01", "f:m02"] {
        assert!(ancient.contains(label), "{ancient}");
    }
}

#[test]
fn what_becomes_atomic_is_owned_whole() {
    let before = thing();
    let live = managed::apply(
        &Value::Null,
        &object(json!({"auth": {"user": "u"}, "users": ["a"], "replicas": 1})),
        &Request::new(&before, "one").cx(),
        false,
    )
    .unwrap();
    let after = schema(json!({
        "replicas": {"type": "integer"},
        "users": {"type": "array", "items": {"type": "string"}},
        "auth": {"type": "object", "x-kubernetes-map-type": "atomic", "properties": {
            "user": {"type": "string"}, "secret": {"type": "string"}}}
    }));
    let request = Request::new(&after, "two");
    let live = managed::apply(&live, &object(json!({"replicas": 1})), &request.cx(), false).unwrap();
    assert_eq!(fields(&live, "one"), r#"{"f:spec":{"f:auth":{},"f:replicas":{},"f:users":{}}}"#);
    let Err(ApplyError::Conflicts(conflicts)) = managed::apply(
        &live,
        &object(json!({"auth": {"secret": "s"}, "users": ["b"]})),
        &request.cx(),
        false,
    ) else {
        panic!("no conflict")
    };
    let paths: Vec<String> = conflicts.iter().map(|c| c.path.to_string()).collect();
    assert_eq!(paths, [".spec.auth", ".spec.users"]);
}

/// `v2` calls replicas `count`; `v0` is gone.
struct Renamed(Schema);

impl Versions for Renamed {
    fn schema(&self, api_version: &str) -> Option<Schema> {
        (api_version == "example.com/v2").then(|| self.0.clone())
    }

    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, String> {
        let mut object = object.clone();
        let (from, to) =
            if api_version == "example.com/v2" { ("replicas", "count") } else { ("count", "replicas") };
        object["apiVersion"] = json!(api_version);
        if let Some(spec) = object["spec"].as_object_mut()
            && let Some(n) = spec.remove(from)
        {
            spec.insert(to.to_owned(), n);
        }
        Ok(object)
    }
}

#[test]
fn managers_of_other_versions_keep_their_fields_there() {
    let (v1, v2) = (thing(), schema(json!({"count": {"type": "integer"}, "version": {"type": "string"}})));
    let versions = Renamed(v2.clone());
    let in_v2 = json!({"apiVersion": "example.com/v2", "kind": "Thing", "metadata": {"name": "t"},
        "spec": {"count": 3, "version": "a"}});
    let request = Request { versions: &versions, ..Request::new(&v2, "two") };
    let cx = ManagerCx { api_version: "example.com/v2", ..request.cx() };
    let live = managed::apply(&Value::Null, &in_v2, &cx, false).unwrap();
    let mut live = versions.convert(&live, "example.com/v1").unwrap();
    let gone = json!({"manager": "old", "operation": "Update", "apiVersion": "example.com/v0", "time": NOW,
        "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}});
    live["metadata"]["managedFields"].as_array_mut().unwrap().push(gone);

    let request = Request { versions: &versions, ..Request::new(&v1, "one") };
    let refused = managed::apply(&live, &object(json!({"replicas": 5})), &request.cx(), false).unwrap_err();
    assert_eq!(refused.to_string(), "Apply failed with 1 conflict: conflict with \"two\": .spec.count");
    let taken = managed::apply(&live, &object(json!({"replicas": 5})), &request.cx(), true).unwrap();
    assert_eq!(taken["spec"], json!({"replicas": 5, "version": "a"}));
    assert_eq!(fields(&taken, "two"), r#"{"f:spec":{"f:version":{}}}"#);
    assert_eq!(fields(&taken, "old"), "", "its version is gone");

    // A manager that comes to another version gives up what it had in the old one.
    let request = Request { versions: &versions, ..Request::new(&v1, "two") };
    let moved = managed::apply(&live, &object(json!({"version": "a"})), &request.cx(), false).unwrap();
    assert_eq!(moved["spec"], json!({"version": "a"}));
    assert_eq!(moved["metadata"]["managedFields"][0]["apiVersion"], "example.com/v1");
}

#[test]
fn a_write_may_not_own_what_it_resets() {
    let schema = thing();
    let request = Request { reset: FieldSet::of(&["status"]), ..Request::new(&schema, "m") };
    let mut applied = object(json!({"replicas": 1}));
    applied["status"] = json!({"phase": "x"});
    let live = managed::apply(&Value::Null, &applied, &request.cx(), false).unwrap();
    assert_eq!(fields(&live, "m"), r#"{"f:spec":{"f:replicas":{}}}"#);
    let mut new = live.clone();
    new["status"]["phase"] = json!("y");
    managed::update(
        &live,
        &mut new,
        &Request { reset: FieldSet::of(&["status"]), ..Request::new(&schema, "u") }.cx(),
    );
    assert_eq!(managers(&new), managers(&live));
}

#[test]
fn broken_objects_are_told_and_not_mended() {
    let schema = thing();
    let request = Request::new(&schema, "m");
    let refuse = |live: &Value, spec: Value| {
        managed::apply(live, &object(spec), &request.cx(), true).unwrap_err().status().message
    };
    let nameless = json!({"apiVersion": "example.com/v1", "kind": "Thing",
        "metadata": {"name": "t", "namespace": "n", "uid": "u"}, "spec": {"ports": [{"port": 1}]}});
    let about =
        "failed to create typed live object (n/t; example.com/v1, Kind=Thing): .spec.ports: element 0: ";
    assert_eq!(
        refuse(&nameless, json!({"ports": [{"name": "a"}]})),
        format!(
            "{about}associative list with keys has an element that omits all key fields [\"name\"] \
             (and doesn't have default values for any key fields)"
        )
    );
    let typed = "failed to create typed patch object (/t; example.com/v1, Kind=Thing): ";
    let cases = [
        (json!({"replicas": "x"}), ".spec.replicas: expected numeric (int or float), got string"),
        (json!({"replicas": true}), ".spec.replicas: expected numeric (int or float), got bool"),
        (json!({"version": 1.5}), ".spec.version: expected string, got &value.valueUnstructured{Value:1.5}"),
        (json!({"auth": "x"}), ".spec.auth: expected map, got &{x}"),
        (json!({"users": ["a", "a"]}), ".spec.users: duplicate entries for key [=\"a\"]"),
        (
            json!({"users": [["a"]]}),
            ".spec.users: element 0: not supported: associative list with lists as elements",
        ),
        (
            json!({"users": [null]}),
            ".spec.users: element 0: associative list without keys has an element that's an explicit null",
        ),
        (
            json!({"replicas": "x", "version": {}}),
            "errors:\n  .spec.replicas: expected numeric (int or float), got string\n  \
             .spec.version: expected string, got &value.valueUnstructured{Value:map[string]interface {}{}}",
        ),
        (json!("x"), ".spec: expected map, got &{x}"),
    ];
    for (spec, want) in cases {
        assert_eq!(refuse(&Value::Null, spec), format!("{typed}{want}"));
    }
    // managedFields that can't be read are no reason to lose them.
    let mut unreadable = object(json!({"replicas": 1}));
    unreadable["metadata"]["managedFields"] = json!([{"manager": "m", "operation": "Explode"}]);
    assert_eq!(
        refuse(&unreadable, json!({"replicas": 1})),
        "failed to decode managed fields: operation must be `Apply` or `Update`"
    );
}

#[test]
fn an_order_of_items_alone_is_a_change_without_a_new_owner() {
    let schema = thing();
    let request = Request::new(&schema, "m");
    let ports = |names: &[&str]| {
        object(json!({"ports": names.iter().map(|n| json!({"name": n})).collect::<Vec<_>>()}))
    };
    let live = managed::apply(&Value::Null, &ports(&["a", "b"]), &request.cx(), false).unwrap();
    let later = Request { now: "2024-01-01T00:00:09Z", ..Request::new(&schema, "m") };
    let new = managed::apply(&live, &ports(&["b", "a"]), &later.cx(), false).unwrap();
    assert_eq!(new["spec"], ports(&["b", "a"])["spec"]);
    assert_eq!(managers(&new), ["m Apply 2024-01-01T00:00:09Z"]);
    assert_eq!(fields(&new, "m"), fields(&live, "m"));
}

#[test]
fn a_scale_shows_and_carries_back_who_has_the_replicas() {
    let entry = |manager: &str, operation: &str, fields: Value| {
        json!({"manager": manager, "operation": operation, "apiVersion": "example.com/v1", "time": NOW,
            "fieldsType": "FieldsV1", "fieldsV1": fields})
    };
    let object = json!([
        entry("gitops", "Apply", json!({"f:spec": {"f:version": {}, "f:workers": {}}})),
        entry("editor", "Update", json!({"f:spec": {"f:version": {}}})),
    ]);
    let paths: scale::Paths =
        [("example.com/v1".to_owned(), Some(scale::path(".spec.workers")))].into_iter().collect();
    let shown = scale::to_scale(Some(&object), &paths).unwrap().unwrap();
    assert_eq!(shown.as_array().unwrap().len(), 1);
    assert_eq!(shown[0]["fieldsV1"], json!({"f:spec": {"f:replicas": {}}}));
    assert_eq!(shown[0]["apiVersion"], "autoscaling/v1");

    // Someone takes it.
    let taken = json!([{"manager": "hpa", "operation": "Update", "subresource": "scale", "time": NOW,
        "apiVersion": "autoscaling/v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:spec": {"f:replicas": {}}}}]);
    let home = scale::to_object(Some(&object), Some(&taken), &paths, "example.com/v1").unwrap().unwrap();
    let lines = managers(&json!({"metadata": {"managedFields": home}}));
    assert_eq!(
        lines,
        ["gitops Apply 2024-01-01T00:00:00Z", "hpa Update -", "editor Update 2024-01-01T00:00:00Z"]
    );
    let object = json!({"metadata": {"managedFields": home}});
    assert_eq!(fields(&object, "gitops"), r#"{"f:spec":{"f:version":{}}}"#);
    assert_eq!(fields(&object, "hpa"), r#"{"f:spec":{"f:workers":{}}}"#);
}

#[test]
fn field_sets_are_written_as_the_reference_orders_them() {
    let set = FieldSet::parse(&json!({"f:spec": {"f:ports": {
        "k:{\"port\":8080}": {".": {}, "f:port": {}}, "k:{\"port\":80}": {".": {}, "f:port": {}}},
        "f:set": {"v:\"b\"": {}, "v:\"a<\"": {}, "v:10": {}, "v:9": {}, "i:1": {}}}, "x:unknown": {"f:a": {}}}))
    .unwrap();
    assert_eq!(
        set.to_json(),
        concat!(
            r#"{"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:port":{}},"k:{\"port\":8080}":{".":{},"f:port":{}}},"#,
            r#""f:set":{"v:9":{},"v:10":{},"v:\"a\\u003c\"":{},"v:\"b\"":{},"i:1":{}}}}"#
        )
    );
    let lines: Vec<String> = set.to_string().lines().map(str::to_owned).collect();
    assert_eq!(lines[0], ".spec.ports[port=80]");
    assert!(lines.contains(&".spec.set[=\"a<\"]".to_owned()), "{lines:?}");
    assert!(lines.contains(&".spec.set[1]".to_owned()));
    for bad in [
        json!("x"),
        json!({"f:a": 1}),
        json!({"v:": {}}),
        json!({"i:x": {}}),
        json!({"f": {}}),
        json!({"fa": {}}),
    ] {
        assert!(FieldSet::parse(&bad).is_err(), "{bad}");
    }
}
