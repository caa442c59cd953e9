//! Which address is answered by whom.
//!
//! ```text
//!  /health /metrics                  for machines that watch this one
//!  /cdx/search/cdx                   the index as the Internet Archive's server answers
//!  /cdx  /COLLECTION/cdx             the index as pywb answers
//!  /COLLECTION?url=                  the index as OutbackCDX answers
//!  /changes                          what was born, changed, moved or died: `changes.rs`
//!  /contribute                       messages of contributors: `contribute.rs`; /contribute/KEY: for another node of the network
//!  /COLLECTION/…                     replay; `web` is everything
//!  /api/v1/…                         the catalogue for programs: `api.rs`
//!  /  /search  /url  /files  …       pages for people: `pages.rs`
//! ```
//! On the name where archived pages are shown there is nothing but these pages.

use crate::access::May;
use crate::address::{self, Asked};
use crate::answer::{self, Answer};
use crate::cdx::{self, params::Params};
use crate::find::Looking;
use crate::limits::{BODY_BYTES_MAX, BODY_MS};
use crate::metrics::Route;
use crate::portal::{Origin, Portal, Scope};
use crate::reply::Reply;
use crate::trouble::Trouble;
use crate::visit::Visit;
use crate::{api, changes, contribute, frame, memento, pages, replay, rewritten};
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, Request, StatusCode, header};
use axum::routing::{get, post};
use http_body_util::BodyExt;
use std::sync::Arc;
use std::time::Duration;

/// Everything on the portal's own name.
pub fn portal(portal: Arc<Portal>) -> Router {
    Router::new()
        .route("/health", get(health))
        .route("/metrics", get(metrics))
        .route("/cdx/search/cdx", get(cdx_internet_archive))
        .route("/cdx", get(cdx_everything))
        .route("/changes", get(changes::stream))
        .route("/contribute", post(contribute::take))
        .route("/contribute/{key}", post(contribute::pass_on))
        .route("/-/replay.js", get(replay_script))
        .route("/-/frame.js", get(frame_script))
        .merge(api::routes())
        .merge(pages::routes())
        .fallback(collections)
        .with_state(portal)
}

/// An answer that is counted under a route.
pub fn counted(mut answer: Answer, route: Route) -> Answer {
    answer.extensions_mut().insert(route);
    answer
}

async fn health(State(portal): State<Arc<Portal>>) -> Answer {
    let facts = portal.archive.views().captures.facts();
    let told = serde_json::json!({ "status": "ok", "captures": facts.in_runs + facts.fresh });
    counted(answer::json(StatusCode::OK, &told), Route::Service)
}

async fn metrics(State(portal): State<Arc<Portal>>) -> Answer {
    let facts = portal.archive.views().captures.facts();
    let archive = [
        ("skep_captures", "Captures in the archive, about.", facts.in_runs + facts.fresh),
        ("skep_segments", "Segments written here.", portal.archive.segments().len() as u64),
        ("skep_capture_runs", "Files of the captures view.", facts.runs),
        ("skep_capture_run_bytes", "Bytes of the captures view.", facts.run_bytes),
    ];
    let mut archive = archive.to_vec();
    archive.extend(portal.elsewhere.iter().flat_map(|others| others.metrics()));
    let text = portal.metrics.text(&archive);
    counted(answer::with(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text), Route::Service)
}

/// The parameters of a request for the index.
fn params(visit: &Visit) -> Params {
    Params::of(visit.target.split_once('?').map_or("", |(_, query)| query))
}

async fn cdx_internet_archive(State(portal): State<Arc<Portal>>, request: Request<Body>) -> Answer {
    let (visit, _, _) = Visit::apart(&portal, request);
    let params = params(&visit);
    let work =
        move |look: &Looking<'_>, visit: &Visit, reply| cdx::internet_archive::answer(look, &params, visit, reply);
    counted(look(&portal, Scope::Everything, visit, work).await, Route::Cdx)
}

async fn cdx_everything(State(portal): State<Arc<Portal>>, request: Request<Body>) -> Answer {
    let (visit, _, _) = Visit::apart(&portal, request);
    cdx_pywb(portal, Scope::Everything, visit).await
}

async fn cdx_pywb(portal: Arc<Portal>, scope: Scope, visit: Visit) -> Answer {
    let params = params(&visit);
    let work = move |look: &Looking<'_>, visit: &Visit, reply| cdx::pywb::answer(look, &params, visit, reply);
    counted(look(&portal, scope, visit, work).await, Route::Cdx)
}

async fn cdx_outback(portal: Arc<Portal>, scope: Scope, visit: Visit) -> Answer {
    let params = params(&visit);
    let work = move |look: &Looking<'_>, visit: &Visit, reply| cdx::outback::answer(look, &params, visit, reply);
    counted(look(&portal, scope, visit, work).await, Route::Cdx)
}

