//! Winograd convolution: 3x3 kernels with stride 1, in two or four times fewer multiplications.
//!
//! The output is cut into tiles of `m x m` pixels, `m` being 2 or 4. The `(m+2) x (m+2)` input pixels under a tile are transformed,
//! multiplied point by point with transformed weights and summed over the input channels, and transformed back:
//! `y = A' [sum over c of (G g_c G') . (B' x_c B)] A`. A dilated convolution is an ordinary one on each of `d * d` interleaved
//! sub-images. The pullback is the same convolution with weights flipped and transposed, and `2 d - pad` for a padding.
//!
//! Each output depends on its tile's place in its own image alone: not on the batch, the threads, or how tiles are grouped.

mod block;
mod finish;
mod packed;
mod product;
#[cfg(test)]
mod tests;
mod transform;

pub use packed::Packed;

use self::block::WinogradJob;
use self::finish::Finish;
pub use super::Direction;
use super::Geometry;
use crate::epilogue::Epilogue;
use crate::layout;

/// How many output pixels a tile has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tile {
    /// 2x2 outputs from 4x4 points: 2.25 times fewer multiplications, rounding like a direct sum's.
    F2,
    /// 4x4 outputs from 6x6 points: 4 times fewer, at about three times the rounding error of F2.
    F4,
}

impl Tile {
    /// Outputs on a side.
    fn side(self) -> usize {
        match self {
            Tile::F2 => 2,
            Tile::F4 => 4,
        }
    }

    /// Points at which the products are taken.
    fn points(self) -> usize {
        (self.side() + 2) * (self.side() + 2)
    }
}

/// Whether the convolution can be done this way at all.
pub fn eligible(geometry: &Geometry) -> bool {
    geometry.kernel == [3, 3]
        && geometry.stride == [1, 1]
        && geometry.groups == 1
        && geometry.dilation.iter().all(|&d| d > 0)
}

/// The tile to use where this way is the fastest, `None` where a direct convolution is. A function of one image's geometry, so that
/// the choice, and with it every rounding, is the same for any batch and any number of threads.
pub fn preferred(geometry: &Geometry, direction: Direction) -> Option<Tile> {
    if !eligible(geometry) {
        return None;
    }
    let (from_c, to, to_c) = match direction {
        Direction::Forward => (geometry.in_c, [geometry.out_h(), geometry.out_w()], geometry.out_c),
        Direction::Pullback => (geometry.out_c, [geometry.in_h, geometry.in_w], geometry.in_c),
    };
    let cost = |side: usize, points: usize, transform: f64| {
        let tiles = [0, 1].map(|axis| tiles(to[axis], geometry.dilation[axis], side));
        cost(tiles[0] * tiles[1], points, transform, [from_c, to_c])
    };
    let ways = [
        (None, direct_share(geometry, direction) * cost(1, 9, DIRECT_TRANSFORM)),
        (Some(Tile::F2), cost(2, 16, F2_TRANSFORM)),
        (Some(Tile::F4), cost(4, 36, F4_TRANSFORM)),
    ];
    ways.into_iter().min_by(|a, b| a.1.total_cmp(&b.1)).and_then(|(tile, _)| tile)
}

/// The share of a direct convolution's taps that it does not skip: it skips those that fall outside the map for all of a block,
/// which is a few pixels of one row or of two.
fn direct_share(g: &Geometry, direction: Direction) -> f64 {
    let (input, output) = ([g.in_h, g.in_w], [g.out_h(), g.out_w()]);
    let (from, to) = match direction {
        Direction::Forward => (input, output),
        Direction::Pullback => (output, input),
    };
    let share = |axis: usize| {
        let (d, pad) = (g.dilation[axis] as isize, g.pads[axis] as isize);
        let pad = if direction == Direction::Forward { pad } else { 2 * d - pad };
        let met = |tap: isize| {
            let (first, end) = (pad - tap * d, from[axis] as isize + pad - tap * d);
            let inside = (end.min(to[axis] as isize) - first.max(0)).max(0) as usize;
            (inside + [1, 8][axis]).min(to[axis])
        };
        (0..3).map(met).sum::<usize>() as f64 / (3 * to[axis].max(1)) as f64
    };
    share(0) * share(1)
}

