//! The table of the hostile web: 48 rows, what the server does in each, and how it proves that it did.

use serde::{Deserialize, Serialize};

/// A row of the hostile web, by number and name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(missing_docs)] // the table below says what each is
pub enum Row {
    Maze,
    Calendar,
    Segments,
    Sessions,
    Subdomains,
    Redirects,
    Refreshes,
    Bombs,
    Nested,
    Mislabelled,
    Endless,
    Slow,
    Silent,
    LengthLong,
    LengthShort,
    Lengths,
    Chunks,
    Headers,
    StatusLines,
    Interim,
    PrivateAddresses,
    Ports,
    RobotsSize,
    RobotsRedirects,
    RobotsRules,
    LongUrls,
    ControlBytes,
    Credentials,
    Cookies,
    Markup,
    Patterns,
    Sitemaps,
    Charsets,
    SoftMissing,
    Mirrors,
    Challenges,
    Refusals,
    ProviderBan,
    Dns,
    DnsThrottle,
    Tls,
    BlackHole,
    PortsExhausted,
    ClockJumps,
    Portal,
    Opaque,
    Paths,
    Peers,
}

/// Where a row takes place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Side {
    /// In what the web server sends.
    Http,
    /// In the TLS handshake.
    Tls,
    /// In the answers of the name server.
    Dns,
    /// At the visitor, for this reason; no server can do it.
    Visitor(&'static str),
}

/// One way in which a row misbehaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Form {
    /// Its name, and what it is counted under.
    pub name: &'static str,
    /// It takes the whole host, not one address of it.
    pub whole: bool,
}

struct Line {
    row: Row,
    name: &'static str,
    side: Side,
    does: &'static str,
    proof: &'static str,
    forms: &'static [Form],
}

const fn at(name: &'static str) -> Form {
    Form { name, whole: false }
}

const fn host(name: &'static str) -> Form {
    Form { name, whole: true }
}

const fn http(row: Row, name: &'static str, does: &'static str, proof: &'static str, forms: &'static [Form]) -> Line {
    Line { row, name, side: Side::Http, does, proof, forms }
}

const BYTES: &str = "`bytes` sent, `forms` per form";
const HELD: &str = "`held_ms` and `bytes` of what was held open, `given_up` by the visitor";
const COUNTED: &str = "`forms`: how often each was answered";

