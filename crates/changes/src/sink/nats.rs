//! NATS JetStream: one message an event, named by the event's key, so that the server drops one that comes a second time. The cursor
//! moves when the server has acknowledged all of a batch.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use async_nats::jetstream::context::{PublishError, PublishErrorKind};
use async_nats::jetstream::message::PublishMessage;
use async_nats::jetstream::stream::Config;
use async_nats::jetstream::{self, Context, ErrorCode};
use nkeys::{KeyPair, KeyPairType};
use skep_archive::Position;

use super::batch::{Batch, Told};
use super::carrier::Trouble;
use crate::error::{Error, Result};
use crate::limits::{NATS_ACK_MS_MAX, NATS_DUPLICATES_MS, NATS_KEYS_MAX};

/// The name under which a server knows whoever has this seed: what stands in its list of users.
pub fn public_nkey(seed: &str) -> Result<String> {
    let wrong = |why: &str| Error::Sink {
        what: format!("that is no seed of a user's key for NATS: {why}"),
        hint: "`nk -gen user` makes one; it begins with SU".to_owned(),
    };
    let key = KeyPair::from_seed(seed).map_err(|error| wrong(&error.to_string()))?;
    match key.key_pair_type() {
        KeyPairType::User => Ok(key.public_key()),
        _ => Err(wrong("it is not a user's")),
    }
}

/// Says what is wrong with an address, if something is.
pub fn check(url: &str) -> std::result::Result<(), String> {
    let address = url.parse::<async_nats::ServerAddr>().map_err(|error| error.to_string())?;
    if address.host().is_empty() { Err("it names no host".into()) } else { Ok(()) }
}

pub struct Nats {
    url: String,
    stream: String,
    subject: String,
    token: Option<String>,
    nkey: Option<String>,
    context: Option<Context>,
    sent: Sent,
}

impl Nats {
    pub fn new(url: &str, stream: &str, subject: &str, token: Option<String>, nkey: Option<String>) -> Nats {
        let (url, stream, subject) = (url.to_owned(), stream.to_owned(), subject.to_owned());
        Nats { url, stream, subject, token, nkey, context: None, sent: Sent::default() }
    }

    pub fn let_go(&mut self) {
        self.context = None;
    }

    /// An event was sent before, perhaps by another process: the server may remember its name.
    pub fn remember(&mut self, key: Position, number: u64) {
        self.sent.number_of(key, number);
    }

    async fn context(&mut self) -> std::result::Result<Context, Trouble> {
        if let Some(context) = &self.context {
            return Ok(context.clone());
        }
        let mut options = async_nats::ConnectOptions::new().name("skep").max_reconnects(1);
        if let Some(token) = &self.token {
            options = options.token(token.clone());
        }
        if let Some(seed) = &self.nkey {
            options = options.nkey(seed.clone());
        }
        let client = options.connect(&self.url).await.map_err(Trouble::later)?;
        let mut context = async_nats::jetstream::new(client);
        context.set_timeout(Duration::from_millis(NATS_ACK_MS_MAX));
        // One that is there stays as it is: how long it keeps what is for its owner to say.
        context
            .get_or_create_stream(Config {
                name: self.stream.clone(),
                subjects: vec![format!("{}.>", self.subject)],
                duplicate_window: Duration::from_millis(NATS_DUPLICATES_MS),
                ..Config::default()
            })
            .await
            .map_err(|error| Trouble::later(format!("the stream {}: {error}", self.stream)))?;
        self.context = Some(context.clone());
        Ok(context)
    }

    pub async fn carry(&mut self, _: &Batch, events: &[Told]) -> std::result::Result<(), Trouble> {
        let context = self.context().await?;
        let mut coming = Vec::with_capacity(events.len());
        for event in events {
            let message = PublishMessage::build()
                .payload(event.line.clone().into())
                .header("Content-Type", "application/cloudevents+json")
                .message_id(self.sent.id(event));
            let subject = format!("{}.{}", self.subject, event.kind);
            coming.push(context.send_publish(subject, message).await.map_err(trouble)?);
        }
        for acknowledged in coming {
            acknowledged.await.map_err(trouble)?;
        }
        Ok(())
    }
}

/// A message that is longer than the server or the stream takes is so however often it comes.
fn trouble(error: PublishError) -> Trouble {
    let told = std::error::Error::source(&error).and_then(|cause| cause.downcast_ref::<jetstream::Error>());
    let too_long = told.is_some_and(|told| told.error_code() == ErrorCode::STREAM_MESSAGE_EXCEEDS_MAXIMUM);
    match too_long || error.kind() == PublishErrorKind::MaxPayloadExceeded {
        true => Trouble::Unfit { why: error.to_string() },
        false => Trouble::later(error),
    }
}

/// What was sent lately: an event that is told anew under its key, because its URL was judged again, is another message.
#[derive(Default)]
struct Sent {
    numbers: HashMap<Position, u64>,
    order: VecDeque<Position>,
}

impl Sent {
    fn id(&mut self, event: &Told) -> String {
        match self.number_of(event.key, event.number) == event.number {
            true => event.key_text(),
            false => format!("{}@{}", event.key_text(), event.number),
        }
    }

    /// The number under which an event of this key was sent first; this one, if none was.
    fn number_of(&mut self, key: Position, number: u64) -> u64 {
        if let Some(first) = self.numbers.get(&key) {
            return *first;
        }
        self.numbers.insert(key, number);
        self.order.push_back(key);
        if self.order.len() > NATS_KEYS_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.numbers.remove(&oldest);
        }
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_seed_of_a_user_is_taken() {
        let user = KeyPair::new_from_raw(KeyPairType::User, [7; 32]).unwrap();
        let seed = user.seed().unwrap();
        assert_eq!(public_nkey(&seed).unwrap(), user.public_key());
        let account = KeyPair::new_from_raw(KeyPairType::Account, [7; 32]).unwrap().seed().unwrap();
        let damaged = seed.replace(&seed[20..21], if &seed[20..21] == "A" { "B" } else { "A" });
        for wrong in ["", "SU", &user.public_key(), &account, &damaged] {
            assert_eq!(public_nkey(wrong).unwrap_err().id(), "sink", "{wrong}");
        }
    }
}
