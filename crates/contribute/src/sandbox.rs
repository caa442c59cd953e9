//! Locks the fetcher in: no files (Landlock), a short list of system calls (seccomp), limits of the system, no environment, no terminal. Where
//! the system has none of these, it says so; the broker's rules hold in any case, for they are in another process.

use std::collections::BTreeMap;
use std::io;

use landlock::{ABI, Access, AccessFs, Ruleset, RulesetAttr, RulesetStatus};
use rustix::process::{Resource, Rlimit, setrlimit};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Width, SeccompCmpOp as Is, SeccompCondition, SeccompFilter,
    SeccompRule,
};

use crate::limits::{FETCHER_FILES_MAX, FETCHER_MEMORY_MIN};

/// Lets others go first, at the processor and at the disk.
pub fn be_nice() {
    let _as_it_was = rustix::process::nice(19);
    be_idle_at_disk();
}

const IOPRIO_WHO_PROCESS: libc::c_int = 1;
/// The class of those who get what nobody else wants.
const IOPRIO_IDLE: libc::c_int = 3 << 13;

#[expect(unsafe_code, reason = "the system's libraries have no function for it")]
fn be_idle_at_disk() {
    // SAFETY: three numbers, and no memory of ours.
    let _as_it_was = unsafe { libc::syscall(libc::SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_IDLE) };
}

/// What this process was handed down beside its three streams goes no further: whoever started it may have left a file open.
#[expect(unsafe_code, reason = "the descriptors are not ours to own")]
pub fn hand_nothing_down() {
    let listed = std::fs::read_dir("/proc/self/fd").into_iter().flatten().flatten();
    let numbers: Vec<i32> = listed.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect();
    for number in numbers.into_iter().filter(|number| *number > libc::STDERR_FILENO) {
        // SAFETY: three numbers, and no memory of ours; of a descriptor that is closed by now it only says so.
        let _closed_already = unsafe { libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC) };
    }
}

/// Locks this process in, for good. Says what holds and what does not.
pub fn lock(memory_bytes: u64) -> Vec<String> {
    let held = |name: &str, result: Result<(), String>| match result {
        Ok(()) => format!("{name}: held"),
        Err(why) => format!("{name}: not held, {why}"),
    };
    vec![
        held("no terminal", no_terminal().map_err(|error| error.to_string())),
        held("limits of the system", limits(memory_bytes).map_err(|error| error.to_string())),
        held("no files (Landlock)", no_files()),
        held("short list of system calls (seccomp)", short_list()),
    ]
}

/// Whoever can write to its owner's terminal can have it do things, and whoever can type there is its owner.
fn no_terminal() -> io::Result<()> {
    let nowhere = std::fs::File::options().write(true).open("/dev/null")?;
    Ok(rustix::stdio::dup2_stderr(nowhere)?)
}

fn limits(memory_bytes: u64) -> io::Result<()> {
    let set = |resource, most: u64| setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) });
    set(Resource::Core, 0)?;
    set(Resource::Fsize, 0)?;
    set(Resource::Nofile, FETCHER_FILES_MAX)?;
    // Allocators have taken room ahead of need, which counts as used: what is bounded is what comes on top.
    set(Resource::Data, data_bytes().saturating_add(memory_bytes.max(FETCHER_MEMORY_MIN)))?;
    Ok(())
}

/// Room for data that this process has already.
fn data_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmData:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    kib.map_or(2 << 30, |kib: u64| kib << 10)
}

fn no_files() -> Result<(), String> {
    let restricted = Ruleset::default()
        .handle_access(AccessFs::from_all(ABI::V5))
        .and_then(Ruleset::create)
        .and_then(landlock::RulesetCreated::restrict_self)
        .map_err(|error| error.to_string())?;
    match restricted.ruleset {
        RulesetStatus::NotEnforced => Err("this kernel has no Landlock".into()),
        RulesetStatus::PartiallyEnforced | RulesetStatus::FullyEnforced => Ok(()),
    }
}

