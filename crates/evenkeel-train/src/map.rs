//! A batch of feature maps, channels last: `[n][h][w][stride]`, the channels rounded up to whole vectors of eight.

use evenkeel_kernels::layout;

/// A batch of feature maps.
#[derive(Clone, Debug, PartialEq)]
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
    pub values: Vec<f32>,
}

impl Map {
    /// A map of zeros.
    pub fn zeros(batch: usize, height: usize, width: usize, channels: usize) -> Self {
        let values = vec![0.0; batch * height * width * layout::stride(channels)];
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
        self.values.iter_mut().zip(&other.values).for_each(|(a, b)| *a += b);
    }
}
