//! The audit log: one line of JSON for each event, appended to a file by a thread of its own.
//!
//! Requests never wait for the disk: lines go through a queue that is bounded in number and bytes, and what does not
//! fit is dropped and counted. Drops and failed writes are reported when they begin and summed up at the end.
//! Invariant: lines are whole, and in the order in which their events were told.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use homeostat_access::Attributes;

use super::{Audit, Event, Interest, Policy};

/// Most lines that wait to be written.
const QUEUED: usize = 10_000;
/// Most bytes of the lines that wait to be written.
const QUEUED_BYTES: usize = 64 * 1024 * 1024;
/// Bytes from which on lines are written rather than gathered.
const BATCH: usize = 64 * 1024;
/// Most bytes of a line; a longer one goes without its bodies, as the reference truncates.
const LINE: usize = 10 * 1024 * 1024;

/// Writes events to a file. Clones of an [`Arc`] of it share the queue.
#[derive(Debug)]
pub struct Log {
    policy: Policy,
    queue: RwLock<Option<SyncSender<Vec<u8>>>>,
    counts: Arc<Counts>,
    /// Hears when the writer has ended.
    done: Mutex<Receiver<()>>,
}

#[derive(Debug, Default)]
struct Counts {
    queued_bytes: AtomicUsize,
    dropped: AtomicU64,
    failed: AtomicU64,
}

/// What became of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Closed {
    /// Events that found the queue full.
    pub dropped: u64,
    /// Events that could not be written.
    pub failed: u64,
    /// Whether everything that was queued has been written out.
    pub flushed: bool,
}

impl Log {
    /// Appends to `path` (readable by its owner only, where it is new); `-` is the standard output.
    ///
    /// # Errors
    /// If the file cannot be opened for writing, or the system has no thread for it.
    pub fn open(path: &Path, policy: Policy) -> io::Result<Self> {
        if path == Path::new("-") {
            return Self::to(io::stdout(), policy);
        }
        Self::to(OpenOptions::new().append(true).create(true).mode(0o600).open(path)?, policy)
    }

    /// Writes to anything.
    ///
    /// # Errors
    /// If the system has no thread for it.
    pub fn to(out: impl Write + Send + 'static, policy: Policy) -> io::Result<Self> {
        let (queue, lines) = sync_channel(QUEUED);
        let (ended, done) = sync_channel(0);
        let counts = Arc::<Counts>::default();
        let shared = counts.clone();
        std::thread::Builder::new().name("audit".to_owned()).spawn(move || {
            write(&lines, out, &shared);
            drop(ended);
        })?;
        Ok(Self { policy, queue: RwLock::new(Some(queue)), counts, done: Mutex::new(done) })
    }

    /// Takes no more events and waits until what is queued is written, at most `patience`.
    pub fn close(&self, patience: Duration) -> Closed {
        drop(self.queue.write().unwrap_or_else(PoisonError::into_inner).take());
        let done = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        // A writer that has ended has dropped its side.
        let flushed = done.recv_timeout(patience) != Err(RecvTimeoutError::Timeout);
        Closed {
            dropped: self.counts.dropped.load(Ordering::Relaxed),
            failed: self.counts.failed.load(Ordering::Relaxed),
            flushed,
        }
    }

    fn enqueue(&self, line: Vec<u8>) -> bool {
        let queue = self.queue.read().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = &*queue else { return false };
        let bytes = line.len();
        if self.counts.queued_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes <= QUEUED_BYTES
            && queue.try_send(line).is_ok()
        {
            return true;
        }
        self.counts.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
        false
    }
}

impl Audit for Log {
    fn interest(&self, request: &Attributes<'_>) -> Interest {
        self.policy.interest(request)
    }

    fn tell(&self, event: Event) {
        if !self.enqueue(line(event)) && self.counts.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
            tracing::error!("the audit log cannot keep up: events are dropped");
        }
    }
}

fn line(mut event: Event) -> Vec<u8> {
    let mut line = encode(&event);
    if line.len() > LINE {
        event.request_object = None;
        event.response_object = None;
        event.annotations.insert("audit.k8s.io/truncated".to_owned(), "true".to_owned());
        line = encode(&event);
    }
    line
}

fn encode(event: &Event) -> Vec<u8> {
    // An event has only text for keys: it always encodes.
    let mut line = serde_json::to_vec(event).unwrap_or_default();
    line.push(b'\n');
    line
}

