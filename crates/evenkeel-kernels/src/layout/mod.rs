//! The channels-last layout of feature maps: `[n][h][w][stride]`, where `stride` is the channel count rounded up to whole
//! vectors of eight; the ways between it and planar `[n][c][h][w]`; and channel ranges copied from map to map.
//!
//! The lanes past the last channel are padding. They hold anything at all, and no kernel lets them touch a real lane.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod channels;
mod permute;
mod reference;
#[cfg(test)]
mod tests;

use crate::disjoint::Disjoint;
use crate::parallel;

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::transpose;
pub use channels::{Span, add_channels, copy_channels};
pub use permute::permute_channels;

/// Lanes in one vector, and channels that share one byte of a bit mask.
pub const LANES: usize = 8;

/// Elements from one pixel to the next in a channels-last map of `channels` channels.
pub const fn stride(channels: usize) -> usize {
    channels.div_ceil(LANES) * LANES
}

/// Elements below which a copy is not worth splitting.
const GRAIN: usize = 1 << 15;

/// The extents both layouts share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extents {
    /// Images.
    pub batch: usize,
    /// Real channels.
    pub channels: usize,
    /// Pixels of one image, height times width.
    pub pixels: usize,
}

/// A dense tensor seen from one of its axes: `[outer][length][inner]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Along {
    /// The product of the extents before the axis.
    pub outer: usize,
    /// The axis.
    pub length: usize,
    /// The product of the extents after it.
    pub inner: usize,
}

impl Along {
    /// Elements in all.
    pub fn len(&self) -> usize {
        self.outer * self.length * self.inner
    }

    /// Whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl Extents {
    fn planar_len(&self) -> usize {
        self.batch * self.channels * self.pixels
    }

    fn map_len(&self) -> usize {
        self.batch * self.pixels * stride(self.channels)
    }

    fn check(&self, planar: usize, map: usize) {
        assert_eq!(planar, self.planar_len(), "planar length for {self:?}");
        assert_eq!(map, self.map_len(), "channels-last length for {self:?}");
    }

    /// Runs `task(image, pixels)` over pixel ranges that start on whole vectors.
    fn each_range(&self, task: impl Fn(usize, std::ops::Range<usize>) + Sync + Send) {
        if self.channels == 0 {
            return;
        }
        let blocks = self.pixels.div_ceil(LANES);
        let grain = (GRAIN / (LANES * stride(self.channels))).max(1);
        parallel::ranges(self.batch * blocks, grain, |range| {
            let mut block = range.start;
            while block < range.end {
                let image = block / blocks;
                let last = range.end.min((image + 1) * blocks);
                let first_pixel = (block - image * blocks) * LANES;
                let last_pixel = ((last - image * blocks) * LANES).min(self.pixels);
                task(image, first_pixel..last_pixel);
                block = last;
            }
        });
    }
}

/// Channels-last from planar. Padding lanes become zero.
///
/// # Panics
/// If a slice's length does not fit the extents.
pub fn from_planar(extents: Extents, planar: &[f32], map: &mut [f32]) {
    extents.check(planar.len(), map.len());
    let (channels, pixels, step) = (extents.channels, extents.pixels, stride(extents.channels));
    let parts = Disjoint::new(map);
    extents.each_range(|image, range| {
        let source = &planar[image * channels * pixels..(image + 1) * channels * pixels];
        let first = image * pixels;
        // SAFETY: the ranges of different tasks are different pixels.
        let target = unsafe { parts.part((first + range.start) * step..(first + range.end) * step) };
        #[cfg(target_arch = "x86_64")]
        if let Some(proof) = crate::cpu::avx2() {
            return avx2::from_planar(proof, channels, pixels, source, range, target);
        }
        reference::from_planar(channels, pixels, source, range, target);
    });
}

/// Planar from channels-last.
///
/// # Panics
/// If a slice's length does not fit the extents.
pub fn to_planar(extents: Extents, map: &[f32], planar: &mut [f32]) {
    extents.check(planar.len(), map.len());
    let (channels, pixels, step) = (extents.channels, extents.pixels, stride(extents.channels));
    let parts = Disjoint::new(planar);
    extents.each_range(|image, range| {
        let first = image * pixels;
        let source = &map[(first + range.start) * step..(first + range.end) * step];
        // A tile of up to eight channels goes out at a time, one row of pixels each.
        for group in (0..channels).step_by(LANES) {
            let rows: [&mut [f32]; LANES] = std::array::from_fn(|i| {
                if group + i >= channels {
                    return &mut [][..];
                }
                let row = (image * channels + group + i) * pixels;
                // SAFETY: different tasks have different pixels, different rows different channels.
                unsafe { parts.part(row + range.start..row + range.end) }
            });
            #[cfg(target_arch = "x86_64")]
            if let Some(proof) = crate::cpu::avx2() {
                avx2::to_planar(proof, step, &source[group..], rows, channels - group);
                continue;
            }
            reference::to_planar(step, &source[group..], rows);
        }
    });
}
