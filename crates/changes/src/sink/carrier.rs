//! What all kinds of sinks have in common: a batch goes out, or it is said why not.

use skep_archive::Position;

use super::batch::{Batch, Portion, Told};
use super::definition::{Definition, Kind};
use super::nats::Nats;
use super::postgres::Postgres;
use super::smtp::Smtp;
use super::webhook::Webhook;
use super::{http, nats, postgres, smtp};
use crate::error::Error;
use crate::limits::{
    MAIL_BYTES_MAX, MAIL_EVENTS_MAX, NATS_BATCH_BYTES, NATS_BATCH_EVENTS, NATS_KEYS_MAX, POSTGRES_BATCH_BYTES,
    POSTGRES_BATCH_EVENTS, WEBHOOK_BATCH_BYTES, WEBHOOK_BATCH_EVENTS,
};

/// Why a batch was not acknowledged; which is what becomes of it.
#[derive(Debug)]
pub enum Trouble {
    /// The same later, not before this many milliseconds if the other side said so.
    Later { why: String, asked_ms: Option<u64> },
    /// Refused for something that is in it.
    Refused { why: String },
    /// Something in it can never be there, whatever state the other side is in.
    Unfit { why: String },
    /// The other side wants nothing any more.
    Over { why: String },
}

impl Trouble {
    pub fn later(why: impl std::fmt::Display) -> Trouble {
        Trouble::Later { why: why.to_string(), asked_ms: None }
    }
}

/// Says what can be known to be wrong with where events are to go before any does.
pub fn check(kind: &Kind) -> Result<(), Error> {
    let (checked, like) = match kind {
        Kind::Webhook { url, .. } => (http::check(url), "https://example.org/hook"),
        Kind::Smtp { url, from, to, .. } => (smtp::check(url, from, to), "smtp://mail.example.org:587?tls=required"),
        Kind::Nats { url, .. } => (nats::check(url), "nats://localhost:4222"),
        Kind::Postgres { url, .. } => (postgres::check(url), "postgresql://user@host/database"),
    };
    checked.map_err(|why| Error::Sink {
        what: format!("nothing can ever be carried to this {}: {why}", kind.name()),
        hint: format!("an address looks like {like}"),
    })
}

/// A connection to where events go, made when it is needed.
pub enum Carrier {
    Webhook(Webhook),
    Smtp(Smtp),
    Nats(Nats),
    Postgres(Box<Postgres>),
}

impl Carrier {
    /// Nothing is connected yet. `archive` is what tells this archive from others.
    pub fn new(definition: &Definition, archive: String) -> Carrier {
        match &definition.kind {
            Kind::Webhook { url, template, secret, token } => {
                Carrier::Webhook(Webhook::new(url, *template, secret.clone(), token.clone()))
            }
            Kind::Smtp { url, from, to, .. } => Carrier::Smtp(Smtp::new(url, from, to)),
            Kind::Nats { url, stream, subject, token, nkey } => {
                Carrier::Nats(Nats::new(url, stream, subject, token.clone(), nkey.clone()))
            }
            Kind::Postgres { url, schema } => Carrier::Postgres(Box::new(Postgres::new(url, schema.clone(), archive))),
        }
    }

    /// How much it takes at once.
    pub fn portion(&self) -> Portion {
        let (events, bytes) = match self {
            Carrier::Webhook(_) => (WEBHOOK_BATCH_EVENTS, WEBHOOK_BATCH_BYTES),
            Carrier::Smtp(_) => (MAIL_EVENTS_MAX, MAIL_BYTES_MAX),
            Carrier::Nats(_) => (NATS_BATCH_EVENTS, NATS_BATCH_BYTES),
            Carrier::Postgres(_) => (POSTGRES_BATCH_EVENTS, POSTGRES_BATCH_BYTES),
        };
        let is_database = matches!(self, Carrier::Postgres(_));
        Portion { events, bytes, idempotent: is_database, links: is_database }
    }

    /// Under which name of this archive events become rows, if they do: making them takes about as long as writing them, and is done
    /// while those before them are written.
    pub fn rows_of(&self) -> Option<String> {
        match self {
            Carrier::Postgres(to) => Some(to.archive().to_owned()),
            _ => None,
        }
    }

    /// How many events it wants to hear of that were sent before, if it has a use for them.
    pub fn remembers(&self) -> Option<usize> {
        matches!(self, Carrier::Nats(_)).then_some(NATS_KEYS_MAX)
    }

    /// An event was sent before, under this number.
    pub fn remember(&mut self, key: Position, number: u64) {
        if let Carrier::Nats(to) = self {
            to.remember(key, number);
        }
    }

    /// Carries some events of a batch; done when the other side has them for good.
    pub async fn carry(&mut self, batch: &Batch, events: &[Told]) -> Result<(), Trouble> {
        match self {
            Carrier::Webhook(to) => to.carry(batch, events).await,
            Carrier::Smtp(to) => to.carry(batch, events).await,
            Carrier::Nats(to) => to.carry(batch, events).await,
            Carrier::Postgres(to) => to.carry(batch, events).await,
        }
    }

    /// Puts an event aside that is refused for what it is.
    pub async fn reject(&mut self, batch: &Batch, event: &Told, why: &str) -> Result<(), Trouble> {
        match self {
            Carrier::Postgres(to) => to.reject(batch, event, why).await,
            // It stands in the log; the state names it.
            _ => Ok(()),
        }
    }

    /// What is open is to be made anew: something went wrong on it.
    pub fn let_go(&mut self) {
        match self {
            Carrier::Webhook(_) => {}
            Carrier::Smtp(to) => to.let_go(),
            Carrier::Nats(to) => to.let_go(),
            Carrier::Postgres(to) => to.let_go(),
        }
    }
}