/// Writes lines, as many at once as wait, until nobody can send any more.
fn write(lines: &Receiver<Vec<u8>>, mut out: impl Write, counts: &Counts) {
    let mut torn = false;
    while let Ok(first) = lines.recv() {
        // After a failed write part of a line may stand there.
        let mut batch = if torn { vec![b'\n'] } else { Vec::new() };
        let (mut events, mut next) = (0, Some(first));
        while let Some(line) = next {
            counts.queued_bytes.fetch_sub(line.len(), Ordering::Relaxed);
            batch.extend_from_slice(&line);
            events += 1;
            next = if batch.len() < BATCH { lines.try_recv().ok() } else { None };
        }
        let written = out.write_all(&batch).and_then(|()| out.flush());
        torn = written.is_err();
        if let Err(e) = written
            && counts.failed.fetch_add(events, Ordering::Relaxed) == 0
        {
            tracing::error!(error = %e, "the audit log cannot be written: events are lost");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Condvar;

    use super::super::{Level, Stage, Trail};
    use super::*;

    /// Collects bytes; writes only while the gate is open, and fails while it is broken.
    #[derive(Clone, Default)]
    struct Disk(Arc<(Mutex<State>, Condvar)>);

    #[derive(Default)]
    struct State {
        open: bool,
        broken: bool,
        bytes: Vec<u8>,
    }

    impl Disk {
        fn set(&self, open: bool, broken: bool) {
            let mut state = self.0.0.lock().unwrap();
            (state.open, state.broken) = (open, broken);
            self.0.1.notify_all();
        }

        fn lines(&self) -> usize {
            self.0.0.lock().unwrap().bytes.iter().filter(|b| **b == b'\n').count()
        }
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let mut state = self.0.1.wait_while(self.0.0.lock().unwrap(), |s| !s.open).unwrap();
            if state.broken {
                return Err(io::Error::other("no space left"));
            }
            state.bytes.extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn event(body: usize) -> Event {
        let mut event = Trail::blank(Level::RequestResponse, Stage::ResponseComplete);
        event.response_object = (body > 0).then(|| "x".repeat(body).into());
        event
    }

    const PATIENCE: Duration = Duration::from_secs(60);

    #[test]
    fn a_disk_that_hangs_blocks_nobody() {
        let disk = Disk::default();
        let log = Log::to(disk.clone(), Policy::all(Level::Metadata)).unwrap();
        let told = QUEUED as u64 * 2;
        for _ in 0..told {
            log.tell(event(0));
        }
        assert!(!log.close(Duration::ZERO).flushed);
        disk.set(true, false);
        let closed = log.close(PATIENCE);
        assert!(closed.dropped >= told / 2 - 1_000, "{closed:?}");
    }

    #[test]
    fn big_lines_count_by_their_bytes() {
        let disk = Disk::default();
        let log = Log::to(disk.clone(), Policy::all(Level::Metadata)).unwrap();
        for _ in 0..10 {
            log.tell(event(LINE - 1_000));
        }
        assert!(log.counts.queued_bytes.load(Ordering::Relaxed) <= QUEUED_BYTES);
        disk.set(true, false);
        let closed = log.close(PATIENCE);
        assert!(closed.flushed && closed.dropped >= 2, "{closed:?}");
        assert_eq!(disk.lines() as u64, 10 - closed.dropped);
    }

    #[test]
    fn what_was_told_is_there_after_the_end() {
        let disk = Disk::default();
        disk.set(true, false);
        let log = Log::to(disk.clone(), Policy::all(Level::Metadata)).unwrap();
        for _ in 0..100 {
            log.tell(event(10));
        }
        assert_eq!(log.close(PATIENCE), Closed { dropped: 0, failed: 0, flushed: true });
        assert_eq!(disk.lines(), 100);
        log.tell(event(0));
        assert_eq!(log.close(PATIENCE).dropped, 1, "after the end nothing is written");
    }

    #[test]
    fn a_full_disk_is_counted() {
        let disk = Disk::default();
        disk.set(true, true);
        let log = Log::to(disk.clone(), Policy::all(Level::Metadata)).unwrap();
        log.tell(event(0));
        log.tell(event(100_000));
        assert_eq!(log.close(PATIENCE), Closed { dropped: 0, failed: 2, flushed: true });
    }

    #[test]
    fn a_line_too_long_goes_without_its_bodies() {
        let line = String::from_utf8(line(event(LINE))).unwrap();
        assert!(line.len() < 1_000 && line.contains("\"audit.k8s.io/truncated\":\"true\""), "{line}");
    }
}
