//! `skep demo --nodes`: several nodes on this machine over the demo's sites, with keys to kill, cut off, heal and add one.

use super::sites::SITES;
use crate::failure::{Failure, Result, say};
use crate::job::{Exit, Job};
use crate::show::Collected;
use crate::{owner, signals};
use std::io::BufRead;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// Quick enough to watch: what takes hours elsewhere takes seconds here.
const TIMES: &str = "ping=1s,silence=4s,unseen=8s,compare=2s,lease=8s,rank=1s,recover=20s,repair-late=10s,repair-soon=8s,keep=30s,\
                     summary=5s,audit=10s,answer=2s,tail=0.5s";
const SLICES: &str = "32";
/// More than one machine should run for fun.
pub const NODES_MAX: usize = 16;
const NAME: &str = "demo";
/// A node that was started answers within this time.
const BEGINS_WITHIN: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(50);

/// One node of the demo.
struct Node {
    folder: PathBuf,
    listen: SocketAddr,
    portal: SocketAddr,
    child: Option<Child>,
    cut_off: bool,
}

struct Demo {
    folder: PathBuf,
    sites: u16,
    nodes: Vec<Node>,
}

fn failed(what: &str) -> impl Fn(std::io::Error) -> Failure + '_ {
    move |error| Failure::new(what).because(error)
}

/// Addresses that are free now.
fn places() -> std::io::Result<(SocketAddr, SocketAddr)> {
    let listen = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?;
    Ok((listen, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?))
}

impl Demo {
    fn skep(&self, node: usize) -> Result<Command> {
        let program = std::env::current_exe().map_err(failed("this program cannot be found"))?;
        let mut command = Command::new(program);
        command.arg("--archive").arg(&self.nodes[node].folder).stdin(Stdio::null());
        Ok(command)
    }

    /// Runs a command to its end; what it printed.
    fn typed(&self, node: usize, words: &[&str]) -> Result<String> {
        let ran = self.skep(node)?.args(words).output().map_err(failed("a command of the demo cannot be run"))?;
        if !ran.status.success() {
            let why = String::from_utf8_lossy(&ran.stderr).into_owned();
            return Err(Failure::new(format!("`skep {}` failed", words.join(" "))).because(why.trim()));
        }
        Ok(String::from_utf8_lossy(&ran.stdout).trim().to_owned())
    }

    /// One more node: the first makes the network, the others join it.
    fn add(&mut self) -> Result<()> {
        let number = self.nodes.len();
        let (listen, portal) = places().map_err(failed("no address is free"))?;
        let folder = self.folder.join(format!("node-{}", number + 1));
        self.nodes.push(Node { folder, listen, portal, child: None, cut_off: false });
        if number == 0 {
            let listen = listen.to_string();
            let words =
                ["network", "create", "--name", NAME, "--slices", SLICES, "--listen", &listen, "--times", TIMES];
            self.typed(0, &words)?;
            return self.start(0, None);
        }
        let there =
            self.nodes.iter().position(|node| node.child.is_some() && node.folder.join("settings/owner.key").exists());
        if there != Some(0) {
            self.nodes.pop();
            say("only the first node can invite, and it does not run");
            return Ok(());
        }
        let ticket = self.typed(0, &["network", "invite"])?;
        self.start(number, Some(&ticket))
    }

    fn start(&mut self, number: usize, ticket: Option<&str>) -> Result<()> {
        let node = &self.nodes[number];
        let talk = std::fs::File::options().create(true).append(true).open(node.folder.with_extension("log"));
        let talk = talk.map_err(failed("the log of a node cannot be written"))?;
        let mut command = self.skep(number)?;
        command.args(["node", "--listen", &node.listen.to_string(), "--portal", &node.portal.to_string()]);
        // However this process ends, its nodes hear of it and end too.
        command.arg("--until-input-ends").stdin(Stdio::piped());
        if let Some(ticket) = ticket {
            command.args(["--join", ticket]);
        }
        for site in SITES {
            command.args(["--resolve", &format!("{site}=127.0.0.1:{}", self.sites), "--own", site]);
        }
        let child = command.stdout(Stdio::null()).stderr(talk).spawn().map_err(failed("a node cannot be started"))?;
        self.nodes[number].child = Some(child);
        say(&format!("node {} runs: http://{}/ring", number + 1, self.nodes[number].portal));
        Ok(())
    }

