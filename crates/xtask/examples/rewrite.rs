//! What leading a page's addresses to a replay costs, beside passes of lol_html over the same bytes that change nothing: one that looks
//! at the attributes with addresses, and one that looks at nothing.
//!
//! ```text
//!   rewrite FILE.warc.gz [ROUNDS]     ──▶  pages=N bytes=N ours_us=N looking_us=N idle_us=N      CPU time of the best round
//! ```

use lol_html::{HtmlRewriter, Settings, element};
use skep_page::rewrite::{Kind, Place, Rewriter, charset};
use skep_url::Url;
use skep_warc::http::{Head, Parsed};
use skep_warc::{Options, Reader};
use std::io::Read;
use std::time::Duration;

/// Pages held in memory at once.
const PAGES_MAX: usize = 4_000;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args_os().skip(1);
    let file = arguments.next().ok_or("rewrite FILE.warc.gz [ROUNDS]")?;
    let rounds: u32 = arguments.next().map_or(Ok(3), |rounds| rounds.to_string_lossy().parse())?;
    let pages = pages(std::path::Path::new(&file))?;
    let mut best = [Duration::MAX; 3];
    for _ in 0..rounds.max(1) {
        best[0] = best[0].min(timed(|| pages.iter().for_each(|(url, body)| ours(url, body))));
        best[1] = best[1].min(timed(|| pages.iter().for_each(|(_, body)| lol(body, true))));
        best[2] = best[2].min(timed(|| pages.iter().for_each(|(_, body)| lol(body, false))));
    }
    let bytes: usize = pages.iter().map(|(_, body)| body.len()).sum();
    let [ours_us, looking_us, idle_us] = best.map(|time| time.as_micros());
    println!("pages={} bytes={bytes} ours_us={ours_us} looking_us={looking_us} idle_us={idle_us}", pages.len());
    Ok(())
}

fn pages(file: &std::path::Path) -> Result<Vec<(Url, Vec<u8>)>, Box<dyn std::error::Error>> {
    let mut pages = Vec::new();
    let mut reader = Reader::open(file, Options::recover())?;
    while let Some(mut record) = reader.next()? {
        let Some(url) = record.head().target_uri().and_then(|uri| Url::parse(&String::from_utf8_lossy(uri)).ok())
        else {
            continue;
        };
        let mut block = Vec::new();
        record.read_to_end(&mut block)?;
        let mut head = Head::new();
        let Parsed::Complete { body } = head.parse_response(&block, true) else { continue };
        if head.status() == Some(200) && head.mime().as_deref() == Some("text/html") {
            pages.push((url, block.split_off(body)));
        }
        if pages.len() >= PAGES_MAX {
            break;
        }
    }
    Ok(pages)
}

fn ours(url: &Url, body: &[u8]) {
    let place = Place { prefix: "http://replay.localhost:7070/web/", time: "20200102030405", url, scripts: true };
    let mut rewriter = Rewriter::new(Kind::Html, &place, charset(Kind::Html, None, body, url));
    let mut out = Vec::with_capacity(body.len() * 2);
    rewriter.write(body, &mut out);
    rewriter.end(&mut out);
    std::hint::black_box(&out);
}

fn lol(body: &[u8], looks: bool) {
    let mut out = Vec::with_capacity(body.len() * 2);
    let look = element!("[href],[src],[srcset],[action],[style]", |element| {
        for name in ["href", "src", "srcset", "action", "style"] {
            std::hint::black_box(element.get_attribute(name));
        }
        Ok(())
    });
    let settings = Settings::new().with_strict(false);
    let settings = if looks { settings.append_element_content_handler(look) } else { settings };
    let mut rewriter = HtmlRewriter::new(settings, |piece: &[u8]| out.extend_from_slice(piece));
    // After a failed write it must not be ended.
    if rewriter.write(body).is_ok() {
        let _whatever_came = rewriter.end();
    }
    std::hint::black_box(&out);
}

fn timed(work: impl FnOnce()) -> Duration {
    let before = cpu();
    work();
    cpu() - before
}

fn cpu() -> Duration {
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_THREAD);
    usage.map_or(Duration::ZERO, |usage| {
        let time = usage.user_time();
        Duration::new(time.tv_sec() as u64, time.tv_usec() as u32 * 1_000)
    })
}
