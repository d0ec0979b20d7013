//! Channel ranges copied or added from map to map, which is what Concat and Split along the channels, and their pullbacks, are.
//!
//! `target[p, to + i] (+)= source[p, from + i]` for `i` in `0..count` and every pixel. Offsets need not be whole vectors; lanes
//! outside the range stay as they are.

use super::{GRAIN, LANES, stride};
use crate::parallel;
use crate::vectorised::vectorised;

/// Where a run of channels begins, in a map of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Channels of the whole map.
    pub channels: usize,
    /// The first channel of the run.
    pub first: usize,
}

/// Copies `count` channels of every pixel.
///
/// # Panics
/// If a run leaves its map, or the maps differ in pixels.
pub fn copy_channels(source: &[f32], from: Span, target: &mut [f32], to: Span, count: usize) {
    each_run::<false>(source, from, target, to, count);
}

/// Adds `count` channels of every pixel to the target's.
///
/// # Panics
/// If a run leaves its map, or the maps differ in pixels.
pub fn add_channels(source: &[f32], from: Span, target: &mut [f32], to: Span, count: usize) {
    each_run::<true>(source, from, target, to, count);
}

fn each_run<const ADD: bool>(source: &[f32], from: Span, target: &mut [f32], to: Span, count: usize) {
    let (step_in, step_out) = (stride(from.channels), stride(to.channels));
    assert!(
        from.first + count <= from.channels && to.first + count <= to.channels,
        "{count}: {from:?} {to:?}"
    );
    assert_eq!(source.len() * step_out, target.len() * step_in, "{from:?} and {to:?} differ in pixels");
    if count == 0 || target.is_empty() {
        return;
    }
    parallel::rows(target, step_out, (GRAIN / step_out).max(1), |first, part| {
        let run = Run { step_in, step_out, from: from.first, to: to.first, count };
        if ADD {
            add_runs(run, &source[first * step_in..], part);
        } else {
            copy_runs(run, &source[first * step_in..], part);
        }
    });
}

#[derive(Clone, Copy)]
struct Run {
    step_in: usize,
    step_out: usize,
    from: usize,
    to: usize,
    count: usize,
}

impl Run {
    #[inline(always)]
    fn each(self, source: &[f32], target: &mut [f32], store: impl Fn(&mut f32, f32)) {
        let whole = self.count / LANES * LANES;
        for (x, y) in source.chunks_exact(self.step_in).zip(target.chunks_exact_mut(self.step_out)) {
            let (x, y) = (&x[self.from..self.from + self.count], &mut y[self.to..self.to + self.count]);
            for (x, y) in x[..whole].chunks_exact(LANES).zip(y[..whole].chunks_exact_mut(LANES)) {
                for i in 0..LANES {
                    store(&mut y[i], x[i]);
                }
            }
            for i in whole..self.count {
                store(&mut y[i], x[i]);
            }
        }
    }
}

vectorised! {
    fn copy_runs(run: Run, source: &[f32], target: &mut [f32]) {
        run.each(source, target, #[inline(always)] |y, x| *y = x);
    }
}

vectorised! {
    fn add_runs(run: Run, source: &[f32], target: &mut [f32]) {
        run.each(source, target, #[inline(always)] |y, x| *y += x);
    }
}
