//! How a capture is judged, given what is remembered of its URL. Read top to bottom.
//!
//! ```text
//!   200, same bytes, 304, revisit of the same     same          the window moves on
//!   200, other bytes                              content       the ladder of `skep_page::compare`
//!   200, but no page: a challenge, a shell, what  suspect       told once, never compared, never remembered
//!        the host shows for what is not there
//!   301, 308                                      moved         suspect where it leads to the start page of its host
//!   404, 410                                      failed        gone when confirmed
//!   anything else                                 suspect
//! ```

use skep_archive::{Capture, CaptureKind, Position};
use skep_page::compare::{Class, Classes, Difference, compare, leads_home, suspect};
use skep_page::version::{Nature, RULES, Version};
use skep_url::Url;
use skep_warc::date;
use xxhash_rust::xxh3::xxh3_64;

use crate::bodies::{Bodies, Body, Noted};
use crate::error::Result;
use crate::event::{
    Confidence, Details, Event, Fact, Hash, Http, Links, Magnitude, Meta, Place, Previous, Text, names,
};
use crate::limits::{
    EVENT_FACTS_MAX, EVENT_LINKS_MAX, FIVE_FAILURES, GONE_FAILURES, GONE_MS, SNIPPET_BYTES_MAX, VALIDATOR_BYTES_MAX,
};
use crate::retain;
use crate::settings::{Death, Settings};
use crate::state::{Good, Health, State};

/// Verdicts of visits that brought no page, whatever the server said.
const PROBE: &str = "probe";
const SOFT_MISSING: &str = "soft-404";

/// Judges captures of one URL.
pub struct Judge<'j> {
    /// The URL, where it is one.
    pub url: Option<&'j Url>,
    /// Where bodies are.
    pub bodies: &'j dyn Bodies,
    /// What people decided.
    pub settings: &'j Settings,
    /// When the earliest capture of the URL was seen that retention took, in milliseconds since 1970.
    pub thinned_ms: Option<i64>,
}

/// What is told of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// The event: large, and handed on by many.
    pub event: Box<Event>,
    /// What became of the places that changed.
    pub places: Vec<u64>,
}

impl From<Event> for Told {
    fn from(event: Event) -> Told {
        Told { event: Box::new(event), places: Vec::new() }
    }
}

/// Captures that are judged: of pages on the web, made without secrets.
pub fn is_judged(capture: &Capture) -> bool {
    matches!(capture.kind, CaptureKind::Response | CaptureKind::Revisit | CaptureKind::Resource)
        && skep_archive::is_listed(capture)
        && !capture.is_private()
        && (capture.url.starts_with("http://") || capture.url.starts_with("https://"))
        && capture.url.len() <= crate::limits::URL_BYTES_MAX
}

