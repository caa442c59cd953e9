//! The access log, in the form that every analyser reads (Combined Log Format), with the time taken at the end. Pure.

use skep_warc::date;
use std::net::IpAddr;
use std::time::Duration;

/// One request that was answered.
pub struct Line<'a> {
    /// Who asked.
    pub peer: IpAddr,
    /// When, in milliseconds since 1970.
    pub time_ms: i64,
    /// How.
    pub method: &'a str,
    /// For what, with the query.
    pub target: &'a str,
    /// The status it got.
    pub status: u16,
    /// Bytes of the body.
    pub bytes: u64,
    /// The header Referer.
    pub referer: &'a str,
    /// The header User-Agent.
    pub agent: &'a str,
    /// How long it took.
    pub took: Duration,
}

/// Characters of a request that a line shows; the rest is cut.
const SHOWN_CHARS_MAX: usize = 2048;

impl std::fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let bytes = if self.bytes == 0 { "-".to_owned() } else { self.bytes.to_string() };
        write!(
            f,
            "{} - - [{}] \"{} {} HTTP/1.1\" {} {bytes} \"{}\" \"{}\" {:.4}",
            self.peer,
            clock(self.time_ms),
            Safe(self.method),
            Safe(self.target),
            self.status,
            Safe(self.referer),
            Safe(self.agent),
            self.took.as_secs_f64()
        )
    }
}

fn clock(ms: i64) -> String {
    const MONTHS: [&str; 12] = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let digits = date::timestamp14(ms);
    let part = |from: usize, to: usize| digits.get(from..to).unwrap_or("00");
    let month = part(4, 6).parse::<usize>().ok().and_then(|month| MONTHS.get(month.wrapping_sub(1))).unwrap_or(&"Jan");
    format!("{}/{month}/{}:{}:{}:{} +0000", part(6, 8), part(0, 4), part(8, 10), part(10, 12), part(12, 14))
}

/// Text from a client: it cannot end its field or its line.
struct Safe<'a>(&'a str);

impl std::fmt::Display for Safe<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.0.is_empty() {
            return f.write_str("-");
        }
        for c in self.0.chars().take(SHOWN_CHARS_MAX) {
            match c {
                '"' => f.write_str("%22")?,
                '\\' => f.write_str("%5C")?,
                c if c.is_control() => write!(f, "%{:02X}", c as u32)?,
                c => std::fmt::Write::write_char(f, c)?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line() {
        let line = Line {
            peer: "192.0.2.1".parse().unwrap(),
            time_ms: 1_390_767_984_000,
            method: "GET",
            target: "/web/2014/http://a/\"\n",
            status: 200,
            bytes: 5,
            referer: "",
            agent: "curl",
            took: Duration::from_micros(1500),
        };
        let text = "192.0.2.1 - - [26/Jan/2014:20:26:24 +0000] \"GET /web/2014/http://a/%22%0A HTTP/1.1\" 200 5 \"-\" \"curl\" 0.0015";
        assert_eq!(line.to_string(), text);
    }
}
