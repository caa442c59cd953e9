//! A web as it is described, in code or in a JSON file. [`World::build`](crate::World::build) makes it real.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::behaviour::{Behaviour, Trouble};
use crate::chance::Chance;
use crate::clock::Time;
use crate::layout::Shape;
use crate::limits;
use crate::robots::Robots;
use crate::words;

/// A web to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// From which all generated content is drawn.
    #[serde(default)]
    pub seed: u64,
    /// When generated hosts appear.
    #[serde(default = "begin")]
    pub begin: Time,
    /// The port that generated links carry. Without it, addresses are those of the schemes' own ports, and a client
    /// must be told where each host is (`curl --connect-to`, `--resolve`); with it, the server must listen there.
    #[serde(default)]
    pub port: Option<u16>,
    /// The hosts.
    pub hosts: Vec<HostPlan>,
}

fn begin() -> Time {
    Time::BEGIN
}

/// A host to be.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlan {
    /// Its name, without port.
    pub name: String,
    /// Where it answers; others answer 421 for it.
    #[serde(default = "addresses")]
    pub addresses: Vec<IpAddr>,
    /// Any name below its own is it, too.
    #[serde(default)]
    pub wildcard: bool,
    /// How it is spoken to.
    #[serde(default)]
    pub scheme: Scheme,
    /// Its robots.txt.
    #[serde(default)]
    pub robots: Robots,
    /// What it has.
    pub content: Content,
    /// By what its answers can be compared.
    #[serde(default)]
    pub validators: Validators,
    /// Text is sent compressed to whom accepts it.
    #[serde(default)]
    pub gzip: bool,
    /// A generated host has sitemaps.
    #[serde(default = "yes")]
    pub sitemaps: bool,
    /// A generated host has feeds.
    #[serde(default = "yes")]
    pub feeds: bool,
    /// How it behaves at the start.
    #[serde(default)]
    pub behaviour: Behaviour,
}

fn yes() -> bool {
    true
}

fn addresses() -> Vec<IpAddr> {
    vec![IpAddr::V4(Ipv4Addr::LOCALHOST)]
}

/// How a host is spoken to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// HTTP only; it has no certificate.
    #[default]
    Http,
    /// HTTPS; plain requests are redirected there.
    Https,
    /// Both alike; links say `http`.
    Both,
}

/// What a host has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Content {
    /// Pages drawn from the seed.
    Generated(Shape),
    /// The files of a folder.
    Folder(PathBuf),
    /// The commits of a git repository or bundle.
    History {
        /// Repository folder or bundle file.
        repository: PathBuf,
        /// Branch or other revision; `HEAD` or the only branch when not given.
        #[serde(default)]
        revision: Option<String>,
    },
}

/// By what the answers of a host can be compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Validators {
    /// `ETag` and `Last-Modified`.
    #[default]
    Both,
    /// `ETag`.
    Etag,
    /// `Last-Modified`.
    LastModified,
    /// Nothing: every visit brings the body.
    None,
    /// Both, and always the same, whatever the page is: a host that says for ever that nothing changed.
    Frozen,
}

impl HostPlan {
    /// A host with this content on 127.0.0.1, plain HTTP, everything else by default.
    pub fn new(name: &str, content: Content) -> HostPlan {
        HostPlan {
            name: name.into(),
            addresses: addresses(),
            wildcard: false,
            scheme: Scheme::Http,
            robots: Robots::Own,
            content,
            validators: Validators::Both,
            gzip: false,
            sitemaps: true,
            feeds: true,
            behaviour: Behaviour::default(),
        }
    }

    /// A generated host.
    pub fn generated(name: &str, shape: Shape) -> HostPlan {
        HostPlan::new(name, Content::Generated(shape))
    }

    /// A folder of files as a host.
    pub fn folder(name: &str, folder: impl Into<PathBuf>) -> HostPlan {
        HostPlan::new(name, Content::Folder(folder.into()))
    }

    /// A git repository or bundle as a host.
    pub fn history(name: &str, repository: impl Into<PathBuf>) -> HostPlan {
        HostPlan::new(name, Content::History { repository: repository.into(), revision: None })
    }

    /// With this robots.txt.
    pub fn robots(self, robots: Robots) -> HostPlan {
        HostPlan { robots, ..self }
    }

    /// Spoken to in this way.
    pub fn scheme(self, scheme: Scheme) -> HostPlan {
        HostPlan { scheme, ..self }
    }

    /// On these addresses.
    pub fn on(self, addresses: &[IpAddr]) -> HostPlan {
        HostPlan { addresses: addresses.to_vec(), ..self }
    }

    /// Behaving like this.
    pub fn behaving(self, behaviour: Behaviour) -> HostPlan {
        HostPlan { behaviour, ..self }
    }
}

