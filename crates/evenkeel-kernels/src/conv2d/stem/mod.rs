//! The first convolution of a network: a planar image of few channels in, channels-last maps out, and its pullback to the image.
//!
//! `x` is `[n][c][h][w]` with at most four channels; `y` is channels-last. Forwards a tap's row of the kernel is a run of
//! consecutive image values, so the sum runs along it; backwards the gradient is turned planar band by band and the sums run
//! along the image's rows, eight pixels to a vector.

#[cfg(target_arch = "x86_64")]
mod forward;
#[cfg(target_arch = "x86_64")]
mod pullback;
#[cfg(test)]
mod tests;

use super::{Direction, Geometry, Weights, check, reference};
use crate::epilogue::Epilogue;
use crate::layout::{self, Extents};

/// The most input channels a stem has.
const CHANNELS: usize = 4;

/// Whether [`stem_forward`] and [`stem_pullback`] serve a convolution of this geometry.
pub fn stem_serves(geometry: &Geometry) -> bool {
    (1..=CHANNELS).contains(&geometry.in_c) && geometry.groups == 1
}

/// `out = epilogue(w * x)` for a planar `x`, `[batch][in_c][in_h][in_w]`.
///
/// # Panics
/// If [`stem_serves`] denies the geometry, or a slice does not have the size it gives.
pub fn stem_forward(
    geometry: &Geometry,
    weights: &Weights,
    x: &[f32],
    out: &mut [f32],
    epilogue: Epilogue<'_>,
) {
    let extents = checked(geometry, x.len());
    check(geometry, Direction::Forward, weights, (map_len(extents), out.len()), &epilogue);
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = crate::cpu::avx2() {
        return forward::run(proof, geometry, weights, x, out, epilogue);
    }
    let mut map = vec![0.0; map_len(extents)];
    layout::from_planar(extents, x, &mut map);
    reference::forward(geometry, weights.values(), &map, out, epilogue);
}

/// The pullback of [`stem_forward`]: `gx = w' * gy`, added to what `gx` holds if `accumulate`. `gx` is planar.
///
/// # Panics
/// As [`stem_forward`].
pub fn stem_pullback(geometry: &Geometry, weights: &Weights, gy: &[f32], gx: &mut [f32], accumulate: bool) {
    let extents = checked(geometry, gx.len());
    let epilogue = Epilogue { accumulate, ..Epilogue::default() };
    check(geometry, Direction::Pullback, weights, (gy.len(), map_len(extents)), &epilogue);
    #[cfg(target_arch = "x86_64")]
    if let Some(proof) = crate::cpu::avx2() {
        return pullback::run(proof, geometry, weights, gy, gx, accumulate);
    }
    let mut map = vec![0.0; map_len(extents)];
    layout::from_planar(extents, gx, &mut map);
    reference::pullback(geometry, weights.values(), gy, &mut map, epilogue);
    layout::to_planar(extents, &map, gx);
}

fn checked(g: &Geometry, planar: usize) -> Extents {
    assert!(stem_serves(g), "not a stem: {g:?}");
    assert_eq!(planar, g.batch * g.in_c * g.in_h * g.in_w, "size of the planar image, {g:?}");
    Extents { batch: g.batch, channels: g.in_c, pixels: g.in_h * g.in_w }
}

fn map_len(extents: Extents) -> usize {
    extents.batch * extents.pixels * layout::stride(extents.channels)
}
