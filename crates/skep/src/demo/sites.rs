//! Three small sites, closed in time: what they show follows from the moment alone.
//!
//! ```text
//!  garden.test    a page with one word edited every few seconds, and one that seldom changes
//!  library.test   books come and go: pages are born and die, and the list of them changes its links
//!  weather.test   a forecast that changes, under a clock that changes all the time and counts for nothing
//! ```

/// The sites.
pub const SITES: [&str; 3] = ["garden.test", "library.test", "weather.test"];
/// The page that is edited word by word.
pub const EDITED: &str = "http://garden.test/bloom.html";
/// Moments are this far apart.
pub const MOMENT_MS: u64 = 3_000;

/// Moments between two new books, and books on the shelf at a time.
const BOOK_MOMENTS: u64 = 3;
const SHELF: u64 = 4;

const FLOWERS: [&str; 24] = [
    "snowdrop",
    "crocus",
    "willow",
    "hazel",
    "blackthorn",
    "cherry",
    "apple",
    "dandelion",
    "chestnut",
    "acacia",
    "clover",
    "raspberry",
    "linden",
    "lavender",
    "thyme",
    "sunflower",
    "buckwheat",
    "heather",
    "ivy",
    "borage",
    "sage",
    "mustard",
    "phacelia",
    "goldenrod",
];
const WINDS: [&str; 8] = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"];
const SUBJECTS: [&str; 12] = [
    "Honey",
    "Wax",
    "Swarms",
    "Queens",
    "Hives",
    "Smoke",
    "Winter",
    "Pollen",
    "Orchards",
    "Meadows",
    "Mites",
    "Foxgloves",
];

/// An answer of a site.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    pub status: u16,
    pub body: String,
}

/// What a site shows at a path at a moment.
pub fn show(host: &str, path: &str, moment: u64) -> Shown {
    let body = match (host, path) {
        (_, "/robots.txt") => Some("User-agent: *\nAllow: /\n".to_owned()),
        ("garden.test", "/") => Some(garden(moment)),
        ("garden.test", "/bloom.html") => Some(bloom(moment)),
        ("library.test", "/") => Some(library(moment)),
        ("library.test", path) => book(path, moment),
        ("weather.test", "/") => Some(weather(moment)),
        _ => None,
    };
    match body {
        Some(body) => Shown { status: 200, body },
        None => Shown { status: 404, body: page("Not here", "<p>There is no such page.</p>") },
    }
}

fn page(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title></head>\n\
         <body>\n<h1>{title}</h1>\n{body}\n</body></html>\n"
    )
}

fn garden(moment: u64) -> String {
    let hives = 12 + moment / 8;
    page(
        "The garden",
        &format!(
            "<p>There are {hives} hives by the wall. The keeper counts them whenever a swarm was caught.</p>\n\
             <p><a href=\"/bloom.html\">What is in bloom</a>, <a href=\"http://library.test/\">what to read</a>,\n\
             <a href=\"http://weather.test/\">whether they will fly</a>.</p>"
        ),
    )
}

/// Three places take turns, so that none of them changes at every look: what does is taken for noise, and rightly so.
fn bloom(moment: u64) -> String {
    let turn = |place: u64| FLOWERS[((moment + 2 - place) / 3 * 3 + place) as usize % FLOWERS.len()];
    page(
        "What is in bloom",
        &format!(
            "<p>By the wall the {} is in bloom, and the bees of the first hives fly to it from morning to night.</p>\n\
             <p>At the pond they have found the {}, which gives little honey but much joy to the keeper.</p>\n\
             <p>Beyond the road, where nobody mows, the {} has begun; the young bees learn the way there.</p>\n\
             <p><a href=\"/\">The garden</a></p>",
            turn(0),
            turn(1),
            turn(2)
        ),
    )
}

/// The books that stand on the shelf.
fn shelf(moment: u64) -> std::ops::RangeInclusive<u64> {
    let newest = moment / BOOK_MOMENTS + 1;
    newest.saturating_sub(SHELF - 1).max(1)..=newest
}

fn title(book: u64) -> String {
    format!("{}, volume {}", SUBJECTS[book as usize % SUBJECTS.len()], book / SUBJECTS.len() as u64 + 1)
}

fn library(moment: u64) -> String {
    let books: Vec<String> =
        shelf(moment).map(|book| format!("<li><a href=\"/book-{book}.html\">{}</a></li>", title(book))).collect();
    page(
        "The library",
        &format!("<ul>\n{}\n</ul>\n<p><a href=\"http://garden.test/\">The garden</a></p>", books.join("\n")),
    )
}

fn book(path: &str, moment: u64) -> Option<String> {
    let number: u64 = path.strip_prefix("/book-")?.strip_suffix(".html")?.parse().ok()?;
    shelf(moment).contains(&number).then(|| {
        page(
            &title(number),
            &format!(
                "<p>A book about {}, lent to whoever asks for it and brings it back.</p>\n<p><a href=\"/\">The library</a></p>",
                SUBJECTS[number as usize % SUBJECTS.len()].to_lowercase()
            ),
        )
    })
}

fn weather(moment: u64) -> String {
    let (day, wind) = (moment / 4, WINDS[(moment / 4) as usize % WINDS.len()]);
    let (minutes, seconds) = (moment * 3 / 60 % 60, moment * 3 % 60);
    page(
        "The weather",
        &format!(
            "<p>Made at 12:{minutes:02}:{seconds:02}.</p>\n\
             <p>Bulletin {}: wind from the {wind}, {} degrees at noon. The bees will {}.</p>\n\
             <p><a href=\"http://garden.test/\">The garden</a></p>",
            day + 1,
            9 + day * 5 % 17,
            if day % 3 == 2 { "stay in" } else { "fly" }
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_word_of_the_edited_page_is_another_at_every_moment() {
        for moment in 0..200 {
            let (old, new) =
                (show("garden.test", "/bloom.html", moment), show("garden.test", "/bloom.html", moment + 1));
            let differ =
                |a: &str, b: &str| a.split_whitespace().zip(b.split_whitespace()).filter(|(a, b)| a != b).count();
            assert_eq!(differ(&old.body, &new.body), 1, "{}\n{}", old.body, new.body);
            assert_eq!(old, show("garden.test", "/bloom.html", moment), "the same moment, the same page");
        }
    }

    #[test]
    fn books_are_linked_as_long_as_they_are_there() {
        for moment in 0..60 {
            let list = show("library.test", "/", moment).body;
            for book in 0..40 {
                let path = format!("/book-{book}.html");
                let there = show("library.test", &path, moment).status == 200;
                assert_eq!(list.contains(&format!("\"{path}\"")), there, "{path} at {moment}");
            }
        }
        for path in ["/book-.html", "/book--1.html", "/book-99999999999999999999.html", "/nothing"] {
            assert_eq!(show("library.test", path, 5).status, 404, "{path}");
        }
    }
}
