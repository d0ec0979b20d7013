//! Two-dimensional convolution on channels-last maps, forwards and pulled back to its input.
//!
//! Forwards, `y[n, o, p] = sum over c, t of w[o, c, t] * x[n, c, s*p + d*t - pad]`; the pullback is its transpose. Weights are
//! frozen, so both directions are plain convolutions with weights packed once.

pub mod choose;
mod direct;
#[cfg(target_arch = "x86_64")]
pub(crate) mod finish;
mod grouped;
mod pair;
pub mod reference;
mod stem;
pub mod to_weights;
mod weights;
pub mod winograd;

#[cfg(test)]
mod tests;

pub use choose::{Algorithm, Direction, choose};
pub use pair::{Layer, pair_forward, pair_serves};
pub use stem::{stem_forward, stem_pullback, stem_serves};
pub use to_weights::to_weights;
pub use weights::{Shared, Source, Weights};

#[cfg(target_arch = "x86_64")]
use crate::cpu;
use crate::epilogue::Epilogue;
use crate::{depthwise, layout};

/// The sizes of one convolution. Channels-last input `[batch, in_h, in_w, in_c]`, output `[batch, out_h, out_w, out_c]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geometry {
    /// Images.
    pub batch: usize,
    /// Input height.
    pub in_h: usize,
    /// Input width.
    pub in_w: usize,
    /// Input channels, all groups together.
    pub in_c: usize,
    /// Output channels, all groups together.
    pub out_c: usize,
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Vertical and horizontal stride.
    pub stride: [usize; 2],
    /// Vertical and horizontal dilation.
    pub dilation: [usize; 2],
    /// Zero rows and columns around the input: top, left, bottom, right.
    pub pads: [usize; 4],
    /// Groups; divides both channel counts.
    pub groups: usize,
}

impl Geometry {
    /// Output height: zero if the kernel does not fit.
    pub fn out_h(&self) -> usize {
        extent(self.in_h, self.pads[0] + self.pads[2], self.kernel[0], self.stride[0], self.dilation[0])
    }

    /// Output width: zero if the kernel does not fit.
    pub fn out_w(&self) -> usize {
        extent(self.in_w, self.pads[1] + self.pads[3], self.kernel[1], self.stride[1], self.dilation[1])
    }

    /// Multiplications and additions of one forward pass (the pullback has as many).
    pub fn flops(&self) -> f64 {
        let taps = self.kernel[0] * self.kernel[1] * (self.in_c / self.groups.max(1));
        2.0 * (self.batch * self.out_h() * self.out_w() * self.out_c) as f64 * taps as f64
    }
}

fn extent(input: usize, pads: usize, kernel: usize, stride: usize, dilation: usize) -> usize {
    let reach = dilation * (kernel - 1) + 1;
    if input + pads < reach { 0 } else { (input + pads - reach) / stride + 1 }
}

/// `out = epilogue(w * x)` with the algorithm [`choose()`] names.
///
/// # Panics
/// If a slice does not have the size the geometry gives it, or the weights are of another convolution.
pub fn forward(geometry: &Geometry, weights: &Weights, x: &[f32], out: &mut [f32], epilogue: Epilogue<'_>) {
    forward_with(choose(geometry, Direction::Forward), geometry, weights, x, out, epilogue);
}

/// `gx = epilogue(w' * gy)`, the transpose of [`forward`], with the algorithm [`choose()`] names.
///
/// # Panics
/// As [`forward`].
pub fn pullback(geometry: &Geometry, weights: &Weights, gy: &[f32], gx: &mut [f32], epilogue: Epilogue<'_>) {
    pullback_with(choose(geometry, Direction::Pullback), geometry, weights, gy, gx, epilogue);
}

/// [`forward`] with the algorithm of the caller's choice.
///
/// # Panics
/// As [`forward`], or if the algorithm does not serve the geometry on this machine.
pub fn forward_with(
    algorithm: Algorithm,
    geometry: &Geometry,
    weights: &Weights,
    x: &[f32],
    out: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    run((algorithm, Direction::Forward), geometry, weights, x, out, epilogue);
}

