//! Between the ring and the crawl: what is led is told to the crawl that runs, links go to whoever leads, and crawls of the network
//! are kept where the next start finds them.

use super::notes::Notes;
use super::told::{self, Crawl};
use crate::failure::{Result, say};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use skep_archive::{Digest, Sum, settings as files};
use skep_contribute::follow::Question;
use skep_contribute::follower::{Follower, From};
use skep_crawl::Control;
use skep_crawl::sharing::{self, Leading, Outlet, Share};
use skep_portal::{Asker, Elsewhere, Everywhere, Scanned, Unheard, Wish};
use skep_ring::instruction::SignedInstruction;
use skep_ring::links::{Batch, Link};
use skep_ring::message::Politeness;
use skep_ring::node::{Note, What};
use skep_ring::pace::Site;
use skep_ring::shell::{Back, Body, Led, NO_CONTRIBUTORS, NOT_FOLLOWING, Proof, Shell, Taken, Telling, Work};
use skep_ring::{Key, Slice};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::Instant;

const FILE: &str = "network-crawls.toml";
const FILE_VERSION: u32 = 1;

/// What stands between the ring and the crawl.
pub struct Glue {
    path: PathBuf,
    json: bool,
    shell: OnceLock<Weak<Shell>>,
    node: OnceLock<Weak<super::Node>>,
    pub leading: Arc<Leading>,
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    crawls: BTreeMap<String, Crawl>,
    /// The crawl that runs here, by name, and the way to it.
    running: Option<(String, Control)>,
    /// What this node leads: until when, and what was known of its sites.
    leases: HashMap<Slice, (Instant, Vec<Vec<u8>>)>,
    progress: Value,
    /// Answers the portals of other nodes.
    asker: Option<Asker>,
    /// Hands bundles out.
    contributors: Option<Arc<skep_contribute::Node>>,
    /// Fetches for others who lead what is held here, while this is crawled.
    follower: Option<(String, Arc<Follower>)>,
    /// What was told to people lately.
    notes: Notes,
    stopped: bool,
}

#[derive(Default, Serialize, Deserialize)]
struct File {
    version: u32,
    #[serde(default)]
    crawl: Vec<Crawl>,
}

impl Glue {
    pub fn new(settings: &Path, bits: u8, json: bool) -> Result<Arc<Glue>> {
        let path = settings.join(FILE);
        let file: Option<File> = files::load(&path, FILE_VERSION)?;
        let crawls = file.unwrap_or_default().crawl.into_iter().map(|crawl| (crawl.name.clone(), crawl)).collect();
        Ok(Arc::new(Glue {
            path,
            json,
            shell: OnceLock::new(),
            node: OnceLock::new(),
            leading: Arc::new(Leading::new(bits)),
            state: Mutex::new(State::of(crawls)),
            changed: Condvar::new(),
        }))
    }

    pub fn attach(&self, shell: &Arc<Shell>) {
        let _once = self.shell.set(Arc::downgrade(shell));
    }

    /// Sites can be asked whose they are from now on.
    pub fn looks(&self, node: &Arc<super::Node>) {
        let _once = self.node.set(Arc::downgrade(node));
    }

