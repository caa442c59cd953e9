//! A planned web made real: what every host says about every path at every moment, without a server.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;

use crate::answer::Answer;
use crate::chance::Chance;
use crate::clock::Time;
use crate::folder::Folder;
use crate::generated::SITEMAP_PATH;
use crate::graph::Graph;
use crate::history::History;
use crate::layout::{Item, Kind, Layout};
use crate::limits;
use crate::plan::{Content, HostPlan, Plan, Scheme, Validators};
use crate::robots::Robots;

/// A web, without its server.
#[derive(Debug)]
pub struct World {
    hosts: Vec<Host>,
    by_name: HashMap<String, usize>,
    begin: Time,
}

/// One host of a world.
#[derive(Debug)]
pub struct Host {
    /// As it was planned.
    pub plan: HostPlan,
    /// `scheme://name[:port]`, as its own links say it.
    pub base: String,
    begin: Time,
    pub(crate) chance: Chance,
    pub(crate) source: Source,
}

/// What a host has.
#[derive(Debug)]
pub(crate) enum Source {
    Generated(Graph),
    Folder(Folder),
    History(History),
}

/// What is wrong with a plan.
#[derive(Debug)]
pub struct PlanError {
    host: String,
    because: String,
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "host `{}` cannot be served\n  because: {}", self.host, self.because)
    }
}

impl std::error::Error for PlanError {}

impl World {
    /// Makes a plan real: reads histories, checks folders, names and shapes.
    pub fn build(plan: Plan) -> Result<World, PlanError> {
        let fault = |host: &str, because: String| PlanError { host: host.into(), because };
        if plan.hosts.len() > limits::HOSTS_MAX {
            return Err(fault("*", format!("{} hosts are more than {}", plan.hosts.len(), limits::HOSTS_MAX)));
        }
        let mut by_name = HashMap::new();
        let mut layouts = Vec::new();
        for (place, host) in plan.hosts.iter().enumerate() {
            if let Some(because) = fault_of(host) {
                return Err(fault(&host.name, because));
            }
            if by_name.insert(host.name.clone(), place).is_some() {
                return Err(fault(&host.name, "there are two of that name".into()));
            }
            if let Content::Generated(shape) = &host.content {
                layouts.push(Layout {
                    base: base(host, plan.port),
                    chance: Chance::new(plan.seed).of(&host.name),
                    begin: plan.begin,
                    shape: shape.clone(),
                });
            }
        }
        // A host alone has no others to link to.
        let neighbours: Arc<[Layout]> = if layouts.len() > 1 { layouts.clone().into() } else { Arc::new([]) };
        let mut layouts = layouts.into_iter();
        let mut hosts = Vec::with_capacity(plan.hosts.len());
        for host in plan.hosts {
            let source = match &host.content {
                Content::Generated(_) => Source::Generated(Graph {
                    layout: layouts.next().expect("one layout was made per generated host"),
                    neighbours: neighbours.clone(),
                    feeds: host.feeds,
                    sitemaps: host.sitemaps,
                }),
                Content::Folder(path) => {
                    let folder = Folder::open(path);
                    Source::Folder(folder.map_err(|e| fault(&host.name, format!("{}: {e}", path.display())))?)
                }
                Content::History { repository, revision } => {
                    let history = History::open(repository, revision.as_deref());
                    Source::History(history.map_err(|e| fault(&host.name, e.to_string()))?)
                }
            };
            let chance = Chance::new(plan.seed).of(&host.name);
            hosts.push(Host { base: base(&host, plan.port), begin: plan.begin, chance, plan: host, source });
        }
        Ok(World { hosts, by_name, begin: plan.begin })
    }

    /// All hosts, as planned.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// When generated hosts appear.
    pub fn begin(&self) -> Time {
        self.begin
    }

    /// The host of a name (without port), in any case; the nearest above it that answers for all names below.
    pub fn host(&self, name: &str) -> Option<&Host> {
        let name = name.to_ascii_lowercase();
        if let Some(place) = self.by_name.get(&name) {
            return Some(&self.hosts[*place]);
        }
        let mut above = name.as_str();
        while let Some((_, rest)) = above.split_once('.') {
            above = rest;
            if let Some(place) = self.by_name.get(above) {
                return Some(&self.hosts[*place]).filter(|host| host.plan.wildcard);
            }
        }
        None
    }

    /// What a URL's host says about it at a moment; `None` when the host is not of this world.
    pub fn answer(&self, url: &str, t: Time) -> Option<io::Result<Answer>> {
        let (secure, name, path) = parts(url)?;
        Some(self.host(name)?.answer(secure, path, t))
    }

    /// What a host's robots.txt finally says at a moment, redirects followed across hosts: status and body. Status 3xx
    /// means that they do not end.
    pub fn robots(&self, secure: bool, host: &Host, t: Time) -> io::Result<(u16, Vec<u8>)> {
        let (mut secure, mut host) = (secure, host);
        let mut path = "/robots.txt".to_string();
        let mut status = 302;
        for _ in 0..=limits::ROBOTS_HOPS_MAX {
            let answer = host.answer(secure, &path, t)?;
            status = answer.status;
            let Some(to) = answer.location.filter(|_| (300..400).contains(&status)) else {
                return Ok((status, crate::truth::read(&answer.body)?));
            };
            if to.starts_with('/') && !to.starts_with("//") {
                path = to;
                continue;
            }
            let to = if to.starts_with("//") { format!("{}:{to}", if secure { "https" } else { "http" }) } else { to };
            let Some((to_secure, name, to_path)) = parts(&to) else {
                return Ok((404, Vec::new()));
            };
            let Some(next) = self.host(name) else {
                return Ok((503, Vec::new())); // no such host: it cannot be reached
            };
            (secure, host, path) = (to_secure, next, to_path.to_string());
        }
        Ok((status, Vec::new()))
    }
}

