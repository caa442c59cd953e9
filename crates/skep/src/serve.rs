//! `skep serve`: the archive over HTTP.

use crate::failure::{Failure, Result, output, say};
use crate::job::{self, Exit, Tell};
use crate::node::Others;
use crate::owner::{self, Owned, Place};
use crate::{signals, sink};
use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::Archive;
use skep_crawl::Question;
use skep_portal::{Access, Elsewhere, Serving, Settings, Stop, Watched};
use std::io::Write;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Serve the archive: pages as they were, the index, Memento
#[derive(Args)]
#[command(after_help = "\
In a browser: http://127.0.0.1:7070/web/2019/https://example.org/ is the page as it was nearest to the end of 2019; /web/*/URL lists all
versions, and id_ behind the time (/web/2019id_/URL) gives what was fetched, byte for byte. Archived pages are shown under a name of their
own (replay.localhost), so that they cannot reach the portal, and nothing they do leaves the archive.
For programs: /cdx/search/cdx?url= answers as the Internet Archive's index, /cdx?url= and /COLLECTION/cdx?url= as pywb's,
/COLLECTION?url= as OutbackCDX; /web/timemap/link/URL lists versions for Memento clients, /web/URL with Accept-Datetime is their TimeGate.
/health and /metrics are for machines that watch this one. One line for each request goes to standard output.
--auth FILE (printf %s TOKEN | sha256sum gives the hash):
  reading = \"public\"                  # or \"token\": then reading needs one as well
  [[token]]
  name = \"indexer\"
  sha256 = \"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08\"
  may = \"write\"                       # read, write, administer
--rules FILE (the first that fits decides; what none fits is shown):
  [[rule]]
  urls = [\"*.example.org\", \"http://example.com/private*\"]
  from = \"2019\"                       # captures from then on, up to `to`
  action = \"block\"                    # allow, block, or embargo with days = N
Rules in settings/access.toml of the archive, below a line `version = 1`, hold without being typed, behind those that are.
Others can crawl into, add to and ask about the archive meanwhile. Ctrl-C lets answers under way come to their end.
Examples:
  skep serve
  skep serve --listen 0.0.0.0:80 --replay-origin http://replay.example.org --rules rules.toml
  skep serve --proxy-mode 127.0.0.1:7071      and the past is browsed under its own addresses; http://skep.archive/ tells how")]
pub struct Typed {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = LISTEN)]
    listen: String,
    /// Where archived pages are shown: another name for this server (by default replay.localhost on a loopback address; elsewhere the
    /// same name, in a sandbox)
    #[arg(long, value_name = "URL")]
    replay_origin: Option<String>,
    /// Let scripts of archived pages run (by default only on a loopback address)
    #[arg(long, value_name = "yes|no", value_parser = yes_or_no)]
    scripts: Option<bool>,
    /// Who may read and write: a TOML file with tokens
    #[arg(long, value_name = "FILE")]
    auth: Option<PathBuf>,
    /// What is shown: a TOML file with rules by URL and date
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Speak TLS, with a certificate chain and a key in PEM files
    #[arg(long, value_name = "CERT,KEY")]
    tls: Option<String>,
    /// Also be a proxy, through which a browser sees the past under its own addresses
    #[arg(long, value_name = "ADDR:PORT")]
    proxy_mode: Option<String>,
    /// Hand bundles of crawls out to contributors, who fetch them from where they are
    #[arg(long)]
    contributors: bool,
    /// Requests a second that one client may send (by default 200, and as many as they like from this machine)
    #[arg(long, value_name = "N")]
    requests: Option<u32>,
}

/// Where a portal listens, if nothing else is said.
pub const LISTEN: &str = "127.0.0.1:7070";

fn yes_or_no(text: &str) -> std::result::Result<bool, String> {
    match text {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("yes or no".to_owned()),
    }
}

