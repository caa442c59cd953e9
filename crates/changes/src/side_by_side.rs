//! Work on many things that have nothing to do with each other, on as many threads as there are cores.

use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::limits::{JUDGED_AT_ONCE, JUDGING_THREADS_MAX};

/// Does all of it. What comes back is in the order of what went in; the first that goes wrong is told.
pub fn side_by_side<W: Send, D: Send>(work: Vec<W>, each: impl Fn(W) -> Result<D> + Sync) -> Result<Vec<D>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(JUDGING_THREADS_MAX).min(work.len() / JUDGED_AT_ONCE);
    let next = Mutex::new(work.into_iter().enumerate());
    let some = || -> Result<Vec<(usize, D)>> {
        let mut done = Vec::new();
        loop {
            let taken: Vec<(usize, W)> =
                next.lock().unwrap_or_else(PoisonError::into_inner).by_ref().take(JUDGED_AT_ONCE).collect();
            if taken.is_empty() {
                return Ok(done);
            }
            for (number, work) in taken {
                done.push((number, each(work)?));
            }
        }
    };
    let mut all = std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(some)).collect();
        let mut all = some();
        for other in others {
            let done = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            all = all.and_then(|mut all| {
                all.extend(done?);
                Ok(all)
            });
        }
        all
    })?;
    all.sort_unstable_by_key(|(number, _)| *number);
    Ok(all.into_iter().map(|(_, done)| done).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn the_order_stays_and_what_goes_wrong_is_told() {
        for count in [0_u32, 1, 15, 16, 1_000] {
            let done = side_by_side((0..count).collect(), |number| Ok(number * 2)).unwrap();
            assert_eq!(done, (0..count).map(|number| number * 2).collect::<Vec<_>>());
        }
        let wrong = |number| if number == 777 { Err(Error::Rules("no".into())) } else { Ok(number) };
        assert_eq!(side_by_side((0..1_000).collect(), wrong).unwrap_err().id(), "rules");
    }
}
