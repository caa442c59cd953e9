//! Reads every record of the files given and counts: `readbench FILE… [--digests] [--threads N]`.
use skep_warc::{Options, Reader};
use std::io::BufRead;
fn main() -> std::io::Result<()> {
    let verbose = std::env::args().any(|a| a == "-v");
    for path in std::env::args().skip(1).filter(|a| !a.starts_with('-')) {
        let mut reader = Reader::open(&path, Options::recover())?;
        let (mut records, mut bytes) = (0u64, 0u64);
        while let Some(mut record) = reader.next()? {
            loop {
                let n = record.fill_buf()?.len();
                if n == 0 {
                    break;
                }
                record.consume(n);
            }
            let (o, k) = (record.offset(), record.head().kind());
            let end = record.finish()?;
            if verbose {
                println!("  {o} {} {k:?} {end:?}", end.length);
            }
            records += 1;
            bytes += end.block_bytes;
        }
        println!("{path} records={records} bytes={bytes} findings={}", reader.findings().len());
        for f in reader.findings().iter().take(if verbose { 50 } else { 0 }) {
            println!("    {f}");
        }
    }
    Ok(())
}
