//! For owners of sites: what was taken from their host, at which pace and by how many nodes, and how all of them are slowed, stopped or
//! made welcome at once. Whose host it is, a file on it proves.

use super::frame::{self, bytes, count, duration, encoded, facts, link, moment};
use crate::answer::{self, Answer, escape};
use crate::api::statistics;
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::limits::{HOST_CHARS_MAX, OWNER_ROWS_MAX, RULE_BYTES_MAX, RULE_MS};
use crate::metrics::Route;
use crate::portal::{Portal, Scope};
use crate::routes;
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Request, StatusCode};
use http_body_util::BodyExt;
use skep_archive::Key;
use skep_archive::captures::{Match, Query};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

const DAY_MS: i64 = 24 * 3600 * 1000;

/// A host as people type it; `None` for what is none.
fn host_of(text: &str) -> Option<String> {
    let text = text.trim().to_ascii_lowercase();
    let fine = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-');
    let fits = !text.is_empty() && text.len() <= HOST_CHARS_MAX && text.bytes().all(fine);
    (fits && skep_url::Url::parse(&format!("http://{text}/")).is_ok()).then_some(text)
}

/// What was taken from a host lately.
struct Taken {
    /// Captures that were looked at …
    seen: usize,
    /// … of them within the last day.
    day: usize,
    /// The shortest time between two of them, in milliseconds.
    shortest_ms: Option<i64>,
    /// Nodes that fetched.
    nodes: usize,
}

fn taken(look: &Looking<'_>, host: &str) -> Result<Taken, Trouble> {
    let query = Query::new(Match::Host(Key::of(&format!("http://{host}/"))));
    let (mut times, mut writers) = (Vec::new(), BTreeSet::new());
    for capture in look.portal.query(&query)?.take(OWNER_ROWS_MAX) {
        let capture = capture?;
        if look.shows(&capture) {
            times.push(capture.time_ms);
            writers.insert(capture.position.writer);
        }
    }
    times.sort_unstable();
    Ok(Taken {
        seen: times.len(),
        day: times.iter().filter(|time| look.now_ms - **time < DAY_MS).count(),
        shortest_ms: times.windows(2).map(|pair| pair[1] - pair[0]).filter(|apart| *apart > 0).min(),
        nodes: writers.len(),
    })
}

/// The page.
pub fn page(look: &Looking<'_>, params: &Params, _: &Visit) -> Result<Answer, Trouble> {
    let typed = params.get("host").unwrap_or_default();
    let mut body = format!(
        "<form class=\"filters\" action=\"/owner\"><label>Your host: <input name=\"host\" type=\"search\" maxlength=\"{HOST_CHARS_MAX}\" \
         value=\"{}\" placeholder=\"www.example.org\" autocapitalize=\"none\" spellcheck=\"false\" required></label> <button>Show</button></form>\n",
        escape(typed)
    );
    if typed.is_empty() {
        return Ok(frame::page(look, "For owners of sites", &body));
    }
    let Some(host) = host_of(typed) else { return Err(Trouble::bad("This is no host: www.example.org is one.")) };
    let (sums, taken) = (statistics::everywhere(look, Some(&host))?, taken(look, &host)?);
    if sums.captures == 0 {
        body.push_str("<p>Nothing was taken from this host.</p>\n");
        return Ok(frame::page(look, "For owners of sites", &body));
    }
    body.push_str(&facts(&[
        ("captures", count(sums.captures)),
        ("URLs", count(sums.urls)),
        ("stored", bytes(sums.bytes)),
        ("in the last day", count(taken.day as u64)),
        ("by so many nodes", count(taken.nodes as u64)),
        (
            "shortest time between two",
            taken.shortest_ms.map_or("-".into(), |ms| match ms {
                ms if ms < 120_000 => format!("{:.1} s", ms as f64 / 1000.0),
                ms => duration(ms / 1000),
            }),
        ),
    ]));
    if let (Some(earliest), Some(latest)) = (&sums.earliest, &sums.latest) {
        body.push_str(&format!("<p>From {} to {}.", moment(earliest), moment(latest)));
        if (taken.seen as u64) < sums.captures {
            body.push_str(&format!(" The last three figures are of {} of them.", count(taken.seen as u64)));
        }
        body.push_str("</p>\n");
    }
    body.push_str(&format!(
        "<p>{} · {}</p>\n",
        link(&format!("/statistics?host={}", encoded(&host)), "More figures"),
        link(&format!("/search?q={}", encoded(&host)), "Its URLs")
    ));
    body.push_str(&asking(look, &host));
    Ok(frame::page(look, "For owners of sites", &body))
}

