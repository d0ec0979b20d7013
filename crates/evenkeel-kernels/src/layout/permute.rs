//! The channels of a channels-last map in another order, within every pixel.

use super::{GRAIN, stride};
use crate::parallel;
use crate::vectorised::vectorised;

/// Channel `c` of every pixel of `target` becomes channel `order[c]` of the same pixel of `source`; both have as many channels as
/// `order` has entries.
///
/// # Panics
/// If an entry is no channel, or a map is not of whole pixels or the two differ in size.
pub fn permute_channels(order: &[usize], source: &[f32], target: &mut [f32]) {
    let step = stride(order.len());
    assert!(order.iter().all(|&from| from < order.len()), "{order:?} is no order of channels");
    assert!(
        source.len() == target.len() && source.len().is_multiple_of(step),
        "maps of {step} lanes a pixel"
    );
    let mut lanes: Vec<u32> = order.iter().map(|&from| from as u32).collect();
    lanes.resize(step, 0);
    parallel::rows(target, step, (GRAIN / step).max(1), |first, part| {
        let from = &source[first * step..first * step + part.len()];
        permute(&lanes, from, part);
    });
}

vectorised! {
    fn permute(lanes: &[u32], source: &[f32], target: &mut [f32]) {
        for (x, y) in source.chunks_exact(lanes.len()).zip(target.chunks_exact_mut(lanes.len())) {
            for (y, &from) in y.iter_mut().zip(lanes) {
                // SAFETY: every lane's source is a channel of the pixel, as the caller checked.
                *y = unsafe { *x.get_unchecked(from as usize) };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_channel_comes_from_where_the_order_says() {
        for (channels, pixels) in [(1, 1), (6, 5), (8, 3), (13, 7), (116, 400)] {
            let order: Vec<usize> = (0..channels).map(|c| (c * 5 + 2) % channels).collect();
            let step = stride(channels);
            let source: Vec<f32> = (0..pixels * step).map(|i| i as f32).collect();
            let mut target = vec![-1.0; source.len()];
            permute_channels(&order, &source, &mut target);
            for p in 0..pixels {
                for (c, &from) in order.iter().enumerate() {
                    assert_eq!(target[p * step + c], source[p * step + from], "{channels} channels");
                }
            }
        }
    }
}
