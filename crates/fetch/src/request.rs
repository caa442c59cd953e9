//! The bytes of a request, and the form in which they are kept.

use std::borrow::Cow;
use std::sync::Arc;

use skep_url::Url;

use crate::exchange::{Ask, Recorded, Secret};
use crate::limits::VALIDATOR_BYTES_MAX;
use crate::settings::Settings;

const ACCEPT: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
const ENCODINGS: &str = "gzip, br, zstd";

/// What all requests to one host have in common.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    /// `Host: …` and everything that does not depend on the URL, each line with its end.
    lines: Vec<u8>,
    /// Set when the URL stands whole in the request line: through an HTTP proxy.
    pub absolute: bool,
    /// Headers that the operator gave, and whose values are not kept.
    pub secrets: Arc<[Secret]>,
}

impl Template {
    /// `proxy_authorization`: the value, where requests go through an HTTP proxy that wants it.
    pub fn new(settings: &Settings, origin: &Url, absolute: bool, proxy_authorization: Option<&str>) -> Template {
        let (host, port) = (origin.host_name(), origin.port());
        let mut lines = Vec::with_capacity(256);
        let mut line = |name: &str, value: &str| {
            for part in [name, ": ", value, "\r\n"] {
                lines.extend_from_slice(part.as_bytes());
            }
        };
        let rules = || settings.headers.iter().filter(|rule| rule.matches(origin));
        let given = |name: &str| rules().any(|rule| rule.name.eq_ignore_ascii_case(name));
        let is_default_port = port == if origin.is_https() { 443 } else { 80 };
        match is_default_port {
            true => line("Host", host),
            false => line("Host", &format!("{host}:{port}")),
        }
        let accept_encoding = if settings.encodings { ENCODINGS } else { "identity" };
        for (name, value) in
            [("User-Agent", settings.user_agent.as_str()), ("Accept", ACCEPT), ("Accept-Encoding", accept_encoding)]
        {
            if !given(name) {
                line(name, value);
            }
        }
        for rule in rules() {
            line(&rule.name, &rule.value);
        }
        if let Some(value) = proxy_authorization {
            line("Proxy-Authorization", value);
        }
        line("Connection", "keep-alive");
        let secrets = rules().filter(|rule| rule.is_secret());
        let secrets = secrets.map(|rule| Secret { name: rule.name.to_ascii_lowercase(), for_few: rule.host.is_some() });
        Template { lines, absolute, secrets: secrets.collect() }
    }

    /// The request, or `None` when it would hold bytes that could be taken for something else.
    pub fn write(&self, ask: &Ask<'_>) -> Option<Vec<u8>> {
        let target = if self.absolute { ask.url.as_str() } else { ask.url.request_target() };
        if !target.bytes().all(|b| b.is_ascii_graphic()) {
            return None;
        }
        let mut out = Vec::with_capacity(target.len() + self.lines.len() + 256);
        let mut put = |parts: &[&[u8]]| parts.iter().for_each(|part| out.extend_from_slice(part));
        put(&[b"GET ", target.as_bytes(), b" HTTP/1.1\r\n", &self.lines]);
        for (name, value) in [(&b"If-None-Match: "[..], ask.etag), (b"If-Modified-Since: ", ask.last_modified)] {
            // A validator that cannot be sent back safely is not sent: the answer is then whole, which is no harm.
            if let Some(value) = value.filter(|value| value.len() <= VALIDATOR_BYTES_MAX && is_value(value)) {
                put(&[name, value, b"\r\n"]);
            }
        }
        if let Some(cookie) = ask.cookie.filter(|cookie| !cookie.is_empty()) {
            if !is_value(cookie.as_bytes()) {
                return None;
            }
            put(&[b"Cookie: ", cookie.as_bytes(), b"\r\n"]);
        }
        put(&[b"\r\n"]);
        Some(out)
    }
}

/// May these bytes stand in a field? Bytes above ASCII may: an ETag can hold them and must come back as it was.
fn is_value(bytes: &[u8]) -> bool {
    !bytes.is_empty() && bytes.iter().all(|&b| b == b'\t' || (b >= 0x20 && b != 0x7f))
}