impl Judge<'_> {
    /// Takes the next capture of a URL in: later than all before it. Tells what is to be told of it. `checked_ms` is when the page
    /// was last found to be as before without a capture.
    pub fn visit(&self, state: &mut State, capture: &Capture, checked_ms: Option<i64>) -> Result<Option<Told>> {
        if let (Some(good), Some(checked_ms)) = (&mut state.good, checked_ms) {
            good.same_ms = good.same_ms.max(checked_ms);
            // It was there since it was not: what fails now begins to fail. One that is gone or moved is told to be back by a capture.
            let since = state.newest.is_none_or(|(newest_ms, _)| checked_ms > newest_ms);
            if since && matches!(state.health, Health::Failing { .. } | Health::Suspect { .. }) {
                let back = |target| Health::Moved { target, instead: None };
                state.health = state.health.moved().map_or(Health::Well, back);
            }
        }
        let before = state.clone();
        let mut told = self.judged(state, capture)?;
        let Some(Told { event, .. }) = &mut told else { return Ok(None) };
        if let Some(url) = self.url {
            about_host(event, url);
        }
        let thinned = event.details.reason.as_deref() == Some(retain::REASON);
        if event.classes.is_silent() && !thinned {
            return Ok(told);
        }
        let Noted { verdict, why, est, by, confidence } = self.bodies.noted(capture)?;
        match verdict.as_str() {
            // Nobody wanted to have that page: it was asked for to see what a host shows for what is not there.
            PROBE => {
                *state = State { newest: state.newest, ..before };
                return Ok(None);
            }
            SOFT_MISSING => {
                *state = State { newest: state.newest, ..before };
                return Ok(self.suspect(state, capture, SOFT_MISSING, 0).map(Told::from));
            }
            _ => {
                (event.details.why, event.details.est, event.details.by) = (why, est, by);
                // A death rests on the visits that confirmed it, from wherever the last of them was made.
                event.details.confidence = match (event.details.confidence.take(), confidence) {
                    (Some(visits), Some(last)) => {
                        Some(Confidence { obs: visits.obs.max(last.obs), vantages: visits.vantages.max(last.vantages) })
                    }
                    (visits, last) => visits.or(last),
                };
            }
        }
        Ok(told)
    }

    fn judged(&self, state: &mut State, capture: &Capture) -> Result<Option<Told>> {
        state.newest = Some((capture.time_ms, capture.position));
        let known = state.good.as_ref().is_some_and(|good| good.digest.is_some() && good.digest == capture.digest);
        // A revisit of another's "not found" page is no page either.
        if capture.kind == CaptureKind::Revisit && matches!(capture.status, 0 | 200..=299 | 304) {
            return match known || capture.digest.is_none() {
                true => Ok(self.same(state, capture)?.map(Told::from)),
                false => self.content(state, capture),
            };
        }
        let any_failure = self.settings.death == Death::FiveFailures;
        match capture.status {
            304 => Ok(self.same(state, capture)?.map(Told::from)),
            0 | 200..=205 | 207..=299 if known => Ok(self.same(state, capture)?.map(Told::from)),
            0 | 200..=205 | 207..=299 => self.content(state, capture),
            301 | 308 => Ok(self.moved(state, capture)?.map(Told::from)),
            404 | 410 => Ok(self.failed(state, capture)?.map(Told::from)),
            400.. if any_failure => Ok(self.failed(state, capture)?.map(Told::from)),
            status => {
                let reason = match status {
                    206 => "partial",
                    300..=399 => "redirect",
                    401 | 407 => "login",
                    402 | 403 | 451 => "refused",
                    429 => "busy",
                    _ => "outage",
                };
                Ok(self.suspect(state, capture, reason, 0).map(Told::from))
            }
        }
    }

    fn same(&self, state: &mut State, capture: &Capture) -> Result<Option<Event>> {
        let returned = returned(state);
        let Some(good) = &mut state.good else { return Ok(None) };
        good.same_ms = good.same_ms.max(capture.time_ms);
        state.mask.same();
        if !returned {
            return Ok(None);
        }
        let (event, body) =
            (self.titled(self.event(capture, Classes::of(Class::Returned), Some(good)), good)?, good.body);
        Ok(Some(with_text(event, state, Some(body))))
    }

    fn content(&self, state: &mut State, capture: &Capture) -> Result<Option<Told>> {
        let Some(before) = state.good.clone() else { return self.first(state, capture) };
        let Some(url) = self.url else { return Ok(None) };
        // What cannot be read cannot be judged; the next one that can is compared with the last that could.
        let Some(body) = self.bodies.of(capture)? else { return Ok(None) };
        let new = body.version(url, self.settings);
        let ruled = self.settings.rules(url).1;
        let print = before.print.filter(|(print, by)| print.rules == RULES && *by == ruled).map(|(print, _)| print);
        let (old, print) = match print {
            Some(print) => (None, Some(print)),
            None => {
                let Some(old) = self.good_before(&before, url, &new)? else { return self.first(state, capture) };
                let print = old.as_ref().map(|old| old.print);
                (old, print)
            }
        };
        if let Some(reason) = suspect(200, &body.head, &body.bytes, &new, print.as_ref())
            && !state.health.believes(reason, new.print.text)
        {
            return Ok(self.suspect(state, capture, reason, new.print.text).map(Told::from));
        }
        let returned = returned(state);
        let now = Good {
            body: body.position,
            capture: capture.position,
            since_ms: capture.time_ms,
            same_ms: capture.time_ms,
            digest: capture.digest,
            print: Some((new.print, ruled)),
        };
        let same = |part: fn(&skep_page::version::Fingerprint) -> u64| {
            print.is_some_and(|print| part(&print) == part(&new.print))
        };
        let quick = same(|print| print.markup)
            || same(|print| print.text)
                && same(|print| print.links)
                && same(|print| print.meta)
                && same(|print| print.facts)
                && new.nature == Nature::Page;
        let old = match (old, quick) {
            (Some(old), _) => Some(old),
            (None, true) => None,
            (None, false) => self.body_of(&before)?.map(|body| body.version_beside(url, self.settings, &new)),
        };
        let mut found = match &old {
            Some(old) => compare(old, &new, &mut state.mask),
            None if quick => {
                state.mask.same();
                let class = if same(|print| print.markup) { Class::Bytes } else { Class::Markup };
                Difference { classes: Classes::of(class), ..Difference::default() }
            }
            // The old version was removed: that the text is another is all that can be said.
            None => Difference { classes: Classes::of(Class::TextMajor), share: 10_000, ..Difference::default() },
        };
        let mut reverted_to = None;
        if found.classes.meets([Class::TextMajor, Class::TextMinor].into_iter().collect()) {
            reverted_to = state.texts.iter().find(|(text, _)| *text == new.print.text).map(|(_, capture)| *capture);
            if let Some(print) = print {
                state.remember(print.text, before.capture);
            }
        }
        if reverted_to.is_some() {
            found.classes =
                found.classes.iter().filter(|class| !matches!(class, Class::TextMajor | Class::TextMinor)).collect();
            found.classes.insert(Class::Reverted);
        }
        if returned {
            found.classes.insert(Class::Returned);
        }
        let mut event = self.event(capture, found.classes, Some(&before));
        describe(&mut event, &found, old.as_ref(), &new, reverted_to);
        if !found.classes.is_silent() {
            event = with_text(event, state, Some(now.body));
            validate(&mut event, &body);
        }
        state.good = Some(now);
        // What came back was seen before: no template of today.
        let places = if reverted_to.is_some() { Vec::new() } else { found.places };
        Ok(Some(Told { event: Box::new(event), places }))
    }

    /// The first good copy. What retention left of older ones is not new, and what it was before nobody can say any more.
    fn first(&self, state: &mut State, capture: &Capture) -> Result<Option<Told>> {
        let read = match (self.url, self.bodies.of(capture)?) {
            (Some(url), Some(body)) => Some((body.version(url, self.settings), self.settings.rules(url).1, body)),
            _ => None,
        };
        let body = read.as_ref().map_or(capture.position, |(.., body)| body.position);
        // One that was no page at all is read again when there is another: nothing is compared with it.
        let is_page = |version: &Version, body: &Body| suspect(200, &body.head, &body.bytes, version, None).is_none();
        let print = read.as_ref().filter(|(version, _, body)| is_page(version, body));
        state.health = Health::Well;
        state.good = Some(Good {
            body,
            capture: capture.position,
            since_ms: capture.time_ms,
            same_ms: capture.time_ms,
            digest: capture.digest,
            print: print.map(|(version, ruled, _)| (version.print, *ruled)),
        });
        let thinned = self.thinned_ms.is_some_and(|thinned_ms| thinned_ms < capture.time_ms);
        let class = if thinned { Class::Bytes } else { Class::New };
        let mut event = self.event(capture, Classes::of(class), None);
        event.details.reason = thinned.then(|| retain::REASON.to_owned());
        if let Some((version, _, body)) = &read {
            introduce(&mut event, version);
            validate(&mut event, body);
        }
        Ok(Some(with_text(event, state, Some(body)).into()))
    }

    /// A page that is away, or back as it was, is told under the title that it had.
    fn titled(&self, mut event: Event, good: &Good) -> Result<Event> {
        if let (Some(url), Some(body)) = (self.url, self.body_of(good)?) {
            let title = body.version(url, self.settings).meta.title;
            event.details.meta = title.map(|title| Meta { title: Some(title), ..Meta::default() });
        }
        Ok(event)
    }

    /// The version before, read again; `Some(None)` if it cannot be read, `None` if it was no page at all.
    fn good_before(&self, good: &Good, url: &Url, new: &Version) -> Result<Option<Option<Version>>> {
        let Some(body) = self.body_of(good)? else { return Ok(Some(None)) };
        let version = body.version_beside(url, self.settings, new);
        Ok(match suspect(200, &body.head, &body.bytes, &version, None) {
            Some(_) => None,
            None => Some(Some(version)),
        })
    }

    /// The body of a version, if there is one: of some it is only known what it came to.
    fn body_of(&self, good: &Good) -> Result<Option<Body>> {
        Ok(self.bodies.at(good.body)?.filter(|body| !body.is_elsewhere))
    }

    fn moved(&self, state: &mut State, capture: &Capture) -> Result<Option<Event>> {
        let target = self.bodies.at(capture.position)?.and_then(|body| target(&body, self.url?));
        if let (Some(url), Some(Ok(target))) = (self.url, target.as_deref().map(Url::parse))
            && leads_home(url, &target)
        {
            return Ok(self.suspect(state, capture, SOFT_MISSING, 0));
        }
        let hash = xxh3_64(target.as_deref().unwrap_or_default().as_bytes());
        // Where it moved is told at once; where it leads from then on, once it led there twice in a row: some lead to another place each time.
        let (told, instead) = match state.health {
            Health::Moved { target, instead } => (Some(target), instead),
            health => (health.moved(), None),
        };
        if let Some(target) = told.filter(|_| told == Some(hash) || instead != Some(hash)) {
            state.health = Health::Moved { target, instead: (target != hash).then_some(hash) };
            return Ok(None);
        }
        state.health = Health::Moved { target: hash, instead: None };
        let Some(good) = &state.good else { return Ok(None) };
        let mut event = self.titled(self.event(capture, Classes::of(Class::Moved), Some(good)), good)?;
        event.details.http.redirect = target;
        Ok(Some(event))
    }

    fn failed(&self, state: &mut State, capture: &Capture) -> Result<Option<Event>> {
        let Some(good) = &state.good else { return Ok(None) };
        let (since_ms, count) = match state.health {
            Health::Gone => return Ok(None),
            Health::Failing { since_ms, count, .. } => (since_ms, count.saturating_add(1)),
            _ => (capture.time_ms, 1),
        };
        let dead = match self.settings.death {
            Death::AtOnce => true,
            Death::FiveFailures => count >= FIVE_FAILURES,
            Death::Confirmed if capture.status == 410 => count >= 2,
            Death::Confirmed => count >= GONE_FAILURES && capture.time_ms.saturating_sub(since_ms) >= GONE_MS,
        };
        let moved = state.health.moved();
        state.health = if dead { Health::Gone } else { Health::Failing { since_ms, count, moved } };
        if !dead {
            return Ok(None);
        }
        let mut event = self.titled(self.event(capture, Classes::of(Class::Gone), Some(good)), good)?;
        event.details.confidence = (count > 1).then_some(Confidence { obs: count, vantages: 1 });
        Ok(Some(event))
    }

    /// No page came. Told once, until a page comes again.
    fn suspect(&self, state: &mut State, capture: &Capture, reason: &str, text: u64) -> Option<Event> {
        let good = state.good.as_ref()?;
        let count = match state.health {
            Health::Suspect { count, text: before } if text == before => count.saturating_add(1),
            // Whether it is gone or moved is not known from a wall in front of it; nor does that bring back what is not found.
            Health::Gone => return None,
            Health::Failing { .. } if text == 0 => return None,
            health if health.moved().is_some() => return None,
            _ => 1,
        };
        let told = matches!(state.health, Health::Suspect { .. });
        let event = self.event(capture, Classes::of(Class::Suspect), Some(good));
        state.health = Health::Suspect { count, text };
        let details = Details { reason: Some(reason.to_owned()), ..event.details };
        (!told).then_some(Event { details, ..event })
    }

    /// What is told of every capture.
    fn event(&self, capture: &Capture, classes: Classes, before: Option<&Good>) -> Event {
        let raw = capture.digest.as_ref().map(ToString::to_string);
        Event {
            key: capture.position,
            classes,
            share: 0,
            time_ms: capture.time_ms,
            mime: capture.mime.clone(),
            url: capture.url.clone(),
            details: Details {
                url_key: capture.key.surt().to_owned(),
                host: self.url.map(|url| url.host_name().to_owned()).unwrap_or_default(),
                classes: names(classes),
                window: before.map(|good| [date::rfc3339(good.same_ms), date::rfc3339(capture.time_ms)]),
                hash: raw.map(|raw| Hash { raw: Some(raw), ..Hash::default() }),
                prev: before.map(|good| Previous {
                    key: good.capture.to_string(),
                    since: date::rfc3339(good.since_ms),
                    told: None,
                }),
                http: Http { status: capture.status, content_type: capture.mime.clone(), ..Http::default() },
                archive: Place { position: capture.position.to_string(), length: capture.length, body: None },
                ..Details::default()
            },
        }
    }
}

