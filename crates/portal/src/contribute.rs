//! What contributors say to this node, and what it answers; see `skep_contribute`.

use crate::answer::{self, Answer};
use crate::limits::BODY_MS;
use crate::metrics::Route;
use crate::portal::Portal;
use crate::routes::counted;
use crate::visit::Connection;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use skep_contribute::limits::{MESSAGE_BYTES_MAX, PASSED_BYTES_MAX};
use skep_contribute::link::SEEN_FROM;
use skep_contribute::neighbours::NotPassed;
use skep_contribute::node::unhex;
use skep_contribute::trust::Key;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// One message of a contributor. It is signed, so that nobody needs a token for it.
pub async fn take(State(portal): State<Arc<Portal>>, request: Request<Body>) -> Answer {
    heard(&portal, None, request).await
}

/// The same for another node, whose key is in the path.
pub async fn pass_on(State(portal): State<Arc<Portal>>, Path(key): Path<String>, request: Request<Body>) -> Answer {
    match unhex(&key) {
        Some(node) => heard(&portal, Some(node), request).await,
        None => counted(answer::text(StatusCode::NOT_FOUND, "no node has such a key"), Route::Api),
    }
}

async fn heard(portal: &Portal, to: Option<Key>, request: Request<Body>) -> Answer {
    let Some(node) = portal.contributors.clone() else {
        let told = "No bundles are handed out here: `skep serve --contributors` does.";
        return counted(answer::text(StatusCode::NOT_FOUND, told), Route::Api);
    };
    let (parts, body) = request.into_parts();
    let peer = parts.extensions.get::<Connection>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |known| known.peer);
    let peer = from(peer, &parts.headers);
    let bytes_max = if to.is_some() { PASSED_BYTES_MAX } else { MESSAGE_BYTES_MAX };
    let too_long = || answer::text(StatusCode::PAYLOAD_TOO_LARGE, &format!("at most {bytes_max} bytes at once"));
    let whole = Limited::new(body, bytes_max).collect();
    let answer = match tokio::time::timeout(Duration::from_millis(BODY_MS), whole).await {
        Err(_) => answer::text(StatusCode::REQUEST_TIMEOUT, "the message did not come in time"),
        Ok(Err(_)) => too_long(),
        Ok(Ok(body)) => {
            let body = body.to_bytes();
            let said = tokio::task::spawn_blocking(move || match to {
                Some(to) => node.pass_on(&to, peer, &body),
                None => Ok(node.handle(peer, &body)),
            });
            match said.await {
                Ok(Ok(said)) => {
                    let mut answer = answer::with(StatusCode::OK, "application/octet-stream", said);
                    // Behind a router only others see where it is.
                    if let Ok(address) = HeaderValue::from_str(&peer.to_canonical().to_string()) {
                        answer.headers_mut().insert(SEEN_FROM, address);
                    }
                    answer
                }
                Ok(Err(NotPassed::TooLong)) => too_long(),
                Ok(Err(NotPassed::Unknown)) => {
                    let told = "only what contributors of this node say to another is passed on";
                    answer::text(StatusCode::FORBIDDEN, told)
                }
                Ok(Err(NotPassed::Busy)) => {
                    answer::text(StatusCode::SERVICE_UNAVAILABLE, "too much is passed on already")
                }
                Ok(Err(NotPassed::Silent(why))) => answer::text(StatusCode::BAD_GATEWAY, &why),
                Err(_) => answer::text(StatusCode::INTERNAL_SERVER_ERROR, "the message could not be answered"),
            }
        }
    };
    counted(answer, Route::Api)
}

/// Where a message comes from. A server in front, on this machine, says for whom it speaks: the last of its `X-Forwarded-For`. Nobody else is
/// believed that.
fn from(peer: IpAddr, headers: &HeaderMap) -> IpAddr {
    if !peer.to_canonical().is_loopback() {
        return peer;
    }
    let last = headers.get_all("x-forwarded-for").iter().next_back().and_then(|value| value.to_str().ok());
    last.and_then(|value| value.rsplit(',').next()?.trim().parse().ok()).unwrap_or(peer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_server_on_this_machine_speaks_for_others() {
        let said = |peer: &str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.append("x-forwarded-for", "192.0.2.9".parse().unwrap());
            headers.append("x-forwarded-for", value.parse().unwrap());
            from(peer.parse().unwrap(), &headers).to_string()
        };
        assert_eq!(said("127.0.0.1", "198.51.100.1, 203.0.113.7"), "203.0.113.7");
        assert_eq!(said("::ffff:127.0.0.1", "2001:db8::7"), "2001:db8::7");
        assert_eq!(said("127.0.0.1", "unknown"), "127.0.0.1");
        assert_eq!(said("198.51.100.1", "203.0.113.7"), "198.51.100.1");
        assert_eq!(from("127.0.0.1".parse().unwrap(), &HeaderMap::new()).to_string(), "127.0.0.1");
    }
}
