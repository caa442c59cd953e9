//! `skep contribute`: lends bandwidth to a node, within the limits of whoever owns this machine.

use crate::amount;
use crate::contribute_screen::Screen;
use crate::failure::{Failure, Result, output, printable, say};
use crate::job::Exit;
use crate::owner::Place;
use crate::signals;
use clap::{Args, ValueEnum};
use serde_json::Value;
use skep_contribute::contributor::{self, Ending, Settings};
use skep_contribute::meter::Wishes;
use skep_contribute::networks::Networks;
use skep_contribute::pipe::Setup;
use skep_contribute::trust::Place as Country;
use skep_contribute::unit::Unit;
use skep_contribute::{block_on, control};
use skep_url::Url;
use std::io::{ErrorKind, IsTerminal, Write};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};

/// Lend bandwidth to a node: fetch what it asks for, politely, and keep nothing
#[derive(Args)]
#[command(after_help = "\
Bundles of URLs come from the node, pages are fetched from here, and what changed goes back. Three processes share the work: one speaks to
the node, one connects by the rules of this command (public addresses, ports 80 and 443), and one, which may open no file and no
connection, reads what sites send. No site is asked more often than twice a second or 10,000 times a day, whatever the node says.
--memory bounds the process that reads pages. A key is made in --dir at the first start, and the node's key is remembered there; results stay there until the node has them.
Ctrl-C finishes what is in hand and stops; a second one ends at once, and loses nothing that the node has.
Examples:
  skep contribute https://node.example
  skep contribute https://node.example --rate 2MB/s --month 50GB --hours 22-06
  skep contribute --status; skep contribute --pause; skep contribute --finish-and-stop
  sudo skep contribute https://node.example --month 50GB --install
  skep contribute https://node.example --month 50GB --install > skep-contribute.service
Exit code 0 if it finished, 3 if the node wants no more of it, or does not answer while results wait for it.")]
pub struct Typed {
    /// The node: https://…, or http:// on this machine
    #[arg(value_name = "URL")]
    node: Option<String>,
    /// Bytes a second, both ways together, as in 2MB/s
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Bytes a calendar month, as in 50GB
    #[arg(long, value_name = "SIZE")]
    month: Option<String>,
    /// Only within these hours of the day, as in 22-06
    #[arg(long, value_name = "FROM-TO")]
    hours: Option<String>,
    /// Connections to sites at once
    #[arg(long, value_name = "N", default_value_t = 8)]
    connections: usize,
    /// Share of one processor, as in 25%
    #[arg(long, value_name = "N%", default_value = "100%")]
    cpu: String,
    /// Disk for results that the node has not taken yet
    #[arg(long, value_name = "SIZE", default_value = "1GB")]
    disk: String,
    /// A host, *.DOMAIN or country (.de) that is not visited; may be repeated
    #[arg(long, value_name = "HOST|COUNTRY")]
    avoid: Vec<String>,
    /// A table of announced prefixes, each with its network and its country (`192.0.2.0/24 64500 DE`): a country that is avoided is also told
    /// by where a host stands
    #[arg(long, value_name = "FILE")]
    networks: Option<PathBuf>,
    /// Only while this machine is not on battery
    #[arg(long)]
    mains_only: bool,
    /// Let private addresses, special addresses and other ports be visited
    #[arg(long)]
    allow_private: bool,
    /// The team that gets the credit
    #[arg(long, value_name = "NAME", default_value = "")]
    team: String,
    /// Where key, results and socket are (by default ~/.local/state/skep-contribute)
    #[arg(long, value_name = "DIR", env = "SKEP_CONTRIBUTE_DIR")]
    dir: Option<PathBuf>,
    /// Where on this machine a page shows how it stands; `no` for none
    #[arg(long, value_name = "ADDR:PORT|no", default_value = "127.0.0.1:7077")]
    page: String,
    /// Source address of connections, where this machine has several
    #[arg(long, value_name = "ADDR")]
    from: Option<IpAddr>,
    /// Where a host is, whatever name servers say; may be repeated
    #[arg(long, value_name = "HOST=ADDR[:PORT]")]
    resolve: Vec<String>,
    /// Ask these name servers instead of the system's; may be repeated
    #[arg(long, value_name = "ADDR:PORT")]
    dns: Vec<SocketAddr>,
    /// Trust the certificates of this PEM file, too
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Put a systemd unit that runs this command behind the system's own walls where systemd reads it (root, on a terminal), or print it
    #[arg(long)]
    install: bool,
    /// How the running one stands
    #[arg(long, group = "word")]
    status: bool,
    /// Let the running one rest
    #[arg(long, group = "word")]
    pause: bool,
    /// Let it go on
    #[arg(long, group = "word")]
    resume: bool,
    /// Let it finish what is in hand, return it, and stop
    #[arg(long, group = "word")]
    finish_and_stop: bool,
    /// Have the running one's fetcher try everything it must not be able to do
    #[arg(long, group = "word")]
    try_sandbox: bool,
    /// One of the processes that this command starts
    #[arg(long, value_enum, hide = true)]
    role: Option<Role>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Role {
    Broker,
    Fetcher,
}

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let failed = |why: String| Failure::new(why);
    if let Some(role) = typed.role {
        let ended = match role {
            Role::Broker => block_on(skep_contribute::broker::run()),
            Role::Fetcher => block_on(skep_contribute::fetcher::run()),
        };
        return ended.map(|()| Exit::Done).map_err(failed);
    }
    let folder = folder(typed.dir.as_deref())?;
    let words = [
        (typed.status, "status"),
        (typed.pause, "pause"),
        (typed.resume, "resume"),
        (typed.finish_and_stop, "finish-and-stop"),
        (typed.try_sandbox, "try"),
    ];
    if let Some((_, word)) = words.iter().find(|(said, _)| *said) {
        return tell(&folder, word, place.json);
    }
    let settings = typed.meant(folder, place.memory_bytes)?;
    if typed.install {
        return install(&typed, &settings);
    }
    let _watch = {
        let folder = settings.folder.clone();
        signals::watch(
            move || {
                say("finishing what is in hand; Ctrl-C again ends at once");
                let _it_has_ended = control::say(&folder, "finish");
            },
            || (),
        )?
    };
    say(&format!("lending bandwidth to {}; Ctrl-C finishes and stops", settings.node));
    let screen = std::rc::Rc::new(Screen::begin(settings.folder.clone()));
    let json = place.json;
    let shown = screen.clone();
    let line: Box<dyn Fn(&str)> = Box::new(move |line| match json {
        true => {
            let mut out = std::io::stdout().lock();
            let _nobody_reads =
                writeln!(out, "{}", serde_json::json!({ "event": "note", "text": line })).and_then(|()| out.flush());
        }
        false => shown.say(line),
    });
    let ended = block_on(contributor::run(settings, line, std::future::pending()));
    drop(screen);
    match ended.map_err(failed)? {
        Ending::Finished => {
            say("finished; thank you");
            Ok(Exit::Done)
        }
        Ending::Unreturned(bundles) => {
            say(&format!("finished, but the node does not answer: {bundles} bundles are returned at the next start"));
            Ok(Exit::Undone)
        }
        Ending::Stopped(why) => {
            say(&format!("the node wants no more: {why}"));
            Ok(Exit::Undone)
        }
    }
}