/// [`pullback`] with the algorithm of the caller's choice.
///
/// # Panics
/// As [`forward_with`].
pub fn pullback_with(
    algorithm: Algorithm,
    geometry: &Geometry,
    weights: &Weights,
    gy: &[f32],
    gx: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    run((algorithm, Direction::Pullback), geometry, weights, gy, gx, epilogue);
}

fn run(
    (algorithm, direction): (Algorithm, Direction),
    geometry: &Geometry,
    weights: &Weights,
    from: &[f32],
    to: &mut [f32],
    mut epilogue: Epilogue<'_>,
) {
    check(geometry, direction, weights, (from.len(), to.len()), &epilogue);
    assert!(algorithm.serves(geometry), "{algorithm:?} does not serve {geometry:?} here");
    match algorithm {
        Algorithm::Reference => {
            let smooth = epilogue.smooth.take();
            match direction {
                Direction::Forward => reference::forward(geometry, weights.values(), from, to, epilogue),
                Direction::Pullback => reference::pullback(geometry, weights.values(), from, to, epilogue),
            }
            if let Some(function) = smooth {
                crate::activation::apply_in_place(function, to);
            }
        }
        Algorithm::Depthwise => match direction {
            Direction::Forward => depthwise::forward(geometry, weights.depthwise(), from, to, epilogue),
            Direction::Pullback => depthwise::pullback(geometry, weights.depthwise(), from, to, epilogue),
        },
        Algorithm::Winograd(tile) => {
            let tiles = winograd::count(geometry, tile, direction);
            winograd::run(&weights.winograd(tile, direction, tiles), geometry, from, to, epilogue);
        }
        #[cfg(target_arch = "x86_64")]
        Algorithm::Direct => match (cpu::avx512(), cpu::avx2()) {
            (Some(l), _) => direct::run(l, (geometry, direction), weights, from, to, epilogue),
            (_, l) => {
                let l = l.expect("serves() asked");
                direct::run(l, (geometry, direction), weights, from, to, epilogue);
            }
        },
        #[cfg(target_arch = "x86_64")]
        Algorithm::Grouped => {
            let proof = cpu::avx2().expect("serves() asked");
            grouped::run(proof, (geometry, direction), weights, from, to, epilogue);
        }
        #[cfg(not(target_arch = "x86_64"))]
        Algorithm::Direct | Algorithm::Grouped => unreachable!("serves() refused"),
    }
}

/// Asserts that every slice has the size the geometry gives it.
fn check(
    g: &Geometry,
    direction: Direction,
    weights: &Weights,
    (from, to): (usize, usize),
    epilogue: &Epilogue<'_>,
) {
    let same = (weights.out_c(), weights.in_c(), weights.kernel(), weights.groups());
    assert_eq!((g.out_c, g.in_c, g.kernel, g.groups), same, "geometry and weights differ");
    assert!(g.stride.iter().chain(&g.dilation).all(|&s| s > 0), "a step of zero in {g:?}");
    let input = (g.batch * g.in_h * g.in_w * layout::stride(g.in_c), g.in_c);
    let output = (g.batch * g.out_h() * g.out_w() * layout::stride(g.out_c), g.out_c);
    let (read, written) = match direction {
        Direction::Forward => (input, output),
        Direction::Pullback => (output, input),
    };
    assert_eq!(from, read.0, "size of the map read, {g:?}");
    assert_eq!(to, written.0, "size of the map written, {g:?}");
    assert!(epilogue.bias.is_none_or(|bias| bias.len() == written.1), "one bias a channel, {g:?}");
    assert!(epilogue.residual.is_none_or(|residual| residual.len() == to), "size of the residual, {g:?}");
    assert!(
        epilogue.bits.as_ref().is_none_or(|bits| bits.len() == to / layout::LANES),
        "size of the bits, {g:?}"
    );
    assert!(
        epilogue.mask.is_none_or(|mask| mask.bits.len() == to / layout::LANES),
        "size of the mask, {g:?}"
    );
}
