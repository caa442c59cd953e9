//! The tables, made and brought up to date by Skep.
//!
//! ```text
//!  urls                                         changes                                      links
//!  ├ url           text       key               ├ archive      text  ┐ key                   ├ source   text  ┐ key
//!  ├ url_key       text       its SURT          ├ key          text  ┘ the record            ├ target   text  ┘
//!  ├ host          text                         ├ cursor       text       node:number        ├ added    timestamptz   last seen to come
//!  ├ state         text       well, gone,       ├ url          text                          └ removed  timestamptz   last seen to go
//!  │                          moved, suspect    ├ host         text
//!  ├ first_seen    timestamptz                  ├ type         text       page.changed, …    rejected
//!  ├ last_seen     timestamptz                  ├ classes      text[]                        ├ archive, key           key
//!  ├ status        integer                      ├ magnitude    real       0 to 1             ├ cursor, url  text
//!  ├ content_type  text                         ├ seen         timestamptz                   ├ reason       text
//!  ├ title         text                         ├ window_from  timestamptz                   ├ event        text
//!  ├ digest        text       of the payload    ├ window_to    timestamptz                   └ at           timestamptz
//!  ├ text_hash     text                         ├ status       integer
//!  ├ redirect      text                         ├ title        text                          skep_schema
//!  ├ archive       text  ┐ the event that       ├ links_added, links_removed  integer        └ version      integer
//!  └ key           text  ┘ it is from           └ data         jsonb      as in the stream
//! ```
//! A row of `urls` is what the newest event says. `links` names the links that events name; a link is there if it was added and not
//! removed since. Columns are only ever added, so that whoever has queries keeps them.

use tokio_postgres::Client;

use super::connect::said;

macro_rules! look_back {
    () => {
        "UPDATE urls SET last_seen = last.seen, status = last.status, archive = last.archive, key = last.key, \
         state = CASE WHEN 'gone' = ANY(last.classes) THEN 'gone' WHEN 'moved' = ANY(last.classes) THEN 'moved' \
             WHEN 'suspect' = ANY(last.classes) THEN 'suspect' ELSE 'well' END, \
         content_type = nullif(last.data #>> '{http,content_type}', ''), redirect = last.data #>> '{http,redirect}', \
         digest = last.data #>> '{hash,raw}', text_hash = last.data #>> '{hash,text}', \
         title = (SELECT c.title FROM changes c WHERE c.url = last.url AND c.title IS NOT NULL ORDER BY c.seen DESC LIMIT 1) \
         FROM urls mine CROSS JOIN LATERAL (SELECT c.* FROM changes c WHERE c.url = mine.url AND c.key NOT LIKE '%/%' \
               ORDER BY c.seen DESC, c.key DESC LIMIT 1) last WHERE mine.url = urls.url AND "
    };
}
macro_rules! forget {
    () => {
        "DELETE FROM urls WHERE NOT EXISTS (SELECT FROM changes c WHERE c.url = urls.url AND c.key NOT LIKE '%/%') AND "
    };
}
/// The number of the record in a key as it was written before version 2: with a bit for what is told of a host.
macro_rules! marked {
    () => {
        "split_part(key, ':', 3) ~ '^[0-9]{10}$' AND split_part(key, ':', 3)::bigint >= 1073741824"
    };
}
macro_rules! marked_url {
    () => {
        "split_part(urls.key, ':', 3) ~ '^[0-9]{10}$' AND split_part(urls.key, ':', 3)::bigint >= 1073741824"
    };
}
macro_rules! rename {
    ($table:literal) => {
        concat!(
            "UPDATE ",
            $table,
            " SET key = split_part(key, ':', 1) || ':' || split_part(key, ':', 2) || ':' \
             || (split_part(key, ':', 3)::bigint & 1073741823) \
             || CASE WHEN split_part(key, ':', 3)::bigint >= 2147483648 THEN '/host' ELSE '/template' END WHERE ",
            marked!(),
            ";"
        )
    };
}