/// Says which record has the text, and which one has what was told before it.
fn with_text(mut event: Event, state: &mut State, body: Option<Position>) -> Event {
    if let Some(prev) = &mut event.details.prev {
        prev.told = state.told.map(|told| told.to_string());
    }
    event.details.archive.body = body.filter(|body| *body != event.key).map(|body| body.to_string());
    state.told = body.or(state.told);
    event
}

/// What a page of a special kind says of its host.
fn about_host(event: &mut Event, url: &Url) {
    let path = url.request_target().split('?').next().unwrap_or_default();
    let text = [Class::TextMajor, Class::TextMinor, Class::Reverted, Class::Links, Class::Gone, Class::Returned];
    let says = match path {
        "/robots.txt" => event.classes.meets(text.into_iter().collect()).then_some(Class::HostRobots),
        "/" if event.classes.contains(Class::Moved) => {
            let target = event.details.http.redirect.as_deref().and_then(|target| Url::parse(target).ok());
            let away = |target: Url| target.host_name() != url.host_name();
            target.is_some_and(away).then_some(Class::HostMoved)
        }
        path => {
            let name = path.rsplit('/').next().unwrap_or_default();
            let lists = name.contains("sitemap") && (name.ends_with(".xml") || name.ends_with(".xml.gz"));
            (lists && event.classes.meets(text.into_iter().collect())).then_some(Class::HostSitemap)
        }
    };
    if let Some(class) = says {
        event.classes.insert(class);
        event.details.classes = names(event.classes);
    }
}

