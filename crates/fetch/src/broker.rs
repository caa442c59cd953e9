//! What a process leaves to others that may not connect, or may not read as fast as it could.

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;

use skep_url::Url;
use tokio::net::TcpStream;

use crate::fault::Fault;

/// A connection that somebody made.
#[derive(Debug)]
pub struct Connected {
    /// The connection.
    pub socket: TcpStream,
    /// To where.
    pub address: SocketAddr,
    /// How long the look-up took.
    pub resolve_ms: u32,
    /// How long connecting took.
    pub connect_ms: u32,
}

/// What a [`Broker`] and a [`Meter`] promise.
pub type Promise<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Connects for a process that may not. The address gate is the broker's.
pub trait Broker: Send + Sync {
    /// A connection to the server of `origin`.
    fn connect<'a>(&'a self, origin: &'a Url) -> Promise<'a, Result<Connected, Fault>>;
}

/// Says how many bytes may be read.
pub trait Meter: Send + Sync {
    /// Waits until some of `bytes` may be read, and says how many; 0 when none may be for long.
    fn take(&self, bytes: usize) -> Promise<'_, usize>;
    /// So many were allowed and did not come.
    fn back(&self, bytes: usize);
}
