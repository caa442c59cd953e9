//! Limits of the machine. Each function reads one thing and hands it to a judge beside it, which only sees numbers.

use super::Finding;
use crate::show;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Open files that a crawl with the usual concurrency needs: connections, segments, views.
const FILES_NEEDED: u64 = 1_024;
/// And one with thousands of hosts at once.
const FILES_WANTED: u64 = 16_384;
/// Free bytes below which a crawl soon stops.
const SPACE_NEEDED_BYTES: u64 = 1_000_000_000;
/// And below which a long one will.
const SPACE_WANTED_BYTES: u64 = 20_000_000_000;
/// Files that can still be made; an archive needs few, but not none.
const INODES_NEEDED: u64 = 10_000;
/// Ports for connections out.
const PORTS_NEEDED: u32 = 2_000;
/// And for thousands of hosts at once.
const PORTS_WANTED: u32 = 20_000;
/// Moments between which the clock can be right.
const YEAR_SECONDS: u64 = 31_556_952;
const EARLIEST_SECONDS: u64 = (2025 - 1970) * YEAR_SECONDS;
const LATEST_SECONDS: u64 = (2100 - 1970) * YEAR_SECONDS;
/// By how much the clock of the wall may run away from the monotonic one while this command runs.
const CLOCK_DRIFT_MS_MAX: u128 = 500;
/// Of the connections that the kernel tracks, so many in a hundred may be in use.
const TRACKED_PERCENT_MAX: u64 = 80;
/// Listening ports named one by one.
const LISTENERS_SHOWN: usize = 12;

pub fn open_files() -> Finding {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    judge_files(limit.current.unwrap_or(u64::MAX), limit.maximum.unwrap_or(u64::MAX))
}

/// A crawl raises its own limit as far as it may, so the upper one counts.
fn judge_files(now: u64, most: u64) -> Finding {
    let number = |n: u64| if n == u64::MAX { "any number".to_owned() } else { n.to_string() };
    let value =
        if now == most { number(now) } else { format!("{}, raised to {} while crawling", number(now), number(most)) };
    let how = "in a shell `ulimit -Hn` shows it; raise it for a user in /etc/security/limits.conf (`* hard nofile 65536`, then log in \
               again), for a service with LimitNOFILE=65536, for a container with --ulimit nofile=65536";
    match most {
        most if most < FILES_NEEDED => {
            Finding::change("open files", value, format!("at least {FILES_NEEDED} are needed: {how}"))
        }
        most if most < FILES_WANTED => Finding::consider(
            "open files",
            value,
            format!("{FILES_WANTED} let thousands of hosts be visited at once: {how}"),
        ),
        _ => Finding::fine("open files", value),
    }
}

/// `began` and `ended` are one moment each, on the monotonic clock and on that of the wall.
pub fn clock(began: (Instant, SystemTime), ended: (Instant, SystemTime)) -> Finding {
    let passed_ms = ended.0.duration_since(began.0).as_millis();
    let wall = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (from_ms, to_ms) = (wall(began.1).as_millis(), wall(ended.1).as_millis());
    judge_clock(wall(ended.1).as_secs(), (from_ms + passed_ms).abs_diff(to_ms))
}

fn judge_clock(seconds: u64, drift_ms: u128) -> Finding {
    let value = skep_warc::date::rfc3339((seconds * 1_000).cast_signed());
    let how = "`timedatectl set-ntp true`, or another time service, keeps it right; captures are dated by it";
    if !(EARLIEST_SECONDS..LATEST_SECONDS).contains(&seconds) {
        return Finding::change("clock", value, format!("this cannot be now: {how}"));
    }
    if drift_ms > CLOCK_DRIFT_MS_MAX {
        return Finding::change("clock", value, format!("it jumped by {drift_ms} ms while this command ran: {how}"));
    }
    Finding::fine("clock", value)
}

