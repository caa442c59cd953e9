//! The history of a URL: what changed, when, and word by word.

use super::event::{self, classes};
use super::frame::{self, and_scope, calendar, count, encoded, facts, in_scope, link, moment, more};
use crate::answer::{Answer, escape};
use crate::api::capture::address;
use crate::api::url;
use crate::cdx::params::Params;
use crate::changes::{everywhere, may_see, trouble};
use crate::find::Looking;
use crate::limits::{HISTORY_DIFFERENCES_MAX, HISTORY_LINKS_TOLD, HISTORY_ROWS, HISTORY_SPELLINGS_MAX};
use crate::time;
use crate::trouble::Trouble;
use crate::visit::Visit;
use skep_archive::{Capture, Position};
use skep_changes::{Event, Kept, Settings, text_of};
use skep_page::compare::show;
use skep_page::version::{Nature, Version};
use skep_warc::date;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The page.
pub fn page(look: &Looking<'_>, params: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let asked = super::url::asked(params)?;
    let url = asked.text("url");
    let skip = params.number("skip")?.and_then(|skip| usize::try_from(skip).ok()).unwrap_or(0);
    let (portal, changes) = (look.portal, &look.portal.hub.changes);
    changes.follow(&portal.archive, look.now_ms, &mut |_| ()).map_err(trouble)?;
    let (captures, cut) = url::captures(look, &asked)?;
    if captures.is_empty() {
        return Err(Trouble::missing("There is no capture of this URL here."));
    }
    let (elsewhere, lacks) = told_elsewhere(look, &captures);
    let mut events: Vec<(usize, Event)> = Vec::new();
    for (index, capture) in captures.iter().enumerate().rev() {
        let kept = changes.last_of(&portal.archive, capture.position).map_err(trouble)?;
        let event = kept.as_deref().and_then(Kept::decode).and_then(|kept| kept.event());
        let event = event.or_else(|| elsewhere.get(&capture.position).cloned());
        events.extend(event.filter(|event| !event.classes.is_silent()).map(|event| (index, event)));
    }
    let mut body = format!("<p class=\"url\"><code>{}</code></p>\n{}", escape(url), in_scope(look));
    body.push_str(&facts(&[("captures", count(captures.len() as u64)), ("changes", count(events.len() as u64))]));
    body.push_str(&format!(
        "<p>{} · {} · {}</p>\n",
        link(&calendar(look, url), "Calendar"),
        link(&format!("/url?url={}{}", encoded(url), and_scope(look)), "Versions and captures"),
        link(&format!("/compare?url={}{}", encoded(url), and_scope(look)), "Any two versions"),
    ));
    if cut {
        body.push_str("<p class=\"soft\">There are more captures than were looked at.</p>\n");
    }
    if lacks.silent {
        body.push_str("<p>Not all that changed is told here: nodes that hold this page do not answer just now.</p>\n");
    }
    if lacks.cut {
        body.push_str("<p>Not all that changed is told here: it is more than other nodes tell at once.</p>\n");
    }
    if events.is_empty() && !lacks.silent && !lacks.cut {
        body.push_str("<p>Nothing changed that was noticed.</p>\n");
    }
    let settings = Settings::of(&portal.archive).map_err(trouble)?;
    let mut texts = Texts { look, settings: &settings, last: None, left: HISTORY_DIFFERENCES_MAX };
    let places: HashMap<Position, usize> =
        captures.iter().enumerate().map(|(index, capture)| (capture.position, index)).collect();
    for (index, event) in events.iter().skip(skip).take(HISTORY_ROWS) {
        let named = event.details.prev.as_ref().and_then(|prev| prev.key.parse().ok());
        let before = named.and_then(|position: Position| places.get(&position)).map(|index| &captures[*index]);
        body.push_str(&section(look, url, event, &captures[*index], before, &mut texts));
    }
    let next = (events.len() > skip.saturating_add(HISTORY_ROWS)).then_some(skip + HISTORY_ROWS);
    body.push_str(&more(next.map(|skip| format!("{}&skip={skip}", event::history(look, url)))));
    Ok(frame::asking(look, "History", url, &body, None))
}

/// Why something is not told of captures that are with others.
#[derive(Default)]
struct Lacks {
    /// Nobody answers for some of them.
    silent: bool,
    /// It is more than is asked for, or told, at once.
    cut: bool,
}

/// What other nodes tell of captures that are with them.
fn told_elsewhere(look: &Looking<'_>, captures: &[Capture]) -> (HashMap<Position, Event>, Lacks) {
    let (mut told, mut lacks) = (HashMap::new(), Lacks::default());
    let Some(others) = look.others() else { return (told, lacks) };
    let mut urls: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for capture in captures.iter().filter(|capture| others.is_elsewhere(capture.key.site_hash())) {
        urls.entry(&capture.url).or_default().insert(capture.key.site_hash());
    }
    lacks.cut = urls.len() > HISTORY_SPELLINGS_MAX;
    for (url, sites) in urls.into_iter().take(HISTORY_SPELLINGS_MAX) {
        let all = everywhere::of_url(others, url, &sites);
        lacks.cut |= all.cut;
        lacks.silent |= all.silent > 0;
        let shown = |kept: &Kept<'_>| may_see(look.portal, look.may, look.now_ms, kept);
        let kept = all.events.iter().filter_map(everywhere::Told::kept).filter(shown);
        told.extend(kept.filter_map(|kept| Some((kept.key, kept.event()?))));
    }
    (told, lacks)
}

