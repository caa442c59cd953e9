//! Hosts that turn visitors away: rows 36 to 38 and 45.

use super::script::{self, HTML, Script, Then};
use super::{Act, Asked, HTML_TYPE, Hostile};
use crate::answer::Answer;

/// Requests to an address before all hosts on it refuse.
const BAN_AFTER: u64 = 20;
/// Requests that a host answers before it begins to refuse, robots.txt not counted.
const REFUSE_AFTER: u64 = 3;
/// `Retry-After`, unless said otherwise.
const RETRY_MS: u64 = 2_000;
const HOLD_MS: u64 = 600_000;

fn whole(hostile: &Hostile) -> Option<&'static str> {
    Some(hostile.row.forms().iter().find(|form| form.name == hostile.whole())?.name)
}

pub(super) fn challenges(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    if asked.path == "/robots.txt" {
        return None;
    }
    let form = whole(hostile)?;
    let script = match form {
        "moment" => {
            let body = "<!DOCTYPE html><html lang=\"en-US\"><head><title>Just a moment...</title>\
                <meta name=\"robots\" content=\"noindex,nofollow\"></head><body><noscript>Enable JavaScript and cookies to \
                continue</noscript><script>(function(){window._cf_chl_opt={cType:'managed'};\
                a.src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1';})();</script></body></html>\n";
            Script::answer(403, &[HTML, ("cf-mitigated", "challenge"), ("Cache-Control", "no-store")], body)
        }
        "proof-of-work" => {
            let body = script::page(
                "Making sure you&#39;re not a bot!",
                "<script id=\"anubis_challenge\" type=\"application/json\">{\"rules\":{\"difficulty\":4}}</script>\n\
                 <script src=\"/.within.website/x/cmd/anubis/static/js/main.mjs\"></script>\n<p>Protected by proof of work.</p>\n",
            );
            Script::answer(200, &[HTML, ("Set-Cookie", "techaro.lol-anubis-cookie-test=x; Path=/")], body)
        }
        "denied" => {
            let body = "<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY><H1>Access Denied</H1>You don't have permission \
                to access this server.<P>Reference&#32;&#35;18&#46;1&#46;2&#46;3</BODY></HTML>\n";
            Script::answer(403, &[HTML, ("Server-Timing", "ak_p; desc=\"1\"")], body)
        }
        "captcha" => {
            let body = script::page(
                "Are you human?",
                "<form><div class=\"g-recaptcha\" data-sitekey=\"x\"></div><div class=\"h-captcha\"></div></form>\n",
            );
            Script::answer(503, &[HTML], body)
        }
        // Whoever looks like a browser sees a page, everyone else another.
        _ => {
            let browser = asked.header("user-agent").is_some_and(|agent| agent.starts_with("Mozilla/"));
            let text = if browser {
                "<p>Cheap pills.</p>\n"
            } else {
                "<p>An honest page.</p>\n<a href=\"/deeper\">more</a>\n"
            };
            Script::answer(200, &[HTML, ("Vary", "User-Agent")], script::page("Shop", text))
        }
    };
    Act::script(form, script)
}

pub(super) fn refusals(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    if asked.path == "/robots.txt" || asked.number <= REFUSE_AFTER {
        return None;
    }
    let form = whole(hostile)?;
    let seconds = hostile.ms_or(RETRY_MS).div_ceil(1_000);
    let until = asked.now.plus_ms(i64::try_from(seconds * 1_000).unwrap_or(i64::MAX));
    let (value, meant) = match form {
        "seconds" | "unavailable" => (Some(seconds.to_string()), Some(seconds)),
        // A date has no fractions; what is meant is the whole second that is written.
        "date" => (Some(until.http()), u64::try_from(until.seconds() - asked.now.seconds() - 1).ok()),
        "year" => (Some((365 * 86_400).to_string()), Some(365 * 86_400)),
        "past" => (Some(asked.now.plus_days(-1).http()), None),
        "words" => (Some("soon".to_string()), None),
        _ => (None, None),
    };
    let status = if form == "unavailable" { 503 } else { 429 };
    let mut headers = vec![HTML, ("Cache-Control", "no-store")];
    headers.extend(value.as_deref().map(|value| ("Retry-After", value)));
    let date = asked.now.http();
    headers.push(("Date", &date));
    let mut script = Script::answer(status, &headers, script::page("Too many requests", "<p>Later.</p>\n"));
    script.retry_after_seconds = meant;
    Act::script(form, script)
}

pub(super) fn provider_ban(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    if asked.number_at_address <= BAN_AFTER {
        return None;
    }
    let form = whole(hostile)?;
    let script = match form {
        "forbidden" => Script::answer(403, &[HTML], script::page("Forbidden", "<p>Your network is not welcome.</p>\n")),
        "too-many" => Script::answer(429, &[HTML], script::page("Too many requests", "<p>Later.</p>\n")),
        "reset" => Script { steps: Vec::new(), ..Script::raw(0, "") }.then(Then::Reset),
        _ => Script::silence(hostile.ms_or(HOLD_MS)),
    };
    // No rules come of a refusal: what the visitor may do is what the status says of a robots.txt.
    let script = if asked.path == "/robots.txt" {
        let status = script.status.max(1);
        script.meaning(status, "")
    } else {
        script
    };
    Act::script(form, script)
}

pub(super) fn portal(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    if whole(hostile)? == "redirect" && !asked.path.starts_with("/login") {
        return Act::answer("redirect", Answer::redirect(302, "http://portal.hotel.test/login"));
    }
    let form = "<form method=\"post\" action=\"/login\"><p>Welcome to the hotel. Room number and name, please.</p>\
                <input name=\"room\"><input type=\"submit\"></form>\n";
    Act::answer("page", Answer::plain(200, HTML_TYPE, script::page("Network log-in", form)))
}
