//! `skep ring`: who leads, who copies, what is missing, what moves.

use crate::failure::{Failure, Result, printable};
use crate::job::{self, Exit, Tell};
use crate::node::{Node, crawling};
use crate::owner::{self, Owned, Place};
use crate::show::{self, Collected};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::Key as UrlKey;
use skep_ring::fact::{Fact, SignedRetirement};
use skep_ring::node::Event;
use skep_ring::shell::membership;
use skep_url::key::site_of_surt;
use skep_url::{Suffixes, Url};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;

/// How the ring stands: who leads, who copies, what is missing, what moves
#[derive(Args)]
#[command(after_help = "\
Asked of the node that runs for this archive.
settled   every slice has as many holders as it should, and each of them has all that this node has
copies    holders of a slice that have all of it, of those that should
near      what was gained by letting the holder nearest to a site fetch for who leads (`skep node --near`)
`leave` is said by a node about itself: its copies go to others first, then it ends. `retire` is said by its owner (or by who made the
network) about a node that will not return: what it held is copied from the others at once.
`split` is said by who made the network about a site with more than 2^20 URLs, and for good: what is heard of it from then on is spread over
slices, and one of their leaders after the other visits the site.
Examples:
  skep ring
  skep ring where https://example.org/page
  skep ring repair 17
  skep ring retire 4f1c
  skep ring split example.org
Exit code 1 if the ring is not settled, if nobody holds the URL, or if there is no such node.")]
pub struct Typed {
    #[command(subcommand)]
    action: Option<Action>,
}

impl Typed {
    pub fn status() -> Typed {
        Typed { action: Some(Action::Status) }
    }
}

#[derive(Subcommand, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Action {
    /// Nodes, slices, copies, what is going on (the default)
    Status,
    /// Who holds a URL, and who leads there
    Where {
        /// The URL
        url: String,
    },
    /// Copy a slice that has too few holders now, whatever the usual patience
    Repair {
        /// Its number
        slice: u32,
    },
    /// This node goes: copies first, then it ends
    Leave,
    /// A node will not return
    Retire {
        /// The beginning of its key
        node: String,
    },
    /// A site is too large for one slice: its URLs are spread from now on
    Split {
        /// The site, as `skep ring` names it
        site: String,
        /// Into two to the power of so many places; 2 by default
        #[arg(long, value_name = "N", default_value_t = 2)]
        bits: u8,
    },
    /// The network no longer crawls this
    Stop {
        /// The crawl's name
        name: String,
    },
}

/// As meant.
#[derive(Serialize, Deserialize)]
pub struct Job {
    action: Action,
}

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let mut told = Collected::default();
    let job = Job { action: typed.action.unwrap_or(Action::Status) };
    let exit = owner::perform(place, false, &job::Job::Ring(job), &mut told)?;
    show::objects(&told.0, place.json, shown)?;
    Ok(exit)
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let node = owned.ring.node()?;
    match &job.action {
        Action::Status => {
            let status = status(&node);
            let settled = status["settled"] == true;
            tell.line(status)?;
            Ok(if settled { Exit::Done } else { Exit::No })
        }
        Action::Where { url } => {
            let mut known = false;
            for slice in node.shell.slices_of(&UrlKey::of(url)) {
                let mut holders = node.shell.holders(slice);
                let here = node.shell.holds(slice);
                if here {
                    holders.insert(0, node.shell.key());
                }
                let nodes: Vec<String> = holders.iter().map(ToString::to_string).collect();
                let leader = node.shell.leader(slice).map(|leader| leader.to_string());
                known |= !nodes.is_empty();
                tell.line(json!({ "url": url, "slice": slice, "leader": leader, "holders": nodes, "here": here }))?;
            }
            Ok(if known { Exit::Done } else { Exit::No })
        }
        Action::Repair { slice } => {
            if *slice >= node.shell.genesis().slices() {
                let slices = node.shell.genesis().slices();
                return Err(Failure::new(format!("there is no slice {slice}")).hint(format!("0 to {}", slices - 1)));
            }
            if !node.shell.holds(*slice) {
                return Err(Failure::new(format!("slice {slice} is not held here"))
                    .hint("`skep ring where URL` says where; repair it at a node that holds it"));
            }
            node.shell.tell(Event::Repair { slice: *slice });
            tell.talk("what is missing is copied now; `skep ring` shows it");
            Ok(Exit::Done)
        }
        Action::Leave => {
            node.shell.want(false);
            node.shell.tell(Event::Leave);
            tell.talk("this node leaves when its copies are elsewhere; `skep ring` shows how far that is");
            Ok(Exit::Done)
        }
        Action::Retire { node: which } => retire(owned, &node, which, tell),
        Action::Split { site, bits } => split(owned, &node, site, *bits, tell),
        Action::Stop { name } => crawling::stop(&node, name),
    }
}

