//! What a node knows of its network before it meets anybody: `settings/ring.toml`, and the owner's key beside it.

use std::collections::BTreeMap;
use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize, de::DeserializeOwned};
use skep_archive::settings as files;

use super::coming::Coming;
use super::question::{Question, Welcome, is_yes};
use crate::fact::{Fact, NodeRecord, SignedRecord, Standing};
use crate::genesis::{GENESIS_VERSION, Genesis};
use crate::key::{Ed25519, Hash, Key, Seal, hex, unhex};
use crate::limits::{CAPACITY_GB_MAX, QUESTION_MS_MAX, WELCOME_BYTES_MAX, WELCOME_MS_MAX};
use crate::message::SPEAKS;
use crate::settings::Settings;
use crate::ticket::{Admission, Certificate, SignedCertificate, SignedInvitation, Ticket};
use crate::wire::Wire;

const FILE: &str = "ring.toml";
const FILE_VERSION: u32 = 1;
const OWNER: &str = "owner.key";
const OWNER_VERSION: u32 = 1;
/// A certificate counts for ten years.
const CERTIFICATE_MS: u64 = 10 * 365 * 24 * 3600 * 1000;

/// A node's place in a network.
#[derive(Clone, Debug)]
pub struct Membership {
    /// What the network is.
    pub genesis: Arc<Genesis>,
    /// What the owner says about this node.
    pub certificate: Arc<SignedCertificate>,
    /// By which URLs have fingerprints; known to members only.
    pub secret: [u8; 32],
    /// Times that are not those by default.
    pub times: BTreeMap<String, u64>,
    /// Where the node listens.
    pub listen: SocketAddr,
    /// Relays that this node uses, run by somebody whom it trusts.
    pub relays: Vec<String>,
    /// Where it serves a relay itself.
    pub serve_relay: Option<SocketAddr>,
}

#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    listen: SocketAddr,
    #[serde(default)]
    relays: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    serve_relay: Option<SocketAddr>,
    genesis: String,
    certificate: String,
    secret: String,
    /// In milliseconds; all nodes of a network have the same.
    #[serde(default)]
    times: BTreeMap<String, u64>,
}

#[derive(Serialize, Deserialize)]
struct OwnerFile {
    version: u32,
    secret: String,
}

/// What a node says of itself when it founds or joins.
#[derive(Clone, Debug)]
pub struct Newcomer {
    /// Room for copies, in gigabytes.
    pub capacity_gb: u32,
    /// Where it stands.
    pub zone: String,
    /// Where it listens.
    pub listen: SocketAddr,
    /// Relays that it uses.
    pub relays: Vec<String>,
}

/// What a network is to be.
#[derive(Clone, Debug)]
pub struct Founding {
    /// For people.
    pub name: String,
    /// Two to the power of this many slices.
    pub slice_bits: u8,
    /// Copies of each.
    pub copies: u8,
    /// BLAKE3 of the suffix list that says what a site is.
    pub suffixes: Hash,
    /// Times that are not those by default.
    pub times: BTreeMap<String, u64>,
}

fn decode<T: DeserializeOwned>(digits: &str) -> Option<T> {
    let byte = |at: usize| u8::from_str_radix(digits.get(2 * at..2 * at + 2)?, 16).ok();
    let bytes: Vec<u8> = (0..digits.len() / 2).map(byte).collect::<Option<_>>()?;
    postcard::from_bytes(&bytes).ok()
}

fn encode<T: Serialize>(thing: &T) -> String {
    hex(&postcard::to_allocvec(thing).expect("plain data encodes"))
}

impl Membership {
    /// Reads it; `None` where the archive belongs to no network.
    pub fn load(settings: &Path) -> Result<Option<Membership>, String> {
        let file: Option<File> = files::load(&settings.join(FILE), FILE_VERSION).map_err(|error| error.to_string())?;
        let Some(file) = file else { return Ok(None) };
        let damaged = || format!("{FILE} is damaged; put it back from a copy");
        Ok(Some(Membership {
            genesis: Arc::new(decode(&file.genesis).ok_or_else(damaged)?),
            certificate: Arc::new(decode(&file.certificate).ok_or_else(damaged)?),
            secret: unhex(&file.secret).ok_or_else(damaged)?,
            times: file.times,
            listen: file.listen,
            relays: file.relays,
            serve_relay: file.serve_relay,
        }))
    }

