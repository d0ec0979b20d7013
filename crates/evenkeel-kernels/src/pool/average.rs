//! Average pooling: `y[o] = (sum over t of x[stride*o + dilation*t - pad]) / count(o)`, where the count is the window's cells
//! inside the input or, when padding counts, inside the padded input.

use super::{Geometry, row_grain};
use crate::epilogue::Epilogue;
use crate::epilogue_rows::EpilogueRows;
use crate::layout::{LANES, stride};
use crate::parallel;
use crate::taps::{Axis, Reach};
use crate::vectorised::vectorised;

/// Average pooling. A window without a counted cell gives NaN.
///
/// # Panics
/// If a slice's length does not fit.
pub fn average(geometry: &Geometry, count_padding: bool, input: &[f32], output: &mut [f32]) {
    geometry.check(input.len(), output.len());
    if output.is_empty() {
        return;
    }
    let step = stride(geometry.channels);
    let image = geometry.in_h * geometry.in_w * step;
    let reach = Reach::forward(geometry.axes());
    let counts = counts(geometry, count_padding);
    let row = geometry.out_w * step;
    let grain = row_grain(geometry.out_w, geometry.channels, geometry.cells());
    parallel::rows(output, row, grain, |first, rows| {
        let mut cells = Vec::new();
        for (i, out_row) in rows.chunks_exact_mut(row).enumerate() {
            let (n, y) = ((first + i) / geometry.out_h, (first + i) % geometry.out_h);
            for (x, out) in out_row.chunks_exact_mut(step).enumerate() {
                reach.gather(y, x, &mut cells);
                sum_cells(&input[n * image..(n + 1) * image], &cells, out);
                let count = (counts[0][y] * counts[1][x]) as f32;
                out.iter_mut().for_each(|value| *value /= count);
            }
        }
    });
}

/// The pullback of [`average`]; the result passes through `epilogue`.
///
/// # Panics
/// If a slice's length does not fit.
pub fn average_pullback(
    geometry: &Geometry,
    count_padding: bool,
    grad_out: &[f32],
    grad_in: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    geometry.check(grad_in.len(), grad_out.len());
    let step = stride(geometry.channels);
    let image = geometry.out_h * geometry.out_w * step;
    let reach = Reach::pullback(geometry.axes());
    let counts = counts(geometry, count_padding);
    let row = geometry.in_w * step;
    let finished = EpilogueRows::new(epilogue, geometry.channels, grad_in);
    let grain = row_grain(geometry.in_w, geometry.channels, 4);
    parallel::ranges(geometry.batch * geometry.in_h, grain, |range| {
        let (mut readers, mut weights) = (Vec::new(), Vec::new());
        let mut sums = vec![0.0; row];
        for i in range {
            let (n, y) = (i / geometry.in_h, i % geometry.in_h);
            for (x, sums) in sums.chunks_exact_mut(step).enumerate() {
                reach.gather(y, x, &mut readers);
                weights.clear();
                weights.extend(readers.iter().map(|&(pixel, _)| {
                    let (y, x) = (pixel / geometry.out_w, pixel % geometry.out_w);
                    1.0 / (counts[0][y] * counts[1][x]) as f32
                }));
                sum_weighted(&grad_out[n * image..(n + 1) * image], &readers, &weights, sums);
            }
            // SAFETY: one row belongs to one task.
            unsafe { finished.finish(i * row, &mut sums) };
        }
    });
}

/// Counted cells along each axis for every output; a window's count is the product.
fn counts(geometry: &Geometry, count_padding: bool) -> [Vec<usize>; 2] {
    let [vertical, horizontal] = geometry.axes();
    let along = |axis: Axis, pad_after: usize| {
        let counted = |output: usize, tap: usize| {
            if count_padding {
                output * axis.stride + tap * axis.dilation < axis.pad + axis.input + pad_after
            } else {
                axis.source(output, tap).is_some()
            }
        };
        let count = |output| (0..axis.kernel).filter(|&tap| counted(output, tap)).count();
        (0..axis.output).map(count).collect()
    };
    [along(vertical, geometry.pads[2]), along(horizontal, geometry.pads[3])]
}

vectorised! {
    /// The sum of one window, channel by channel.
    fn sum_cells(image: &[f32], cells: &[(usize, usize)], out: &mut [f32]) {
        let step = out.len();
        for (group, out) in out.chunks_exact_mut(LANES).enumerate() {
            let mut sum = [0.0; LANES];
            for &(pixel, _) in cells {
                let x = &image[pixel * step + group * LANES..][..LANES];
                for lane in 0..LANES {
                    sum[lane] += x[lane];
                }
            }
            out.copy_from_slice(&sum);
        }
    }
}

vectorised! {
    /// The weighted sum of one input's readers, channel by channel.
    fn sum_weighted(image: &[f32], readers: &[(usize, usize)], weights: &[f32], out: &mut [f32]) {
        let step = out.len();
        for (group, out) in out.chunks_exact_mut(LANES).enumerate() {
            let mut sum = [0.0; LANES];
            for (&(pixel, _), &weight) in readers.iter().zip(weights) {
                let x = &image[pixel * step + group * LANES..][..LANES];
                for lane in 0..LANES {
                    sum[lane] += weight * x[lane];
                }
            }
            out.copy_from_slice(&sum);
        }
    }
}