/// Splits a site: said by who made the network, and for good.
fn split(owned: &Owned, node: &Arc<Node>, typed: &str, bits: u8, tell: &mut dyn Tell) -> Result<Exit> {
    let url = if typed.contains("://") { typed.to_owned() } else { format!("http://{typed}/") };
    let Ok(url) = Url::parse(&url) else {
        return Err(Failure::new(format!("{typed} is no site")).hint("`skep ring split example.org`"));
    };
    let key = url.key();
    let site = site_of_surt(key.surt(), &Suffixes::compiled());
    let settings = owned.archive.layout().settings();
    let owner = membership::owner(&settings, || Err("there is no owner's key here".into()))
        .map_err(crate::node::wrong("no site can be split from here"))?;
    if !node.shell.genesis().admission.contains(&skep_ring::Seal::key(&owner)) {
        return Err(Failure::new("only who made the network splits a site")
            .hint("`skep ring split` where the key is with which the network was made"));
    }
    let wrong = |why: String| Failure::new(format!("{site} cannot be split")).because(why);
    let split = node.shell.split(key.site_hash(), bits, &owner).map_err(wrong)?;
    let since = skep_warc::date::rfc3339(i64::try_from(split.since_ms).unwrap_or(i64::MAX));
    tell.line(json!({ "split": site, "bits": split.bits, "since": since }))?;
    Ok(Exit::Done)
}

/// Sites that are split, and whose turn it is where this node says so.
fn splits(node: &Node) -> Value {
    let shell = &node.shell;
    let all = shell.splits();
    let told = all.iter().map(|(site, split)| {
        let since = skep_warc::date::rfc3339(i64::try_from(split.since_ms).unwrap_or(i64::MAX));
        let visitor = shell.visitor(site).map(|visitor| visitor.to_string());
        json!({ "site": format!("{site:08x}"), "bits": split.bits, "since": since, "slices": shell.slices_of_site(site), "visitor": visitor })
    });
    told.collect()
}

fn retire(owned: &Owned, node: &Arc<Node>, which: &str, tell: &mut dyn Tell) -> Result<Exit> {
    let status = node.shell.status();
    let fits: Vec<_> =
        status.nodes.iter().filter(|member| member.node.starts_with(&which.to_ascii_lowercase())).collect();
    let [one] = fits[..] else {
        return Err(Failure::new(format!("{} nodes begin with {which}", fits.len())).hint("`skep ring` lists them"));
    };
    if one.state == "here" {
        return Err(Failure::new("a node does not retire itself").hint("`skep ring leave` lets this one go"));
    }
    let settings = owned.archive.layout().settings();
    let owner = membership::owner(&settings, || Err("there is no owner's key here".into()))
        .map_err(crate::node::wrong("nobody can be retired from here"))?;
    let key = one.node.parse().map_err(|()| Failure::new("a key that makes no sense"))?;
    let is_founder = node.shell.genesis().admission.contains(&skep_ring::Seal::key(&owner));
    if one.owner != skep_ring::Seal::key(&owner).to_string() && !is_founder {
        return Err(Failure::new(format!("{which} is not yours"))
            .because("only its owner, or who made the network, can say that it will not return"));
    }
    let retirement = SignedRetirement::new(node.shell.genesis().id(), key, &owner);
    node.shell.tell(Event::Learn(vec![Fact::Retirement(Arc::new(retirement))]));
    tell.line(json!({ "retired": one.node }))?;
    Ok(Exit::Done)
}

