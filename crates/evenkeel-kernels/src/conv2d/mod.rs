//! Two-dimensional convolution on channels-last maps, forwards and pulled back to its input.
//!
//! Forwards, `y[n, o, p] = sum over c, t of w[o, c, t] * x[n, c, s*p + d*t - pad]`; the pullback is its transpose. Weights are
//! frozen, so both directions are plain convolutions with weights packed once.

pub mod winograd;

/// The sizes of one convolution. Channels-last input `[batch, in_h, in_w, in_c]`, output `[batch, out_h, out_w, out_c]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Images.
    pub batch: usize,
    /// Input height.
    pub in_h: usize,
    /// Input width.
    pub in_w: usize,
    /// Input channels, all groups together.
    pub in_c: usize,
    /// Output channels, all groups together.
    pub out_c: usize,
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal stride.
    pub stride: [usize; 2],
    /// Vertical and horizontal dilation.
    pub dilation: [usize; 2],
    /// Zero rows and columns around the input: top, left, bottom, right.
    pub pads: [usize; 4],
    /// Groups; divides both channel counts.
    pub groups: usize,
}

impl Geometry {
    /// Output height: zero if the kernel does not fit.
    pub fn out_h(&self) -> usize {
        extent(self.in_h, self.pads[0] + self.pads[2], self.kernel[0], self.stride[0], self.dilation[0])
    }

    /// Output width: zero if the kernel does not fit.
    pub fn out_w(&self) -> usize {
        extent(self.in_w, self.pads[1] + self.pads[3], self.kernel[1], self.stride[1], self.dilation[1])
    }

    /// Multiplications and additions of one forward pass (the pullback has as many).
    pub fn flops(&self) -> f64 {
        let taps = self.kernel[0] * self.kernel[1] * (self.in_c / self.groups.max(1));
        2.0 * (self.batch * self.out_h() * self.out_w() * self.out_c) as f64 * taps as f64
    }
}

fn extent(input: usize, pads: usize, kernel: usize, stride: usize, dilation: usize) -> usize {
    let reach = dilation * (kernel - 1) + 1;
    if input + pads < reach { 0 } else { (input + pads - reach) / stride + 1 }
}
