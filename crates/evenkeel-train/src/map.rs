//! A batch of feature maps, channels last: `[n][h][w][stride]`, the channels rounded up to whole vectors of eight.

use rayon::prelude::*;
use std::sync::LazyLock;

use evenkeel_kernels::buffer::{Buffer, Pool};
use evenkeel_kernels::layout;

/// The memory of all maps: every step of a training needs the same again, and asking the system for it took a fifth of the time.
static MEMORY: LazyLock<Pool> = LazyLock::new(|| Pool::new(usize::MAX));

/// Zeros in memory that goes back to where the next step finds it.
pub(crate) fn zeros(len: usize) -> Buffer<f32> {
    MEMORY.zeros(len).expect("memory for a batch of maps; a smaller --batch needs less")
}

/// A batch of feature maps.
#[derive(Debug)]
pub struct Map {
    /// Images.
    pub batch: usize,
    /// Rows.
    pub height: usize,
    /// Columns.
    pub width: usize,
    /// Channels.
    pub channels: usize,
    /// The values; lanes past the last channel hold anything.
    pub values: Buffer<f32>,
}

impl Map {
    /// A map of zeros.
    pub fn zeros(batch: usize, height: usize, width: usize, channels: usize) -> Self {
        let values = zeros(batch * height * width * layout::stride(channels));
        Self { batch, height, width, channels, values }
    }

    /// Zeros of the same shape.
    pub fn like(other: &Self) -> Self {
        Self::zeros(other.batch, other.height, other.width, other.channels)
    }

    /// Elements from one pixel to the next.
    pub fn stride(&self) -> usize {
        layout::stride(self.channels)
    }

    /// Pixels of the whole batch.
    pub fn pixels(&self) -> usize {
        self.batch * self.height * self.width
    }

    /// Elements of one image.
    pub fn image_len(&self) -> usize {
        self.height * self.width * self.stride()
    }

    /// Adds another map of the same shape.
    pub fn add(&mut self, other: &Self) {
        assert_eq!(self.values.len(), other.values.len(), "maps of one shape");
        let parts = self.values.par_chunks_mut(1 << 14).zip(other.values.par_chunks(1 << 14));
        parts.for_each(|(to, from)| to.iter_mut().zip(from).for_each(|(a, b)| *a += b));
    }
}

impl Clone for Map {
    fn clone(&self) -> Self {
        let mut copy = Self::like(self);
        copy.values.copy_from_slice(&self.values);
        copy
    }
}