/// What each version of the tables adds to the one before.
const MIGRATIONS: &[&str] = &[
    "
    CREATE TABLE urls (
        url text PRIMARY KEY, url_key text NOT NULL, host text NOT NULL, state text NOT NULL,
        first_seen timestamptz NOT NULL, last_seen timestamptz NOT NULL,
        status integer NOT NULL, content_type text, title text, digest text, text_hash text, redirect text,
        archive text NOT NULL, key text NOT NULL
    );
    CREATE TABLE changes (
        archive text NOT NULL, key text NOT NULL, cursor text NOT NULL, url text NOT NULL, host text NOT NULL,
        type text NOT NULL, classes text[] NOT NULL, magnitude real NOT NULL, seen timestamptz NOT NULL,
        window_from timestamptz, window_to timestamptz, status integer NOT NULL, title text,
        links_added integer NOT NULL, links_removed integer NOT NULL, data jsonb NOT NULL,
        PRIMARY KEY (key, archive)
    );
    CREATE INDEX changes_url ON changes (url, seen);
    CREATE INDEX changes_seen ON changes USING brin (seen);
    CREATE TABLE links (
        source text NOT NULL, target text NOT NULL, added timestamptz, removed timestamptz, PRIMARY KEY (source, target)
    );
    CREATE TABLE rejected (
        archive text NOT NULL, key text NOT NULL, cursor text NOT NULL, url text NOT NULL, reason text NOT NULL,
        event text NOT NULL, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (key, archive)
    );
",
    concat!(
        // Keys are those of the stream, and what is told of a host is not what its start page is.
        rename!("changes"),
        rename!("rejected"),
        look_back!(),
        marked_url!(),
        ";",
        forget!(),
        marked_url!(),
        ";"
    ),
    // A row of `urls` becomes another with every change of its page: with room beside it, no index hears of that.
    "ALTER TABLE urls SET (fillfactor = 80);",
];

/// Two who come at once make the tables one after the other.
const LOCK: &str = "SELECT pg_advisory_xact_lock(7305816421902517)";

const STAGES: &str = "
    CREATE TEMPORARY TABLE IF NOT EXISTS skep_new_changes (LIKE changes) ON COMMIT DELETE ROWS;
    CREATE TEMPORARY TABLE IF NOT EXISTS skep_new_urls (LIKE urls) ON COMMIT DELETE ROWS;
    CREATE TEMPORARY TABLE IF NOT EXISTS skep_new_links (LIKE links) ON COMMIT DELETE ROWS;
";

macro_rules! changes_columns {
    () => {
        "archive, key, cursor, url, host, type, classes, magnitude, seen, window_from, window_to, status, title, \
         links_added, links_removed, data"
    };
}
macro_rules! urls_columns {
    () => {
        "url, url_key, host, state, first_seen, last_seen, status, content_type, title, digest, text_hash, redirect, \
         archive, key"
    };
}

/// Events that are there for the first time, as nearly all are, go where they belong at once.
pub const COPY_NEW_CHANGES: &str = concat!("COPY changes (", changes_columns!(), ") FROM STDIN WITH (FORMAT binary)");
pub const COPY_CHANGES: &str =
    concat!("COPY skep_new_changes (", changes_columns!(), ") FROM STDIN WITH (FORMAT binary)");
pub const COPY_URLS: &str = concat!("COPY skep_new_urls (", urls_columns!(), ") FROM STDIN WITH (FORMAT binary)");
pub const COPY_LINKS: &str = "COPY skep_new_links (source, target, added, removed) FROM STDIN WITH (FORMAT binary)";

pub const PUT_CHANGES: &str = concat!(
    "INSERT INTO changes (",
    changes_columns!(),
    ") SELECT ",
    changes_columns!(),
    " FROM skep_new_changes ON CONFLICT (key, archive) DO UPDATE SET cursor = excluded.cursor, url = excluded.url, \
     host = excluded.host, type = excluded.type, classes = excluded.classes, magnitude = excluded.magnitude, \
     seen = excluded.seen, window_from = excluded.window_from, window_to = excluded.window_to, status = excluded.status, \
     title = excluded.title, links_added = excluded.links_added, links_removed = excluded.links_removed, \
     data = excluded.data WHERE changes.cursor <> excluded.cursor"
);

macro_rules! urls_update {
    () => {
        "url_key = excluded.url_key, host = excluded.host, state = excluded.state, last_seen = excluded.last_seen, \
         status = excluded.status, content_type = coalesce(excluded.content_type, urls.content_type), \
         title = coalesce(excluded.title, urls.title), digest = coalesce(excluded.digest, urls.digest), \
         text_hash = coalesce(excluded.text_hash, urls.text_hash), redirect = excluded.redirect, \
         archive = excluded.archive, key = excluded.key"
    };
}

pub const PUT_URLS: &str = concat!(
    "INSERT INTO urls (",
    urls_columns!(),
    ") SELECT ",
    urls_columns!(),
    " FROM skep_new_urls ON CONFLICT (url) DO UPDATE SET first_seen = least(urls.first_seen, excluded.first_seen), ",
    urls_update!(),
    " WHERE excluded.last_seen >= urls.last_seen"
);