    fn shell(&self) -> Option<Arc<Shell>> {
        self.shell.get().and_then(Weak::upgrade)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The process is to end.
    pub fn stop(&self) {
        let mut state = self.lock();
        state.stopped = true;
        if let Some((_, control)) = &state.running {
            control.stop();
        }
        self.changed.notify_all();
    }

    /// Owners told something new about crawls. What it comes to is written where people find it.
    fn hear(&self, instructions: &[Arc<SignedInstruction>]) -> Result<()> {
        let mut state = self.lock();
        let known = state.crawls.clone();
        state.crawls.extend(told::crawls(instructions));
        if state.crawls != known {
            let file = File { version: FILE_VERSION, crawl: state.crawls.values().cloned().collect() };
            files::store(&self.path, &file, 0o644)?;
            self.changed.notify_all();
        }
        Ok(())
    }

    /// The portal answers from now on.
    pub fn serves(&self, asker: Asker) {
        self.lock().asker = Some(asker);
    }

    /// Contributors of other nodes work for this one from now on.
    pub fn hands_out(&self, contributors: &Arc<skep_contribute::Node>) {
        self.lock().contributors = Some(contributors.clone());
    }

    /// Something is fetched for others from now on, while this is crawled; or nothing any more.
    pub fn follows(&self, follower: Option<(String, Arc<Follower>)>) {
        self.lock().follower = follower;
    }

    fn contributors(&self) -> std::result::Result<Arc<skep_contribute::Node>, String> {
        self.lock().contributors.clone().ok_or_else(|| NO_CONTRIBUTORS.into())
    }

    /// The crawl that the network runs: of those that go on, the newest.
    pub fn wanted(&self) -> Option<Crawl> {
        self.lock().wanted()
    }

    /// Crawls of the network, those that have ended too.
    pub fn crawls(&self) -> Vec<Crawl> {
        self.lock().crawls.values().cloned().collect()
    }

    /// A crawl of the network by its name.
    pub fn known(&self, name: &str) -> Option<Crawl> {
        self.lock().crawls.get(name).cloned()
    }

    /// Waits until another crawl than this one is wanted, or the process is to end: then `None`.
    pub fn wait(&self, than: Option<&Crawl>) -> Option<Option<Crawl>> {
        let state = self.lock();
        let same = |state: &mut State| !state.stopped && !state.has_left(self) && state.wanted().as_ref() == than;
        let waited = self.changed.wait_timeout_while(state, std::time::Duration::from_secs(1), same);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.stopped || state.has_left(self) {
            return None;
        }
        let wanted = state.wanted();
        drop(state);
        Some(wanted)
    }

    /// A crawl begins here; it is told of everything that is led already once it hears.
    pub fn begins(&self, name: &str, control: &Control) {
        self.lock().running = Some((name.to_owned(), control.clone()));
    }

    /// The crawl hears now.
    pub fn began(&self) {
        let state = self.lock();
        let Some((_, control)) = &state.running else { return };
        for (slice, (until, politeness)) in &state.leases {
            control.lead(*slice, *until, Some(politeness.clone()));
        }
    }

    pub fn ended(&self) {
        let mut state = self.lock();
        state.running = None;
        state.progress = Value::Null;
    }

    pub fn tell_progress(&self, progress: Value) {
        self.lock().progress = progress;
    }

    /// The crawl that runs here, and how it stands.
    pub fn progress(&self) -> Option<(String, Value)> {
        let state = self.lock();
        state.running.as_ref().map(|(name, _)| (name.clone(), state.progress.clone()))
    }

    /// What makes a crawl part of the network.
    pub fn share(self: &Arc<Glue>) -> Share {
        Share { leading: self.leading.clone(), outlet: Arc::new(Way(self.clone())) }
    }
}

impl State {
    fn of(crawls: BTreeMap<String, Crawl>) -> State {
        State {
            crawls,
            running: None,
            leases: HashMap::new(),
            progress: Value::Null,
            asker: None,
            contributors: None,
            follower: None,
            notes: Notes::new(Instant::now()),
            stopped: false,
        }
    }

    fn wanted(&self) -> Option<Crawl> {
        let going = self.crawls.values().filter(|crawl| crawl.runs);
        going.max_by_key(|crawl| (crawl.version, crawl.name.clone())).cloned()
    }