impl Host {
    /// What the host says about a path (with its query) at a moment.
    pub fn answer(&self, secure: bool, path: &str, t: Time) -> io::Result<Answer> {
        if self.plan.scheme == Scheme::Https && !secure {
            return Ok(Answer::redirect(301, &format!("{}{path}", self.base)));
        }
        if let Some(answer) = self.plan.robots.answer(path, self.sitemap().as_deref(), self.begin) {
            return Ok(self.with_validators(answer));
        }
        let answer = match &self.source {
            Source::Generated(graph) => graph.answer(path, t),
            Source::Folder(folder) => folder.answer(path)?,
            Source::History(history) => history.answer(path, t)?,
        };
        Ok(self.with_validators(answer))
    }

    /// Some of its living pages beside `/`, as paths; none of a host whose content is not generated.
    pub(crate) fn ordinary(&self, t: Time) -> Vec<String> {
        let Source::Generated(graph) = &self.source else {
            return Vec::new();
        };
        let pages = (1..graph.layout.shape.pages).take(limits::ORDINARY_LINKS);
        let items = pages.map(|number| Item { kind: Kind::Page, number });
        items.filter(|item| graph.layout.version(*item, t).is_some()).map(|item| graph.layout.path(item)).collect()
    }

    /// When it appears.
    pub(crate) fn begin(&self) -> Time {
        self.begin
    }

    /// Asking it may read files.
    pub(crate) fn blocks(&self) -> bool {
        !matches!(self.source, Source::Generated(_))
    }

    /// Speaks TLS.
    pub fn secure(&self) -> bool {
        self.plan.scheme != Scheme::Http
    }

    /// The address of its index of sitemaps.
    pub fn sitemap(&self) -> Option<String> {
        match &self.source {
            Source::Generated(graph) if graph.sitemaps => Some(format!("{}{SITEMAP_PATH}", self.base)),
            _ => None,
        }
    }

    fn with_validators(&self, mut answer: Answer) -> Answer {
        if matches!(self.plan.validators, Validators::None | Validators::LastModified) {
            answer.etag = None;
        }
        if matches!(self.plan.validators, Validators::None | Validators::Etag) {
            answer.last_modified = None;
        }
        if self.plan.validators == Validators::Frozen && answer.status == 200 {
            (answer.etag, answer.last_modified) = (Some("\"frozen\"".into()), Some(Time::BEGIN));
        }
        answer
    }
}

fn base(host: &HostPlan, port: Option<u16>) -> String {
    let scheme = if host.scheme == Scheme::Https { "https" } else { "http" };
    match port {
        None => format!("{scheme}://{}", host.name),
        Some(port) => format!("{scheme}://{}:{port}", host.name),
    }
}

fn fault_of(host: &HostPlan) -> Option<String> {
    let lawful = |c: u8| c.is_ascii_lowercase() || c.is_ascii_digit() || c == b'-' || c == b'.';
    if host.name.is_empty() || host.name.len() > 253 || !host.name.bytes().all(lawful) {
        return Some("a name has up to 253 lower-case letters, digits, dots and hyphens".into());
    }
    if host.addresses.is_empty() {
        return Some("it has no address".into());
    }
    // A bridge between namespaces of this machine has private addresses.
    let stays = |address: &&std::net::IpAddr| match address {
        std::net::IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        std::net::IpAddr::V6(address) => address.is_loopback(),
    };
    if let Some(address) = host.addresses.iter().find(|address| !stays(address)) {
        return Some(format!("{address} is no loopback or private address; a test web stays on its machine"));
    }
    match &host.robots {
        Robots::Status(status) if !(200..600).contains(status) => {
            return Some(format!("robots.txt cannot have status {status}"));
        }
        Robots::Redirect(hops) if *hops > 100 => return Some("robots.txt redirects more than 100 times".into()),
        Robots::RedirectTo(to) if to.bytes().any(|byte| !byte.is_ascii_graphic()) || !absolute(to) => {
            return Some(format!("robots.txt redirects to `{to}`, which begins with neither http(s):// nor a slash"));
        }
        _ => {}
    }
    if let Content::Generated(shape) = &host.content
        && let Some(fault) = shape.fault()
    {
        return Some(fault);
    }
    host.behaviour.fault()
}

fn absolute(to: &str) -> bool {
    ["/", "http://", "https://"].iter().any(|start| to.starts_with(start))
}

/// Scheme, host name and path with query of a URL of this world.
pub(crate) fn parts(url: &str) -> Option<(bool, &str, &str)> {
    let (secure, rest) = match url.strip_prefix("https://") {
        Some(rest) => (true, rest),
        None => (false, url.strip_prefix("http://")?),
    };
    let rest = rest.split('#').next()?;
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let name = authority.split(':').next()?;
    Some((secure, name, if path.is_empty() { "/" } else { path }))
}