/// URLs of which an event of an earlier time became known: only when that was seen first is another.
pub const PUT_EARLIER: &str = "UPDATE urls SET first_seen = fresh.first_seen FROM skep_new_urls fresh \
    WHERE fresh.url = urls.url AND fresh.first_seen < urls.first_seen";

pub const PUT_LINKS: &str = "INSERT INTO links (source, target, added, removed) \
    SELECT source, target, added, removed FROM skep_new_links ON CONFLICT (source, target) DO UPDATE SET \
    added = greatest(links.added, excluded.added), removed = greatest(links.removed, excluded.removed)";

/// What was told and is so no longer: links that came with it go, and those that went with it are there again.
pub const TAKE_BACK: [&str; 4] = [
    "DELETE FROM links USING changes c WHERE c.archive = $1 AND c.key = ANY($2) AND links.source = c.url AND links.added = c.seen",
    "UPDATE links SET removed = NULL FROM changes c \
     WHERE c.archive = $1 AND c.key = ANY($2) AND links.source = c.url AND links.removed = c.seen",
    "DELETE FROM changes WHERE archive = $1 AND key = ANY($2)",
    "DELETE FROM rejected WHERE archive = $1 AND key = ANY($2)",
];

/// URLs that are what an event says that is no longer so are what the one before says; those of which nothing else is told are not known.
pub const LOOK_BACK: [&str; 2] = [
    concat!(look_back!(), "urls.archive = $1 AND urls.key = ANY($2)"),
    concat!(forget!(), "urls.archive = $1 AND urls.key = ANY($2)"),
];

pub const REJECT: &str = "INSERT INTO rejected (archive, key, cursor, url, reason, event) VALUES ($1, $2, $3, $4, $5, $6) \
    ON CONFLICT (key, archive) DO UPDATE SET cursor = excluded.cursor, reason = excluded.reason, event = excluded.event, at = now()";

/// Makes what is missing, brings what is old up to date, refuses what is newer.
pub async fn prepare(client: &mut Client, schema: Option<&str>) -> Result<(), String> {
    let wrong = |error: tokio_postgres::Error| said(&error);
    if let Some(schema) = schema {
        let own = format!("CREATE SCHEMA IF NOT EXISTS {}", quoted(schema));
        client.batch_execute(&own).await.map_err(wrong)?;
        choose(client, schema).await?;
    }
    let transaction = client.transaction().await.map_err(wrong)?;
    transaction.batch_execute(LOCK).await.map_err(wrong)?;
    let table = "CREATE TABLE IF NOT EXISTS skep_schema (version integer NOT NULL)";
    transaction.batch_execute(table).await.map_err(wrong)?;
    let found = transaction.query_opt("SELECT max(version) FROM skep_schema", &[]).await.map_err(wrong)?;
    let found = found.and_then(|row| row.get::<_, Option<i32>>(0)).unwrap_or(0);
    let known = MIGRATIONS.len() as i32;
    if found > known {
        return Err(format!(
            "the tables have version {found}, and this Skep knows {known}: run the newer Skep that made them"
        ));
    }
    for (version, migration) in MIGRATIONS.iter().enumerate().skip(found.max(0) as usize) {
        transaction.batch_execute(migration).await.map_err(wrong)?;
        transaction.execute("INSERT INTO skep_schema VALUES ($1)", &[&(version as i32 + 1)]).await.map_err(wrong)?;
    }
    transaction.batch_execute(STAGES).await.map_err(wrong)?;
    transaction.commit().await.map_err(wrong)
}

/// Names without a schema are of this one from now on.
pub async fn choose(client: &Client, schema: &str) -> Result<(), String> {
    let own = format!("SET search_path TO {}", quoted(schema));
    client.batch_execute(&own).await.map_err(|error| said(&error))
}

/// Whether the tables are there and can be read, without making any.
pub async fn check(client: &Client) -> Result<(), String> {
    let found = client.query_opt("SELECT max(version) FROM skep_schema", &[]).await;
    let found = found.map_err(|error| format!("no tables of a Skep are there: {}", said(&error)))?;
    match found.and_then(|row| row.get::<_, Option<i32>>(0)) {
        Some(version) if version <= MIGRATIONS.len() as i32 => Ok(()),
        Some(version) => Err(format!("the tables have version {version}, made by a newer Skep")),
        None => Err("no tables of a Skep are there".to_owned()),
    }
}

fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\"").replace('\0', ""))
}