/// How the node stands, with the crawl that runs.
pub fn status(node: &Node) -> Value {
    let mut status = json!(node.shell.status());
    status["crawl"] = match node.glue.progress() {
        Some((name, progress)) => json!({ "name": name, "progress": progress }),
        None => Value::Null,
    };
    status["near"] = json!(node.near.sums());
    status["splits"] = splits(node);
    let crawls = crawling::crawls(node).into_iter();
    status["crawls"] = crawls.map(|crawl| json!({ "name": crawl.name, "runs": crawl.runs })).collect();
    status
}

/// Nodes that are there, and where, as the node that runs for this archive knows them; nobody where none runs.
pub fn others(place: &Place) -> Vec<(skep_ring::Key, SocketAddr)> {
    let mut told = Collected::default();
    let job = job::Job::Ring(Job { action: Action::Status });
    if !matches!(owner::ask(&place.archive, &job, &mut told), Ok(Some(_))) {
        return Vec::new();
    }
    let nodes = told.0.iter().filter_map(|status| status["nodes"].as_array()).flatten();
    let there = nodes.filter(|node| node["state"] == "present");
    let place = |node: &Value| {
        let address = node["addresses"].as_array()?.first()?.as_str()?.parse().ok()?;
        Some((node["node"].as_str()?.parse().ok()?, address))
    };
    there.filter_map(place).collect()
}

fn short(key: &Value) -> String {
    key.as_str().unwrap_or_default().chars().take(8).collect()
}

/// What came of giving bundles to holders nearer to the site; nothing where nothing did.
fn nearer(near: &Value) -> String {
    let number = |name: &str| near[name].as_u64().unwrap_or(0);
    let mut out = String::new();
    if number("measured") > 0 {
        out += &format!(
            "near: {} hosts are nearer to other holders, who fetched {} of {} bundles, {} pages; {} ms of connecting saved\n",
            number("hosts"),
            number("back"),
            number("bundles"),
            number("urls"),
            near["connect_ms_saved"]
        );
    }
    if number("followed") > 0 {
        out += &format!("near: {} bundles were fetched here for others who lead\n", number("followed"));
    }
    out
}

/// Bodies that slices share; nothing where they share none.
fn shared(bodies: &Value) -> String {
    let number = |name: &str| bodies[name].as_u64().unwrap_or(0);
    let mut out = String::new();
    if number("referrers") > 0 {
        out += &format!(
            "bodies: {} URLs of slices led here refer to bodies of other slices; {} saved\n",
            number("referrers"),
            show::bytes(number("saved_bytes"))
        );
    }
    if number("waiting") > 0 {
        out += &format!("bodies: {} removed ones wait until all who refer to them have their own\n", number("waiting"));
    }
    if number("lost") > 0 {
        out += &format!("bodies: {} to which slices led here refer are with none of their holders\n", number("lost"));
    }
    out
}

