//! Addresses that send visitors on and on: rows 6 and 7.

use super::script::{self, HTML, Script};
use super::{Act, Asked, Row};
use crate::answer::Answer;

pub(super) fn redirects(asked: &Asked) -> Option<Act> {
    let (form, rest) = asked.form(Row::Redirects)?;
    let here = format!("/redirects/{form}");
    match form {
        "circle" => {
            let to = if rest == "/back" { here } else { format!("{here}/back") };
            Act::answer(form, Answer::redirect(302, &to))
        }
        "itself" => Act::answer(form, Answer::redirect(301, &here)),
        "chain" => {
            let hop: u64 = rest.trim_start_matches('/').parse().unwrap_or(0);
            Act::answer(form, Answer::redirect(307, &format!("{here}/{}", hop.wrapping_add(1))))
        }
        "cookie" => match asked.header("cookie") {
            Some(cookies) if cookies.contains("seen=yes") => Act::page(form, asked, "<p>A cookie came back.</p>\n"),
            _ => Act::script(form, Script::answer(302, &[("Location", &here), ("Set-Cookie", "seen=yes; Path=/")], "")),
        },
        // Each hop's address is longer than the last.
        "growing" => Act::answer(form, Answer::redirect(302, &format!("{}/on", asked.path))),
        _ => Act::script(form, Script::answer(302, &[HTML], script::page("Moved", "<p>Somewhere.</p>\n"))),
    }
}

pub(super) fn refreshes(asked: &Asked) -> Option<Act> {
    let (form, rest) = asked.form(Row::Refreshes)?;
    let here = format!("/refreshes/{form}");
    let to = match form {
        "circle" if rest == "/back" => here,
        "circle" => format!("{here}/back"),
        _ => {
            let hop: u64 = rest.trim_start_matches('/').parse().unwrap_or(0);
            format!("{here}/{}", hop.wrapping_add(1))
        }
    };
    match form {
        "header" => {
            let refresh = format!("0; url={to}");
            let body = script::page("One moment", "<p>You are being sent on.</p>\n");
            Act::script(form, Script::answer(200, &[HTML, ("Refresh", &refresh)], body))
        }
        "script" => Act::page(form, asked, &format!("<script>window.location.href = \"{to}\";</script>\n")),
        _ => Act::page(form, asked, &format!("<meta http-equiv=\"refresh\" content=\"0; url={to}\">\n")),
    }
}
