//! Watches: what is watched under which tags and by which rules. Parts of a page that count, or do not, are chosen by pointing at them in the
//! archived page, which is shown without its scripts and with one of ours that tells what was pointed at.

use super::frame::{self, count, encoded, facts, link, moment};
use crate::access::May;
use crate::answer::{self, Answer, escape};
use crate::api::capture::address;
use crate::cdx::params::Params;
use crate::changes::trouble;
use crate::find::Looking;
use crate::fresh::Watched;
use crate::limits::{RULE_BYTES_MAX, RULE_CHARS_MAX, RULE_MS, SEEDS_SHOWN_MAX};
use crate::metrics::Route;
use crate::portal::{Origin, Portal, Scope};
use crate::trouble::Trouble;
use crate::visit::Visit;
use crate::{replay, rewritten, routes, time};
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use skep_archive::Key;
use skep_changes::{Settings, SiteRules};
use skep_warc::date;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

/// The page of all watches, or of those with a tag.
pub fn page(look: &Looking<'_>, params: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let watches = look.portal.fresh.now(look.now_ms)?;
    let settings = Settings::of(&look.portal.archive).map_err(trouble)?;
    let tag = params.get("tag").filter(|tag| !tag.is_empty());
    let mut body = super::live::links(look);
    if watches.is_empty() {
        body.push_str("<p>Nothing here is watched. <code>skep watch URL</code> keeps an archive up to date.</p>\n");
    }
    let tags: BTreeSet<&str> = watches.iter().flat_map(|watch| &watch.tags).map(String::as_str).collect();
    if !tags.is_empty() {
        let one = |name: &&str| match tag == Some(*name) {
            true => format!("<strong>{}</strong>", escape(name)),
            false => link(&format!("/watches?tag={}", encoded(name)), name),
        };
        let all = if tag.is_some() { link("/watches", "all") } else { "<strong>all</strong>".to_owned() };
        let names: Vec<String> = std::iter::once(all).chain(tags.iter().map(one)).collect();
        body.push_str(&format!("<p>Tags: {}</p>\n", names.join(" · ")));
    }
    let shown = |watch: &&Watched| tag.is_none_or(|tag| watch.tags.iter().any(|one| one == tag));
    for watch in watches.iter().filter(shown) {
        body.push_str(&section(watch));
    }
    body.push_str(&ruled(&settings));
    body.push_str(
        "<form class=\"filters\" action=\"/watches/pick\"><label>Choose parts of a page: <input name=\"url\" type=\"search\" maxlength=\"2000\" \
         placeholder=\"its URL\" autocapitalize=\"none\" spellcheck=\"false\" required></label> <button>Show it</button></form>\n",
    );
    Ok(frame::page(look, "Watches", &body))
}

fn section(watch: &Watched) -> String {
    let name = encoded(&watch.name);
    let mut out = format!("<h2 id=\"{}\">{}</h2>\n", escape(&watch.name), escape(&watch.name));
    out.push_str(&facts(&[
        ("pages", count(watch.pages)),
        ("up to date, as far as is believed", format!("{:.1} %", 100.0 * watch.fresh.clamp(0.0, 1.0))),
        ("overdue", count(watch.overdue)),
    ]));
    let tags: Vec<String> = watch.tags.iter().map(|tag| link(&format!("/watches?tag={}", encoded(tag)), tag)).collect();
    let tags = if tags.is_empty() { String::new() } else { format!(" Tags: {}.", tags.join(", ")) };
    out.push_str(&format!("<p>Policy {}, {}.{tags}</p>\n", escape(&watch.policy), escape(&watch.budget)));
    out.push_str(&format!(
        "<p>{} · {} · {}</p>\n<ul>",
        link(&format!("/changes/live?watch={name}"), "Its changes, live"),
        link(&format!("/changes/feed.atom?watch={name}"), "Its feed"),
        link("/freshness", "How fresh it is"),
    ));
    for seed in watch.seeds.iter().take(SEEDS_SHOWN_MAX) {
        out.push_str(&format!(
            "<li class=\"url\">{} · {}</li>",
            link(&format!("/history?url={}", encoded(seed)), seed),
            link(&format!("/watches/pick?url={}", encoded(seed)), "choose parts"),
        ));
    }
    out.push_str("</ul>\n");
    let more = watch.seeds.len().saturating_sub(SEEDS_SHOWN_MAX);
    if more > 0 {
        out.push_str(&format!("<p class=\"soft\">And {more} more.</p>\n"));
    }
    out
}

fn ruled(settings: &Settings) -> String {
    let mut out = String::from("<h2>Rules</h2>\n");
    let code = |all: &[String]| -> String {
        all.iter().map(|one| format!("<code>{}</code>", escape(one))).collect::<Vec<_>>().join(" ")
    };
    let rows: Vec<String> = settings
        .said()
        .map(|said| {
            format!(
                "<tr><td><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(&said.about),
                code(&said.keep),
                code(&said.ignore),
                code(&said.ignore_text)
            )
        })
        .collect();
    match rows.is_empty() {
        true => out.push_str("<p>There are none: whatever a reader sees of a page counts, but for what changes all the time.</p>\n"),
        false => out.push_str(&format!(
            "<table><thead><tr><th scope=\"col\">of</th><th scope=\"col\">only this counts</th><th scope=\"col\">this does not</th>\
             <th scope=\"col\">nor does text like</th></tr></thead><tbody>{}</tbody></table>\n",
            rows.concat()
        )),
    }
    out
}

