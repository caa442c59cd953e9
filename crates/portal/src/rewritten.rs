//! Archived pages with their addresses led back into the archive, and what such an answer may do in a browser.
//!
//! A part of a page is the newest capture that is not newer than the page, else the one nearest after it. The time in the address stays
//! that of the page: whoever clicks through goes on at the same date, however far apart the captures are.

use crate::address::{self, At};
use crate::answer::{self, Answer};
use crate::find::Looking;
use crate::limits::{STEPS_ASIDE_MAX, WHOLE_BODY_BYTES_MAX};
use crate::portal::{Origin, Portal};
use crate::replay::{self, Shown};
use crate::reply::{Reply, Sink, tell};
use crate::trouble::Trouble;
use crate::visit::Visit;
use crate::{headers, memento, missing, time};
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, header};
use skep_archive::{Capture, Key};
use skep_page::rewrite::{self, Kind, Place, Rewriter};
use skep_url::Url;
use skep_warc::coding::{self, Bounds};
use std::io::BufRead;

/// The modifier of a page in which parts are chosen: none of its scripts run, and one of ours tells what was pointed at.
pub const PICK: &str = "pk_";
const PICK_SCRIPT: &str = include_str!("../assets/pick.js");

/// Answers an address with any modifier but `id_`.
pub fn page(look: &Looking<'_>, at: &At, visit: &Visit, reply: Reply) {
    let mut reply = Some(reply);
    match show(look, at, visit, &mut reply) {
        Ok(true) => {}
        Ok(false) => tell(&mut reply, absent(look, at, visit)),
        Err(trouble) => {
            look.portal.note(&trouble);
            let mut answer = trouble.page();
            guard(look.portal, &visit.base, answer.headers_mut());
            tell(&mut reply, answer);
        }
    }
}

/// Nothing is there: a page says so, a part is simply missing.
fn absent(look: &Looking<'_>, at: &At, visit: &Visit) -> Answer {
    let mut answer = match address::is_document(&at.modifier) {
        true => missing::page(look, &at.url),
        false => answer::text(StatusCode::NOT_FOUND, "not in this archive"),
    };
    guard(look.portal, &visit.base, answer.headers_mut());
    answer
}

/// Whether something was shown. Captures that lead to themselves, as from http to https, are stepped over.
fn show(look: &Looking<'_>, at: &At, visit: &Visit, reply: &mut Option<Reply>) -> Result<bool, Trouble> {
    let key = Key::of(&at.url);
    let candidates = candidates(look, at, &key)?;
    let last = candidates.len().saturating_sub(1);
    for (index, capture) in candidates.iter().enumerate() {
        let shown = Rewriting { look, at, visit, capture, key: &key, may_step_aside: index < last };
        if shown.deliver(reply)? {
            return Ok(true);
        }
    }
    Ok(false)
}

fn candidates(look: &Looking<'_>, at: &At, key: &Key) -> Result<Vec<Capture>, Trouble> {
    let mut found = if address::is_document(&at.modifier) {
        look.nearest(key, at.time_ms)?.take(STEPS_ASIDE_MAX).collect::<Result<Vec<Capture>, Trouble>>()?
    } else {
        look.not_newer(key, at.time_ms)?.take(STEPS_ASIDE_MAX).collect::<Result<Vec<Capture>, Trouble>>()?
    };
    // Of one second, the one about exactly this URL first.
    if let Some(best) = replay::pick(found.iter().cloned().map(Ok), &at.url)? {
        found.retain(|capture| capture.position != best.position);
        found.insert(0, best);
    }
    Ok(found)
}

/// What every answer on the name of archived pages carries: it may ask the archive for anything, and nobody else for nothing.
pub fn guard(portal: &Portal, base: &str, into: &mut HeaderMap) {
    let (origin, apart) = match &portal.origin {
        Origin::Own => (base, false),
        Origin::Other { origin, .. } => (origin.as_str(), true),
    };
    // On an origin of its own a page may have that origin; on the portal's own it must not.
    let same_origin = if apart { " allow-same-origin" } else { "" };
    // Where a new window goes, no policy of ours says: only a person may open one, not a script.
    let (scripts, run) = match portal.scripts {
        true => (
            format!("script-src {origin} data: blob: 'unsafe-inline' 'unsafe-eval' 'wasm-unsafe-eval'"),
            " allow-scripts",
        ),
        false => ("script-src 'none'".to_owned(), " allow-popups"),
    };
    let policy = format!(
        "default-src {origin} data: blob: 'unsafe-inline'; {scripts}; connect-src {origin} data: blob:; worker-src {origin} blob: data:; \
         frame-src {origin} data: blob: about:; object-src {origin}; base-uri {origin}; form-action {origin}; webrtc 'block'; \
         sandbox{run}{same_origin} allow-forms allow-modals"
    );
    into.insert(header::CONTENT_SECURITY_POLICY, answer::value(&policy));
    let nothing = "camera=(), microphone=(), geolocation=(), usb=(), serial=(), hid=(), bluetooth=(), midi=(), payment=(), \
                   clipboard-read=(), display-capture=(), publickey-credentials-get=(), screen-wake-lock=(), idle-detection=()";
    into.insert("permissions-policy", HeaderValue::from_static(nothing));
    into.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    if !apart {
        // Without an origin of its own, a page is a stranger also to its own fonts and modules.
        into.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    }
    into.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    into.insert("origin-agent-cluster", HeaderValue::from_static("?1"));
}

