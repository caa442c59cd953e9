//! A site that is split is visited at one pace, however many slices its URLs are in: at most one node at a time may visit it. Whoever leads
//! the site's home slice grants that, to itself as to others.
//!
//! ```text
//!  visitor  asks ────────── 0.8 D ──────────▶ visits no more, counted from when it asked      gives back ─▶ the next one's turn, at once
//!             ╲                                                                             ╱
//!  home       grants ──────────────── 1.2 D ───────────────▶ grants to another, counted from when it granted
//! ```
//! As with leases, these are durations on monotonic clocks. Who comes to lead the home does not know what was granted before: it grants nothing for
//! 1.2 D, by which time all of that has run out. Where something is still under way when a turn ends, a long download, the turn is asked for again:
//! nothing else begins in it, and nobody else comes beside it. A grant counts whoever leads the slices of its URLs: their leases say who may fetch *what*, the
//! grant who may visit the *site*. So both are needed, and a minority, which has no leases, never fetches. How the site was visited, and
//! how long it wants to be left alone, is told with every grant and whenever one is given back.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::genesis::Slice;
use crate::key::Key;
use crate::limits::{PACE_AGAIN_MAX, PACE_ASKS_MAX, PACE_QUEUE_MAX};
use crate::message::Politeness;
use crate::settings::{Mutation, Settings};

/// The hash of a site.
pub type Site = u32;

/// A question for the right to visit is named by when it was asked, by the clock of whoever asks: no two of them are equal.
pub type AskNumber = u64;

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub enum Done {
    /// Ask those who hold the home of the site; whoever leads there hears it.
    Ask(Site, AskNumber),
    /// Somebody may visit, and hears how others did.
    Grant(Key, Site, AskNumber, Vec<Politeness>),
    /// This node visits no more, or has heard something of the site; for those who hold its home: whoever leads there now.
    Back(Site, AskNumber, Politeness),
    /// This node may visit until then, by its monotonic clock.
    Visit(Site, u64, Vec<Politeness>),
    /// Somebody visited, and this is how: for whoever leads the home next, also where nobody leads it just now.
    Heed(Site, Politeness),
}

/// What this node is, besides: asked at every step.
pub struct At<'a> {
    /// Its key.
    pub key: Key,
    /// The time by its monotonic clock …
    pub now_ms: u64,
    /// … and the date.
    pub wall_ms: u64,
    /// Whether it leads a slice now.
    pub leads: &'a dyn Fn(Slice) -> bool,
    /// What is known of how the sites of a slice were visited.
    pub polite: &'a dyn Fn(Slice) -> Option<Politeness>,
    /// Times, and mistakes on purpose.
    pub settings: &'a Settings,
}

/// All sites that are split.
#[derive(Default)]
pub struct Paces {
    sites: BTreeMap<Site, Pace>,
}

/// One site.
struct Pace {
    home: Slice,
    /// Nobody but who leads the home visits before this date.
    since_ms: u64,
    visitor: Visitor,
    /// While its home is led here.
    granter: Option<Granter>,
}

/// This node, as one who visits.
#[derive(Default)]
struct Visitor {
    wants: bool,
    /// Something is under way there.
    out: bool,
    /// Questions that may be answered yet.
    asked: BTreeSet<AskNumber>,
    again_ms: u64,
    /// What was granted, and until when this node may visit.
    held: Option<(AskNumber, u64)>,
    /// It was granted again for what is under way: nothing else begins.
    ends_with_what_is_out: bool,
}

/// This node, as the one who grants.
struct Granter {
    /// What others granted before may count up to then.
    waits_ms: u64,
    given: Option<Given>,
    queue: VecDeque<(Key, AskNumber, u64)>,
    politeness: Option<Politeness>,
}

#[derive(Clone, Copy)]
struct Given {
    to: Key,
    number: AskNumber,
    until_ms: u64,
    /// How often it was granted again without having been given back.
    again: u32,
}

impl Paces {
    /// Whether no site is split.
    pub fn is_empty(&self) -> bool {
        self.sites.is_empty()
    }

    /// A site is split since then, or will be; its home is in this slice. From now on even the home is visited under a grant only.
    pub fn split(&mut self, site: Site, home: Slice, since_ms: u64) {
        let new = || Pace { home, since_ms, visitor: Visitor::default(), granter: None };
        self.sites.entry(site).or_insert_with(new).since_ms = since_ms;
    }

