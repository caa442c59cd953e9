//! Memory does not grow with the archive: two gigabytes are added, checked and rebuilt, and no step may hold more than the
//! limit at its peak.

use crate::limits;
use crate::long::{self, Options};
use crate::material;
use crate::measure;
use crate::table::{Table, megabytes};
use crate::workspace::Workspace;
use anyhow::{Context, Result, bail};
use std::process::Command;

pub fn run(workspace: &Workspace, options: &Options) -> Result<()> {
    let program = long::build(workspace, "skep", "--bin", "skep")?;
    let bytes = options.count.unwrap_or(limits::MEMORY_MEGABYTES) * 1_000_000;
    let file = material::pages(workspace, options, bytes)?;
    println!("file: {} ({})", file.display(), megabytes(std::fs::metadata(&file)?.len()));
    let archive = material::folder(workspace)?.join("memory-archive");
    if archive.exists() {
        std::fs::remove_dir_all(&archive)?;
    }
    let skep = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.args(arguments).arg("--archive").arg(&archive);
        command
    };
    let mut add = skep(&["add"]);
    add.arg(&file);
    let mut check_file = Command::new(&program);
    check_file.arg("check").arg(&file);
    let steps = [
        ("skep add", add),
        ("skep check FILE", check_file),
        ("skep check", skep(&["check"])),
        ("skep rebuild", skep(&["rebuild"])),
        ("skep rebuild --reparse", skep(&["rebuild", "--reparse"])),
    ];
    let mut table = Table::new(&["", "peak memory", "CPU s", "wall s"]);
    let mut over = Vec::new();
    for (name, command) in &steps {
        let run = measure::measure(command, limits::BENCH_RUN_MAX, None)?.ok().context(*name)?;
        let seconds = |time: std::time::Duration| format!("{:.1}", time.as_secs_f64());
        table.row(&[(*name).to_owned(), megabytes(run.max_rss_bytes), seconds(run.cpu), seconds(run.wall)]);
        if run.max_rss_bytes > limits::MEMORY_RSS_BYTES_MAX {
            over.push(*name);
        }
    }
    print!("\n{}", table.render());
    std::fs::remove_dir_all(&archive)?;
    if !over.is_empty() {
        bail!("{} held more than {}", over.join(", "), megabytes(limits::MEMORY_RSS_BYTES_MAX));
    }
    Ok(())
}
