//! Confidence intervals by resampling images, in one pass and in constant memory.
//!
//! The Poisson bootstrap: in replicate `b` an image counts `w` times, `w ~ Poisson(1)`, drawn by hashing (seed, image, b).
//! The weight depends on nothing else, so replicates can be kept as running tallies, merged across processes, and fed
//! in any order; and metrics over the same images with the same seed are resampled alike, which pairs their intervals.
//! Interval: percentiles of the replicates' values, linearly interpolated. Replicates in which the metric does not
//! exist (no positive drawn, say) are left out and counted.

use serde::Serialize;

/// A seeded plan of resampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bootstrap {
    /// Same seed, same intervals.
    pub seed: u64,
    /// How many resamplings; 0 asks for no interval.
    pub replicates: u32,
}

/// A confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Interval {
    /// Lower end.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// The share of replicates it covers, 0.95 by default.
    pub confidence: f64,
    /// Replicates in which the metric existed.
    pub replicates: u32,
}

/// `round(P(X <= k) * 2^64)` for Poisson(1): a uniform 64-bit draw below entry k, and not below k-1, means k.
const POISSON_1: [u64; 20] = [
    0x5e2d_58d8_b3bc_df1b,
    0xbc5a_b1b1_6779_be35,
    0xeb71_5e1d_c158_2dc3,
    0xfb23_9797_34a2_52f2,
    0xff10_25f5_9174_dc3e,
    0xffd9_0f3b_a405_5e1a,
    0xfffa_8b71_fc72_c914,
    0xffff_540c_0914_b3ca,
    0xffff_ed1f_4aa8_f120,
    0xffff_fe21_6e64_1463,
    0xffff_ffd4_d85d_3183,
    0xffff_fffc_6da2_62b5,
    0xffff_ffff_ba12_d179,
    0xffff_ffff_fb07_c64d,
    0xffff_ffff_ffab_8ea5,
    0xffff_ffff_fffa_be22,
    0xffff_ffff_ffff_b11a,
    0xffff_ffff_ffff_fba1,
    0xffff_ffff_ffff_ffc5,
    0xffff_ffff_ffff_fffd,
];

impl Bootstrap {
    /// No resampling.
    pub const NONE: Self = Self { seed: 0, replicates: 0 };

    /// How often the image with this key counts in this replicate.
    pub fn weight(&self, key: u64, replicate: u32) -> u64 {
        let draw = mix(mix(self.seed ^ mix(key)).wrapping_add(u64::from(replicate)));
        POISSON_1.iter().take_while(|&&edge| draw >= edge).count() as u64
    }

    /// The central interval of the given confidence over the replicates' values.
    pub fn interval(values: impl IntoIterator<Item = Option<f64>>, confidence: f64) -> Option<Interval> {
        let mut values: Vec<f64> = values.into_iter().flatten().filter(|v| !v.is_nan()).collect();
        if values.is_empty() {
            return None;
        }
        values.sort_unstable_by(f64::total_cmp);
        let tail = (1.0 - confidence) / 2.0;
        let (low, high) = (quantile(&values, tail), quantile(&values, 1.0 - tail));
        Some(Interval { low, high, confidence, replicates: values.len() as u32 })
    }
}

/// The key of an image known by name: 64-bit FNV-1a of its bytes.
pub fn key_of(id: &str) -> u64 {
    id.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// The splitmix64 step: a bijection whose output passes for random.
fn mix(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Linear interpolation between order statistics, at position `q * (n - 1)`.
fn quantile(sorted: &[f64], q: f64) -> f64 {
    let at = q * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let share = at - below as f64;
    sorted[below] + (sorted[above] - sorted[below]) * share
}

/// Something that adds up over images, so that any resampling of them is a weighted sum.
pub trait Tally: Clone {
    /// Adds `times` copies of `image`.
    fn add(&mut self, image: &Self, times: u64);
}

/// A tally over all images and, beside it, one per bootstrap replicate.
///
/// Memory does not grow with the images; feeding order and splitting do not matter if the tally's `add` is exact.
#[derive(Clone, Debug)]
pub struct Resampled<T> {
    plan: Bootstrap,
    whole: T,
    replicates: Vec<T>,
    images: u64,
}

impl<T: Tally> Resampled<T> {
    /// Starts from an empty tally.
    pub fn new(empty: T, plan: Bootstrap) -> Self {
        Self { plan, replicates: vec![empty.clone(); plan.replicates as usize], whole: empty, images: 0 }
    }

    /// Takes in one image's tally.
    pub fn push(&mut self, key: u64, image: &T) {
        self.images += 1;
        self.whole.add(image, 1);
        for (b, replicate) in self.replicates.iter_mut().enumerate() {
            match self.plan.weight(key, b as u32) {
                0 => {}
                times => replicate.add(image, times),
            }
        }
    }

    /// Takes in another part of the same study; the plans must be equal.
    pub fn merge(&mut self, other: &Self) {
        assert_eq!(self.plan, other.plan, "parts of one study share their bootstrap plan");
        self.images += other.images;
        self.whole.add(&other.whole, 1);
        for (mine, theirs) in self.replicates.iter_mut().zip(&other.replicates) {
            mine.add(theirs, 1);
        }
    }

    /// The tally over all images.
    pub fn whole(&self) -> &T {
        &self.whole
    }

    /// How many images went in.
    pub fn images(&self) -> u64 {
        self.images
    }

    /// The interval of a figure derived from the tally.
    pub fn interval(&self, confidence: f64, figure: impl Fn(&T) -> Option<f64>) -> Option<Interval> {
        Bootstrap::interval(self.replicates.iter().map(figure), confidence)
    }
}
