//! Events: one object for what repeats, and no flood.

use std::time::Duration;

use homeostat_sdk::{Context, Event, Next, Operator, Result};
use k8s_openapi::api::core::v1::ServiceAccount;
use serde_json::{Value, json};

use crate::server::Server;
use crate::{ACCOUNTS, manager, run};

/// Tells the same every second, or each time something else.
struct Tell {
    varied: bool,
}

impl Operator for Tell {
    type Resource = ServiceAccount;
    type Owns = ();
    type Reads = ();

    async fn reconcile(&self, _: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
        let note = if self.varied { cx.clock().now_seconds() } else { "as before".into() };
        cx.event(Event::warning("Told", note).action("Tell")).await;
        Ok(Next::after(Duration::from_secs(1)))
    }
}

fn field(event: &Value, path: &str) -> Value {
    event.pointer(path).cloned().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn what_repeats_is_a_series() {
    let server = Server::default();
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let running = run(manager(&server).with(Tell { varied: false }));
    tokio::time::sleep(Duration::from_secs(100)).await;
    let writes = server.writes();
    let (created, counted) = writes.split_first().unwrap();
    assert_eq!(created.line, "POST /apis/events.k8s.io/v1/namespaces/a/events");
    for (path, expect) in [
        ("/reason", "Told"),
        ("/type", "Warning"),
        ("/action", "Tell"),
        ("/note", "as before"),
        ("/reportingController", "Tell"),
        ("/regarding/kind", "ServiceAccount"),
        ("/regarding/name", "x"),
        ("/regarding/uid", "uid-1"),
        ("/eventTime", "2026-01-02T03:04:05.000000Z"),
    ] {
        let has = field(&created.body, path);
        assert_eq!(has.as_str().unwrap_or_default().get(..expect.len()), Some(expect), "{path}: {has}");
    }
    let counts: Vec<i64> = counted.iter().map(|c| c.body["series"]["count"].as_i64().unwrap()).collect();
    assert_eq!(counts, [2, 3, 4, 5, 6, 7, 8, 9, 10, 40, 70, 100]);
    running.stopped().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn one_objects_flood_is_held_back() {
    let server = Server::default();
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let running = run(manager(&server).with(Tell { varied: true }));
    tokio::time::sleep(Duration::from_secs(620)).await;
    // A burst of 25, then one in five minutes.
    assert_eq!(server.writes().len(), 27);
    assert_eq!(running.health.metrics()[0].errors, 0);
    running.stopped().await.unwrap();
}

/// Tells the same about two parts of an object, in the name of another.
struct TellOfParts;

impl Operator for TellOfParts {
    type Resource = ServiceAccount;
    type Owns = ();
    type Reads = ();

    async fn reconcile(&self, _: &ServiceAccount, cx: &Context<Self>) -> Result<Next> {
        for part in ["a", "b", "a"] {
            let event = Event::normal("Told", "as before").field(format!("secrets{{{part}}}"));
            cx.event(event.instance("node-1")).await;
        }
        Ok(Next::done())
    }
}

#[tokio::test(start_paused = true)]
async fn an_event_is_about_a_part_and_told_in_anothers_name() {
    let server = Server::default();
    server.put(&format!("{ACCOUNTS}/x"), json!({}));
    let running = run(manager(&server).with(TellOfParts));
    tokio::time::sleep(Duration::from_secs(5)).await;
    let writes = server.writes();
    let (counted, made) = writes.split_last().unwrap();
    assert_eq!(counted.body["series"]["count"], 2);
    let mut told: Vec<Value> = made.iter().map(|w| field(&w.body, "/regarding/fieldPath")).collect();
    // The second takes another name, since both are of one moment.
    told.dedup();
    assert_eq!(told, [json!("secrets{a}"), json!("secrets{b}")]);
    for write in made {
        assert_eq!(field(&write.body, "/reportingInstance"), "node-1");
        assert_eq!(field(&write.body, "/regarding/name"), "x");
    }
    running.stopped().await.unwrap();
}
