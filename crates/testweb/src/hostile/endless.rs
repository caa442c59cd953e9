//! Webs without end: rows 1 to 5, 34 and 35. Every page is a function of its address, so that coming back shows the same.

use std::fmt::Write as _;

use super::script::{self, HTML, Script};
use super::{Act, Asked, HTML_TYPE, Hostile, Row};
use crate::answer::Answer;
use crate::chance::Chance;
use crate::words;

/// Links deeper into the maze on each of its pages.
const MAZE_LINKS: u64 = 10;
/// Of a thousand pages of the maze, how many link out of it.
const MAZE_OUT_PERMILLE: u32 = 100;
/// Bytes of one drop of a page that drips.
const DROP_BYTES: usize = 64;

pub(super) fn maze(hostile: &Hostile, asked: &Asked) -> Option<Act> {
    let below = asked.below(Row::Maze)?;
    let chance = asked.chance.of(below);
    let mut body = String::new();
    for paragraph in 0..3 {
        let _ = writeln!(body, "<p>{}</p>", markov(chance.of("text").at(paragraph), 60));
    }
    for link in 0..MAZE_LINKS {
        let chance = chance.of("link").at(link);
        let [one, two] = [words::word(chance.at(0)), words::word(chance.at(1))];
        let number = chance.at(2).below(1_000_000);
        let _ = writeln!(body, "<a href=\"/maze/{one}/{two}-{number}\">{one} {two}</a>");
    }
    if chance.of("out").permille(MAZE_OUT_PERMILLE) && !asked.ordinary.is_empty() {
        let out: &String = chance.of("where").pick(asked.ordinary);
        let _ = writeln!(body, "<a href=\"{}\">out</a>", crate::page::escape(out));
    }
    let page = script::page(&words::title(chance.of("title")), &body);
    match hostile.ms {
        None | Some(0) => Act::answer("maze", Answer::found(HTML_TYPE, page, asked.begin)),
        Some(every_ms) => {
            let mut script = Script::stream(200, &[HTML]);
            for drop in page.as_bytes().chunks(DROP_BYTES) {
                script = script.repeat(drop.to_vec(), 1, every_ms);
            }
            Act::script("maze", script)
        }
    }
}

/// Text in which each word has few successors, as a Markov chain of a small text makes it.
fn markov(chance: Chance, count: u64) -> String {
    const SUCCESSORS: u64 = 4;
    let chain = Chance::new(1);
    let mut word = words::word(chance);
    let mut text = String::from(word);
    for place in 1..count {
        word = words::word(chain.of(word).at(chance.at(place).below(SUCCESSORS)));
        text.push_str(if place % 12 == 0 { ". " } else { " " });
        text.push_str(word);
    }
    text
}

pub(super) fn calendar(asked: &Asked) -> Option<Act> {
    let (form, rest) = asked.form(Row::Calendar)?;
    if form == "facets" {
        return facets(asked, rest);
    }
    let mut parts = rest.trim_start_matches('/').split(['/', '?']).map(|part| part.parse::<i64>().ok());
    let year = parts.next().flatten().unwrap_or(2024).clamp(-999_999, 999_999);
    let month = parts.next().flatten().unwrap_or(1).clamp(1, 12);
    let day = parts.next().flatten();
    let before = if month == 1 { (year - 1, 12) } else { (year, month - 1) };
    let after = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
    let mut body =
        format!("<p>{year}-{month:02}{}: no events.</p>\n", day.map_or(String::new(), |day| format!("-{day:02}")));
    for (name, (year, month)) in [("before", before), ("after", after), ("a year on", (year + 1, month))] {
        let _ = writeln!(body, "<a rel=\"next\" href=\"/calendar/calendar/{year}/{month:02}\">{name}</a>");
    }
    for day in 1..=28 {
        let _ = write!(body, "<a href=\"/calendar/calendar/{year}/{month:02}/{day:02}?view=day\">{day}</a> ");
    }
    Act::page("calendar", asked, &body)
}

/// Every filter can be added, changed or taken away, in any order: the number of addresses grows with the factorial.
fn facets(asked: &Asked, rest: &str) -> Option<Act> {
    const FACETS: [&str; 6] = ["colour", "size", "brand", "price", "rating", "sort"];
    let query = rest.trim_start_matches('?');
    let chosen: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).take(40).collect();
    let mut body = format!("<p>{} things.</p>\n", asked.chance.of(query).below(500));
    for facet in FACETS {
        for value in 1..=4 {
            let others = chosen.iter().filter(|pair| !pair.starts_with(facet));
            let mut pairs: Vec<String> = others.map(|pair| pair.to_string()).collect();
            pairs.push(format!("{facet}={value}"));
            let query = crate::page::escape(&pairs.join("&"));
            let _ = writeln!(body, "<a href=\"/calendar/facets?{query}\">{facet} {value}</a>");
        }
    }
    Act::page("facets", asked, &body)
}

