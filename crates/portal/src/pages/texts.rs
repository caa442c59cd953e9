//! What was looked for in texts.

use super::frame::{self, and_scope, count, encoded, in_scope, link, moment, more};
use crate::answer::{Answer, escape};
use crate::api::asked::Asked;
use crate::api::texts::{self, Hit};
use crate::cdx::params::Params;
use crate::find::Looking;
use crate::limits::{QUERY_CHARS_MAX, TEXTS_ROWS};
use crate::portal::Scope;
use crate::time;
use crate::trouble::Trouble;
use axum::http::StatusCode;

/// The page of results; without a query, only the box.
pub fn page(look: &Looking<'_>, params: &Params) -> Result<Answer, Trouble> {
    let typed: String = params.get("q").unwrap_or_default().trim().chars().take(QUERY_CHARS_MAX).collect();
    let at = params.get("at").map(str::trim).filter(|at| !at.is_empty());
    let digits: Option<String> = at.map(|at| at.chars().filter(char::is_ascii_digit).collect());
    let mut body = in_scope(look);
    body.push_str(&form(look, &typed, at.unwrap_or_default()));
    let title = if typed.is_empty() { "Texts".to_owned() } else { format!("Texts with {typed}") };
    if typed.is_empty() {
        return Ok(frame::page(look, &title, &body));
    }
    let mut asked = Asked::default().with("q", &typed).with("limit", &TEXTS_ROWS.to_string());
    if let Some(digits) = &digits {
        if time::latest(digits).is_none() || !(4..=14).contains(&digits.len()) {
            let told = "A date is a year, a month or a day, such as 2019, 2019-06 or 2019-06-30.";
            return Ok(wrong(look, &title, body, StatusCode::BAD_REQUEST, told));
        }
        asked = asked.with("at", digits);
    }
    if let Some(after) =
        params.get("after").filter(|after| after.len() == 8 && after.bytes().all(|b| b.is_ascii_hexdigit()))
    {
        asked = asked.with("after", after);
    }
    let found = match texts::everywhere(look, &asked) {
        Ok(found) => found,
        Err(trouble) if trouble.status.is_client_error() => {
            return Ok(wrong(look, &title, body, trouble.status, &trouble.told));
        }
        Err(trouble) => return Err(trouble),
    };
    if found.hits.is_empty() {
        body.push_str("<p>No text here has that.</p>\n");
    } else {
        body.push_str("<ol class=\"texts\">");
        found.hits.iter().for_each(|hit| body.push_str(&result(hit)));
        body.push_str("</ol>\n");
    }
    if found.cut {
        body.push_str("<p>So much was looked at that the rest was left out: more words, or a site, find more.</p>\n");
    }
    let at = digits.map_or(String::new(), |digits| format!("&at={digits}"));
    let next =
        found.next.map(|next| format!("/search?in=text&q={}{at}{}&after={next}", encoded(&typed), and_scope(look)));
    body.push_str(&more(next));
    Ok(frame::page(look, &title, &body))
}

fn wrong(look: &Looking<'_>, title: &str, mut body: String, status: StatusCode, told: &str) -> Answer {
    body.push_str(&format!("<p class=\"wrong\">{}</p>\n", escape(told)));
    let mut answer = frame::page(look, title, &body);
    *answer.status_mut() = status;
    answer
}

fn form(look: &Looking<'_>, typed: &str, at: &str) -> String {
    let hidden = match look.scope {
        Scope::Everything => String::new(),
        Scope::Collection(name) => format!("<input type=\"hidden\" name=\"collection\" value=\"{}\">", escape(name)),
    };
    format!(
        "<form action=\"/search\"><input type=\"hidden\" name=\"in\" value=\"text\">{hidden}\
         <label>Words <input name=\"q\" type=\"search\" value=\"{}\" maxlength=\"{QUERY_CHARS_MAX}\" required></label> \
         <label>as of <input name=\"at\" value=\"{}\" size=\"10\" maxlength=\"20\" placeholder=\"any date\"></label> <button>Find</button></form>\n\
         <p class=\"soft\">All words must be there. <code>\"two words\"</code> next to each other, <code>title:word</code>, \
         <code>site:example.org</code>, <code>-word</code> to leave out.</p>\n",
        escape(typed),
        escape(at)
    )
}

fn result(hit: &Hit) -> String {
    let title = if hit.title.is_empty() { &hit.url } else { &hit.title };
    let passage: String = hit
        .passage
        .iter()
        .map(|piece| match piece.found {
            true => format!("<mark>{}</mark>", escape(&piece.text)),
            false => escape(&piece.text),
        })
        .collect();
    let span = match hit.captures {
        1 => moment(&hit.time),
        captures => format!("{} to {}, {} captures", moment(&hit.first), moment(&hit.last), count(captures)),
    };
    format!(
        "<li><h2>{}</h2><p class=\"url\">{}</p><p>{passage}</p><p class=\"soft\">{span}</p></li>",
        link(&hit.links.replay, title),
        link(&hit.links.calendar, &hit.url),
    )
}
