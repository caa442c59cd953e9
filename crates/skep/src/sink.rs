//! `skep sink`: where changes are carried, and how that stands.

use crate::changes::share;
use crate::failure::{Failure, Result, say};
use crate::job::{self, Exit, Tell};
use crate::owner::{self, Owned, Place};
use crate::show::{self, Column, Screen};
use crate::{amount, signals, when};
use clap::{Args, Subcommand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_changes::Cursor;
use skep_changes::sink::{
    Definition, Kind, Running, Since, Standing, Template, Wanted, check_name, new_secret, public_nkey,
};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Carry changes elsewhere: to webhooks and chats, mailboxes, NATS JetStream, PostgreSQL
#[derive(Args)]
#[command(after_help = "\
A sink has a cursor of its own, which moves when the other side has acknowledged. One that is down only lags: it is tried again at growing
distances, and then gets everything, at least once; an event that comes again has the same key. Sinks work while `skep serve`,
`skep watch`, `skep crawl`, `skep node` or `skep sink run` does.
Examples:
  skep sink add postgres postgresql://skep@localhost/changes
  skep sink add webhook https://example.org/hook --class text --min-change 1%
  skep sink add webhook https://hooks.slack.com/services/… --template slack --host example.org
  skep sink add smtp smtp://mail.example.org:587?tls=required --from skep@example.org --to me@example.org
  skep sink add nats nats://localhost:4222
  skep sink list
  skep sink replay postgres --since 2026-11")]
pub struct Typed {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Add a sink
    Add {
        #[command(subcommand)]
        kind: Box<Add>,
    },
    /// Tell how sinks stand: cursor, lag, last error, next try
    List,
    /// Forget a sink and its cursor; what was delivered stays where it is
    Remove {
        /// Its name
        name: String,
    },
    /// Send a sink back, or forward: it delivers again what came since then
    Replay {
        /// Its name
        name: String,
        /// Behind this cursor, from this time on, from the `start`, or only what comes from `now` on
        #[arg(long, value_name = "CURSOR|TIME|start|now")]
        since: String,
    },
    /// Have the sinks work until Ctrl-C
    Run {
        /// Only deliver what is there. Exit code 3 if a sink could not
        #[arg(long)]
        once: bool,
        /// Only this sink, with --once
        #[arg(requires = "once")]
        name: Option<String>,
    },
}

#[derive(Subcommand)]
enum Add {
    /// To an HTTP address: a JSON array of CloudEvents, or a message for a chat. Signed; redirects are not followed
    #[command(after_help = "\
Every request has the headers of the Standard Webhooks: webhook-id, webhook-timestamp and webhook-signature, which is `v1,` and the
base64 of HMAC-SHA256 over `id.timestamp.body` under the secret (the bytes whose base64 stands behind `whsec_`). Answers 2xx acknowledge; 429 and
503 with Retry-After are obeyed; 410 ends it. The secret may also stand in SKEP_SINK_SECRET, the token in SKEP_SINK_TOKEN.")]
    Webhook {
        /// The address; for matrix that of a room's send/m.room.message, for ntfy that of a topic
        url: String,
        /// What is sent: json, slack, discord, matrix, teams, ntfy
        #[arg(long, value_name = "T", default_value = "json")]
        template: String,
        /// Sign with this secret (by default one is made and shown once)
        #[arg(long, value_name = "SECRET", env = "SKEP_SINK_SECRET", hide_env_values = true)]
        secret: Option<String>,
        /// Send `Authorization: Bearer TOKEN`
        #[arg(long, value_name = "TOKEN", env = "SKEP_SINK_TOKEN", hide_env_values = true)]
        token: Option<String>,
        #[command(flatten)]
        common: Common,
    },
    /// To mailboxes: what changed since the last mail, together
    Smtp {
        /// The server: smtp://user:password@host:587?tls=required (STARTTLS), smtps://host:465, smtp://localhost:25
        url: String,
        /// From whom
        #[arg(long, value_name = "ADDRESS")]
        from: String,
        /// To whom; may be given several times
        #[arg(long, value_name = "ADDRESS", required = true)]
        to: Vec<String>,
        /// At most one mail in this time
        #[arg(long, value_name = "T", default_value = "15m")]
        every: String,
        /// The password, if it is not in the URL
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
    /// To NATS JetStream: one message an event, Nats-Msg-Id is its key
    Nats {
        /// The server: nats://user:password@host:4222, tls://…
        url: String,
        /// The stream; made if there is none
        #[arg(long, value_name = "NAME", default_value = "SKEP")]
        stream: String,
        /// What subjects begin with; the type of the event follows: skep.changes.page.new
        #[arg(long, value_name = "S", default_value = "skep.changes")]
        subject: String,
        /// By which the server knows us
        #[arg(long, value_name = "TOKEN", env = "SKEP_SINK_TOKEN", hide_env_values = true)]
        token: Option<String>,
        /// A file with the seed of a user's nkey (`nk -gen user`): what the server asks is signed with it
        #[arg(long, value_name = "FILE", conflicts_with = "token")]
        nkey_file: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
    /// To PostgreSQL: tables urls, changes and links, made and kept by Skep
    Postgres {
        /// The database: postgresql://user:password@host:5432/name?sslmode=require
        url: String,
        /// The schema of the tables; made if there is none
        #[arg(long, value_name = "NAME")]
        schema: Option<String>,
        /// The password, if it is not in the URL
        #[arg(long, value_name = "FILE")]
        password_file: Option<PathBuf>,
        #[command(flatten)]
        common: Common,
    },
}

#[derive(Args)]
struct Common {
    /// Its name (by default its kind)
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where it begins: a cursor, a time, `start` or `now` (by default now; for postgres the start)
    #[arg(long, value_name = "CURSOR|TIME|start|now")]
    since: Option<String>,
    /// Only this host; `*.example.org` for all below it
    #[arg(long, value_name = "H")]
    host: Option<String>,
    /// Only URLs that begin like this
    #[arg(long, value_name = "P")]
    prefix: Option<String>,
    /// Only this class, as `skep changes` has them; may be given several times (postgres gets all unless told otherwise)
    #[arg(long = "class", value_name = "C")]
    classes: Vec<String>,
    /// Only changes of at least this share of the words; what is born or dies is told all the same
    #[arg(long, value_name = "1%")]
    min_change: Option<String>,
    /// Only this media type, as in text/html or image/*
    #[arg(long, value_name = "TYPE")]
    mime: Option<String>,
    /// Only pages that were visited for the watch or crawl of this name
    #[arg(long, value_name = "NAME")]
    watch: Option<String>,
}

/// As meant.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "sink")]
pub enum Job {
    Add { name: Option<String>, definition: Definition, since: From },
    List,
    Remove { name: String },
    Replay { name: String, since: From },
    Run { once: bool, name: Option<String> },
}

/// Where a sink begins.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    Start,
    Now,
    After(String),
    Time(i64),
}

impl Job {
    pub fn writes(&self) -> bool {
        !matches!(self, Job::List)
    }
}

/// How often whoever asked is looked after.
const LOOK_AFTER: Duration = Duration::from_millis(500);
const STILL: &str = "still";

const COLUMNS: &[Column] = &[
    ("name", |v| show::text(v, "name")),
    ("kind", |v| show::text(v, "kind")),
    ("delivered", |v| show::text(v, "delivered")),
    ("rejected", |v| show::text(v, "rejected")),
    ("lag", |v| show::text(v, "lag")),
    ("cursor", |v| show::text(v, "cursor")),
    ("next try", |v| show::text(v, "next_try")),
    ("target", |v| show::text(v, "target")),
    ("last error", |v| {
        let told = |name: &str, before: &str| v[name].as_str().map(|text| format!("{before}{text}"));
        let both = [told("last_error", ""), told("last_rejected", "rejected: ")];
        both.into_iter().flatten().collect::<Vec<_>>().join("; ")
    }),
];

pub fn run(typed: Typed, place: &Place) -> Result<Exit> {
    let (mut create, mut made) = (false, None);
    let job = match typed.command {
        Command::Add { kind } => {
            create = true;
            kind.meant(&mut made)?
        }
        Command::List => Job::List,
        Command::Remove { name } => Job::Remove { name },
        Command::Replay { name, since } => Job::Replay { name, since: since_typed(&since)? },
        Command::Run { once, name } => Job::Run { once, name },
    };
    let stays = matches!(job, Job::Run { once: false, .. });
    let stopped = Arc::new(AtomicBool::new(false));
    let _watch = match stays {
        true => {
            let stopped = Arc::clone(&stopped);
            Some(signals::watch(move || stopped.store(true, Ordering::Relaxed), || ())?)
        }
        false => None,
    };
    let mut printer = Printer { screen: Screen::new(place.json, COLUMNS), stopped: Arc::clone(&stopped) };
    let done = owner::perform(place, create, &job::Job::Sink(Box::new(job)), &mut printer);
    printer.screen.finish()?;
    if let (Ok(Exit::Done), Some(secret)) = (&done, &made) {
        say(&format!("the secret of its signatures, shown this once: {secret}"));
    }
    match done {
        Err(failure) if failure.reader_left && stopped.load(Ordering::Relaxed) => Ok(Exit::Done),
        done => done,
    }
}

fn since_typed(text: &str) -> Result<From> {
    Ok(match text {
        "start" => From::Start,
        "now" => From::Now,
        text if text.parse::<Cursor>().is_ok() => From::After(text.to_owned()),
        text => From::Time(when::earliest(text)?),
    })
}

impl Add {
    /// `made` is set to a secret that nobody knows yet.
    fn meant(self, made: &mut Option<String>) -> Result<Job> {
        let (kind, common) = match self {
            Add::Webhook { url, template, secret, token, common } => {
                if !(url.starts_with("http://") || url.starts_with("https://")) {
                    return Err(
                        Failure::new(format!("{url:?} is no address of a webhook")).hint("https://example.org/hook")
                    );
                }
                let template = Template::from_name(&template).ok_or_else(|| {
                    let all: Vec<&str> = Template::ALL.iter().map(|template| template.name()).collect();
                    Failure::new(format!("{template:?} is no template")).hint(format!("there are: {}", all.join(", ")))
                })?;
                let secret = match secret {
                    None if template == Template::Json => {
                        let secret = fresh_secret()?;
                        *made = Some(secret.clone());
                        Some(secret)
                    }
                    secret => secret,
                };
                (Kind::Webhook { url, template, secret, token }, common)
            }
            Add::Smtp { url, from, to, every, password_file, common } => {
                if !(url.starts_with("smtp://") || url.starts_with("smtps://")) {
                    return Err(Failure::new(format!("{url:?} is no mail server"))
                        .hint("smtp://mail.example.org:587?tls=required"));
                }
                let url = with_password(url, password_file)?;
                (Kind::Smtp { url, from, to, every_ms: amount::duration_ms(&every)? }, common)
            }
            Add::Nats { url, stream, subject, token, nkey_file, common } => {
                let word = |text: &str| !text.is_empty() && !text.contains([' ', '\t', '*', '>']);
                if !word(&stream)
                    || stream.contains('.')
                    || !word(&subject)
                    || subject.starts_with('.')
                    || subject.ends_with('.')
                {
                    return Err(Failure::new(format!(
                        "{stream:?} and {subject:?} cannot name a stream and its subjects"
                    ))
                    .hint("--stream SKEP --subject skep.changes"));
                }
                let nkey = nkey_file.map(|file| seed_in(&file)).transpose()?;
                (Kind::Nats { url, stream, subject, token, nkey }, common)
            }
            Add::Postgres { url, schema, password_file, common } => {
                if !(url.starts_with("postgres://") || url.starts_with("postgresql://")) {
                    return Err(
                        Failure::new("that is no address of a database").hint("postgresql://user@host/database")
                    );
                }
                (Kind::Postgres { url: with_password(url, password_file)?, schema }, common)
            }
        };
        if let Some(name) = &common.name {
            check_name(name)?;
        }
        let since = match common.since.as_deref() {
            Some(text) => since_typed(text)?,
            None if matches!(kind, Kind::Postgres { .. }) => From::Start,
            None => From::Now,
        };
        let Common { name, host, prefix, classes, min_change, mime, watch, .. } = common;
        let wanted = Wanted {
            host: host.as_deref().map(crate::changes::host).transpose()?,
            prefix,
            class: classes,
            min_change: min_change.as_deref().map(share).transpose()?.unwrap_or(0),
            mime,
            watch,
        };
        wanted.filter()?;
        Ok(Job::Add { name, definition: Definition::new(kind, wanted), since })
    }
}

/// A password from a file, put where a URL has it.
fn with_password(url: String, file: Option<PathBuf>) -> Result<String> {
    let Some(file) = file else { return Ok(url) };
    let password = std::fs::read_to_string(&file).map_err(|error| Failure::reading(&file, error))?;
    let quoted: String = password.trim_end_matches(['\r', '\n']).bytes().fold(String::new(), |mut out, b| {
        use std::fmt::Write;
        let _in_memory =
            if b.is_ascii_alphanumeric() { write!(out, "{}", char::from(b)) } else { write!(out, "%{b:02X}") };
        out
    });
    let wrong = || {
        Failure::new("--password-file needs a user in the URL")
            .hint("smtp://user@host, postgresql://user@host/database")
    };
    let (scheme, rest) = url.split_once("://").ok_or_else(wrong)?;
    let (user, rest) = rest.split_once('@').filter(|(user, _)| !user.contains([':', '/'])).ok_or_else(wrong)?;
    Ok(format!("{scheme}://{user}:{quoted}@{rest}"))
}

/// The seed that a file holds; comments and empty lines around it are passed over.
fn seed_in(file: &Path) -> Result<String> {
    let text = std::fs::read_to_string(file).map_err(|error| Failure::reading(file, error))?;
    let seed = text.lines().map(str::trim).find(|line| line.starts_with('S')).unwrap_or_default().to_owned();
    let user = public_nkey(&seed)?;
    eprintln!("the server must know the user {user}");
    Ok(seed)
}

fn fresh_secret() -> Result<String> {
    use std::io::Read;
    let mut bytes = [0; 32];
    let read = std::fs::File::open("/dev/urandom").and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(|error| Failure::new("no secret can be made").because(error).hint("--secret SECRET names one"))?;
    Ok(new_secret(&bytes))
}

impl From {
    fn meant(&self) -> Result<Since> {
        Ok(match self {
            From::Start => Since::Start,
            From::Now => Since::Now,
            From::Time(time_ms) => Since::Time(*time_ms),
            From::After(text) => {
                Since::Cursor(text.parse().map_err(|_| Failure::new(format!("{text:?} is no cursor")))?)
            }
        })
    }
}

pub fn perform(owned: &Owned, job: &Job, tell: &mut dyn Tell) -> Result<Exit> {
    let sinks = &owned.sinks;
    match job {
        Job::Add { name, definition, since } => {
            let name = match name {
                Some(name) => name.clone(),
                None => free_name(definition.kind.name(), &sinks.standings()?),
            };
            sinks.add(&name, definition, &since.meant()?)?;
            tell.talk(&format!(
                "added {name}; it works while `skep serve`, `skep watch`, `skep crawl`, `skep node` or `skep sink run` does"
            ));
            Ok(Exit::Done)
        }
        Job::Remove { name } => {
            sinks.remove(name)?;
            Ok(Exit::Done)
        }
        Job::Replay { name, since } => {
            sinks.replay(name, &since.meant()?)?;
            Ok(Exit::Done)
        }
        Job::List => {
            owned.changes.follow(&owned.archive, skep_archive::system_clock(), &mut |_| ())?;
            let standings = sinks.standings()?;
            if standings.is_empty() {
                tell.talk("no sink; `skep sink add --help` shows what there is");
            }
            for standing in &standings {
                tell.line(told(standing))?;
            }
            Ok(Exit::Done)
        }
        Job::Run { once: true, name } => {
            sinks.once(name.as_deref())?;
            let mut exit = Exit::Done;
            for standing in
                sinks.standings()?.iter().filter(|known| name.as_ref().is_none_or(|name| *name == known.name))
            {
                let works = standing.definition.is_some() && standing.lag == Some(0) && !standing.state.paused;
                if standing.state.failures > 0 || !works {
                    exit = Exit::Undone;
                }
                tell.line(told(standing))?;
            }
            Ok(exit)
        }
        Job::Run { once: false, .. } => {
            let running = sinks.begin()?;
            tell_left_out(&running, &mut |text| tell.talk(text));
            let count = sinks.standings()?.iter().filter(|standing| standing.definition.is_some()).count();
            tell.talk(&format!("{count} {} at work; Ctrl-C ends it", if count == 1 { "sink" } else { "sinks" }));
            loop {
                tell.line(json!({ "event": STILL }))?;
                std::thread::sleep(LOOK_AFTER);
            }
        }
    }
}

/// Says which sinks do not work, and what to do about each.
pub fn tell_left_out(running: &Running<'_>, say: &mut dyn FnMut(&str)) {
    for error in running.left_out() {
        say(&format!("warning: {error}; {}", error.hint().unwrap_or_default()));
    }
}

fn free_name(kind: &str, known: &[Standing]) -> String {
    let is_free = |name: &String| known.iter().all(|standing| standing.name != *name);
    let numbered = (2..).map(|number| format!("{kind}-{number}"));
    std::iter::once(kind.to_owned()).chain(numbered).find(is_free).unwrap_or_else(|| kind.to_owned())
}

fn told(standing: &Standing) -> Value {
    let Standing { name, definition, state, lag, at_work } = standing;
    let time = |time_ms: Option<i64>| time_ms.map(skep_warc::date::rfc3339);
    json!({
        "name": name,
        "kind": definition.as_ref().map(|definition| definition.kind.name()),
        "target": definition.as_ref().map(|definition| definition.kind.target()),
        "wanted": definition.as_ref().map(|definition| &definition.wanted),
        "at_work": at_work,
        "cursor": state.cursor,
        "lag": lag,
        "delivered": state.delivered,
        "delivered_at": time(state.delivered_ms),
        "rejected": state.rejected,
        "last_rejected": state.last_rejected,
        "failures": state.failures,
        "last_error": state.error,
        "error_at": time(state.error_ms),
        "next_try": if state.paused { Some("paused".to_owned()) } else { time(state.next_ms) },
    })
}

/// Prints tables and ends when told to.
struct Printer {
    screen: Screen,
    stopped: Arc<AtomicBool>,
}

impl Tell for Printer {
    fn line(&mut self, value: Value) -> Result<()> {
        if self.stopped.load(Ordering::Relaxed) {
            return Err(Failure { reader_left: true, ..Failure::new("stopped") });
        }
        if value["event"] == STILL { Ok(()) } else { self.screen.line(value) }
    }

    fn bytes(&mut self, _: &[u8]) -> Result<()> {
        Ok(())
    }

    fn talk(&mut self, text: &str) {
        self.screen.talk(text);
    }

    fn progress(&mut self, _: u64, _: u64) {}
}