/// What a page may do in which parts are chosen: show itself, and run our script.
fn picked(origin: &str, nonce: &str, into: &mut HeaderMap) {
    let policy = format!(
        "default-src {origin} data: blob: 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'none'; worker-src 'none'; frame-src 'none'; \
         object-src 'none'; base-uri {origin}; form-action 'none'; webrtc 'block'; sandbox allow-scripts"
    );
    into.insert(header::CONTENT_SECURITY_POLICY, answer::value(&policy));
}

/// What no page of the past can have known.
fn nonce() -> String {
    use std::hash::BuildHasher;
    let draw = |turn: u8| std::hash::RandomState::new().hash_one(turn);
    format!("{:016x}{:016x}", draw(0), draw(1))
}

struct Rewriting<'a> {
    look: &'a Looking<'a>,
    at: &'a At,
    visit: &'a Visit,
    capture: &'a Capture,
    key: &'a Key,
    may_step_aside: bool,
}

impl Rewriting<'_> {
    /// The time that addresses in the page carry on.
    fn time(&self) -> String {
        match self.at.digits.len() {
            14 => self.at.digits.clone(),
            _ => time::digits(self.capture.time_ms),
        }
    }

    /// `false`: another capture is to be shown.
    fn deliver(&self, reply: &mut Option<Reply>) -> Result<bool, Trouble> {
        // The URL as it was asked for: what the page itself would have said.
        let own = Url::parse(&self.capture.url).or_else(|_| Url::parse(&self.at.url));
        let Ok(own) = own else { return self.unlinked(reply) };
        let origin = match &self.look.portal.origin {
            Origin::Own => &self.visit.base,
            Origin::Other { origin, .. } => origin,
        };
        let (prefix, time) = (format!("{origin}/{}/", self.look.scope.name()), self.time());
        let scripts = self.look.portal.scripts && self.at.modifier != PICK;
        let place = Place { prefix: &prefix, time: &time, url: &own, scripts };
        if self.is_binary() {
            return self.unlinked(reply);
        }
        let bounds = Bounds::default();
        replay::open(self.look, self.capture, |shown, mut source| {
            if self.leads_to_itself(shown) {
                return Ok(false);
            }
            let mut decoded: Box<dyn BufRead + '_> = match shown.body_head {
                Some(head) => Box::new(coding::decode(head, &mut source, bounds)),
                None => Box::new(&mut source),
            };
            let (whole, all) = replay::read_whole(&mut decoded, WHOLE_BODY_BYTES_MAX)?;
            let kind = rewrite::kind(&self.at.modifier, &shown.media_type, &whole[..whole.len().min(1024)]);
            let declared = (!shown.media_type.is_empty()).then_some(shown.media_type.as_bytes());
            let charset = rewrite::charset(kind, declared, &whole, &own);
            let mut rewriter = Rewriter::new(kind, &place, charset);
            let mut out = Vec::with_capacity(whole.len() + whole.len() / 4);
            rewriter.write(&whole, &mut out);
            let mut head = self.head(shown, kind, &place, false);
            if all {
                rewriter.end(&mut out);
                if self.at.modifier == PICK {
                    let nonce = nonce();
                    picked(origin, &nonce, head.headers_mut());
                    if kind == Kind::Html {
                        out.extend(format!("<script nonce=\"{nonce}\">{PICK_SCRIPT}</script>").into_bytes());
                    }
                }
                drop(decoded);
                source.end()?;
                tell(reply, self.whole(head, out));
                return Ok(true);
            }
            let Some(reply) = reply.take() else { return Ok(true) };
            if self.visit.head_only {
                reply.send(head);
                return Ok(true);
            }
            let sink = self.stream(reply.begin(head), &mut decoded, &mut rewriter, out);
            drop(decoded);
            if let Some(sink) = sink {
                replay::finish(self.look, source, sink);
            }
            Ok(true)
        })
    }

    fn whole(&self, head: Answer, out: Vec<u8>) -> Answer {
        let mut head = head;
        let bodiless = matches!(head.status().as_u16(), 204 | 205 | 304);
        if !bodiless {
            head.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(out.len()));
        }
        head.map(|_| if bodiless { Body::empty() } else { Body::from(out) })
    }

    fn stream(
        &self,
        mut sink: Sink,
        body: &mut dyn BufRead,
        rewriter: &mut Rewriter,
        mut out: Vec<u8>,
    ) -> Option<Sink> {
        loop {
            sink.write(&out).ok()?;
            out.clear();
            let here = match body.fill_buf() {
                Ok(here) => here,
                Err(error) => {
                    self.look.portal.note(&Trouble::reading(&error));
                    sink.cut(error);
                    return None;
                }
            };
            let count = here.len();
            if count == 0 {
                rewriter.end(&mut out);
                sink.write(&out).ok()?;
                return Some(sink);
            }
            rewriter.write(here, &mut out);
            body.consume(count);
        }
    }

    /// Types in which there are no addresses: they go out as they came, also in parts.
    fn is_binary(&self) -> bool {
        let kind = self.capture.mime.split('/').next().unwrap_or_default();
        let html = self.capture.mime == "image/svg+xml";
        !html && matches!(kind, "image" | "video" | "audio" | "font")
    }

    fn unlinked(&self, reply: &mut Option<Reply>) -> Result<bool, Trouble> {
        let head = |shown: &Shown<'_>| self.plain_head(shown);
        replay::deliver(self.look, self.capture, self.visit, reply, &head)?;
        Ok(true)
    }

    fn leads_to_itself(&self, shown: &Shown<'_>) -> bool {
        let to = shown.head.and_then(|head| replay::redirected(head, &self.capture.url));
        self.may_step_aside && to.is_some_and(|to| Key::of(&to) == *self.key)
    }

    /// The head of an answer whose body goes out as it came.
    fn plain_head(&self, shown: &Shown<'_>) -> Answer {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = shown.status;
        let into = answer.headers_mut();
        if let Some(head) = shown.head {
            headers::hand_on(head, false, into);
        }
        let coding = shown.body_head.and_then(|head| head.header("content-encoding"));
        if let Some(coding) = coding.and_then(|value| HeaderValue::from_bytes(value).ok()) {
            into.insert(header::CONTENT_ENCODING, coding);
        }
        let media_type = if shown.media_type.is_empty() { "application/octet-stream" } else { &shown.media_type };
        into.insert(header::CONTENT_TYPE, answer::value(media_type));
        into.insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
        self.common(into);
        answer
    }

    fn head(&self, shown: &Shown<'_>, kind: Kind, place: &Place<'_>, encoded: bool) -> Answer {
        let mut answer = Response::new(Body::empty());
        *answer.status_mut() = shown.status;
        let into = answer.headers_mut();
        if let Some(head) = shown.head {
            headers::hand_on(head, encoded, into);
        }
        into.insert(header::CONTENT_TYPE, answer::value(&media_type(&shown.media_type, kind)));
        if let Some(to) = shown.head.and_then(|head| replay::redirected(head, &self.capture.url)) {
            let modifier = if self.at.modifier.is_empty() { "mp_" } else { &self.at.modifier };
            let to = rewrite::link(place, modifier, &to)
                .unwrap_or_else(|| format!("{}{}{modifier}/{to}", place.prefix, place.time));
            into.insert(header::LOCATION, answer::location(&to));
            // A permanent redirect of the past is remembered by nobody today.
            into.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        }
        self.common(into);
        answer
    }

    fn common(&self, into: &mut HeaderMap) {
        guard(self.look.portal, &self.visit.base, into);
        memento::describe(into, &self.visit.base, self.look.scope, self.capture);
        let digits = time::digits(self.capture.time_ms);
        let own = format!("{}/{}/{digits}mp_/{}", self.visit.base, self.look.scope.name(), self.capture.url);
        into.insert(header::CONTENT_LOCATION, answer::location(&own));
        if !into.contains_key(header::CACHE_CONTROL) {
            into.insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
        }
    }
}

/// The media type that a browser must see to take a body as what it was taken for then, when nobody forbade it to guess.
fn media_type(declared: &str, kind: Kind) -> String {
    let plain = declared.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    match kind {
        Kind::Script | Kind::Module | Kind::Worker | Kind::ModuleWorker
            if !plain.contains("javascript") && !plain.contains("ecmascript") =>
        {
            "text/javascript".to_owned()
        }
        Kind::Html
            if plain.is_empty() || plain == "unknown/unknown" || plain == "application/unknown" || plain == "*/*" =>
        {
            "text/html".to_owned()
        }
        Kind::Other if declared.is_empty() => "text/plain".to_owned(),
        _ if declared.is_empty() => "text/html".to_owned(),
        _ => declared.to_owned(),
    }
}
