//! What contributors say to this node, and what it answers; see `skep_contribute`.

use crate::answer::{self, Answer};
use crate::limits::BODY_MS;
use crate::metrics::Route;
use crate::portal::Portal;
use crate::routes::counted;
use crate::visit::Connection;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use http_body_util::{BodyExt, Limited};
use skep_contribute::limits::MESSAGE_BYTES_MAX;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

/// One message of a contributor. It is signed, so that nobody needs a token for it.
pub async fn take(State(portal): State<Arc<Portal>>, request: Request<Body>) -> Answer {
    let Some(node) = portal.contributors.clone() else {
        let told = "No bundles are handed out here: `skep serve --contributors` does.";
        return counted(answer::text(StatusCode::NOT_FOUND, told), Route::Api);
    };
    let (parts, body) = request.into_parts();
    let peer = parts.extensions.get::<Connection>().map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |known| known.peer);
    let whole = Limited::new(body, MESSAGE_BYTES_MAX).collect();
    let answer = match tokio::time::timeout(Duration::from_millis(BODY_MS), whole).await {
        Err(_) => answer::text(StatusCode::REQUEST_TIMEOUT, "the message did not come in time"),
        Ok(Err(_)) => {
            answer::text(StatusCode::PAYLOAD_TOO_LARGE, &format!("at most {MESSAGE_BYTES_MAX} bytes at once"))
        }
        Ok(Ok(body)) => {
            let body = body.to_bytes();
            match tokio::task::spawn_blocking(move || node.handle(peer, &body)).await {
                Ok(said) => answer::with(StatusCode::OK, "application/octet-stream", said),
                Err(_) => answer::text(StatusCode::INTERNAL_SERVER_ERROR, "the message could not be answered"),
            }
        }
    };
    counted(answer, Route::Api)
}
