//! The direct kernel: a convolution as a matrix product whose left side is read where it lies.
//!
//! A pass makes a lattice of output pixels from taps. Output pixel `(first + step * p)` sums over taps
//! `w[tap] * in[in_step * p + shift[tap]]`; a tap outside the map reads zeros. Forwards is one pass with `in_step = stride`; the
//! pullback is one pass for every phase of the stride, each with the taps that reach it and `step = stride`. Each result is one
//! chain of multiply-adds over taps and channels, whatever the blocking, so it is the same for any batch and thread count.

#[cfg(target_arch = "x86_64")]
mod job;
#[cfg(target_arch = "x86_64")]
mod tile;

#[cfg(target_arch = "x86_64")]
pub(crate) use job::run;

use super::{Direction, Geometry};

/// One tap of a pass: which of the kernel's taps it is, and where it reads relative to the lattice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tap {
    pub(crate) index: usize,
    pub(crate) shift: [isize; 2],
}

/// One pass: a lattice of output pixels and the taps that reach it.
#[derive(Clone, Debug)]
pub(crate) struct Pass {
    /// Rows and columns of the lattice.
    pub(crate) grid: [usize; 2],
    /// The lattice's first pixel and its steps in the map written.
    pub(crate) first: [usize; 2],
    pub(crate) step: [usize; 2],
    /// Steps in the map read.
    pub(crate) in_step: [usize; 2],
    pub(crate) taps: Vec<Tap>,
}

/// The passes of a convolution in one direction.
pub(crate) fn passes(geometry: &Geometry, direction: Direction) -> Vec<Pass> {
    match direction {
        Direction::Forward => vec![forward(geometry)],
        Direction::Pullback => pullback(geometry),
    }
}

fn forward(g: &Geometry) -> Pass {
    let shift = |axis: usize, k: usize| (k * g.dilation[axis]) as isize - g.pads[axis] as isize;
    let taps = (0..g.kernel[0] * g.kernel[1])
        .map(|index| Tap { index, shift: [shift(0, index / g.kernel[1]), shift(1, index % g.kernel[1])] })
        .collect();
    Pass { grid: [g.out_h(), g.out_w()], first: [0, 0], step: [1, 1], in_step: g.stride, taps }
}

fn pullback(g: &Geometry) -> Vec<Pass> {
    // Input position `phase + stride * p` is read by output `p + shift` through the taps where the division is exact.
    let shift = |axis: usize, phase: usize, k: usize| {
        let from = (phase + g.pads[axis]) as isize - (k * g.dilation[axis]) as isize;
        let stride = g.stride[axis] as isize;
        (from.rem_euclid(stride) == 0).then_some(from.div_euclid(stride))
    };
    let mut passes = Vec::with_capacity(g.stride[0] * g.stride[1]);
    for py in 0..g.stride[0].min(g.in_h) {
        for px in 0..g.stride[1].min(g.in_w) {
            let taps = (0..g.kernel[0] * g.kernel[1])
                .filter_map(|index| {
                    let shift = [shift(0, py, index / g.kernel[1])?, shift(1, px, index % g.kernel[1])?];
                    Some(Tap { index, shift })
                })
                .collect();
            let grid = [(g.in_h - py).div_ceil(g.stride[0]), (g.in_w - px).div_ceil(g.stride[1])];
            passes.push(Pass { grid, first: [py, px], step: g.stride, in_step: [1, 1], taps });
        }
    }
    passes
}
