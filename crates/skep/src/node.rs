//! `skep node`: this machine as one of many. Here archive, crawl, portal and ring meet: what the ring says is led is crawled, what the
//! crawl finds for others goes their way, and what others hold is answered from here.

mod contributing;
pub mod crawling;
mod glue;
pub mod joining;
pub mod near;
mod notes;
pub mod originals;
mod owners;
mod told;

use crate::crawl::{Fetch, Hands};
use crate::failure::{Failure, Result, say};
use crate::job::Exit;
use crate::owner::{self, Owned, Place};
use crate::serve::{self, Begun};
use crate::{amount, signals, sink};
use clap::Args;
use serde_json::json;
use skep_archive::{Identity, OpenOptions};
use skep_ring::shell::{Membership, Parts, Running, Shell};
use skep_ring::wire::cut::Cut;
use skep_ring::wire::quic::Quic;
use skep_ring::{Ears, Wire};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

pub use crawling::network_crawl;
pub use glue::{Glue, Others};
pub use joining::listen;

/// Be a node of a network: keep slices, crawl them, copy them, answer for all
#[derive(Args)]
#[command(after_help = "\
A node joins once, with a ticket that `skep network invite` prints where the network was made; after that `skep node` alone is enough.
It holds slices of the web together with others, leads some of them (schedules and fetches), copies what others lead, and its portal
answers for everything that any node holds. How it stands: `skep ring`. To go for good: `skep ring leave`, which copies first.
Seeds are given to the network at any node: `skep crawl --network https://example.org/`.
Nodes behind a router that lets nothing in need one node, of any owner, that all of them reach and that serves a relay: the others hear of
it and use it by themselves. Only nodes of this network may, and what they say to each other it cannot read.
Ctrl-C ends it; others do without it, and it goes on where it was when it is started again.
Examples:
  skep --archive north node --join skep1… --listen 192.0.2.7:7079 --capacity 1TB --zone north
  skep --archive north node
  skep --archive north node --serve-relay 192.0.2.7:7080
Exit code 0 if it was stopped or has left.")]
pub struct Typed {
    /// The ticket with which it joins; needed once
    #[arg(long, value_name = "TICKET")]
    join: Option<String>,
    /// Room for copies; a node gets as many places on the ring as that earns (by default 100GB)
    #[arg(long, value_name = "SIZE")]
    capacity: Option<String>,
    /// Where the machine stands: copies avoid sharing a zone while owners are few
    #[arg(long, value_name = "NAME")]
    zone: Option<String>,
    /// Where other nodes reach this one (UDP); kept for the next time
    #[arg(long, value_name = "ADDR:PORT")]
    listen: Option<String>,
    /// A relay through which it can be reached, run by somebody whom you trust, instead of those that other nodes serve; kept for the next
    /// time, `none` forgets it
    #[arg(long, value_name = "URL")]
    relay: Vec<String>,
    /// Serve a relay here (TCP): nodes of this network that cannot reach each other directly do so through it; `none` ends that
    #[arg(long, value_name = "ADDR:PORT")]
    serve_relay: Option<String>,
    /// Where its portal listens; `none` for no portal
    #[arg(long, value_name = "ADDR:PORT", default_value = serve::LISTEN)]
    portal: String,
    /// Where the public reaches its portal, for others to lead people to
    #[arg(long, value_name = "URL")]
    public: Option<String>,
    /// The portal speaks TLS: a chain and its key (PEM files)
    #[arg(long, value_name = "CERT,KEY")]
    tls: Option<String>,
    /// Hand bundles out to contributors, who fetch what they have room for; those who find nothing to do here work for other nodes
    #[arg(long)]
    contributors: bool,
    /// Let contributors fetch everything that this node leads; this machine only checks
    #[arg(long)]
    by_contributors: bool,
    /// Ask these name servers (ADDR:PORT) instead of the system's
    #[arg(long, value_name = "ADDR:PORT")]
    dns: Vec<String>,
    /// A host is at this address (HOST=ADDR:PORT), whatever its name server says
    #[arg(long, value_name = "HOST=ADDR:PORT")]
    resolve: Vec<String>,
    /// A host of yours, at any address, which crawls of the network may visit at any pace they ask for
    #[arg(long, value_name = "HOST")]
    own: Vec<String>,
    /// Crawls of the network may visit hosts at private addresses from here
    #[arg(long)]
    allow_private: bool,
    /// Bundles go to whichever holder of a slice stands nearest to the site, by measured connect time: `auto` asks holders in other zones
    /// than this node's, `on` all of them, `off` nobody, and fetches for nobody
    #[arg(long, value_name = "WHEN", value_enum, default_value_t = near::When::Auto)]
    near: near::When,
    /// Threads that fetch
    #[arg(long, value_name = "N", default_value_t = 1)]
    workers: usize,
    /// Lead people to a holder with a public portal, where the page they ask for is not here, instead of fetching it for them
    #[arg(long)]
    lead_away: bool,
    /// End when standard input ends: for a program that runs nodes, so that they do not outlive it
    #[arg(long, hide = true)]
    until_input_ends: bool,
}