    /// Writes it down.
    pub fn store(&self, settings: &Path) -> Result<(), String> {
        let file = File {
            version: FILE_VERSION,
            listen: self.listen,
            relays: self.relays.clone(),
            serve_relay: self.serve_relay,
            genesis: encode(&*self.genesis),
            certificate: encode(&*self.certificate),
            secret: hex(&self.secret),
            times: self.times.clone(),
        };
        files::store(&settings.join(FILE), &file, 0o600).map_err(|error| error.to_string())
    }

    /// The machine's settings.
    pub fn settings(&self) -> Result<Settings, String> {
        Settings::with_times(self.times.iter().map(|(name, ms)| (name.as_str(), *ms)))
    }

    /// Makes a network, and this node its first.
    pub fn found(
        founding: Founding,
        new: &Newcomer,
        node: Key,
        owner: &Ed25519,
        secret: [u8; 32],
        now_ms: u64,
    ) -> Result<Membership, String> {
        let Founding { name, slice_bits, copies, suffixes, times } = founding;
        let genesis = Genesis {
            version: GENESIS_VERSION,
            name,
            slice_bits,
            copies,
            suffixes,
            admission: vec![owner.key()],
            first: node,
            made_ms: now_ms,
        };
        genesis.check()?;
        let certificate = certify(&genesis, new, node, owner, Admission::Own, now_ms)?;
        let membership = Membership {
            genesis: Arc::new(genesis),
            certificate: Arc::new(certificate),
            secret,
            times,
            listen: new.listen,
            relays: new.relays.clone(),
            serve_relay: None,
        };
        membership.settings()?;
        Ok(membership)
    }

    /// Uses a ticket: asks the nodes that it names until one of them lets this node in. Returns who is there, too.
    pub fn join(
        ticket: &Ticket,
        new: &Newcomer,
        node: &Ed25519,
        owner: &Ed25519,
        wire: &dyn Wire,
        now_ms: u64,
    ) -> Result<(Membership, Vec<Fact>), String> {
        let network = ticket.invitation.invitation.network;
        if ticket.invitation.invitation.expires_ms <= now_ms {
            return Err("the ticket has expired; ask for another one (`skep network invite`)".into());
        }
        let bearer = Ed25519::from_secret(&ticket.secret);
        let admission = Admission::invited(ticket, &bearer, node.key(), owner.key(), now_ms);
        let certificate = Certificate {
            network,
            node: node.key(),
            owner: owner.key(),
            capacity_gb: new.capacity_gb.min(CAPACITY_GB_MAX),
            zone: new.zone.clone(),
            not_after_ms: now_ms + CERTIFICATE_MS,
            admission,
        };
        let certificate = Arc::new(SignedCertificate::new(certificate, owner));
        let record = first_record(certificate.clone(), wire.addresses(), now_ms);
        let question = Question::Join(Arc::new(SignedRecord::new(record, node))).encode();
        let mut why = String::from("the ticket names nobody to ask");
        for (key, address) in addresses_of(ticket) {
            wire.place(key, &[address], None);
            match ask_in(wire, key, &question) {
                Ok(welcome) => {
                    welcome.genesis.check()?;
                    if welcome.genesis.id() != network {
                        why = format!("{address} is of another network");
                        continue;
                    }
                    let membership = Membership {
                        genesis: Arc::new(welcome.genesis),
                        certificate,
                        secret: welcome.secret,
                        times: welcome.times.into_iter().collect(),
                        listen: new.listen,
                        relays: new.relays.clone(),
                        serve_relay: None,
                    };
                    membership.settings()?;
                    return Ok((membership, welcome.facts));
                }
                Err(said) => why = format!("{address}: {said}"),
            }
        }
        Err(why)
    }

