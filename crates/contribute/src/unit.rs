//! The systemd unit of a contributor: the same walls once more, by the system, where a process cannot lift them.

use std::fmt::Write;

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
}

/// Everything that is not the Internet, as systemd writes it; loopback stays open for name servers of this machine.
const DENIED: &str = "10.0.0.0/8 100.64.0.0/10 169.254.0.0/16 172.16.0.0/12 192.0.0.0/24 192.0.2.0/24 192.168.0.0/16 198.18.0.0/15 \
     198.51.100.0/24 203.0.113.0/24 224.0.0.0/4 240.0.0.0/4 fc00::/7 fe80::/10 ff00::/8 2001:db8::/32 64:ff9b:1::/48";

impl Unit {
    /// The text of the unit.
    pub fn text(&self) -> String {
        let mut command = String::new();
        for word in &self.command {
            let quoted = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%").replace('$', "$$");
            let _infallible = write!(command, "{}\"{quoted}\"", if command.is_empty() { "" } else { " " });
        }
        let denied = if self.public_only { format!("IPAddressDeny={DENIED}\n") } else { String::new() };
        format!(
            "[Unit]\n\
             Description=Skep contributor: lends bandwidth to a node\n\
             Wants=network-online.target\n\
             After=network-online.target\n\n\
             [Service]\n\
             ExecStart={command}\n\
             Restart=on-failure\n\
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
             ProtectHome=yes\n\
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