/// As meant.
#[derive(Clone, Serialize, Deserialize)]
pub struct Job {
    /// By which it is told to stop.
    name: String,
    listen: SocketAddr,
    replay_origin: Option<String>,
    scripts: Option<bool>,
    auth: Option<String>,
    rules: Option<String>,
    pub tls: Option<(PathBuf, PathBuf)>,
    proxy: Option<SocketAddr>,
    requests: Option<u32>,
    /// Bundles are handed out to contributors.
    #[serde(default)]
    pub contributors: bool,
}

/// Lines of the access log on their way to whoever asked; when there are more, the newest are left out and counted.
const LINES_WAITING: usize = 4096;
/// How often whoever asked is looked after: gone, the portal ends.
const LOOK_AFTER: Duration = Duration::from_millis(500);

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let job = typed.meant()?;
    let _watch = {
        let (folder, name) = (place.archive.clone(), job.name.clone());
        signals::watch(
            move || {
                say("ending when the answers under way are out; Ctrl-C again ends at once");
                owner::stop_portal(&folder, &name);
            },
            || (),
        )?
    };
    owner::perform(place, false, &job::Job::Serve(Box::new(job)), &mut Spoken { json: place.json })
}

impl Job {
    /// A portal there, and everything else as usual.
    pub fn at(listen: &str) -> Result<Job> {
        Ok(Job {
            name: unique(),
            listen: address(listen)?,
            replay_origin: None,
            scripts: None,
            auth: None,
            rules: None,
            tls: None,
            proxy: None,
            requests: None,
            contributors: false,
        })
    }

    /// The same for those whom this file names.
    pub fn admit(&mut self, file: &Path) -> Result<()> {
        let text = std::fs::read_to_string(file).map_err(|error| Failure::reading(file, error))?;
        access(Some(&text), None)?;
        self.auth = Some(text);
        Ok(())
    }
}

fn unique() -> String {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    format!("{}-{}", std::process::id(), since.as_nanos())
}

impl Typed {
    fn meant(self) -> Result<Job> {
        let text = |path: &Option<PathBuf>| -> Result<Option<String>> {
            let read = |path: &PathBuf| std::fs::read_to_string(path).map_err(|error| Failure::reading(path, error));
            path.as_ref().map(read).transpose()
        };
        let (auth, rules) = (text(&self.auth)?, text(&self.rules)?);
        access(auth.as_deref(), rules.as_deref())?;
        let tls = self.tls.as_deref().map(tls);
        Ok(Job {
            name: unique(),
            listen: address(&self.listen)?,
            replay_origin: self.replay_origin,
            scripts: self.scripts,
            auth,
            rules,
            tls: tls.transpose()?,
            proxy: self.proxy_mode.as_deref().map(address).transpose()?,
            requests: self.requests,
            contributors: self.contributors,
        })
    }
}

/// Chain and key, as `--tls` names them.
pub fn tls(pair: &str) -> Result<(PathBuf, PathBuf)> {
    let (chain, key) = pair
        .split_once(',')
        .ok_or_else(|| Failure::new(format!("--tls {pair} does not name two files")).hint("--tls chain.pem,key.pem"))?;
    let whole = |path: &str| Path::new(path).canonicalize().map_err(|error| Failure::reading(Path::new(path), error));
    Ok((whole(chain)?, whole(key)?))
}

fn address(text: &str) -> Result<SocketAddr> {
    let found = text.to_socket_addrs().ok().and_then(|mut found| found.next());
    found.ok_or_else(|| {
        Failure::new(format!("{text:?} is no address to listen at")).hint("127.0.0.1:7070, [::1]:7070, 0.0.0.0:80")
    })
}

pub fn access(auth: Option<&str>, rules: Option<&str>) -> Result<Access> {
    let mut access = Access::default();
    if let Some(text) = rules {
        access = access.with_rules(text).map_err(|why| Failure::new("the rules make no sense").because(why))?;
    }
    if let Some(text) = auth {
        access =
            access.with_users(text).map_err(|why| Failure::new("the file of tokens makes no sense").because(why))?;
    }
    Ok(access)
}

