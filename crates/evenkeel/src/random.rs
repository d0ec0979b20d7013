//! Seeded randomness: one ChaCha stream per purpose, so that a draw never depends on threads or on what was drawn elsewhere.
//!
//! `Random::new(seed)` is a root; `fork(i)` is an independent stream that depends only on the root's seed, its path of forks
//! and `i`, not on how many numbers were drawn before.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A seeded stream of random numbers.
#[derive(Clone, Debug)]
pub struct Random {
    seed: u64,
    stream: ChaCha8Rng,
    spare: Option<f32>,
}

impl Random {
    /// The root stream of a seed.
    pub fn new(seed: u64) -> Self {
        Self { seed, stream: ChaCha8Rng::seed_from_u64(seed), spare: None }
    }

    /// An independent stream for the part numbered `index`, whatever was drawn from this one before.
    pub fn fork(&self, index: u64) -> Self {
        Self::new(mix(self.seed ^ mix(index.wrapping_add(0x9e37_79b9_7f4a_7c15))))
    }

    /// The seed that reproduces this stream from its beginning.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// 32 random bits.
    pub fn bits(&mut self) -> u32 {
        self.stream.next_u32()
    }

    /// Uniform in [0, 1), on a grid of 2^-24.
    pub fn unit(&mut self) -> f32 {
        (self.bits() >> 8) as f32 * (1.0 / 16_777_216.0)
    }

    /// Uniform in [low, high).
    pub fn uniform(&mut self, low: f32, high: f32) -> f32 {
        low + (high - low) * self.unit()
    }

    /// True with probability `p`.
    pub fn chance(&mut self, p: f32) -> bool {
        self.unit() < p
    }

    /// Uniform in 0..count (0 if `count` is 0).
    pub fn below(&mut self, count: usize) -> usize {
        ((u64::from(self.bits()) * count as u64) >> 32) as usize
    }

    /// A standard normal draw (Box-Muller; the second of each pair is kept for the next call).
    pub fn normal(&mut self) -> f32 {
        if let Some(kept) = self.spare.take() {
            return kept;
        }
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        let (sine, cosine) = (std::f32::consts::TAU * self.unit()).sin_cos();
        self.spare = Some(radius * sine);
        radius * cosine
    }

    /// A Poisson draw of the given mean: by multiplication when small, by a rounded normal beyond 64.
    pub fn poisson(&mut self, mean: f32) -> f32 {
        if mean > 64.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0);
        }
        let floor = (-mean).exp();
        let (mut count, mut product) = (0.0, self.unit());
        while product > floor {
            count += 1.0;
            product *= self.unit();
        }
        count
    }

    /// A random order of 0..count.
    pub fn order(&mut self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        for i in (1..count).rev() {
            order.swap(i, self.below(i + 1));
        }
        order
    }
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fork_does_not_depend_on_earlier_draws() {
        let mut root = Random::new(7);
        let before = root.fork(3).bits();
        root.normal();
        assert_eq!(root.fork(3).bits(), before);
        assert_ne!(root.fork(4).bits(), before);
    }

    #[test]
    fn draws_have_their_moments() {
        let mut random = Random::new(1);
        let n = 40_000;
        let draws: Vec<f64> = (0..n).map(|_| f64::from(random.normal())).collect();
        let mean = draws.iter().sum::<f64>() / n as f64;
        let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n as f64;
        assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
        for rate in [0.5, 8.0, 100.0] {
            let mean = (0..n).map(|_| f64::from(random.poisson(rate))).sum::<f64>() / n as f64;
            assert!((mean / f64::from(rate) - 1.0).abs() < 0.03, "{rate} {mean}");
        }
    }
}
