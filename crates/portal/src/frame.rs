//! The frame around an archived page: on the portal's own origin, so that the page cannot touch it, and the page in it cannot pass
//! itself off as it.

use crate::address::At;
use crate::answer::{self, Answer, escape};
use crate::find::Looking;
use crate::limits::CANDIDATES_MAX;
use crate::pages::frame::{and_scope, encoded};
use crate::portal::Origin;
use crate::reply::Reply;
use crate::trouble::Trouble;
use crate::visit::Visit;
use crate::{memento, missing, replay, time};
use axum::http::{HeaderValue, StatusCode, header};
use skep_archive::captures::{Match, Query};
use skep_archive::runs::Direction;
use skep_archive::{Capture, Key};

const STYLE: &str = "html,body{margin:0;height:100%}body{display:flex;flex-direction:column;font:14px/1.4 system-ui,sans-serif;color:#1d2125;background:#fff}\
header{display:flex;flex-wrap:wrap;gap:.3rem 1rem;align-items:baseline;padding:.4rem .8rem;border-bottom:2px solid #c79100}\
header strong{white-space:nowrap}header code{overflow-wrap:anywhere;flex:1 1 12rem}nav a{margin-right:.8rem}#parts{white-space:nowrap}a{color:#0b57d0}\
iframe{flex:1;border:0;width:100%;background:#fff}\
@media(prefers-color-scheme:dark){body{color:#e3e5e8;background:#15181b}a{color:#8ab4f8}}";

/// Answers an address without modifier: the frame, with the page in it.
pub fn page(look: &Looking<'_>, at: &At, visit: &Visit, reply: Reply) {
    let found = look.nearest(&Key::of(&at.url), at.time_ms).and_then(|found| replay::pick(found, &at.url));
    match found {
        Err(trouble) => replay::refuse(look, &trouble, reply),
        Ok(None) => reply.send(missing::page(look, &at.url)),
        Ok(Some(capture)) if time::digits(capture.time_ms) != at.digits => {
            reply.send(replay::to_exact(look, at, &capture))
        }
        Ok(Some(capture)) => match around(look, at, visit, &capture) {
            Ok(answer) => reply.send(answer),
            Err(trouble) => replay::refuse(look, &trouble, reply),
        },
    }
}

/// The captures next to one, before and after it.
fn neighbours(look: &Looking<'_>, capture: &Capture) -> Result<[Option<Capture>; 2], Trouble> {
    let second = capture.time_ms.div_euclid(1000) * 1000;
    let mut before = Query::new(Match::Exact(capture.key.clone()));
    (before.to_ms, before.direction) = (Some(second - 1), Direction::Backward);
    let mut after = Query::new(Match::Exact(capture.key.clone()));
    after.from_ms = Some(second + 1000);
    let first = |query: &Query| -> Result<Option<Capture>, Trouble> {
        for capture in look.portal.query(query)?.take(CANDIDATES_MAX) {
            let capture = capture?;
            if look.shows(&capture) {
                return Ok(Some(capture));
            }
        }
        Ok(None)
    };
    Ok([first(&before)?, first(&after)?])
}

fn around(look: &Looking<'_>, at: &At, visit: &Visit, capture: &Capture) -> Result<Answer, Trouble> {
    let scope = look.scope.name();
    let [before, after] = neighbours(look, capture)?;
    let ends = look.ends(&capture.key)?;
    let link = |capture: &Option<Capture>, text: &str| match capture {
        Some(capture) => {
            let address = format!("/{scope}/{}/{}", time::digits(capture.time_ms), at.url);
            format!("<a href=\"{}\" title=\"{}\">{text}</a>", escape(&address), time::http(capture.time_ms))
        }
        None => String::new(),
    };
    let (first, last) = ends.map_or((None, None), |(first, last)| (Some(first), Some(last)));
    let (shown_in, sandbox) = match &look.portal.origin {
        Origin::Own => (visit.base.clone(), ""),
        Origin::Other { origin, .. } => (origin.clone(), " allow-same-origin"),
    };
    let scripts = if look.portal.scripts { " allow-scripts" } else { " allow-popups" };
    let source = escape(&format!("{shown_in}/{scope}/{}mp_/{}", at.digits, at.url));
    let (url, date) = (escape(&at.url), time::http(capture.time_ms));
    let navigation = [
        link(&first, "first"),
        link(&before, "previous"),
        link(&after, "next"),
        link(&last, "last"),
        format!("<a href=\"{}\">all versions</a>", escape(&format!("/{scope}/*/{}", at.url))),
        format!("<a href=\"{}\">as fetched</a>", escape(&format!("/{scope}/{}id_/{}", at.digits, at.url))),
    ];
    // Without scripts it is a link; with them it says at once how far apart in time the parts are, and how many are missing.
    let parts = escape(&format!("/completeness?url={}&time={}{}", encoded(&at.url), at.digits, and_scope(look)));
    let page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><title>{url} ({date})</title>\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><meta name=\"robots\" content=\"noindex\">\
         <style>{STYLE}</style><script src=\"/-/frame.js\" defer></script></head>\
         <body data-scope=\"{}\" data-replay=\"{}\" data-time=\"{}\"><header role=\"banner\"><strong><time id=\"time\" datetime=\"{}\">{date}</time></strong> \
         <code id=\"url\">{url}</code><nav aria-label=\"Versions of this page\">{}</nav>\
         <span role=\"status\"><a id=\"parts\" href=\"{parts}\">parts of this page</a></span></header>\
         <iframe id=\"page\" src=\"{source}\" title=\"The archived page\" sandbox=\"allow-forms allow-modals{scripts}{sandbox}\" \
         referrerpolicy=\"same-origin\"></iframe></body></html>\n",
        escape(scope),
        escape(&shown_in),
        at.digits,
        skep_warc::date::rfc3339(capture.time_ms),
        navigation.concat(),
    );
    let mut answer = answer::with(StatusCode::OK, "text/html; charset=utf-8", page);
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; connect-src 'self'; frame-src {shown_in}; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'self'"
    );
    let headers = answer.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, answer::value(&policy));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    memento::describe(headers, &visit.base, look.scope, capture);
    Ok(answer)
}
