//! Convolution. Forwards and to the input it is the engine's own; here is the gradient to the weights.
//!
//! `gw[o, t, c] = sum over pixels p of gy[p, o] · x[s·p + d·t − pad, c]`: one matrix product an image, `gy' · columns(x)`, the
//! images' sums added in order.

use crate::map::{Map, zeros};
use evenkeel_kernels::buffer::Buffer;
use evenkeel_kernels::conv2d::{Geometry, Weights, forward, pullback};
use evenkeel_kernels::epilogue::Epilogue;
use evenkeel_kernels::gemm::{Operand, Scale, Shape, gemm};
use evenkeel_kernels::layout;
use rayon::prelude::*;

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
        let taps = self.kernel * self.kernel;
        let (cells, wide) = (gy.height * gy.width, taps * self.in_c);
        let parts: Vec<Vec<f32>> = (0..x.batch)
            .into_par_iter()
            .map(|image| {
                let from = &x.values[image * x.image_len()..][..x.image_len()];
                let errors = &gy.values[image * gy.image_len()..][..gy.image_len()];
                let mut part = vec![0.0; self.out_c * wide];
                let shape = Shape { batch: 1, m: self.out_c, n: wide, k: cells };
                let a =
                    Operand { values: errors, batch_stride: 0, row_stride: 1, column_stride: gy.stride() };
                if self.kernel == 1 && self.stride == 1 {
                    let b =
                        Operand { values: from, batch_stride: 0, row_stride: x.stride(), column_stride: 1 };
                    gemm(shape, a, b, &mut part, Scale::default());
                } else {
                    let columns = self.columns(x, from, (gy.height, gy.width));
                    gemm(shape, a, Operand::row_major(&columns, cells, wide), &mut part, Scale::default());
                }
                part
            })
            .collect();
        for part in parts {
            for o in 0..self.out_c {
                for t in 0..taps {
                    for c in 0..self.in_c {
                        gw[(o * self.in_c + c) * taps + t] += part[o * wide + t * self.in_c + c];
                    }
                }
            }
        }
    }

    /// For each output cell, the pixels under the kernel: `[cell][tap][channel]`, zeros outside the image.
    fn columns(&self, x: &Map, from: &[f32], (out_h, out_w): (usize, usize)) -> Buffer<f32> {
        let (k, c, stride) = (self.kernel, self.in_c, layout::stride(self.in_c));
        let mut columns = zeros(out_h * out_w * k * k * c);
        for (cell, line) in columns.chunks_exact_mut(k * k * c).enumerate() {
            let (oy, ox) = (cell / out_w, cell % out_w);
            for ky in 0..k {
                let y = (oy * self.stride + ky * self.dilation).wrapping_sub(self.pad());
                if y >= x.height {
                    continue;
                }
                for kx in 0..k {
                    let column = (ox * self.stride + kx * self.dilation).wrapping_sub(self.pad());
                    if column < x.width {
                        let at = (y * x.width + column) * stride;
                        line[(ky * k + kx) * c..][..c].copy_from_slice(&from[at..at + c]);
                    }
                }
            }
        }
        columns
    }
}

/// Adds the gradient to the bias: the sum over pixels.
pub(crate) fn to_bias(gy: &Map, gb: &mut [f32]) {
    for pixel in gy.values.chunks_exact(gy.stride()) {
        gb.iter_mut().zip(pixel).for_each(|(g, v)| *g += v);
    }
}
