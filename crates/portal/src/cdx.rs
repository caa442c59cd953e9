//! The index over HTTP: one engine, three dialects. Clients break on exactly the differences between them, so each endpoint has its own.
//!
//! | endpoint | dialect |
//! |---|---|
//! | `/cdx/search/cdx` | the Internet Archive's CDX server |
//! | `/cdx`, `/COLLECTION/cdx` | pywb |
//! | `/COLLECTION?url=` | OutbackCDX |

pub mod ask;
mod filter;
pub mod internet_archive;
pub mod line;
pub mod out;
pub mod outback;
pub mod params;
pub mod post;
pub mod pywb;

use crate::answer::Answer;
use axum::http::{HeaderValue, header};

/// The index is public wherever reading is: pages of others may ask it.
fn open_to_all(answer: &mut Answer) {
    answer.headers_mut().insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
}