    /// Whether this node may visit a site that is split. Asked before every request.
    pub fn may(&self, site: Site, now_ms: u64, settings: &Settings) -> bool {
        let visitor = self.sites.get(&site).map(|pace| &pace.visitor);
        let held = visitor.filter(|visitor| !visitor.ends_with_what_is_out).and_then(|visitor| visitor.held);
        held.is_some_and(|(_, until_ms)| now_ms < until_ms || settings.mutation == Mutation::Outstayed)
    }

    /// Who visits a site now, as far as this node granted it.
    pub fn visitor(&self, site: Site, now_ms: u64) -> Option<Key> {
        let given = self.sites.get(&site)?.granter.as_ref()?.given?;
        (now_ms < given.until_ms).then_some(given.to)
    }

    /// When something is to be done.
    pub fn due_ms(&self) -> u64 {
        let due = |pace: &Pace| {
            let visitor = &pace.visitor;
            let asks = match visitor.held {
                None => visitor.wants.then_some(visitor.again_ms),
                Some((_, until_ms)) => visitor.out.then_some(until_ms.max(visitor.again_ms)),
            };
            let grants = pace.granter.as_ref().filter(|granter| !granter.queue.is_empty());
            let grants = grants.map(|granter| granter.given.map_or(granter.waits_ms, |given| given.until_ms));
            [asks, grants].into_iter().flatten().min().unwrap_or(u64::MAX)
        };
        self.sites.values().map(due).min().unwrap_or(u64::MAX)
    }

    /// Looks who leads the homes. Called before anything else is done, so that no change goes unseen.
    pub fn look(&mut self, at: &At<'_>) {
        for pace in self.sites.values_mut() {
            match (&pace.granter, (at.leads)(pace.home)) {
                (Some(_), false) => pace.granter = None,
                (None, true) => pace.granter = Some(Granter::new(at)),
                _ => {}
            }
            let visitor = &mut pace.visitor;
            // Nobody said that nothing is out there any more; by now it is.
            let over = |number: AskNumber| at.now_ms >= number + at.settings.refuse_ms();
            if at.settings.mutation != Mutation::Outstayed {
                visitor.held = visitor.held.filter(|(number, _)| !over(*number));
            }
            visitor.asked.retain(|number| !over(*number));
        }
    }

    /// Time has passed.
    pub fn tick(&mut self, at: &At<'_>, done: &mut Vec<Done>) {
        for (site, pace) in &mut self.sites {
            pace.ask(*site, at, done);
            pace.grant_next(*site, at, done);
        }
    }

    /// There is something to visit, or no longer; something is out there, or nothing. With politeness: what was granted goes back.
    pub fn want(
        &mut self,
        site: Site,
        wants: bool,
        out: bool,
        back: Option<Politeness>,
        at: &At<'_>,
        done: &mut Vec<Done>,
    ) {
        let Some(pace) = self.sites.get_mut(&site) else { return };
        (pace.visitor.wants, pace.visitor.out) = (wants, out && back.is_none());
        if let Some(politeness) = back {
            // What was granted may have run out by now: what the site wants counts all the same.
            let number = pace.visitor.held.take().map_or(0, |(number, _)| number);
            pace.visitor.asked.clear();
            pace.visitor.again_ms = at.now_ms;
            match pace.granter {
                Some(_) => pace.back(site, at.key, number, politeness, at, done),
                None if number > 0 || !politeness.is_empty() => done.push(Done::Back(site, number, politeness)),
                None => {}
            }
        }
        pace.ask(site, at, done);
    }

    /// What this node heard of a site in an earlier turn still holds, and is said once more: what it said then may have been lost. Nothing is
    /// given back. Who leads the home tells it with every grant.
    pub fn remind(&self, site: Site, politeness: Politeness, done: &mut Vec<Done>) {
        if self.sites.get(&site).is_some_and(|pace| pace.granter.is_none()) {
            done.push(Done::Back(site, 0, politeness));
        }
    }