    fn has_left(&self, glue: &Glue) -> bool {
        glue.shell().is_some_and(|shell| shell.has_left())
    }
}

impl Work for Glue {
    fn lead(&self, slice: Slice, until: Instant, politeness: Option<Vec<Politeness>>) {
        let mut state = self.lock();
        let politeness: Option<Vec<Vec<u8>>> = politeness.map(|all| all.iter().map(|one| one.to_vec()).collect());
        match &politeness {
            Some(politeness) => {
                self.leading.offer(slice);
                drop(state.leases.insert(slice, (until, politeness.clone())));
            }
            None => {
                if let Some(lease) = state.leases.get_mut(&slice) {
                    lease.0 = until;
                }
                self.leading.renew(slice, until);
            }
        }
        if let Some((_, control)) = &state.running {
            control.lead(slice, until, politeness);
        }
    }

    fn stop(&self, slice: Slice) -> bool {
        self.leading.stop(slice);
        let mut state = self.lock();
        let led = state.leases.remove(&slice).is_some();
        // A crawl that hears it tells how long the sites of the slice are to be left alone.
        led && state.running.as_ref().is_some_and(|(_, control)| control.stop_leading(slice))
    }

    fn split(&self, splits: &Arc<skep_url::Splits>) {
        self.leading.split(splits.clone());
    }

    fn visit(&self, site: Site, until: Option<Instant>, politeness: Vec<Politeness>) {
        self.leading.offer_visit(site, until);
        if let (Some(until), Some((_, control))) = (until, &self.lock().running) {
            control.visit(site, until, politeness.iter().map(|one| one.to_vec()).collect());
        }
    }

    fn heed(&self, site: Site, politeness: Politeness) {
        if let Some((_, control)) = &self.lock().running {
            control.heed(site, politeness.to_vec());
        }
    }

    fn links(&self, _: Key, batch: Batch, back: Back) {
        let control = match &self.lock().running {
            Some((name, control)) if *name == batch.crawl => control.clone(),
            _ => return back(Taken::default()),
        };
        control.hear(
            batch.links.into_iter().map(link_heard).collect(),
            Box::new(move |taken| back(Taken { taken, leaders: Vec::new() })),
        );
    }

    fn instructed(&self, instructions: &[Arc<SignedInstruction>]) {
        if let Err(failure) = self.hear(instructions) {
            say(&format!("note: what the network crawls could not be written down: {}", failure.what));
        }
    }

    fn answer(&self, target: &str, slices: &[Slice]) -> std::result::Result<Vec<u8>, String> {
        let asker = self.lock().asker.clone().ok_or("this node has no portal")?;
        let shell = self.shell().ok_or("this node ends")?;
        let held: HashSet<Slice> = slices.iter().copied().collect();
        let said = asker.answer(target, name_of(slices.iter()), &|hash| held.contains(&shell.slice_of(hash)))?;
        Ok(said.to_string().into_bytes())
    }

    fn bundles(&self) -> std::result::Result<Vec<u8>, String> {
        Ok(self.contributors()?.waiting())
    }

    fn contributor(&self, through: Key, address: IpAddr, message: &[u8]) -> std::result::Result<Vec<u8>, String> {
        Ok(self.contributors()?.handle_through(through.0, address, message))
    }

    fn follow(&self, led: &Led, message: &[u8]) -> std::result::Result<Telling, String> {
        let asked = Question::decode(message).ok_or("this is no question")?;
        let follower = match &self.lock().follower {
            Some((crawl, follower)) if *crawl == asked.crawl => follower.clone(),
            _ => return Err(NOT_FOLLOWING.into()),
        };
        let shell = self.shell().ok_or("this node ends")?;
        // Whose turn it is at a site that is split no lease says.
        let splits = shell.splits();
        let is_theirs = |url: &skep_url::Url| {
            let site = url.key().site_hash();
            shell.slice_of(site) == led.slice && splits.of(site).is_none()
        };
        let (way, lease) = (Arc::downgrade(&shell), *led);
        let still_leads = Arc::new(move || way.upgrade().is_some_and(|shell| shell.still_leads(&lease)));
        let from = From { leader: led.by.0, leads_for: led.left, is_theirs: &is_theirs, still_leads };
        follower.answer(&from, asked.asked)
    }