/// Where it keeps its things.
fn folder(given: Option<&Path>) -> Result<PathBuf> {
    let folder = match given {
        Some(folder) => Some(folder.to_path_buf()),
        None => std::env::var_os("STATE_DIRECTORY")
            .map(PathBuf::from)
            .or_else(|| std::env::var_os("XDG_STATE_HOME").map(|state| Path::new(&state).join("skep-contribute")))
            .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".local/state/skep-contribute"))),
    };
    let folder = folder
        .ok_or_else(|| Failure::new("nothing says where to keep its key").hint("--dir DIR names a folder for it"))?;
    std::path::absolute(&folder).map_err(|error| Failure::reading(&folder, error))
}

impl Typed {
    fn meant(&self, folder: PathBuf, memory_bytes: u64) -> Result<Settings> {
        let node = self.node.as_deref().ok_or_else(|| {
            Failure::new("nothing says to which node")
                .hint("`skep contribute https://node.example`; --status asks the running one")
        })?;
        let node = Url::parse(node).map_err(|_| {
            Failure::new(format!("{node:?} is no URL of a node")).hint("`skep contribute https://node.example`")
        })?;
        skep_contribute::link::check(&node).map_err(|why| {
            Failure::new(why).hint("what is sent could be read and changed on the way; nodes elsewhere speak https")
        })?;
        let size = |flag: &str, text: &Option<String>| -> Result<u64> {
            match text.as_deref().map(amount::bytes).transpose()? {
                Some(0) => {
                    let hint = format!("without {flag} there is no bound; --pause lets the running one rest");
                    Err(Failure::new(format!("{flag} 0 leaves nothing to lend")).hint(hint))
                }
                size => Ok(size.unwrap_or(0)),
            }
        };
        let rate = self.rate.as_ref().map(|rate| rate.trim_end_matches("/s").to_owned());
        let percent: Option<u32> =
            self.cpu.trim_end_matches('%').parse().ok().filter(|percent| (1..=100).contains(percent));
        let cpu_percent = percent.ok_or_else(|| {
            Failure::new(format!("{:?} is no share of a processor", self.cpu)).hint("--cpu 25% is a quarter of one")
        })?;
        if self.connections == 0 {
            return Err(Failure::new("no connection is too few").hint("--pause lets the running one rest"));
        }
        let page = match self.page.as_str() {
            "no" => None,
            text => Some(text.parse().map_err(|_| {
                Failure::new(format!("{text:?} is no place for a page")).hint("--page 127.0.0.1:7077, or --page no")
            })?),
        };
        for text in &self.resolve {
            text.parse::<skep_fetch::Override>()
                .map_err(|error| Failure::new("--resolve cannot be used").because(error))?;
        }
        let roots_pem = self.ca.as_ref().map(|path| std::fs::read(path).map_err(|error| Failure::reading(path, error)));
        let wishes = Wishes {
            rate: size("--rate", &rate)?,
            month_bytes: size("--month", &self.month)?,
            hours: self.hours.as_deref().map(hours).transpose()?,
            connections: self.connections,
            cpu_percent,
            disk_bytes: amount::bytes(&self.disk)?,
            mains_only: self.mains_only,
            avoid: self.avoid.iter().map(|text| avoided(text)).collect::<Result<_>>()?,
        };
        let networks = self.networks.as_ref().map(|path| table(path)).transpose()?;
        let avoid = if networks.is_some() { countries(&wishes.avoid) } else { Vec::new() };
        if networks.is_some() && avoid.is_empty() {
            return Err(
                Failure::new("--networks says where hosts stand, and no country is avoided").hint("--avoid .de")
            );
        }
        let program = std::env::current_exe()
            .map_err(|error| Failure::new("this program does not know itself").because(error))?;
        Ok(Settings {
            folder,
            setup: Setup {
                user_agent: crate::crawl::user_agent(Some(&format!("contributor of {}", node.host_name()))),
                allow_private: self.allow_private,
                resolve: self.resolve.clone(),
                name_servers: self.dns.clone(),
                from: self.from,
                roots_pem: roots_pem.transpose()?,
                paced: wishes.rate > 0,
                memory_bytes,
                networks,
                avoid,
            },
            node,
            wishes,
            team: self.team.chars().take(64).collect(),
            page,
            program: (program, vec!["contribute".into(), "--role".into()]),
        })
    }
}