pub fn space(archive: &Path) -> Finding {
    let folder = existing(archive);
    match rustix::fs::statvfs(&folder) {
        Ok(space) => judge_space(&folder, space.f_bavail.saturating_mul(space.f_frsize), space.f_favail, space.f_files),
        Err(error) => Finding::change(
            "free space",
            format!("unknown: {}: {error}", folder.display()),
            "choose a folder that can be read with --archive DIR",
        ),
    }
}

/// The folder itself, or the nearest one above it that is there already.
fn existing(folder: &Path) -> PathBuf {
    let whole = std::path::absolute(folder).unwrap_or_else(|_| folder.to_path_buf());
    whole.ancestors().find(|above| above.exists()).unwrap_or(Path::new("/")).to_path_buf()
}

fn judge_space(folder: &Path, free_bytes: u64, free_inodes: u64, inodes: u64) -> Finding {
    let value = format!("{} in {}", show::bytes(free_bytes), folder.display());
    let how = "free some, or put the archive elsewhere with --archive DIR; a crawl stops asking for pages at --reserve SIZE and goes on \
               when there is room again";
    // File systems that make inodes as they need them count none.
    if inodes > 0 && free_inodes < INODES_NEEDED {
        let advice =
            format!("only {free_inodes} more files can be made there (`df -i`): delete some, or use --archive DIR");
        return Finding::change("free space", value, advice);
    }
    match free_bytes {
        free if free < SPACE_NEEDED_BYTES => Finding::change("free space", value, how),
        free if free < SPACE_WANTED_BYTES => Finding::consider("free space", value, how),
        _ => Finding::fine("free space", value),
    }
}

pub fn ports() -> Vec<Finding> {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let mut findings = vec![judge_ports(&read("/proc/sys/net/ipv4/ip_local_port_range"))];
    let number = |path: &str| read(path).trim().parse::<u64>().ok();
    if let (Some(used), Some(most)) =
        (number("/proc/sys/net/netfilter/nf_conntrack_count"), number("/proc/sys/net/netfilter/nf_conntrack_max"))
    {
        findings.push(judge_tracking(used, most));
    }
    findings.push(judge_listeners(&listeners(&[read("/proc/net/tcp"), read("/proc/net/tcp6")])));
    findings
}

/// Two numbers: the first and the last port for connections out.
fn judge_ports(range: &str) -> Finding {
    let numbers: Vec<u32> = range.split_whitespace().filter_map(|n| n.parse().ok()).collect();
    let [first, last] = numbers[..] else {
        return Finding::fine("local ports", "this system does not tell");
    };
    let count = last.saturating_sub(first) + 1;
    let value = format!("{count} ({first} to {last})");
    let how = "`sysctl -w net.ipv4.ip_local_port_range='1024 65535'`, and the same line in /etc/sysctl.d/ to keep it";
    match count {
        count if count < PORTS_NEEDED => {
            Finding::change("local ports", value, format!("connections will run out of them: {how}"))
        }
        count if count < PORTS_WANTED => {
            Finding::consider("local ports", value, format!("more let thousands of hosts be visited at once: {how}"))
        }
        _ => Finding::fine("local ports", value),
    }
}

fn judge_tracking(used: u64, most: u64) -> Finding {
    let value = format!("{used} of {most} in use");
    if used.saturating_mul(100) < most.saturating_mul(TRACKED_PERCENT_MAX) {
        return Finding::fine("connection tracking", value);
    }
    let advice = format!(
        "the kernel drops connections when the table is full: `sysctl -w net.netfilter.nf_conntrack_max={}`",
        most.saturating_mul(4)
    );
    Finding::change("connection tracking", value, advice)
}

