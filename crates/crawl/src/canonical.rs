//! When two URLs count as one in the registry: session numbers and tracking marks do not make another page. Only the
//! registry looks at this form; what is fetched and recorded is the URL as it was found first.
//!
//! Changing the lists splits histories, so they have a version, which is part of the fingerprint.

use std::borrow::Cow;

/// Version of the lists below.
pub const VERSION: u8 = 1;

/// Query parameters that never choose another page.
const PARAMETERS: &[&str] = &[
    "jsessionid",
    "phpsessid",
    "sessionid",
    "session_id",
    "aspsessionid",
    "cfid",
    "cftoken",
    "sid",
    "utm_source",
    "utm_medium",
    "utm_campaign",
    "utm_term",
    "utm_content",
    "utm_id",
    "gclid",
    "fbclid",
    "dclid",
    "msclkid",
    "mc_eid",
    "mc_cid",
    "yclid",
    "igshid",
    "_ga",
    "_gl",
];
/// Parameters of a path segment (`/page;jsessionid=…`).
const PATH_PARAMETER: &str = ";jsessionid=";

/// The form of a WHATWG-serialised URL under which the registry knows it.
pub fn canonical(url: &str) -> Cow<'_, str> {
    // Most URLs have neither a query nor parameters in their path.
    if memchr::memchr2(b'?', b';', url.as_bytes()).is_none() {
        return Cow::Borrowed(url);
    }
    let query = url.find('?');
    let path = &url[..query.unwrap_or(url.len())];
    let clean_path = find_ignoring_case(path, PATH_PARAMETER).map(|at| &path[..at]);
    let noisy = query.is_some_and(|at| url[at + 1..].split('&').any(is_noise));
    if clean_path.is_none() && !noisy {
        return Cow::Borrowed(url);
    }
    let mut out = String::with_capacity(url.len());
    out.push_str(clean_path.unwrap_or(path));
    if let Some(at) = query {
        let mut joint = '?';
        for part in url[at + 1..].split('&').filter(|part| !is_noise(part)) {
            out.push(joint);
            out.push_str(part);
            joint = '&';
        }
    }
    Cow::Owned(out)
}

fn is_noise(parameter: &str) -> bool {
    let name = parameter.split('=').next().unwrap_or(parameter);
    PARAMETERS.iter().any(|noise| name.eq_ignore_ascii_case(noise))
}

fn find_ignoring_case(text: &str, what: &str) -> Option<usize> {
    let (text, what) = (text.as_bytes(), what.as_bytes());
    let mut from = 0;
    while let Some(at) = memchr::memchr(what[0], &text[from..]).map(|at| at + from) {
        if text.get(at..at + what.len()).is_some_and(|found| found.eq_ignore_ascii_case(what)) {
            return Some(at);
        }
        from = at + 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_numbers_and_tracking_marks_make_no_other_page() {
        for (url, same) in [
            ("http://a.test/p?id=1&utm_source=x", "http://a.test/p?id=1"),
            ("http://a.test/p?utm_source=x", "http://a.test/p"),
            ("http://a.test/p;JSESSIONID=0A1B?q=1&PHPSESSID=9", "http://a.test/p?q=1"),
            ("http://a.test/p;jsessionid=77", "http://a.test/p"),
        ] {
            assert_eq!(canonical(url), same);
        }
    }

    #[test]
    fn everything_else_stays_as_it_is() {
        for url in [
            "http://a.test/",
            "http://a.test/?sidebar=1&b",
            "http://a.test/a;b=c?x=y",
            "http://a.test/?",
            "http://a.test/?a&&b",
        ] {
            assert!(matches!(canonical(url), Cow::Borrowed(same) if same == url), "{url}");
        }
    }
}
