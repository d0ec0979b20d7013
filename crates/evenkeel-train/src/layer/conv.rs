//! Convolution: the engine's own, forwards, to the input and to the weights.

use crate::map::Map;
use evenkeel_kernels::conv2d::{Geometry, Weights, forward, pullback, to_weights};
use evenkeel_kernels::epilogue::Epilogue;

/// The sizes of a convolution, without those of its input. Padding keeps the size up to the stride.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Conv {
    /// Channels of the input.
    pub in_c: usize,
    /// Channels of the output.
    pub out_c: usize,
    /// Taps down and across.
    pub kernel: usize,
    /// Pixels from one output to the next.
    pub stride: usize,
    /// Pixels from one tap to the next.
    pub dilation: usize,
}

impl Conv {
    pub(crate) fn pad(&self) -> usize {
        self.dilation * (self.kernel - 1) / 2
    }

    fn geometry(&self, x: &Map) -> Geometry {
        Geometry {
            batch: x.batch,
            in_h: x.height,
            in_w: x.width,
            in_c: self.in_c,
            out_c: self.out_c,
            kernel: [self.kernel; 2],
            stride: [self.stride; 2],
            dilation: [self.dilation; 2],
            pads: [self.pad(); 4],
            groups: 1,
        }
    }

    /// The weights `[out][in][k][k]` in the kernels' form.
    pub fn packed(&self, weights: &[f32]) -> Weights {
        Weights::new(weights.to_vec(), self.out_c, self.in_c, [self.kernel; 2], 1)
    }

    /// The convolution of a map.
    pub fn forward(&self, weights: &Weights, bias: Option<&[f32]>, x: &Map) -> Map {
        let geometry = self.geometry(x);
        let mut out = Map::zeros(x.batch, geometry.out_h(), geometry.out_w(), self.out_c);
        forward(&geometry, weights, &x.values, &mut out.values, Epilogue { bias, ..Epilogue::default() });
        out
    }

    /// Adds the gradient to the input to `gx`.
    pub fn to_input(self, weights: &Weights, gy: &Map, gx: &mut Map) {
        let geometry = self.geometry(gx);
        let epilogue = Epilogue { accumulate: true, ..Epilogue::default() };
        pullback(&geometry, weights, &gy.values, &mut gx.values, epilogue);
    }

    /// Adds the gradient to the weights to `gw`, `[out][in][k][k]`.
    pub fn to_weights(self, x: &Map, gy: &Map, gw: &mut [f32]) {
        to_weights(&self.geometry(x), &x.values, &gy.values, gw);
    }
}

/// Adds the gradient to the bias: the sum over pixels.
pub(crate) fn to_bias(gy: &Map, gb: &mut [f32]) {
    for pixel in gy.values.chunks_exact(gy.stride()) {
        gb.iter_mut().zip(pixel).for_each(|(g, v)| *g += v);
    }
}
