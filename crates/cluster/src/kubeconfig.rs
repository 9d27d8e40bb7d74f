//! Kubeconfig files that lead to a cluster of ours.
//!
//! A file is ours when each of its clusters carries our extension; kubectl keeps extensions when it edits a file, so
//! a file that the user has changed with `kubectl config` is still known. Invariant: a file that isn't ours is never
//! written, and what we write only its owner can read.

use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::pki::Identity;

/// Marks a cluster entry as ours.
const MARK: &str = "homeostat.dev";

/// Why a kubeconfig could not be written.
#[derive(Debug, thiserror::Error)]
pub enum KubeconfigError {
    /// There is a file that somebody else made.
    #[error("{} exists and was not written by homeostat; name another file with --kubeconfig PATH", .0.display())]
    Foreign(PathBuf),
    /// The file system said no.
    #[error("cannot write {}: {source}; name another file with --kubeconfig PATH", .path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
}

/// The text of a kubeconfig for `server` (a URL) and its only user. JSON, which every YAML reader takes.
pub fn text(server: &str, authority_pem: &str, user: &Identity) -> String {
    let value = json!({
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "homeostat",
        "clusters": [{"name": "homeostat", "cluster": {
            "server": server,
            "certificate-authority-data": STANDARD.encode(authority_pem),
            "extensions": [{"name": MARK, "extension": {"made-by": "homeostat"}}],
        }}],
        "contexts": [{"name": "homeostat", "context": {"cluster": "homeostat", "user": "homeostat-admin"}}],
        "users": [{"name": "homeostat-admin", "user": {
            "client-certificate-data": STANDARD.encode(&user.certificate),
            "client-key-data": STANDARD.encode(&user.key),
        }}],
    });
    serde_saphyr::to_string(&value).unwrap_or_else(|_| value.to_string())
}

/// Writes `text` to `path`, with mode 0600, its folders included. Renamed into place: a reader sees the old file or
/// the new one, whole.
pub fn write(path: &Path, text: &str) -> Result<(), KubeconfigError> {
    check(path)?;
    let fail = |source| KubeconfigError::Write { path: path.to_owned(), source };
    if let Some(folder) = path.parent().filter(|p| !p.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(fail)?;
    }
    let mut partial = path.as_os_str().to_owned();
    partial.push(format!(".{}", std::process::id()));
    let partial = PathBuf::from(partial);
    let put = || {
        let mut file =
            std::fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        file.write_all(text.as_bytes())?;
        std::fs::rename(&partial, path)
    };
    put().map_err(|e| {
        let _ = std::fs::remove_file(&partial);
        fail(e)
    })
}

/// Whether `path` may be written: absent, empty, or ours.
pub fn check(path: &Path) -> Result<(), KubeconfigError> {
    match std::fs::read_to_string(path) {
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::InvalidData => {
            Err(KubeconfigError::Foreign(path.to_owned()))
        }
        Err(source) => Err(KubeconfigError::Write { path: path.to_owned(), source }),
        Ok(text) if text.trim().is_empty() || is_ours(&text) => Ok(()),
        Ok(_) => Err(KubeconfigError::Foreign(path.to_owned())),
    }
}

fn is_ours(text: &str) -> bool {
    let Ok(value) = serde_saphyr::from_str::<Value>(text) else { return false };
    let marked = |cluster: &Value| {
        let extensions = cluster["cluster"]["extensions"].as_array();
        extensions.is_some_and(|e| e.iter().any(|x| x["name"] == MARK))
    };
    value["clusters"].as_array().is_some_and(|c| !c.is_empty() && c.iter().all(marked))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    fn sample() -> String {
        text("https://127.0.0.1:6443", "CA", &Identity { certificate: "C".into(), key: "K".into() })
    }

    #[test]
    fn only_its_owner_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("deep/kubeconfig");
        write(&path, &sample()).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        write(&path, &sample()).expect("ours may be written again");
    }

    #[test]
    fn what_others_wrote_stays() {
        let foreign = [
            "apiVersion: v1\nkind: Config\nclusters:\n- name: prod\n  cluster: {server: https://prod}\n",
            "not: a kubeconfig",
            "]]]",
        ];
        for text in foreign {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("config");
            std::fs::write(&path, text).unwrap();
            assert!(matches!(write(&path, &sample()), Err(KubeconfigError::Foreign(_))), "{text}");
            assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
        }
    }

    #[test]
    fn a_second_cluster_beside_ours_makes_it_theirs() {
        let mixed = sample().replacen(
            "clusters:",
            "clusters:\n- name: prod\n  cluster:\n    server: https://prod",
            1,
        );
        assert!(!is_ours(&mixed), "{mixed}");
        assert!(is_ours(&sample()));
    }
}
