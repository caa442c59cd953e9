//! The project's own chores. `cargo xtask test` is what must pass before anything lands; `tidy` is its quick part;
//! `soak` and `bench` are the long runs whose figures the documents quote.

mod limits;
mod needs;
mod test;
mod tidy;
mod workspace;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
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
}

fn main() -> ExitCode {
    let typed = Typed::parse();
    let done = Workspace::find().and_then(|workspace| match typed.chore {
        Chore::Test(options) => test::run(&workspace, &options),
        Chore::Tidy => tidy::run(&workspace),
    });
    match done {
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
