//! Mails: what changed since the last one, together. The text names the first events, the attachment has all of them.

use std::collections::BTreeMap;
use std::fmt::Write;

use lettre::message::header::ContentType;
use lettre::message::{Attachment, Mailbox, MultiPart, SinglePart};
use lettre::{AsyncSmtpTransport, AsyncTransport, Message, Tokio1Executor};
use skep_warc::date;

use super::batch::{Batch, Told};
use super::carrier::Trouble;
use super::template;
use crate::event::Details;
use crate::limits::MAIL_ROWS_MAX;

type Transport = AsyncSmtpTransport<Tokio1Executor>;

pub struct Smtp {
    url: String,
    from: String,
    to: Vec<String>,
    transport: Option<Transport>,
}

/// Says what is wrong with a server or with addresses, if something is.
pub fn check(url: &str, from: &str, to: &[String]) -> Result<(), String> {
    Transport::from_url(url).map_err(|error| said(&error))?;
    std::iter::once(from).chain(to.iter().map(String::as_str)).try_for_each(|text| mailbox(text).map(drop))
}

impl Smtp {
    pub fn new(url: &str, from: &str, to: &[String]) -> Smtp {
        Smtp { url: url.to_owned(), from: from.to_owned(), to: to.to_vec(), transport: None }
    }

    pub fn let_go(&mut self) {
        self.transport = None;
    }

    pub async fn carry(&mut self, batch: &Batch, events: &[Told]) -> Result<(), Trouble> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
        let id = format!("<{}.{}-{}@skep.invalid>", batch.node, first.number, last.number);
        let mail = mail(&self.from, &self.to, id, events).map_err(Trouble::later)?;
        let transport = match &mut self.transport {
            Some(transport) => transport,
            none => none.insert(Transport::from_url(&self.url).map_err(Trouble::later)?.build()),
        };
        transport.send(mail).await.map(|_| ()).map_err(|error| {
            let (why, code) = (said(&error), error.status().map(|code| code.to_string()));
            match is_about_the_mail(code.as_deref().unwrap_or_default(), &why) {
                true => Trouble::Refused { why },
                false => Trouble::later(why),
            }
        })
    }
}

/// Whether a server refuses a mail for what is in it or for its length, and not for whom it is from or to, which somebody has to mend.
/// By the enhanced status (RFC 3463) where there is one.
fn is_about_the_mail(code: &str, said: &str) -> bool {
    let is_enhanced = |word: &&str| {
        let mut parts = word.split('.');
        let number = |part: Option<&str>| {
            part.is_some_and(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        };
        parts.next() == Some("5") && number(parts.next()) && number(parts.next()) && parts.next().is_none()
    };
    match said.split(|c: char| !(c.is_ascii_digit() || c == '.')).find(is_enhanced) {
        Some(status) => matches!(status, "5.2.3" | "5.3.4") || status.starts_with("5.6."),
        None => matches!(code, "552" | "554"),
    }
}

fn said(error: &lettre::transport::smtp::Error) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

fn mailbox(text: &str) -> Result<Mailbox, String> {
    text.parse::<Mailbox>().map_err(|error| format!("{text}: {error}"))
}

fn mail(from: &str, to: &[String], id: String, events: &[Told]) -> Result<Message, String> {
    let mut builder = Message::builder().from(mailbox(from)?).subject(subject(events)).message_id(Some(id));
    for to in to {
        builder = builder.to(mailbox(to)?);
    }
    let all: String = events.iter().map(|event| format!("{}\n", event.line)).collect();
    let kind = ContentType::parse("application/x-ndjson").map_err(|error| error.to_string())?;
    let parts = MultiPart::mixed()
        .singlepart(SinglePart::plain(text(events)))
        .singlepart(Attachment::new("changes.ndjson".to_owned()).body(all, kind));
    builder.multipart(parts).map_err(|error| error.to_string())
}

/// One line; what pages say of themselves stays out of it.
fn subject(events: &[Told]) -> String {
    let hosts: BTreeMap<String, usize> = events.iter().fold(BTreeMap::new(), |mut hosts, event| {
        *hosts.entry(event.read().host).or_default() += 1;
        hosts
    });
    let most = hosts.iter().max_by_key(|(_, count)| **count).map_or("", |(host, _)| host);
    let others = hosts.len().saturating_sub(1);
    let others = if others > 0 { format!(" and {others} more") } else { String::new() };
    let changes = if events.len() == 1 { "change" } else { "changes" };
    format!("{} {changes} at {most}{others}", events.len())
}

fn text(events: &[Told]) -> String {
    let mut out = String::new();
    for event in events.iter().take(MAIL_ROWS_MAX) {
        let Details { meta, .. } = event.read();
        let title = meta.and_then(|meta| meta.title).map(|title| format!("  {title}\n")).unwrap_or_default();
        let line = template::line(event, str::to_owned);
        let _in_memory = write!(out, "{}  {line}\n{title}  {}\n\n", date::rfc3339(event.time_ms), event.key_text());
    }
    let more = events.len().saturating_sub(MAIL_ROWS_MAX);
    if more > 0 {
        let _in_memory = writeln!(out, "and {more} more, all of them in the attachment");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_refused_for_what_it_is_is_told_from_who_is_refused() {
        for (code, said, about) in [
            ("552", "permanent error (552): message exceeds the size limit", true),
            ("552", "permanent error (552): 5.3.4 Message size exceeds fixed limit", true),
            ("552", "permanent error (552): 5.2.2 mailbox full", false),
            ("554", "permanent error (554): 5.6.0 content rejected", true),
            ("554", "permanent error (554): 5.7.1 <me@a.test>: Relay access denied", false),
            ("554", "permanent error (554): rejected as spam", true),
            ("550", "permanent error (550): 5.1.1 no such user at 10.0.0.1", false),
            ("550", "permanent error (550): no such user", false),
            ("451", "transient error (451): 4.3.0 try again", false),
            ("", "network error: connection refused", false),
        ] {
            assert_eq!(is_about_the_mail(code, said), about, "{said}");
        }
    }
}
