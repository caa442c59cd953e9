//! Nodes on one machine that crawl the same sites together: pages per CPU second beside one node alone, and how far followers are behind.

use super::crawl::nginx::{Host, Nginx};
use super::crawl::site;
use crate::limits;
use crate::long;
use crate::material;
use crate::needs;
use crate::table::{Table, count};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;
use std::collections::BTreeMap;
use std::net::{Ipv4Addr, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Names under which the same pages are served: as many sites, on as many slices.
const SITES: usize = 24;
const NODES: usize = 5;
const SLICES: &str = "64";
const NAME: &str = "bench";
/// Times of a network that is watched for minutes.
const TIMES: &str = "ping=1s,silence=8s,unseen=12s,compare=2s,lease=20s,rank=0.5s,recover=60s,repair-late=60s,repair-soon=40s,answer=2s,tail=0.3s";
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What came of one run.
struct Figures {
    visits: u64,
    cpu_s: f64,
    wall_s: f64,
    /// The longest that a follower was behind what its leader had synced.
    behind_s: f64,
    /// The longest time between two looks, of which that is true.
    look_s: f64,
}

impl Figures {
    fn per_cpu_s(&self) -> f64 {
        self.visits as f64 / self.cpu_s
    }
}

pub fn run(workspace: &Workspace) -> Result<()> {
    let skep = long::build(workspace, "skep", "--bin", "skep")?;
    let folder = material::folder(workspace)?.join("ring");
    if folder.exists() {
        std::fs::remove_dir_all(&folder)?;
    }
    let root = few_pages(workspace)?;
    let server = folder.join("server");
    std::fs::create_dir_all(&server)?;
    let names: Vec<String> = (0..SITES).map(|number| format!("site{number}.test")).collect();
    let hosts: Vec<Host<'_>> = names.iter().map(|name| Host { name, root: &root }).collect();
    let nginx = Nginx::start(&needs::nginx(workspace)?, &server, &hosts, false)?;
    let mut table =
        Table::new(&["nodes", "copies", "pages", "pages per CPU second", "seconds", "behind at most", "longest look"]);
    let mut seen = Vec::new();
    for (nodes, copies) in [(1, 1), (NODES, 1), (NODES, 3)] {
        let place = folder.join(format!("{nodes}-{copies}"));
        let figures = Network { skep: &skep, folder: place, nodes: Vec::new() }.crawl(nodes, copies, &names, &nginx)?;
        table.row(&[
            nodes.to_string(),
            copies.to_string(),
            count(figures.visits),
            format!("{:.0}", figures.per_cpu_s()),
            format!("{:.1}", figures.wall_s),
            format!("{:.1} s", figures.behind_s),
            format!("{:.1} s", figures.look_s),
        ]);
        seen.push(figures);
    }
    nginx.stop()?;
    print!("{}", table.render());
    let verdict = |what: String, held: bool, asked: String| {
        println!("{what}: {} (asked {asked})", if held { "reached" } else { "SHORT" });
    };
    let alone = seen[0].per_cpu_s();
    for (figures, copies, least) in [(&seen[1], 1, limits::RING_SHARE_1_MIN), (&seen[2], 3, limits::RING_SHARE_3_MIN)] {
        let share = figures.per_cpu_s() / alone;
        let what = format!("{NODES} nodes with {copies} copies: {share:.2} of one node's pages per CPU second");
        verdict(what, share >= least, format!("at least {least}"));
    }
    let behind = seen[2].behind_s;
    verdict(
        format!("a follower is {behind:.1} s behind at most while all crawl"),
        behind <= limits::RING_BEHIND_S_MAX,
        format!("at most {}", limits::RING_BEHIND_S_MAX),
    );
    Ok(())
}

/// Some of the pages of the crawl's site, so that all sites together are as many as that.
fn few_pages(workspace: &Workspace) -> Result<PathBuf> {
    let few = material::folder(workspace)?.join("ring-site");
    if few.is_dir() {
        return Ok(few);
    }
    let from = site::make(workspace)?.join("postgres");
    let part = few.with_extension("part");
    if part.exists() {
        std::fs::remove_dir_all(&part)?;
    }
    std::fs::create_dir_all(&part)?;
    let mut pages: Vec<PathBuf> = std::fs::read_dir(&from)?.filter_map(|entry| Some(entry.ok()?.path())).collect();
    pages.retain(|page| page.extension().is_some_and(|kind| kind == "html"));
    pages.sort();
    ensure!(pages.len() >= limits::RING_PAGES, "{} has {} pages", from.display(), pages.len());
    let mut links = String::new();
    for page in pages.iter().take(limits::RING_PAGES) {
        let name = page.file_name().context("a page has a name")?;
        std::fs::copy(page, part.join(name))?;
        links.push_str(&format!("<li><a href=\"{}\">page</a></li>\n", name.to_string_lossy()));
    }
    // Each site leads to the next one.
    let others: String =
        (0..SITES).map(|number| format!("<li><a href=\"http://site{number}.test/\">site</a></li>\n")).collect();
    std::fs::write(
        part.join("index.html"),
        format!("<!DOCTYPE html><title>Pages</title><ul>\n{links}{others}</ul>\n"),
    )?;
    std::fs::rename(&part, &few)?;
    Ok(few)
}

/// A network of real nodes; they end with it.
struct Network<'s> {
    skep: &'s Path,
    folder: PathBuf,
    nodes: Vec<Child>,
}