/// What a program needs that reads and writes sockets it was given, takes memory, waits and ends. No `open`, `socket`, `connect`,
/// `bind`, `clone`, `execve`, `ptrace`, `kill`, `prctl`.
const CALLS: &[i64] = &[
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_recvmsg,
    libc::SYS_shutdown,
    libc::SYS_getsockopt,
    libc::SYS_setsockopt,
    libc::SYS_getsockname,
    libc::SYS_getpeername,
    libc::SYS_close,
    libc::SYS_dup,
    libc::SYS_lseek,
    libc::SYS_epoll_ctl,
    libc::SYS_epoll_pwait,
    libc::SYS_ppoll,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_epoll_wait,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_poll,
    libc::SYS_futex,
    libc::SYS_sched_yield,
    libc::SYS_nanosleep,
    libc::SYS_clock_nanosleep,
    libc::SYS_clock_gettime,
    libc::SYS_gettimeofday,
    libc::SYS_restart_syscall,
    libc::SYS_rt_sigreturn,
    libc::SYS_rt_sigprocmask,
    libc::SYS_rt_sigaction,
    libc::SYS_sigaltstack,
    libc::SYS_munmap,
    libc::SYS_mremap,
    libc::SYS_madvise,
    libc::SYS_brk,
    libc::SYS_getrandom,
    libc::SYS_getpid,
    libc::SYS_gettid,
    libc::SYS_exit,
    libc::SYS_exit_group,
];

/// An argument of a call: which, how wide, and what it has to be.
type Argument = (u8, Width, Is, u64);

/// What is needed of calls that can do much else: one of these lists of arguments.
fn parts() -> Vec<(i64, Vec<Vec<Argument>>)> {
    let without = |argument: u8, bits: u64| (argument, Width::Dword, Is::MaskedEq(bits), 0);
    let connects = libc::MSG_FASTOPEN as u64;
    let runs = libc::PROT_EXEC as u64;
    let commands = [libc::F_GETFD, libc::F_SETFD, libc::F_GETFL, libc::F_SETFL, libc::F_DUPFD_CLOEXEC];
    vec![
        // To whom the broker connected a socket, and to nobody else.
        (libc::SYS_sendto, vec![vec![(4, Width::Qword, Is::Eq, 0), without(3, connects)]]),
        (libc::SYS_sendmsg, vec![vec![without(2, connects)]]),
        // Whoever is made the owner of a descriptor can be signalled through it.
        (libc::SYS_fcntl, commands.map(|command| vec![(1, Width::Dword, Is::Eq, command as u64)]).to_vec()),
        // All others are about terminals, devices and signals.
        (libc::SYS_ioctl, vec![vec![(1, Width::Dword, Is::Eq, libc::FIONBIO)]]),
        // What was written is never run.
        (libc::SYS_mmap, vec![vec![without(2, runs)]]),
        (libc::SYS_mprotect, vec![vec![without(2, runs)]]),
    ]
}

fn short_list() -> Result<(), String> {
    let mut rules: BTreeMap<i64, Vec<SeccompRule>> = CALLS.iter().map(|call| (*call, Vec::new())).collect();
    for (call, lists) in parts() {
        let conditions = |list: Vec<Argument>| {
            let made = list.into_iter().map(|(at, width, is, value)| SeccompCondition::new(at, width, is, value));
            made.collect::<Result<Vec<_>, _>>().and_then(SeccompRule::new)
        };
        let made: Result<Vec<_>, _> = lists.into_iter().map(conditions).collect();
        rules.insert(call, made.map_err(|error| format!("the list cannot be made: {error}"))?);
    }
    let arch = std::env::consts::ARCH.try_into().map_err(|_| "this processor is not known to it".to_owned())?;
    // EPERM, not the end of the process: a library that tries something in vain goes on without.
    let filter = SeccompFilter::new(rules, SeccompAction::Errno(1), SeccompAction::Allow, arch);
    let program: BpfProgram =
        filter.and_then(BpfProgram::try_from).map_err(|error| format!("the list cannot be made: {error}"))?;
    seccompiler::apply_filter(&program).map_err(|error| error.to_string())
}

