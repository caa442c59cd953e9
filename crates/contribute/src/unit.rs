//! The systemd unit of a contributor: the same walls once more, by the system, where a process cannot lift them.

use std::fmt::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// What the unit says.
#[derive(Clone, Debug)]
pub struct Unit {
    /// The command, word by word.
    pub command: Vec<String>,
    /// Its folder under the system's state folder.
    pub state: String,
    /// Hundredths of one processor.
    pub cpu_percent: u32,
    /// Memory of all three processes.
    pub memory_bytes: u64,
    /// Private networks are denied by the system as well.
    pub public_only: bool,
    /// But for these, without which it reaches nobody: name servers, and the node.
    pub allowed: Vec<IpAddr>,
    /// Files that it reads, wherever they are.
    pub files: Vec<PathBuf>,
}

/// Folders that the unit does not see.
const UNSEEN: [&str; 5] = ["/home", "/root", "/run/user", "/tmp", "/var/tmp"];

/// Everything that is not the Internet, as systemd writes it; loopback stays open for name servers of this machine.
const DENIED: &str = "10.0.0.0/8 100.64.0.0/10 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.168.0.0/16 198.18.0.0/15 \
     198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 fc00::/7 fe80::/10 ff00::/8 2001:db8::/32 64:ff9b:1::/48";

/// A word of a line.
fn quoted(word: &str) -> String {
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

impl Unit {
    /// The text of the unit. A signal is for main alone, which finishes with the others what is in hand; and whoever has finished, though its node
    /// does not answer, or is not wanted any more, is not started again.
    pub fn text(&self) -> String {
        let words: Vec<String> = self.command.iter().map(|word| quoted(word).replace('$', "$$")).collect();
        let command = words.join(" ");
        let mut denied = if self.public_only { format!("IPAddressDeny={DENIED}\n") } else { String::new() };
        for address in self.allowed.iter().filter(|_| self.public_only) {
            let _infallible = writeln!(denied, "IPAddressAllow={address}");
        }
        let is_unseen = |path: &&PathBuf| UNSEEN.iter().any(|folder| path.starts_with(Path::new(folder)));
        let needed: Vec<&PathBuf> = self.files.iter().filter(is_unseen).collect();
        // Into a folder that may not be looked at nothing can be put; into an empty one it can.
        let mut homes = format!("ProtectHome={}\n", if needed.is_empty() { "yes" } else { "tmpfs" });
        for path in needed {
            let _infallible = writeln!(homes, "BindReadOnlyPaths={}", quoted(&path.display().to_string()));
        }
        format!(
            "[Unit]\n\
             Description=Skep contributor: lends bandwidth to a node\n\
             Wants=network-online.target\n\
             After=network-online.target\n\n\
             [Service]\n\
             ExecStart={command}\n\
             KillMode=mixed\n\
             Restart=on-failure\n\
             RestartPreventExitStatus=3\n\
             RestartSec=60\n\
             DynamicUser=yes\n\
             StateDirectory={state}\n\
             Nice=19\n\
             CPUSchedulingPolicy=batch\n\
             IOSchedulingClass=idle\n\
             CPUQuota={cpu}%\n\
             MemoryMax={memory}\n\
             TasksMax=64\n\
             LimitCORE=0\n\
             {denied}\
             NoNewPrivileges=yes\n\
             CapabilityBoundingSet=\n\
             AmbientCapabilities=\n\
             PrivateTmp=yes\n\
             PrivateDevices=yes\n\
             ProtectSystem=strict\n\
             {homes}\
             ProtectProc=invisible\n\
             ProtectClock=yes\n\
             ProtectHostname=yes\n\
             ProtectKernelLogs=yes\n\
             ProtectKernelModules=yes\n\
             ProtectKernelTunables=yes\n\
             ProtectControlGroups=yes\n\
             LockPersonality=yes\n\
             MemoryDenyWriteExecute=yes\n\
             RemoveIPC=yes\n\
             RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX\n\
             RestrictNamespaces=yes\n\
             RestrictRealtime=yes\n\
             RestrictSUIDSGID=yes\n\
             SystemCallArchitectures=native\n\
             SystemCallFilter=@system-service seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self\n\
             SystemCallErrorNumber=EPERM\n\
             UMask=0077\n\n\
             [Install]\n\
             WantedBy=multi-user.target\n",
            state = self.state,
            cpu = self.cpu_percent.max(1),
            memory = self.memory_bytes,
        )
    }
}
