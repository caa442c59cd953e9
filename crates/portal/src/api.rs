//! The catalogue over HTTP, below `/api/v1`: what is in the archive, for programs.
//!
//! `table` lists every question with its parameters and the shape of its answer. Requests are taken apart and checked by that table, and
//! the OpenAPI document is written from it, so that neither can say what the other does not.

pub mod asked;
pub mod capture;
pub mod collections;
pub mod completeness;
pub mod files;
mod network;
pub mod openapi;
pub mod records;
mod register;
mod schemas;
pub mod statistics;
pub mod table;
pub mod texts;
pub mod url;
pub mod urls;

use crate::access::May;
use crate::answer::{self, Answer};
use crate::find::Looking;
use crate::limits::{BODY_MS, REGISTRATION_BYTES_MAX};
use crate::metrics::Route;
use crate::portal::{EVERYTHING, Portal, Scope};
use crate::routes;
use crate::trouble::Trouble;
use crate::visit::Visit;
use asked::Asked;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, Request, StatusCode, header};
use axum::routing::any;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;
use table::{ENDPOINTS, Endpoint, Work};

/// Where the API is.
pub const BASE: &str = "/api/v1";

/// What is answered here.
pub fn routes() -> Router<Arc<Portal>> {
    Router::new().route("/api/v1", any(respond)).route("/api/v1/", any(respond)).route("/api/v1/{*rest}", any(respond))
}

async fn respond(State(portal): State<Arc<Portal>>, request: Request<Body>) -> Answer {
    let (visit, parts, body) = Visit::apart(&portal, request);
    let answer = match answered(&portal, visit, &parts.method, &parts.headers, body).await {
        Ok(answer) => answer,
        Err(trouble) => {
            portal.note(&trouble);
            problem(trouble.status, &trouble.told)
        }
    };
    routes::counted(dressed(answer), Route::Api)
}

/// What every answer carries; what the shell said in its own words is said in the API's.
fn dressed(answer: Answer) -> Answer {
    let html = answer.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    let mut answer = match html {
        true => problem(answer.status(), "The portal could not answer; ask again in a moment."),
        false => answer,
    };
    let headers = answer.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    if !headers.contains_key(header::CACHE_CONTROL) {
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    }
    answer
}

/// What is wrong, as RFC 9457 has it.
pub fn problem(status: StatusCode, detail: &str) -> Answer {
    let title = status.canonical_reason().unwrap_or("Something is wrong");
    let told = json!({ "type": "about:blank", "title": title, "status": status.as_u16(), "detail": detail });
    answer::with(status, "application/problem+json", told.to_string())
}

async fn answered(
    portal: &Arc<Portal>,
    visit: Visit,
    method: &Method,
    headers: &HeaderMap,
    body: Body,
) -> Result<Answer, Trouble> {
    let target = visit.target.clone();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let path = path.strip_prefix(BASE).unwrap_or_default();
    let here: Vec<(&Endpoint, Vec<String>)> =
        ENDPOINTS.iter().filter_map(|endpoint| Some((endpoint, endpoint.matches(path)?))).collect();
    if here.is_empty() {
        return Err(Trouble::missing("There is nothing at this address; /api says what there is."));
    }
    let wanted = if *method == Method::HEAD { "GET" } else { method.as_str() };
    let Some((endpoint, values)) = here.iter().find(|(endpoint, _)| endpoint.method == wanted) else {
        return Ok(not_allowed(&here));
    };
    if endpoint.needs > visit.may {
        return Ok(token_needed(portal, headers));
    }
    let asked = Asked::of(endpoint, values, query)?;
    let scope = match asked.get("collection") {
        None => Scope::Everything,
        Some(EVERYTHING) => return Err(no_collection(EVERYTHING)),
        Some(name) => portal.scope(name).ok_or_else(|| no_collection(name))?,
    };
    Ok(match endpoint.work {
        Work::Tell(work) => {
            routes::look(portal, scope, visit, move |look: &Looking<'_>, visit: &Visit, reply| {
                reply.send(match work(look, &asked, visit) {
                    Ok(told) => answer::with(StatusCode::OK, "application/json", told.to_string()),
                    Err(trouble) => {
                        look.portal.note(&trouble);
                        problem(trouble.status, &trouble.told)
                    }
                });
            })
            .await
        }
        Work::Send(work) => {
            routes::look(portal, scope, visit, move |look: &Looking<'_>, visit: &Visit, reply| {
                let mut reply = Some(reply);
                if let Err(trouble) = work(look, &asked, visit, &mut reply) {
                    look.portal.note(&trouble);
                    crate::reply::tell(&mut reply, problem(trouble.status, &trouble.told));
                }
            })
            .await
        }
        Work::Take(work) => {
            let body = taken(headers, body).await?;
            routes::look(portal, scope, visit, move |look: &Looking<'_>, _: &Visit, reply| {
                reply.send(match work(look, &body) {
                    Ok((status, told)) => answer::with(status, "application/json", told.to_string()),
                    Err(trouble) => {
                        look.portal.note(&trouble);
                        problem(trouble.status, &trouble.told)
                    }
                });
            })
            .await
        }
    })
}