    fn prove(&self, host: &str) -> Proof {
        match self.node.get().and_then(Weak::upgrade) {
            Some(node) => super::owners::prove(&node, host),
            None => Proof::Later("this node begins or ends".into()),
        }
    }

    fn note(&self, note: &Note) {
        // What happens all the time is counted, not told.
        if matches!(note.what, What::Lease | What::Audited | What::Epoch | What::Repair | What::Present) {
            return;
        }
        let Some(times) = self.lock().notes.hear(note, Instant::now()) else { return };
        let peer = note.peer.map(|peer| peer.short());
        if self.json {
            let what = format!("{:?}", note.what).to_lowercase();
            let told = json!({
                "event": "note", "what": what, "node": peer, "slice": note.slice, "why": note.why, "times": times,
            });
            return say(&told.to_string());
        }
        let peer = peer.map(|peer| format!("{peer}: ")).unwrap_or_default();
        let slice = note.slice.map(|slice| format!("slice {slice}: ")).unwrap_or_default();
        let times = if times > 1 { format!(" ({times} times since it was told)") } else { String::new() };
        say(&format!("note: {slice}{peer}{}{times}", note.why));
    }
}

/// A link as another node tells it.
fn link_heard(link: Link) -> sharing::Link {
    let site = link.site.and_then(sharing::Referrer::from_bit);
    sharing::Link { url: link.url, depth: link.depth, needed: link.needed, site, gone: link.gone }
}

/// A link as it is told to another node.
fn link_told(link: sharing::Link) -> Link {
    let site = link.site.map(sharing::Referrer::bit);
    Link { url: link.url, depth: link.depth, needed: link.needed, gone: link.gone, site }
}

/// The way of a crawl to the others.
struct Way(Arc<Glue>);

impl Outlet for Way {
    fn leader(&self, slice: u32) -> Option<sharing::Node> {
        let shell = self.0.shell()?;
        shell.leader(slice).filter(|leader| *leader != shell.key()).map(|leader| leader.0)
    }

    fn send(&self, crawl: &str, to: sharing::Node, links: Vec<sharing::Link>, back: sharing::Back) {
        let Some(shell) = self.0.shell() else { return back(false) };
        let batch = Batch { crawl: crawl.to_owned(), links: links.into_iter().map(link_told).collect() };
        // What this node found goes to a node in one batch at a time; so does what each batch of others brings for places of sites that are split.
        let back = Arc::new(Mutex::new(Some(back)));
        let told = back.clone();
        let tell = |back: &Mutex<Option<sharing::Back>>, safe: bool| {
            let back = back.lock().unwrap_or_else(PoisonError::into_inner).take();
            back.into_iter().for_each(|back| back(safe));
        };
        let send = std::thread::Builder::new().spawn(move || tell(&told, shell.send_links(Key(to), batch)));
        // Too many at once, it is tried again.
        if send.is_err() {
            tell(&back, false);
        }
    }

    fn polite(&self, slice: u32, politeness: Vec<u8>, out: bool) {
        if let Some(shell) = self.0.shell() {
            if let Some(lease) = self.0.lock().leases.get_mut(&slice) {
                lease.1 = vec![politeness.clone()];
            }
            shell.polite(slice, politeness, out);
        }
    }

    fn give_up(&self, slice: u32) {
        if let Some(shell) = self.0.shell() {
            shell.decline(slice);
        }
    }

    fn pace(&self, site: u32, wanted: bool, out: bool, back: Option<Vec<u8>>) {
        if let Some(shell) = self.0.shell() {
            shell.pace(site, wanted, out, back);
        }
    }

    fn remind(&self, site: u32, politeness: Vec<u8>) {
        if let Some(shell) = self.0.shell() {
            shell.remind(site, politeness);
        }
    }

