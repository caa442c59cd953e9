//! The hostile web: what it does to visitors, row by row, each switched on for one host.
//!
//! [`Row::all`] is the table: what the server does and how it proves that it did. Most rows have several *forms*. A form
//! that needs one address is linked from the host's front page as `/ROW/FORM`; one that needs the whole host (its
//! robots.txt, its certificate, its name) is chosen with [`Hostile::form`]. [`Plan::hostile`](crate::Plan::hostile) makes a
//! web with at least one host per row.
//!
//! ```text
//! script     bytes, pauses and what becomes of the connection: what the decisions below amount to
//! endless    mazes, calendars, sessions, subdomains, mirrors        rows 1–5, 34, 35
//! moving     redirects and refreshes                                rows 6, 7
//! coded      bombs and wrong encodings                              rows 8–10
//! framing    bodies without end, pace or honest length              rows 11, 12, 14–17
//! heads      status lines, headers, interim answers, cookies        rows 18–20, 29
//! leading    robots.txt and sitemaps                                rows 23–25, 32
//! pointing   addresses in pages: ports, credentials, paths          rows 21, 22, 26–28, 47
//! content    markup, charsets, opaque files                         rows 30, 31, 33, 46
//! refusing   refusals, challenges, bans, portals                    rows 36–38, 45
//! web        a plan with all of it
//! ```
//! Everything here is pure. TLS troubles are in `tls.rs`, those of names in `dns/`.

mod coded;
mod content;
mod endless;
mod framing;
mod heads;
mod leading;
mod moving;
mod pointing;
mod refusing;
pub(crate) mod script;
mod table;
mod web;

use http::HeaderMap;
use serde::{Deserialize, Serialize};

use crate::answer::Answer;
use crate::chance::Chance;
use crate::clock::Time;
use crate::limits;
pub(crate) use pointing::BAD_PORTS_HEARD;
use script::Script;
pub use table::{Form, Row, Side};

/// One row of the hostile web, switched on for a host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hostile {
    /// Which.
    pub row: Row,
    /// Which of its forms; without one, all that need only an address of the host, or else the first.
    #[serde(default)]
    pub form: Option<String>,
    /// How long pauses and silences are, instead of the row's own measure.
    #[serde(default)]
    pub ms: Option<u64>,
    /// How large bodies are (decoded, where they are encoded), instead of the row's own measure.
    #[serde(default)]
    pub bytes: Option<u64>,
}

impl Hostile {
    /// A row in its own measure.
    pub fn new(row: Row) -> Hostile {
        Hostile { row, form: None, ms: None, bytes: None }
    }

    /// In this form only.
    pub fn form(self, form: &str) -> Hostile {
        Hostile { form: Some(form.into()), ..self }
    }

    /// With pauses and silences of this length.
    pub fn ms(self, ms: u64) -> Hostile {
        Hostile { ms: Some(ms), ..self }
    }

    /// With bodies of this size.
    pub fn bytes(self, bytes: u64) -> Hostile {
        Hostile { bytes: Some(bytes), ..self }
    }

    /// The form it has as a whole host.
    pub(crate) fn whole(&self) -> &str {
        match &self.form {
            Some(form) => form,
            None => self.row.forms().first().map_or("", |form| form.name),
        }
    }

    pub(crate) fn ms_or(&self, ms: u64) -> u64 {
        self.ms.unwrap_or(ms)
    }

    pub(crate) fn bytes_or(&self, bytes: u64) -> u64 {
        self.bytes.unwrap_or(bytes)
    }

    /// What is wrong with it, if anything.
    pub(crate) fn fault(&self) -> Option<String> {
        let row = self.row;
        if let Side::Visitor(because) = row.side() {
            return Some(format!("row {} ({}) is nothing a server can do: {because}", row.number(), row.name()));
        }
        if let Some(ms) = self.ms.filter(|ms| *ms > limits::DELAY_MS_MAX) {
            return Some(format!("`ms` is {ms}; at most {}", limits::DELAY_MS_MAX));
        }
        let form = self.form.as_deref()?;
        let known: Vec<&str> = row.forms().iter().map(|form| form.name).collect();
        (!known.contains(&form)).then(|| format!("`{}` has no form `{form}`; it has {}", row.name(), known.join(", ")))
    }

    /// What the host does about a request, if this is where it misbehaves.
    pub(crate) fn act(&self, asked: &Asked) -> Option<Act> {
        if let Some(act) = self.act_of_row(asked) {
            return Some(act);
        }
        (asked.path == "/").then(|| Act::front(self.front(asked)))
    }