pub(super) fn segments(asked: &Asked) -> Option<Act> {
    let (form, rest) = asked.form(Row::Segments)?;
    if form == "deepening" {
        let word = words::word(asked.chance.of(rest));
        let deeper = format!("{}/{word}", asked.path.split('?').next()?.trim_end_matches('/'));
        return Act::page(
            form,
            asked,
            &format!("<a href=\"{deeper}\">deeper</a> <a href=\"{deeper}-too\">and deeper</a>\n"),
        );
    }
    // Links meant for the folder above: each page answers for any depth, so each adds the segments once more.
    let here = if asked.path.ends_with('/') { "" } else { "repeating/" };
    let body = format!("<a href=\"{here}forum/thread/\">forum</a> <a href=\"{here}images/\">images</a>\n");
    Act::page(form, asked, &body)
}

pub(super) fn sessions(asked: &Asked) -> Option<Act> {
    let (form, rest) = asked.form(Row::Sessions)?;
    let chance = asked.chance.of("session").at(asked.number);
    let page = rest.trim_start_matches('/').split(['/', '?', ';']).next().unwrap_or_default().to_string();
    let mut body = format!("<p>{}</p>\n", markov(asked.chance.of("page").of(&page), 80));
    for number in 0..5 {
        let id = format!("{:016x}", chance.at(number).bits());
        let address = match form {
            "query" => format!("/sessions/query/{number}?PHPSESSID={id}"),
            "path" => format!("/sessions/path/{number};jsessionid={id}"),
            _ => format!("/sessions/random/{number}?{}={id}", words::word(chance.at(number + 10))),
        };
        let _ = writeln!(body, "<a href=\"{address}\">{number}</a>");
    }
    // The page must not differ but for its links, so it has no validator either.
    Act::answer(form, Answer::plain(200, HTML_TYPE, script::page("Sessions", &body)))
}

pub(super) fn subdomains(asked: &Asked) -> Option<Act> {
    let inside = asked.host != asked.name;
    if !inside && asked.below(Row::Subdomains).is_none() {
        return None;
    }
    if asked.path == "/robots.txt" {
        return None;
    }
    let chance = asked.chance.of(asked.host);
    let mut body = format!("<p>{}</p>\n", markov(asked.chance, 40));
    for link in 0..10 {
        let chance = chance.at(link);
        let label = format!("{}-{:06x}", words::word(chance), chance.at(1).below(1 << 24));
        let origin = asked.origin(&format!("{label}.{}", asked.name));
        let _ = writeln!(body, "<a href=\"{origin}/\">{label}</a>");
    }
    Act::page("subdomains", asked, &body)
}

pub(super) fn soft_missing(asked: &Asked) -> Option<Act> {
    let there =
        asked.path == "/" || asked.path == "/robots.txt" || asked.ordinary.iter().any(|path| path == asked.path);
    if there && asked.path != "/" {
        return None;
    }
    let chance = asked.chance.of(asked.path);
    let mut body = String::from("<p>We are sorry. What you look for is not here. Perhaps you like this:</p>\n");
    for link in 0..8 {
        let chance = chance.at(link);
        let _ = writeln!(body, "<a href=\"/{}/{}.html\">more</a>", words::word(chance), chance.at(1).below(100_000));
    }
    if asked.path == "/" {
        for path in asked.ordinary {
            let _ = writeln!(body, "<a href=\"{}\">more</a>", crate::page::escape(path));
        }
        return Some(Act::front(Answer::found(HTML_TYPE, script::page(asked.host, &body), asked.begin)));
    }
    Act::answer("missing", Answer::plain(200, HTML_TYPE, script::page("Not here", &body)))
}

/// Mirrors of one plan; their names end in a number and otherwise agree.
pub(super) const MIRRORS: u32 = 10;

pub(super) fn mirrors(asked: &Asked) -> Option<Act> {
    if asked.path == "/robots.txt" {
        return None;
    }
    let (stem, number) = asked.name.strip_suffix(".test")?.rsplit_once('-')?;
    let number: u32 = number.parse().ok()?;
    let mut body = format!("<p>This domain is for sale. {}</p>\n", markov(Chance::new(35), 60));
    for link in 1..4 {
        let origin = asked.origin(&format!("{stem}-{:02}.test", (number + link) % MIRRORS));
        let _ = writeln!(body, "<a href=\"{origin}/\">partner</a>");
    }
    for page in 0..20 {
        let _ = writeln!(body, "<a href=\"/offer/{page}.html\">offer</a>");
    }
    Act::page("mirror", asked, &body)
}