/// The same, and behind the rules that were typed those of the archive: whatever portal or export answers, they hold.
pub fn access_to(archive: &Archive, auth: Option<&str>, rules: Option<&str>) -> Result<Access> {
    let access = access(auth, rules)?;
    let path = archive.layout().settings().join(ACCESS_FILE);
    let Some(own) = skep_archive::settings::read(&path, ACCESS_VERSION)? else { return Ok(access) };
    access.with_rules(&own).map_err(|why| {
        Failure::new(format!("{} makes no sense", path.display()))
            .because(why)
            .hint("rules stand there as in --rules FILE")
    })
}

/// Rules of an archive, under its settings.
const ACCESS_FILE: &str = "access.toml";
const ACCESS_VERSION: u32 = 1;

/// The portals that this process serves.
#[derive(Default)]
pub struct Portals(Mutex<Vec<(String, Stop)>>);

impl Portals {
    /// Stops the one of this name; false if there is none.
    pub fn stop(&self, name: &str) -> bool {
        let portals = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = portals.iter().find(|(known, _)| known == name);
        found.inspect(|(_, stop)| stop.stop()).is_some()
    }

    fn with<T>(&self, name: &str, serving: &Serving, work: impl FnOnce() -> T) -> T {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lock().push((name.to_owned(), serving.stopper()));
        let done = work();
        lock().retain(|(known, _)| known != name);
        done
    }
}

/// A portal beside other work of this process, without a log.
pub struct Begun {
    serving: Serving,
    /// Where it is.
    pub told: Value,
}

impl Begun {
    /// Begins to serve; `anywhere` takes a free port where the one that is meant is taken.
    pub fn begin(owned: &Owned, job: &Job, anywhere: bool) -> Result<Begun> {
        let serve = |job: &Job| begin(owned, job, Settings::at(job.listen));
        let (serving, told) = match serve(job) {
            Err(_) if anywhere => serve(&Job { listen: SocketAddr::new(job.listen.ip(), 0), ..job.clone() })?,
            begun => begun?,
        };
        Ok(Begun { serving, told })
    }

    /// Answers the portals of other nodes.
    pub fn asker(&self) -> skep_portal::Asker {
        self.serving.asker()
    }

    /// Ends when the answers under way are out.
    pub fn end(self) {
        self.serving.stopper().stop();
        self.serving.wait();
    }
}

/// How the watches of the archive stand, for the portal.
fn watches(owned: &Owned) -> skep_portal::Tells {
    let (crawls, archive) = (Arc::clone(&owned.crawls), Arc::clone(&owned.archive));
    Arc::new(move || {
        let told = crawls.ask(&archive, &Question::Watches).map_err(|failure| failure.what)?;
        let number = |watch: &Value, name: &str| watch[name].as_u64().unwrap_or(0);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let one = |watch: &Value| Watched {
            name: text(&watch["name"]),
            tags: watch["tags"].as_array().into_iter().flatten().map(text).collect(),
            policy: text(&watch["policy"]),
            budget: text(&watch["budget"]),
            seeds: watch["seeds"].as_array().into_iter().flatten().map(text).collect(),
            pages: number(watch, "pages"),
            sampled: number(watch, "sampled"),
            fresh: watch["fresh"].as_f64().unwrap_or(0.0),
            oldest_check_ms: watch["oldest_check_ms"].as_i64(),
            waiting: number(watch, "waiting"),
            overdue: number(watch, "overdue"),
            overdue_bundles: number(watch, "overdue_bundles"),
            out: number(watch, "out"),
        };
        Ok(told.iter().map(one).collect())
    })
}

