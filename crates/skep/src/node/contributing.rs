//! Contributors of this node work for the others: the way there is the ring's.

use skep_contribute::neighbours;
use skep_contribute::trust::Key;
use skep_ring::shell::Shell;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

/// Other nodes of the ring.
pub struct Others(pub Weak<Shell>);

impl Others {
    fn shell(&self) -> Result<Arc<Shell>, String> {
        self.0.upgrade().ok_or_else(|| "this node ends".to_owned())
    }
}

impl neighbours::Others for Others {
    fn nodes(&self) -> Vec<(Key, Option<String>)> {
        let portals = self.shell().map(|shell| shell.portals()).unwrap_or_default();
        portals.into_iter().map(|(key, portal)| (key.0, portal)).collect()
    }

    fn waiting(&self, node: &Key) -> Result<Vec<u8>, String> {
        self.shell()?.bundles_at(skep_ring::Key(*node))
    }

    fn pass_on(&self, node: &Key, address: IpAddr, message: &[u8]) -> Result<Vec<u8>, String> {
        let (shell, node) = (self.shell()?, skep_ring::Key(*node));
        if !shell.is_member(&node) {
            return Err("no node of this network has such a key".into());
        }
        shell.pass_on(node, address, message)
    }
}