/// A page came. Was it away?
fn returned(state: &mut State) -> bool {
    let away = state.health == Health::Gone || state.health.moved().is_some();
    state.health = Health::Well;
    away && state.good.is_some()
}

fn target(body: &Body, url: &Url) -> Option<String> {
    let location = String::from_utf8_lossy(body.head.header("location")?.trim_ascii()).into_owned();
    let joined = url.join(&location).ok()?;
    Some(joined.as_str().to_owned())
}

/// By what its server knows that version, where the head of the answer was read: a record that stands for another one has its own.
fn validate(event: &mut Event, body: &Body) {
    if body.position != event.key {
        return;
    }
    let field = |name: &str| {
        let value = String::from_utf8_lossy(body.head.header(name)?.trim_ascii()).into_owned();
        (!value.is_empty() && value.len() <= VALIDATOR_BYTES_MAX).then_some(value)
    };
    (event.details.http.etag, event.details.http.last_modified) = (field("etag"), field("last-modified"));
}

/// What is told of a page that is seen for the first time: everything it says of itself, and where it leads.
fn introduce(event: &mut Event, version: &Version) {
    let details = &mut event.details;
    details.norm_ver = RULES;
    let hash = details.hash.get_or_insert_default();
    hash.dom = Some(format!("{:016x}", version.print.markup));
    hash.text = Some(format!("{:016x}", version.print.text));
    let skep_page::version::Meta { title, canonical, language: lang, .. } = version.meta.clone();
    let meta = Meta { title, title_before: None, canonical, lang };
    details.meta = (meta != Meta::default()).then_some(meta);
    details.links = (!version.links.is_empty()).then(|| Links {
        added: version.links.iter().take(EVENT_LINKS_MAX).map(|link| link.url.clone()).collect(),
        n_added: version.links.len(),
        ..Links::default()
    });
}

