//! Which algorithm serves which convolution.
//!
//! The rule looks at the geometry of one image and the direction, never at the batch, the threads or a clock: the algorithm
//! decides the order of summation, so the same convolution must always get the same one to give the same bytes.

use super::Geometry;
use super::grouped;
use super::winograd::{self, Tile};
use crate::{cpu, depthwise};

/// Forwards, or from the output's gradient to the input's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From input to output.
    Forward,
    /// From the output's gradient to the input's.
    Pullback,
}

/// A way to compute a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Plain loops.
    Reference,
    /// A matrix product whose left side is read where it lies, through pointers to each tap's pixels.
    Direct,
    /// Many groups narrower than a vector, as a depthwise convolution of a spread map.
    Grouped,
    /// One input channel for each output channel.
    Depthwise,
    /// Tiles of 2x2 or 4x4 outputs by fewer multiplications.
    Winograd(Tile),
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 6] = [
        Algorithm::Reference,
        Algorithm::Direct,
        Algorithm::Grouped,
        Algorithm::Depthwise,
        Algorithm::Winograd(Tile::F2),
        Algorithm::Winograd(Tile::F4),
    ];

    /// Whether this machine has the algorithm and it can compute a convolution of this geometry.
    pub fn serves(self, geometry: &Geometry) -> bool {
        match self {
            Algorithm::Reference => true,
            Algorithm::Direct => cpu::avx2().is_some(),
            Algorithm::Grouped => cpu::avx2().is_some() && geometry.groups > 1,
            Algorithm::Depthwise => depthwise::serves(geometry),
            Algorithm::Winograd(_) => winograd::eligible(geometry),
        }
    }
}

/// The algorithm [`super::forward`] or [`super::pullback`] uses.
pub fn choose(geometry: &Geometry, direction: Direction) -> Algorithm {
    if cpu::avx2().is_none() {
        return Algorithm::Reference;
    }
    if depthwise::serves(geometry) {
        return Algorithm::Depthwise;
    }
    if grouped::preferred(geometry, direction) {
        return Algorithm::Grouped;
    }
    winograd::preferred(geometry, direction).map_or(Algorithm::Direct, Algorithm::Winograd)
}
