//! The project's own chores. `cargo xtask test` is what must pass before anything lands; `tidy` is its quick part;
//! `soak` and `bench` are the long runs whose figures the documents quote.

mod bench;
mod limits;
mod long;
mod material;
mod measure;
mod needs;
mod soak;
mod table;
mod test;
mod tidy;
mod workspace;

use anyhow::Result;
use clap::{Parser, Subcommand};
use std::path::PathBuf;
use std::process::{Command, ExitCode};
use workspace::Workspace;

/// The project's own chores: test, tidy, soak, bench.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Typed {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Everything that must pass: format, tidy, clippy, build, tests, third-party checks. Installs what is missing.
    Test(test::Options),
    /// The rules of the house, checked: layers, pure hearts, leftovers, documents, licences.
    Tidy,
    /// Long runs that look for what tests are too short to find; without a name, the list.
    Soak(long::Options),
    /// Figures beside those of peers; without a name, the list.
    Bench(long::Options),
    /// Wall time, CPU time and peak memory of one program.
    Measure {
        /// End the program after this many seconds
        #[arg(long, default_value_t = 3600)]
        limit: u64,
        /// The program and its arguments, after `--`
        #[arg(last = true, required = true)]
        program: Vec<String>,
    },
    /// The inner half of a measurement.
    #[command(hide = true)]
    Measured {
        report: PathBuf,
        #[arg(last = true, required = true)]
        program: Vec<String>,
    },
}

fn main() -> ExitCode {
    match run(Typed::parse().chore) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            for cause in error.chain().skip(1) {
                eprintln!("  because: {cause}");
            }
            ExitCode::from(2)
        }
    }
}

fn run(chore: Chore) -> Result<()> {
    match chore {
        Chore::Test(options) => test::run(&Workspace::find()?, &options),
        Chore::Tidy => tidy::run(&Workspace::find()?),
        Chore::Soak(options) => long::run("soak", soak::ALL, &Workspace::find()?, &options),
        Chore::Bench(options) => long::run("bench", bench::ALL, &Workspace::find()?, &options),
        Chore::Measure { limit, program } => {
            let mut command = Command::new(&program[0]);
            command.args(&program[1..]);
            let run = measure::measure(&command, std::time::Duration::from_secs(limit), None)?;
            print!("{}", run.stdout);
            eprint!("{}", run.stderr);
            println!(
                "exit={} wall_ms={} cpu_ms={} max_rss_bytes={}",
                run.exit,
                run.wall.as_millis(),
                run.cpu.as_millis(),
                run.max_rss_bytes
            );
            Ok(())
        }
        Chore::Measured { report, program } => measure::measured(&report, &program),
    }
}
