//! `skep network`: makes a network, invites nodes to it, says who is there.

use crate::failure::{Failure, Result, output, say};
use crate::job::Exit;
use crate::node::joining::{fresh, make_archive, must_be_new, newcomer};
use crate::node::{self, wrong};
use crate::owner::Place;
use crate::{amount, ring};
use clap::{Args, Subcommand};
use serde_json::json;
use skep_archive::{Identity, system_clock};
use skep_ring::Seal;
use skep_ring::limits::BOOTSTRAP_MAX;
use skep_ring::shell::Membership;
use skep_ring::shell::membership::{self, Founding};
use skep_ring::ticket::Ticket;
use skep_ring::{Ed25519, Hash, Key};
use skep_url::Suffixes;
use std::collections::BTreeMap;
use std::io::Write;
use std::net::SocketAddr;

/// Make a network of nodes, invite others to it, see who is there
#[derive(Args)]
#[command(after_help = "\
A network divides the web into slices; every slice is led by one node and copied by others. Nobody is master: who makes the network
has the key that admits others, and nothing else. What a network is cannot be changed later, but for its members.
Examples:
  skep --archive first network create --name meadow --listen 192.0.2.7:7079
  skep --archive first node
  skep --archive first network invite --uses 3 --expires 7d
  skep --archive second node --join skep1… --listen 192.0.2.8:7079        on another machine, with what invite printed
`skep help node` and `skep help ring` tell the rest.")]
pub struct Typed {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    /// Make a network, and this archive its first node
    Create {
        /// What it is called, for people
        #[arg(long)]
        name: String,
        /// Into how many slices the web is divided: a power of two
        #[arg(long, value_name = "N", default_value_t = 256)]
        slices: u32,
        /// How many nodes keep each slice
        #[arg(long, value_name = "N", default_value_t = 3)]
        copies: u8,
        /// Where others reach the first node (UDP)
        #[arg(long, value_name = "ADDR:PORT")]
        listen: Option<String>,
        /// Room for copies at the first node
        #[arg(long, value_name = "SIZE")]
        capacity: Option<String>,
        /// Where it stands
        #[arg(long, value_name = "NAME")]
        zone: Option<String>,
        /// Times other than the usual ones, for trying things out: lease=10s,ping=1s,silence=3s …; all nodes go by them
        #[arg(long, value_name = "NAME=TIME,…")]
        times: Option<String>,
    },
    /// Print a ticket with which nodes join
    Invite {
        /// How many nodes it admits
        #[arg(long, value_name = "N", default_value_t = 1)]
        uses: u32,
        /// How long it admits anybody: 2h, 7d
        #[arg(long, value_name = "TIME", default_value = "7d")]
        expires: String,
        /// Another address under which the first node is reached, if it listens anywhere
        #[arg(long, value_name = "ADDR:PORT")]
        at: Vec<String>,
        /// A name under which it is reached, resolved by whoever joins: for a machine whose address changes
        #[arg(long, value_name = "NAME:PORT")]
        name: Option<String>,
    },
    /// Who is there
    Status,
}

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    match typed.action {
        Action::Create { name, slices, copies, listen, capacity, zone, times } => {
            if !slices.is_power_of_two() {
                return Err(Failure::new(format!("--slices {slices} is no power of two")).hint("--slices 256"));
            }
            must_be_new(place)?;
            let founding = Founding {
                name,
                slice_bits: slices.trailing_zeros() as u8,
                copies,
                suffixes: suffixes(),
                times: times.as_deref().map(times_of).transpose()?.unwrap_or_default(),
            };
            let new = newcomer(capacity.as_deref(), zone.as_deref(), listen.as_deref(), &[])?;
            create(founding, &new, place)
        }
        Action::Invite { uses, expires, at, name } => invite(uses, &expires, &at, name, place),
        Action::Status => ring::run(ring::Typed::status(), place),
    }
}

/// A name in a ticket.
const NAME_BYTES_MAX: usize = 255;
/// The ticket that a new network prints admits so many nodes …
const FIRST_USES: u32 = 8;
/// … for a week.
const FIRST_MS: u64 = 7 * 24 * 3600 * 1000;
/// Nodes that a ticket names beside this one, so that it serves while this one is away.
const OTHERS_NAMED: usize = 2;

/// The list of suffixes that is part of this program says what a site is; nodes of one network agree on it.
fn suffixes() -> Hash {
    Hash::of("skep suffixes", Suffixes::COMPILED.as_bytes())
}

/// A node with another list would look for sites in other slices than everybody else.
pub fn agrees(membership: &Membership) -> Result<()> {
    if membership.genesis.suffixes == suffixes() {
        return Ok(());
    }
    Err(Failure::new("this program has another list of public suffixes than the network was made with")
        .because(format!("what a site is must be the same at all nodes; here it is {}", Suffixes::COMPILED))
        .hint("run the version of skep that the other nodes run"))
}

fn times_of(text: &str) -> Result<BTreeMap<String, u64>> {
    let one = |part: &str| -> Result<(String, u64)> {
        let wrong = || Failure::new(format!("--times {part} is no time")).hint("--times lease=10s,ping=1s");
        let (name, time) = part.split_once('=').ok_or_else(wrong)?;
        Ok((name.trim().to_owned(), amount::duration_ms(time).map_err(|_| wrong())?))
    };
    text.split(',').map(one).collect()
}

