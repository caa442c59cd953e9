//! `skep-testweb`: serves a web to test against, and tells the truth about it.

use std::fs;
use std::io::{self, BufWriter, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use skep_testweb::{Body, Clock, HostPlan, Mix, Plan, Policy, Settings, Time, Web, World};

#[derive(Parser)]
#[command(name = "skep-testweb", version, about, long_about = None, after_help = "\
A web is drawn from a seed: the same options give the same pages, on every machine, at every virtual moment.
Try it:
  skep-testweb serve --seed 7 --authority-file ca.pem
      prints where each host answers; leave it running and, with a host and its address from that line, ask
  curl --connect-to HOST::ADDRESS:PORT http://HOST/
  skep-testweb truth --seed 7
      every URL of the same web with its status, size, digest and links")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve a web until Ctrl-C; the map of hosts goes to standard output as one line of JSON
    #[command(after_help = "\
Every address and port speaks HTTP and HTTPS. `control` in the map is a small server of its own: its home page lists
what can be asked and set while the web runs (truth, audit, clock, behaviours).
At the end the auditor's table goes to standard error.")]
    Serve {
        #[command(flatten)]
        web: WebOptions,
        #[command(flatten)]
        serve: ServeOptions,
    },
    /// Print every URL at a moment, one JSON object per line: status, size, digest, validators, links, births and deaths
    Truth {
        #[command(flatten)]
        web: WebOptions,
        /// The moment [default: 180 days after the web begins]
        #[arg(long, value_name = "TIME")]
        at: Option<Time>,
        /// Only this host
        #[arg(long, value_name = "NAME")]
        host: Option<String>,
        /// Only what links lead to from the hosts' home pages (robots.txt not heeded)
        #[arg(long)]
        reachable: bool,
    },
    /// Print the body of one URL at a moment
    Show {
        /// A URL of the web, as `truth` prints it
        url: String,
        #[command(flatten)]
        web: WebOptions,
        /// The moment [default: 180 days after the web begins]
        #[arg(long, value_name = "TIME")]
        at: Option<Time>,
    },
    /// Print the plan of the web as JSON, to be edited and given back with --plan
    Plan {
        #[command(flatten)]
        web: WebOptions,
    },
}

#[derive(Args)]
struct WebOptions {
    /// Draw everything from this number
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Generated hosts [default: 10, or none when hosts are given by --folder, --git, --plan or --hostile]
    #[arg(long)]
    hosts: Option<u32>,
    /// Sites (registrable domains) the generated hosts belong to
    #[arg(long, default_value_t = 4)]
    sites: u32,
    /// Addresses the generated hosts are on, from 127.0.0.1 up
    #[arg(long, default_value_t = 3)]
    addresses: u32,
    /// Pages per generated host, on average
    #[arg(long, default_value_t = 100)]
    pages: u32,
    /// Of a thousand generated hosts, how many speak HTTPS
    #[arg(long, default_value_t = 300, value_name = "PERMILLE")]
    https: u32,
    /// All generated hosts allow everything in robots.txt, instead of a mix of rules, errors and redirects
    #[arg(long)]
    allow_all: bool,
    /// Some generated hosts are slow, some refuse now and then
    #[arg(long)]
    troubled: bool,
    /// One host and more for each row of the hostile web; `GET /rows` of the control server tells what each does
    #[arg(long)]
    hostile: bool,
    /// Nothing changes, is born or dies
    #[arg(long)]
    frozen: bool,
    /// Serve a folder of files as a host
    #[arg(long, value_name = "NAME=DIR")]
    folder: Vec<String>,
    /// Serve a git repository or bundle as a host that moves through its commits
    #[arg(long, value_name = "NAME=REPO[@REVISION]")]
    git: Vec<String>,
    /// Read hosts from a plan (see the command `plan`)
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// Links carry this port; then `serve` listens on it
    #[arg(long, value_name = "PORT")]
    link_port: Option<u16>,
}

