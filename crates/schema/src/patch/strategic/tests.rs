//! Strategic merges as tables: a document, a patch and a schema in, the result or the error out.

use serde_json::{Value, json};

use crate::compile::Definitions;
use crate::patch::strategic;
use crate::schema::Schema;

fn schema() -> Schema {
    let definitions = json!({
        "x.Pod": {"type": "object", "properties": {
            "metadata": {"type": "object", "properties": {
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "finalizers": {"type": "array", "items": {"type": "string"},
                    "x-kubernetes-patch-strategy": "merge"}
            }},
            "containers": {"type": "array", "items": {"$ref": "x.Container"},
                "x-kubernetes-patch-strategy": "merge", "x-kubernetes-patch-merge-key": "name"},
            "volumes": {"type": "array", "items": {"$ref": "x.Container"},
                "x-kubernetes-patch-strategy": "merge,retainKeys", "x-kubernetes-patch-merge-key": "name"},
            "args": {"type": "array", "items": {"type": "string"}}
        }},
        "x.Container": {"type": "object", "properties": {
            "name": {"type": "string"}, "image": {"type": "string"},
            "source": {"type": "object", "properties": {"path": {"type": "string"}}}
        }}
    });
    let definitions = Definitions::parse(definitions.to_string().as_bytes()).unwrap();
    Schema::builtin(definitions, "x.Pod").unwrap()
}

fn check(document: Value, patch: Value, want: Result<Value, (u16, &str)>) {
    let schema = schema();
    let got = strategic(&document, &patch, schema.root()).map_err(|e| e.status());
    match (got, want) {
        (Ok(got), Ok(want)) => assert_eq!(got, want, "{patch}"),
        (Err(got), Err((code, text))) => {
            assert_eq!((got.code, got.message.as_str()), (code, text), "{patch}")
        }
        (got, want) => panic!("{patch} gave {got:?}, not {want:?}"),
    }
}

fn containers(names: &[&str]) -> Value {
    json!({"containers": names.iter().map(|n| json!({"name": n})).collect::<Vec<_>>()})
}

#[test]
fn lists_merge_by_their_key_or_as_sets_or_are_replaced() {
    check(
        json!({"containers": [{"name": "a", "image": "1"}, {"name": "b"}]}),
        json!({"containers": [{"name": "a", "image": "2"}]}),
        Ok(json!({"containers": [{"name": "a", "image": "2"}, {"name": "b"}]})),
    );
    check(containers(&["a", "b"]), containers(&["c", "b"]), Ok(containers(&["c", "a", "b"])));
    check(containers(&["a"]), containers(&["c"]), Ok(containers(&["c", "a"])));
    check(
        json!({"metadata": {"finalizers": ["a"]}}),
        json!({"metadata": {"finalizers": ["b", "a"]}}),
        Ok(json!({"metadata": {"finalizers": ["b", "a"]}})),
    );
    check(json!({"args": ["a", "b"]}), json!({"args": ["c"]}), Ok(json!({"args": ["c"]})));
}

#[test]
fn directives_do_what_they_say() {
    check(
        containers(&["a", "b"]),
        json!({"containers": [{"name": "a", "$patch": "delete"}]}),
        Ok(containers(&["b"])),
    );
    check(
        containers(&["a", "b"]),
        json!({"containers": [{"$patch": "replace"}, {"name": "c"}]}),
        Ok(containers(&["c"])),
    );
    check(
        containers(&["a", "b", "c"]),
        json!({"$setElementOrder/containers": [{"name": "c"}, {"name": "a"}]}),
        Ok(containers(&["b", "c", "a"])),
    );
    check(
        json!({"metadata": {"finalizers": ["a", "b"]}}),
        json!({"metadata": {"$deleteFromPrimitiveList/finalizers": ["a", "x"]}}),
        Ok(json!({"metadata": {"finalizers": ["b"]}})),
    );
    check(
        json!({"volumes": [{"name": "v", "image": "x"}]}),
        json!({"volumes": [{"name": "v", "$retainKeys": ["name", "source"], "source": {"path": "p"}}]}),
        Ok(json!({"volumes": [{"name": "v", "source": {"path": "p"}}]})),
    );
    check(
        json!({"metadata": {"labels": {"a": "1", "b": "2"}}}),
        json!({"metadata": {"labels": {"$patch": "replace", "c": "3"}}}),
        Ok(json!({"metadata": {"labels": {"c": "3"}}})),
    );
    check(
        json!({"metadata": {"labels": {"a": "1"}}}),
        json!({"metadata": {"labels": {"$patch": "delete"}}}),
        Ok(json!({"metadata": {"labels": {}}})),
    );
    check(
        json!({"metadata": {"labels": {"a": "1"}}}),
        json!({"metadata": {"labels": {"a": null, "absent": null}}}),
        Ok(json!({"metadata": {"labels": {}}})),
    );
    // Put in place of nothing, directives and nulls vanish.
    check(
        json!({}),
        json!({"containers": [{"name": "a", "$patch": "delete"}, {"name": "b", "image": null}]}),
        Ok(json!({"containers": [{"name": "b"}]})),
    );
}

#[test]
fn bad_patches_are_refused_in_the_references_words() {
    let doc = || containers(&["a"]);
    check(
        doc(),
        json!({"containers": [{"image": "x"}]}),
        Err((500, "map: map[image:x] does not contain declared merge key: name")),
    );
    check(
        doc(),
        json!({"containers": [{"name": "a", "$patch": "explode"}]}),
        Err((500, "unknown patch type: explode in map: map[$patch:explode name:a]")),
    );
    check(
        doc(),
        json!({"containers": [{"name": "a", "$patch": "merge"}]}),
        Err((500, "merging lists cannot yet be specified in the patch")),
    );
    check(
        doc(),
        json!({"$setElementOrder/containers": [{"name": "b"}], "containers": [{"name": "a"}]}),
        Err((
            500,
            "The order in patch list:\n[map[name:a]]\n doesn't match $setElementOrder list:\n[map[name:b]]\n",
        )),
    );
    check(
        doc(),
        json!({"$setElementOrder/absent": []}),
        Err((500, "unable to find api field in struct Pod for the json field \"absent\"")),
    );
    check(doc(), json!({"$setElementOrder": []}), Err((400, "invalid patch format of setElementOrder list")));
    check(
        doc(),
        json!({"$deleteFromPrimitiveList": []}),
        Err((400, "invalid patch format of primitive list")),
    );
    check(doc(), json!({"$retainKeys": ["x"], "args": []}), Err((400, "invalid patch format of retainKeys")));
    check(
        doc(),
        json!({"containers": ["x"]}),
        Err((500, "list element types are not identical: [[map[name:a]] [x]]")),
    );
    check(
        json!({"metadata": {"finalizers": [["a"]]}}),
        json!({"metadata": {"finalizers": ["a"]}}),
        Err((422, "the server rejected our request due to an error in our request")),
    );
    check(
        doc(),
        json!([]),
        Err((400, "json: cannot unmarshal array into Go value of type map[string]interface {}")),
    );
}
