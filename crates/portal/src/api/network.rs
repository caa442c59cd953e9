//! The network of which the archive is a node: how it stands, and seeds for it.

use super::asked::Asked;
use crate::elsewhere::Elsewhere;
use crate::find::Looking;
use crate::limits::{SEEDS_MAX, URL_CHARS_MAX};
use crate::trouble::Trouble;
use crate::visit::Visit;
use axum::http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

fn others<'l>(look: &'l Looking<'_>) -> Result<&'l dyn Elsewhere, Trouble> {
    look.portal.elsewhere.as_deref().ok_or_else(|| Trouble::missing("This archive belongs to no network."))
}

/// Nodes, slices, copies, as this node sees them.
pub fn tell(look: &Looking<'_>, _: &Asked, _: &Visit) -> Result<Value, Trouble> {
    Ok(others(look)?.status())
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Seeds {
    urls: Vec<String>,
}

/// Takes URLs for the crawl of the network.
pub fn seed(look: &Looking<'_>, body: &[u8]) -> Result<(StatusCode, Value), Trouble> {
    let seeds: Seeds = serde_json::from_slice(body)
        .map_err(|error| Trouble::bad(format!("The body is not what is asked for: {error}.")))?;
    let fits = |url: &String| url.len() <= URL_CHARS_MAX && skep_url::Url::parse(url).is_ok();
    if seeds.urls.is_empty() || seeds.urls.len() > SEEDS_MAX {
        return Err(Trouble::bad(format!("1 to {SEEDS_MAX} URLs can be given at once.")));
    }
    if let Some(wrong) = seeds.urls.iter().find(|url| !fits(url)) {
        let wrong: String = wrong.chars().take(200).collect();
        return Err(Trouble::bad(format!("{wrong:?} is no URL that can be fetched.")));
    }
    let told =
        others(look)?.seed(seeds.urls).map_err(|why| Trouble { status: StatusCode::CONFLICT, told: why, log: None })?;
    Ok((StatusCode::OK, told))
}
