//! Which algorithm serves which convolution.
//!
//! The rule looks at the geometry of one image and the direction, never at the batch, the threads or a clock: the algorithm
//! decides the order of summation, so the same convolution must always get the same one to give the same bytes.

use super::Geometry;
use crate::cpu;

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
}

impl Algorithm {
    /// Every algorithm.
    pub const ALL: [Algorithm; 2] = [Algorithm::Reference, Algorithm::Direct];

    /// Whether this machine has the algorithm and it can compute a convolution of this geometry.
    pub fn serves(self, _geometry: &Geometry) -> bool {
        match self {
            Algorithm::Reference => true,
            Algorithm::Direct => cpu::avx2().is_some(),
        }
    }
}

/// The algorithm [`super::forward`] or [`super::pullback`] uses.
pub fn choose(geometry: &Geometry, _direction: Direction) -> Algorithm {
    if Algorithm::Direct.serves(geometry) { Algorithm::Direct } else { Algorithm::Reference }
}
