//! A pointwise convolution and the depthwise one that reads it, in one pass that keeps no map between them.
//!
//! Two vectors of channels at a time, row after row: pointwise results go to a ring of as many rows as the depthwise kernel is high, small
//! enough for the first-level cache, and from there to the output. Each value is the chain of operations that the two
//! kernels do one after the other, so the bytes are the same.

#[cfg(target_arch = "x86_64")]
mod pass;
#[cfg(test)]
mod tests;

use super::{Algorithm, Direction, Geometry, Weights, choose};
use crate::activation::Function;
#[cfg(target_arch = "x86_64")]
use crate::cpu;
use crate::epilogue::Activation;
use crate::layout::stride;

/// Input channels above which the pointwise kernel sums in more than one span.
const MOST_CHANNELS: usize = 256;
/// Columns read, and written, below which a row does not fill the registers' tiles, and the two kernels by themselves are quicker.
const FEWEST_COLUMNS: [usize; 2] = [12, 5];

/// `smooth(activation(w * x + bias))`.
#[derive(Clone, Copy, Debug)]
pub struct Layer<'a> {
    /// Its sizes.
    pub geometry: &'a Geometry,
    /// Its weights.
    pub weights: &'a Weights,
    /// One value for each output channel.
    pub bias: &'a [f32],
    /// What follows the bias.
    pub activation: Activation,
    /// What ends it.
    pub smooth: Option<Function>,
}

/// Whether this machine runs these two convolutions, the second on the first's output, in one pass, and gains by it.
pub fn pair_serves(first: &Geometry, second: &Geometry) -> bool {
    let pointwise = (first.kernel, first.stride, first.pads, first.groups) == ([1, 1], [1, 1], [0; 4], 1);
    let depthwise = choose(second, Direction::Forward) == Algorithm::Depthwise
        && second.in_c == second.out_c
        && second.dilation == [1, 1]
        && second.stride.iter().zip(second.kernel).all(|(&step, kernel)| step <= kernel)
        && second.kernel.iter().all(|&side| side <= 5);
    let joined = (first.batch, first.in_h, first.in_w, first.out_c)
        == (second.batch, second.in_h, second.in_w, second.in_c);
    pointwise
        && depthwise
        && joined
        && choose(first, Direction::Forward) == Algorithm::Direct
        && first.in_c <= MOST_CHANNELS
        && first.in_w >= FEWEST_COLUMNS[0]
        && second.out_w() >= FEWEST_COLUMNS[1]
}

/// `second(first(x))` in `out`, both channels last.
///
/// # Panics
/// If [`pair_serves`] refuses the geometries, or a slice does not fit them.
pub fn pair_forward(first: Layer<'_>, second: Layer<'_>, x: &[f32], out: &mut [f32]) {
    let (a, b) = (first.geometry, second.geometry);
    assert!(pair_serves(a, b), "not a pair: {a:?}, {b:?}");
    for layer in [first, second] {
        let (g, w) = (layer.geometry, layer.weights);
        let same = (w.out_c(), w.in_c(), w.kernel(), w.groups());
        assert_eq!((g.out_c, g.in_c, g.kernel, g.groups), same, "geometry and weights differ");
        assert_eq!(layer.bias.len(), g.out_c, "one bias a channel, {g:?}");
    }
    assert_eq!(x.len(), a.batch * a.in_h * a.in_w * stride(a.in_c), "size of the map read, {a:?}");
    assert_eq!(
        out.len(),
        b.batch * b.out_h() * b.out_w() * stride(b.out_c),
        "size of the map written, {b:?}"
    );
    #[cfg(target_arch = "x86_64")]
    match (cpu::avx512(), cpu::avx2()) {
        (Some(l), _) => pass::run(l, first, second, x, out),
        (_, l) => pass::run(l.expect("pair_serves() asked"), first, second, x, out),
    }
}
