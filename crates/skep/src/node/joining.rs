//! Joining: a ticket becomes a place in a network, and a folder an archive of its own.

use super::{Typed, size, wrong};
use crate::failure::{Failure, Result};
use crate::owner::Place;
use skep_archive::{Archive, OpenOptions, system_clock};
use skep_crawl::sharing;
use skep_ring::fact::Fact;
use skep_ring::shell::Membership;
use skep_ring::shell::membership::{self, Newcomer};
use skep_ring::ticket::Ticket;
use skep_ring::wire::quic::Quic;
use skep_ring::{Ed25519, Wire};
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;

/// What is promised to others if nothing is said.
const CAPACITY_GB: u32 = 100;
/// Where a node listens if nothing is said.
const LISTEN: &str = "0.0.0.0:7079";

/// An address to listen at.
pub fn listen(text: &str) -> Result<SocketAddr> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| Failure::new(format!("{text:?} is no address to listen at")).hint("--listen 192.0.2.7:7079"))
}

/// A size in gigabytes, at least one.
pub fn gigabytes(text: Option<&str>) -> Result<u32> {
    let Some(text) = text else { return Ok(CAPACITY_GB) };
    Ok(u32::try_from(size("--capacity", text)? / 1_000_000_000).unwrap_or(u32::MAX).max(1))
}

/// A secret from the system's source of randomness.
pub fn fresh() -> std::result::Result<[u8; 32], String> {
    use std::io::Read;
    let mut secret = [0; 32];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut secret));
    read.map(|()| secret).map_err(|error| error.to_string())
}

/// Relays as typed: `none` stands for none.
pub fn relays(typed: &[String]) -> Vec<String> {
    typed.iter().filter(|relay| *relay != "none").cloned().collect()
}

/// What is said of a node, as typed.
pub fn newcomer(capacity: Option<&str>, zone: Option<&str>, at: Option<&str>, relays: &[String]) -> Result<Newcomer> {
    Ok(Newcomer {
        capacity_gb: gigabytes(capacity)?,
        zone: zone.unwrap_or_default().to_owned(),
        listen: listen(at.unwrap_or(LISTEN))?,
        relays: self::relays(relays),
    })
}

/// Makes the archive of a node.
pub fn make_archive(place: &Place, membership: &Membership, secret: [u8; 32]) -> Result<()> {
    let bits = membership.genesis.slice_bits;
    let options = OpenOptions { create: true, bits, secret: Some(secret), copies: true, ..place.options() };
    let archive = Archive::open(&place.archive, options)?;
    let settings = archive.layout().settings();
    sharing::share(&settings, membership.secret, bits)?;
    membership.store(&settings).map_err(wrong("the node's settings cannot be written"))?;
    Ok(archive.close()?)
}

/// Refuses a folder that is an archive already.
pub fn must_be_new(place: &Place) -> Result<()> {
    if place.archive.join("settings").join("archive.toml").exists() {
        return Err(Failure::new(format!("{} is an archive already", place.archive.display()))
            .because("a node keeps slices as its network divides them, in an archive that begins with it")
            .hint("--archive DIR names another folder"));
    }
    Ok(())
}

/// Uses a ticket.
pub fn join(typed: &Typed, ticket: &str, place: &Place) -> Result<(Membership, Arc<Quic>, Vec<Fact>)> {
    let ticket = Ticket::parse(ticket).map_err(|why| Failure::new("the ticket cannot be used").because(why))?;
    must_be_new(place)?;
    let secret = fresh().map_err(wrong("no key could be made"))?;
    let new = newcomer(typed.capacity.as_deref(), typed.zone.as_deref(), typed.listen.as_deref(), &typed.relay)?;
    let settings = place.archive.join("settings");
    std::fs::create_dir_all(&settings).map_err(|error| Failure::reading(&settings, error))?;
    let owner = membership::owner(&settings, fresh).map_err(wrong("the owner's key cannot be read"))?;
    let wire = Quic::bind(&secret, new.listen, &new.relays)
        .map_err(|silence| Failure::new(silence.to_string()).hint("--listen ADDR:PORT names another place"))?;
    let node = Ed25519::from_secret(&secret);
    let now_ms = system_clock() as u64;
    let (membership, facts) =
        Membership::join(&ticket, &new, &node, &owner, &*wire as &dyn Wire, now_ms).map_err(|why| {
            Failure::new("nobody of the network lets this node in")
                .because(why)
                .hint("is a node of the network running, and reachable from here? `skep network invite` there makes a new ticket")
        })?;
    crate::network::agrees(&membership)?;
    make_archive(place, &membership, secret)?;
    Ok((membership, wire, facts))
}
