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

    /// A Poisson draw of the given mean: by inversion when small, else by Hörmann's transformed rejection (PTRS, 1993).
    pub fn poisson(&mut self, mean: f32) -> f32 {
        if mean < 10.0 {
            return self.small_poisson(mean);
        }
        let b = 0.931 + 2.53 * mean.sqrt();
        let a = -0.059 + 0.02483 * b;
        let inverse_alpha = 1.1239 + 1.1328 / (b - 3.4);
        let accept = 0.9277 - 3.6224 / (b - 2.0);
        loop {
            let u = self.unit() - 0.5;
            let v = self.unit();
            let room = 0.5 - u.abs();
            let count = ((2.0 * a / room + b) * u + mean + 0.43).floor();
            if room >= 0.07 && v <= accept {
                return count;
            }
            if count < 0.0 || (room < 0.013 && v > room) {
                continue;
            }
            let bound = count * mean.ln() - mean - log_factorial(count);
            if (v * inverse_alpha / (a / (room * room) + b)).ln() <= bound {
                return count;
            }
        }
    }

    fn small_poisson(&mut self, mean: f32) -> f32 {
        let (mut left, mut probability, mut count) = (self.unit(), (-mean).exp(), 0.0);
        while left > probability && count < 60.0 {
            left -= probability;
            count += 1.0;
            probability *= mean / count;
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

/// ln(n!) by Stirling's series, good to 1e-6 from n = 2 on.
fn log_factorial(n: f32) -> f32 {
    if n < 2.0 {
        return 0.0;
    }
    let n = f64::from(n);
    let series = n * n.ln() - n + 0.5 * (std::f64::consts::TAU * n).ln() + 1.0 / (12.0 * n)
        - 1.0 / (360.0 * n.powi(3));
    series as f32
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
        for rate in [0.5, 8.0, 12.0, 60.0, 300.0] {
            let draws: Vec<f64> = (0..n).map(|_| f64::from(random.poisson(rate))).collect();
            let mean = draws.iter().sum::<f64>() / n as f64;
            let variance = draws.iter().map(|d| (d - mean).powi(2)).sum::<f64>() / n as f64;
            assert!((mean / f64::from(rate) - 1.0).abs() < 0.03, "{rate} {mean}");
            assert!((variance / f64::from(rate) - 1.0).abs() < 0.05, "{rate} {variance}");
        }
    }
}
