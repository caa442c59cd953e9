//! Webhooks: batches of events as CloudEvents, signed; or a message for the people in a chat.

use hyper::Method;
use skep_archive::system_clock;

use super::batch::{Batch, Told};
use super::carrier::Trouble;
use super::http::{self, Sent};
use super::sign::signature;
use super::template::Template;

pub struct Webhook {
    url: String,
    template: Template,
    secret: Option<String>,
    token: Option<String>,
}

impl Webhook {
    pub fn new(url: &str, template: Template, secret: Option<String>, token: Option<String>) -> Webhook {
        Webhook { url: url.to_owned(), template, secret, token }
    }

    pub async fn carry(&mut self, batch: &Batch, events: &[Told]) -> Result<(), Trouble> {
        let (Some(first), Some(last)) = (events.first(), events.last()) else { return Ok(()) };
        let id = format!("{}-{}-{}", batch.node, first.number, last.number);
        let message = self.template.message(&self.url, &id, events);
        let now_ms = system_clock();
        let timestamp = now_ms.div_euclid(1000);
        let mut headers = vec![("webhook-id", id.clone()), ("webhook-timestamp", timestamp.to_string())];
        if let Some(secret) = &self.secret {
            headers.push(("webhook-signature", signature(secret, &id, timestamp, &message.body)));
        }
        let answered = http::send(
            Sent {
                method: if message.put { Method::PUT } else { Method::POST },
                url: message.url,
                content_type: message.content_type,
                token: self.token.clone(),
                headers,
                body: message.body,
            },
            now_ms,
        );
        let answered = answered.await.map_err(Trouble::later)?;
        let said = answered.text.trim().chars().take(200).collect::<String>();
        let why = format!("the receiver answered {}{}{said}", answered.status, if said.is_empty() { "" } else { ": " });
        match answered.status {
            200..=299 => Ok(()),
            // A message that is known already.
            409 if self.template == Template::Matrix => Ok(()),
            400 | 413 | 422 => Err(Trouble::Refused { why }),
            410 => Err(Trouble::Over { why }),
            300..=399 => {
                Err(Trouble::later(format!("{why}; redirects are not followed: name the address it leads to")))
            }
            _ => Err(Trouble::Later { why, asked_ms: answered.retry_after_ms }),
        }
    }
}
