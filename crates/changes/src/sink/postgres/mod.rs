//! PostgreSQL: the database bridge. One transaction a batch: rows that are new are copied into the tables that people read, those that may be
//! there already into tables of the connection's own, and from there put in their place. The key of an event is the key of its row.
//!
//! ```text
//!  events ──▶ rows ──COPY──▶ changes ─────────────────────────────────────────────────────────────────────────┬──▶ commit ──▶ cursor
//!                 └──COPY──▶ skep_new_urls, skep_new_links, and what is there already ──upsert──▶ urls, links ─┘
//!                                                                       └─ refused ──▶ halved … ──▶ rejected
//! ```
//! The tables are drawn in `schema`.

mod connect;
mod read_back;
mod rows;
mod schema;

use bytes::Bytes;
use futures_util::SinkExt;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Transaction};

pub use read_back::{KnownUrl, read_back};

use super::batch::{Batch, Told};
use super::carrier::Trouble;
use crate::limits::POSTGRES_URL_BYTES_MAX;
pub use rows::Rows;

/// Says what is wrong with an address, if something is.
pub fn check(url: &str) -> Result<(), String> {
    url.parse::<tokio_postgres::Config>().map(drop).map_err(|error| connect::said(&error))
}

pub struct Postgres {
    url: String,
    schema: Option<String>,
    /// Which archive the rows are of: keys are its own.
    archive: String,
    client: Option<Client>,
}

impl Postgres {
    pub fn new(url: &str, schema: Option<String>, archive: String) -> Postgres {
        Postgres { url: url.to_owned(), schema, archive, client: None }
    }

    pub fn let_go(&mut self) {
        self.client = None;
    }

    /// Whose rows they are.
    pub fn archive(&self) -> &str {
        &self.archive
    }

    async fn client(&mut self) -> Result<&mut Client, Trouble> {
        if self.client.as_ref().is_none_or(Client::is_closed) {
            let mut client = connect::connect(&self.url).await.map_err(Trouble::later)?;
            schema::prepare(&mut client, self.schema.as_deref()).await.map_err(Trouble::later)?;
            self.client = Some(client);
        }
        self.client.as_mut().ok_or_else(|| Trouble::later("not connected"))
    }

    pub async fn carry(&mut self, batch: &Batch, events: &[Told]) -> Result<(), Trouble> {
        if let Some(event) = events.iter().find(|event| event.url.len() > POSTGRES_URL_BYTES_MAX) {
            let why = format!("a URL of {} bytes is more than an index of PostgreSQL can hold", event.url.len());
            return Err(Trouble::Unfit { why });
        }
        let some;
        let rows = match &batch.rows {
            Some(rows) if events.len() == batch.events.len() => rows,
            _ => {
                some = Rows::of(&self.archive, &batch.node, events);
                &some
            }
        };
        let transaction = self.client().await?.transaction().await.map_err(trouble)?;
        write(&transaction, rows).await.map_err(trouble)?;
        transaction.commit().await.map_err(trouble)
    }

    pub async fn reject(&mut self, batch: &Batch, event: &Told, why: &str) -> Result<(), Trouble> {
        let (archive, node) = (self.archive.clone(), &batch.node);
        let without = |text: &str| text.replace('\0', "\u{fffd}");
        let (key, cursor) = (event.key_text(), format!("{node}:{}", event.number));
        let (url, event, why) = (without(&event.url), without(&event.line), without(why));
        let client = self.client().await?;
        let done = client.execute(schema::REJECT, &[&archive, &key, &cursor, &url, &why, &event]).await;
        done.map(|_| ()).map_err(trouble)
    }
}

async fn write(transaction: &Transaction<'_>, rows: &Rows) -> Result<(), tokio_postgres::Error> {
    if !rows.changes.is_empty() {
        write_changes(transaction, &rows.changes).await?;
    }
    if !rows.urls.is_empty() {
        copy(transaction, schema::COPY_URLS, &rows.urls).await?;
        if transaction.execute(schema::PUT_URLS, &[]).await? < rows.url_count {
            transaction.execute(schema::PUT_EARLIER, &[]).await?;
        }
    }
    if !rows.links.is_empty() {
        copy(transaction, schema::COPY_LINKS, &rows.links).await?;
        transaction.batch_execute(schema::PUT_LINKS).await?;
    }
    if !rows.taken_back.is_empty() {
        for statement in schema::TAKE_BACK.into_iter().chain(schema::LOOK_BACK) {
            transaction.execute(statement, &[&rows.archive, &rows.taken_back]).await?;
        }
    }
    Ok(())
}

/// Rows that are new are copied where they belong. If one is there already, all of them go by way of the connection's own table.
async fn write_changes(transaction: &Transaction<'_>, rows: &Bytes) -> Result<(), tokio_postgres::Error> {
    transaction.batch_execute("SAVEPOINT before").await?;
    match copy(transaction, schema::COPY_NEW_CHANGES, rows).await {
        Err(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION) => {
            transaction.batch_execute("ROLLBACK TO SAVEPOINT before").await?;
            copy(transaction, schema::COPY_CHANGES, rows).await?;
            transaction.batch_execute(schema::PUT_CHANGES).await
        }
        copied => copied,
    }
}

async fn copy(transaction: &Transaction<'_>, statement: &str, rows: &Bytes) -> Result<(), tokio_postgres::Error> {
    let mut into = std::pin::pin!(transaction.copy_in::<_, Bytes>(statement).await?);
    into.send(rows.clone()).await?;
    into.close().await
}

/// Whether it is about what was sent, or about the database.
fn trouble(error: tokio_postgres::Error) -> Trouble {
    let Some(told) = error.as_db_error() else { return Trouble::later(connect::said(&error)) };
    let why = match told.detail() {
        Some(detail) => format!("{} ({detail})", told.message()),
        None => told.message().to_owned(),
    };
    // Data exceptions, broken constraints, a trigger that objects, something too large. Everything else passes by itself or by
    // somebody's hand.
    match told.code().code().as_bytes() {
        [b'2', b'1' | b'2' | b'3', ..] | [b'5', b'4', ..] | [b'4', b'4', ..] | b"P0001" => Trouble::Refused { why },
        _ => Trouble::later(why),
    }
}
