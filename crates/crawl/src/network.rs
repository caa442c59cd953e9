//! The network between the crawl and the sites, as the exchanges show it: the schedule's judgement ([`skep_schedule::outage`],
//! [`skep_schedule::beat`], [`skep_schedule::breaker`]), fed by all workers, with the canaries that it wants asked.
//!
//! ```text
//!  an exchange is over ──▶ look ──▶ what it seems                     nothing is changed
//!                           │  └──▶ the network's doing               the outcome says so, nobody is blamed, nothing is kept
//!                           └─────▶ doubtful: a canary is asked, and who doubts with us waits for what it says
//! ```

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use skep_fetch::{Ask, DnsFault, Exchange, Fault, ProxyFault, Session, Stage};
use skep_page::LinkKind;
use skep_schedule::beat::Beat;
use skep_schedule::breaker::{Ban, Breakers};
use skep_schedule::outage::{Cause, Doubt, Outage, Sign};
use skep_schedule::{AddressKey, SiteId};
use skep_url::Url;
use tokio::sync::Notify;

use crate::checks;
use crate::hearing::{host_key, site_id};
use crate::judge::{self, Judgement};
use crate::limits::{
    ALIKE_BYTES_MAX, ALIKE_KEPT_MAX, CANARIES_MAX, CANARY_NOTED_MS, CANARY_TURN_MS, DOUBT_MS_MAX, ROBOTS_BYTES_MAX,
};
use crate::outcome::Outcome;
use crate::visit::Visited;
use crate::worker::Parts;

/// What all workers know of the network.
pub struct Network {
    heart: Mutex<Heart>,
    /// What the heart says, for those who only look.
    down: AtomicBool,
    /// A canary was heard.
    told: Notify,
}

struct Heart {
    outage: Outage,
    breakers: Breakers,
    beat: Beat,
    canaries: Vec<Canary>,
    noted_ms: u64,
    /// The last visits whose answers a portal could have given, with what they came to.
    alike: VecDeque<(u64, Taken)>,
    /// Who was asked for when the proxy did not let us through.
    barred: Option<Url>,
}

/// A visit that may have to be taken back; that of a robots.txt has no entry.
type Taken = (Option<u64>, String);

/// A site that answered.
#[derive(Clone)]
struct Canary {
    site: SiteId,
    /// What its answer came to.
    sign: Sign,
    url: Url,
}

/// An exchange, as far as the network is concerned.
pub struct Seen<'a> {
    /// What was asked for.
    pub url: &'a Url,
    /// What came.
    pub exchange: &'a Exchange,
    /// When it began, on the schedule's clock.
    pub began_ms: u64,
}

impl Network {
    /// A network that is there. `permille`: waits in thousandths of the rule.
    pub fn new(permille: u32) -> Network {
        Network {
            heart: Mutex::new(Heart {
                outage: Outage::new(permille),
                breakers: Breakers::new(permille),
                beat: Beat::default(),
                canaries: Vec::new(),
                noted_ms: 0,
                alike: VecDeque::new(),
                barred: None,
            }),
            down: AtomicBool::new(false),
            told: Notify::new(),
        }
    }

    /// Nothing can be had at the moment.
    pub fn is_down(&self) -> bool {
        self.down.load(Ordering::Relaxed)
    }

    /// What is wrong, and since when on the schedule's clock.
    pub fn down(&self) -> Option<(Cause, u64)> {
        self.heart().outage.down()
    }

    /// It has been down for longer than a run waits.
    pub fn is_hopeless(&self, now_ms: u64) -> bool {
        self.is_down() && self.heart().outage.is_hopeless(now_ms)
    }

    /// Whoever runs the crawl is awake.
    pub fn beat(&self, now_ms: u64, wall_ms: i64) {
        self.heart().beat.beat(now_ms, wall_ms);
    }