    fn same_body(&self, brought: sharing::Brought, back: sharing::BackBody) {
        let (Some(shell), Digest::Sha1(payload)) = (self.0.shell(), brought.sum.payload) else { return back(None) };
        let Sum { sha256, length, keyed, .. } = brought.sum;
        shell.same_body(Body { payload, sha256, length, referrer: brought.url }, brought.key, keyed, back);
    }

    fn kept_body(&self, sha256: [u8; 32], length: u64) {
        if let Some(shell) = self.0.shell() {
            shell.kept_body(sha256, length);
        }
    }
}

/// Tells some slices from others.
fn name_of<'s>(slices: impl Iterator<Item = &'s Slice>) -> u64 {
    let bytes: Vec<u8> = slices.flat_map(|slice| slice.to_le_bytes()).collect();
    skep_ring::Hash::of("skep slices", &bytes).number()
}

/// What other nodes hold, for the portal.
pub struct Others(pub Arc<super::Node>);

impl Others {
    fn told(&self, told: skep_ring::shell::Everywhere) -> Everywhere {
        let shell = self.0.shell.clone();
        let name = name_of(told.here.iter());
        let here = told.here;
        Everywhere {
            name,
            here: Box::new(move |hash| here.contains(&shell.slice_of(hash))),
            // Each goes as it is read: they are not there twice.
            said: told.said.into_iter().filter_map(|said| serde_json::from_slice(&said).ok()).collect(),
            nodes: told.nodes,
            silent: told.silent,
        }
    }
}

impl Elsewhere for Others {
    fn is_elsewhere(&self, site_hash: u32) -> bool {
        let shell = &self.0.shell;
        let slice = shell.slice_of(site_hash);
        !shell.holds(slice) && !shell.holders(slice).is_empty()
    }

    fn captures(
        &self,
        site_hash: u32,
        query: &skep_archive::captures::Query,
    ) -> std::result::Result<Vec<skep_archive::Capture>, String> {
        let is_split = |site: u32| self.0.shell.splits().of(site).is_some();
        if query.matching.site().is_some_and(is_split) {
            return self.0.shell.captures_of_places(query);
        }
        self.0.shell.captures(self.0.shell.slice_of(site_hash), query)
    }

    fn is_in_part_elsewhere(&self, matching: &skep_archive::captures::Match) -> bool {
        self.0.shell.is_in_part_elsewhere(matching)
    }

    fn scan(&self, query: &skep_archive::captures::Query) -> Scanned {
        if query.matching.places(&self.0.shell.splits()).len() > 1 {
            let scan = self.0.shell.scan_places(query);
            return Scanned { silent: scan.silent(), captures: Box::new(scan) };
        }
        let scan = self.0.shell.scan(query);
        Scanned { silent: scan.silent(), captures: Box::new(scan) }
    }

    fn record(&self, capture: &skep_archive::Capture) -> std::result::Result<skep_archive::Stored, String> {
        self.0.shell.record(capture)
    }

    fn status(&self) -> Value {
        crate::ring::status(&self.0)
    }

    fn everywhere(&self, target: &dyn Fn(usize) -> String) -> Everywhere {
        self.told(self.0.shell.everywhere(target))
    }

    fn everywhere_of(&self, sites: &BTreeSet<u32>, target: &dyn Fn(usize) -> String) -> Everywhere {
        let shell = &self.0.shell;
        self.told(shell.everywhere_in(sites.iter().map(|site| shell.slice_of(*site)).collect(), target))
    }

    fn owner_proof(&self, host: &str) -> (String, String) {
        (super::owners::PLACE.to_owned(), super::owners::line(&self.0, host))
    }

    fn owner_wish(&self, host: &str, wish: Wish) -> std::result::Result<String, Unheard> {
        super::owners::wish(&self.0, host, wish)
    }

    fn portal_of(&self, site_hash: u32) -> Option<String> {
        let shell = &self.0.shell;
        self.0.lead_away.then(|| shell.portal_of(shell.slice_of(site_hash))).flatten()
    }

