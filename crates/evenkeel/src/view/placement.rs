//! Where pixels go: a map from the seen canvas back to the image's, and the samplers it gives at any resolution.
//!
//! Coordinates are continuous, (down, right) from the top left corner in pixels; pixel i has its centre at i + 1/2. A placement
//! knows both canvases, so the same map serves at any resolution: the image's own, or a feature map's.

use super::sampler::{Edge, Sampler};

/// What canvas a view is drawn onto.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Canvas {
    /// Whether the result keeps the image's size, for networks that accept only one.
    pub fixed: bool,
    /// Sides of the result that change are cut to multiples of this, for networks that ask for it.
    pub multiple: usize,
}

impl Canvas {
    /// A canvas of whatever size the view gives.
    pub const FREE: Self = Self { fixed: false, multiple: 1 };

    /// A side multiplied, cut to whole pixels and to the multiple, at least one of it.
    pub fn side(self, side: usize, factor: f32) -> usize {
        let whole = (side as f64 * f64::from(factor)) as usize;
        (whole / self.multiple * self.multiple).max(self.multiple)
    }
}

/// Where a view puts the pixels of an image of one size. Its samplers are linear, and exact transposes lead back through them.
pub trait Placement: std::fmt::Debug + Send + Sync {
    /// (height, width) of the seen image.
    fn seen_size(&self) -> (usize, usize);

    /// Whether nothing moves.
    fn is_identity(&self) -> bool;

    /// The map from planes of the image canvas at resolution `from` to the seen canvas at resolution `to`.
    fn sampler(&self, from: (usize, usize), to: (usize, usize)) -> Sampler;

    /// The map back: from planes of the seen canvas at resolution `seen` to the image canvas at resolution `to`.
    fn undoing(&self, seen: (usize, usize), to: (usize, usize)) -> Sampler;
}

/// An affine map from the seen canvas to the image's: image = matrix · seen + offset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Affine {
    from: (usize, usize),
    to: (usize, usize),
    matrix: [[f64; 2]; 2],
    offset: [f64; 2],
    edge: Edge,
}

impl Affine {
    /// Nothing moves.
    pub fn stay(size: (usize, usize)) -> Self {
        Self::scaled(size, size, [1.0, 1.0], [0.0, 0.0])
    }

    /// Rows and columns on their own: image = scale · seen + offset.
    pub fn scaled(from: (usize, usize), to: (usize, usize), scale: [f64; 2], offset: [f64; 2]) -> Self {
        Self { from, to, matrix: [[scale[0], 0.0], [0.0, scale[1]]], offset, edge: Edge::Nearest }
    }

    /// Scaled about the centre of a canvas that keeps its size.
    pub fn about_centre(size: (usize, usize), scale: [f64; 2]) -> Self {
        let centre = [0.5 * size.0 as f64, 0.5 * size.1 as f64];
        Self::scaled(size, size, scale, [0, 1].map(|a| centre[a] * (1.0 - scale[a])))
    }

    /// Any matrix that can be inverted, taking the centre of the seen canvas to the centre of the image's.
    pub fn about_centres(from: (usize, usize), to: (usize, usize), matrix: [[f64; 2]; 2]) -> Self {
        let (from_centre, to_centre) =
            ([from.0 as f64 / 2.0, from.1 as f64 / 2.0], [to.0 as f64 / 2.0, to.1 as f64 / 2.0]);
        let offset =
            [0, 1].map(|a| from_centre[a] - matrix[a][0] * to_centre[0] - matrix[a][1] * to_centre[1]);
        Self { from, to, matrix, offset, edge: Edge::Nearest }
    }

    /// The same map with this outside the image.
    pub fn outside(self, edge: Edge) -> Self {
        Self { edge, ..self }
    }
}

impl Placement for Affine {
    fn seen_size(&self) -> (usize, usize) {
        self.to
    }

    fn is_identity(&self) -> bool {
        self.from == self.to && self.matrix == [[1.0, 0.0], [0.0, 1.0]] && self.offset == [0.0, 0.0]
    }

    fn sampler(&self, from: (usize, usize), to: (usize, usize)) -> Sampler {
        let input = [from.0 as f64 / self.from.0 as f64, from.1 as f64 / self.from.1 as f64];
        let output = [self.to.0 as f64 / to.0 as f64, self.to.1 as f64 / to.1 as f64];
        // cell (i, j) -> centre on the seen canvas -> image canvas -> input cells, whose centres are at i + 1/2
        let matrix = [0, 1].map(|a| [0, 1].map(|b| input[a] * self.matrix[a][b] * output[b]));
        let offset = [0, 1].map(|a| input[a] * self.offset[a] + 0.5 * (matrix[a][0] + matrix[a][1]) - 0.5);
        Sampler::new(from, to, matrix, offset, self.edge)
    }

    fn undoing(&self, seen: (usize, usize), to: (usize, usize)) -> Sampler {
        let [[a, b], [c, d]] = self.matrix;
        let inverse_determinant = 1.0 / (a * d - b * c);
        let matrix = [[d, -b], [-c, a]].map(|row| row.map(|v| v * inverse_determinant));
        let offset = [0, 1].map(|i| -(matrix[i][0] * self.offset[0] + matrix[i][1] * self.offset[1]));
        // a window shows nothing of what lies outside it, even if its own edge is sharp
        let part = self.edge == Edge::Nearest
            && (self.to.0 as f64 * a.abs() < 0.999 * self.from.0 as f64
                || self.to.1 as f64 * d.abs() < 0.999 * self.from.1 as f64);
        let edge = if part { Edge::Zero } else { self.edge };
        let back = Self { from: self.to, to: self.from, matrix, offset, edge };
        back.sampler(seen, to)
    }
}