    /// A ticket for others, signed by an admission key.
    pub fn invite(
        &self,
        owner: &Ed25519,
        bearer: [u8; 32],
        uses: u32,
        expires_ms: u64,
        bootstrap: Vec<(Key, SocketAddr)>,
    ) -> Result<Ticket, String> {
        if !self.genesis.admission.contains(&owner.key()) {
            return Err("only who made the network can invite: this archive's owner has no admission key".into());
        }
        let key = Ed25519::from_secret(&bearer).key();
        let invitation = SignedInvitation::new(self.genesis.id(), key, uses, expires_ms, owner);
        Ok(Ticket { invitation, secret: bearer, bootstrap, name: None })
    }
}

/// Every address that a ticket gives, with the key that must answer there. A name stands for the first node.
fn addresses_of(ticket: &Ticket) -> Vec<(Key, SocketAddr)> {
    use std::net::ToSocketAddrs;
    let mut all = ticket.bootstrap.clone();
    if let (Some(name), Some((key, _))) = (&ticket.name, ticket.bootstrap.first()) {
        let found = name.to_socket_addrs().into_iter().flatten();
        all.extend(found.map(|address| (*key, address)));
    }
    all
}

fn ask_in(wire: &dyn Wire, key: Key, question: &[u8]) -> Result<Welcome, String> {
    let patience = Duration::from_millis(QUESTION_MS_MAX);
    let mut answer = wire.ask(key, question, patience).map_err(|silence| silence.to_string())?;
    let broken = |error: std::io::Error| format!("it broke off: {error}");
    is_yes(&mut answer).map_err(broken)??;
    let mut bytes = Vec::new();
    let answer = Coming::new(answer, patience, Duration::from_millis(WELCOME_MS_MAX));
    answer.take(WELCOME_BYTES_MAX).read_to_end(&mut bytes).map_err(broken)?;
    postcard::from_bytes(&bytes).map_err(|_| "its answer makes no sense".to_owned())
}

fn certify(
    genesis: &Genesis,
    new: &Newcomer,
    node: Key,
    owner: &Ed25519,
    admission: Admission,
    now_ms: u64,
) -> Result<SignedCertificate, String> {
    let certificate = Certificate {
        network: genesis.id(),
        node,
        owner: owner.key(),
        capacity_gb: new.capacity_gb.min(CAPACITY_GB_MAX),
        zone: new.zone.clone(),
        not_after_ms: now_ms + CERTIFICATE_MS,
        admission,
    };
    let certificate = SignedCertificate::new(certificate, owner);
    certificate.check(genesis, &genesis.id(), owner)?;
    Ok(certificate)
}

/// What a node says of itself before it knows anybody.
pub fn first_record(certificate: Arc<SignedCertificate>, addresses: Vec<SocketAddr>, now_ms: u64) -> NodeRecord {
    NodeRecord {
        certificate,
        sequence: 1,
        signed_ms: now_ms,
        addresses,
        relay: None,
        portal: None,
        protocol: SPEAKS,
        standing: Standing::Staying,
        watchers: Vec::new(),
    }
}

/// The owner's key in an archive's settings; made from `fresh` where there is none.
pub fn owner(settings: &Path, fresh: impl FnOnce() -> Result<[u8; 32], String>) -> Result<Ed25519, String> {
    let path = settings.join(OWNER);
    let file: Option<OwnerFile> = files::load(&path, OWNER_VERSION).map_err(|error| error.to_string())?;
    let secret = match file {
        Some(file) => unhex(&file.secret).ok_or_else(|| format!("{OWNER} is damaged; put it back from a copy"))?,
        None => {
            let secret = fresh()?;
            let file = OwnerFile { version: OWNER_VERSION, secret: hex(&secret) };
            files::store(&path, &file, 0o600).map_err(|error| error.to_string())?;
            secret
        }
    };
    Ok(Ed25519::from_secret(&secret))
}