#[derive(Args)]
struct ServeOptions {
    /// Listen on this port of every address; may be repeated [default: one that is free, or --link-port]
    #[arg(long, value_name = "PORT")]
    port: Vec<u16>,
    /// Port of the control server on 127.0.0.1; 0 takes one that is free
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    control_port: u16,
    /// Port of the name server on 127.0.0.1, for UDP and TCP; 0 takes one that is free
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    dns_port: u16,
    /// The clock begins at this moment [default: 180 days after the web begins]
    #[arg(long, value_name = "TIME", conflicts_with = "real_time")]
    at: Option<Time>,
    /// The clock is the machine's
    #[arg(long)]
    real_time: bool,
    /// Virtual seconds per second; 0 stands still
    #[arg(long, default_value_t = 1.0, value_name = "N")]
    speed: f64,
    /// Write the certificate of the web's authority here, for clients that verify
    #[arg(long, value_name = "FILE")]
    authority_file: Option<PathBuf>,
    /// Append every request to this file as a line of JSON
    #[arg(long, value_name = "FILE")]
    request_log: Option<PathBuf>,
    /// Judge by the pace of a polite crawler: a site rests for half a second and five times its last answer, robots.txt is
    /// at most a day old, a 429 means half a minute
    #[arg(long)]
    polite: bool,
    /// An offence: two requests to one site start closer than this
    #[arg(long, default_value_t = 0, value_name = "MS")]
    site_gap_ms: u64,
    /// An offence: more requests in flight to one address than this; 0 allows any
    #[arg(long, default_value_t = 0, value_name = "N")]
    in_flight_max: u32,
    /// How much shorter than asked a gap may be [default: 0, or 20 with --polite]
    #[arg(long, value_name = "MS")]
    tolerance_ms: Option<u64>,
    /// Look robots.txt rules up for this agent instead of each request's own
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// End with exit code 1 when the auditor found an offence
    #[arg(long)]
    judge: bool,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(code) => code,
        // Whoever reads the output has seen enough.
        Err(e) if is_broken_pipe(e.as_ref()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("error: {e}");
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(e: &(dyn std::error::Error + 'static)) -> bool {
    let written = e.downcast_ref::<io::Error>().map(io::Error::kind);
    let encoded = e.downcast_ref::<serde_json::Error>().and_then(serde_json::Error::io_error_kind);
    written.or(encoded) == Some(io::ErrorKind::BrokenPipe)
}

fn run(command: Command) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut out = BufWriter::new(io::stdout().lock());
    match command {
        Command::Serve { web, serve: options } => {
            drop(out);
            return serve(&web, options);
        }
        Command::Truth { web, at, host, reachable } => {
            let world = World::build(plan(&web)?)?;
            let at = at.unwrap_or_else(|| world.begin().plus_days(180));
            let chosen = match &host {
                None => world.hosts().iter().collect(),
                Some(name) => vec![world.host(name).ok_or_else(|| format!("there is no host `{name}` in this web"))?],
            };
            if reachable {
                for entry in world.reachable(&[], at, |_| true)? {
                    if host.as_ref().is_none_or(|name| *name == entry.host) {
                        serde_json::to_writer(&mut out, &entry)?;
                        out.write_all(b"\n")?;
                    }
                }
            } else {
                for entry in chosen.into_iter().flat_map(|host| host.truth(at)) {
                    serde_json::to_writer(&mut out, &entry?)?;
                    out.write_all(b"\n")?;
                }
            }
        }
        Command::Show { url, web, at } => {
            let world = World::build(plan(&web)?)?;
            let at = at.unwrap_or_else(|| world.begin().plus_days(180));
            let answer = world.answer(&url, at).ok_or_else(|| format!("{url} is of no host in this web"))??;
            match answer.body {
                Body::Bytes(bytes) => out.write_all(&bytes)?,
                Body::File { path, .. } => drop(io::copy(&mut fs::File::open(path)?, &mut out)?),
            }
            if answer.status >= 400 {
                out.flush()?;
                eprintln!("status {}", answer.status);
                return Ok(ExitCode::from(1));
            }
        }
        Command::Plan { web } => {
            serde_json::to_writer_pretty(&mut out, &plan(&web)?)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The plan that the options mean.
fn plan(options: &WebOptions) -> Result<Plan, Box<dyn std::error::Error>> {
    let mut plan = match &options.plan {
        None => Plan::new(options.seed),
        Some(path) => {
            let text = fs::read(path).map_err(|e| format!("the plan {} cannot be read: {e}", path.display()))?;
            serde_json::from_slice(&text).map_err(|e| {
                format!("{} is no plan: {e}\nhint: `skep-testweb plan` prints one to start from", path.display())
            })?
        }
    };
    for folder in &options.folder {
        let (name, path) = folder.split_once('=').ok_or_else(|| format!("`{folder}` is not NAME=DIR"))?;
        plan.hosts.push(HostPlan::folder(name, path));
    }
    for git in &options.git {
        let (name, path) = git.split_once('=').ok_or_else(|| format!("`{git}` is not NAME=REPO[@REVISION]"))?;
        let (path, revision) = match path.rsplit_once('@') {
            Some((repository, revision)) if !PathBuf::from(path).exists() => (repository, Some(revision.to_string())),
            _ => (path, None),
        };
        let content = skep_testweb::Content::History { repository: path.into(), revision };
        plan.hosts.push(HostPlan::new(name, content));
    }
    if options.hostile {
        plan.hosts.extend(Plan::hostile(options.seed).hosts);
    }
    let hosts = options.hosts.unwrap_or(if plan.hosts.is_empty() { 10 } else { 0 });
    if hosts > 0 {
        let mix = Mix {
            hosts,
            sites: options.sites,
            addresses: options.addresses,
            pages: options.pages,
            https_permille: options.https,
            robots: !options.allow_all,
            changing: !options.frozen,
            troubled: options.troubled,
        };
        plan.hosts.extend(Plan::mixed(options.seed, &mix).hosts);
    }
    plan.port = options.link_port.or(plan.port);
    Ok(plan)
}

fn serve(web: &WebOptions, options: ServeOptions) -> Result<ExitCode, Box<dyn std::error::Error>> {
    let plan = plan(web)?;
    let mut ports = options.port;
    if ports.is_empty() {
        ports.push(plan.port.unwrap_or(0));
    }
    if let Some(port) = plan.port.filter(|port| !ports.contains(port)) {
        return Err(format!("links say port {port}, but the web does not listen there; add --port {port}").into());
    }
    let world = World::build(plan)?;
    let origin = match (options.real_time, options.at) {
        (true, _) => Time::from_system(std::time::SystemTime::now()),
        (false, at) => at.unwrap_or_else(|| world.begin().plus_days(180)),
    };
    let judged = if options.polite { Policy::polite() } else { Policy::default() };
    let settings = Settings {
        ports,
        control_port: options.control_port,
        dns_port: options.dns_port,
        clock: Some(Clock::new(origin, options.speed)),
        policy: Policy {
            tolerance_ms: options.tolerance_ms.unwrap_or(judged.tolerance_ms),
            agent: options.agent,
            site_gap_ms: options.site_gap_ms,
            in_flight_max: options.in_flight_max,
            ..judged
        },
        request_log: options.request_log,
    };
    let web = Web::start(world, settings)?;
    if let Some(path) = &options.authority_file {
        fs::write(path, web.authority_pem()).map_err(|e| format!("{} cannot be written: {e}", path.display()))?;
    }
    println!("{}", serde_json::to_string(web.map())?);
    eprintln!("serving {} hosts; {} lists what can be asked; Ctrl-C stops", web.map().hosts.len(), web.map().control);
    web.wait(async {
        let terminated = async {
            match tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate()) {
                Ok(mut signal) => drop(signal.recv().await),
                Err(_) => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = tokio::signal::ctrl_c() => {}
            () = terminated => {}
        }
    })?;
    let report = web.report();
    web.stop();
    eprint!("{}", report.table());
    Ok(ExitCode::from(u8::from(options.judge && !report.polite())))
}