/// Answers what the portal of another node asks.
pub fn answer_another(look: &Looking<'_>, target: &str) -> Result<Value, Trouble> {
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    if let Some(what) = path.strip_prefix("/changes") {
        return crate::changes::everywhere::answer(look, what, query);
    }
    let found = ENDPOINTS.iter().find_map(|endpoint| Some((endpoint, endpoint.matches(path)?)));
    let Some((endpoint, values)) = found else { return Err(Trouble::missing("There is no such question.")) };
    let asked = Asked::of(endpoint, &values, query)?;
    match endpoint.path {
        "/statistics" => statistics::tell_here(look, &asked),
        "/search/text" => texts::search_here(look, &asked),
        "/urls" => urls::search_here(look, &asked),
        _ => Err(Trouble::missing("Nodes do not ask each other this.")),
    }
}

/// A collection that is not there.
pub fn no_collection(name: &str) -> Trouble {
    Trouble::missing(format!("There is no collection {name:?}; /api/v1/collections lists them."))
}

fn not_allowed(here: &[(&Endpoint, Vec<String>)]) -> Answer {
    let mut allowed: Vec<&str> = here.iter().map(|(endpoint, _)| endpoint.method).collect();
    if allowed.contains(&"GET") {
        allowed.push("HEAD");
    }
    let allowed = allowed.join(", ");
    let mut answer = problem(StatusCode::METHOD_NOT_ALLOWED, &format!("Only {allowed} can be used here."));
    answer.headers_mut().insert(header::ALLOW, answer::value(&allowed));
    answer
}

fn token_needed(portal: &Portal, headers: &HeaderMap) -> Answer {
    if portal.access.may(headers) > May::Read {
        return problem(StatusCode::FORBIDDEN, "This token may not do that.");
    }
    let told = match portal.access.has_writers() {
        true => "This needs a token: send it as `Authorization: Bearer TOKEN`.",
        false => "Nobody may do this here: `skep serve --auth FILE` names who may.",
    };
    let mut answer = problem(StatusCode::UNAUTHORIZED, told);
    answer.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"archive\""));
    answer
}

async fn taken(headers: &HeaderMap, body: Body) -> Result<Vec<u8>, Trouble> {
    let wrong = |status, told: &str| Trouble { status, told: told.to_owned(), log: None };
    let kind = headers.get(header::CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json")) {
        return Err(wrong(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body must be application/json."));
    }
    let whole = http_body_util::Limited::new(body, REGISTRATION_BYTES_MAX).collect();
    match tokio::time::timeout(Duration::from_millis(BODY_MS), whole).await {
        Err(_) => Err(wrong(StatusCode::REQUEST_TIMEOUT, "The body did not come in time.")),
        Ok(Err(_)) => Err(wrong(
            StatusCode::PAYLOAD_TOO_LARGE,
            &format!("The body may have {REGISTRATION_BYTES_MAX} bytes at most."),
        )),
        Ok(Ok(body)) => Ok(body.to_bytes().to_vec()),
    }
}