    /// Does what was typed; false when it is to end.
    fn obey(&mut self, line: &str) -> Result<bool> {
        let mut words = line.split_whitespace();
        let key = words.next().unwrap_or_default();
        let number = words.next().and_then(|word| word.parse::<usize>().ok()).and_then(|number| number.checked_sub(1));
        match (key, number.filter(|number| *number < self.nodes.len())) {
            ("q", _) => return Ok(false),
            ("a", _) if self.nodes.len() < NODES_MAX => self.add()?,
            ("k", Some(number)) => match self.nodes[number].child.take() {
                Some(mut child) => {
                    self.nodes[number].cut_off = false;
                    child.kill().and_then(|()| child.wait()).map_err(failed("the node cannot be killed"))?;
                    say(&format!("node {} is gone; `h` brings it back, its disk is still there", number + 1));
                }
                None => say("it does not run"),
            },
            ("c", Some(number)) => {
                if self.cut(number, true)? {
                    self.nodes[number].cut_off = true;
                    let portal = self.nodes[number].portal;
                    say(&format!(
                        "node {} is cut off: it hears no node, and none hears it; http://{portal}/ring shows what it makes of that",
                        number + 1
                    ));
                } else {
                    say("it does not run");
                }
            }
            ("h", _) => {
                for number in 0..self.nodes.len() {
                    if std::mem::take(&mut self.nodes[number].cut_off) {
                        self.cut(number, false)?;
                    }
                    if self.nodes[number].child.is_none() {
                        self.start(number, None)?;
                    }
                }
            }
            ("s", _) => match self.nodes.iter().position(|node| node.child.is_some() && !node.cut_off) {
                Some(number) => {
                    // Not settled is an answer, too.
                    let ran = self.skep(number)?.arg("ring").output().map_err(failed("the ring cannot be asked"))?;
                    say(String::from_utf8_lossy(&ran.stdout).trim_end());
                }
                None => say("no node runs"),
            },
            _ => say(KEYS),
        }
        Ok(true)
    }

    /// Cuts a node off from the others, or heals it: it is told at its own socket, as soon as it hears. False if it does not run.
    fn cut(&self, number: usize, off: bool) -> Result<bool> {
        let node = &self.nodes[number];
        let since = Instant::now();
        while node.child.is_some() {
            let told = owner::ask(&node.folder, &Job::CutOff { off }, &mut Collected::default());
            if matches!(told, Ok(Some(_))) || since.elapsed() > BEGINS_WITHIN {
                return told.map(|told| told.is_some());
            }
            std::thread::sleep(LOOK);
        }
        Ok(false)
    }
}

impl Drop for Demo {
    fn drop(&mut self) {
        for node in &mut self.nodes {
            if let Some(mut child) = node.child.take() {
                let _ended_already = child.kill();
                let _reaped = child.wait();
            }
        }
    }
}

const KEYS: &str =
    "k N kills node N, c N cuts it off, h heals everything, a adds a node, s shows the ring, q ends (each with Enter)";

/// Until it is ended by a key, by Ctrl-C, or because nobody can type any more.
pub fn run(nodes: usize, folder: &Path, sites: u16) -> Result<Exit> {
    std::fs::create_dir_all(folder).map_err(failed("there is no folder for the demo"))?;
    let (say_line, lines) = channel::<Option<String>>();
    let interrupted: Sender<Option<String>> = say_line.clone();
    let _watch = signals::watch(move || drop(interrupted.send(None)), || ())?;
    let mut demo = Demo { folder: folder.to_owned(), sites, nodes: Vec::new() };
    for _ in 0..nodes.clamp(1, NODES_MAX) {
        demo.add()?;
        wait_for(&demo)?;
        if lines.try_recv().is_ok() {
            return Ok(Exit::Done);
        }
    }
    let seeds: Vec<String> = SITES.iter().map(|site| format!("http://{site}/")).collect();
    let mut words = vec!["crawl", "--network", "--name", NAME, "--pace", "none"];
    SITES.iter().for_each(|site| words.extend(["--own", site]));
    words.extend(seeds.iter().map(String::as_str));
    demo.typed(0, &words)?;
    say(&format!("all nodes crawl {} together; copies move to where they belong. {KEYS}", seeds.join(" ")));
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(std::io::Result::ok) {
            if say_line.send(Some(line)).is_err() {
                return;
            }
        }
        let _ended = say_line.send(None);
    });
    while let Ok(Some(line)) = lines.recv() {
        match demo.obey(&line) {
            Ok(true) => {}
            Ok(false) => break,
            Err(failure) => failure.print(),
        }
    }
    Ok(Exit::Done)
}

/// Waits until the newest node answers.
fn wait_for(demo: &Demo) -> Result<()> {
    let node = demo.nodes.len() - 1;
    let since = Instant::now();
    while !demo.nodes[node].folder.join("control").exists() {
        if since.elapsed() > BEGINS_WITHIN {
            let log = demo.nodes[node].folder.with_extension("log");
            let why = std::fs::read_to_string(log).unwrap_or_default();
            return Err(Failure::new(format!("node {} does not begin", node + 1)).because(why.trim()));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}