/// What is told of a change besides.
fn describe(
    event: &mut Event,
    found: &Difference,
    old: Option<&Version>,
    new: &Version,
    reverted_to: Option<Position>,
) {
    event.share = found.share;
    let details = &mut event.details;
    details.magnitude = Magnitude(found.share);
    details.norm_ver = RULES;
    details.reverted_to = reverted_to.map(|position| position.to_string());
    let hash = details.hash.get_or_insert_default();
    hash.dom = Some(format!("{:016x}", new.print.markup));
    hash.text = Some(format!("{:016x}", new.print.text));
    if found.classes.is_silent() {
        return;
    }
    if !found.added.is_empty() || !found.removed.is_empty() {
        let shown = |version: &Version, blocks: &[usize]| {
            let mut text = String::new();
            for block in blocks.iter().filter_map(|at| version.blocks.get(*at)) {
                if text.len() >= SNIPPET_BYTES_MAX {
                    break;
                }
                text.push_str(if text.is_empty() { "" } else { "\n" });
                text.push_str(version.shown(block));
            }
            text.truncate(text.floor_char_boundary(SNIPPET_BYTES_MAX));
            text
        };
        let snippet = match (found.added.is_empty(), old) {
            (true, Some(old)) => shown(old, &found.removed),
            _ => shown(new, &found.added),
        };
        details.text = Some(Text {
            added_tokens: found.words_added,
            removed_tokens: found.words_removed,
            blocks_added: found.added.len(),
            blocks_removed: found.removed.len(),
            blocks_moved: found.moved,
            snippet,
        });
    }
    if found.classes.contains(Class::Links) {
        let some = |links: &[String]| links.iter().take(EVENT_LINKS_MAX).cloned().collect();
        details.links = Some(Links {
            added: some(&found.links_added),
            removed: some(&found.links_removed),
            n_added: found.links_added.len(),
            n_removed: found.links_removed.len(),
        });
    }
    let title_before =
        old.and_then(|old| old.meta.title.clone()).filter(|title| Some(title) != new.meta.title.as_ref());
    let meta = Meta {
        title: new.meta.title.clone(),
        title_before,
        canonical: new.meta.canonical.clone().filter(|_| found.classes.contains(Class::Meta)),
        lang: new.meta.language.clone().filter(|_| found.classes.contains(Class::Meta)),
    };
    details.meta = (meta != Meta::default()).then_some(meta);
    if let (true, Some(old)) = (found.classes.contains(Class::Data), old) {
        details.data = facts(old, new);
    }
}

/// Facts that are not the same in both, by name and turn.
fn facts(old: &Version, new: &Version) -> Vec<Fact> {
    let turn = |facts: &[(String, String)]| {
        let mut seen = std::collections::HashMap::new();
        let number = |(name, value): &(String, String)| {
            let turn = seen.entry(name.clone()).and_modify(|turn| *turn += 1).or_insert(0);
            ((name.clone(), *turn), value.clone())
        };
        facts.iter().map(number).collect::<std::collections::BTreeMap<(String, u32), String>>()
    };
    let (old, new) = (turn(&old.facts), turn(&new.facts));
    let keys: std::collections::BTreeSet<_> = old.keys().chain(new.keys()).collect();
    let changed = keys.into_iter().filter(|key| old.get(*key) != new.get(*key));
    changed
        .take(EVENT_FACTS_MAX)
        .map(|key| Fact { name: key.0.clone(), before: old.get(key).cloned(), now: new.get(key).cloned() })
        .collect()
}
