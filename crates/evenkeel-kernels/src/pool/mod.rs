//! Pooling over sliding windows and whole images, on channels-last maps, with pullbacks in gather form.
//!
//! Window cell `t` of output `o` is the input at `stride*o + dilation*t - pad`; cells outside the input do not take part. A max pool's
//! tape is the winning cell of each window, counted row by row within the window; an average's is nothing.
//! The output extents are given, so how they were rounded is the caller's business. Every pullback sums each input's readers in
//! ascending order of the output, whatever the threads.

mod average;
#[cfg(target_arch = "x86_64")]
mod avx2;
mod global;
mod lp;
mod max;
mod reference;
#[cfg(test)]
mod tests;

use crate::layout::stride;
use crate::taps::Axis;

pub use average::{average, average_pullback};
pub use global::{global_average, global_average_pullback, global_max, global_max_pullback};
pub use lp::{LpTape, lp, lp_pullback};
pub use max::{Winners, WinnersMut, max, max_pullback};

/// The sizes of one pooling. Channels-last input `[batch, in_h, in_w, channels]`, output `[batch, out_h, out_w, channels]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Images.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// Input height.
    pub in_h: usize,
    /// Input width.
    pub in_w: usize,
    /// Output height.
    pub out_h: usize,
    /// Output width.
    pub out_w: usize,
    /// Window height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal stride.
    pub stride: [usize; 2],
    /// Vertical and horizontal dilation.
    pub dilation: [usize; 2],
    /// Cells around the input: top, left, bottom, right. They matter to an average that counts them.
    pub pads: [usize; 4],
}

impl Geometry {
    fn axes(&self) -> [Axis; 2] {
        let axis = |i: usize, input, output| Axis {
            input,
            output,
            kernel: self.kernel[i],
            stride: self.stride[i],
            dilation: self.dilation[i],
            pad: self.pads[i],
        };
        [axis(0, self.in_h, self.out_h), axis(1, self.in_w, self.out_w)]
    }

    /// Cells of one window.
    pub fn cells(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    fn in_len(&self) -> usize {
        self.batch * self.in_h * self.in_w * stride(self.channels)
    }

    fn out_len(&self) -> usize {
        self.batch * self.out_h * self.out_w * stride(self.channels)
    }

    fn check(&self, input: usize, output: usize) {
        assert_eq!(input, self.in_len(), "input of {self:?}");
        assert_eq!(output, self.out_len(), "output of {self:?}");
    }
}

/// Rows of a map so wide that a task of them is worth a thread.
fn row_grain(width: usize, channels: usize, cells: usize) -> usize {
    ((1 << 15) / (width * stride(channels) * cells).max(1)).max(1)
}