/// The sizes of a mixed web.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    /// Hosts in all.
    pub hosts: u32,
    /// Sites (registrable domains) they belong to.
    pub sites: u32,
    /// Loopback addresses from 127.0.0.1 up.
    pub addresses: u32,
    /// Pages per host on average; hosts have from half to one and a half of it.
    pub pages: u32,
    /// Of a thousand hosts, how many speak HTTPS.
    pub https_permille: u32,
    /// robots.txt files of every kind; else all allow everything.
    pub robots: bool,
    /// Pages change, are born and die.
    pub changing: bool,
    /// Some hosts are slow, some refuse now and then with `Retry-After` in either form (the web's clock should then be the
    /// machine's) or without.
    pub troubled: bool,
}

impl Default for Mix {
    fn default() -> Mix {
        Mix {
            hosts: 10,
            sites: 4,
            addresses: 3,
            pages: 100,
            https_permille: 300,
            robots: true,
            changing: true,
            troubled: false,
        }
    }
}

impl Plan {
    /// A web without hosts.
    pub fn new(seed: u64) -> Plan {
        Plan { seed, begin: Time::BEGIN, port: None, hosts: Vec::new() }
    }

    /// With one more host.
    pub fn host(mut self, host: HostPlan) -> Plan {
        self.hosts.push(host);
        self
    }

    /// A web of generated hosts that belong to sites and share addresses. Most hosts of a site share its address.
    pub fn mixed(seed: u64, mix: &Mix) -> Plan {
        let chance = Chance::new(seed).of("mix");
        let sites = mix.sites.clamp(1, mix.hosts.max(1));
        let addresses = mix.addresses.clamp(1, LOOPBACK_ADDRESSES);
        let pages = mix.pages.min(limits::ITEMS_MAX);
        // One too many is enough for the world to refuse the plan.
        let hosts = mix.hosts.min(limits::HOSTS_MAX as u32 + 1);
        let mut plan = Plan::new(seed);
        for number in 0..hosts {
            let site = number % sites;
            let chance_of_site = chance.of("site").at(u64::from(site));
            let chance = chance.of("host").at(u64::from(number));
            let site_name = format!("{}-{site}.test", words::word(chance_of_site));
            let name = match number / sites {
                0 => site_name,
                1 => format!("www.{site_name}"),
                more => format!("{}-{more}.{site_name}", words::word(chance.at(1))),
            };
            let place = if chance.at(2).permille(100) { chance.at(3) } else { chance_of_site.at(1) };
            let shape = Shape::pages((pages / 2 + chance.at(4).below(u64::from(pages) + 1) as u32).max(1));
            let mut host = HostPlan::generated(&name, if mix.changing { shape } else { shape.frozen() });
            host.addresses = vec![loopback(place.below(u64::from(addresses)) as u32)];
            host.scheme = if chance.at(5).permille(mix.https_permille) { Scheme::Https } else { Scheme::Http };
            host.robots = if mix.robots { Robots::mixed(chance.at(6).below(100) as u32) } else { Robots::Allow };
            host.validators = *chance.at(7).pick(&[
                Validators::Both,
                Validators::Both,
                Validators::Etag,
                Validators::LastModified,
                Validators::None,
            ]);
            host.gzip = chance.at(8).permille(500);
            host.sitemaps = chance.at(9).permille(600);
            host.feeds = chance.at(10).permille(400);
            if mix.troubled {
                host.behaviour = troubled(chance.of("trouble"));
            }
            plan.hosts.push(host);
        }
        plan
    }
}

/// How a host of a mixed web behaves: one in five is slow, one in eight refuses now and then, one in a hundred without
/// saying for how long.
fn troubled(chance: Chance) -> Behaviour {
    let mut behaviour = match chance.below(1_000) {
        0..200 => Behaviour::slow(10 + chance.at(1).below(300)),
        _ => Behaviour::default(),
    };
    let (status, retry_after_seconds) = match chance.at(2).below(1_000) {
        0..80 => (429, Some(1 + chance.at(3).below(3))),
        80..115 => (503, Some(1 + chance.at(3).below(3))),
        115..125 => (429, None),
        _ => return behaviour,
    };
    let one_in = 10 + chance.at(4).below(20);
    let as_date = chance.at(5).permille(500);
    behaviour.trouble = Some(Trouble::Refuse { status, retry_after_seconds, as_date, one_in });
    behaviour
}

/// Addresses that [`loopback`] tells apart.
const LOOPBACK_ADDRESSES: u32 = 254 * 256;

/// The `number`th loopback address: 127.0.0.1, 127.0.0.2, … 127.0.1.1, …
pub fn loopback(number: u32) -> IpAddr {
    let (third, fourth) = ((number / 254) % 256, number % 254 + 1);
    IpAddr::V4(Ipv4Addr::new(127, 0, third as u8, fourth as u8))
}
