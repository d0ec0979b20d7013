//! Depthwise convolution and its pullback as plain loops, for any channel multiplier.

use super::{Packed, axes};
use crate::conv2d::Geometry;
use crate::epilogue::Epilogue;
use crate::epilogue_rows::EpilogueRows;
use crate::layout::stride;
use crate::parallel;
use crate::taps::Reach;

pub(super) fn forward(
    g: &Geometry,
    weights: &Packed,
    input: &[f32],
    output: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    let (step_in, step_out, multiplier) = (stride(g.in_c), stride(g.out_c), g.out_c / g.in_c);
    let (out_h, out_w) = (g.out_h(), g.out_w());
    let reach = Reach::forward(axes(g));
    let finished = EpilogueRows::new(epilogue, g.out_c, output);
    parallel::ranges(g.batch * out_h, 1, |range| {
        let mut cells = Vec::new();
        let mut sums = vec![0.0; out_w * step_out];
        for i in range {
            let image = &input[i / out_h * g.in_h * g.in_w * step_in..];
            for (x, sums) in sums.chunks_exact_mut(step_out).enumerate() {
                reach.gather(i % out_h, x, &mut cells);
                sums.fill(0.0);
                for &(pixel, tap) in &cells {
                    for c in 0..g.out_c {
                        sums[c] += weights.taps[tap * step_out + c] * image[pixel * step_in + c / multiplier];
                    }
                }
            }
            // SAFETY: one row belongs to one task.
            unsafe { finished.finish(i * out_w * step_out, &mut sums) };
        }
    });
}

pub(super) fn pullback(
    g: &Geometry,
    weights: &Packed,
    grad_out: &[f32],
    grad_in: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    let (step_in, step_out, multiplier) = (stride(g.in_c), stride(g.out_c), g.out_c / g.in_c);
    let reach = Reach::pullback(axes(g));
    let finished = EpilogueRows::new(epilogue, g.in_c, grad_in);
    parallel::ranges(g.batch * g.in_h, 1, |range| {
        let mut readers = Vec::new();
        let mut sums = vec![0.0; g.in_w * step_in];
        for i in range {
            let image = &grad_out[i / g.in_h * g.out_h() * g.out_w() * step_out..];
            for (x, sums) in sums.chunks_exact_mut(step_in).enumerate() {
                reach.gather(i % g.in_h, x, &mut readers);
                sums.fill(0.0);
                for &(pixel, tap) in &readers {
                    for c in 0..g.out_c {
                        sums[c / multiplier] +=
                            weights.taps[tap * step_out + c] * image[pixel * step_out + c];
                    }
                }
            }
            // SAFETY: one row belongs to one task.
            unsafe { finished.finish(i * g.in_w * step_in, &mut sums) };
        }
    });
}
