//! One pixel of each pooling as plain loops.

use super::max::RowWinners;

/// The maximum of one window, channel by channel. `cells` are `(input pixel, place in the window)`.
pub(super) fn max_pixel(
    image: &[f32],
    cells: &[(usize, usize)],
    out: &mut [f32],
    mut winners: RowWinners<'_>,
) {
    let step = out.len();
    for c in 0..step {
        let mut best = f32::NEG_INFINITY;
        let mut winner = cells.first().map_or(0, |&(_, place)| place);
        for &(pixel, place) in cells {
            let x = image[pixel * step + c];
            if x > best || x.is_nan() {
                (best, winner) = (x, place);
            }
        }
        out[c] = best;
        match &mut winners {
            RowWinners::None => {}
            RowWinners::Bytes(bytes) => bytes[c] = winner as u8,
            RowWinners::Words(words) => words[c] = winner as u32,
        }
    }
}

/// The gradients of the windows that one input won. `readers` are `(output pixel, place in the window)`.
pub(super) fn max_readers<W: Copy + Into<u64>>(
    winners: &[W],
    grads: &[f32],
    readers: &[(usize, usize)],
    sums: &mut [f32],
) {
    let step = sums.len();
    sums.fill(0.0);
    for &(pixel, place) in readers {
        for c in 0..step {
            if winners[pixel * step + c].into() == place as u64 {
                sums[c] += grads[pixel * step + c];
            }
        }
    }
}