/// The node that this process is, once it is one.
#[derive(Default)]
pub struct Ring(Mutex<Option<Arc<Node>>>);

/// A node that runs.
pub struct Node {
    pub shell: Arc<Shell>,
    pub glue: Arc<Glue>,
    /// How it fetches.
    pub fetch: Fetch,
    /// What whoever runs it allows crawls of the network.
    pub consent: Consent,
    /// People are led to holders with a portal of their own.
    pub lead_away: bool,
    /// Who stands nearer to sites, and whether it is asked.
    pub near: near::Near,
    /// The way to the others, which a demonstration may cut.
    pub cut: Arc<Cut>,
    /// Sites that were asked whose they are.
    looks: Mutex<owners::Looks>,
}

/// What only whoever runs a machine can allow.
#[derive(Clone, Debug, Default)]
pub struct Consent {
    /// Hosts of their own: any pace, any address.
    pub own: Vec<String>,
    /// Private addresses may be visited.
    pub allow_private: bool,
}

impl Ring {
    /// The node; an error says how to become one.
    pub fn node(&self) -> Result<Arc<Node>> {
        self.get().ok_or_else(|| {
            Failure::new("no node runs for this archive")
                .hint("`skep node` runs it; `skep network create` makes a network, `skep node --join TICKET` joins one")
        })
    }

    pub fn get(&self) -> Option<Arc<Node>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn set(&self, node: Option<Arc<Node>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = node;
    }
}