/// What begins with the name of a collection, or of everything.
async fn collections(State(portal): State<Arc<Portal>>, request: Request<Body>) -> Answer {
    let (visit, parts, body) = Visit::apart(&portal, request);
    let target = visit.target.clone();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let (name, rest) = path
        .trim_start_matches('/')
        .split_once('/')
        .map_or((path.trim_start_matches('/'), None), |(name, rest)| (name, Some(rest)));
    let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned();
    let reads = matches!(parts.method, Method::GET | Method::HEAD);
    if parts.method == Method::POST && matches!(rest, None | Some("" | "delete")) {
        return counted(posted(portal, &name, rest == Some("delete"), visit, body).await, Route::Cdx);
    }
    let Some(scope) = portal.scope(&name) else { return counted(unknown(&portal), Route::Page) };
    match rest {
        Some("cdx" | "index") if reads => cdx_pywb(portal, scope, visit).await,
        None | Some("") if reads && (query.contains("url=") || query.contains("urlkey=")) => {
            cdx_outback(portal, scope, visit).await
        }
        Some(rest) if reads => {
            // What stands behind the question mark belongs to the archived URL.
            let rest =
                if query.is_empty() && !target.contains('?') { rest.to_owned() } else { format!("{rest}?{query}") };
            archived(portal, scope, visit, &parts, &rest).await
        }
        Some(_) => counted(not_allowed("GET, HEAD"), Route::Replay),
        None => counted(unknown(&portal), Route::Page),
    }
}

/// Lines of an index, from somebody who may write.
async fn posted(portal: Arc<Portal>, name: &str, delete: bool, visit: Visit, body: Body) -> Answer {
    if visit.may < May::Write {
        let told = match portal.access.has_writers() {
            true => "Writing needs a token: send it as `Authorization: Bearer TOKEN`.",
            false => "Nobody may write here: `skep serve --auth FILE` names who may.",
        };
        return cdx::outback::error(&Trouble::forbidden(told));
    }
    let scope = match portal.scope(name) {
        Some(scope) => scope,
        None if cdx::post::can_name(name) => Scope::Collection(name.into()),
        None => return cdx::outback::error(&Trouble::bad(format!("{name:?} cannot name a collection"))),
    };
    let Ok(_place) = portal.bodies.acquire().await else { return unknown(&portal) };
    let whole = http_body_util::Limited::new(body, BODY_BYTES_MAX).collect();
    let body = match tokio::time::timeout(Duration::from_millis(BODY_MS), whole).await {
        Err(_) => return answer::text(StatusCode::REQUEST_TIMEOUT, "the lines did not come in time"),
        Ok(Err(_)) => {
            return answer::text(StatusCode::PAYLOAD_TOO_LARGE, &format!("at most {BODY_BYTES_MAX} bytes at once"));
        }
        Ok(Ok(body)) => body.to_bytes(),
    };
    let work = move |look: &Looking<'_>, _: &Visit, reply: Reply| {
        let (done, result) = if delete { ("Deleted", look.delete(&body)) } else { ("Added", look.post(&body)) };
        reply.send(match result {
            Ok(count) => answer::text(StatusCode::OK, &format!("{done} {count} records")),
            Err(trouble) => {
                look.portal.note(&trouble);
                cdx::outback::error(&trouble)
            }
        });
    };
    look(&portal, scope, visit, work).await
}

/// Replay, TimeGates and TimeMaps.
async fn archived(portal: Arc<Portal>, scope: Scope, visit: Visit, parts: &Parts, rest: &str) -> Answer {
    let asked = match address::parse(rest) {
        Ok(asked) => asked,
        Err(wrong) => {
            return counted(answer::told(StatusCode::BAD_REQUEST, "Not an address", wrong.told()), Route::Replay);
        }
    };
    let route = if matches!(asked, Asked::Gate(_) | Asked::TimeMap { .. }) { Route::Memento } else { Route::Replay };
    if visit.on_replay && parts.headers.contains_key("service-worker") {
        // A worker of the past would stand between its page and the archive.
        return counted(answer::text(StatusCode::NOT_FOUND, "no service workers of the past"), route);
    }
    if let (Scope::Everything, false) = (&scope, visit.on_replay)
        && let Some(to) = portal.leads_to(asked.url(), &visit.target)
    {
        return counted(answer::redirect(StatusCode::TEMPORARY_REDIRECT, &to), route);
    }
    let answer = match asked {
        Asked::At(at) if at.modifier == "id_" => {
            look(&portal, scope, visit, move |look, visit, reply| replay::raw(look, &at, visit, reply)).await
        }
        Asked::At(at) => match (&portal.origin, visit.on_replay) {
            (_, false) if at.modifier.is_empty() => {
                look(&portal, scope, visit, move |look, visit, reply| frame::page(look, &at, visit, reply)).await
            }
            (Origin::Other { origin, .. }, false) => {
                let to = format!("{origin}/{}/{}{}/{}", scope.name(), at.digits, at.modifier, at.url);
                answer::redirect(StatusCode::TEMPORARY_REDIRECT, &to)
            }
            _ => look(&portal, scope, visit, move |look, visit, reply| rewritten::page(look, &at, visit, reply)).await,
        },
        Asked::Gate(url) => {
            look(&portal, scope, visit, move |look, visit, reply| memento::gate(look, &url, visit, reply)).await
        }
        Asked::TimeMap { format, page, url } => {
            look(&portal, scope, visit, move |look, visit, reply| memento::map(look, &format, page, &url, visit, reply))
                .await
        }
        Asked::All(_) if visit.on_replay => no_such_page(),
        Asked::All(url) => {
            look(&portal, scope, visit, move |look, _, reply| pages::calendar::page(look, &url, reply)).await
        }
    };
    counted(answer, route)
}