fn shown(told: &Value) -> String {
    if !told["url"].is_null() {
        let holders: Vec<String> = told["holders"].as_array().into_iter().flatten().map(short).collect();
        let leader = told["leader"].as_str().map_or("nobody".to_owned(), |_| short(&told["leader"]));
        return format!("slice {}  leader {leader}  holders {}\n", told["slice"], holders.join(" "));
    }
    let text = |value: &Value| -> String { value.as_str().unwrap_or_default().chars().map(printable).collect() };
    if !told["split"].is_null() {
        let (site, since) = (text(&told["split"]), text(&told["since"]));
        return format!("{site} is split by {} bits: what is heard of it from {since} on\n", told["bits"]);
    }
    if told["network"].is_null() {
        return format!("retired {}\n", short(&told["retired"]));
    }
    let number = |name: &str| told[name].as_u64().unwrap_or(0);
    let nodes = told["nodes"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut out = format!(
        "network {}: {} nodes, {} slices, {} copies wanted; this node leads {}\n",
        text(&told["network"]),
        nodes.len(),
        number("slices"),
        number("copies"),
        number("leads")
    );
    for node in nodes {
        out += &format!(
            "  {}  {:<8}  holds {:<5}  {:<7}  zone {:<8}  protocol {}  {}\n",
            short(&node["node"]),
            text(&node["state"]),
            node["holds"],
            format!("{} GB", node["capacity_gb"]),
            text(&node["zone"]),
            node["protocol"],
            node["addresses"].as_array().and_then(|all| all.first()).map(text).unwrap_or_default()
        );
    }
    let (newest, oldest) = (told["speaks"][0].as_u64().unwrap_or(0), told["speaks"][1].as_u64().unwrap_or(0));
    let spoken = nodes.iter().filter(|node| node["state"] == "present" || node["state"] == "leaving");
    let spoken: BTreeSet<u64> = spoken.filter_map(|node| node["protocol"].as_u64()).collect();
    if spoken.iter().any(|protocol| *protocol != newest) {
        let all: Vec<String> = spoken.iter().map(u64::to_string).collect();
        out += &format!(
            "this program speaks protocols {oldest} to {newest}, others up to {}: each two speak the newest that both know\n",
            all.join(" and ")
        );
    }
    if told["relayed"].is_object() {
        let relayed = |name: &str| told["relayed"][name].as_u64().unwrap_or(0);
        out += &format!(
            "the relay of this node: {} nodes connected, {} bytes carried, {} connections refused\n",
            relayed("nodes"),
            relayed("bytes"),
            relayed("refused")
        );
    }
    if told["few_owners"] == true {
        out += "fewer owners than copies: copies stand on different nodes of the same owners\n";
    }
    if told["acts"] != true {
        out += "too few others see this node just now: it neither leads nor grants\n";
    }
    if told["full"] == true {
        out += "the disk of this node is full: it leads nothing and copies nothing before there is room\n";
    }
    if told["mute"] == true {
        out += "this node cannot write to its disk, and keeps silent\n";
    }
    if let Some(crawl) = told["crawl"]["name"].as_str() {
        let progress = &told["crawl"]["progress"];
        out += &format!(
            "crawl {crawl}: here {} visited, {} waiting, {} out, {} links on their way\n",
            progress["visits"].as_u64().unwrap_or(0),
            progress["waiting"].as_u64().unwrap_or(0),
            progress["out"].as_u64().unwrap_or(0),
            progress["unsent"].as_u64().unwrap_or(0)
        );
    }
    for large in told["crawl"]["progress"]["large"].as_array().into_iter().flatten() {
        let site = text(&large[0]);
        out += &format!(
            "{site}: {} of its URLs are known, too many for one slice; `skep ring split {site}` spreads what is new, \
             where the key is with which the network was made\n",
            large[1]
        );
    }
    for split in told["splits"].as_array().into_iter().flatten() {
        let visitor = split["visitor"].as_str().map(|_| format!(", visited by {}", short(&split["visitor"])));
        let slices = split["slices"].as_array().map_or(0, Vec::len);
        let (site, since) = (text(&split["site"]), text(&split["since"]));
        out += &format!("site {site} is split into {slices} slices since {since}{}\n", visitor.unwrap_or_default());
    }
    out += &nearer(&told["near"]);
    out += &shared(&told["bodies"]);
    for one in told["held"].as_array().into_iter().flatten().filter(|one| !one["copying_to"].is_null()) {
        let copied = one["copied_bytes"].as_u64().unwrap_or(0);
        let left = match one["copying_left_s"].as_u64() {
            Some(seconds @ ..120) => format!(", about {seconds} s left"),
            Some(seconds) => format!(", about {} min left", seconds / 60),
            None => String::new(),
        };
        out += &format!(
            "slice {} is copied to {}: {} of {}{left}\n",
            one["slice"],
            short(&one["copying_to"]),
            show::bytes(copied),
            show::bytes(one["bytes"].as_u64().unwrap_or(0)),
        );
    }
    match told["settled"] == true {
        true => out += "settled: every slice has its holders, and all of them have all that is here\n",
        false => {
            for why in told["unsettled"].as_array().into_iter().flatten() {
                out += &format!("not settled: {}\n", text(why));
            }
        }
    }
    out
}
