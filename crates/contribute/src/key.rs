//! Keys: whose a signature is, a contributor's own key on its disk, and the keys of nodes as they were first seen.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use ed25519_dalek::{Signature, VerifyingKey};
use skep_archive::Identity;

use crate::book::{unhex, write_whole};
use crate::limits::NODES_MAX;
use crate::node::hex;

/// Whether `signature` is that of the owner of `public` over `text`.
pub fn verifies(public: &[u8; 32], text: &[u8], signature: &[u8; 64]) -> bool {
    VerifyingKey::from_bytes(public).is_ok_and(|key| key.verify_strict(text, &Signature::from_bytes(signature)).is_ok())
}

/// Random bytes of the system.
pub fn fresh() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    let mut have = 0;
    while have < bytes.len() {
        have += rustix::rand::getrandom(&mut bytes[have..], rustix::rand::GetRandomFlags::empty())?;
    }
    Ok(bytes)
}

/// The key of this contributor, made at its first start.
pub fn own(folder: &Path) -> Result<Identity, String> {
    Identity::load_or_create(folder, || {
        fresh().map_err(|error| skep_archive::Error::Refused { why: format!("no random bytes: {error}") })
    })
    .map_err(|error| error.to_string())
}

/// The file in which keys of nodes are kept, by their URL.
pub const NODES: &str = "nodes.json";

/// The key of a node as it was first seen.
pub fn pinned(folder: &Path, node: &str) -> Result<Option<[u8; 32]>, String> {
    let path = folder.join(NODES);
    let bytes = match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let keys: BTreeMap<String, String> =
        serde_json::from_slice(&bytes).map_err(|error| format!("{} is damaged: {error}", path.display()))?;
    Ok(keys.get(node).and_then(|key| unhex(key)))
}

/// Keeps the key of a node. Where too many are known, another one is met anew each time, unless it is `home`, whom the owner named.
pub fn pin(folder: &Path, home: &str, node: &str, key: &[u8; 32]) -> Result<(), String> {
    let path = folder.join(NODES);
    let mut keys: BTreeMap<String, String> =
        std::fs::read(&path).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
    if keys.len() >= NODES_MAX && node != home && !keys.contains_key(node) {
        return Ok(());
    }
    keys.insert(node.to_owned(), hex(key));
    let text = serde_json::to_vec_pretty(&keys).unwrap_or_default();
    write_whole(&path, &text).map_err(|error| format!("{}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_sent_from_node_to_node_keeps_the_key_of_the_one_its_owner_named() {
        let folder = tempfile::tempdir().unwrap();
        let (home, known) = ("https://home.example/", |n: usize| format!("https://n{n}.example/"));
        let many: BTreeMap<String, String> = (0..NODES_MAX).map(|n| (known(n), hex(&[7; 32]))).collect();
        std::fs::write(folder.path().join(NODES), serde_json::to_vec(&many).unwrap()).unwrap();
        pin(folder.path(), home, home, &[1; 32]).unwrap();
        pin(folder.path(), home, &known(NODES_MAX), &[2; 32]).unwrap();
        let pinned = |node: &str| pinned(folder.path(), node).unwrap();
        assert_eq!((pinned(home), pinned(&known(0))), (Some([1; 32]), Some([7; 32])));
        assert_eq!(pinned(&known(NODES_MAX)), None, "and no more of others than so many");
    }
}