/// What is avoided, in the form that names of hosts have.
fn avoided(text: &str) -> Result<String> {
    let name = text.trim_start_matches("*.").trim_start_matches('.');
    let beginning = &text[..text.len() - name.len()];
    let url = Url::parse(&format!("http://{name}/")).ok();
    let is_name = !name.contains(['/', ':', '@', '?', '#', '\\', '*']) && matches!(beginning, "" | "." | "*.");
    match url.filter(|_| is_name) {
        Some(url) => Ok(format!("{beginning}{}", url.host_name().trim_end_matches('.'))),
        None => Err(Failure::new(format!("{text:?} is no host and no country"))
            .hint("--avoid example.org, --avoid '*.example.org', or --avoid .de for a country")),
    }
}

/// The countries among what is avoided, as tables of networks name them.
fn countries(avoid: &[String]) -> Vec<Country> {
    let country = |avoid: &String| match avoid.strip_prefix('.')?.as_bytes() {
        // Names of the United Kingdom end otherwise than its code.
        b"uk" => Some(Country(*b"GB")),
        [one, two] => Some(Country([one.to_ascii_uppercase(), two.to_ascii_uppercase()])),
        _ => None,
    };
    avoid.iter().filter_map(country).collect()
}

/// A table of networks that can be read, by a name that means the same everywhere.
fn table(path: &Path) -> Result<PathBuf> {
    let text = std::fs::read_to_string(path).map_err(|error| Failure::reading(path, error))?;
    let (_, wrong) = Networks::parse(&text);
    if wrong > 0 {
        return Err(Failure::new(format!("{wrong} lines of {} are no networks", path.display()))
            .hint("a line is a prefix, the number of its network and its country: 192.0.2.0/24 64500 DE"));
    }
    path.canonicalize().map_err(|error| Failure::reading(path, error))
}