pub fn wrong(what: &str) -> impl Fn(String) -> Failure + '_ {
    move |why| Failure::new(what).because(why)
}

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let settings = place.archive.join("settings");
    let known = Membership::load(&settings).map_err(wrong("the archive's place in its network cannot be read"))?;
    let fetch = Fetch {
        name_servers: typed.dns.iter().map(|text| crate::doctor::name_server(text)).collect::<Result<_>>()?,
        workers: typed.workers.max(1),
        ..Fetch::of(typed.resolve.clone())
    };
    let serves = typed.serve_relay.as_deref().map(place_of_relay).transpose()?;
    let (mut membership, wire, facts) = match (known, &typed.join) {
        (Some(mut membership), _) => {
            let identity = Identity::load(&settings)?
                .ok_or_else(|| Failure::new("the archive has no key").hint("put settings/writer.key back"))?;
            if let Some(text) = &typed.listen {
                membership.listen = listen(text)?;
            }
            if !typed.relay.is_empty() {
                membership.relays = joining::relays(&typed.relay);
            }
            let wire = bind(&identity.secret(), &membership)?;
            (membership, wire, Vec::new())
        }
        (None, Some(ticket)) => joining::join(&typed, ticket, place)?,
        (None, None) => {
            return Err(Failure::new("this archive belongs to no network").hint(
                "`skep network create --name NAME` makes one; `skep node --join TICKET` joins one, with a ticket from `skep network invite` there",
            ));
        }
    };
    crate::network::agrees(&membership)?;
    if let Some(at) = serves {
        membership.serve_relay = at;
    }
    let relay = membership.serve_relay.map(|at| serve_relay(&wire, at)).transpose()?.flatten();
    membership.store(&settings).map_err(wrong("the node's settings cannot be written"))?;
    let archive = owner::open(&place.archive, || OpenOptions { copies: true, ..place.options() })?;
    let hands = Hands { contributors: typed.contributors || typed.by_contributors, only: typed.by_contributors };
    let mut portal = (typed.portal != "none").then(|| serve::Job::at(&typed.portal)).transpose()?;
    match &mut portal {
        Some(portal) => {
            portal.tls = typed.tls.as_deref().map(serve::tls).transpose()?;
            portal.contributors = hands.contributors;
        }
        None if hands.contributors => {
            return Err(Failure::new("contributors speak to a node's portal").hint("--portal ADDR:PORT says where"));
        }
        None => {}
    }
    let ways = Ways {
        public: typed.public.clone(),
        relay,
        lead_away: typed.lead_away,
        until_input_ends: typed.until_input_ends,
        json: place.json,
    };
    let consent = Consent { own: typed.own.clone(), allow_private: typed.allow_private };
    let near = near::Near::new(typed.near);
    let begun = Beginning { membership, wire, facts, fetch, consent, hands, near, ways };
    owner::as_owner(archive, |owned| work(owned, begun, portal.as_ref()))
}

pub fn bind(secret: &[u8; 32], membership: &Membership) -> Result<Arc<Quic>> {
    Quic::bind(secret, membership.listen, &membership.relays).map_err(|silence| {
        Failure::new(silence.to_string()).hint("--listen ADDR:PORT names another place where others reach this node")
    })
}

/// Where a relay is to be served, if anywhere.
fn place_of_relay(text: &str) -> Result<Option<SocketAddr>> {
    let at = (text != "none").then(|| listen(text)).transpose();
    at.map_err(|failure| Failure::new(failure.what).hint("--serve-relay 192.0.2.7:7080, or --serve-relay none"))
}

/// Serves a relay; its URL, for others to hear of.
fn serve_relay(wire: &Quic, at: SocketAddr) -> Result<Option<String>> {
    let url = wire.serve_relay(at).map_err(|silence| {
        Failure::new(silence.to_string())
            .hint("--serve-relay ADDR:PORT names another place; `--serve-relay none` ends it")
    })?;
    if url.is_none() {
        say(&format!("the relay at {at} is not made known, because that is no address by which others could find it"));
        say("--serve-relay with the address of this machine does; or other nodes are started with --relay URL");
    }
    Ok(url)
}

/// How a node is reached and talks, beside the ring.
struct Ways {
    public: Option<String>,
    relay: Option<String>,
    lead_away: bool,
    until_input_ends: bool,
    json: bool,
}

/// What a node begins with.
struct Beginning {
    membership: Membership,
    wire: Arc<Quic>,
    facts: Vec<skep_ring::fact::Fact>,
    fetch: Fetch,
    consent: Consent,
    hands: Hands,
    near: near::Near,
    ways: Ways,
}