/// Begins to serve, and says where.
fn begin(owned: &Owned, job: &Job, mut settings: Settings) -> Result<(Serving, Value)> {
    settings.watches = Some(watches(owned));
    settings.access = access_to(&owned.archive, job.auth.as_deref(), job.rules.as_deref())?;
    settings.replay_origin.clone_from(&job.replay_origin);
    settings.tls.clone_from(&job.tls);
    settings.text = Some(owned.text.clone());
    settings.elsewhere = owned.ring.get().map(|node| Arc::new(Others(node)) as Arc<dyn Elsewhere>);
    settings.changes = owned.changes.clone();
    (settings.scripts, settings.proxy, settings.requests_per_second) = (job.scripts, job.proxy, job.requests);
    let node = job.contributors.then(|| owned.contributors.node(&owned.archive)).transpose()?;
    settings.contributors.clone_from(&node);
    let talk = settings.talk.clone();
    crate::crawl::raise_open_files();
    let scheme = if job.tls.is_some() { "https" } else { "http" };
    let serving = skep_portal::serve(owned.archive.clone(), settings).map_err(|error| match error {
        skep_portal::Error::Listen { .. } => {
            Failure::new(error.to_string()).hint("--listen ADDR:PORT names another place")
        }
        other => Failure::new(other.to_string()),
    })?;
    [Some(serving.address()), serving.proxy_address()].into_iter().flatten().for_each(|at| owned.listening.add(at));
    if let Some(node) = &node {
        node.open(true);
        let plain = job.tls.is_none() && !serving.address().ip().is_loopback();
        if plain {
            talk("contributors elsewhere speak https only: --tls CERT,KEY, or a server in front that does");
        }
    }
    let began = json!({
        "event": "serving",
        "portal": format!("{scheme}://{}/", serving.address()),
        "replay": serving.replay_origin(),
        "proxy": serving.proxy_address().map(|address| address.to_string()),
    });
    Ok((serving, began))
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let (lines, coming) = sync_channel::<Value>(LINES_WAITING);
    let mut settings = Settings::at(job.listen);
    let (log, talk) = (lines.clone(), lines);
    // Nobody is kept waiting for a line of the log.
    settings.log = Some(Arc::new(move |line: &str| drop(log.try_send(json!({ "event": "request", "line": line })))));
    settings.talk = Arc::new(move |line: &str| drop(talk.try_send(json!({ "event": "talk", "line": line }))));
    let (serving, began) = begin(owned, job, settings)?;
    let sinks = owned.sinks.begin()?;
    let result = owned.portals.with(&job.name, &serving, || -> Result<()> {
        tell.line(began)?;
        sink::tell_left_out(&sinks, &mut |text| tell.talk(text));
        while !serving.has_stopped() {
            match coming.recv_timeout(LOOK_AFTER) {
                Ok(line) => tell.line(line)?,
                // Whoever asked may be gone without a word.
                Err(RecvTimeoutError::Timeout) => tell.line(json!({ "event": "still" }))?,
                Err(RecvTimeoutError::Disconnected) => break,
            }
        }
        Ok(())
    });
    // What is still to be told ends with whoever hears it; the answers under way do not.
    if job.contributors {
        owned.contributors.node(&owned.archive)?.open(false);
    }
    let stop = serving.stopper();
    stop.stop();
    serving.wait();
    drop(sinks);
    for line in coming.try_iter() {
        if result.is_err() || tell.line(line).is_err() {
            break;
        }
    }
    result.map(|()| Exit::Done)
}

/// Says what the portal tells: requests to standard output, the rest to a person.
struct Spoken {
    json: bool,
}

impl Spoken {
    fn print(&self, text: &str) -> Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}").and_then(|()| out.flush()).map_err(output)
    }
}

impl Tell for Spoken {
    fn line(&mut self, value: Value) -> Result<()> {
        let text = |name: &str| value[name].as_str().unwrap_or_default().to_owned();
        match value["event"].as_str() {
            Some("still") => Ok(()),
            Some("serving") if !self.json => {
                say(&format!("serving {}", text("portal")));
                if let Some(replay) = value["replay"].as_str() {
                    say(&format!("archived pages are shown at {replay}"));
                }
                if let Some(proxy) = value["proxy"].as_str() {
                    say(&format!("as a proxy at {proxy}"));
                }
                say("Ctrl-C ends it");
                Ok(())
            }
            Some("talk") if !self.json => {
                say(&format!("note: {}", text("line")));
                Ok(())
            }
            Some("request") if !self.json => self.print(&text("line")),
            _ => self.print(&value.to_string()),
        }
    }

    fn bytes(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn talk(&mut self, text: &str) {
        say(text);
    }

    fn progress(&mut self, _: u64, _: u64) {}
}