/// Hours as typed: `22-06`.
fn hours(text: &str) -> Result<(u8, u8)> {
    let read = |hour: &str| hour.trim().parse::<u8>().ok().filter(|hour| *hour <= 24);
    let pair = text.split_once('-').and_then(|(from, to)| Some((read(from)?, read(to)?)));
    // From an hour to itself is a whole day to some, and nothing to others.
    pair.filter(|(from, to)| from != to).map(|(from, to)| (from % 24, to % 24)).ok_or_else(|| {
        Failure::new(format!("{text:?} are no hours")).hint("--hours 22-06 is from ten in the evening to six")
    })
}

/// Says a word to the running one, and shows what it says.
fn tell(folder: &Path, word: &str, json: bool) -> Result<Exit> {
    let told = match control::say(folder, word) {
        Ok(told) => told,
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
            return Err(Failure::new(format!("the contributor in {} does not answer", folder.display()))
                .hint("it lets everything else on this machine go first; try again when there is less to do"));
        }
        Err(error) => {
            return Err(Failure::new(format!("no contributor runs in {}", folder.display()))
                .because(error)
                .hint("`skep contribute URL` starts one; --dir names another folder"));
        }
    };
    if let Some(why) = told["error"].as_str() {
        return Err(Failure::new(format!("the contributor in {} does not understand", folder.display())).because(why));
    }
    let text = if json { format!("{told}\n") } else { shown(&told) };
    std::io::stdout().write_all(text.as_bytes()).map_err(output)?;
    let possible = told["tried"].as_array().is_some_and(|tried| tried.iter().any(|one| one[1] == true));
    Ok(if possible { Exit::No } else { Exit::Done })
}

fn shown(told: &Value) -> String {
    let mut out = String::new();
    let clean = |value: &Value| -> String {
        let text = match value {
            Value::Null => "not known yet".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        text.chars().map(printable).collect()
    };
    if let Some(tried) = told["tried"].as_array() {
        for one in tried {
            let how = if one[1] == true { "POSSIBLE" } else { "refused" };
            out.push_str(&format!("{how:<9} {}: {}\n", clean(&one[0]), clean(&one[2])));
        }
        return out;
    }
    for name in [
        "node",
        "name",
        "seen-from",
        "state",
        "why-not-more",
        "pages",
        "bundles-returned",
        "connections",
        "bytes",
        "month-bytes",
        "rate",
        "disk-bytes",
    ] {
        out.push_str(&format!("{:<17} {}\n", name.replace('-', " "), clean(&told[name])));
    }
    for one in told["in-hand"].as_array().into_iter().flatten() {
        out.push_str(&format!("{:<17} {}: {}\n", "in hand", clean(&one["host"]), clean(&one["doing"])));
    }
    for one in told["sandbox"].as_array().into_iter().flatten() {
        out.push_str(&format!("{:<17} {}\n", "sandbox", clean(one)));
    }
    out
}

/// Puts the unit where systemd reads it, or prints it.
fn install(typed: &Typed, settings: &Settings) -> Result<Exit> {
    let mut command = vec![settings.program.0.display().to_string(), "contribute".into(), settings.node.to_string()];
    let mut word = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            command.extend([name.to_owned(), value]);
        }
    };
    word("--rate", typed.rate.clone());
    word("--month", typed.month.clone());
    word("--hours", typed.hours.clone());
    word("--connections", Some(typed.connections.to_string()));
    word("--cpu", Some(typed.cpu.clone()));
    word("--memory", Some(settings.setup.memory_bytes.to_string()));
    word("--disk", Some(typed.disk.clone()));
    word("--page", Some(typed.page.clone()));
    word("--team", Some(typed.team.clone()).filter(|team| !team.is_empty()));
    word("--from", typed.from.map(|from| from.to_string()));
    typed.avoid.iter().for_each(|avoid| word("--avoid", Some(avoid.clone())));
    word("--networks", settings.setup.networks.as_ref().map(|path| path.display().to_string()));
    typed.dns.iter().for_each(|dns| word("--dns", Some(dns.to_string())));
    typed.resolve.iter().for_each(|resolve| word("--resolve", Some(resolve.clone())));
    // The unit runs elsewhere: what was typed beside a folder is not found from there.
    let ca = typed.ca.as_ref().map(|path| std::path::absolute(path).map_err(|error| Failure::reading(path, error)));
    word("--ca", ca.transpose()?.map(|path| path.display().to_string()));
    if typed.mains_only {
        command.push("--mains-only".into());
    }
    if typed.allow_private {
        command.push("--allow-private".into());
    }
    let ours = typed.ca.iter().map(|path| std::path::absolute(path).map_err(|error| Failure::reading(path, error)));
    let mut files = ours.collect::<Result<Vec<_>>>()?;
    files.push(settings.program.0.clone());
    files.extend(settings.setup.networks.clone());
    let unit = Unit {
        allowed: reached(&typed.dns, settings.node.address()),
        files,
        command,
        state: "skep-contribute".into(),
        cpu_percent: settings.wishes.cpu_percent,
        memory_bytes: settings.setup.memory_bytes * 2 + (256 << 20),
        public_only: !typed.allow_private,
    };
    let start = "systemctl daemon-reload && systemctl enable --now skep-contribute";
    // For the system: its walls are none that a user's own systemd can put up.
    match std::io::stdout().is_terminal() && rustix::process::geteuid().is_root() {
        true => {
            put(Path::new(UNIT), &unit.text())?;
            say(&format!("{UNIT} is there; next: {start}"));
        }
        false => {
            std::io::stdout().write_all(unit.text().as_bytes()).map_err(output)?;
            say(&format!("as root, on a terminal, this command puts it at {UNIT}; or put it there, then: {start}"));
        }
    }
    say(&format!(
        "it is asked how it stands, as root: skep contribute --status --dir {STATE}; so is it paused and resumed"
    ));
    if let Some(folder) = &typed.dir {
        say(&format!("its key and results are in {STATE}, not in {}", folder.display()));
    }
    Ok(Exit::Done)
}

