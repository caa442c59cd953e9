//! What is sent to a webhook: all that is known, for programs; or a few lines, for people in a chat.
//!
//! Text of pages reaches people here, so nothing in it may call everybody in a room, or look like a link that it is not.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::batch::Told;
use crate::limits::{CHAT_CHARS_MAX, CHAT_EVENTS_MAX};

/// For whom.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Template {
    /// Programs: a batch of CloudEvents.
    #[default]
    Json,
    /// Slack, Mattermost, Rocket.Chat: `{"text": …}`.
    Slack,
    /// Discord: `{"content": …}`.
    Discord,
    /// Matrix: the address of a room's `send/m.room.message`.
    Matrix,
    /// Teams: an adaptive card.
    Teams,
    /// ntfy: the address of a topic.
    Ntfy,
}

/// What goes out.
pub struct Message {
    pub put: bool,
    pub url: String,
    pub content_type: &'static str,
    pub body: Vec<u8>,
}

impl Template {
    /// All of them.
    pub const ALL: [Template; 6] =
        [Template::Json, Template::Slack, Template::Discord, Template::Matrix, Template::Teams, Template::Ntfy];

    /// As typed.
    pub fn name(self) -> &'static str {
        match self {
            Template::Json => "json",
            Template::Slack => "slack",
            Template::Discord => "discord",
            Template::Matrix => "matrix",
            Template::Teams => "teams",
            Template::Ntfy => "ntfy",
        }
    }

    /// The one of this name.
    pub fn from_name(name: &str) -> Option<Template> {
        Template::ALL.into_iter().find(|template| template.name() == name)
    }

    /// What is sent to `url` about these events; `id` names it.
    pub(super) fn message(self, url: &str, id: &str, events: &[Told]) -> Message {
        let mut message =
            Message { put: false, url: url.to_owned(), content_type: "application/json", body: Vec::new() };
        if self == Template::Json {
            message.content_type = "application/cloudevents-batch+json; charset=utf-8";
            message.body.push(b'[');
            for (number, event) in events.iter().enumerate() {
                message.body.extend_from_slice(if number > 0 { b",\n" } else { b"" });
                message.body.extend_from_slice(event.line.as_bytes());
            }
            message.body.push(b']');
            return message;
        }
        let text = lines(events, |text| self.escape(text));
        let value = match self {
            Template::Json => Value::Null,
            Template::Slack => json!({ "text": text, "unfurl_links": false, "unfurl_media": false }),
            Template::Discord => json!({ "content": text, "allowed_mentions": { "parse": [] } }),
            Template::Matrix => {
                (message.put, message.url) = (true, format!("{}/{}", url.trim_end_matches('/'), id.replace(':', "-")));
                json!({ "msgtype": "m.notice", "body": text })
            }
            Template::Teams => json!({ "type": "message", "attachments": [{
                "contentType": "application/vnd.microsoft.card.adaptive",
                "content": { "type": "AdaptiveCard", "version": "1.4", "$schema": "http://adaptivecards.io/schemas/adaptive-card.json",
                    "body": [{ "type": "TextBlock", "wrap": true, "text": text }] },
            }] }),
            Template::Ntfy => {
                let (server, topic) = url.trim_end_matches('/').rsplit_once('/').unwrap_or((url, ""));
                message.url = format!("{server}/");
                let click = events.first().map(|event| event.url.as_str());
                json!({ "topic": topic, "title": title(events), "message": text, "click": click })
            }
        };
        message.body = value.to_string().into_bytes();
        message
    }

    fn escape(self, text: &str) -> String {
        match self {
            Template::Slack => text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;"),
            Template::Discord | Template::Teams => {
                let marked = |c: char| matches!(c, '\\' | '*' | '_' | '~' | '`' | '|' | '[' | ']' | '<' | '>' | '#');
                text.chars().fold(String::new(), |mut out, c| {
                    out.extend(marked(c).then_some('\\'));
                    out.push(c);
                    out
                })
            }
            _ => text.to_owned(),
        }
    }
}

/// What it is about, in a few words.
pub(super) fn title(events: &[Told]) -> String {
    match events {
        [one] => format!("{}: {}", names(one), one.url),
        many => format!("{} changes", many.len()),
    }
}

