//! What the leader of a slice does next, so that its holders become those that are wished for.
//!
//! An absent holder is missed at once (a stand-in copies what is written meanwhile) and replaced after a day while two
//! copies are left, after an hour when one is. Who leaves, was retired or failed an audit is replaced now. A copy is made
//! first, entered in the epoch second, and only then does another one go.

use crate::key::Key;
use crate::settings::Settings;

/// How a holder fares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There.
    Sound,
    /// Proven absent for so many milliseconds.
    Absent(u64),
    /// There, and on its way out.
    Leaving,
    /// Retired, or left.
    Gone,
    /// Its copy does not stand up to audits.
    Suspended,
}

/// The next step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// All is as it should be, or nothing can be done. Look again after so many milliseconds, if at all.
    Rest(Option<u64>),
    /// Make a copy at this node, then [`Step::Add`] it or [`Step::Replace`] another by it.
    Copy {
        /// Who gets the copy.
        to: Key,
        /// Who goes for it, if anybody.
        instead_of: Option<Key>,
    },
    /// Take a holder out.
    Remove(Key),
}

/// How long a holder may be absent before it is replaced.
pub fn patience_ms(copies_left: usize, settings: &Settings) -> u64 {
    if copies_left >= 2 { settings.repair_late_ms } else { settings.repair_soon_ms }
}

/// Whether a holder is to be replaced, or in how many milliseconds.
pub fn is_out(state: State, copies_left: usize, urgent: bool, settings: &Settings) -> Result<bool, u64> {
    match state {
        State::Sound => Ok(false),
        State::Leaving | State::Gone | State::Suspended => Ok(true),
        State::Absent(_) if urgent => Ok(true),
        State::Absent(for_ms) => match patience_ms(copies_left, settings).checked_sub(for_ms) {
            None | Some(0) => Ok(true),
            Some(wait_ms) => Err(wait_ms),
        },
    }
}

/// Copies that count: there and sound, whether they stay or not.
pub fn copies_left(holders: &[(Key, State)]) -> usize {
    holders.iter().filter(|(_, state)| matches!(state, State::Sound | State::Leaving)).count()
}

/// What to do. `wish` says who should hold the slice when these are out of the question, best first.
pub fn plan(
    holders: &[(Key, State)],
    copies: usize,
    urgent: bool,
    settings: &Settings,
    wish: impl Fn(&[Key]) -> Vec<Key>,
) -> Step {
    let left = copies_left(holders);
    let mut out: Vec<(Key, State)> = Vec::new();
    let mut wait_ms: Option<u64> = None;
    for (key, state) in holders {
        match is_out(*state, left, urgent, settings) {
            Ok(true) => out.push((*key, *state)),
            Ok(false) => {}
            Err(wait) => wait_ms = Some(wait_ms.map_or(wait, |other: u64| other.min(wait))),
        }
    }
    let excluded: Vec<Key> = out.iter().map(|(key, _)| *key).collect();
    let wished = wish(&excluded);
    let held = |key: &Key| holders.iter().any(|(holder, _)| holder == key);
    let surplus = holders.iter().map(|(key, _)| *key).find(|key| !wished.contains(key) && !excluded.contains(key));
    let goes = out.first().map(|(key, _)| *key).or(surplus);
    if let Some(to) = wished.iter().find(|key| !held(key)) {
        let instead_of = if holders.len() >= copies { goes } else { None };
        return Step::Copy { to: *to, instead_of };
    }
    if holders.len() > copies
        && let Some(goes) = goes
    {
        return Step::Remove(goes);
    }
    // Nobody is there to replace them: who will not return goes all the same, who may return stays.
    let for_good = out.iter().find(|(_, state)| match state {
        State::Gone => left >= 1,
        State::Leaving => left >= 2,
        _ => false,
    });
    if let Some((goes, _)) = for_good {
        return Step::Remove(*goes);
    }
    Step::Rest(wait_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: u64 = 3_600_000;

    fn key(number: u8) -> Key {
        Key([number; 32])
    }

    fn next(holders: &[(u8, State)], ring: &[u8]) -> Step {
        let holders: Vec<(Key, State)> = holders.iter().map(|(number, state)| (key(*number), *state)).collect();
        plan(&holders, 3, false, &Settings::default(), |excluded| {
            ring.iter().map(|number| key(*number)).filter(|key| !excluded.contains(key)).take(3).collect()
        })
    }

    fn copy(to: u8, instead_of: Option<u8>) -> Step {
        Step::Copy { to: key(to), instead_of: instead_of.map(key) }
    }

    #[test]
    fn patience_depends_on_the_copies_left() {
        use State::{Absent, Sound};
        let ring = [1, 2, 3, 4];
        assert_eq!(next(&[(1, Sound), (2, Sound), (3, Absent(HOUR))], &ring), Step::Rest(Some(23 * HOUR)));
        assert_eq!(next(&[(1, Sound), (2, Sound), (3, Absent(24 * HOUR))], &ring), copy(4, Some(3)));
        assert_eq!(next(&[(1, Sound), (2, Absent(HOUR)), (3, Absent(0))], &ring), copy(4, Some(2)));
    }

    #[test]
    fn joining_leaving_and_growing_go_one_by_one() {
        use State::{Gone, Leaving, Sound, Suspended};
        assert_eq!(next(&[(1, Sound)], &[1, 2, 3]), copy(2, None));
        assert_eq!(next(&[(1, Sound), (2, Sound), (3, Sound)], &[9, 1, 2, 3]), copy(9, Some(3)));
        assert_eq!(next(&[(1, Sound), (2, Leaving), (3, Sound)], &[1, 2, 3, 4]), copy(4, Some(2)));
        assert_eq!(next(&[(1, Sound), (2, Suspended), (3, Sound)], &[1, 2, 3, 4]), copy(4, Some(2)));
        assert_eq!(next(&[(1, Sound), (2, Leaving), (3, Sound)], &[1, 2, 3]), Step::Remove(key(2)));
        assert_eq!(next(&[(1, Sound), (2, Gone)], &[1, 2]), Step::Remove(key(2)));
        assert_eq!(next(&[(1, Leaving)], &[1]), Step::Rest(None), "the last copy stays");
        assert_eq!(next(&[(1, Sound), (2, Sound), (3, Sound), (4, Sound)], &[1, 2, 3, 4]), Step::Remove(key(4)));
        assert_eq!(next(&[(1, Sound), (2, Sound), (3, Sound)], &[1, 2, 3, 4]), Step::Rest(None));
    }
}
