//! What the portal is asked to be, with nothing left to interpret.

use crate::access::Access;
use crate::elsewhere::Elsewhere;
use crate::fresh::Tells;
use crate::limits::REQUESTS_PER_SECOND;
use skep_archive::{Clock, system_clock};
use skep_changes::Changes;
use skep_contribute::Node;
use skep_search::Text;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

/// Takes a line: of the access log, or of talk for whoever runs the portal.
pub type Lines = Arc<dyn Fn(&str) + Send + Sync>;

/// How to serve.
#[derive(Clone)]
pub struct Settings {
    /// Where to listen; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Where archived pages are shown, as `scheme://host[:port]`: another origin than the portal's. Without it, on a loopback
    /// address `replay.localhost` and else the portal's own name, in a sandbox.
    pub replay_origin: Option<String>,
    /// Whether scripts of archived pages run; without it on a loopback address only.
    pub scripts: Option<bool>,
    /// Where a proxy listens that browses the archive.
    pub proxy: Option<SocketAddr>,
    /// Certificate chain and key, in PEM files.
    pub tls: Option<(PathBuf, PathBuf)>,
    /// Who may see what.
    pub access: Access,
    /// Requests a second of one client. `None`: the usual number, and clients on this machine as many as they like.
    pub requests_per_second: Option<u32>,
    /// Takes a line for each request answered.
    pub log: Option<Lines>,
    /// Takes what whoever runs the portal should know.
    pub talk: Lines,
    /// The texts of the archive, where they can be looked through.
    pub text: Option<Arc<Text>>,
    /// The time.
    pub clock: Clock,
    /// The changes view, the one of whoever owns the archive.
    pub changes: Arc<Changes>,
    /// Tells how the watches of the archive stand, where there may be some.
    pub watches: Option<Tells>,
    /// Takes contributors, where they are wanted.
    pub contributors: Option<Arc<Node>>,
    /// The other nodes of a network, where the archive is one of many.
    pub elsewhere: Option<Arc<dyn Elsewhere>>,
}

impl Settings {
    /// An open portal at this address, silent.
    pub fn at(listen: SocketAddr) -> Settings {
        Settings {
            listen,
            replay_origin: None,
            scripts: None,
            proxy: None,
            tls: None,
            access: Access::default(),
            requests_per_second: None,
            log: None,
            talk: Arc::new(|_| ()),
            text: None,
            clock: Arc::new(system_clock),
            changes: Arc::default(),
            watches: None,
            contributors: None,
            elsewhere: None,
        }
    }

    /// The pace of one client, and whether it also holds for clients on this machine.
    pub(crate) fn pace(&self) -> (u32, bool) {
        (self.requests_per_second.unwrap_or(REQUESTS_PER_SECOND), self.requests_per_second.is_some())
    }
}
