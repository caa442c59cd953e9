//! Reads every record of the files given and counts them: `readbench FILE… [--heads|--bodies|--digests] [--threads N]`. With
//! `--heads` bodies are stepped over where their ends are certain. The benchmark `warc-read` runs it against other readers.

use skep_warc::{Options, Reader, Verified, check_record, read_parts};
use std::io::BufRead;

#[derive(Default)]
struct Counts {
    records: u64,
    bytes: u64,
    verified: u64,
    failed: u64,
    stepped_over: u64,
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let bodies = arguments.iter().any(|a| a == "--bodies");
    let digests = arguments.iter().any(|a| a == "--digests");
    let options = if arguments.iter().any(|a| a == "--heads") { Options::skim() } else { Options::recover() };
    let threads =
        arguments.windows(2).find(|w| w[0] == "--threads").map_or(1, |w| w[1].parse().expect("a number of threads"));
    let mut skip = false;
    for path in &arguments {
        if std::mem::take(&mut skip) || path.starts_with("--") {
            skip = path == "--threads";
            continue;
        }
        let mut total = Counts::default();
        let read = |reader: &mut Reader, _| count(reader, bodies, digests);
        read_parts(path.as_ref(), threads, &options, read, |part| {
            total.records += part.records;
            total.bytes += part.bytes;
            total.verified += part.verified;
            total.failed += part.failed;
            total.stepped_over += part.stepped_over;
            Ok(())
        })?;
        let Counts { records, bytes, verified, failed, stepped_over } = total;
        println!(
            "{path} records={records} bytes={bytes} verified={verified} failed={failed} stepped_over={stepped_over}"
        );
    }
    Ok(())
}

fn count(reader: &mut Reader, bodies: bool, digests: bool) -> std::io::Result<Counts> {
    let mut counts = Counts::default();
    while let Some(mut record) = reader.next()? {
        counts.records += 1;
        if digests {
            let Verified { block, failed, .. } = check_record(&mut record)?;
            counts.verified += u64::from(block);
            counts.failed += u64::from(failed);
        }
        if bodies {
            loop {
                let here = record.fill_buf()?.len();
                if here == 0 {
                    break;
                }
                record.consume(here);
            }
        }
        counts.bytes += record.finish()?.block_bytes;
    }
    counts.stepped_over = reader.stepped_over();
    Ok(counts)
}