/// The page on which parts of a page are chosen.
pub fn pick(look: &Looking<'_>, params: &Params, visit: &Visit) -> Result<Answer, Trouble> {
    let url = params.get("url").unwrap_or_default().trim();
    let capture = replay::pick(look.nearest(&Key::of(url), look.now_ms)?, url)?;
    let Some(capture) = capture else { return Err(Trouble::missing("There is no capture of this URL here.")) };
    let origin = match &look.portal.origin {
        Origin::Own => visit.base.clone(),
        Origin::Other { origin, .. } => origin.clone(),
    };
    let (digits, shown) = (time::digits(capture.time_ms), &capture.url);
    let source = address(&format!("{origin}/{}/{digits}{}/{shown}", look.scope.name(), rewritten::PICK));
    let body = format!(
        "<p class=\"url\"><code>{}</code> as of {}</p>\n\
         <p id=\"told\" role=\"status\">Point at a part of the page below and click: what it is called is put into the form. Scripts of the page do not run.</p>\n\
         <form id=\"rule\" class=\"filters\">\
         <label>Rules for <input name=\"about\" value=\"{}\" maxlength=\"{RULE_CHARS_MAX}\" required></label> \
         <label>Part <input name=\"part\" maxlength=\"{RULE_CHARS_MAX}\" autocapitalize=\"none\" spellcheck=\"false\" required></label> \
         <label><input type=\"radio\" name=\"which\" value=\"ignore\" checked> does not count</label> \
         <label><input type=\"radio\" name=\"which\" value=\"keep\"> is all that counts</label> \
         <label>Token <input name=\"token\" type=\"password\" autocomplete=\"off\" placeholder=\"of somebody who may write\"></label> \
         <button>Keep this rule</button></form>\n\
         <p class=\"soft\">The same in <code>settings/changes.toml</code> of the archive:</p>\n<pre id=\"toml\"></pre>\n\
         <iframe id=\"page\" class=\"picked\" title=\"The page\" src=\"{}\" sandbox=\"allow-scripts\" referrerpolicy=\"no-referrer\"></iframe>\n",
        escape(shown),
        moment(&date::rfc3339(capture.time_ms)),
        escape(&SiteRules::for_url(shown)),
        escape(&source),
    );
    Ok(frame::picking(look, "Choose parts of a page", &body, &origin, "/-/watches.js"))
}

/// A rule, from somebody who may write.
pub async fn add(State(portal): State<Arc<Portal>>, request: Request<Body>) -> Answer {
    let (visit, _, body) = Visit::apart(&portal, request);
    routes::counted(added(&portal, visit, body).await, Route::Page)
}

async fn added(portal: &Arc<Portal>, visit: Visit, body: Body) -> Answer {
    if visit.may < May::Write {
        let told = match portal.access.has_writers() {
            true => "Writing needs the token of somebody who may write.",
            false => {
                "Nobody may write here: `skep watch --auth FILE` or `skep serve --auth FILE` names who may. Or put it into the file."
            }
        };
        return answer::text(StatusCode::FORBIDDEN, told);
    }
    let whole = http_body_util::Limited::new(body, RULE_BYTES_MAX).collect();
    let body = match tokio::time::timeout(Duration::from_millis(RULE_MS), whole).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return answer::text(StatusCode::PAYLOAD_TOO_LARGE, "that is too long for a rule"),
        Err(_) => return answer::text(StatusCode::REQUEST_TIMEOUT, "the rule did not come in time"),
    };
    let params = Params::of(&String::from_utf8_lossy(&body));
    let texts = |name: &str| -> Vec<String> {
        params.all(name).map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned).collect()
    };
    let about = params.get("about").unwrap_or_default().trim().to_owned();
    let said = SiteRules { about, keep: texts("keep"), ignore: texts("ignore"), ignore_text: texts("ignore_text") };
    let long = |text: &String| text.chars().count() > RULE_CHARS_MAX;
    let parts = || said.keep.iter().chain(&said.ignore).chain(&said.ignore_text);
    if said.about.is_empty() || parts().next().is_none() || long(&said.about) || parts().any(long) {
        return answer::text(
            StatusCode::BAD_REQUEST,
            "a rule says what it is about, and which part counts or does not",
        );
    }
    let work = move |look: &Looking<'_>, _: &Visit, reply: crate::reply::Reply| {
        let done = Settings::add(&look.portal.archive.layout().settings(), std::slice::from_ref(&said));
        reply.send(match done {
            Ok(()) => answer::text(StatusCode::OK, "kept; it holds from the next look on"),
            Err(skep_changes::Error::Rules(why)) => answer::text(StatusCode::BAD_REQUEST, &why),
            Err(error) => {
                let trouble = trouble(error);
                look.portal.note(&trouble);
                answer::text(trouble.status, &trouble.told)
            }
        });
    };
    routes::look(portal, Scope::Everything, visit, work).await
}
