//! Chance as a pure function: the same key and the same question give the same number, on every machine and for ever.

/// A key from which independent numbers are drawn by asking numbered questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chance(u64);

impl Chance {
    /// The key of a seed.
    pub fn new(seed: u64) -> Self {
        Chance(mix(seed ^ 0x5ee9_0000_0000_0001))
    }

    /// The key below this one for a number.
    pub fn at(self, number: u64) -> Self {
        Chance(mix(self.0 ^ mix(number.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// The key below this one for a text.
    pub fn of(self, text: &str) -> Self {
        self.at(hash(text.as_bytes()))
    }

    /// All 64 bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// A number in `0..below`; 0 when `below` is 0.
    pub fn below(self, below: u64) -> u64 {
        ((u128::from(self.0) * u128::from(below)) >> 64) as u64
    }

    /// A number between 0 and 1, neither of them.
    pub fn unit(self) -> f64 {
        ((self.0 >> 12) as f64 + 0.5) / (1u64 << 52) as f64
    }

    /// A number of the standard normal distribution.
    pub fn normal(self) -> f64 {
        let angle = std::f64::consts::TAU * self.at(1).unit();
        (-2.0 * self.at(2).unit().ln()).sqrt() * angle.cos()
    }

    /// True in `permille` of a thousand cases.
    pub fn permille(self, permille: u32) -> bool {
        self.below(1000) < u64::from(permille)
    }

    /// One of a non-empty list.
    pub fn pick<T>(self, list: &[T]) -> &T {
        &list[self.below(list.len() as u64) as usize]
    }
}

/// splitmix64's finishing step.
fn mix(mut x: u64) -> u64 {
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// A 64-bit hash of bytes, for entity tags and keys; not against an enemy.
pub fn hash(bytes: &[u8]) -> u64 {
    let mut state = 0xcbf2_9ce4_8422_2325 ^ bytes.len() as u64;
    let mut words = bytes.chunks_exact(8);
    for word in &mut words {
        let word = u64::from_le_bytes(word.try_into().expect("chunks of eight"));
        state = (state ^ word).wrapping_mul(0x9fb2_1c65_1e98_df25).rotate_left(29);
    }
    for byte in words.remainder() {
        state = (state ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    mix(state)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_frozen() {
        assert_eq!(Chance::new(1).at(2).of("three").bits(), 12_835_707_520_208_293_209);
        assert_eq!(hash(b"a web to test against"), 6_543_428_891_416_059_435);
    }

    #[test]
    fn below_is_even_enough() {
        let mut counts = [0u32; 10];
        for n in 0..10_000 {
            counts[Chance::new(7).at(n).below(10) as usize] += 1;
        }
        assert!(counts.iter().all(|c| (850..1150).contains(c)), "{counts:?}");
    }

    #[test]
    fn normal_numbers_have_mean_zero_and_variance_one() {
        let drawn: Vec<f64> = (0..20_000).map(|n| Chance::new(3).at(n).normal()).collect();
        let mean = drawn.iter().sum::<f64>() / drawn.len() as f64;
        let variance = drawn.iter().map(|x| x * x).sum::<f64>() / drawn.len() as f64;
        assert!(mean.abs() < 0.03 && (variance - 1.0).abs() < 0.05, "{mean} {variance}");
    }
}