    fn act_of_row(&self, asked: &Asked) -> Option<Act> {
        match self.row {
            Row::Maze => endless::maze(self, asked),
            Row::Calendar => endless::calendar(asked),
            Row::Segments => endless::segments(asked),
            Row::Sessions => endless::sessions(asked),
            Row::Subdomains => endless::subdomains(asked),
            Row::SoftMissing => endless::soft_missing(asked),
            Row::Mirrors => endless::mirrors(asked),
            Row::Redirects => moving::redirects(asked),
            Row::Refreshes => moving::refreshes(asked),
            Row::Bombs => coded::bombs(self, asked),
            Row::Nested => coded::nested(self, asked),
            Row::Mislabelled => coded::mislabelled(asked),
            Row::Endless => framing::endless(self, asked),
            Row::Slow => framing::slow(self, asked),
            Row::Silent => framing::silent(self, asked),
            Row::LengthLong => framing::length_long(self, asked),
            Row::LengthShort => framing::length_short(asked),
            Row::Lengths => framing::lengths(asked),
            Row::Chunks => framing::chunks(self, asked),
            Row::Headers => heads::headers(self, asked),
            Row::StatusLines => heads::status_lines(asked),
            Row::Interim => heads::interim(self, asked),
            Row::Cookies => heads::cookies(asked),
            Row::RobotsSize => leading::robots_size(self, asked),
            Row::RobotsRedirects => leading::robots_redirects(self, asked),
            Row::RobotsRules => leading::robots_rules(self, asked),
            Row::Sitemaps => leading::sitemaps(self, asked),
            Row::PrivateAddresses => pointing::private_addresses(asked),
            Row::Ports => pointing::ports(asked),
            Row::LongUrls => pointing::long_urls(asked),
            Row::ControlBytes => pointing::control_bytes(asked),
            Row::Credentials => pointing::credentials(asked),
            Row::Paths => pointing::paths(asked),
            Row::Markup => content::markup(self, asked),
            Row::Patterns => content::patterns(self, asked),
            Row::Charsets => content::charsets(asked),
            Row::Opaque => content::opaque(asked),
            Row::Challenges => refusing::challenges(self, asked),
            Row::Refusals => refusing::refusals(self, asked),
            Row::ProviderBan => refusing::provider_ban(self, asked),
            Row::Portal => refusing::portal(self, asked),
            Row::Dns | Row::DnsThrottle | Row::Tls | Row::BlackHole => None, // not a matter of HTTP
            Row::PortsExhausted | Row::ClockJumps | Row::Peers => None,      // not a matter of the server
        }
    }

    /// A page like any other, whose links lead into the trouble and to ordinary pages.
    fn front(&self, asked: &Asked) -> Answer {
        let row = self.row;
        let mut body = format!("<p>Welcome to {}.</p>\n<ul>\n", asked.host);
        let linked = row.forms().iter().filter(|form| !form.whole);
        for form in linked.filter(|form| self.form.as_deref().is_none_or(|chosen| chosen == form.name)) {
            body += &format!("<li><a href=\"/{}/{}\">{}</a></li>\n", row.name(), form.name, form.name);
        }
        for path in asked.ordinary {
            body += &format!("<li><a href=\"{}\">more</a></li>\n", crate::page::escape(path));
        }
        body += "</ul>\n";
        Answer::found(HTML_TYPE, script::page(asked.host, &body), asked.begin)
    }
}

impl From<Row> for Hostile {
    fn from(row: Row) -> Hostile {
        Hostile::new(row)
    }
}

const HTML_TYPE: &str = "text/html; charset=utf-8";

/// A request as a hostile host sees it.
pub(crate) struct Asked<'a> {
    /// The name asked for, which is below the host's own where any is answered.
    pub host: &'a str,
    /// The host's own name.
    pub name: &'a str,
    /// `:PORT` as links carry it, or nothing.
    pub port: &'a str,
    /// `scheme://`.
    pub scheme: &'a str,
    /// Path and query.
    pub path: &'a str,
    /// The headers of the request.
    pub headers: &'a HeaderMap,
    /// Requests to this host so far, this one included.
    pub number: u64,
    /// Requests to the address so far, this one included.
    pub number_at_address: u64,
    /// From which the host's content is drawn.
    pub chance: Chance,
    /// Some of the host's ordinary pages.
    pub ordinary: &'a [String],
    /// What the web's clock shows.
    pub now: Time,
    /// When the web began.
    pub begin: Time,
}

impl<'a> Asked<'a> {
    /// What stands after `/ROW/` in the path.
    fn below(&self, row: Row) -> Option<&'a str> {
        self.path.strip_prefix('/')?.strip_prefix(row.name())?.strip_prefix('/')
    }

    /// The form that `/ROW/FORM…` names, and what follows it.
    fn form(&self, row: Row) -> Option<(&'static str, &'a str)> {
        let below = self.below(row)?;
        let end = below.find(['/', '?']).unwrap_or(below.len());
        let form = row.forms().iter().find(|form| form.name == &below[..end])?;
        Some((form.name, &below[end..]))
    }

    /// `scheme://name:port` of another host of this web.
    fn origin(&self, host: &str) -> String {
        format!("{}{host}{}", self.scheme, self.port)
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }
}

/// What a hostile host does about a request.
#[derive(Debug)]
pub(crate) struct Act {
    /// Under which name it is counted; `None` for what is no misbehaviour.
    pub form: Option<&'static str>,
    /// What is sent.
    pub what: What,
}

/// What is sent.
#[derive(Debug)]
pub(crate) enum What {
    /// An answer by the rules of HTTP.
    Answer(Answer),
    /// Bytes.
    Script(Script),
}

impl Act {
    fn answer(form: &'static str, answer: Answer) -> Option<Act> {
        Some(Act { form: Some(form), what: What::Answer(answer) })
    }

    fn page(form: &'static str, asked: &Asked, body: &str) -> Option<Act> {
        Act::answer(form, Answer::found(HTML_TYPE, script::page(form, body), asked.begin))
    }

    fn script(form: &'static str, script: Script) -> Option<Act> {
        Some(Act { form: Some(form), what: What::Script(script) })
    }

    fn front(answer: Answer) -> Act {
        Act { form: None, what: What::Answer(answer) }
    }
}
