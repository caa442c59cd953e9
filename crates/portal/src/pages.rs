//! Pages for people, made here and whole without a script; that of the stream goes on by itself where one runs. Each asks the same as the API does, in the same words.
//!
//! ```text
//!  /                                  a box to look for a URL, and what is in the archive
//!  /search?q=                         URLs that contain words
//!  /search?in=text&q=&at=             pages by the words of their texts
//!  /COLLECTION/*/URL                  the calendar of a URL
//!  /url?url=                          its versions, duplicates and captures
//!  /compare?url=&a=&b=                two captures side by side
//!  /completeness?url=&time=           the parts of a page and their times
//!  /changes/live                      the stream of changes as it runs
//!  /changes/day?day=                  what changed on a day, site by site
//!  /changes/feed.atom                 what happened last, for feed readers
//!  /history?url=                      what changed of a URL, word by word
//!  /freshness                         how well watches keep up
//!  /watches?tag=                      what is watched, under which tags and by which rules
//!  /watches/pick?url=                 parts of a page that count or do not, chosen by pointing at them
//!  /contributors                      who lends bandwidth, and how much they are believed
//!  /ring                              the nodes of the network, and who holds what
//!  /owner?host=                       for owners of sites: what was taken, and how to slow, stop or welcome all nodes
//!  /statistics                        counts and charts
//!  /files  /files/FILE                the files of the archive, and what is in one
//!  /api                               the API
//! ```

mod api;
pub mod calendar;
mod chart;
mod compare;
mod completeness;
mod contributors;
mod day;
mod event;
mod feed;
mod files;
pub mod frame;
mod freshness;
mod history;
mod live;
mod owner;
mod ring;
mod search;
mod start;
mod statistics;
mod texts;
mod url;
mod watches;

use crate::answer::{self, Answer};
use crate::api::no_collection;
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::metrics::Route;
use crate::portal::{EVERYTHING, Portal, Scope};
use crate::routes;
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderValue, Request, StatusCode, header};
use axum::routing::{get, post};
use std::sync::Arc;

pub use owner::{Unheard, Wish};

type Make = fn(&Looking<'_>, &Params, &Visit) -> Result<Answer, Trouble>;

/// What is answered here.
pub fn routes() -> Router<Arc<Portal>> {
    Router::new()
        .route("/", get(|portal, request| respond(portal, request, start::page)))
        .route("/search", get(|portal, request| respond(portal, request, search::page)))
        .route("/url", get(|portal, request| respond(portal, request, url::page)))
        .route("/compare", get(|portal, request| respond(portal, request, compare::page)))
        .route("/completeness", get(|portal, request| respond(portal, request, completeness::page)))
        .route("/changes/live", get(|portal, request| respond(portal, request, live::page)))
        .route("/changes/day", get(|portal, request| respond(portal, request, day::page)))
        .route("/changes/feed.atom", get(|portal, request| respond(portal, request, feed::page)))
        .route("/history", get(|portal, request| respond(portal, request, history::page)))
        .route("/freshness", get(|portal, request| respond(portal, request, freshness::page)))
        .route("/watches", get(|portal, request| respond(portal, request, watches::page)))
        .route("/watches/pick", get(|portal, request| respond(portal, request, watches::pick)))
        .route("/watches/rules", post(watches::add))
        .route("/contributors", get(|portal, request| respond(portal, request, contributors::page)))
        .route("/ring", get(|portal, request| respond(portal, request, ring::page)))
        .route("/owner", get(|portal, request| respond(portal, request, owner::page)).post(owner::wish))
        .route("/statistics", get(|portal, request| respond(portal, request, statistics::page)))
        .route("/files", get(|portal, request| respond(portal, request, files::list)))
        .route("/files/{file}", get(|portal, request| respond(portal, request, files::one)))
        .route("/api", get(|portal, request| respond(portal, request, api::page)))
        .route("/-/style.css", get(style))
        .route("/-/live.js", get(live_script))
        .route("/-/board.js", get(board_script))
        .route("/-/watches.js", get(watches_script))
}

async fn respond(State(portal): State<Arc<Portal>>, request: Request<Body>, make: Make) -> Answer {
    let (visit, _, _) = Visit::apart(&portal, request);
    let params = Params::of(visit.target.split_once('?').map_or("", |(_, query)| query));
    let scope = match params.get("collection") {
        None | Some(EVERYTHING) => Some(Scope::Everything),
        Some(name) => portal.scope(name),
    };
    let Some(scope) = scope else {
        let trouble = no_collection(params.get("collection").unwrap_or_default());
        return routes::counted(trouble.page(), Route::Page);
    };
    let work = move |look: &Looking<'_>, visit: &Visit, reply: crate::reply::Reply| {
        reply.send(make(look, &params, visit).unwrap_or_else(|trouble| {
            look.portal.note(&trouble);
            trouble.page()
        }));
    };
    routes::counted(routes::look(&portal, scope, visit, work).await, Route::Page)
}

async fn style() -> Answer {
    asset("text/css; charset=utf-8", include_str!("../assets/style.css"))
}

async fn live_script() -> Answer {
    asset("text/javascript; charset=utf-8", include_str!("../assets/live.js"))
}

async fn board_script() -> Answer {
    asset("text/javascript; charset=utf-8", include_str!("../assets/board.js"))
}

async fn watches_script() -> Answer {
    asset("text/javascript; charset=utf-8", include_str!("../assets/watches.js"))
}

fn asset(media_type: &'static str, text: &'static str) -> Answer {
    let mut answer = answer::with(StatusCode::OK, media_type, text);
    answer.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("max-age=300"));
    routes::counted(answer, Route::Service)
}
