//! Every question of the API: where it is asked, with which parameters, what comes back, and who answers.

use super::asked::Asked;
use super::{
    collections, completeness, files, network, openapi, records, register, schemas, statistics, texts, url, urls,
};
use crate::access::May;
use crate::find::Looking;
use crate::limits::{CURSOR_DIGITS_MAX, PAGE_ROWS, PAGE_ROWS_MAX, QUERY_CHARS_MAX, TEXTS_ROWS, URL_CHARS_MAX};
use crate::reply::Reply;
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::http::StatusCode;
use serde_json::{Value, json};

/// One question.
pub struct Endpoint {
    /// Its method.
    pub method: &'static str,
    /// Its path below the base; `{name}` stands for one part.
    pub path: &'static str,
    /// A name for programs.
    pub id: &'static str,
    /// What it is for, in one line.
    pub summary: &'static str,
    /// What it takes.
    pub parameters: &'static [Parameter],
    /// What comes back.
    pub gives: Gives,
    /// Who may ask.
    pub needs: May,
    /// Who answers.
    pub work: Work,
}

/// What comes back.
pub enum Gives {
    /// JSON of this shape.
    Json(fn() -> Value),
    /// JSON of this shape, for a body of that shape.
    JsonFor(fn() -> Value, fn() -> Value),
    /// Bytes of this media type.
    Bytes(&'static str),
}

/// Who answers.
#[derive(Clone, Copy)]
pub enum Work {
    /// Makes JSON.
    Tell(fn(&Looking<'_>, &Asked, &Visit) -> Result<Value, Trouble>),
    /// Streams; takes the reply when it begins.
    Send(fn(&Looking<'_>, &Asked, &Visit, &mut Option<Reply>) -> Result<(), Trouble>),
    /// Takes a body.
    Take(fn(&Looking<'_>, &[u8]) -> Result<(StatusCode, Value), Trouble>),
}

/// Where a parameter stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the path.
    Path,
    /// Behind the question mark.
    Query,
}

/// One parameter.
pub struct Parameter {
    /// Its name.
    pub name: &'static str,
    /// Where it stands.
    pub place: Place,
    /// Nothing can be answered without it.
    pub required: bool,
    /// What it may be.
    pub kind: Kind,
    /// What it means.
    pub about: &'static str,
}

/// What a value may be. Whatever fits is answered, if only with "not here".
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A URL of at most so many characters.
    Url(usize),
    /// A text of at most so many characters.
    Text(usize),
    /// 4 to 14 digits.
    Moment,
    /// A whole number.
    Number {
        /// At least.
        least: u64,
        /// At most.
        most: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Where the page before ended, of at most so many digits.
    Cursor(usize),
    /// `WRITER:NUMBER`.
    File,
    /// `WRITER:NUMBER:RECORD`.
    Position,
}

impl Kind {
    /// As JSON Schema.
    pub fn schema(self) -> Value {
        match self {
            Kind::Url(most) | Kind::Text(most) => json!({ "type": "string", "minLength": 1, "maxLength": most }),
            Kind::Moment => json!({ "type": "string", "pattern": "^[0-9]{4,14}$" }),
            Kind::Number { least, most } => json!({ "type": "integer", "minimum": least, "maximum": most }),
            Kind::Choice(words) => json!({ "type": "string", "enum": words }),
            Kind::Cursor(most) => json!({ "type": "string", "pattern": "^([0-9a-f]{2})+$", "maxLength": most }),
            Kind::File => json!({ "type": "string", "pattern": "^[0-9a-f]{8}:[0-9]{1,10}$" }),
            Kind::Position => json!({ "type": "string", "pattern": "^[0-9a-f]{8}:[0-9]{1,10}:[0-9]{1,10}$" }),
        }
    }

    /// In words.
    pub fn told(self) -> String {
        match self {
            Kind::Url(most) => format!("a URL of at most {most} characters"),
            Kind::Text(most) => format!("a text of 1 to {most} characters"),
            Kind::Moment => "a time of 4 to 14 digits, such as 2014 or 20140126200624".to_owned(),
            Kind::Number { least, most } => format!("a whole number from {least} to {most}"),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Cursor(_) => "what `next` said on the page before".to_owned(),
            Kind::File => "a file such as c41f22ab:1".to_owned(),
            Kind::Position => "a record such as c41f22ab:1:17".to_owned(),
        }
    }
}

impl Endpoint {
    /// The values in a path that is meant for this; `None` if it is not.
    pub fn matches(&self, path: &str) -> Option<Vec<String>> {
        let (mut wanted, mut given) = (self.path.split('/'), path.split('/'));
        let mut values = Vec::new();
        loop {
            match (wanted.next(), given.next()) {
                (None, None) => return Some(values),
                (Some(wanted), Some(given)) if wanted.starts_with('{') => {
                    values.push(percent_encoding::percent_decode_str(given).decode_utf8_lossy().into_owned());
                }
                (Some(wanted), Some(given)) if wanted == given => {}
                _ => return None,
            }
        }
    }
}

const fn query(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, required: false, kind, about }
}

const fn wanted(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, required: true, kind, about }
}

const fn in_path(name: &'static str, kind: Kind, about: &'static str) -> Parameter {
    Parameter { name, place: Place::Path, required: true, kind, about }
}

const COLLECTION: Parameter = query("collection", Kind::Text(100), "only captures of this collection");
const URL: Parameter = wanted("url", Kind::Url(URL_CHARS_MAX), "the URL that is asked about");
const FROM: Parameter = query("from", Kind::Moment, "not before this time");
const TO: Parameter = query("to", Kind::Moment, "not after this time");
const LIMIT: Parameter = query(
    "limit",
    Kind::Number { least: 1, most: PAGE_ROWS_MAX as u64 },
    "at most so many on one page; 100 without it",
);
const AFTER: Parameter =
    query("after", Kind::Cursor(CURSOR_DIGITS_MAX), "go on behind the page before: what `next` said there");
const FILE: Parameter = in_path("file", Kind::File, "a file of the archive, as lists name it");
const KINDS: Kind = Kind::Choice(&["response", "revisit", "resource", "metadata", "conversion"]);
const _: () = assert!(PAGE_ROWS == 100 && PAGE_ROWS <= PAGE_ROWS_MAX && TEXTS_ROWS == 20);

/// All questions, in the order in which they are read about.
pub const ENDPOINTS: &[Endpoint] = &[
    Endpoint {
        method: "GET",
        path: "/collections",
        id: "listCollections",
        summary: "The collections of files that were added, and what was crawled here",
        parameters: &[],
        gives: Gives::Json(schemas::collections),
        needs: May::Read,
        work: Work::Tell(collections::list),
    },
    Endpoint {
        method: "GET",
        path: "/statistics",
        id: "tellStatistics",
        summary: "Captures, URLs, versions and duplicates; by host, year, media type and status",
        parameters: &[COLLECTION, query("host", Kind::Text(300), "only captures of this host")],
        gives: Gives::Json(schemas::statistics),
        needs: May::Read,
        work: Work::Tell(statistics::tell),
    },
    Endpoint {
        method: "GET",
        path: "/urls",
        id: "searchUrls",
        summary: "URLs that contain every word of a text, in any case",
        parameters: &[
            wanted("q", Kind::Text(QUERY_CHARS_MAX), "words, or a host to see its URLs"),
            COLLECTION,
            LIMIT,
            AFTER,
        ],
        gives: Gives::Json(schemas::urls),
        needs: May::Read,
        work: Work::Tell(urls::search),
    },
    Endpoint {
        method: "GET",
        path: "/search/text",
        id: "searchTexts",
        summary: "Pages by the words of their titles and texts, also as of a date; each URL once, the best first",
        parameters: &[
            wanted(
                "q",
                Kind::Text(QUERY_CHARS_MAX),
                "words, \"a phrase\", title:word, site:example.org, host:news.example.org, -word",
            ),
            query("at", Kind::Moment, "only what was current at the end of this time"),
            query("url_prefix", Kind::Url(URL_CHARS_MAX), "only URLs that begin with this"),
            COLLECTION,
            query(
                "limit",
                Kind::Number { least: 1, most: skep_search::limits::RESULTS_MAX as u64 },
                "at most so many on one page; 20 without it",
            ),
            AFTER,
        ],
        gives: Gives::Json(schemas::texts),
        needs: May::Read,
        work: Work::Tell(texts::search),
    },
    Endpoint {
        method: "GET",
        path: "/url",
        id: "tellUrl",
        summary: "What there is of a URL: its versions, their duplicates, and each capture with the place of its record",
        parameters: &[URL, COLLECTION, FROM, TO, LIMIT, AFTER],
        gives: Gives::Json(schemas::url),
        needs: May::Read,
        work: Work::Tell(url::tell),
    },
    Endpoint {
        method: "GET",
        path: "/completeness",
        id: "tellCompleteness",
        summary: "How far apart in time the parts of an archived page are, and which are missing",
        parameters: &[
            URL,
            query("time", Kind::Moment, "the capture nearest to this time; the newest without it"),
            COLLECTION,
        ],
        gives: Gives::Json(schemas::completeness),
        needs: May::Read,
        work: Work::Tell(completeness::tell),
    },
    Endpoint {
        method: "GET",
        path: "/files",
        id: "listFiles",
        summary: "The files of the archive",
        parameters: &[COLLECTION, LIMIT, AFTER],
        gives: Gives::Json(schemas::files),
        needs: May::Read,
        work: Work::Tell(files::list),
    },
    Endpoint {
        method: "POST",
        path: "/files",
        id: "registerFile",
        summary: "Add an ARC, WARC or WACZ file that lies where the portal runs; needs a token that may administer",
        parameters: &[],
        gives: Gives::JsonFor(schemas::registered, schemas::registration),
        needs: May::Administer,
        work: Work::Take(register::register),
    },
    Endpoint {
        method: "GET",
        path: "/files/{file}",
        id: "tellFile",
        summary: "One file",
        parameters: &[FILE],
        gives: Gives::Json(schemas::file),
        needs: May::Read,
        work: Work::Tell(files::tell),
    },
    Endpoint {
        method: "GET",
        path: "/files/{file}/captures",
        id: "listCapturesOfFile",
        summary: "The captures in a file, in its order",
        parameters: &[FILE, LIMIT, AFTER],
        gives: Gives::Json(schemas::captures_of_file),
        needs: May::Read,
        work: Work::Tell(files::captures),
    },
    Endpoint {
        method: "GET",
        path: "/files/{file}/download",
        id: "downloadFile",
        summary: "A whole file as it stands; refused where it holds what may not be shown",
        parameters: &[FILE],
        gives: Gives::Bytes("application/octet-stream"),
        needs: May::Read,
        work: Work::Send(files::download),
    },
    Endpoint {
        method: "GET",
        path: "/records",
        id: "streamRecords",
        summary: "All records of captures that match, one gzip member each, as a WARC file",
        parameters: &[
            query("url", Kind::Url(URL_CHARS_MAX), "a URL; everything without it"),
            query(
                "match",
                Kind::Choice(&["exact", "prefix", "host", "domain"]),
                "how much the URL stands for; exact without it",
            ),
            COLLECTION,
            FROM,
            TO,
            query("kind", KINDS, "only records of this type"),
            query("type", Kind::Text(100), "only this media type; `image/*` for all of a kind"),
            query("status", Kind::Number { least: 0, most: 999 }, "only this HTTP status"),
            query("limit", Kind::Number { least: 1, most: 1_000_000_000 }, "at most so many"),
        ],
        gives: Gives::Bytes("application/warc"),
        needs: May::Read,
        work: Work::Send(records::stream),
    },
    Endpoint {
        method: "GET",
        path: "/records/{record}",
        id: "getRecord",
        summary: "The record of one capture, as a WARC file",
        parameters: &[in_path("record", Kind::Position, "the position of a record, as lists name it")],
        gives: Gives::Bytes("application/warc"),
        needs: May::Read,
        work: Work::Send(records::one),
    },
    Endpoint {
        method: "GET",
        path: "/ring",
        id: "tellRing",
        summary: "How the network stands of which this archive is a node: who is there, who holds and leads what, what is missing",
        parameters: &[],
        gives: Gives::Json(schemas::anything),
        needs: May::Read,
        work: Work::Tell(network::tell),
    },
    Endpoint {
        method: "POST",
        path: "/seeds",
        id: "giveSeeds",
        summary: "Give URLs to what the network crawls; needs a token that may write",
        parameters: &[],
        gives: Gives::JsonFor(schemas::anything, schemas::seeds),
        needs: May::Write,
        work: Work::Take(network::seed),
    },
    Endpoint {
        method: "GET",
        path: "/openapi.json",
        id: "describeApi",
        summary: "This description",
        parameters: &[],
        gives: Gives::Json(schemas::anything),
        needs: May::Read,
        work: Work::Tell(openapi::tell),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_lead_to_one_question_each() {
        let found = |path: &str| -> Vec<&str> {
            ENDPOINTS.iter().filter(|endpoint| endpoint.matches(path).is_some()).map(|endpoint| endpoint.id).collect()
        };
        assert_eq!(found("/files"), ["listFiles", "registerFile"]);
        assert_eq!(found("/files/00000000:1/captures"), ["listCapturesOfFile"]);
        assert_eq!(found("/files/"), ["tellFile"]);
        assert!(found("/files/a/b").is_empty() && found("").is_empty() && found("/").is_empty());
        for endpoint in ENDPOINTS {
            let named = endpoint.path.matches('{').count();
            let placed = endpoint.parameters.iter().filter(|parameter| parameter.place == Place::Path).count();
            assert_eq!(named, placed, "{}", endpoint.id);
        }
    }
}
