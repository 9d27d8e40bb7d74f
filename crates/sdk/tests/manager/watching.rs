//! What brings a key back, and what a failing watch must not do.

use std::time::Duration;

use homeostat_sdk::Next;
use serde_json::json;

use crate::operators::{Copy, Note};
use crate::server::Server;
use crate::{ACCOUNTS, MAPS, SECRETS, manager, run};

fn lines(calls: &[crate::server::Call]) -> Vec<&str> {
    calls.iter().map(|c| c.line.as_str()).collect()
}

#[tokio::test(start_paused = true)]
async fn an_owned_object_is_made_mended_and_made_again() {
    let server = Server::default();
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let running = run(manager(&server).with(Copy));
    running.settle().await;
    let map = format!("{MAPS}/x");
    let made = server.get(&map).unwrap();
    assert_eq!(made["data"], json!({"value": "none"}));
    assert_eq!(
        made["metadata"]["ownerReferences"],
        json!([{"apiVersion": "v1", "kind": "ServiceAccount", "name": "x", "uid": "uid-1",
            "controller": true, "blockOwnerDeletion": true}])
    );
    let writes = server.writes();
    assert_eq!(lines(&writes), [format!("PATCH {map}")]);
    assert_eq!(writes[0].query, "&force=true&fieldManager=Copy");
    assert_eq!(
        writes[0].body,
        json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"value": "none"},
            "metadata": {"name": "x", "namespace": "a", "ownerReferences": made["metadata"]["ownerReferences"]}})
    );

    server.put(&map, json!({"data": {"value": "edited"}}));
    running.settle().await;
    assert_eq!(server.get(&map).unwrap()["data"]["value"], "none");
    server.delete(&map);
    running.settle().await;
    assert_eq!(server.get(&map).unwrap()["data"]["value"], "none");
    assert_eq!(server.writes().len(), 2);
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_was_read_brings_its_reader_back() {
    let server = Server::default();
    for name in ["x", "y"] {
        server.put(&format!("{ACCOUNTS}/{name}"), json!({}));
    }
    let running = run(manager(&server).with(Copy));
    running.settle().await;
    server.writes();
    // It didn't exist when it was read.
    server.put(&format!("{SECRETS}/y"), json!({"type": "first"}));
    running.settle().await;
    assert_eq!(server.get(&format!("{MAPS}/y")).unwrap()["data"]["value"], "first");
    server.put(&format!("{SECRETS}/y"), json!({"type": "second"}));
    server.put(&format!("{SECRETS}/unread"), json!({}));
    running.settle().await;
    assert_eq!(lines(&server.writes()), [format!("PATCH {MAPS}/y"), format!("PATCH {MAPS}/y")]);
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn kinds_that_come_late_are_waited_for() {
    let server = Server::default();
    server.serve_kind("/api/v1/secrets", false);
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let running = run(manager(&server).with(Copy));
    tokio::time::sleep(Duration::from_secs(600)).await;
    assert!(!running.health.ready());
    assert_eq!(running.health.waiting(), ["Copy"]);
    assert_eq!(server.writes(), []);
    server.serve_kind("/api/v1/secrets", true);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert!(running.health.ready());
    assert!(server.get(&format!("{MAPS}/x")).is_some());
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_failing_watch_holds_up_no_other() {
    let server = Server::default();
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let running = run(manager(&server).with(Copy));
    running.settle().await;
    server.fail("WATCH /api/v1/secrets", 403, usize::MAX);
    server.drop_watches();
    tokio::time::sleep(Duration::from_secs(5)).await;
    server.put(&format!("{ACCOUNTS}/y"), json!({}));
    running.settle().await;
    assert!(server.get(&format!("{MAPS}/y")).is_some());
    // It backs off: 20 ms, doubled to 30 s.
    tokio::time::sleep(Duration::from_secs(3600)).await;
    let tries = server.calls().iter().filter(|c| c.line == "WATCH /api/v1/secrets").count();
    assert!((120..200).contains(&tries), "{tries}");
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn dropped_watches_miss_nothing() {
    let server = Server::default();
    let running = run(manager(&server).with(Copy));
    running.settle().await;
    for i in 0..10 {
        server.put(&format!("{ACCOUNTS}/x{i}"), json!({}));
        server.drop_watches();
        server.put(&format!("{ACCOUNTS}/y{i}"), json!({}));
    }
    tokio::time::sleep(Duration::from_secs(60)).await;
    for i in 0..10 {
        assert!(server.get(&format!("{MAPS}/x{i}")).is_some(), "x{i}");
        assert!(server.get(&format!("{MAPS}/y{i}")).is_some(), "y{i}");
    }
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_object_that_does_not_fit_its_type_holds_up_nothing() {
    let server = Server::default();
    let misfit = json!({"secrets": "not a list"});
    server.put(&format!("{ACCOUNTS}/bad"), misfit.clone());
    server.put(&format!("{ACCOUNTS}/good"), json!({}));
    let running = run(manager(&server).with(Copy));
    running.settle().await;
    assert!(server.get(&format!("{MAPS}/good")).is_some(), "in a list");
    assert!(server.get(&format!("{MAPS}/bad")).is_none());
    // One that was fine and no longer is stays as it was: it is not absent.
    server.put(&format!("{ACCOUNTS}/good"), misfit);
    server.put(&format!("{ACCOUNTS}/later"), json!({}));
    running.settle().await;
    assert!(server.get(&format!("{MAPS}/later")).is_some(), "in a watch");
    server.put(&format!("{SECRETS}/good"), json!({"type": "read"}));
    running.settle().await;
    assert_eq!(server.get(&format!("{MAPS}/good")).unwrap()["data"]["value"], "read");
    server.put(&format!("{ACCOUNTS}/bad"), json!({"secrets": []}));
    running.settle().await;
    assert!(server.get(&format!("{MAPS}/bad")).is_some(), "mended");
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn operators_share_one_watch_per_kind() {
    let server = Server::default();
    let note = Note::new(|_| Ok(Next::done()));
    let running = run(manager(&server).with(Copy).with(note));
    running.settle().await;
    let calls = server.calls();
    let mut watches: Vec<_> = lines(&calls).into_iter().filter(|l| l.starts_with("WATCH")).collect();
    watches.sort_unstable();
    assert_eq!(
        watches,
        ["WATCH /api/v1/configmaps", "WATCH /api/v1/secrets", "WATCH /api/v1/serviceaccounts"]
    );
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_gone_object_is_reconciled_as_absent() {
    let server = Server::default();
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let note = Note::new(|_| Ok(Next::done()));
    let running = run(manager(&server).with(note.clone()));
    running.settle().await;
    server.delete(&format!("{ACCOUNTS}/x"));
    running.settle().await;
    assert_eq!(note.seen().last().unwrap(), "absent a/x");
    running.stopped().await.unwrap();
}

/// The whole point of injected time and chance.
#[tokio::test(start_paused = true)]
async fn the_same_seed_gives_the_same_run() {
    async fn once() -> Vec<crate::server::Call> {
        let server = Server::default();
        server.serve_kind("/api/v1/secrets", false);
        for i in 0..20 {
            server.put(&format!("{ACCOUNTS}/x{i}"), json!({}));
        }
        server.fail("PATCH", 500, 7);
        let running = run(manager(&server).with(Copy));
        tokio::time::sleep(Duration::from_secs(3)).await;
        server.serve_kind("/api/v1/secrets", true);
        tokio::time::sleep(Duration::from_secs(3)).await;
        server.drop_watches();
        for i in 0..20 {
            server.put(&format!("{SECRETS}/x{i}"), json!({"type": i.to_string()}));
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        running.stopped().await.unwrap();
        server.calls()
    }
    let first = once().await;
    assert!(first.len() > 60, "{}", first.len());
    assert_eq!(first, once().await);
}