impl Network<'_> {
    fn crawl(mut self, nodes: usize, copies: u8, names: &[String], nginx: &Nginx) -> Result<Figures> {
        std::fs::create_dir_all(&self.folder)?;
        let resolve: Vec<String> = names.iter().map(|name| format!("{name}={}", nginx.address())).collect();
        let listen = free()?;
        let copies = copies.to_string();
        let create = ["network", "create", "--name", NAME, "--slices", SLICES, "--copies", &copies];
        self.typed(0, &[&create[..], &["--listen", &listen, "--times", TIMES]].concat())?;
        self.start(&listen, None, &resolve)?;
        for _ in 1..nodes {
            let ticket = self.typed(0, &["network", "invite"])?;
            self.start(&free()?, Some(ticket.trim()), &resolve)?;
        }
        self.until("settled", |all| all.iter().all(|one| one["settled"] == true && one["acts"] == true))?;
        let cpu = self.cpu_s();
        let begun = Instant::now();
        let mut words = vec!["crawl", "--network", "--name", NAME, "--scope", "all", "--pace", "none"];
        names.iter().for_each(|name| words.extend(["--own", name]));
        words.push("http://site0.test/");
        self.typed(0, &words)?;
        let mut behind = Behind::default();
        let expected = (names.len() * (limits::RING_PAGES + 1)) as u64;
        let last = loop {
            let looked = Instant::now();
            let all = self.statuses()?;
            behind.look(&all, looked, Instant::now());
            let visits: u64 = all.iter().map(|one| progress(one, "visits")).sum();
            let left: u64 = all
                .iter()
                .map(|one| ["waiting", "out", "unsent"].map(|name| progress(one, name)).iter().sum::<u64>())
                .sum();
            if visits >= expected && left == 0 {
                break visits;
            }
            if begun.elapsed() > limits::CRAWL_RUN_MAX {
                bail!("{visits} of {expected} pages were crawled in time");
            }
            std::thread::sleep(LOOK_EVERY);
        };
        let wall_s = begun.elapsed().as_secs_f64();
        self.until("copied", |all| all.iter().all(|one| one["settled"] == true))?;
        Ok(Figures {
            visits: last,
            cpu_s: self.cpu_s() - cpu,
            wall_s,
            behind_s: behind.longest_s,
            look_s: behind.look_s,
        })
    }

    fn archive(&self, node: usize) -> PathBuf {
        self.folder.join(format!("node-{node}"))
    }

    fn typed(&self, node: usize, words: &[&str]) -> Result<String> {
        let ran = Command::new(self.skep).arg("--archive").arg(self.archive(node)).args(words).output()?;
        let told = String::from_utf8_lossy(&ran.stdout).into_owned();
        // 1 is an answer, too: not settled.
        ensure!(matches!(ran.status.code(), Some(0 | 1)), "skep {words:?}: {}", String::from_utf8_lossy(&ran.stderr));
        Ok(told)
    }

    fn start(&mut self, listen: &str, ticket: Option<&str>, resolve: &[String]) -> Result<()> {
        let mut command = Command::new(self.skep);
        command.arg("--archive").arg(self.archive(self.nodes.len()));
        command.args(["node", "--portal", "none", "--until-input-ends", "--listen", listen]);
        command.args(ticket.into_iter().flat_map(|ticket| ["--join", ticket]));
        let own = |resolve: &String| resolve.split('=').next().unwrap_or_default().to_owned();
        command
            .args(resolve.iter().flat_map(|one| ["--resolve".to_owned(), one.clone(), "--own".to_owned(), own(one)]));
        let talk = std::fs::File::create(self.folder.join(format!("node-{}.talk", self.nodes.len())))?;
        self.nodes.push(command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(talk).spawn()?);
        let control = self.archive(self.nodes.len() - 1).join("control");
        let since = Instant::now();
        while !control.exists() {
            ensure!(
                since.elapsed() < Duration::from_secs(60),
                "a node does not begin; its talk is in {}",
                self.folder.display()
            );
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    fn statuses(&self) -> Result<Vec<Value>> {
        let one = |node| -> Result<Value> {
            serde_json::from_str(self.typed(node, &["--json", "ring"])?.trim()).context("a status is JSON")
        };
        (0..self.nodes.len()).map(one).collect()
    }

    fn until(&self, what: &str, so: impl Fn(&[Value]) -> bool) -> Result<()> {
        let since = Instant::now();
        while !so(&self.statuses()?) {
            ensure!(since.elapsed() < Duration::from_secs(180), "never {what}");
            std::thread::sleep(LOOK_EVERY);
        }
        Ok(())
    }

    /// Processor time of all nodes so far.
    fn cpu_s(&self) -> f64 {
        let of = |child: &Child| {
            let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap_or_default();
            let words: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            let ticks = |at: usize| words.get(at).and_then(|word| word.parse::<f64>().ok()).unwrap_or(0.0);
            (ticks(11) + ticks(12)) / 100.0
        };
        self.nodes.iter().map(of).sum()
    }
}

impl Drop for Network<'_> {
    fn drop(&mut self) {
        for child in &mut self.nodes {
            let _ended_already = child.kill();
            let _reaped = child.wait();
        }
    }
}