/// How an owner says what should be.
fn asking(look: &Looking<'_>, host: &str) -> String {
    let robots = "<p><code>robots.txt</code> is followed: <code>User-agent: skep</code> with <code>Disallow: /</code> keeps everything \
                  away, <code>Crawl-delay: 10</code> slows it down.</p>\n";
    let Some(others) = &look.portal.elsewhere else { return format!("<h2>Slower, or not at all</h2>\n{robots}") };
    let (place, line) = others.owner_proof(host);
    let shown = escape(host);
    format!(
        "<h2>Slower, not at all, or welcome</h2>\n{robots}\
         <p>To tell all nodes of this network at once, put a file with this line at <code>http://{shown}{}</code>, so that we know that the host \
         is yours, and choose. The file may go again afterwards.</p>\n<pre>{}</pre>\n\
         <form method=\"post\" action=\"/owner\" class=\"filters\"><input type=\"hidden\" name=\"host\" value=\"{shown}\">\
         <label><input type=\"radio\" name=\"wish\" value=\"slow\" checked> one request every \
         <input name=\"seconds\" type=\"number\" min=\"1\" max=\"86400\" value=\"10\"> seconds at most</label> \
         <label><input type=\"radio\" name=\"wish\" value=\"stop\"> stop</label> \
         <label><input type=\"radio\" name=\"wish\" value=\"welcome\"> you are welcome, at the usual pace</label> \
         <button>Tell all nodes</button></form>\n",
        escape(&place),
        escape(&line)
    )
}

/// What an owner wants.
pub async fn wish(State(portal): State<Arc<Portal>>, request: Request<Body>) -> Answer {
    let (visit, _, body) = Visit::apart(&portal, request);
    routes::counted(wished(&portal, visit, body).await, Route::Page)
}

async fn wished(portal: &Arc<Portal>, visit: Visit, body: Body) -> Answer {
    let whole = http_body_util::Limited::new(body, RULE_BYTES_MAX).collect();
    let body = match tokio::time::timeout(Duration::from_millis(RULE_MS), whole).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(_)) => return answer::text(StatusCode::PAYLOAD_TOO_LARGE, "that is too long for a wish"),
        Err(_) => return answer::text(StatusCode::REQUEST_TIMEOUT, "the wish did not come in time"),
    };
    let params = Params::of(&String::from_utf8_lossy(&body));
    let host = host_of(params.get("host").unwrap_or_default());
    let seconds = params.get("seconds").and_then(|text| text.trim().parse::<u32>().ok()).unwrap_or(10).clamp(1, 86_400);
    let wish = match params.get("wish") {
        Some("slow") => Some(Wish::Slow(seconds)),
        Some("stop") => Some(Wish::Stop),
        Some("welcome") => Some(Wish::Welcome),
        _ => None,
    };
    let (Some(host), Some(wish)) = (host, wish) else {
        return answer::text(StatusCode::BAD_REQUEST, "a wish names a host, and is slow, stop or welcome");
    };
    let work = move |look: &Looking<'_>, _: &Visit, reply: crate::reply::Reply| {
        reply.send(tell(look, &host, wish).unwrap_or_else(|trouble| {
            look.portal.note(&trouble);
            trouble.page()
        }));
    };
    routes::look(portal, Scope::Everything, visit, work).await
}

/// What an owner may want of all nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// A request every so many seconds at most.
    Slow(u32),
    /// None any more.
    Stop,
    /// As usual.
    Welcome,
}

/// Why nothing follows from a wish.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unheard {
    /// For whoever wishes.
    pub told: String,
    /// The host was not even asked: too soon after the last time.
    pub later: bool,
}

fn tell(look: &Looking<'_>, host: &str, wish: Wish) -> Result<Answer, Trouble> {
    let none = || Trouble::missing("This archive belongs to no network; robots.txt is followed.");
    let others = look.portal.elsewhere.as_deref().ok_or_else(none)?;
    // Only of whom something was taken is anything asked.
    if taken(look, host)?.seen == 0 {
        return Err(Trouble::missing("Nothing was taken from this host."));
    }
    let told = others.owner_wish(host, wish);
    let told = told.map_err(|why| {
        let status = if why.later { StatusCode::TOO_MANY_REQUESTS } else { StatusCode::CONFLICT };
        Trouble { status, told: why.told, log: None }
    })?;
    let back = link(&format!("/owner?host={}", encoded(host)), "Back");
    let at = moment(&skep_warc::date::rfc3339(look.now_ms));
    Ok(frame::page(look, "All nodes are told", &format!("<p>{} ({at})</p>\n<p>{back}</p>\n", escape(&told))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_a_name_and_nothing_else() {
        assert_eq!(host_of(" WWW.Example.org ").as_deref(), Some("www.example.org"));
        for wrong in ["", "a b", "example.org/x", "user@example.org", "example.org:80", "<script>", &"a".repeat(300)] {
            assert_eq!(host_of(wrong), None, "{wrong}");
        }
    }
}
