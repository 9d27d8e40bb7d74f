//! Writing to a store in one line. `Memory` is always ready, so no runtime is needed.

#![allow(dead_code, reason = "each test binary uses some of it")]

use std::sync::Arc;

use futures::FutureExt;
use homeostat_store::{
    CommitError, Compacted, Cursor, Draft, Event, Expect, Key, Op, Revision, Store, Write,
};

pub(crate) type Outcome<M> = Result<Arc<Event<M>>, CommitError<M>>;

pub(crate) fn commit<M: Send + Sync + 'static>(store: &dyn Store<M>, write: Write<M>) -> Outcome<M> {
    store.commit(write).now_or_never().expect("a store in memory does not wait")
}

pub(crate) fn draft(text: &str) -> Draft {
    Draft::new(format!("{text}@").into_bytes(), text.len() + 1)
}

/// Stores `text@REVISION`.
pub(crate) fn put_as<M: Send + Sync + 'static>(
    store: &dyn Store<M>,
    at: (&str, &str),
    expect: Expect,
    text: &str,
    meta: M,
) -> Outcome<M> {
    commit(store, Write { key: Key::new(at.0, at.1), expect, op: Op::Put(draft(text), meta) })
}

pub(crate) fn put(store: &dyn Store<()>, collection: &str, name: &str, text: &str) -> Revision {
    put_as(store, (collection, name), Expect::Any, text, ()).expect("a put without a condition").revision
}

pub(crate) fn delete_as<M: Send + Sync + 'static>(
    store: &dyn Store<M>,
    at: (&str, &str),
    expect: Expect,
    text: &str,
) -> Outcome<M> {
    commit(store, Write { key: Key::new(at.0, at.1), expect, op: Op::Delete(draft(text)) })
}

/// An event in one line: `revision name prev->now`, by the texts stored.
pub(crate) fn show<M>(event: &Event<M>) -> String {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let prev = event.prev.as_ref().map_or_else(|| "-".to_owned(), |record| text(&record.bytes));
    let now = match (&event.now, &event.last) {
        (Some(now), None) => text(&now.bytes),
        (None, Some(last)) => format!("deleted {}", text(last)),
        _ => "neither written nor deleted".to_owned(),
    };
    format!("{} {} {prev}->{now}", event.revision, event.key.name)
}

/// Everything a cursor has now.
pub(crate) fn drain<M>(cursor: &mut Cursor<M>) -> Result<Vec<Arc<Event<M>>>, Compacted> {
    let mut all = Vec::new();
    loop {
        let batch = cursor.try_next()?;
        if batch.is_empty() {
            return Ok(all);
        }
        all.extend(batch.iter().cloned());
    }
}