    /// Somebody asks for a site.
    pub fn asked(&mut self, site: Site, from: Key, number: AskNumber, at: &At<'_>, done: &mut Vec<Done>) {
        if let Some(pace) = self.sites.get_mut(&site) {
            pace.asked(site, from, number, at, done);
        }
    }

    /// Somebody grants a site.
    pub fn granted(
        &mut self,
        site: Site,
        from: Key,
        number: AskNumber,
        politeness: Vec<Politeness>,
        at: &At<'_>,
        done: &mut Vec<Done>,
    ) {
        if let Some(pace) = self.sites.get_mut(&site) {
            pace.granted(site, from, number, politeness, at, done);
        }
    }

    /// Somebody gives a site back.
    pub fn given_back(
        &mut self,
        site: Site,
        from: Key,
        number: AskNumber,
        politeness: Politeness,
        at: &At<'_>,
        done: &mut Vec<Done>,
    ) {
        if let Some(pace) = self.sites.get_mut(&site) {
            pace.back(site, from, number, politeness, at, done);
        }
    }
}

impl Granter {
    fn new(at: &At<'_>) -> Granter {
        let waits_ms = match at.settings.mutation {
            Mutation::Forgotten => at.now_ms,
            _ => at.now_ms + at.settings.refuse_ms(),
        };
        Granter { waits_ms, given: None, queue: VecDeque::new(), politeness: None }
    }
}

impl Pace {
    /// Asks, if there is a reason to and nobody has answered for a while.
    fn ask(&mut self, site: Site, at: &At<'_>, done: &mut Vec<Done>) {
        let visitor = &mut self.visitor;
        let has_a_reason = match visitor.held {
            None => visitor.wants,
            // As long as it is under way nobody else is to come.
            Some((_, until_ms)) => visitor.out && at.now_ms >= until_ms,
        };
        if !has_a_reason || at.now_ms < visitor.again_ms {
            return;
        }
        visitor.again_ms = at.now_ms + at.settings.ping_ms;
        visitor.asked.insert(at.now_ms);
        while visitor.asked.len() > PACE_ASKS_MAX {
            visitor.asked.pop_first();
        }
        match self.granter {
            Some(_) => self.asked(site, at.key, at.now_ms, at, done),
            None => done.push(Done::Ask(site, at.now_ms)),
        }
    }

    fn asked(&mut self, site: Site, from: Key, number: AskNumber, at: &At<'_>, done: &mut Vec<Done>) {
        let Some(granter) = &mut self.granter else { return };
        // Before, nobody but who leads here has anything to visit.
        if from != at.key && at.wall_ms < self.since_ms {
            return;
        }
        let has_room = granter.queue.len() < PACE_QUEUE_MAX;
        match granter.queue.iter_mut().find(|(waiting, ..)| *waiting == from) {
            Some(waiting) => (waiting.1, waiting.2) = (waiting.1.max(number), at.now_ms),
            None if has_room => granter.queue.push_back((from, number, at.now_ms)),
            None => {}
        }
        self.grant_next(site, at, done);
    }

    /// Whose turn it is hears so, when nobody else can still be there.
    fn grant_next(&mut self, site: Site, at: &At<'_>, done: &mut Vec<Done>) {
        let Some(granter) = &mut self.granter else { return };
        // Who no longer asks has gone, or wants nothing any more.
        let patience_ms = 4 * at.settings.ping_ms;
        granter.queue.retain(|(_, _, heard_ms)| at.now_ms < heard_ms + patience_ms);
        if at.now_ms < granter.waits_ms {
            return;
        }
        if let Some(given) = granter.given.filter(|given| at.now_ms < given.until_ms) {
            // Whoever has it and asks all the same has not heard of it, or is another process by now, or something is under way there. While
            // others wait that is believed so often, and then they are next.
            let again =
                granter.queue.iter().position(|(waiting, number, _)| *waiting == given.to && *number > given.number);
            let is_waited_for = granter.queue.iter().any(|(waiting, ..)| *waiting != given.to);
            if let Some((to, number, _)) = again.and_then(|again| granter.queue.remove(again))
                && (given.again < PACE_AGAIN_MAX || !is_waited_for)
            {
                self.grant(site, to, number, given.again.saturating_add(1), at, done);
            }
            return;
        }
        if let Some((to, number, _)) = granter.queue.pop_front() {
            self.grant(site, to, number, 0, at, done);
        }
    }

