//! What the database knows of URLs, for an archive that lost its registry.

use tokio_postgres::Client;

use super::{connect, schema};

/// A URL as the bridge kept it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KnownUrl {
    /// The URL.
    pub url: String,
    /// When it was last seen, in milliseconds since 1970; none for one that was only linked.
    pub last_seen_ms: Option<i64>,
    /// What the server said.
    pub status: u16,
    /// The digest of the payload.
    pub digest: Option<String>,
    /// Whether it counts as gone.
    pub gone: bool,
}

/// Shows every URL of the database: those of pages first, then those that were only linked.
pub fn read_back(url: &str, schema: Option<&str>, mut each: impl FnMut(KnownUrl)) -> Result<(), String> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut client = connect::connect(url).await?;
        if let Some(schema) = schema {
            schema::choose(&client, schema).await?;
        }
        schema::check(&client).await?;
        read(&mut client, &mut each).await.map_err(|error| connect::said(&error))
    })
}

/// Rows of one portion: memory does not grow with the table.
const PORTION: i32 = 10_000;

async fn read(client: &mut Client, each: &mut dyn FnMut(KnownUrl)) -> Result<(), tokio_postgres::Error> {
    let transaction = client.build_transaction().read_only(true).start().await?;
    for statement in [
        // What stood in front of a page says nothing of it: of such a page the last time counts at which it was seen itself.
        "SELECT u.url, (extract(epoch FROM coalesce(page.seen, u.last_seen)) * 1000)::bigint, coalesce(page.status, u.status), \
         CASE WHEN u.state = 'suspect' THEN page.digest ELSE u.digest END, u.state = 'gone' \
         FROM urls u LEFT JOIN LATERAL (SELECT c.seen, c.status, c.data #>> '{hash,raw}' AS digest FROM changes c \
             WHERE u.state = 'suspect' AND c.url = u.url AND c.key NOT LIKE '%/%' AND NOT 'suspect' = ANY(c.classes) \
             ORDER BY c.seen DESC, c.key DESC LIMIT 1) page ON true ORDER BY u.host, u.url",
        "SELECT DISTINCT target, NULL::bigint, 0, NULL::text, false FROM links \
         WHERE (removed IS NULL OR added >= removed) AND NOT EXISTS (SELECT FROM urls WHERE url = target) ORDER BY target",
    ] {
        let statement = transaction.prepare(statement).await?;
        let portal = transaction.bind(&statement, &[]).await?;
        loop {
            let rows = transaction.query_portal(&portal, PORTION).await?;
            for row in &rows {
                each(KnownUrl {
                    url: row.get(0),
                    last_seen_ms: row.get(1),
                    status: row.get::<_, i32>(2).clamp(0, 999) as u16,
                    digest: row.get(3),
                    gone: row.get(4),
                });
            }
            if rows.len() < PORTION as usize {
                break;
            }
        }
    }
    Ok(())
}