    fn seed(&self, urls: Vec<String>) -> std::result::Result<Value, String> {
        super::crawling::seed(&self.0, urls).map_err(|failure| failure.what)
    }

    fn metrics(&self) -> Vec<(&'static str, &'static str, u64)> {
        let status = self.0.shell.status();
        let there = status.nodes.iter().filter(|node| matches!(node.state, "here" | "present" | "leaving")).count();
        let count = |what: &str| status.counts.get(what).copied().unwrap_or(0);
        let near = self.0.near.sums();
        let relayed = status.relayed.unwrap_or_default();
        vec![
            ("skep_ring_nodes", "Nodes of the network that are there.", there as u64),
            (
                "skep_ring_settled",
                "1 if every slice has its holders and all have all that is here.",
                u64::from(status.settled),
            ),
            ("skep_ring_full", "1 if the disk of this node has no room.", u64::from(status.full)),
            ("skep_ring_led", "Slices that this node leads.", u64::from(status.leads)),
            ("skep_ring_held", "Slices that this node holds.", status.held.len() as u64),
            ("skep_ring_sent_bytes", "Bytes said and answered to other nodes.", status.traffic.0),
            ("skep_ring_received_bytes", "Bytes heard from other nodes.", status.traffic.1),
            ("skep_ring_relay_nodes", "Nodes connected to the relay that this node serves.", relayed.nodes),
            ("skep_ring_relayed_bytes", "Bytes carried by the relay that this node serves.", relayed.bytes),
            ("skep_ring_relay_refused", "Connections refused by the relay that this node serves.", relayed.refused),
            ("skep_ring_pulled_bytes", "Bytes of segments copied to here.", status.pulled_bytes),
            ("skep_ring_refused", "Messages, facts and questions that were refused.", count("refused")),
            ("skep_ring_suspended", "Copies of others that failed an audit.", count("suspended")),
            ("skep_ring_altered", "Bytes that did not verify.", count("altered")),
            ("skep_ring_floods", "Messages of nodes that said too much.", count("flood")),
            ("skep_ring_newer", "Messages of kinds that this program does not know.", count("newer")),
            ("skep_ring_twins", "Signs that another machine uses this node's key.", count("twin")),
            ("skep_ring_clock_off", "Times that the clock of this node was found to be off.", count("clock")),
            ("skep_ring_absences", "Nodes that were found absent or retired.", count("absent")),
            (
                "skep_ring_bodies_referred",
                "URLs of slices led here whose revisits stand for bodies that other slices keep.",
                status.bodies.referrers,
            ),
            (
                "skep_ring_bodies_saved_bytes",
                "Bytes of these bodies, which are not kept again.",
                status.bodies.saved_bytes,
            ),
            (
                "skep_ring_bodies_waiting",
                "Removed bodies that wait here until all who refer to them have their own.",
                status.bodies.waiting,
            ),
            ("skep_ring_bodies_given", "Bodies of their own that referrers got here.", status.bodies.given),
            (
                "skep_ring_bodies_lost",
                "Bodies to which slices led here refer and which nobody can give.",
                status.bodies.lost,
            ),
            ("skep_ring_recoveries", "Epochs that began without a majority.", count("recovery")),
            ("skep_ring_near_hosts", "Hosts that are nearer to another holder than to this node.", near.hosts),
            ("skep_ring_near_bundles", "Bundles that nearer holders fetched for this node.", near.gain.back),
            ("skep_ring_near_pages", "Pages that they brought.", near.gain.urls),
            (
                "skep_ring_near_connect_ms_saved",
                "Milliseconds by which their connections were quicker than those of this node.",
                u64::try_from(near.gain.connect_ms_saved).unwrap_or(0),
            ),
            ("skep_ring_near_measured", "Connect times that other holders told.", near.gain.measured),
            ("skep_ring_near_followed", "Bundles that this node fetched for others.", near.followed),
        ]
    }
}
