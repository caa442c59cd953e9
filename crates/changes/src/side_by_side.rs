//! Work on many things that have nothing to do with each other, on as many threads as there are cores.

use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::limits::{JUDGED_AT_ONCE, JUDGING_THREADS_MAX};

/// Does all of it. What comes back is in the order of what went in; the first that goes wrong is told.
pub fn side_by_side<W: Send, D: Send>(
    work: Vec<W>,
    each: impl Fn(W) -> Result<D> + Sync,
) -> Result<impl Iterator<Item = D>> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = cores.min(JUDGING_THREADS_MAX).min(work.len() / JUDGED_AT_ONCE);
    let next = Mutex::new((0, work.into_iter()));
    // What is done is large: it stays where it was put, and only the portions are brought into order.
    let some = || -> Result<Vec<(usize, Vec<D>)>> {
        let mut done = Vec::new();
        loop {
            let (number, taken) = {
                let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
                next.0 += 1;
                (next.0, next.1.by_ref().take(JUDGED_AT_ONCE).collect::<Vec<W>>())
            };
            if taken.is_empty() {
                return Ok(done);
            }
            done.push((number, taken.into_iter().map(&each).collect::<Result<Vec<D>>>()?));
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
    Ok(all.into_iter().flat_map(|(_, done)| done))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Error;

    #[test]
    fn the_order_stays_and_what_goes_wrong_is_told() {
        for count in [0_u32, 1, 15, 16, 1_000] {
            let done = side_by_side((0..count).collect(), |number| Ok(number * 2)).unwrap();
            assert_eq!(done.collect::<Vec<_>>(), (0..count).map(|number| number * 2).collect::<Vec<_>>());
        }
        let wrong = |number| if number == 777 { Err(Error::Rules("no".into())) } else { Ok(number) };
        assert_eq!(side_by_side((0..1_000).collect(), wrong).err().map(|error| error.id()), Some("rules"));
    }
}
