//! When things happen, as points on an axis on which they come one per unit on average, each found without those before it.
//!
//! ```text
//!   Poisson    | cell 0 | cell 1 | cell 2 | …     each cell of length 1 draws how many points it has, and where
//!   Bursty     | block 0          | block 1 | …   each block of length 32 begins its gaps anew
//!   Regular    one point per unit, a little early or late
//! ```

use crate::chance::Chance;

/// How evenly the changes of a page come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Timing {
    /// Without memory.
    Poisson,
    /// Gaps by a gamma distribution of shape 0.4: many short ones, few very long ones.
    Bursty,
    /// At the same hour of each day or week, a tenth of it early or late.
    Regular,
}

const BLOCK: f64 = 32.0;
const BURST_SHAPE: f64 = 0.4;
/// A renewal that begins at a point has (1/shape − 1)/2 points too many in a block; longer gaps make up for it.
const BURST_GAP: f64 = BLOCK / (BLOCK - (1.0 / BURST_SHAPE - 1.0) / 2.0);
const JITTER: f64 = 0.1;
/// Cells that are looked through; that none of them holds a point happens once in 10^27 times.
const CELLS_MAX: u32 = 64;
/// Points of one block that are looked at.
const BLOCK_POINTS_MAX: u64 = 1_024;

impl Timing {
    /// The first point after `at`.
    pub fn after(self, chance: Chance, at: f64) -> f64 {
        match self {
            Timing::Poisson => {
                let mut cell = at.floor();
                for _ in 0..CELLS_MAX {
                    let points = poisson_points(chance, cell).filter(|point| *point > at);
                    if let Some(first) = points.min_by(f64::total_cmp) {
                        return first;
                    }
                    cell += 1.0;
                }
                cell
            }
            Timing::Bursty => {
                let mut block = (at / BLOCK).floor();
                loop {
                    if let Some(first) = burst_points(chance, block).find(|point| *point > at) {
                        return first;
                    }
                    block += 1.0;
                }
            }
            Timing::Regular => {
                let near = at.floor();
                let points = (-1..=2).map(|step| regular_point(chance, near + f64::from(step)));
                points.filter(|point| *point > at).min_by(f64::total_cmp).unwrap_or(at + 1.0)
            }
        }
    }

    /// The last point up to `at`, or nothing where none came since zero.
    pub fn before(self, chance: Chance, at: f64) -> Option<f64> {
        let found = match self {
            Timing::Poisson => {
                let mut cell = at.floor();
                loop {
                    let points = poisson_points(chance, cell).filter(|point| *point <= at);
                    match points.max_by(f64::total_cmp) {
                        Some(last) => break last,
                        None if cell <= 0.0 => return None,
                        None => cell -= 1.0,
                    }
                }
            }
            Timing::Bursty => {
                let mut block = (at / BLOCK).floor();
                loop {
                    match burst_points(chance, block).take_while(|point| *point <= at).last() {
                        Some(last) => break last,
                        None if block <= 0.0 => return None,
                        None => block -= 1.0,
                    }
                }
            }
            Timing::Regular => {
                let near = at.floor();
                let points = (-2..=1).map(|step| regular_point(chance, near + f64::from(step)));
                points.filter(|point| *point <= at).max_by(f64::total_cmp)?
            }
        };
        (found >= 0.0).then_some(found)
    }
}

fn poisson_points(chance: Chance, cell: f64) -> impl Iterator<Item = f64> {
    let chance = chance.at(cell as i64 as u64);
    let mut left = chance.at(0).unit();
    let (mut points, mut share) = (0u64, (-1f64).exp());
    while left > share && points < 16 {
        left -= share;
        points += 1;
        share /= points as f64;
    }
    (1..=points).map(move |number| cell + chance.at(number).unit())
}

fn burst_points(chance: Chance, block: f64) -> impl Iterator<Item = f64> {
    let chance = chance.at(block as i64 as u64);
    let mut at = block * BLOCK;
    let end = at + BLOCK;
    (0..BLOCK_POINTS_MAX).map_while(move |number| {
        at += burst_gap(chance.at(number));
        (at < end).then_some(at)
    })
}

/// A gamma number of shape 0.4 and mean one: Marsaglia and Tsang for the shape above one, brought down by a power.
fn burst_gap(chance: Chance) -> f64 {
    let d = BURST_SHAPE + 1.0 - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    let mut draw = chance;
    let above = loop {
        let x = draw.at(1).normal();
        let v = (1.0 + c * x).powi(3);
        if v > 0.0 && draw.at(2).unit().ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            break d * v;
        }
        draw = draw.at(3);
    };
    above * chance.at(4).unit().powf(1.0 / BURST_SHAPE) / BURST_SHAPE * BURST_GAP
}

fn regular_point(chance: Chance, number: f64) -> f64 {
    let phase = chance.at(0).unit();
    number + phase + JITTER * (2.0 * chance.at(1).at(number as i64 as u64).unit() - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Timing; 3] = [Timing::Poisson, Timing::Bursty, Timing::Regular];

    #[test]
    fn one_point_comes_per_unit() {
        for timing in ALL {
            let mut points = 0u32;
            for page in 0..400 {
                let chance = Chance::new(11).at(page);
                let mut at = timing.after(chance, 0.0);
                while at < 100.0 {
                    points += 1;
                    at = timing.after(chance, at);
                }
            }
            let per_unit = f64::from(points) / 40_000.0;
            assert!((per_unit - 1.0).abs() < 0.02, "{timing:?}: {per_unit}");
        }
    }

    #[test]
    fn before_and_after_tell_of_the_same_points() {
        for timing in ALL {
            for page in 0..200 {
                let chance = Chance::new(5).at(page);
                let at = 3.0 + chance.at(99).unit() * 50.0;
                let after = timing.after(chance, at);
                assert!(after > at);
                assert_eq!(timing.before(chance, after), Some(after));
                if let Some(before) = timing.before(chance, at) {
                    assert!(before <= at);
                    assert_eq!(timing.after(chance, before), after, "{timing:?}");
                }
            }
        }
    }
}