/// What bringing one weight from memory costs, in multiplications.
const WEIGHT: f64 = 16.0;
/// What reading and transforming one channel of a tile costs, and again transforming back and writing one, in multiplications.
const DIRECT_TRANSFORM: f64 = 36.0;
const F2_TRANSFORM: f64 = 192.0;
const F4_TRANSFORM: f64 = 640.0;

/// The multiplications of a convolution, with what is not multiplication counted as so many. A direct convolution is one with tiles
/// of one output and nine points. The prices were fitted to the layers of the example `winograd`.
fn cost(tiles: usize, points: usize, transform: f64, [from_c, to_c]: [usize; 2]) -> f64 {
    let weights = points as f64 * from_c as f64 * to_c.next_multiple_of(packed::PANEL) as f64;
    let channels = layout::stride(from_c) as f64 + layout::stride(to_c) as f64;
    (tiles as f64 + WEIGHT) * weights + tiles as f64 * transform * channels
}

/// Convolves `x` into `out`, or pulls `x` back to `out`, in the direction `packed` was made for. Maps are channels-last.
///
/// # Panics
/// If the geometry is not [`eligible`], or `packed`, `x`, `out` or a part of the epilogue does not fit it.
pub fn run(packed: &Packed, geometry: &Geometry, x: &[f32], out: &mut [f32], epilogue: Epilogue<'_>) {
    assert!(eligible(geometry), "not a 3x3 convolution with stride 1: {geometry:?}");
    let input = [geometry.in_h, geometry.in_w];
    let output = [geometry.out_h(), geometry.out_w()];
    let pads = [geometry.pads[0] as isize, geometry.pads[1] as isize];
    let (channels, from, to, pad) = match packed.direction {
        Direction::Forward => ([geometry.in_c, geometry.out_c], input, output, pads),
        Direction::Pullback => {
            let reach = geometry.dilation.map(|d| 2 * d as isize);
            let pad = [reach[0] - pads[0], reach[1] - pads[1]];
            ([geometry.out_c, geometry.in_c], output, input, pad)
        }
    };
    let size = |[h, w]: [usize; 2], c: usize| geometry.batch * h * w * layout::stride(c);
    assert_eq!([packed.from_c, packed.to_c], channels, "weights packed for {geometry:?}");
    assert_eq!(x.len(), size(from, channels[0]), "input of {geometry:?}");
    assert_eq!(out.len(), size(to, channels[1]), "output of {geometry:?}");

    let side = packed.tile.side();
    let job = WinogradJob {
        packed,
        x,
        batch: geometry.batch,
        from,
        to,
        dilation: geometry.dilation,
        pad,
        origins: [0, 1].map(|axis| origins(to[axis], geometry.dilation[axis], side)),
        finish: Finish::new(out, epilogue, channels[1]),
    };
    job.run();
}

/// The tiles of a convolution, or of its pullback.
pub(super) fn count(g: &Geometry, tile: Tile, direction: Direction) -> usize {
    let to = match direction {
        Direction::Forward => [g.out_h(), g.out_w()],
        Direction::Pullback => [g.in_h, g.in_w],
    };
    g.batch * [0, 1].map(|axis| tiles(to[axis], g.dilation[axis], tile.side())).iter().product::<usize>()
}

/// How many tiles lie along one axis.
fn tiles(extent: usize, dilation: usize, side: usize) -> usize {
    (0..dilation.min(extent)).map(|phase| (extent - phase).div_ceil(side * dilation)).sum()
}

/// The first output of each tile along one axis, sub-image by sub-image.
fn origins(extent: usize, dilation: usize, side: usize) -> Vec<usize> {
    (0..dilation.min(extent)).flat_map(|phase| (phase..extent).step_by(side * dilation)).collect()
}
