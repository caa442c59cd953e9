//! Adding files over HTTP: by their path on the machine where the portal runs, as `skep add` does.

use super::BASE;
use crate::cdx::post::can_name;
use crate::find::Looking;
use crate::trouble::Trouble;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};
use skep_archive::{Added, Error};
use std::path::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Registration {
    path: String,
    collection: String,
    #[serde(default)]
    copy: bool,
}

/// Adds a file. What is wrong is told without saying more about this machine than whoever asks said himself.
pub fn register(look: &Looking<'_>, body: &[u8]) -> Result<(StatusCode, Value), Trouble> {
    let wanted: Registration = serde_json::from_slice(body)
        .map_err(|error| Trouble::bad(format!("The body is not what is asked for: {error}.")))?;
    if !can_name(&wanted.collection) {
        return Err(Trouble::bad(format!("{:?} cannot name a collection.", wanted.collection)));
    }
    let path = Path::new(&wanted.path);
    if !path.is_absolute() {
        return Err(Trouble::bad("The path must begin with a slash: the portal has no folder of its own to look in."));
    }
    let mut additions = look.portal.archive.additions()?;
    let added = additions.add(path, &wanted.collection, wanted.copy, &mut |_| ()).map_err(|error| refused(&error))?;
    let (status, result, file, records, findings) = match added {
        Added::New { file, records, findings, .. } => {
            additions.commit()?;
            (StatusCode::CREATED, "added", file, Some(records), findings.len())
        }
        Added::Already(file) => (StatusCode::OK, "there already", file, None, 0),
        Added::Changed(_) => {
            let told = "This file was added before and has changed since; files of an archive must not change.";
            return Err(Trouble { status: StatusCode::CONFLICT, told: told.to_owned(), log: None });
        }
    };
    let id = format!("{}:{}", file.name().id.writer, file.name().id.number);
    let links = json!({ "file": format!("{BASE}/files/{id}") });
    Ok((
        status,
        json!({ "result": result, "file": id, "collection": file.collection, "records": records, "findings": findings, "links": links }),
    ))
}

fn refused(error: &Error) -> Trouble {
    let (status, told) = match error {
        Error::Io { .. } if error.is_missing_file() => (StatusCode::NOT_FOUND, "There is no such file."),
        Error::Refused { .. } => {
            (StatusCode::UNPROCESSABLE_ENTITY, "This is no ARC, WARC or WACZ file that can be added.")
        }
        Error::NotWritable { .. } => (StatusCode::CONFLICT, "This archive is served for reading only."),
        Error::DiskFull { .. } => (StatusCode::INSUFFICIENT_STORAGE, "The archive has no room left."),
        _ => (StatusCode::UNPROCESSABLE_ENTITY, "The file cannot be read; the log says why."),
    };
    Trouble { status, told: told.to_owned(), log: Some(error.to_string()) }
}
