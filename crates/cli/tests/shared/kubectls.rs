//! The kubectls to test with. `cargo xtask test` provides them (`HOMEOSTAT_KUBECTL`).
//!
//! Without one a test that needs it says so and, in CI, fails.

use std::path::PathBuf;

/// All at hand, oldest first.
pub(crate) fn kubectls() -> Vec<PathBuf> {
    let listed = std::env::var_os("HOMEOSTAT_KUBECTL").unwrap_or_default();
    let mut found: Vec<PathBuf> =
        std::env::split_paths(&listed).filter(|p| !p.as_os_str().is_empty()).collect();
    if found.is_empty() {
        let path = std::env::var_os("PATH").unwrap_or_default();
        found.extend(std::env::split_paths(&path).map(|p| p.join("kubectl")).find(|p| p.is_file()));
    }
    found
}

/// `kubectl`, if there is one.
pub(crate) fn or_skip(kubectl: Option<PathBuf>) -> Option<PathBuf> {
    if kubectl.is_none() {
        assert!(std::env::var("CI").is_err(), "there is no kubectl; cargo xtask test installs it");
        eprintln!("!! SKIPPED: there is no kubectl on this machine");
    }
    kubectl
}
