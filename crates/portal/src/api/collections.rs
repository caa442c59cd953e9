//! What collections there are.

use super::asked::Asked;
use super::files::{self, FileTold};
use crate::find::Looking;
use crate::trouble::Trouble;
use crate::visit::Visit;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// One collection, or what was crawled here.
#[derive(Clone, Debug, Serialize)]
pub struct Collection {
    /// Its name; none for what was crawled here.
    pub name: Option<String>,
    /// Files in it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// All collections by name, what was crawled here first.
pub fn all(look: &Looking<'_>) -> Vec<Collection> {
    let mut found: BTreeMap<Option<String>, Collection> = BTreeMap::new();
    for FileTold { collection, bytes, .. } in files::all(look) {
        let known =
            found.entry(collection.clone()).or_insert_with(|| Collection { name: collection, files: 0, bytes: 0 });
        known.files += 1;
        known.bytes += bytes;
    }
    found.into_values().collect()
}

/// Answers.
pub fn list(look: &Looking<'_>, _: &Asked, _: &Visit) -> Result<Value, Trouble> {
    Ok(json!({ "collections": all(look) }))
}
