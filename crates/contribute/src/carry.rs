//! One bundle at its pace: robots.txt first where the node does not know it, then URL after URL, until all are fetched, the lease is
//! nearly over, or the host has enough. Whatever the bundle says, the owner's rules hold.

use std::time::Duration;

use skep_schedule::pace;
use skep_url::Url;

use crate::contributor::Main;
use crate::fetcher::origin;
use crate::limits::{BUNDLE_BYTES_MAX, CARRY_SECONDS, LEASE_MS_MAX, LEASE_USED_PERCENT, ROBOTS_HOPS_MAX};
use crate::message::{Bundle, Fetched, ROBOTS, Task};
use crate::meter::Asked;
use crate::pipe::{Answered, Errand, Ruled};
use crate::work::{Part, Whose};

/// No request begins when less than this is left of a lease.
const RESERVE: Duration = Duration::from_millis(1_500);

/// A moment by a clock that goes on while the machine sleeps: leases do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment(Duration);

impl Moment {
    /// Now.
    pub fn now() -> Moment {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Moment(Duration::new(now.tv_sec.unsigned_abs(), now.tv_nsec.unsigned_abs().try_into().unwrap_or(0)))
    }

    /// As it travels, to come back: milliseconds, rounded down.
    pub fn ticket(self) -> u64 {
        u64::try_from(self.0.as_millis()).unwrap_or(u64::MAX)
    }

    /// The moment of a ticket that was given here not longer ago than that.
    pub fn of_ticket(ticket: u64, ago_max: Duration) -> Option<Moment> {
        let (moment, now) = (Duration::from_millis(ticket), Moment::now().0);
        (moment <= now && now - moment <= ago_max).then_some(Moment(moment))
    }

    /// So long from now on.
    pub fn after(time: Duration) -> Moment {
        Moment(Moment::now().0 + time)
    }

    /// When a contributor has to be done with what it asked for at this moment: no honest node gives more time than any.
    pub fn until(self, lease_ms: u32) -> Moment {
        let lease_ms = u64::from(lease_ms).min(LEASE_MS_MAX);
        Moment(self.0 + Duration::from_millis(lease_ms * LEASE_USED_PERCENT / 100))
    }

    /// How long it is until then.
    pub fn left(self) -> Duration {
        self.0.saturating_sub(Moment::now().0)
    }
}

/// Why a bundle is not carried to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Its owner's rules forbid it, and nothing of it was fetched: it is for others, at once.
    Unwanted(String),
    /// Something went wrong.
    Failed(String),
}

impl From<String> for Broken {
    fn from(why: String) -> Broken {
        Broken::Failed(why)
    }
}

/// Carries a bundle; its results are on disk afterwards. `asked`: when the node was asked for it, before it can have been given.
pub async fn carry(bundle: Bundle, whose: Whose, asked: Moment, main: &Main) -> Result<(), Broken> {
    let until = asked.until(bundle.lease_ms);
    let tasks = sensible(&bundle, main)?;
    let Some((_, first)) = tasks.first() else { return Ok(()) };
    let mut place = Place { origin: origin(first), is_open: false, main };
    let counted = usize::from(is_short(&bundle));
    main.short.set(main.short.get() + counted);
    let is_open = place.open(&bundle, until).await;
    main.short.set(main.short.get() - counted);
    match is_open {
        true => with_connection(&bundle, whose, &tasks, until, &mut place).await,
        false => Ok(()), // the node gives it to others
    }
}

/// So few URLs that others let it go first: somebody waits for what it says about what they brought.
const SHORT_URLS: usize = 10;

fn is_short(bundle: &Bundle) -> bool {
    bundle.urls.len() <= SHORT_URLS
}

/// One of the connections that may be open at once.
struct Place<'m> {
    origin: String,
    is_open: bool,
    main: &'m Main,
}

impl Place<'_> {
    /// Waits for one; false when the lease is nearly over.
    async fn open(&mut self, bundle: &Bundle, until: Moment) -> bool {
        while !self.is_open {
            let taken = self.main.meter.borrow_mut().connect();
            match taken {
                Ok(()) => self.is_open = true,
                Err(why) => {
                    doing(self.main, bundle.id, &why.to_string());
                    if !self.wait(until).await {
                        return false;
                    }
                }
            }
        }
        true
    }

    async fn wait(&self, until: Moment) -> bool {
        if until.left() <= RESERVE {
            return false;
        }
        tokio::select! {
            () = self.main.changed.notified() => {}
            () = tokio::time::sleep(Duration::from_millis(200)) => {}
        }
        true
    }

    /// Between two requests of a long bundle a short one may go first; false when the lease is nearly over.
    async fn let_go_first(&mut self, bundle: &Bundle, until: Moment) -> bool {
        if is_short(bundle) || self.main.short.get() == 0 || !self.main.meter.borrow().is_full() {
            return true;
        }
        self.close();
        while self.main.short.get() > 0 {
            if !self.wait(until).await {
                return false;
            }
        }
        self.open(bundle, until).await
    }

    fn close(&mut self) {
        if std::mem::take(&mut self.is_open) {
            self.main.close(self.origin.clone());
            self.main.meter.borrow_mut().closed();
            self.main.changed.notify_waiters();
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.close();
    }
}

