//! The only door to chance: uids, name suffixes, jitter, keys' serials.
//!
//! Seeded, it gives the same sequence in every run. It is not for key material: TLS keys come from aws-lc-rs.
//! Invariant: one `Entropy` hands out one sequence, whoever asks.

use std::sync::{Arc, Mutex, PoisonError};

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};

/// A shared source of random values.
#[derive(Clone, Debug)]
pub struct Entropy(Arc<Mutex<StdRng>>);

/// The alphabet of generated name suffixes (apimachinery `rand.String`): no vowels, no look-alikes.
const SUFFIX: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";

impl Entropy {
    /// Seeded by the operating system.
    pub fn system() -> Self {
        Self(Arc::new(Mutex::new(StdRng::try_from_rng(&mut rand::rngs::SysRng).unwrap_or_else(|_| {
            // Without a system source uniqueness within the process still holds; nothing secret depends on it.
            StdRng::seed_from_u64(std::process::id().into())
        }))))
    }

    /// The same sequence for the same seed.
    pub fn seeded(seed: u64) -> Self {
        Self(Arc::new(Mutex::new(StdRng::seed_from_u64(seed))))
    }

    fn with<T>(&self, f: impl FnOnce(&mut StdRng) -> T) -> T {
        f(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Fills `bytes`.
    pub fn fill(&self, bytes: &mut [u8]) {
        self.with(|r| r.fill_bytes(bytes));
    }

    /// A version 4 UUID in its usual form.
    pub fn uid(&self) -> String {
        let mut bytes = [0; 16];
        self.fill(&mut bytes);
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }

    /// `n` characters for a generated name (five for `generateName`).
    pub fn suffix(&self, n: usize) -> String {
        self.with(|r| (0..n).map(|_| SUFFIX[r.random_range(0..SUFFIX.len())] as char).collect())
    }

    /// A number in `0..bound`; 0 where `bound` is 0.
    pub fn below(&self, bound: u64) -> u64 {
        if bound == 0 { 0 } else { self.with(|r| r.random_range(0..bound)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_replays() {
        let (a, b) = (Entropy::seeded(7), Entropy::seeded(7));
        assert_eq!((a.uid(), a.suffix(5), a.below(9)), (b.uid(), b.suffix(5), b.below(9)));
        assert_ne!(a.uid(), Entropy::seeded(8).uid());
    }

    #[test]
    fn uids_are_version_4() {
        assert_eq!(&Entropy::system().uid()[14..15], "4");
    }
}
