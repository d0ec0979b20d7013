//! Max pooling: `y[o] = max over t of x[stride*o + dilation*t - pad]`, NaN if the window holds one; the first cell wins a tie.
//!
//! The winner's place within the window is one byte while windows have at most 256 cells. A window that lies wholly outside the
//! input gives minus infinity, and its gradient goes nowhere.

use super::{Geometry, reference, row_grain};
use crate::disjoint::Disjoint;
use crate::epilogue::Epilogue;
use crate::epilogue_rows::EpilogueRows;
use crate::layout::stride;
use crate::parallel;
use crate::taps::Reach;

/// The tape of a max pool: for each output element, which cell of its window won.
#[derive(Clone, Copy, Debug)]
pub enum Winners<'a> {
    /// Windows of at most 256 cells.
    Bytes(&'a [u8]),
    /// Larger windows.
    Words(&'a [u32]),
}

/// Where to write a max pool's tape: as long as the output, padding lanes included.
#[derive(Debug)]
pub enum WinnersMut<'a> {
    /// Windows of at most 256 cells.
    Bytes(&'a mut [u8]),
    /// Windows of any size.
    Words(&'a mut [u32]),
}

/// The winners' places as one row's task sees them.
pub(super) enum RowWinners<'a> {
    None,
    Bytes(&'a mut [u8]),
    Words(&'a mut [u32]),
}

/// Max pooling, with the winners if they are asked for.
///
/// # Panics
/// If a slice's length does not fit, or bytes are given for windows of more than 256 cells.
pub fn max(geometry: &Geometry, input: &[f32], output: &mut [f32], winners: Option<WinnersMut<'_>>) {
    geometry.check(input.len(), output.len());
    let (mut bytes, mut words) = (None, None);
    match winners {
        Some(WinnersMut::Bytes(slice)) => {
            assert!(geometry.cells() <= 256 && slice.len() == output.len(), "winners of {geometry:?}");
            bytes = Some(Disjoint::new(slice));
        }
        Some(WinnersMut::Words(slice)) => {
            assert_eq!(slice.len(), output.len(), "winners of {geometry:?}");
            words = Some(Disjoint::new(slice));
        }
        None => {}
    }
    if output.is_empty() {
        return;
    }
    let step = stride(geometry.channels);
    let image = geometry.in_h * geometry.in_w * step;
    let reach = Reach::forward(geometry.axes());
    let row = geometry.out_w * step;
    let grain = row_grain(geometry.out_w, geometry.channels, geometry.cells());
    parallel::rows(output, row, grain, |first, rows| {
        let mut cells = Vec::with_capacity(geometry.cells());
        for (i, out_row) in rows.chunks_exact_mut(row).enumerate() {
            let (n, y) = ((first + i) / geometry.out_h, (first + i) % geometry.out_h);
            for (x, out) in out_row.chunks_exact_mut(step).enumerate() {
                reach.gather(y, x, &mut cells);
                let at = (first + i) * row + x * step;
                let winners = match (&bytes, &words) {
                    // SAFETY: one output pixel belongs to one task.
                    (Some(bytes), _) => RowWinners::Bytes(unsafe { bytes.part(at..at + step) }),
                    // SAFETY: as above.
                    (_, Some(words)) => RowWinners::Words(unsafe { words.part(at..at + step) }),
                    _ => RowWinners::None,
                };
                max_pixel(&input[n * image..(n + 1) * image], &cells, out, winners);
            }
        }
    });
}

fn max_pixel(image: &[f32], cells: &[(usize, usize)], out: &mut [f32], winners: RowWinners<'_>) {
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = crate::cpu::avx2() {
        match winners {
            RowWinners::None => return super::avx2::max_pixel(proof, image, cells, out, None),
            RowWinners::Bytes(bytes) => return super::avx2::max_pixel(proof, image, cells, out, Some(bytes)),
            RowWinners::Words(words) => {
                return reference::max_pixel(image, cells, out, RowWinners::Words(words));
            }
        }
    }
    reference::max_pixel(image, cells, out, winners);
}

/// The pullback of [`max`]: each output's gradient goes to its winner. The result passes through `epilogue`.
///
/// # Panics
/// If a slice's length does not fit.
pub fn max_pullback(
    geometry: &Geometry,
    winners: Winners<'_>,
    grad_out: &[f32],
    grad_in: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    geometry.check(grad_in.len(), grad_out.len());
    let tape = match winners {
        Winners::Bytes(bytes) => bytes.len(),
        Winners::Words(words) => words.len(),
    };
    assert_eq!(tape, grad_out.len(), "winners of {geometry:?}");
    let step = stride(geometry.channels);
    let image = geometry.out_h * geometry.out_w * step;
    let reach = Reach::pullback(geometry.axes());
    let row = geometry.in_w * step;
    let finished = EpilogueRows::new(epilogue, geometry.channels, grad_in);
    let grain = row_grain(geometry.in_w, geometry.channels, 4);
    parallel::ranges(geometry.batch * geometry.in_h, grain, |range| {
        let mut readers = Vec::new();
        let mut sums = vec![0.0; row];
        for i in range {
            let (n, y) = (i / geometry.in_h, i % geometry.in_h);
            for (x, sums) in sums.chunks_exact_mut(step).enumerate() {
                reach.gather(y, x, &mut readers);
                let of_image = n * image..(n + 1) * image;
                let grads = &grad_out[of_image.clone()];
                match winners {
                    Winners::Bytes(bytes) => max_readers(&bytes[of_image], grads, &readers, sums),
                    Winners::Words(words) => reference::max_readers(&words[of_image], grads, &readers, sums),
                }
            }
            // SAFETY: one row belongs to one task.
            unsafe { finished.finish(i * row, &mut sums) };
        }
    });
}

fn max_readers(winners: &[u8], grads: &[f32], readers: &[(usize, usize)], sums: &mut [f32]) {
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = crate::cpu::avx2() {
        return super::avx2::max_readers(proof, winners, grads, readers, sums);
    }
    reference::max_readers(winners, grads, readers, sums);
}