    /// It is time to ask a canary whether the network is there again; said once for each time.
    pub fn is_probe_due(&self, now_ms: u64) -> bool {
        if !self.is_down() {
            return false;
        }
        let mut heart = self.heart();
        let due = heart.outage.next_probe_ms().is_some_and(|at_ms| at_ms <= now_ms);
        if due {
            heart.outage.probing(now_ms);
        }
        due
    }

    /// Was this answer found out to be a portal's while its visit waited to be kept?
    pub fn is_portal(&self, answer: Option<u64>) -> bool {
        answer.is_some_and(|answer| {
            self.is_down() && matches!(self.down(), Some((Cause::Portal(portal), _)) if portal == answer)
        })
    }

    /// A visit with this answer was kept. It comes after its records, so that a word that takes it back is written behind them.
    pub fn note(&self, answer: Option<u64>, entry: Option<u64>, url: &Url) {
        let Some(answer) = answer else { return };
        let mut heart = self.heart();
        if heart.alike.len() >= ALIKE_KEPT_MAX {
            heart.alike.pop_front();
        }
        heart.alike.push_back((answer, (entry, url.as_str().to_owned())));
    }

    /// What the network does, by this change of the heart; says whether it came or went.
    fn change<T>(&self, change: impl FnOnce(&mut Heart) -> T) -> (T, bool) {
        let mut heart = self.heart();
        let result = change(&mut heart);
        let down = heart.outage.down().is_some();
        (result, self.down.swap(down, Ordering::Relaxed) != down)
    }