/// URLs of one host, of a kind that may be asked for at all.
fn sensible(bundle: &Bundle, main: &Main) -> Result<Vec<(usize, Url)>, Broken> {
    let mut tasks: Vec<(usize, Url)> = Vec::with_capacity(bundle.urls.len());
    for (number, task) in bundle.urls.iter().enumerate() {
        let Ok(url) = Url::parse(&task.url) else {
            return Err(format!("a bundle of {} holds what is no URL", bundle.host).into());
        };
        if let Some((_, first)) = tasks.first()
            && origin(first) != origin(&url)
        {
            return Err(format!("a bundle of {} holds other hosts: not taken", bundle.host).into());
        }
        if main.meter.borrow().avoids(url.host_name()) {
            return Err(Broken::Unwanted(format!("{} is avoided, as its owner wishes", url.host_name())));
        }
        tasks.push((number, url));
    }
    Ok(tasks)
}

fn doing(main: &Main, id: u64, what: &str) {
    if let Some((_, doing)) = main.hand.borrow_mut().get_mut(&id) {
        what.clone_into(doing);
    }
}

async fn with_connection(
    bundle: &Bundle,
    whose: Whose,
    tasks: &[(usize, Url)],
    until: Moment,
    place: &mut Place<'_>,
) -> Result<(), Broken> {
    let main = place.main;
    let kept = |error: std::io::Error| format!("results cannot be kept: {error}");
    let mut part = main.work.begin(whose, bundle.id).map_err(kept)?;
    let done = through(bundle, tasks, until, place, &mut part).await;
    if part.is_empty() {
        return done;
    }
    main.work.finish(part).map_err(kept)?;
    done.map_err(|broken| match broken {
        Broken::Unwanted(why) | Broken::Failed(why) => Broken::Failed(why),
    })
}

async fn through(
    bundle: &Bundle,
    tasks: &[(usize, Url)],
    until: Moment,
    place: &mut Place<'_>,
    part: &mut Part,
) -> Result<(), Broken> {
    let main = place.main;
    let Some((_, first)) = tasks.first() else { return Ok(()) };
    let mut crawl_delay_ms = bundle.robots.and_then(|rules| rules.crawl_delay_ms);
    let mut allowed = vec![true; tasks.len()];
    if bundle.robots.is_none() {
        doing(main, bundle.id, "asking for robots.txt");
        let Some(rules) = robots(bundle, first, tasks, until, main, part).await? else { return Ok(()) };
        (allowed, crawl_delay_ms) = (rules.allowed, rules.crawl_delay_ms);
    }
    for (at, (number, url)) in tasks.iter().enumerate() {
        if !allowed.get(at).copied().unwrap_or(false) {
            continue;
        }
        if !place.let_go_first(bundle, until).await {
            return Ok(());
        }
        doing(main, bundle.id, &format!("{} of {}", at + 1, tasks.len()));
        let task = &bundle.urls[*number];
        let errand = errand(bundle, *number as u16, task);
        let Some(answered) = ask(bundle, url, errand, crawl_delay_ms, until, main).await? else { return Ok(()) };
        if !keep(&answered, main, part)? || answered.stop {
            return Ok(());
        }
    }
    Ok(())
}

fn errand(bundle: &Bundle, number: u16, task: &Task) -> Errand {
    Errand {
        number,
        url: task.url.clone(),
        etag: task.etag.clone(),
        last_modified: task.last_modified.clone(),
        how: bundle.how(number),
        ..Errand::default()
    }
}

