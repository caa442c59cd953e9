//! Times that decide, as settings: tests shorten them, nobody else should need to.

const SECOND: u64 = 1000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;

/// Durations in milliseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// A watcher asks those it watches this often.
    pub ping_ms: u64,
    /// Silence of this length is worth a vote.
    pub silence_ms: u64,
    /// A node that has not heard from enough of its watchers for so long takes itself for absent: it neither leads nor grants.
    pub unseen_ms: u64,
    /// Roster digests are compared with somebody this often.
    pub compare_ms: u64,
    /// A node signs its record anew this often.
    pub renew_ms: u64,
    /// Proven absent for so long, a node leaves the circle of watchers, as if it had been retired.
    pub expire_ms: u64,
    /// D: how long a lease is granted.
    pub lease_ms: u64,
    /// A follower that hears of no leader asks for the lease itself after this long, times its rank.
    pub rank_ms: u64,
    /// A majority of holders proven absent for so long: what remains opens a new epoch.
    pub recover_ms: u64,
    /// A holder absent for so long is replaced when two copies or more are left …
    pub repair_late_ms: u64,
    /// … and after so long when one is left.
    pub repair_soon_ms: u64,
    /// A copy that is no longer wanted is kept at least so long.
    pub keep_ms: u64,
    /// Sealed segments are compared with other holders this often.
    pub summary_ms: u64,
    /// Each slice is audited at each other holder this often.
    pub audit_ms: u64,
    /// No answer within this time: asked again, or somebody else.
    pub answer_ms: u64,
    /// A growing tail is told to followers at most this often.
    pub tail_ms: u64,
    /// Whether this machine watches others by asking them; a large simulation tells it who is silent.
    pub watching: bool,
    /// Mistakes on purpose; none outside tests of the simulator.
    pub mutation: Mutation,
}

/// A rule left out, to see that the simulator finds it missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// All rules hold.
    None,
    /// One grant is enough to lead.
    Majority,
    /// Leases of an older epoch go on.
    EpochCheck,
    /// Copies are deleted without asking others for proof of theirs.
    Audit,
    /// Holders do not tell a new leader how politely sites were visited.
    Politeness,
    /// Nodes speak the newest protocol they know, whoever listens.
    Protocol,
    /// Who leads does so for ever, whoever should.
    Wish,
    /// Who may visit a site that is split does so for ever.
    Outstayed,
    /// Who comes to lead the home of such a site does not wait until what others granted has run out.
    Forgotten,
}

/// The names of all times, in the order of [`Settings::times`].
const TIMES: [&str; 16] = [
    "ping",
    "silence",
    "unseen",
    "compare",
    "renew",
    "expire",
    "lease",
    "rank",
    "recover",
    "repair-late",
    "repair-soon",
    "keep",
    "summary",
    "audit",
    "answer",
    "tail",
];

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            ping_ms: 15 * SECOND,
            silence_ms: 45 * SECOND,
            unseen_ms: 10 * MINUTE,
            compare_ms: MINUTE,
            renew_ms: DAY,
            expire_ms: 7 * DAY,
            lease_ms: 10 * MINUTE,
            rank_ms: 20 * SECOND,
            recover_ms: HOUR,
            repair_late_ms: 24 * HOUR,
            repair_soon_ms: HOUR,
            keep_ms: 7 * DAY,
            summary_ms: HOUR,
            audit_ms: DAY,
            answer_ms: 10 * SECOND,
            tail_ms: SECOND / 2,
            watching: true,
            mutation: Mutation::None,
        }
    }
}

impl Settings {
    /// The same rules, `factor` times as fast: for tests with real processes.
    pub fn hurried(factor: u64) -> Settings {
        let mut settings = Settings::default();
        for time in settings.times() {
            *time = (*time / factor.max(1)).max(1);
        }
        settings
    }

    /// By default, but for these times, in milliseconds. All nodes of a network must go by the same.
    pub fn with_times<'t>(times: impl Iterator<Item = (&'t str, u64)>) -> Result<Settings, String> {
        let mut settings = Settings::default();
        for (name, ms) in times {
            let at = TIMES.iter().position(|known| *known == name);
            let at = at.ok_or_else(|| format!("{name} is no time; there are {}", TIMES.join(", ")))?;
            *settings.times()[at] = ms.max(1);
        }
        settings.check()?;
        Ok(settings)
    }

    fn times(&mut self) -> [&mut u64; 16] {
        [
            &mut self.ping_ms,
            &mut self.silence_ms,
            &mut self.unseen_ms,
            &mut self.compare_ms,
            &mut self.renew_ms,
            &mut self.expire_ms,
            &mut self.lease_ms,
            &mut self.rank_ms,
            &mut self.recover_ms,
            &mut self.repair_late_ms,
            &mut self.repair_soon_ms,
            &mut self.keep_ms,
            &mut self.summary_ms,
            &mut self.audit_ms,
            &mut self.answer_ms,
            &mut self.tail_ms,
        ]
    }

    /// The leader stops by its own clock this long after it asked.
    pub fn lead_ms(&self) -> u64 {
        self.lease_ms / 10 * 8
    }

    /// A holder refuses others by its own clock this long after it granted.
    pub fn refuse_ms(&self) -> u64 {
        self.lease_ms.div_ceil(10) * 12
    }

    /// Whether a recovery can only begin when every lease of the lost majority has run out: the safety of the whole rests on it.
    pub fn check(&self) -> Result<(), &'static str> {
        // A node looks at its watchers not at every moment, but at least with every ping.
        if self.recover_ms < self.unseen_ms + self.ping_ms + self.refuse_ms() {
            return Err("recovery must wait longer than a node takes to notice its absence, and a lease to run out");
        }
        if self.silence_ms <= self.ping_ms {
            return Err("silence must be longer than the time between two pings");
        }
        Ok(())
    }

    /// Whether a count of grants or votes among `holders` suffices.
    pub(crate) fn suffices(&self, count: usize, holders: usize) -> bool {
        match self.mutation {
            Mutation::Majority => count >= 1,
            _ => count >= crate::genesis::majority(holders),
        }
    }
}
