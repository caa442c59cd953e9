//! `skep`: one file a command. Stdout is data, stderr is talk; exit codes: 0 done, 1 the answer is no, 2 wrong use or failure, 3 done but
//! something was left undone.

mod add;
mod allocator;
mod amount;
mod captures;
mod changes;
mod check;
mod checked;
mod contribute;
mod contribute_screen;
mod contributors;
mod crawl;
mod crawls;
mod demo;
mod diff;
mod doctor;
mod export;
mod failure;
mod get;
mod index;
mod job;
mod network;
mod node;
mod owner;
mod queue;
mod rebuild;
mod remove;
mod report;
mod retain;
mod ring;
mod schedule;
mod search;
mod seeds;
mod serve;
mod show;
mod signals;
mod simulate;
mod sink;
mod sorted;
mod stats;
mod watch;
mod when;
mod why;

use clap::parser::ValueSource;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

/// Crawl politely, archive byte for byte, find it again.
///
/// Everything Skep keeps lies in ordinary WARC files in one folder (`--archive`, by default ./skep-archive). Views beside them make it
/// quick to find; they can be deleted and built again.
#[derive(Parser)]
#[command(name = "skep", version, max_term_width = 110, after_help = AFTER_HELP)]
struct Skep {
    /// The folder that holds the archive
    #[arg(long, global = true, value_name = "DIR", default_value = "./skep-archive", env = "SKEP_ARCHIVE")]
    archive: PathBuf,
    /// Memory for what is kept at hand, whatever the size of the archive and of a crawl
    #[arg(long, global = true, value_name = "SIZE", default_value = "256MiB", env = "SKEP_MEMORY")]
    memory: String,
    /// Print one JSON object a line instead of tables
    #[arg(long, global = true)]
    json: bool,
    #[command(subcommand)]
    command: Command,
}

const AFTER_HELP: &str = "\
See it work, without a network:
  skep demo                                     three small sites that change, watched; a tour is printed
Watching:
  skep watch https://example.org/               crawls it, serves the portal, looks again at the right moment, for ever
  skep changes --follow                         what was born, changed, moved or died, as it happens; skep schedule URL
A first crawl:
  skep crawl https://example.org/               archives a site; the same command again goes on, or looks again
  skep report                                   what it came to; skep why URL, skep queue while it runs
  skep doctor                                   whether this machine is fit for it
