//! Copies a file record by record, one gzip member each with the lengths that let a reader step over it: `copy_records IN OUT`. Heads and blocks
//! stay as they are.

use skep_warc::{Options, Reader, repair};
use std::io::BufWriter;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [from, to] = arguments.as_slice() else {
        eprintln!("copy_records IN OUT");
        std::process::exit(2);
    };
    let mut out = BufWriter::new(std::fs::File::create_new(to)?);
    let copied = repair(&mut Reader::open(from, Options::recover())?, &mut out)?;
    println!("records={} findings={}", copied.records, copied.findings.len());
    Ok(())
}