/// Replaces the values of secrets. `given`: what the operator gave. `cookie_is_theirs`: the cookie makes nothing private.
pub(crate) fn redact<'r>(request: &'r [u8], given: &[Secret], cookie_is_theirs: bool) -> Recorded<'r> {
    let mut out: Option<Vec<u8>> = None;
    let mut private = false;
    let mut at = 0;
    while let Some(length) = memchr::memchr(b'\n', &request[at..]) {
        let line = &request[at..at + length + 1];
        let name = &line[..memchr::memchr(b':', line).unwrap_or(0)];
        let of_server = [&b"cookie"[..], b"authorization"].iter().any(|secret| name.eq_ignore_ascii_case(secret));
        let of_proxy = name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case(b"proxy-"));
        let given = given.iter().find(|secret| name.eq_ignore_ascii_case(secret.name.as_bytes()));
        if of_server || of_proxy || given.is_some() {
            private |= of_server && !(cookie_is_theirs && name.eq_ignore_ascii_case(b"cookie"));
            private |= given.is_some_and(|secret| secret.for_few);
            let out = out.get_or_insert_with(|| request[..at].to_vec());
            out.extend_from_slice(name);
            out.extend_from_slice(b": redacted\r\n");
        } else if let Some(out) = &mut out {
            out.extend_from_slice(line);
        }
        at += length + 1;
    }
    Recorded { bytes: out.map_or(Cow::Borrowed(request), Cow::Owned), private }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::HeaderRule;

    fn text(settings: &Settings, ask: &Ask<'_>) -> String {
        let template = Template::new(settings, ask.url, false, None);
        String::from_utf8(template.write(ask).unwrap()).unwrap()
    }

    #[test]
    fn a_plain_request() {
        let url = Url::parse("http://user:secret@example.org:8080/a?b#c").unwrap();
        assert_eq!(
            text(&Settings::new("skep/1"), &Ask::new(&url)),
            "GET /a?b HTTP/1.1\r\nHost: example.org:8080\r\nUser-Agent: skep/1\r\nAccept: text/html,application/xhtml+xml,\
             application/xml;q=0.9,*/*;q=0.8\r\nAccept-Encoding: gzip, br, zstd\r\nConnection: keep-alive\r\n\r\n"
        );
    }

    #[test]
    fn validators_come_back_as_they_were_and_only_if_they_are_harmless() {
        let url = Url::parse("https://example.org/").unwrap();
        let ask = Ask { etag: Some(b"W/\"a b\""), last_modified: Some(b"yesterday"), ..Ask::new(&url) };
        let request = text(&Settings::new("s"), &ask);
        assert!(request.ends_with("If-None-Match: W/\"a b\"\r\nIf-Modified-Since: yesterday\r\n\r\n"), "{request}");
        assert!(request.contains("Host: example.org\r\n"));
        let long = vec![b'x'; VALIDATOR_BYTES_MAX + 1];
        for bad in [&b"a\r\nX: y"[..], b"a\0b", b"", &long] {
            let ask = Ask { etag: Some(bad), ..Ask::new(&url) };
            assert!(!text(&Settings::new("s"), &ask).contains("If-None-Match"));
        }
        let ask = Ask { cookie: Some("a=b\r\nX: y"), ..Ask::new(&url) };
        assert!(Template::new(&Settings::new("s"), &url, false, None).write(&ask).is_none());
    }

    #[test]
    fn given_headers_replace_ours_and_secrets_are_not_kept() {
        let mut settings = Settings::new("skep/1");
        settings.headers = vec![
            HeaderRule::new(None, "accept-encoding", "identity"),
            HeaderRule::new(Some("http://example.org"), "authorization", "Basic c2VjcmV0"),
            HeaderRule::new(Some("other.example"), "X-Other", "1"),
        ];
        let url = Url::parse("http://example.org/").unwrap();
        let ask = Ask { cookie: Some("id=secret"), ..Ask::new(&url) };
        let request = Template::new(&settings, &url, true, Some("Basic cHJveHk=")).write(&ask).unwrap();
        let sent = String::from_utf8(request.clone()).unwrap();
        assert!(sent.starts_with("GET http://example.org/ HTTP/1.1\r\n"));
        assert!(!sent.contains("gzip") && !sent.contains("X-Other") && sent.contains("c2VjcmV0"));
        let kept = redact(&request, &[], false);
        let kept_text = String::from_utf8(kept.bytes.to_vec()).unwrap();
        assert!(kept.private);
        for secret in ["c2VjcmV0", "cHJveHk", "id=secret"] {
            assert!(!kept_text.contains(secret), "{kept_text}");
        }
        assert!(kept_text.contains("authorization: redacted\r\n") && kept_text.contains("Cookie: redacted\r\n"));
        assert!(kept_text.ends_with("\r\n\r\n") && kept_text.lines().count() == sent.lines().count());

        let only_proxy = Template::new(&Settings::new("s"), &url, true, Some("Basic cHJveHk=")).write(&Ask::new(&url));
        assert!(!redact(&only_proxy.unwrap(), &[], false).private); // the server never saw it
        let theirs = b"GET / HTTP/1.1\r\nCookie: a=b\r\n\r\n";
        assert!(redact(theirs, &[], false).private && !redact(theirs, &[], true).private);
        assert!(!redact(theirs, &[], true).bytes.windows(3).any(|bytes| bytes == b"a=b"), "not kept all the same");
        let both = b"GET / HTTP/1.1\r\nCookie: a=b\r\nAuthorization: c\r\n\r\n";
        assert!(redact(both, &[], true).private);
        assert_eq!(
            redact(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &[], false).bytes,
            Cow::Borrowed(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        );
    }

    #[test]
    fn what_the_operator_gave_is_sent_and_not_kept() {
        let mut settings = Settings::new("skep/1");
        settings.headers = vec![
            HeaderRule::new(None, "Accept-Language", "de"),
            HeaderRule::new(None, "X-Crawl", "ours"),
            HeaderRule::new(Some("example.org"), "X-Api-Key", "c2VjcmV0"),
        ];
        for (url, private) in [("https://example.org/", true), ("https://other.example/", false)] {
            let url = Url::parse(url).unwrap();
            let template = Template::new(&settings, &url, false, None);
            let request = template.write(&Ask::new(&url)).unwrap();
            let sent = String::from_utf8(request.clone()).unwrap();
            assert_eq!((sent.contains("X-Api-Key: c2VjcmV0"), sent.contains("X-Crawl: ours")), (private, true));
            let kept = redact(&request, &template.secrets, false);
            let text = String::from_utf8(kept.bytes.to_vec()).unwrap();
            assert_eq!(kept.private, private, "what goes to everybody opens no door");
            assert!(
                !text.contains("c2VjcmV0") && !text.contains("ours") && text.contains("Accept-Language: de"),
                "{text}"
            );
        }
    }
}