/// Where systemd reads the unit.
const UNIT: &str = "/etc/systemd/system/skep-contribute.service";

/// Writes a unit. Another one that is there stays: somebody may have changed it by hand.
fn put(path: &Path, unit: &str) -> Result<()> {
    let failed = |error| {
        Failure::new(format!("{} cannot be written", path.display())).because(error).hint("`--install | cat` prints it")
    };
    match std::fs::read_to_string(path) {
        Ok(there) if there == unit => Ok(()),
        Ok(_) => Err(Failure::new(format!("another unit is at {}", path.display())).hint(format!(
            "`--install > {}` replaces it; `--install | diff {0} -` shows how they differ",
            path.display()
        ))),
        Err(error) if error.kind() == ErrorKind::NotFound => std::fs::write(path, unit).map_err(failed),
        Err(error) => Err(failed(error)),
    }
}

/// Where the unit has its folder.
const STATE: &str = "/var/lib/skep-contribute";

/// What has to be reached in a private network: name servers, those of this machine where none are named, and the node.
fn reached(dns: &[SocketAddr], node: Option<IpAddr>) -> Vec<IpAddr> {
    let listed = match dns.is_empty() {
        true => std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default(),
        false => String::new(),
    };
    let listed = listed.lines().filter_map(|line| {
        let address = line.trim().strip_prefix("nameserver")?.trim();
        address.split('%').next()?.parse().ok()
    });
    let is_private = |address: &IpAddr| {
        !address.is_loopback() && skep_url::address::class(*address) != skep_url::address::Class::Public
    };
    dns.iter().map(SocketAddr::ip).chain(listed).chain(node).filter(is_private).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hours_as_typed() {
        assert_eq!(
            (hours("22-06").unwrap(), hours("0-24").unwrap(), hours("9 - 17").unwrap()),
            ((22, 6), (0, 0), (9, 17))
        );
        for wrong in ["", "22", "25-3", "-1-3", "a-b", "7-7", "0-0"] {
            assert!(hours(wrong).unwrap_err().hint.is_some(), "{wrong}");
        }
    }

    #[test]
    fn a_unit_that_somebody_changed_is_not_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.service");
        put(&path, "one").unwrap();
        put(&path, "one").unwrap();
        assert!(put(&path, "other").unwrap_err().hint.is_some());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "one");
        assert!(put(&folder.path().join("nowhere/a.service"), "one").unwrap_err().because.is_some());
    }

    #[test]
    fn countries_that_are_avoided_have_the_codes_of_tables() {
        let avoid = [".de", ".uk", "de", "*.fr", ".example", ".example.it"].map(str::to_owned);
        assert_eq!(countries(&avoid), [Country(*b"DE"), Country(*b"GB")]);
    }

    #[test]
    fn what_is_avoided_is_named_as_hosts_are() {
        for (typed, meant) in [
            ("example.org", "example.org"),
            ("Example.ORG.", "example.org"),
            ("*.shop.example", "*.shop.example"),
            (".DE", ".de"),
            ("m\u{fc}nchen.example", "xn--mnchen-3ya.example"),
            ("192.0.2.1", "192.0.2.1"),
        ] {
            assert_eq!(avoided(typed).unwrap(), meant, "{typed}");
        }
        for wrong in ["", "https://example.org/", "example.org/path", "example.org:80", "*", "a.*.example", "..de"] {
            assert!(avoided(wrong).unwrap_err().hint.is_some(), "{wrong}");
        }
    }
}