/// The way to robots.txt; `None` if there is nothing more to be done with this bundle.
async fn robots(
    bundle: &Bundle,
    first: &Url,
    tasks: &[(usize, Url)],
    until: Moment,
    main: &Main,
    part: &mut Part,
) -> Result<Option<Ruled>, Broken> {
    let mut url = first.robots_txt();
    for hop in 0..ROBOTS_HOPS_MAX {
        let decide = tasks.iter().map(|(_, url)| url.as_str().to_owned()).collect();
        let number = ROBOTS + hop as u16;
        let (text, how) = (url.as_str().to_owned(), bundle.how(number));
        let errand = Errand { number, url: text, how, decide: Some(decide), ..Errand::default() };
        let Some(answered) = ask(bundle, &url, errand, None, until, main).await? else { return Ok(None) };
        let elsewhere = origin(&url) != origin(first);
        if elsewhere {
            main.close(origin(&url));
        }
        if !keep(&answered, main, part)? {
            return Ok(None);
        }
        match (answered.redirect, answered.rules) {
            (Some(to), _) => match Url::parse(&to) {
                Ok(to) if main.meter.borrow().avoids(to.host_name()) => {
                    return Err(Broken::Unwanted(format!("{} is avoided, as its owner wishes", to.host_name())));
                }
                // One connection at a time is this bundle's.
                Ok(to) => {
                    if origin(&to) != origin(&url) {
                        main.close(origin(&url));
                    }
                    url = to;
                }
                Err(_) => return Ok(None),
            },
            (None, rules) => return Ok(rules.filter(|_| !answered.stop)),
        }
    }
    Ok(None)
}

/// One request, when the site, the owner and the lease allow it; `None` when the lease does not.
async fn ask(
    bundle: &Bundle,
    url: &Url,
    errand: Errand,
    crawl_delay_ms: Option<u64>,
    until: Moment,
    main: &Main,
) -> Result<Option<Answered>, Broken> {
    let site = main.site(url);
    loop {
        let left = until.left();
        if left <= RESERVE {
            return Ok(None);
        }
        let turn = main.meter.borrow_mut().ask(&site, main.now_ms());
        let wait_ms = match turn {
            Ok(()) => break,
            Err(Asked::Enough) => return Err(Broken::Unwanted(format!("{site} was asked often enough today"))),
            Err(Asked::Wait(at_ms)) => at_ms.saturating_sub(main.now_ms()).min(1_000),
            Err(Asked::NotNow(why, at_ms)) => {
                doing(main, bundle.id, &why.to_string());
                at_ms.saturating_sub(main.now_ms()).min(500)
            }
        };
        tokio::time::sleep(Duration::from_millis(wait_ms.max(1)).min(left)).await;
    }
    let time_ms = main.time_ms();
    // When the lease is over somebody else may ask the site: what is under way then is cut off.
    let most_ms = u32::try_from(until.left().as_millis()).unwrap_or(u32::MAX);
    let errand = Errand { most_ms, ..errand };
    let Some(mut answered) = main.fetch(errand).await else { return Err(Broken::Failed("the fetcher is gone".into())) };
    answered.fetched.time_ms = time_ms;
    let gap_ms = pace::gap_ms(&bundle.pace, crawl_delay_ms, u64::from(answered.fetched.took_ms));
    main.meter.borrow_mut().answered(&site, gap_ms, answered.cpu_ms, main.now_ms());
    main.pages.set(main.pages.get() + 1);
    main.spend(answered.beside_bytes).await;
    Ok(Some(answered))
}

/// Keeps what came, as far as there is room for it; false where nothing more is to be fetched for this bundle.
fn keep(answered: &Answered, main: &Main, part: &mut Part) -> Result<bool, String> {
    if answered.refused {
        main.note(format!("refused by its owner's rules: {} ({})", answered.site, answered.fetched.fault));
    }
    let (bytes, room) = (answered.whole.len() as u64, room(main, part));
    let kept = |kept: std::io::Result<()>| kept.map_err(|error| format!("results cannot be kept: {error}"));
    if bytes <= room {
        kept(part.add(&answered.fetched, &answered.whole))?;
        return Ok(bytes < room);
    }
    // Where it is alone already there is never room for it: it is for the node itself. Else it goes out again.
    if part.is_empty() {
        kept(part.add(&Fetched { too_large: true, ..answered.fetched.clone() }, &[]))?;
    }
    Ok(false)
}

/// Bytes that may still be kept of a bundle: what is brought has to be carried in time, and lies on the owner's disk meanwhile.
fn room(main: &Main, part: &Part) -> u64 {
    let meter = main.meter.borrow();
    let wishes = meter.wishes();
    let carried = if wishes.rate == 0 { u64::MAX } else { wishes.rate.saturating_mul(CARRY_SECONDS) };
    let most = carried.min(if part.is_empty() { u64::MAX } else { BUNDLE_BYTES_MAX });
    let on_disk = wishes.disk_bytes.saturating_sub(main.work.bytes());
    most.saturating_sub(part.bytes()).min(on_disk)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_is_no_longer_than_any_whatever_a_node_says() {
        let asked = Moment::now();
        let most = Duration::from_millis(LEASE_MS_MAX * LEASE_USED_PERCENT / 100);
        assert_eq!(asked.until(u32::MAX).0 - asked.0, most);
        assert_eq!(asked.until(10_000).0 - asked.0, Duration::from_secs(8));
        assert!(asked.until(u32::MAX).left() <= most && asked.until(0).left().is_zero());
    }
}