    fn grant(&mut self, site: Site, to: Key, number: AskNumber, again: u32, at: &At<'_>, done: &mut Vec<Done>) {
        let Some(granter) = &mut self.granter else { return };
        granter.given = Some(Given { to, number, until_ms: at.now_ms + at.settings.refuse_ms(), again });
        let politeness = granter.politeness.iter().cloned().chain((at.polite)(self.home)).collect();
        if to == at.key {
            self.granted(site, at.key, number, politeness, at, done);
        } else {
            done.push(Done::Grant(to, site, number, politeness));
        }
    }

    fn granted(
        &mut self,
        site: Site,
        from: Key,
        number: AskNumber,
        politeness: Vec<Politeness>,
        at: &At<'_>,
        done: &mut Vec<Done>,
    ) {
        let visitor = &mut self.visitor;
        let until_ms = number.saturating_add(at.settings.lead_ms());
        let is_news = visitor.held.is_none_or(|(held, _)| held < number);
        let has_it = visitor.held.is_some();
        if visitor.asked.remove(&number) && is_news && (visitor.wants || has_it) && at.now_ms < until_ms {
            visitor.held = Some((number, until_ms));
            // A turn that goes on for what is under way is for that alone: others wait.
            visitor.ends_with_what_is_out = has_it && visitor.out;
            if visitor.wants && !visitor.ends_with_what_is_out {
                done.push(Done::Visit(site, until_ms, politeness));
            }
        } else if is_news {
            // It is not wanted any more, or was asked for too long ago: somebody else may have it.
            match self.granter.as_mut().filter(|_| from == at.key) {
                Some(granter) => granter.given = None,
                None => done.push(Done::Back(site, number, Politeness::default())),
            }
        }
    }