/// Tries what a page that took over the fetcher would try: name, whether it was possible, what the system said.
pub fn try_everything() -> Vec<(String, bool, String)> {
    let mut tried = Vec::new();
    let mut note = |name: &str, result: io::Result<String>| {
        tried.push(match result {
            Ok(what) => (name.to_owned(), true, what),
            Err(error) => (name.to_owned(), false, error.to_string()),
        });
    };
    let done = |()| "done".to_owned();
    note("read a file", std::fs::read("/etc/hostname").map(|bytes| format!("{} bytes", bytes.len())));
    note("read its own image", std::fs::File::open("/proc/self/exe").map(|_| "opened".into()));
    note(
        "read the environment of its process",
        std::fs::read("/proc/self/environ").map(|b| format!("{} bytes", b.len())),
    );
    note("list a folder", std::fs::read_dir("/").map(|_| "listed".into()));
    note("write a file", std::fs::write("/tmp/skep-fetcher-was-here", b"x").map(done));
    note("make a folder", std::fs::create_dir("/tmp/skep-fetcher-folder").map(done));
    note("listen", std::net::TcpListener::bind("127.0.0.1:0").map(|_| "listening".into()));
    note("make a datagram socket", std::net::UdpSocket::bind("127.0.0.1:0").map(|_| "bound".into()));
    note("connect", std::net::TcpStream::connect("127.0.0.1:80").map(|_| "connected".into()));
    note("make a pair of sockets", std::os::unix::net::UnixStream::pair().map(|_| "made".into()));
    note("connect to a local socket", std::os::unix::net::UnixStream::connect("/run/x").map(|_| "connected".into()));
    note("run a program", std::process::Command::new("/bin/true").status().map(|status| status.to_string()));
    note("start a thread", std::thread::Builder::new().spawn(|| ()).map(|_| "started".into()));
    let parent = rustix::process::getppid().unwrap_or(rustix::process::Pid::INIT);
    note("signal its parent", rustix::process::test_kill_process(parent).map(done).map_err(io::Error::from));
    note("make its parent the owner of a descriptor", raw_fcntl(libc::F_SETOWN, parent.as_raw_nonzero().get()));
    note("speak to devices", raw_ioctl(libc::FIOASYNC));
    note("run what was written", raw_map(libc::PROT_READ | libc::PROT_WRITE | libc::PROT_EXEC));
    let variables = std::env::vars_os().count();
    note(
        "see the environment",
        match variables {
            0 => Err(io::Error::other("it is empty")),
            count => Ok(format!("{count} variables")),
        },
    );
    tried
}

fn said(possible: bool) -> io::Result<String> {
    if possible { Ok("done".into()) } else { Err(io::Error::last_os_error()) }
}

#[expect(unsafe_code, reason = "only what is forbidden is done by hand")]
fn raw_fcntl(command: libc::c_int, number: libc::c_int) -> io::Result<String> {
    // SAFETY: three numbers, and no memory of ours.
    said(unsafe { libc::fcntl(0, command, number) } == 0)
}

#[expect(unsafe_code, reason = "as above")]
fn raw_ioctl(what: libc::Ioctl) -> io::Result<String> {
    let off: libc::c_int = 0;
    // SAFETY: it reads one number, which outlives it.
    said(unsafe { libc::ioctl(0, what, &raw const off) } == 0)
}

#[expect(unsafe_code, reason = "as above")]
fn raw_map(how: libc::c_int) -> io::Result<String> {
    // SAFETY: new memory that nobody else has; it is never touched.
    let mapped =
        unsafe { libc::mmap(std::ptr::null_mut(), 4_096, how, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0) };
    said(mapped != libc::MAP_FAILED)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(unsafe_code, reason = "as above")]
    fn others_go_first_at_the_disk() {
        be_idle_at_disk();
        // SAFETY: two numbers, and no memory of ours.
        let class = unsafe { libc::syscall(libc::SYS_ioprio_get, IOPRIO_WHO_PROCESS, 0) };
        assert_eq!(class, libc::c_long::from(IOPRIO_IDLE));
    }
}