/// Does work that reads the archive.
pub async fn look(
    portal: &Arc<Portal>,
    scope: Scope,
    visit: Visit,
    work: impl FnOnce(&Looking<'_>, &Visit, Reply) + Send + 'static,
) -> Answer {
    let shared = portal.clone();
    portal
        .turns
        .take(move |reply| {
            // What was acknowledged before the question belongs in the answer. Where the views can no longer follow, they answer for what they
            // have seen; whoever writes hears of it.
            let _behind = shared.archive.settle();
            let look = Looking { portal: &shared, scope: &scope, may: visit.may, now_ms: shared.now_ms(), sites: None };
            work(&look, &visit, reply);
        })
        .await
}

/// An address that is none.
pub fn unknown(portal: &Portal) -> Answer {
    let names: Vec<String> =
        portal.collections().iter().take(20).map(|name| format!("<code>{}</code>", answer::escape(name))).collect();
    let collections =
        if names.is_empty() { String::new() } else { format!("<p>Collections here: {}.</p>", names.join(", ")) };
    let body = format!("<p>Archived pages are at <code>/web/2014/http://example.org/</code>.</p>{collections}");
    answer::page(StatusCode::NOT_FOUND, "There is nothing at this address", &body)
}

/// Another method is meant.
pub fn not_allowed(allowed: &'static str) -> Answer {
    let mut answer = answer::text(StatusCode::METHOD_NOT_ALLOWED, &format!("only {allowed} here"));
    answer.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allowed));
    answer
}

/// Everything on the name where archived pages are shown: these pages.
pub fn replay(portal: Arc<Portal>) -> Router {
    Router::new().fallback(only_pages).with_state(portal)
}

async fn only_pages(State(portal): State<Arc<Portal>>, request: Request<Body>) -> Answer {
    let (visit, parts, _body) = Visit::apart(&portal, request);
    if !matches!(parts.method, Method::GET | Method::HEAD) {
        return counted(not_allowed("GET, HEAD"), Route::Replay);
    }
    let target = visit.target.clone();
    let scope = target.trim_start_matches('/').split_once('/').and_then(|(name, rest)| {
        let name = percent_encoding::percent_decode_str(name).decode_utf8_lossy().into_owned();
        Some((portal.scope(&name)?, rest.to_owned()))
    });
    if target == "/-/replay.js" {
        return counted(asset("text/javascript; charset=utf-8", REPLAY_SCRIPT), Route::Service);
    }
    match scope {
        Some((scope, rest)) => archived(portal, scope, visit, &parts, &rest).await,
        None => counted(led_back(&portal, &visit, &parts), Route::Replay),
    }
}

/// A request that got past the rewriting, such as for `/style.css`: its page says where it was meant to go.
fn led_back(portal: &Portal, visit: &Visit, parts: &Parts) -> Answer {
    let referer = parts.headers.get(header::REFERER).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let Some(page) = referer.strip_prefix(visit.base.as_str()) else { return no_such_page() };
    let asked = page.trim_start_matches('/').split_once('/').and_then(|(name, rest)| {
        let at = match address::parse(rest) {
            Ok(Asked::At(at)) => at,
            _ => return None,
        };
        portal.scope(name)?;
        let to = skep_url::Url::parse(&at.url).ok()?.join(&visit.target).ok()?;
        Some(format!("/{name}/{}mp_/{}", at.digits, to.as_str()))
    });
    asked.map_or_else(no_such_page, |to| answer::redirect(StatusCode::TEMPORARY_REDIRECT, &to))
}

fn no_such_page() -> Answer {
    answer::told(StatusCode::NOT_FOUND, "Nothing but archived pages", "Under this name there are archived pages only.")
}

/// Our own script in archived pages.
const REPLAY_SCRIPT: &[u8] = include_bytes!("../assets/replay.js");
/// Our own script around them.
const FRAME_SCRIPT: &[u8] = include_bytes!("../assets/frame.js");

fn asset(media_type: &'static str, bytes: &'static [u8]) -> Answer {
    let mut answer = answer::with(StatusCode::OK, media_type, bytes);
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    answer.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    answer
}

async fn replay_script() -> Answer {
    counted(asset("text/javascript; charset=utf-8", REPLAY_SCRIPT), Route::Service)
}

async fn frame_script() -> Answer {
    counted(asset("text/javascript; charset=utf-8", FRAME_SCRIPT), Route::Service)
}