    fn back(
        &mut self,
        site: Site,
        from: Key,
        number: AskNumber,
        politeness: Politeness,
        at: &At<'_>,
        done: &mut Vec<Done>,
    ) {
        if !politeness.is_empty() && from != at.key {
            // Perhaps nobody leads here just now: all who hold the home keep it, so that whoever leads next has heard of it.
            done.push(Done::Heed(site, politeness.clone()));
        }
        let Some(granter) = &mut self.granter else { return };
        let had_it = granter.given.is_some_and(|given| (given.to, given.number) == (from, number));
        // It may have been granted by who led before; or what it gives back crossed what it was granted again.
        if !politeness.is_empty() && granter.given.is_some_and(|given| given.to == from) {
            granter.politeness = Some(politeness);
        }
        if had_it {
            granter.given = None;
            self.grant_next(site, at, done);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: Site = 7;
    const HOME: Slice = 3;

    fn key(number: u8) -> Key {
        Key([number; 32])
    }

    /// One node and its clock.
    struct One {
        key: Key,
        paces: Paces,
        leads: bool,
        settings: Settings,
    }

    impl One {
        fn new(number: u8, leads: bool) -> One {
            let mut paces = Paces::default();
            paces.split(SITE, HOME, 1_000);
            One { key: key(number), paces, leads, settings: Settings::default() }
        }

        fn at(&mut self, now_ms: u64, act: impl FnOnce(&mut Paces, &At<'_>, &mut Vec<Done>)) -> Vec<Done> {
            let leads = self.leads;
            let (leads, polite) = (|slice: Slice| leads && slice == HOME, |_: Slice| None);
            let settings = self.settings.clone();
            let at = At { key: self.key, now_ms, wall_ms: 5_000, leads: &leads, polite: &polite, settings: &settings };
            let mut done = Vec::new();
            self.paces.look(&at);
            act(&mut self.paces, &at, &mut done);
            done
        }

        fn ask(&mut self, now_ms: u64, from: u8, number: AskNumber) -> Vec<Done> {
            self.at(now_ms, |paces, at, done| paces.asked(SITE, key(from), number, at, done))
        }

        fn want(&mut self, now_ms: u64, wants: bool, back: Option<&[u8]>) -> Vec<Done> {
            let back = back.map(Politeness::from);
            self.at(now_ms, |paces, at, done| paces.want(SITE, wants, false, back, at, done))
        }

        fn is_out(&mut self, now_ms: u64, wants: bool) -> Vec<Done> {
            self.at(now_ms, |paces, at, done| paces.want(SITE, wants, true, None, at, done))
        }

        fn tick(&mut self, now_ms: u64) -> Vec<Done> {
            self.at(now_ms, |paces, at, done| paces.tick(at, done))
        }

        fn granted(&mut self, now_ms: u64, number: AskNumber) -> Vec<Done> {
            self.at(now_ms, |paces, at, done| paces.granted(SITE, key(1), number, Vec::new(), at, done))
        }

        fn may(&self, now_ms: u64) -> bool {
            self.paces.may(SITE, now_ms, &self.settings)
        }
    }

    fn grant(to: u8, number: AskNumber) -> Done {
        Done::Grant(key(to), SITE, number, Vec::new())
    }

    #[test]
    fn one_at_a_time_and_the_next_when_it_is_given_back() {
        let mut home = One::new(1, true);
        let wait_ms = home.settings.refuse_ms();
        assert_eq!(home.ask(0, 2, 10), [], "what others granted before may still count");
        assert_eq!(home.ask(wait_ms - 1, 2, 11), []);
        assert_eq!(home.ask(wait_ms, 2, 12), [grant(2, 12)]);
        assert_eq!(home.ask(wait_ms + 1, 3, 500), []);
        let said = Politeness::from(&b"in an hour"[..]);
        let wrong = home.at(wait_ms + 2, |paces, at, done| paces.given_back(SITE, key(2), 11, said.clone(), at, done));
        assert_eq!(wrong, [Done::Heed(SITE, said.clone())], "that is not what it has, but it may well have heard it");
        let done = home.at(wait_ms + 3, |paces, at, done| paces.given_back(SITE, key(2), 12, said.clone(), at, done));
        let next = Done::Grant(key(3), SITE, 500, vec![said.clone()]);
        assert_eq!(done, [Done::Heed(SITE, said), next], "what one heard all hear");
        assert_eq!(home.paces.visitor(SITE, wait_ms + 4), Some(key(3)));
    }

    #[test]
    fn what_a_site_wants_is_kept_also_while_nobody_leads_its_home() {
        let mut holder = One::new(1, false);
        let said = Politeness::from(&b"in two hours"[..]);
        let back = |paces: &mut Paces, at: &At<'_>, done: &mut Vec<Done>| {
            paces.given_back(SITE, key(2), 12, said.clone(), at, done);
            paces.given_back(SITE, key(2), 12, Politeness::default(), at, done);
        };
        assert_eq!(holder.at(5, back), [Done::Heed(SITE, said.clone())]);
        // It is said again by who heard it, and takes nothing from anybody.
        let mut visitor = One::new(2, false);
        assert_eq!(visitor.want(100, true, None), [Done::Ask(SITE, 100)]);
        let remind = |paces: &mut Paces, _: &At<'_>, done: &mut Vec<Done>| paces.remind(SITE, said.clone(), done);
        let again = visitor.at(200, remind);
        assert_eq!(again, [Done::Back(SITE, 0, said.clone())]);
        assert_eq!(visitor.granted(300, 100).len(), 1, "what it had asked for it may have");
        assert_eq!(visitor.at(400, remind), again);
        assert!(visitor.may(400));
        let mut home = One::new(1, true);
        home.at(0, |_, _, _| ());
        let wait_ms = home.settings.refuse_ms();
        assert_eq!(home.ask(wait_ms, 2, 100), [grant(2, 100)]);
        let heard = home.at(wait_ms + 1, |paces, at, done| {
            paces.given_back(SITE, key(2), 0, said.clone(), at, done);
        });
        assert_eq!(heard, [Done::Heed(SITE, said.clone())]);
        assert_eq!(home.paces.visitor(SITE, wait_ms + 1), Some(key(2)));
        assert_eq!(home.at(wait_ms + 2, remind), [], "it tells that with its grants");
    }

    #[test]
    fn nobody_keeps_a_turn_for_ever_by_asking_again_while_others_wait() {
        let mut home = One::new(1, true);
        home.at(0, |_, _, _| ());
        let wait_ms = home.settings.refuse_ms();
        let mut now_ms = wait_ms;
        assert_eq!(home.ask(now_ms, 2, 1), [grant(2, 1)]);
        // As long as nobody waits it is all the same.
        for number in 2..50 {
            now_ms += wait_ms / 2;
            assert_eq!(home.ask(now_ms, 2, number), [grant(2, number)]);
        }
        assert_eq!(home.ask(now_ms + 1, 3, 7), []);
        for step in 1..8 {
            let later_ms = now_ms + step * wait_ms / 8;
            assert_eq!(home.ask(later_ms, 3, 7 + step), []);
            assert_eq!(home.ask(later_ms, 2, 100 + step), [], "it is not believed any more");
        }
        now_ms += wait_ms;
        assert_eq!(home.ask(now_ms, 3, 20), [grant(3, 20)], "when it has run out");
        // And a new turn counts anew.
        assert_eq!(home.ask(now_ms + 1, 2, 200), []);
        assert_eq!(home.ask(now_ms + 2, 3, 21), [grant(3, 21)]);
    }

    #[test]
    fn who_says_nothing_any_more_is_waited_for() {
        let mut home = One::new(1, true);
        home.at(0, |_, _, _| ());
        let wait_ms = home.settings.refuse_ms();
        assert_eq!(home.ask(wait_ms, 2, 1), [grant(2, 1)]);
        for again in [1, wait_ms / 2, wait_ms - 1] {
            assert_eq!(home.ask(wait_ms + again, 3, again), []);
        }
        let tick = home.at(2 * wait_ms, |paces, at, done| paces.tick(at, done));
        assert_eq!(tick, [grant(3, wait_ms - 1)]);
    }

    #[test]
    fn who_did_not_hear_is_told_again_and_who_leads_no_more_tells_nobody() {
        let mut home = One::new(1, true);
        home.at(0, |_, _, _| ());
        let wait_ms = home.settings.refuse_ms();
        assert_eq!(home.ask(wait_ms, 2, 1), [grant(2, 1)]);
        assert_eq!(home.ask(wait_ms + 5, 2, 1), [], "the same question, late");
        assert_eq!(home.ask(wait_ms + 9, 2, 2), [grant(2, 2)]);
        home.leads = false;
        assert_eq!(home.ask(3 * wait_ms, 2, 3), []);
        home.leads = true;
        assert_eq!(home.ask(3 * wait_ms + 1, 2, 4), [], "others may have granted meanwhile");
    }

    #[test]
    fn a_visitor_counts_from_asking_and_believes_only_answers_to_what_it_asked() {
        let mut visitor = One::new(2, false);
        let lead_ms = visitor.settings.lead_ms();
        assert_eq!(visitor.want(100, true, None), [Done::Ask(SITE, 100)]);
        assert_eq!(visitor.granted(200, 99), [Done::Back(SITE, 99, Politeness::default())]);
        assert!(!visitor.may(200));
        assert_eq!(visitor.granted(5_000, 100), [Done::Visit(SITE, 100 + lead_ms, Vec::new())]);
        assert!(visitor.may(99 + lead_ms) && !visitor.may(100 + lead_ms));
        assert_eq!(visitor.granted(5_001, 100), [], "said twice");
        let said = Politeness::from(&b"polite"[..]);
        let back = visitor.want(6_000, false, Some(b"polite"));
        assert_eq!(back, [Done::Back(SITE, 100, said)]);
        assert!(!visitor.may(6_000));
        assert_eq!(visitor.granted(6_001, 100).len(), 1, "an old answer opens nothing");
        assert!(!visitor.may(6_001));
    }

    #[test]
    fn a_visitor_has_stopped_before_another_begins_even_with_clocks_a_tenth_off() {
        for (fast, slow) in [(100, 100), (110, 90), (109, 91)] {
            let (mut home, mut visitor) = (One::new(1, true), One::new(2, false));
            home.at(0, |_, _, _| ());
            let wait_ms = home.settings.refuse_ms();
            // In true milliseconds, while the visitor's clock is slow and that of the home fast.
            let begin = 2 * wait_ms;
            let asked = visitor.want(begin * slow / 100, true, None);
            let [Done::Ask(_, number)] = asked[..] else { panic!("it asks") };
            assert_eq!(home.ask(begin * fast / 100, 2, number), [grant(2, number)]);
            visitor.granted(begin * slow / 100, number);
            let last = (begin..).step_by(1_000).find(|at| !visitor.may(at * slow / 100)).expect("it stops");
            let ask = |at: u64| home.ask(at * fast / 100, 3, at);
            let first = (begin..).step_by(1_000).map(ask).position(|done| !done.is_empty()).expect("another may");
            let first = begin + 1_000 * first as u64;
            assert!(last <= first, "stops at {last}, another from {first}");
        }
    }

    #[test]
    fn a_turn_goes_on_for_what_is_under_way_and_for_nothing_else() {
        let (mut home, mut visitor) = (One::new(1, true), One::new(2, false));
        home.at(0, |_, _, _| ());
        let (wait_ms, lead_ms) = (home.settings.refuse_ms(), home.settings.lead_ms());
        assert_eq!(visitor.want(2 * wait_ms, true, None), [Done::Ask(SITE, 2 * wait_ms)]);
        assert_eq!(home.ask(2 * wait_ms, 2, 2 * wait_ms), [grant(2, 2 * wait_ms)]);
        visitor.granted(2 * wait_ms, 2 * wait_ms);
        assert_eq!(home.ask(2 * wait_ms + 1, 3, 7), []);
        // A download takes five turns. More waits here, too; and there.
        let mut now_ms = 2 * wait_ms;
        for _ in 0..5 {
            assert_eq!(visitor.is_out(now_ms + 1, true), []);
            assert_eq!(visitor.tick(now_ms + lead_ms - 1), [], "not before it has to");
            now_ms += lead_ms;
            assert_eq!(visitor.paces.due_ms(), now_ms);
            assert_eq!(visitor.tick(now_ms), [Done::Ask(SITE, now_ms)]);
            home.ask(now_ms - 1, 3, 7);
            assert_eq!(home.ask(now_ms, 2, now_ms), [grant(2, now_ms)]);
            assert_eq!(visitor.granted(now_ms, now_ms), [], "nothing new begins");
            assert!(!visitor.may(now_ms));
        }
        // The others' turn is when it is over, at once.
        home.ask(now_ms + 1, 3, 8);
        assert_eq!(
            visitor.want(now_ms + 2, true, Some(b"polite")).first(),
            Some(&Done::Back(SITE, now_ms, Politeness::from(&b"polite"[..])))
        );
        let back = |paces: &mut Paces, at: &At<'_>, done: &mut Vec<Done>| {
            paces.given_back(SITE, key(2), now_ms, Politeness::default(), at, done);
        };
        assert_eq!(home.at(now_ms + 3, back), [grant(3, 8)]);
    }

    #[test]
    fn whatever_number_somebody_grants_is_no_number_that_was_asked() {
        let mut visitor = One::new(2, false);
        assert_eq!(visitor.want(100, true, None), [Done::Ask(SITE, 100)]);
        assert_eq!(visitor.granted(200, u64::MAX), [Done::Back(SITE, u64::MAX, Politeness::default())]);
        assert!(!visitor.may(200));
        assert_eq!(visitor.granted(300, 100).len(), 1);
        let mut home = One::new(1, true);
        home.at(0, |_, _, _| ());
        let wait_ms = home.settings.refuse_ms();
        assert_eq!(home.ask(wait_ms, 2, u64::MAX), [grant(2, u64::MAX)]);
        assert_eq!(home.ask(wait_ms + 1, 2, u64::MAX), []);
    }

    #[test]
    fn the_home_waits_for_its_turn_like_everybody() {
        let mut home = One::new(1, true);
        home.at(0, |_, _, _| ());
        let wait_ms = home.settings.refuse_ms();
        assert_eq!(home.ask(wait_ms, 2, 1), [grant(2, 1)]);
        assert_eq!(home.want(wait_ms + 1, true, None), []);
        assert!(!home.may(wait_ms + 2));
        let done =
            home.at(wait_ms + 3, |paces, at, done| paces.given_back(SITE, key(2), 1, Politeness::default(), at, done));
        assert_eq!(done, [Done::Visit(SITE, wait_ms + 1 + home.settings.lead_ms(), Vec::new())]);
        assert!(home.may(wait_ms + 4));
        assert_eq!(home.ask(wait_ms + 5, 3, 9), []);
        assert_eq!(home.want(wait_ms + 6, false, Some(b"")), [grant(3, 9)]);
    }
}
