//! The list of pages in a package: what a reader offers to begin with.
//!
//! ```text
//!   {"format":"json-pages-1.0","id":"pages","title":"All Pages"}
//!   {"id":"8f3c…","url":"https://example.org/","title":"Example","ts":"2024-05-06T07:08:09Z"}
//! ```

use super::ready::Ready;
use serde::Serialize;
use skep_archive::{Capture, CaptureKind};
use skep_warc::date;
use skep_warc::digest::{Algorithm, Digest};
use std::fs::File;
use std::io::{self, BufWriter, Seek, Write};

/// Pages found so far, in a file without a name.
pub struct Pages {
    out: BufWriter<File>,
    bytes: u64,
    count: u64,
    /// The last one, whose notes may follow it.
    waiting: Option<(Page, i64)>,
}

#[derive(Serialize)]
struct Page {
    id: String,
    url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    ts: String,
}

const TITLE_LINE: &str = "{\"format\":\"json-pages-1.0\",\"id\":\"pages\",\"title\":\"All Pages\"}\n";
/// Hex digits of a page's identifier.
const ID_DIGITS: usize = 20;

impl Pages {
    pub fn new() -> io::Result<Pages> {
        let mut out = BufWriter::new(tempfile::tempfile()?);
        out.write_all(TITLE_LINE.as_bytes())?;
        Ok(Pages { out, bytes: TITLE_LINE.len() as u64, count: 0, waiting: None })
    }

    /// Looks at a record on its way into the package.
    pub fn look(&mut self, capture: &Capture, ready: &Ready) -> io::Result<()> {
        if capture.kind == CaptureKind::Metadata {
            if let Some((page, time_ms)) = &mut self.waiting
                && page.title.is_none()
                && (&page.url, *time_ms) == (&capture.url, capture.time_ms)
            {
                page.title = ready.noted_title();
            }
            return Ok(());
        }
        if !is_page(capture) {
            return Ok(());
        }
        self.put_waiting()?;
        let ts = date::rfc3339(capture.time_ms);
        let mut id =
            Digest::of(Algorithm::Sha256, format!("{ts} {} {}", capture.position, capture.url).as_bytes()).hex();
        id.truncate(ID_DIGITS);
        let title = if capture.kind == CaptureKind::Response { ready.title(capture) } else { None };
        self.waiting = Some((Page { id, url: capture.url.clone(), title, ts }, capture.time_ms));
        Ok(())
    }

    fn put_waiting(&mut self) -> io::Result<()> {
        if let Some((page, _)) = self.waiting.take() {
            let mut line = serde_json::to_vec(&page)?;
            line.push(b'\n');
            self.out.write_all(&line)?;
            self.bytes += line.len() as u64;
            self.count += 1;
        }
        Ok(())
    }

    /// How many bytes there are, about.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Writes the list; returns how many pages are on it.
    pub fn pour(mut self, out: &mut dyn Write) -> io::Result<u64> {
        self.put_waiting()?;
        let mut file = self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        file.rewind()?;
        io::copy(&mut file, out)?;
        Ok(self.count)
    }
}

fn is_page(capture: &Capture) -> bool {
    let is_html = matches!(capture.mime.to_ascii_lowercase().as_str(), "text/html" | "application/xhtml+xml");
    is_html && capture.status == 200 && matches!(capture.kind, CaptureKind::Response | CaptureKind::Revisit)
}