    fn heart(&self) -> MutexGuard<'_, Heart> {
        self.heart.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heart {
    fn note_canary(&mut self, canary: Canary, now_ms: u64) {
        if now_ms.saturating_sub(self.noted_ms) < CANARY_NOTED_MS && self.canaries.len() == CANARIES_MAX {
            return;
        }
        self.noted_ms = now_ms;
        // One for each site, and one for each answer: those who answer alike would say the same again.
        let same = |known: &Canary| {
            known.site == canary.site || matches!(canary.sign, Sign::Alike(_)) && known.sign == canary.sign
        };
        self.canaries.retain(|known| !same(known));
        self.canaries.truncate(CANARIES_MAX - 1);
        self.canaries.insert(0, canary);
    }
}

/// Looks at an exchange that is over. Where the network or this machine is to blame, the judgement says so afterwards. Returns
/// what a portal could have answered; [`Network::note`] wants to know of it when the visit is kept.
pub async fn look(judged: &mut Judgement, seen: &Seen<'_>, session: &Session, parts: &Parts) -> Option<u64> {
    if seen.exchange.brought.is_some() {
        return None; // it says nothing about our own network
    }
    if let Some(others) = parts.others.as_ref().filter(|_| !seen.exchange.reused && seen.exchange.address.is_some()) {
        others.hands.connected(seen.url, seen.exchange.timings.connect_ms);
    }
    if is_barred(seen.exchange) {
        let ((), changed) = parts.network.change(|heart| {
            heart.barred = Some(seen.url.robots_txt());
            heart.outage.barred(parts.elapsed_ms());
        });
        if changed {
            parts.network_changed();
        }
        return None;
    }
    let sign = sign(seen, judged)?;
    let site = site_id(parts.site(seen.url));
    let now_ms = parts.elapsed_ms();
    let (doubt, changed) = parts.network.change(|heart| {
        if sign == Sign::Silence {
            heart.beat.beat(now_ms, parts.now_ms());
            if heart.beat.slept_since(seen.began_ms) {
                return None;
            }
        }
        let doubt = heart.outage.heard(sign, site, address(seen, session), now_ms);
        if doubt == Doubt::None && sign != Sign::Silence {
            heart.note_canary(Canary { site, sign, url: seen.url.robots_txt() }, now_ms);
        }
        Some(doubt)
    });
    if changed {
        parts.network_changed();
    }
    let doubt = match doubt {
        None => {
            blame(judged, Outcome::MACHINE_SLEPT);
            return None;
        }
        Some(Doubt::Ask(cause)) => ask(cause, parts).await,
        Some(Doubt::Wait) => wait(parts).await,
        Some(doubt) => doubt,
    };
    match (doubt, sign) {
        (Doubt::Down(_), Sign::Silence) => blame(judged, Outcome::NETWORK_DOWN),
        (Doubt::Down(Cause::Portal(portal)), Sign::Alike(answer)) if answer == portal => {
            blame(judged, Outcome::CAPTIVE_PORTAL);
        }
        _ => turned_away(judged, sign, site, seen, session, parts),
    }
    match sign {
        Sign::Alike(answer) if !judged.outcome.is_between() => Some(answer),
        _ => None,
    }
}

/// The proxy does not let us through, whoever is asked for.
fn is_barred(exchange: &Exchange) -> bool {
    matches!(exchange.fault, Some(Fault::Proxy(ProxyFault::Unreachable(_) | ProxyFault::Credentials)))
}

/// The network is there. Does the address turn us away, whatever site of it we ask for?
fn turned_away(judged: &mut Judgement, sign: Sign, site: SiteId, seen: &Seen<'_>, session: &Session, parts: &Parts) {
    let address = address(seen, session);
    let mut heart = parts.network.heart();
    let ban = match judged.outcome.0 {
        _ if sign == Sign::Silence => heart.breakers.refused(address, site, seen.began_ms, parts.elapsed_ms()),
        403 | 429 => heart.breakers.refused(address, site, seen.began_ms, parts.elapsed_ms()),
        200..=399 | 404 | 410 => {
            if heart.breakers.answered(address) {
                parts.banned(address, None);
            }
            return;
        }
        // A server in trouble and a test for robots say nothing about the address.
        _ => return,
    };
    drop(heart);
    if ban == Ban::None {
        return;
    }
    if ban != Ban::Holds {
        parts.banned(address, Some(ban));
    }
    // A time that it asks for itself it gets all the same.
    let park_ms = judged.park_ms.filter(|ms| *ms > 0);
    blame(judged, Outcome::PROVIDER_BAN);
    judged.park_ms = park_ms;
}

/// Nothing of it is the site's: no links, no wish to be left alone.
fn blame(judged: &mut Judgement, outcome: Outcome) {
    judged.outcome = outcome;
    judged.links.clear();
    judged.follow = false;
    judged.park_ms = None;
    judged.page = None;
}

/// What an exchange shows of the network; nothing where it shows neither that it is there nor that it is not.
fn sign(seen: &Seen<'_>, judged: &Judgement) -> Option<Sign> {
    if seen.exchange.response.is_empty() {
        // A name that does not exist and a handshake that fails are said by somebody; a rule of ours is not about the network.
        return match &seen.exchange.fault {
            Some(Fault::Dns(DnsFault::ServerFailed(_) | DnsFault::Timeout | DnsFault::NoResolver(_)))
            | Some(Fault::Connect(_) | Fault::Closed)
            | Some(Fault::Timeout(Stage::Connect | Stage::Handshake | Stage::FirstByte)) => Some(Sign::Silence),
            _ => None,
        };
    }
    Some(alike(seen, judged).map_or(Sign::Answer, Sign::Alike))
}

/// What an answer comes to that a portal could have given: a page, or a redirect to somebody else. Portals say a little more
/// about each page that was asked for, in the query of the redirect: who is redirected to counts, not the address as a whole.
fn alike(seen: &Seen<'_>, judged: &Judgement) -> Option<u64> {
    let status = seen.exchange.status()?;
    if (300..400).contains(&status) && status != 304 {
        let to = judged.links.iter().find(|link| link.kind == LinkKind::Redirect)?;
        let to = Url::parse(to.url).ok().filter(|to| to.host_name() != seen.url.host_name())?;
        return Some(xxhash_rust::xxh3::xxh3_64(host_key(&to).as_bytes()));
    }
    if status != 200 || judged.mime != "text/html" {
        return None;
    }
    let body = seen.exchange.response.bytes(seen.exchange.head_bytes as u64, ALIKE_BYTES_MAX).ok()?;
    Some(xxhash_rust::xxh3::xxh3_64_with_seed(&body, seen.exchange.body_bytes()))
}

fn address(seen: &Seen<'_>, session: &Session) -> AddressKey {
    let connected = seen.exchange.address.map(|address| address.ip());
    let resolved = || session.resolved().and_then(|resolved| resolved.addresses.first().copied());
    connected.or_else(resolved).map_or(AddressKey::UNKNOWN, AddressKey::of)
}

/// Asks the canaries, and tells everybody what they said.
async fn ask(cause: Cause, parts: &Parts) -> Doubt {
    let canary = canary(cause, parts).await;
    let (doubt, changed) = parts.network.change(|heart| heart.outage.told(canary, parts.elapsed_ms()));
    if let (Doubt::Down(Cause::Portal(answer)), true) = (doubt, changed) {
        take_back(answer, parts);
    }
    parts.network.told.notify_waiters();
    if changed {
        parts.network_changed();
    }
    doubt
}

/// Asks again while the network is down.
pub async fn probe(parts: &Parts) {
    if let Some((cause, _)) = parts.network.down() {
        ask(cause, parts).await;
    }
}

async fn wait(parts: &Parts) -> Doubt {
    let patience = Duration::from_millis(DOUBT_MS_MAX);
    let settled = async {
        loop {
            // Made before the look, so that nothing said after it is missed.
            let told = parts.network.told.notified();
            match parts.network.heart().outage.verdict() {
                Doubt::Wait => {}
                doubt => return doubt,
            }
            told.await;
        }
    };
    tokio::time::timeout(patience, settled).await.unwrap_or(Doubt::None)
}

/// What the canaries show; nothing where none can be asked.
async fn canary(cause: Cause, parts: &Parts) -> Option<Sign> {
    let canaries = parts.network.heart().canaries.clone();
    match cause {
        // Whether anybody is there is found out without a request: nobody's clock has to be waited for.
        Cause::Silence => {
            let knocks = canaries.iter().map(|canary| parts.fetcher.knock(&canary.url));
            let answers = all(knocks).await;
            let could_ask = |answer: &Result<(), Fault>| !matches!(answer, Err(Fault::LocalResources(_)));
            match answers.iter().any(Result::is_ok) {
                true => Some(Sign::Answer),
                false => answers.iter().any(could_ask).then_some(Sign::Silence),
            }
        }
        // Whoever was asked for last is asked for again: that he is not reached says nothing, only that the proxy is not.
        Cause::Barred => {
            let url = parts.network.heart().barred.clone()?;
            let exchange = robots_of(&url, parts).await?;
            match exchange.fault {
                Some(Fault::LocalResources(_)) => None,
                _ => Some(if is_barred(&exchange) { Sign::Silence } else { Sign::Answer }),
            }
        }
        // A portal answers for everybody: one who answers as himself is enough to see that there is none.
        Cause::Portal(portal) => {
            let mut heard = None;
            for canary in &canaries {
                match sing(&canary.url, parts).await {
                    Some(Sign::Silence) | None => {}
                    Some(sign) => heard = Some(sign),
                }
                if heard.is_some_and(|sign| sign != Sign::Alike(portal)) {
                    break;
                }
            }
            heard
        }
    }
}

/// All of a few, side by side.
async fn all<F: Future>(futures: impl Iterator<Item = F>) -> Vec<F::Output> {
    let mut pending: Vec<_> = futures.map(|future| (Box::pin(future), None)).collect();
    std::future::poll_fn(|context| {
        let mut ready = true;
        for (future, output) in &mut pending {
            if output.is_none() {
                match future.as_mut().poll(context) {
                    std::task::Poll::Ready(value) => *output = Some(value),
                    std::task::Poll::Pending => ready = false,
                }
            }
        }
        if ready { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
    pending.into_iter().filter_map(|(_, output)| output).collect()
}

/// What a canary shows when it is asked for its robots.txt.
async fn sing(url: &Url, parts: &Parts) -> Option<Sign> {
    let exchange = robots_of(url, parts).await?;
    let judged = judge::judge(&exchange, url, parts.now_ms(), true);
    sign(&Seen { url, exchange: &exchange, began_ms: 0 }, &judged)
}

/// Asks for a robots.txt, at the pace of its site. Nothing is kept of it.
async fn robots_of(url: &Url, parts: &Parts) -> Option<Exchange> {
    let pace = parts.pace(url);
    parts.turn(url, pace, parts.elapsed_ms() + CANARY_TURN_MS).await.ok()?;
    let mut session = parts.fetcher.session(url);
    let ask = Ask { body_bytes_max: Some(ROBOTS_BYTES_MAX), ..Ask::new(url) };
    let exchange = session.get(&ask).await;
    parts.answered(url, pace, exchange.timings.total_ms.into(), None);
    Some(exchange)
}

/// Pages that a portal gave before it was found out wait again, and what it said about robots is forgotten.
fn take_back(portal: u64, parts: &Parts) {
    let alike = std::mem::take(&mut parts.network.heart().alike);
    let visits = alike.into_iter().filter(|(answer, _)| *answer == portal).map(|(_, taken)| taken);
    let settings = parts.settings();
    let mut hosts: BTreeMap<String, Vec<Visited>> = BTreeMap::new();
    for (entry, url) in visits {
        let Ok(parsed) = Url::parse(&url) else { continue };
        parts.robots.forget(parsed.robots_txt().as_str());
        let Some(entry) = entry else { continue };
        let visited = Visited { url, ..Visited::bare(entry, Outcome::CAPTIVE_PORTAL, parts.now_ms(), 0) };
        hosts.entry(host_key(&parsed)).or_default().push(visited);
    }
    for (host, visits) in hosts {
        let lines: Vec<checks::Check> = visits
            .iter()
            .map(|visited| checks::Check {
                fingerprint: parts.fingerprint(settings.number, &visited.url),
                time_ms: visited.time_ms,
                outcome: checks::Outcome::Fault(visited.outcome.id().into()),
                failures: 0,
            })
            .collect();
        let (block, _all) = checks::encode(&settings.name, &host, &lines);
        let hash = skep_archive::Key::of(&format!("{host}/")).site_hash();
        let hash = parts.leading.as_ref().map_or(hash, |leading| leading.recorded_under(hash));
        parts.append_checks(hash, block, visits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canary(site: u32, sign: Sign) -> Canary {
        Canary { site: SiteId(site), sign, url: Url::parse("http://a.test/robots.txt").unwrap() }
    }

    #[test]
    fn canaries_are_few_and_each_says_something_of_its_own() {
        let network = Network::new(1_000);
        let mut heart = network.heart();
        for number in 0..100 {
            heart.note_canary(canary(number, Sign::Alike(7)), u64::from(number) * 1_000_000);
        }
        assert_eq!(heart.canaries.len(), 1, "one answer needs no two witnesses");
        for number in 0..100 {
            heart.note_canary(canary(number % 20, Sign::Answer), u64::from(number) * 2_000_000);
        }
        assert_eq!(heart.canaries.len(), CANARIES_MAX);
        let sites: std::collections::BTreeSet<SiteId> = heart.canaries.iter().map(|canary| canary.site).collect();
        assert_eq!(sites.len(), CANARIES_MAX);
    }

    #[test]
    fn what_is_kept_of_answers_is_bounded() {
        let network = Network::new(1_000);
        let url = Url::parse("http://a.test/").unwrap();
        for _ in 0..ALIKE_KEPT_MAX + 10 {
            network.note(Some(7), Some(1), &url);
        }
        network.note(None, Some(1), &url);
        network.note(Some(8), None, &url);
        let heart = network.heart();
        assert_eq!(heart.alike.len(), ALIKE_KEPT_MAX);
        assert_eq!(heart.alike.back().map(|(answer, _)| *answer), Some(8), "the last ones count");
    }
}