/// Texts of captures. What an event was compared with is mostly what the event before it brought: it is read once.
struct Texts<'t> {
    look: &'t Looking<'t>,
    settings: &'t Settings,
    last: Option<(Position, Option<Version>)>,
    left: usize,
}

impl Texts<'_> {
    fn of(&mut self, capture: &Capture) -> Result<Option<Version>, Trouble> {
        if let Some((position, version)) = &self.last
            && *position == capture.position
        {
            return Ok(version.clone());
        }
        let version = text_of(&self.look.portal.archive, capture, self.settings).map_err(trouble)?;
        self.last = Some((capture.position, version.clone()));
        Ok(version)
    }

    /// Both texts beside each other, as long as there is still work to be spent on this page.
    fn differences(&mut self, before: &Capture, after: &Capture) -> Result<Option<String>, Trouble> {
        // What is with other nodes is read where somebody asks for it: on the page that compares the two.
        let far = self.look.others().is_some_and(|others| others.is_elsewhere(after.key.site_hash()));
        if self.left == 0 || far {
            return Ok(None);
        }
        self.left -= 1;
        let (is, was) = (self.of(after)?, self.of(before)?);
        let is_text = |version: &Version| matches!(version.nature, Nature::Page | Nature::Text);
        let (Some(was), Some(is)) = (was.filter(is_text), is.filter(is_text)) else { return Ok(None) };
        let shown = show(&was.text, &is.text);
        if shown.old_lines + shown.new_lines == 0 {
            return Ok(None);
        }
        let cut = if shown.cut { "<p class=\"soft\">Only the beginning was compared.</p>" } else { "" };
        Ok(Some(format!(
            "<table class=\"differences\"><thead><tr><th scope=\"col\">Before</th><th scope=\"col\">After</th></tr></thead>\
             <tbody>{}</tbody></table>{cut}",
            shown.html()
        )))
    }
}

fn section(
    look: &Looking<'_>,
    url: &str,
    event: &Event,
    capture: &Capture,
    before: Option<&Capture>,
    texts: &mut Texts<'_>,
) -> String {
    let details = &event.details;
    let replay =
        |capture: &Capture| address(&format!("/{}/{}/{url}", look.scope.name(), time::digits(capture.time_ms)));
    let mut out =
        format!("<section class=\"change\"><h2>{} {}</h2>\n", moment(&date::rfc3339(event.time_ms)), classes(event));
    let mut ways = Vec::new();
    if let Some(before) = before {
        let both = format!(
            "/compare?url={}{}&a={}&b={}",
            encoded(url),
            and_scope(look),
            time::digits(before.time_ms),
            time::digits(capture.time_ms)
        );
        ways.push(link(&replay(before), "The page before"));
        ways.push(link(&replay(capture), "The page after"));
        ways.push(link(&format!("{both}&view=rendered"), "Both side by side"));
        ways.push(link(&both, "All of the text"));
    } else {
        ways.push(link(&replay(capture), "The page"));
    }
    out.push_str(&format!("<p>{}</p>\n", ways.join(" · ")));
    if let Some([from, to]) = &details.window {
        out.push_str(&format!(
            "<p class=\"soft\">It happened between {} and {}.</p>\n",
            moment(&escape(from)),
            moment(&escape(to))
        ));
    }
    if let Some(to) = &details.http.redirect {
        out.push_str(&format!("<p class=\"url\">It leads to <code>{}</code>.</p>\n", escape(to)));
    }
    if let Some(reason) = &details.reason {
        out.push_str(&format!("<p>{}</p>\n", escape(reason)));
    }
    if let Some(meta) = &details.meta
        && let (Some(was), Some(is)) = (&meta.title_before, &meta.title)
    {
        out.push_str(&format!("<p>Title: <del>{}</del> <ins>{}</ins></p>\n", escape(was), escape(is)));
    }
    for fact in &details.data {
        let side = |element: &str, value: &Option<String>| {
            value.as_deref().map_or(String::new(), |value| format!(" <{element}>{}</{element}>", escape(value)))
        };
        out.push_str(&format!(
            "<p><code>{}</code>:{}{}</p>\n",
            escape(&fact.name),
            side("del", &fact.before),
            side("ins", &fact.now)
        ));
    }
    out.push_str(&links(event));
    if let Some(before) = before {
        match texts.differences(before, capture) {
            Ok(shown) => out.extend(shown),
            // The others can be told all the same.
            Err(trouble) => {
                look.portal.note(&trouble);
                out.push_str(&format!("<p class=\"wrong\">{}</p>\n", escape(&trouble.told)));
            }
        }
    }
    out + "</section>\n"
}

fn links(event: &Event) -> String {
    let Some(links) = &event.details.links else { return String::new() };
    let mut out = String::new();
    for (element, told, some, all) in
        [("ins", "links came", &links.added, links.n_added), ("del", "links went", &links.removed, links.n_removed)]
    {
        if all == 0 {
            continue;
        }
        let item = |url: &String| format!("<li class=\"url\"><{element}>{}</{element}></li>", escape(url));
        let items: String = some.iter().take(HISTORY_LINKS_TOLD).map(item).collect();
        out.push_str(&format!("<details><summary>{} {told}</summary><ul>{items}</ul></details>\n", count(all as u64)));
    }
    out
}