const TABLE: [Line; 48] = [
    http(
        Row::Maze,
        "maze",
        "pages without end, each the same on every visit, Markov text, links deeper in and rarely out; `ms` drips them",
        "`forms`: pages of the maze answered, beside `requests` in all",
        &[at("maze")],
    ),
    http(
        Row::Calendar,
        "calendar",
        "a calendar without end in both directions, and a shop whose filters combine",
        COUNTED,
        &[at("calendar"), at("facets")],
    ),
    http(
        Row::Segments,
        "segments",
        "relative links that repeat segments of the path, and paths that only get deeper",
        COUNTED,
        &[at("repeating"), at("deepening")],
    ),
    http(
        Row::Sessions,
        "sessions",
        "every link carries a session id that is new on every visit, in the query, the path or a random parameter",
        COUNTED,
        &[at("query"), at("path"), at("random")],
    ),
    http(
        Row::Subdomains,
        "subdomains",
        "any name below the host's answers the same page, which links to ten new names",
        "`forms`: answers to names below the host",
        &[at("subdomains")],
    ),
    http(
        Row::Redirects,
        "redirects",
        "redirects in a circle, to itself, without end, to itself until a cookie comes, across both schemes, without target",
        COUNTED,
        &[at("circle"), at("itself"), at("chain"), at("cookie"), at("growing"), at("nowhere")],
    ),
    http(
        Row::Refreshes,
        "refreshes",
        "meta refreshes, `Refresh` headers and scripts that lead in circles and on without end",
        COUNTED,
        &[at("circle"), at("chain"), at("header"), at("script")],
    ),
    http(
        Row::Bombs,
        "bombs",
        "small bodies that decode to `bytes` (1 GiB): gzip, deflate, brotli, zstd; and a bomb at the address of an image",
        BYTES,
        &[at("gzip"), at("deflate"), at("br"), at("zstd"), at("image.png")],
    ),
    http(
        Row::Nested,
        "nested",
        "encodings within encodings: two, three, ten layers, and a bomb below a layer",
        BYTES,
        &[at("two"), at("three"), at("ten"), at("bomb"), at("list")],
    ),
    http(
        Row::Mislabelled,
        "mislabelled",
        "an encoding that is not the one named, none where one is named, one where none is named, and cut ones",
        BYTES,
        &[
            at("gzip-is-plain"),
            at("plain-is-gzip"),
            at("br-is-gzip"),
            at("deflate-is-raw"),
            at("gzip-is-cut"),
            at("gzip-then-more"),
            at("unknown"),
        ],
    ),
    http(
        Row::Endless,
        "endless",
        "bodies that never end: zeros by connection, by chunks, as a page, as a radio stream",
        "`bytes` sent before the visitor left, `given_up`",
        &[at("zeros"), at("chunks"), at("page"), at("radio")],
    ),
    http(
        Row::Slow,
        "slow",
        "one byte per `ms` (10 s): in the body, in the head, in a page's chunks; or no first byte",
        HELD,
        &[at("body"), at("head"), at("chunks"), at("first-byte")],
    ),
    http(
        Row::Silent,
        "silent",
        "a connection is taken and nothing is ever said: no TLS handshake (whole host), no answer",
        HELD,
        &[at("plain"), host("handshake")],
    ),
    http(
        Row::LengthLong,
        "length-long",
        "`Content-Length` is more than comes: the connection closes, is reset, or stays open for `ms`",
        HELD,
        &[at("closed"), at("reset"), at("held")],
    ),
    http(
        Row::LengthShort,
        "length-short",
        "`Content-Length` is less than comes: text follows, or a whole second answer",
        BYTES,
        &[at("text"), at("answer"), at("nothing-declared")],
    ),
    http(
        Row::Lengths,
        "lengths",
        "lengths that contradict: beside chunks, twice, equal and not, negative, too large for a number, words",
        COUNTED,
        &[
            at("and-chunked"),
            at("twice"),
            at("twice-equal"),
            at("list"),
            at("negative"),
            at("plus"),
            at("huge"),
            at("words"),
            at("empty"),
        ],
    ),
    http(
        Row::Chunks,
        "chunks",
        "chunk sizes that are no numbers or too large, bare line feeds, no last chunk, huge extensions and trailers",
        BYTES,
        &[
            at("no-number"),
            at("overflow"),
            at("bare-lf"),
            at("no-last"),
            at("extension"),
            at("trailers"),
            at("long-size"),
            at("cut"),
        ],
    ),
    http(
        Row::Headers,
        "headers",
        "no colon, NUL, bare LF and CR, blanks in names, folded lines, 10,000 lines, one of `bytes` (1 MB), no end",
        BYTES,
        &[
            at("no-colon"),
            at("nul"),
            at("bare-lf"),
            at("bare-cr"),
            at("blanks"),
            at("folded"),
            at("many"),
            at("long"),
            at("endless"),
            at("bytes"),
        ],
    ),
    http(
        Row::StatusLines,
        "status-lines",
        "HTTP/0.9, ICY, HTTP/2.0 in clear, garbage, status 999, 0, 99, 1000, words, no reason, blank lines first",
        COUNTED,
        &[
            at("0.9"),
            at("icy"),
            at("2.0"),
            at("garbage"),
            at("999"),
            at("0"),
            at("99"),
            at("1000"),
            at("words"),
            at("glued"),
            at("no-reason"),
            at("blank-lines"),
        ],
    ),
    http(
        Row::Interim,
        "interim",
        "10,000 interim answers, interim answers without end, 101 unasked, 204 and 304 with a body",
        BYTES,
        &[at("flood"), at("endless"), at("upgrade"), at("204-body"), at("304-body"), at("hints")],
    ),
    Line {
        row: Row::PrivateAddresses,
        name: "private-addresses",
        side: Side::Dns,
        does: "names and redirects lead to loopback, private, link-local, CGNAT, metadata, mapped and NAT64 addresses, \
               and a name changes its address between two questions",
        proof: "`dns` counts the answers by form; `forms.reached` and the web's own `reached-by-address` stay 0",
        forms: &[
            at("loopback"),
            at("private"),
            at("link-local"),
            at("metadata"),
            at("cgnat"),
            at("zero"),
            at("mapped"),
            at("nat64"),
            at("six"),
            at("unique-local"),
            at("rebinding"),
            at("mixed"),
            at("redirect"),
            at("literals"),
        ],
    },
    http(
        Row::Ports,
        "ports",
        "links and redirects to ports of other protocols; some are listened on, and count who comes",
        "`forms.links`, and `forms.bad-port` counts connections to such ports, which stay 0",
        &[at("links"), at("redirect")],
    ),
    http(
        Row::RobotsSize,
        "robots-size",
        "a robots.txt of `bytes` (100 MB), without end, dripping, of random bytes, of HTML, compressed as a bomb",
        "`bytes` sent before the visitor left, `forms`",
        &[host("huge"), host("endless"), host("slow"), host("binary"), host("html"), host("bomb"), host("one-line")],
    ),
    http(
        Row::RobotsRedirects,
        "robots-redirects",
        "a robots.txt that redirects to itself, in a circle, without end, to another host, until a cookie comes",
        COUNTED,
        &[host("itself"), host("circle"), host("chain"), host("elsewhere"), host("cookie")],
    ),
    http(
        Row::RobotsRules,
        "robots-rules",
        "a robots.txt of 100,000 rules, and of patterns with many stars against addresses that nearly match",
        COUNTED,
        &[host("many"), host("stars")],
    ),
    http(
        Row::LongUrls,
        "long-urls",
        "links of 9 kB, 64 kB and 2 MB, a redirect to one, `data:`, `javascript:`, `blob:` and other schemes",
        "`bytes`; `forms.too-long-asked` counts requests with a path above 8,192 bytes",
        &[at("links"), at("redirect"), at("schemes")],
    ),
    http(
        Row::ControlBytes,
        "control-bytes",
        "line breaks, NUL, tabs and blanks in links and in `Location`, raw and percent-encoded",
        "`forms`; `forms.injected` counts requests that carry the header that was smuggled in, which stay 0",
        &[at("links"), at("redirect")],
    ),
    http(
        Row::Credentials,
        "credentials",
        "user names and passwords in links, cookies and a demand for a password before redirects to another name",
        "`forms`; `forms.leaked` counts requests at the other name that carry a secret, which stay 0",
        &[at("links"), at("redirect"), at("demand")],
    ),
    http(
        Row::Cookies,
        "cookies",
        "1,000 cookies at once, one of 1 MB, a hundred new ones on every page, for foreign domains",
        "`bytes`; `forms.cookies-returned` counts requests whose `Cookie` is above 8 kB, which stay 0",
        &[at("many"), at("giant"), at("growing"), at("foreign")],
    ),
    http(
        Row::Markup,
        "markup",
        "ten million tags, 100,000 levels, an attribute of 5 MB, a million links, a comment and a tag without end",
        BYTES,
        &[at("tags"), at("nesting"), at("attribute"), at("links"), at("comment"), at("attributes"), at("open-tag")],
    ),
    http(
        Row::Patterns,
        "patterns",
        "texts that make careless regular expressions and parsers take for ever",
        BYTES,
        &[at("text"), at("entities"), at("css"), at("srcset"), at("headers")],
    ),
    http(
        Row::Sitemaps,
        "sitemaps",
        "entities that expand, entities from files, an index that names itself, an index without end, a bomb of `bytes`, \
         a million addresses, addresses of other hosts",
        BYTES,
        &[
            at("entities.xml"),
            at("external.xml"),
            at("itself.xml"),
            at("chain.xml"),
            at("bomb.xml.gz"),
            at("million.xml"),
            at("nested.xml"),
            at("foreign.xml"),
        ],
    ),
    http(
        Row::Charsets,
        "charsets",
        "UTF-16 without mark, UTF-7, a charset named that is not the text's, two charsets in a page, unknown names",
        COUNTED,
        &[
            at("utf-16"),
            at("utf-7"),
            at("latin-as-utf-8"),
            at("utf-8-as-latin"),
            at("mixed"),
            at("unknown"),
            at("shift-jis"),
        ],
    ),
    http(
        Row::SoftMissing,
        "soft-missing",
        "200 and the same page, with links to more that is not there, for every address",
        "`forms`: answers for what is not there",
        &[host("missing")],
    ),
    http(
        Row::Mirrors,
        "mirrors",
        "many sites that answer every address alike and link to each other",
        COUNTED,
        &[host("mirror")],
    ),
    http(
        Row::Challenges,
        "challenges",
        "challenge pages instead of content, in the ways of those who sell them, and other words for known crawlers",
        "`forms`: challenges answered",
        &[host("moment"), host("proof-of-work"), host("denied"), host("captcha"), host("cloaked")],
    ),
    http(
        Row::Refusals,
        "refusals",
        "429 and 503 to all but the first pages: without `Retry-After`, in `ms`, as a date, of a year, past, of words",
        "`forms`: refusals; the auditor judges who comes back when",
        &[host("bare"), host("seconds"), host("date"), host("year"), host("past"), host("words"), host("unavailable")],
    ),
    http(
        Row::ProviderBan,
        "provider-ban",
        "after so many requests to one address all sites on it refuse: by 403, by 429, by reset, by silence",
        "`forms`: refusals on each of the hosts",
        &[host("forbidden"), host("too-many"), host("reset"), host("silence")],
    ),
    Line {
        row: Row::Dns,
        name: "dns",
        side: Side::Dns,
        does: "SERVFAIL, REFUSED, no answer, a TTL of a second, CNAME loops and chains, 200 addresses, answers that are \
               cut, garbage, forged or late, an address for names that are not there",
        proof: "`dns`: answers of the name server by form",
        forms: &[
            host("servfail"),
            host("refused"),
            host("nothing"),
            host("short-ttl"),
            host("cname-loop"),
            host("cname-chain"),
            host("many"),
            host("cut"),
            host("garbage"),
            host("forged"),
            host("late"),
            host("hijack"),
            host("empty"),
        ],
    },
    Line {
        row: Row::DnsThrottle,
        name: "dns-throttle",
        side: Side::Dns,
        does: "the name server refuses, or no longer hears, more than so many questions a second",
        proof: "`dns.throttled`",
        forms: &[host("refuse"), host("drop")],
    },
    Line {
        row: Row::Tls,
        name: "tls",
        side: Side::Tls,
        does: "certificates expired, not yet valid, self-signed, for another host, for none, in a chain of 100 kB; \
               handshakes that end in an alert, in clear text, in a close, or drip",
        proof: "`forms`: handshakes begun in each form; `requests` when the visitor went on",
        forms: &[
            host("expired"),
            host("future"),
            host("self-signed"),
            host("wrong-host"),
            host("no-name"),
            host("long-chain"),
            host("legacy"),
            host("unrecognised"),
            host("clear-text"),
            host("closed"),
            host("dripping"),
        ],
    },
    Line {
        row: Row::BlackHole,
        name: "black-hole",
        side: Side::Dns,
        does: "the name has an IPv6 address where connections are never taken, and an IPv4 address that works",
        proof: "`dns.aaaa` counts the answers with that address, `requests` those that came by IPv4",
        forms: &[host("six")],
    },
    Line {
        row: Row::PortsExhausted,
        name: "ports-exhausted",
        side: Side::Visitor("ports and descriptors run out at the visitor; start it with few (`ulimit -n`)"),
        does: "nothing",
        proof: "the visitor's own",
        forms: &[],
    },
    Line {
        row: Row::ClockJumps,
        name: "clock-jumps",
        side: Side::Visitor("it is the visitor's clock that jumps; the web's own is set with `Web::set_clock`"),
        does: "nothing",
        proof: "the auditor judges the pace by its own clock, whatever the visitor's shows",
        forms: &[],
    },
    http(
        Row::Portal,
        "portal",
        "every address answers the log-in page of a network, or a redirect to it; switched on for all hosts at once",
        "`forms` on every host",
        &[host("page"), host("redirect")],
    ),
    http(
        Row::Opaque,
        "opaque",
        "files that look like malware, archives with hostile names, types that lie about what is inside",
        COUNTED,
        &[
            at("eicar"),
            at("program.exe"),
            at("page.jpg"),
            at("names.tar"),
            at("program.html"),
            at("polyglot.gif"),
            at("sniff"),
        ],
    ),
    http(
        Row::Paths,
        "paths",
        "addresses that are dangerous as names of files: dots, NUL, devices, backslashes, 5,000 letters; attachment names",
        "`forms`: the addresses answered",
        &[at("links"), at("attachment")],
    ),
    Line {
        row: Row::Peers,
        name: "peers",
        side: Side::Visitor("peers that feed junk speak the protocol between nodes, which no web server speaks"),
        does: "nothing",
        proof: "the tests of the ring",
        forms: &[],
    },
];