A first look, with files that you have:
  skep add crawl-2019/*.warc.gz                 index them where they are
  skep captures example.org --match host        what is there of a host
  skep get https://example.org/ --at 2019-06    the page as it was then
  skep rebuild --text; skep search 'woven hive'  pages by the words of their texts
  skep changes --since 2019                     what was born, changed, moved or died; skep diff URL shows it
  skep sink add postgres postgresql://…         the same, carried elsewhere as it happens
  skep stats                                    what all of it amounts to
  skep export --format wacz -o site.wacz        a part of it, or all, for others
  skep serve                                    all of it in a browser
With others:
  skep network create --name meadow             a network of nodes that crawl, keep and answer together; skep help network
  skep node --join TICKET                       this machine as one of them; skep ring says how it stands
To help others:
  skep contribute https://node.example          lends bandwidth, within the limits that you set
Every command explains itself: skep help add";

#[derive(Subcommand)]
enum Command {
    Watch(Box<watch::Typed>),
    Demo(demo::Typed),
    Crawl(Box<crawl::Typed>),
    Schedule(schedule::Typed),
    Why(why::Typed),
    Queue(queue::Typed),
    Report(report::Typed),
    Add(add::Typed),
    Index(index::Typed),
    Captures(captures::Typed),
    Search(search::Typed),
    Changes(changes::Typed),
    Diff(diff::Typed),
    Sink(sink::Typed),
    Get(get::Typed),
    Export(export::Typed),
    Check(check::Typed),
    Rebuild(rebuild::Typed),
    Remove(remove::Typed),
    Retain(retain::Typed),
    Stats(stats::Typed),
    Serve(serve::Typed),
    Contribute(Box<contribute::Typed>),
    Contributors(contributors::Typed),
    Network(network::Typed),
    Node(Box<node::Typed>),
    Ring(ring::Typed),
    Doctor(doctor::Typed),
    Simulate(simulate::Typed),
}

fn main() -> ExitCode {
    let (typed, is_named) = match read(std::env::args_os()) {
        Ok(parsed) => parsed,
        Err(told) => {
            let _ = told.print();
            return ExitCode::from(if told.use_stderr() { 2 } else { 0 });
        }
    };
    // A contributor is three processes of one thread each: none of them gathers what others could use.
    if !matches!(typed.command, Command::Contribute(_)) {
        allocator::give_back_soon();
    }
    let place = amount::bytes(&typed.memory).map(|memory_bytes| owner::Place {
        archive: typed.archive,
        memory_bytes,
        json: typed.json,
    });
    let result = place.and_then(|place| match typed.command {
        Command::Demo(typed) => demo::run(typed, &place, is_named),
        Command::Watch(typed) => watch::run(*typed, &place),
        Command::Crawl(typed) => crawl::run(*typed, &place),
        Command::Schedule(typed) => schedule::run(typed, &place),
        Command::Why(typed) => why::run(typed, &place),
        Command::Queue(typed) => queue::run(typed, &place),
        Command::Report(typed) => report::run(typed, &place),
        Command::Add(typed) => add::run(typed, &place),
        Command::Index(typed) => index::run(typed),
        Command::Captures(typed) => captures::run(typed, &place),
        Command::Search(typed) => search::run(typed, &place),
        Command::Changes(typed) => changes::run(typed, &place),
        Command::Diff(typed) => diff::run(typed, &place),
        Command::Sink(typed) => sink::run(typed, &place),
        Command::Get(typed) => get::run(typed, &place),
        Command::Export(typed) => export::run(typed, &place),
        Command::Check(typed) => check::run(typed, &place),
        Command::Rebuild(typed) => rebuild::run(&typed, &place),
        Command::Remove(typed) => remove::run(typed, &place),
        Command::Retain(typed) => retain::run(typed, &place),
        Command::Stats(typed) => stats::run(typed, &place),
        Command::Serve(typed) => serve::run(typed, &place),
        Command::Contribute(typed) => contribute::run(*typed, &place),
        Command::Contributors(typed) => contributors::run(typed, &place),
        Command::Network(typed) => network::run(typed, &place),
        Command::Node(typed) => node::run(*typed, &place),
        Command::Ring(typed) => ring::run(typed, &place),
        Command::Doctor(typed) => doctor::run(&typed, &place),
        Command::Simulate(typed) => simulate::run(&typed, place.json),
    });
    match result {
        Ok(exit) => exit.into(),
        // Whoever read our output has heard enough.
        Err(failure) if failure.reader_left => ExitCode::SUCCESS,
        Err(failure) => {
            failure.print();
            job::Exit::Failed.into()
        }
    }
}

/// What was typed, and whether the archive was named, by whatever name.
fn read(words: impl IntoIterator<Item = OsString>) -> Result<(Skep, bool), clap::Error> {
    let matches = Skep::command().try_get_matches_from(words)?;
    let is_named = matches.value_source("archive") != Some(ValueSource::DefaultValue);
    Ok((Skep::from_arg_matches(&matches)?, is_named))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_archive_is_named_also_by_the_name_that_it_has_anyway() {
        let is_named = |words: &str| read(words.split(' ').map(OsString::from)).ok().map(|(_, is_named)| is_named);
        assert_eq!(is_named("skep demo --archive ./skep-archive"), Some(true));
        assert_eq!(is_named("skep --archive ./skep-archive demo"), Some(true));
        let by_environment = std::env::var_os("SKEP_ARCHIVE").is_some();
        assert_eq!(is_named("skep demo"), Some(by_environment));
    }
}