fn names(event: &Told) -> String {
    event.classes.iter().map(|class| class.name()).collect::<Vec<_>>().join(" ")
}

/// One event in one line.
pub(super) fn line(event: &Told, escape: impl Fn(&str) -> String) -> String {
    let details = event.read();
    let share = if event.share > 0 { format!(" {:.1}%", f64::from(event.share) / 100.0) } else { String::new() };
    let said = details.http.redirect.or(details.reason).or(details.text.map(|text| text.snippet)).unwrap_or_default();
    let said: String = said.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(120).collect();
    let said = if said.is_empty() { said } else { format!(" – {}", escape(&said)) };
    // A URL is whole or it is another one; its own form has no blanks, and none of the signs that chats take for a link but these.
    let url = event.url.replace('<', "%3C").replace('>', "%3E").replace("](", "%5D(");
    format!("{}{share} {url}{said}", names(event))
}

fn lines(events: &[Told], escape: impl Fn(&str) -> String) -> String {
    let (mut text, mut shown) = (String::new(), 0);
    for event in events.iter().take(CHAT_EVENTS_MAX) {
        let line = line(event, &escape);
        if text.chars().count() + line.chars().count() > CHAT_CHARS_MAX {
            break;
        }
        text.push_str(if shown > 0 { "\n" } else { "" });
        text.push_str(&line);
        shown += 1;
    }
    match (shown, events.len() - shown) {
        (_, 0) => text,
        (0, more) => format!("{more} changes"),
        (_, more) => format!("{text}\nand {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skep_page::compare::{Class, Classes};

    fn told(number: u64, snippet: &str) -> Told {
        let details = json!({ "text": { "added_tokens": 1, "removed_tokens": 0, "blocks_added": 1, "blocks_removed": 0,
            "blocks_moved": 0, "snippet": snippet } });
        Told {
            number,
            key: "c41f22ab:1:17".parse().unwrap(),
            kind: "page.changed",
            classes: Classes::of(Class::TextMinor),
            share: 123,
            time_ms: 5,
            url: format!("http://example.org/{number}"),
            details: details.to_string(),
            line: format!("{{\"number\":{number}}}"),
            links: Vec::new(),
        }
    }

    #[test]
    fn programs_get_all_and_people_a_few_lines() {
        let events: Vec<Told> = (0..25).map(|n| told(n, "@everyone <!channel> look [here](http://evil)")).collect();
        for template in Template::ALL {
            let message = template.message("https://chat.example/hook/topic", "n:1-2", &events);
            let body: Value = serde_json::from_slice(&message.body).unwrap();
            let text = match template {
                Template::Json => {
                    assert_eq!(body.as_array().unwrap().len(), 25);
                    assert_eq!(body[3]["number"], 3);
                    continue;
                }
                Template::Slack => body["text"].as_str().unwrap(),
                Template::Discord => {
                    assert_eq!(body["allowed_mentions"]["parse"], json!([]));
                    body["content"].as_str().unwrap()
                }
                Template::Matrix => {
                    assert_eq!((message.put, message.url.as_str()), (true, "https://chat.example/hook/topic/n-1-2"));
                    body["body"].as_str().unwrap()
                }
                Template::Teams => body["attachments"][0]["content"]["body"][0]["text"].as_str().unwrap(),
                Template::Ntfy => {
                    assert_eq!(
                        (message.url.as_str(), body["topic"].as_str()),
                        ("https://chat.example/hook/", Some("topic"))
                    );
                    body["message"].as_str().unwrap()
                }
            };
            assert!(text.starts_with("text.minor 1.2% http://example.org/0 – "), "{text}");
            assert!(text.ends_with("and 15 more"), "{text}");
            assert!(text.chars().count() <= 2_000);
            if template == Template::Slack {
                assert!(!text.contains('<'), "{text}");
            }
            if template == Template::Discord {
                assert!(!text.contains("[here]("), "{text}");
            }
            assert_eq!(Template::from_name(template.name()), Some(template));
        }
        assert_eq!(title(&events[..1]), "text.minor: http://example.org/0");
        let named = Told { url: "http://[::1]/[x](http://evil)".into(), ..told(0, "") };
        assert_eq!(line(&named, str::to_owned), "text.minor 1.2% http://[::1]/[x%5D(http://evil)");
    }
}
