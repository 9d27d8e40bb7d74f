//! What this process may work on at the moment: everything, nothing, or a share of the keys.
//!
//! Workers ask a [`Gate`] before they take up a key, and let go of a key that it no longer admits. Whoever decides
//! holds the [`Keeper`], and learns when the last work under earlier rights has stopped.

use std::convert::Infallible;
use std::sync::Arc;

use tokio::sync::{mpsc, watch};

use super::ring::Ring;
use crate::key::Key;

/// What may be worked on.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scope {
    Everything,
    Nothing,
    /// The keys that belong to this member in each of the rings.
    Share {
        me: Arc<str>,
        rings: Vec<Ring>,
    },
}

impl Scope {
    pub(crate) fn admits(&self, key: &Key) -> bool {
        match self {
            Self::Everything => true,
            Self::Nothing => false,
            Self::Share { me, rings } => rings.iter().all(|r| r.owner(key) == Some(&**me)),
        }
    }
}

/// A scope, and that somebody works under it.
pub(crate) struct Rights {
    scope: Scope,
    /// Closed when nobody holds these rights any more.
    _held: mpsc::Sender<Infallible>,
}

impl Rights {
    pub(crate) fn admits(&self, key: &Key) -> bool {
        self.scope.admits(key)
    }
}

/// Tells workers what they may do. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Gate(watch::Receiver<Arc<Rights>>);

/// Decides what workers may do.
pub(crate) struct Keeper {
    gate: watch::Sender<Arc<Rights>>,
    held: mpsc::Receiver<Infallible>,
}

fn rights(scope: Scope) -> (Arc<Rights>, mpsc::Receiver<Infallible>) {
    let (held, released) = mpsc::channel(1);
    (Arc::new(Rights { scope, _held: held }), released)
}

impl Gate {
    /// Everything is admitted, for ever.
    pub(crate) fn open() -> Self {
        Self(watch::channel(rights(Scope::Everything).0).1)
    }

    /// What is admitted now. Whoever holds on to it works under it.
    pub(crate) fn now(&self) -> Arc<Rights> {
        self.0.borrow().clone()
    }

    /// Whether nothing is decided elsewhere: everything is admitted, now and later.
    pub(crate) fn is_open(&self) -> bool {
        self.0.has_changed().is_err() && self.0.borrow().scope == Scope::Everything
    }

    /// Waits for another decision.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }

    /// Waits until `key` is not admitted, holding the rights to it until then.
    pub(crate) async fn lost(mut self, key: &Key) {
        loop {
            let rights = self.0.borrow_and_update().clone();
            if !rights.admits(key) {
                return;
            }
            self.changed().await;
            drop(rights);
        }
    }

    /// Waits until `key` is admitted.
    pub(crate) async fn gained(&mut self, key: &Key) {
        while !self.0.borrow_and_update().admits(key) {
            self.changed().await;
        }
    }
}

impl Keeper {
    /// A gate that admits nothing yet.
    pub(crate) fn new() -> (Self, Gate) {
        let (first, held) = rights(Scope::Nothing);
        let (gate, receiver) = watch::channel(first);
        (Self { gate, held }, Gate(receiver))
    }

    /// What is admitted from now on.
    pub(crate) fn decide(&mut self, scope: Scope) -> Former {
        let (rights, released) = rights(scope);
        self.gate.send_replace(rights);
        Former(std::mem::replace(&mut self.held, released))
    }
}

/// Rights that were replaced.
pub(crate) struct Former(mpsc::Receiver<Infallible>);

impl Former {
    /// Waits until nobody works under them any more.
    pub(crate) async fn released(mut self) {
        let _ = self.0.recv().await;
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn former_rights_are_released_when_the_last_worker_lets_go() {
        let (mut keeper, gate) = Keeper::new();
        let key = Key::cluster("a");
        assert!(!gate.now().admits(&key));
        keeper.decide(Scope::Everything).released().await;
        let worker = tokio::spawn({
            let (gate, key) = (gate.clone(), key.clone());
            async move {
                gate.lost(&key).await;
            }
        });
        tokio::task::yield_now().await;
        let held = gate.now();
        let former = keeper.decide(Scope::Nothing);
        worker.await.unwrap();
        let mut released = std::pin::pin!(former.released());
        let soon = tokio::time::timeout(Duration::from_secs(1), released.as_mut()).await;
        assert!(soon.is_err(), "somebody still works");
        drop(held);
        released.await;
    }

    #[test]
    fn an_open_gate_stays_open() {
        let gate = Gate::open();
        assert!(gate.is_open() && gate.now().admits(&Key::cluster("a")));
    }
}