/// Runs the node until it is stopped.
fn work(owned: &Owned, begun: Beginning, portal: Option<&serve::Job>) -> Result<Exit> {
    let Beginning { membership, wire, facts, fetch, consent, hands, near, ways } = begun;
    let Ways { public, relay, lead_away, until_input_ends, json } = ways;
    let folder = owned.archive.layout().settings();
    let identity = Identity::load(&folder)?.ok_or_else(|| Failure::new("the archive has no key"))?;
    let glue = Glue::new(&folder, membership.genesis.slice_bits, json)?;
    // Whoever ends it while it begins, or as soon as it says that it runs, ends it as cleanly as later.
    let _watch = {
        let glue = glue.clone();
        signals::watch(
            move || {
                say("ending: what is in flight comes to its end; Ctrl-C again ends at once");
                glue.stop();
            },
            || (),
        )?
    };
    let cut = Cut::new(wire.clone());
    let parts = Parts {
        membership,
        secret: identity.secret(),
        archive: owned.archive.clone(),
        wire: cut.clone() as Arc<dyn Wire>,
        work: glue.clone(),
        facts,
        portal: public,
        relay: relay.clone(),
    };
    let running: Running = Shell::start(parts).map_err(wrong("the node cannot begin"))?;
    glue.attach(&running.shell);
    let ears: Arc<dyn Ears> = cut.ears(running.ears());
    wire.listen(&ears);
    let (shell, fetches) = (running.shell.clone(), fetch.clone());
    let looks = Mutex::default();
    let node = Arc::new(Node { shell, glue: glue.clone(), fetch: fetches, consent, lead_away, near, cut, looks });
    glue.looks(&node);
    owned.ring.set(Some(node.clone()));
    if hands.contributors {
        let contributors = owned.contributors.node(&owned.archive)?;
        let others = Box::new(contributing::Others(Arc::downgrade(&running.shell)));
        contributors.know_others(others).map_err(wrong("contributors cannot work for other nodes"))?;
        glue.hands_out(&contributors);
    }
    let served = portal.map(|job| Begun::begin(owned, job, false)).transpose();
    let served = served.inspect_err(|_| glue.stop())?;
    if let Some(served) = &served {
        glue.serves(served.asker());
    }
    announce(&node, served.as_ref(), &wire, relay.as_deref(), json)?;
    if until_input_ends {
        let glue = glue.clone();
        std::thread::spawn(move || {
            // Whatever comes is not meant for a node; that nothing comes any more is.
            let _ended = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
            glue.stop();
        });
    }
    let sinks = owned.sinks.begin()?;
    sink::tell_left_out(&sinks, &mut |text| say(text));
    crawling::supervise(owned, &node, &fetch, hands);
    drop(sinks);
    if node.shell.has_left() {
        say("this node has left its network: nothing depends on it any more");
    }
    owned.ring.set(None);
    if let Some(served) = served {
        served.end();
    }
    drop((node, ears));
    running.stop();
    Ok(Exit::Done)
}

/// Says that it runs, and where.
fn announce(node: &Node, served: Option<&Begun>, wire: &Quic, relay: Option<&str>, json: bool) -> Result<()> {
    let addresses: Vec<String> = wire.addresses().iter().map(ToString::to_string).collect();
    let portal = served.map(|served| served.told["portal"].clone()).unwrap_or_default();
    if json {
        let told = json!({
            "event": "node", "node": node.shell.key().to_string(), "network": node.shell.genesis().name,
            "addresses": addresses, "portal": portal, "relay": relay,
        });
        let mut out = std::io::stdout().lock();
        return writeln!(out, "{told}").and_then(|()| out.flush()).map_err(crate::failure::output);
    }
    say(&format!("node {} of {}, at {}", node.shell.key().short(), node.shell.genesis().name, addresses.join(", ")));
    if let Some(portal) = portal.as_str() {
        say(&format!("portal {portal}"));
    }
    if let Some(relay) = relay {
        say(&format!("relay {relay}, for nodes of this network"));
    }
    say("how it stands: `skep ring`; seeds: `skep crawl --network URL`; Ctrl-C ends it");
    Ok(())
}

/// What a size comes to; the message names the flag.
pub fn size(flag: &str, text: &str) -> Result<u64> {
    amount::bytes(text).map_err(|failure| Failure::new(format!("{flag} {text} is no size")).because(failure.what))
}