impl Row {
    /// All rows, in order.
    pub fn all() -> impl ExactSizeIterator<Item = Row> {
        TABLE.iter().map(|line| line.row)
    }

    /// From 1.
    pub fn number(self) -> usize {
        self as usize + 1
    }

    /// As it is written in plans.
    pub fn name(self) -> &'static str {
        self.line().name
    }

    /// Where it takes place.
    pub fn side(self) -> Side {
        self.line().side
    }

    /// What the server does.
    pub fn does(self) -> &'static str {
        self.line().does
    }

    /// How the server proves that it did, in the words of [`Proof`](crate::Proof).
    pub fn proof(self) -> &'static str {
        self.line().proof
    }

    /// In how many ways.
    pub fn forms(self) -> &'static [Form] {
        self.line().forms
    }

    fn line(self) -> &'static Line {
        &TABLE[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_names_each_row_as_plans_do() {
        for (place, line) in TABLE.iter().enumerate() {
            assert_eq!(line.row as usize, place, "{}", line.name);
            assert_eq!(serde_json::to_value(line.row).unwrap(), line.name);
            assert!(!line.does.is_empty() && !line.proof.is_empty());
            assert_eq!(line.forms.is_empty(), matches!(line.side, Side::Visitor(_)), "{}", line.name);
            let mut names: Vec<&str> = line.forms.iter().map(|form| form.name).collect();
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), line.forms.len(), "{}: two forms of one name", line.name);
        }
        assert_eq!(Row::Peers.number(), 48);
    }
}
