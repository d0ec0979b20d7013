//! Pooling over whole images: the mean or the maximum of every channel, and their pullbacks.
//!
//! Maps are `[batch][pixels][stride]` in and `[batch][stride]` out. Sums run in blocks of [`BLOCK`] pixels whose totals are then
//! added, so that rounding grows with the number of blocks and not of pixels.

use crate::epilogue::Epilogue;
use crate::epilogue_rows::EpilogueRows;
use crate::layout::{Extents, LANES, stride};
use crate::parallel;
use crate::vectorised::vectorised;

const BLOCK: usize = 64;

fn check(extents: Extents, input: usize, output: usize) {
    let step = stride(extents.channels);
    assert_eq!(input, extents.batch * extents.pixels * step, "input of {extents:?}");
    assert_eq!(output, extents.batch * step, "output of {extents:?}");
}

/// The mean over each image's pixels.
///
/// # Panics
/// If a slice's length does not fit.
pub fn global_average(extents: Extents, input: &[f32], output: &mut [f32]) {
    check(extents, input.len(), output.len());
    each_group(extents, output, |image, group, out| {
        mean(&input[image * extents.pixels * stride(extents.channels)..], extents, group, out);
    });
}

/// The pullback of [`global_average`]; the result passes through `epilogue`.
///
/// # Panics
/// If a slice's length does not fit.
pub fn global_average_pullback(
    extents: Extents,
    grad_out: &[f32],
    grad_in: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    check(extents, grad_in.len(), grad_out.len());
    let step = stride(extents.channels);
    let share = 1.0 / extents.pixels as f32;
    each_pixel(extents, grad_in, epilogue, |image, _, out| {
        for (out, grad) in out.iter_mut().zip(&grad_out[image * step..]) {
            *out = grad * share;
        }
    });
}

/// The maximum over each image's pixels (NaN if there is one), with the pixel that won if asked for: the first of equals.
///
/// # Panics
/// If a slice's length does not fit.
pub fn global_max(extents: Extents, input: &[f32], output: &mut [f32], winners: Option<&mut [u32]>) {
    check(extents, input.len(), output.len());
    let step = stride(extents.channels);
    let mut places = vec![0; output.len()];
    for image in 0..extents.batch {
        let (best, place) = (&mut output[image * step..][..step], &mut places[image * step..][..step]);
        best.fill(f32::NEG_INFINITY);
        for pixel in 0..extents.pixels {
            take_larger(&input[(image * extents.pixels + pixel) * step..][..step], pixel as u32, best, place);
        }
    }
    if let Some(winners) = winners {
        winners.copy_from_slice(&places);
    }
}

/// The pullback of [`global_max`]; the result passes through `epilogue`.
///
/// # Panics
/// If a slice's length does not fit.
pub fn global_max_pullback(
    extents: Extents,
    winners: &[u32],
    grad_out: &[f32],
    grad_in: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    check(extents, grad_in.len(), grad_out.len());
    assert_eq!(winners.len(), grad_out.len(), "winners of {extents:?}");
    let step = stride(extents.channels);
    each_pixel(extents, grad_in, epilogue, |image, pixel, out| {
        for (c, out) in out.iter_mut().enumerate() {
            let at = image * step + c;
            *out = if winners[at] as usize == pixel { grad_out[at] } else { 0.0 };
        }
    });
}

/// Runs `task(image, first channel, eight outputs)` for every image and vector of channels.
fn each_group(extents: Extents, output: &mut [f32], task: impl Fn(usize, usize, &mut [f32]) + Sync + Send) {
    let groups = stride(extents.channels) / LANES;
    let grain = ((1 << 15) / (extents.pixels * LANES).max(1)).max(1);
    parallel::rows(output, LANES, grain, |first, part| {
        for (i, out) in part.chunks_exact_mut(LANES).enumerate() {
            task((first + i) / groups, (first + i) % groups * LANES, out);
        }
    });
}

/// Runs `task(image, pixel, lanes)` for every pixel and passes what it wrote through the epilogue.
fn each_pixel(
    extents: Extents,
    out: &mut [f32],
    epilogue: Epilogue<'_>,
    task: impl Fn(usize, usize, &mut [f32]) + Sync + Send,
) {
    let step = stride(extents.channels);
    let finished = EpilogueRows::new(epilogue, extents.channels, out);
    let grain = ((1 << 14) / step.max(1)).max(1);
    parallel::ranges(extents.batch * extents.pixels, grain, |range| {
        let mut lanes = vec![0.0; step];
        for i in range {
            task(i / extents.pixels, i % extents.pixels, &mut lanes);
            // SAFETY: one pixel belongs to one task.
            unsafe { finished.finish(i * step, &mut lanes) };
        }
    });
}

vectorised! {
    fn mean(image: &[f32], extents: Extents, group: usize, out: &mut [f32]) {
        let step = stride(extents.channels);
        let mut total = [0.0f32; LANES];
        for first in (0..extents.pixels).step_by(BLOCK) {
            let mut sum = [0.0f32; LANES];
            for pixel in first..extents.pixels.min(first + BLOCK) {
                let x = &image[pixel * step + group..][..LANES];
                for lane in 0..LANES {
                    sum[lane] += x[lane];
                }
            }
            for lane in 0..LANES {
                total[lane] += sum[lane];
            }
        }
        for lane in 0..LANES {
            out[lane] = total[lane] / extents.pixels as f32;
        }
    }
}

vectorised! {
    fn take_larger(x: &[f32], pixel: u32, best: &mut [f32], place: &mut [u32]) {
        for ((&x, best), place) in x.iter().zip(best).zip(place) {
            let wins = x > *best || x.is_nan();
            *place = if wins { pixel } else { *place };
            *best = if wins { x } else { *best };
        }
    }
}
