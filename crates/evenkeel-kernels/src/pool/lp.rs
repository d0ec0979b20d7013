//! Lp pooling: `y[o] = (sum over t of |x|^p)^(1/p)`; its pullback sends `g * sign(x) |x|^(p-1) / y^(p-1)` to each cell.

use super::{Geometry, row_grain};
use crate::epilogue::Epilogue;
use crate::epilogue_rows::EpilogueRows;
use crate::layout::stride;
use crate::parallel;
use crate::taps::Reach;

/// Lp pooling with exponent `p`.
///
/// # Panics
/// If a slice's length does not fit.
pub fn lp(geometry: &Geometry, p: f32, input: &[f32], output: &mut [f32]) {
    geometry.check(input.len(), output.len());
    if output.is_empty() {
        return;
    }
    let step = stride(geometry.channels);
    let image = geometry.in_h * geometry.in_w * step;
    let reach = Reach::forward(geometry.axes());
    let grain = row_grain(geometry.out_w, geometry.channels, geometry.cells());
    parallel::rows(output, geometry.out_w * step, grain, |first, rows| {
        let mut cells = Vec::new();
        for (i, out) in rows.chunks_exact_mut(step).enumerate() {
            let row = first + i / geometry.out_w;
            let input = &input[row / geometry.out_h * image..];
            reach.gather(row % geometry.out_h, i % geometry.out_w, &mut cells);
            for (c, out) in out.iter_mut().enumerate() {
                let power = |&(pixel, _): &(usize, usize)| raised(input[pixel * step + c].abs(), p);
                let sum: f32 = cells.iter().map(power).sum();
                *out = if p == 2.0 { sum.sqrt() } else { sum.powf(1.0 / p) };
            }
        }
    });
}

fn raised(x: f32, p: f32) -> f32 {
    if p == 1.0 {
        x
    } else if p == 2.0 {
        x * x
    } else {
        x.powf(p)
    }
}

/// What the pullback of [`lp`] needs: the maps it read and wrote.
#[derive(Clone, Copy, Debug)]
pub struct LpTape<'a> {
    /// The exponent.
    pub p: f32,
    /// The input map.
    pub input: &'a [f32],
    /// The output map.
    pub output: &'a [f32],
}

/// The pullback of [`lp`]; the result passes through `epilogue`. Where an output is zero its gradient is taken as zero.
///
/// # Panics
/// If a slice's length does not fit.
pub fn lp_pullback(
    geometry: &Geometry,
    tape: LpTape<'_>,
    grad_out: &[f32],
    grad_in: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    geometry.check(tape.input.len(), tape.output.len());
    geometry.check(grad_in.len(), grad_out.len());
    let step = stride(geometry.channels);
    let (pixels_in, pixels_out) = (geometry.in_h * geometry.in_w, geometry.out_h * geometry.out_w);
    let reach = Reach::pullback(geometry.axes());
    let finished = EpilogueRows::new(epilogue, geometry.channels, grad_in);
    let grain = row_grain(1, geometry.channels, 4);
    parallel::ranges(geometry.batch * pixels_in, grain, |range| {
        let mut readers = Vec::new();
        let mut sums = vec![0.0; step];
        for i in range {
            let (n, pixel) = (i / pixels_in, i % pixels_in);
            reach.gather(pixel / geometry.in_w, pixel % geometry.in_w, &mut readers);
            for (c, sum) in sums.iter_mut().enumerate() {
                let x = tape.input[i * step + c];
                let share = |&(pixel, _): &(usize, usize)| {
                    let at = (n * pixels_out + pixel) * step + c;
                    let y = tape.output[at];
                    if y > 0.0 { grad_out[at] * raised(x.abs() / y, tape.p - 1.0) } else { 0.0 }
                };
                *sum = readers.iter().map(share).sum::<f32>() * if x == 0.0 { 0.0 } else { x.signum() };
            }
            // SAFETY: one pixel belongs to one task.
            unsafe { finished.finish(i * step, &mut sums) };
        }
    });
}
