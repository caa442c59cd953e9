//! One request to an address that the operator named, and its answer. Redirects are an answer like any other: whoever can make
//! a receiver redirect should not choose where signed events go.

use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full, Limited};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderName, HeaderValue, RETRY_AFTER, USER_AGENT};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use skep_warc::date;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::tls;
use crate::limits::{WEBHOOK_ANSWER_BYTES_MAX, WEBHOOK_MS_MAX, WEBHOOK_SAID_MS_MAX};

/// What is sent.
pub struct Sent {
    pub method: Method,
    pub url: String,
    pub content_type: &'static str,
    pub token: Option<String>,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

/// What was answered.
#[derive(Debug)]
pub struct Answered {
    pub status: u16,
    /// How long the other side asks to be left alone.
    pub retry_after_ms: Option<u64>,
    /// The beginning of what it said.
    pub text: String,
}

/// Says what is wrong with an address, if something is.
pub fn check(url: &str) -> Result<(), String> {
    place(url).map(drop)
}

/// The address, whether it is to be encrypted, and the host.
fn place(url: &str) -> Result<(Uri, bool, String), String> {
    let uri: Uri = url.parse().map_err(|error| format!("{error}"))?;
    let secure = match uri.scheme_str() {
        Some("https") => true,
        Some("http") => false,
        _ => return Err("the address is neither http nor https".to_owned()),
    };
    let host = uri.host().filter(|host| !host.is_empty()).ok_or("the address names no host")?.to_owned();
    Ok((uri, secure, host))
}

/// Sends, and reads the answer.
pub async fn send(sent: Sent, now_ms: i64) -> Result<Answered, String> {
    let limit = Duration::from_millis(WEBHOOK_MS_MAX);
    let exchange = tokio::time::timeout(limit, exchange(sent, now_ms)).await;
    exchange.unwrap_or_else(|_| Err(format!("no answer within {} s", WEBHOOK_MS_MAX / 1000)))
}

async fn exchange(sent: Sent, now_ms: i64) -> Result<Answered, String> {
    let (uri, secure, host) = place(&sent.url)?;
    let port = uri.port_u16().unwrap_or(if secure { 443 } else { 80 });
    let bare = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let stream = TcpStream::connect((bare.as_str(), port)).await.map_err(|error| format!("{host}:{port}: {error}"))?;
    let request = request(&uri, &host, sent)?;
    if !secure {
        return talk(stream, request, now_ms).await;
    }
    let name = ServerName::try_from(bare).map_err(|error| format!("{error}"))?;
    let stream = TlsConnector::from(tls::config()?).connect(name, stream).await;
    talk(stream.map_err(|error| format!("{host}:{port}: {error}"))?, request, now_ms).await
}

fn request(uri: &Uri, host: &str, sent: Sent) -> Result<Request<Full<Bytes>>, String> {
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let authority = uri.port().map_or(host.to_owned(), |port| format!("{host}:{port}"));
    let value =
        |text: &str| HeaderValue::from_str(text).map_err(|_| "a header has characters that it cannot have".to_owned());
    let mut request = Request::builder().method(sent.method).uri(path).header(HOST, value(&authority)?);
    request = request.header(CONTENT_TYPE, sent.content_type);
    request = request.header(USER_AGENT, concat!("skep/", env!("CARGO_PKG_VERSION")));
    if let Some(token) = sent.token {
        let mut secret = value(&format!("Bearer {token}"))?;
        secret.set_sensitive(true);
        request = request.header(AUTHORIZATION, secret);
    }
    for (name, text) in sent.headers {
        request = request.header(HeaderName::from_static(name), value(&text)?);
    }
    request.body(Full::new(Bytes::from(sent.body))).map_err(|error| error.to_string())
}

async fn talk<S>(stream: S, request: Request<Full<Bytes>>, now_ms: i64) -> Result<Answered, String>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|error| error.to_string())?;
    let driver = tokio::spawn(connection);
    let answered = async {
        let answer = sender.send_request(request).await.map_err(|error| error.to_string())?;
        let status = answer.status().as_u16();
        let after = answer.headers().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
        let retry_after_ms = after.and_then(|text| asked_ms(text, now_ms));
        // The status has decided; what else is said is for people, who need it only where something is wrong.
        let said = Limited::new(answer.into_body(), WEBHOOK_ANSWER_BYTES_MAX).collect();
        let said = match status {
            200..=299 => None,
            _ => tokio::time::timeout(Duration::from_millis(WEBHOOK_SAID_MS_MAX), said).await.ok(),
        };
        let text = said.and_then(Result::ok).map(|said| String::from_utf8_lossy(&said.to_bytes()).into_owned());
        Ok(Answered { status, retry_after_ms, text: text.unwrap_or_default() })
    };
    let answered = answered.await;
    driver.abort();
    answered
}

/// `Retry-After`: seconds, or a date.
fn asked_ms(text: &str, now_ms: i64) -> Option<u64> {
    if let Ok(seconds) = text.trim().parse::<u64>() {
        return Some(seconds.saturating_mul(1000));
    }
    let until = http_date_ms(text.trim())?;
    Some(until.saturating_sub(now_ms).max(0) as u64)
}

/// `Sun, 06 Nov 1994 08:49:37 GMT`.
fn http_date_ms(text: &str) -> Option<i64> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [_, day, month, year, time, "GMT"] = words[..] else { return None };
    let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let month = months.iter().position(|known| *known == month)? + 1;
    date::parse_ms(format!("{year}-{month:02}-{day:0>2}T{time}Z").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer whose end never comes has said all that matters.
    #[test]
    fn who_never_stops_talking_has_answered() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        for (status, retry_after_ms) in [(200, None), (503, Some(9_000))] {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            let url = format!("http://{}/", listener.local_addr().unwrap());
            let (over, ended) = std::sync::mpsc::channel::<()>();
            let receiver = std::thread::spawn(move || {
                use std::io::{Read, Write};
                let (mut stream, _) = listener.accept().unwrap();
                let _some_of_it = stream.read(&mut [0; 4_096]).unwrap();
                let after = if status == 503 { "Retry-After: 9\r\n" } else { "" };
                write!(stream, "HTTP/1.1 {status} X\r\n{after}Content-Length: 1000\r\n\r\nand").unwrap();
                let _nothing_is_said = ended.recv();
            });
            let sent = Sent {
                method: Method::POST,
                url,
                content_type: "application/json",
                token: None,
                headers: Vec::new(),
                body: b"[]".to_vec(),
            };
            let answered = runtime.block_on(send(sent, 0)).unwrap();
            assert_eq!((answered.status, answered.retry_after_ms), (status, retry_after_ms));
            drop(over);
            receiver.join().unwrap();
        }
    }

    #[test]
    fn what_is_asked_for_is_understood() {
        let now = http_date_ms("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        assert_eq!(date::rfc3339(now), "1994-11-06T08:49:37Z");
        assert_eq!(asked_ms("120", now), Some(120_000));
        assert_eq!(asked_ms("Sun, 06 Nov 1994 08:50:37 GMT", now), Some(60_000));
        assert_eq!(asked_ms("Sun, 06 Nov 1994 08:40:37 GMT", now), Some(0));
        assert_eq!(asked_ms("99999999999999999999", now), None);
        assert_eq!((asked_ms("soon", now), asked_ms("", now)), (None, None));
    }
}