fn free() -> Result<String> {
    Ok(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.to_string())
}

fn progress(status: &Value, name: &str) -> u64 {
    status["crawl"]["progress"][name].as_u64().unwrap_or(0)
}

/// How long followers took to have what their leaders had.
#[derive(Default)]
struct Behind {
    /// By slice: bytes that its leader had, and when the look began that saw it first.
    led: BTreeMap<u64, Vec<(u64, Instant)>>,
    longest_s: f64,
    last: Option<Instant>,
    /// The longest time from one look to the end of the next one.
    look_s: f64,
}

impl Behind {
    /// What nodes said one after the other, from `begun` until `now`.
    fn look(&mut self, all: &[Value], begun: Instant, now: Instant) {
        let since_last = now.duration_since(self.last.replace(begun).unwrap_or(begun));
        self.look_s = self.look_s.max(since_last.as_secs_f64());
        let mut here: BTreeMap<u64, (Option<u64>, Vec<u64>)> = BTreeMap::new();
        for status in all {
            for held in status["held"].as_array().into_iter().flatten() {
                let (slice, bytes) = (held["slice"].as_u64().unwrap_or(0), held["bytes"].as_u64().unwrap_or(0));
                let holds = held["holders"].as_array().into_iter().flatten().any(|key| *key == status["node"]);
                let of_slice = here.entry(slice).or_default();
                match holds {
                    true if held["leader"] == status["node"] => of_slice.0 = Some(bytes),
                    true => of_slice.1.push(bytes),
                    false => {}
                }
            }
        }
        for (slice, (leader, followers)) in here {
            let least = followers.iter().min().copied().unwrap_or(u64::MAX);
            let led = self.led.entry(slice).or_default();
            // What has arrived everywhere took as long as until now at most; what has not is as late as it is old.
            for (_, since) in led.iter() {
                self.longest_s = self.longest_s.max(now.duration_since(*since).as_secs_f64());
            }
            led.retain(|(bytes, _)| *bytes > least);
            if let Some(bytes) =
                leader.filter(|bytes| *bytes > least && led.last().is_none_or(|(known, _)| known < bytes))
            {
                led.push((bytes, begun));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_has_arrived_since_the_last_look_was_behind_until_then() {
        let at = |node: &str, bytes: u64| {
            let held = json!([{ "slice": 0, "bytes": bytes, "holders": ["a", "b"], "leader": "a" }]);
            json!({ "node": node, "held": held })
        };
        let (mut behind, begin) = (Behind::default(), Instant::now());
        let after = |ms: u64| begin + Duration::from_millis(ms);
        behind.look(&[at("a", 100), at("b", 0)], after(0), after(500));
        assert_eq!((behind.longest_s, behind.look_s), (0.0, 0.5));
        // It came some time before this look ended; when, nobody saw.
        behind.look(&[at("a", 100), at("b", 100)], after(3_000), after(3_500));
        assert_eq!((behind.longest_s, behind.look_s), (3.5, 3.5));
        behind.look(&[at("a", 100), at("b", 100)], after(9_000), after(9_500));
        assert_eq!(behind.longest_s, 3.5, "there is nothing to wait for");
    }
}
