//! A request, as far as answering it depends on who asks and where.

use crate::access::May;
use crate::portal::{Origin, Portal};
use axum::body::Body;
use axum::http::{HeaderMap, Method, Request, header, request::Parts};
use std::net::IpAddr;

/// The connection that a request came over.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    /// Whose it is.
    pub peer: IpAddr,
    /// Whether it is encrypted.
    pub tls: bool,
}

/// Who asks for what, and how.
#[derive(Clone, Debug)]
pub struct Visit {
    /// What may be seen.
    pub may: May,
    /// Only the head of the answer is wanted.
    pub head_only: bool,
    /// The header Range.
    pub range: Option<String>,
    /// The header Accept-Datetime.
    pub accept_datetime: Option<String>,
    /// What the browser wants to do with the answer: the header Sec-Fetch-Dest.
    pub destination: Option<String>,
    /// `scheme://host[:port]` under which the portal was asked.
    pub base: String,
    /// Whether it was asked under the name where archived pages are shown.
    pub on_replay: bool,
    /// Path and query, as sent.
    pub target: String,
}

impl Visit {
    /// What a request says.
    pub fn of(portal: &Portal, parts: &Parts) -> Visit {
        let text = |name: header::HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
        let connection = parts.extensions.get::<Connection>();
        let tls = connection.is_some_and(|connection| connection.tls);
        let forwarded = parts.headers.get("x-forwarded-proto").and_then(|value| value.to_str().ok());
        let scheme = if tls || forwarded == Some("https") { "https" } else { "http" };
        let host = host(&parts.headers, parts.uri.authority().map(|authority| authority.as_str()));
        let on_replay = matches!(&portal.origin, Origin::Other { host: replay, .. } if *replay == host);
        let destination = parts.headers.get("sec-fetch-dest").and_then(|value| value.to_str().ok());
        Visit {
            may: portal.access.may(&parts.headers),
            head_only: parts.method == Method::HEAD,
            range: text(header::RANGE).map(str::to_owned),
            accept_datetime: parts
                .headers
                .get("accept-datetime")
                .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned()),
            destination: destination.map(str::to_owned),
            base: format!("{scheme}://{host}"),
            on_replay,
            target: parts.uri.path_and_query().map_or("/", |target| target.as_str()).to_owned(),
        }
    }

    /// What a request says, taken apart from its body.
    pub fn apart(portal: &Portal, request: Request<Body>) -> (Visit, Parts, Body) {
        let (parts, body) = request.into_parts();
        (Visit::of(portal, &parts), parts, body)
    }
}

/// The name that a request was sent to, lower case; `localhost` where it is none.
pub fn host(headers: &HeaderMap, authority: Option<&str>) -> String {
    let named =
        authority.or_else(|| headers.get(header::HOST).and_then(|value| value.to_str().ok())).unwrap_or_default();
    let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_' | b':' | b'[' | b']');
    match !named.is_empty() && named.len() <= 255 && named.bytes().all(fine) {
        true => named.to_ascii_lowercase(),
        false => "localhost".to_owned(),
    }
}