/// Ports on which something listens, from the tables of the kernel: local address, remote address, state, each in hex.
fn listeners(tables: &[String]) -> BTreeSet<u16> {
    const LISTENING: &str = "0A";
    let port = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, _, state) = (fields.next()?, fields.next()?, fields.next()?);
        let port = local.rsplit_once(':').and_then(|(_, port)| u16::from_str_radix(port, 16).ok())?;
        (state == LISTENING).then_some(port)
    };
    tables.iter().flat_map(|table| table.lines().skip(1).filter_map(port)).collect()
}

fn judge_listeners(ports: &BTreeSet<u16>) -> Finding {
    if ports.is_empty() {
        return Finding::fine("listening here", "nothing");
    }
    let shown: Vec<String> = ports.iter().take(LISTENERS_SHOWN).map(u16::to_string).collect();
    let more = ports.len().saturating_sub(LISTENERS_SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Finding::fine(
        "listening here",
        format!("ports {}{more}; a crawl reaches them only with --allow-private", shown.join(", ")),
    )
}

#[cfg(test)]
mod tests {
    use super::super::Verdict::{Change, Consider, Fine};
    use super::*;

    #[test]
    fn files_are_judged_by_the_limit_that_a_crawl_can_reach() {
        assert_eq!(judge_files(256, 512).verdict, Change);
        assert_eq!(judge_files(1_024, 4_096).verdict, Consider);
        assert_eq!(judge_files(1_024, 1 << 20).verdict, Fine);
        assert!(judge_files(1_024, 1 << 20).value.contains("1024, raised to 1048576"));
        assert_eq!(judge_files(u64::MAX, u64::MAX).value, "any number");
        assert!(judge_files(10, 10).advice.contains("ulimit"));
    }

    #[test]
    fn a_clock_before_this_program_or_one_that_jumps_is_wrong() {
        assert_eq!(judge_clock(0, 0).verdict, Change);
        assert_eq!(judge_clock(1_800_000_000, 3).verdict, Fine);
        let jumped = judge_clock(1_800_000_000, 3_600_000);
        assert!(jumped.verdict == Change && jumped.advice.contains("3600000 ms"));
    }

    #[test]
    fn space_and_inodes_both_count() {
        let judged = |bytes, free, all| judge_space(Path::new("/a"), bytes, free, all).verdict;
        assert_eq!(judged(100_000_000, 1 << 20, 1 << 20), Change);
        assert_eq!(judged(5_000_000_000, 1 << 20, 1 << 20), Consider);
        assert_eq!(judged(1 << 40, 1 << 20, 1 << 20), Fine);
        assert_eq!(judged(1 << 40, 5, 1 << 20), Change);
        assert_eq!(judged(1 << 40, 0, 0), Fine);
    }

    #[test]
    fn ports_are_counted() {
        assert_eq!(judge_ports("32768\t60999\n"), Finding::fine("local ports", "28232 (32768 to 60999)"));
        assert_eq!(judge_ports("60000 61000").verdict, Change);
        assert_eq!(judge_ports("50000 60999").verdict, Consider);
        assert_eq!(judge_ports("").verdict, Fine);
        assert_eq!(judge_tracking(10, 100).verdict, Fine);
        assert!(judge_tracking(90, 100).advice.contains("nf_conntrack_max=400"));
    }

    #[test]
    fn listeners_are_read_from_the_kernels_tables() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue\n\
                        0: 0100007F:1F90 00000000:0000 0A 00000000:00000000\n\
                        1: 0100007F:9C40 0100007F:1F90 01 00000000:00000000\n\
                        2: broken\n";
        assert_eq!(listeners(&[table.to_owned()]), BTreeSet::from([8080]));
        assert_eq!(judge_listeners(&BTreeSet::new()).value, "nothing");
        assert!(judge_listeners(&(1..=20).collect()).value.contains("and 8 more"));
    }

    #[test]
    fn a_folder_to_be_is_judged_by_what_is_above_it() {
        assert_eq!(existing(Path::new("/surely/not/there")), Path::new("/"));
        assert_ne!(existing(Path::new("not-there-either")), Path::new("/"));
    }
}