fn create(founding: Founding, new: &membership::Newcomer, place: &Place) -> Result<Exit> {
    let secret = fresh().map_err(wrong("no key could be made"))?;
    let (node, shared) = (Ed25519::from_secret(&secret), fresh().map_err(wrong("no key could be made"))?);
    let settings = place.archive.join("settings");
    std::fs::create_dir_all(&settings).map_err(|error| Failure::reading(&settings, error))?;
    let owner = membership::owner(&settings, fresh).map_err(wrong("the owner's key cannot be read"))?;
    let now_ms = system_clock() as u64;
    let membership = Membership::found(founding, new, node.key(), &owner, shared, now_ms)
        .map_err(wrong("such a network cannot be made"))?;
    make_archive(place, &membership, secret)?;
    let genesis = &membership.genesis;
    let ticket = ticket(FIRST_USES, now_ms + FIRST_MS, &[], None, place)?;
    if place.json {
        let told = json!({
            "ticket": ticket,
            "network": genesis.name, "id": genesis.id().to_string(), "slices": genesis.slices(), "copies": genesis.copies,
            "node": node.key().to_string(), "owner": owner.key().to_string(), "listen": membership.listen,
        });
        return writeln!(std::io::stdout(), "{told}").map(|()| Exit::Done).map_err(output);
    }
    say(&format!("network {} is made: {} slices, {} copies of each", genesis.name, genesis.slices(), genesis.copies));
    say(&format!(
        "its owner's key is {}: keep a copy, only who has it can invite",
        settings.join("owner.key").display()
    ));
    let archive = place.archive.display();
    say(&format!(
        "next: `skep --archive {archive} node` runs the first node; others join it within a week, up to {FIRST_USES} of them, with"
    ));
    say(&format!("  skep --archive DIR node --listen ADDR:PORT --join {ticket}"));
    say(&format!("`skep --archive {archive} network invite` prints another ticket"));
    Ok(Exit::Done)
}

fn invite(uses: u32, expires: &str, at: &[String], name: Option<String>, place: &Place) -> Result<Exit> {
    let expires_ms = system_clock() as u64 + amount::duration_ms(expires)?;
    let ticket = ticket(uses, expires_ms, at, name, place)?;
    if place.json {
        let told = json!({ "ticket": ticket, "uses": uses, "expires_ms": expires_ms });
        return writeln!(std::io::stdout(), "{told}").map(|()| Exit::Done).map_err(output);
    }
    writeln!(std::io::stdout(), "{ticket}").map_err(output)?;
    say(&format!("admits {uses} node{}, for {expires}: `skep node --join TICKET`", if uses == 1 { "" } else { "s" }));
    Ok(Exit::Done)
}

/// A ticket for others, as text.
fn ticket(uses: u32, expires_ms: u64, at: &[String], name: Option<String>, place: &Place) -> Result<String> {
    let settings = place.archive.join("settings");
    let none =
        || Failure::new("this archive belongs to no network").hint("`skep network create --name NAME` makes one");
    let membership =
        Membership::load(&settings).map_err(wrong("the network's settings cannot be read"))?.ok_or_else(none)?;
    let owner = membership::owner(&settings, || Err("there is no owner's key here".into()))
        .map_err(wrong("nobody can be invited from here"))?;
    let identity = Identity::load(&settings)?.ok_or_else(none)?;
    let node = Ed25519::from_secret(&identity.secret()).key();
    if let Some(name) = name.as_ref().filter(|name| !is_name(name)) {
        return Err(Failure::new(format!("{name:?} is no name with a port")).hint("--name node.example.org:7079"));
    }
    let mut addresses: Vec<SocketAddr> = at.iter().map(|text| node::listen(text)).collect::<Result<_>>()?;
    if !membership.listen.ip().is_unspecified() {
        addresses.push(membership.listen);
    }
    if addresses.is_empty() {
        addresses = own_addresses(membership.listen.port());
    }
    let mut bootstrap: Vec<(Key, SocketAddr)> = addresses.into_iter().map(|address| (node, address)).collect();
    bootstrap.extend(ring::others(place).into_iter().take(OTHERS_NAMED));
    bootstrap.truncate(BOOTSTRAP_MAX);
    let bearer = fresh().map_err(wrong("no key could be made"))?;
    let ticket = membership
        .invite(&owner, bearer, uses, expires_ms, bootstrap)
        .map_err(wrong("nobody can be invited from here"))?;
    Ok(Ticket { name, ..ticket }.to_text())
}

fn is_name(text: &str) -> bool {
    let port = |port: &str| port.parse::<u16>().is_ok();
    text.len() <= NAME_BYTES_MAX && text.rsplit_once(':').is_some_and(|(name, number)| !name.is_empty() && port(number))
}

/// The address of this machine by which it would reach others; nothing is sent to find out.
fn own_addresses(port: u16) -> Vec<SocketAddr> {
    let probe = || {
        let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
        socket.connect("192.0.2.1:9").ok()?;
        socket.local_addr().ok()
    };
    let found = probe().map_or([127, 0, 0, 1].into(), |address| address.ip());
    vec![SocketAddr::new(found, port)]
}
