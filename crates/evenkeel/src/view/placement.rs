//! Where pixels go: every motion is an affine map from the seen canvas back to the image's.
//!
//! Coordinates are continuous, (down, right) from the top left corner in pixels; pixel i has its centre at i + 1/2. A placement
//! knows both canvases, so the same map serves at any resolution: the image's own, or a feature map's.

use super::sampler::{Edge, Sampler};

/// A drawn motion. Factors multiply sides; fractions are of the image's sides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Motion {
    /// Stays as it is.
    Stay,
    /// Height and width multiplied.
    Resize {
        /// Factor of the height.
        height: f32,
        /// Factor of the width.
        width: f32,
    },
    /// Mirrored left to right, and the width multiplied.
    Flip {
        /// Factor of the width.
        width: f32,
    },
    /// Turned about the centre, zeros outside.
    Rotate {
        /// The angle in degrees.
        degrees: f32,
        /// Whether the turn happens in coordinates from −1 to 1 on both axes, which shears an image that is not square.
        normalised: bool,
    },
    /// Turned by this many quarters.
    Turn {
        /// 1, 2 or 3.
        quarters: u8,
    },
    /// A window.
    Crop {
        /// Distance from the top.
        top: f32,
        /// Distance from the left.
        left: f32,
        /// Height of the window.
        height: f32,
        /// Width of the window.
        width: f32,
    },
    /// Moved, zeros where nothing was.
    Translate {
        /// Downwards.
        down: f32,
        /// To the right.
        right: f32,
    },
}

impl std::fmt::Display for Motion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Stay => write!(f, "as it is"),
            Self::Resize { height, width } => write!(f, "height x{height:.2}, width x{width:.2}"),
            Self::Flip { width } => write!(f, "mirrored, width x{width:.2}"),
            Self::Rotate { degrees, normalised: false } => write!(f, "turned by {degrees:.1}°"),
            Self::Rotate { degrees, normalised: true } => {
                write!(f, "turned by {degrees:.1}° in normalised coordinates")
            }
            Self::Turn { quarters } => write!(f, "turned by {}°", 90 * u32::from(quarters)),
            Self::Crop { top, left, height, width } => write!(
                f,
                "window of {:.0} % by {:.0} %, {:.0} % down and {:.0} % right",
                100.0 * height,
                100.0 * width,
                100.0 * top,
                100.0 * left
            ),
            Self::Translate { down, right } => {
                write!(f, "moved {:.0} % down and {:.0} % right", 100.0 * down, 100.0 * right)
            }
        }
    }
}

/// An affine map from the seen canvas to the image's: image = matrix · seen + offset.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Placement {
    /// (height, width) of the image.
    pub from: (usize, usize),
    /// (height, width) of the seen image.
    pub to: (usize, usize),
    matrix: [[f64; 2]; 2],
    offset: [f64; 2],
    edge: Edge,
}

/// A side multiplied, cut to whole pixels and to a multiple, at least one of it.
fn side(side: usize, factor: f32, multiple: usize) -> usize {
    let whole = (side as f64 * f64::from(factor)) as usize;
    (whole / multiple * multiple).max(multiple)
}

impl Motion {
    /// The placement for an image of this (height, width), with the sides of the result cut to multiples of `multiple`.
    pub fn place(self, (height, width): (usize, usize), multiple: usize) -> Placement {
        let (h, w) = (height as f64, width as f64);
        let stretched = |to: (usize, usize)| [h / to.0 as f64, w / to.1 as f64];
        match self {
            Motion::Stay => Placement::diagonal((height, width), (height, width), [1.0, 1.0], [0.0, 0.0]),
            Motion::Resize { height: down, width: across } => {
                let to = (side(height, down, multiple), side(width, across, multiple));
                Placement::diagonal((height, width), to, stretched(to), [0.0, 0.0])
            }
            Motion::Flip { width: across } => {
                let to = (height, side(width, across, multiple));
                let [y, x] = stretched(to);
                Placement::diagonal((height, width), to, [y, -x], [0.0, w])
            }
            Motion::Rotate { degrees, normalised } => {
                Placement::turned((height, width), (height, width), f64::from(degrees), normalised)
            }
            Motion::Turn { quarters } => {
                let to = if quarters % 2 == 1 { (width, height) } else { (height, width) };
                Placement::turned((height, width), to, 90.0 * f64::from(quarters % 4), false)
            }
            Motion::Crop { top, left, height: part_h, width: part_w } => {
                let to =
                    (side(height, part_h, multiple).min(height), side(width, part_w, multiple).min(width));
                let start = |at: f32, side: usize, kept: usize| {
                    ((side as f64 * f64::from(at)) as usize).min(side - kept)
                };
                let offset = [start(top, height, to.0) as f64, start(left, width, to.1) as f64];
                Placement::diagonal((height, width), to, [1.0, 1.0], offset)
            }
            Motion::Translate { down, right } => {
                let offset = [-(h * f64::from(down)).trunc(), -(w * f64::from(right)).trunc()];
                let placement = Placement::diagonal((height, width), (height, width), [1.0, 1.0], offset);
                Placement { edge: Edge::Zero, ..placement }
            }
        }
    }

    /// The same motion about the centre of a canvas that keeps its size: what is pushed out is lost, what is empty is zero.
    pub fn on_fixed_canvas(self, size: (usize, usize)) -> Placement {
        let (h, w) = (size.0 as f64, size.1 as f64);
        let about_centre = |scale: [f64; 2]| {
            Placement::diagonal(size, size, scale, [0.5 * h * (1.0 - scale[0]), 0.5 * w * (1.0 - scale[1])])
        };
        let placement = match self {
            Motion::Resize { height, width } => {
                about_centre([1.0 / f64::from(height), 1.0 / f64::from(width)])
            }
            Motion::Flip { width } => about_centre([1.0, -1.0 / f64::from(width)]),
            Motion::Turn { quarters } => Placement::turned(size, size, 90.0 * f64::from(quarters % 4), false),
            Motion::Crop { top, left, height, width } => Placement::diagonal(
                size,
                size,
                [f64::from(height), f64::from(width)],
                [h * f64::from(top), w * f64::from(left)],
            ),
            Motion::Stay | Motion::Rotate { .. } | Motion::Translate { .. } => self.place(size, 1),
        };
        let whole = matches!(self, Motion::Stay) || matches!(self, Motion::Flip { width } if width == 1.0);
        Placement { edge: if whole { Edge::Nearest } else { Edge::Zero }, ..placement }
    }
}

impl Placement {
    fn diagonal(from: (usize, usize), to: (usize, usize), scale: [f64; 2], offset: [f64; 2]) -> Self {
        Self { from, to, matrix: [[scale[0], 0.0], [0.0, scale[1]]], offset, edge: Edge::Nearest }
    }

    /// About both centres; right · cos − down · sin and right · sin + down · cos, as PyTorch's `affine_grid` has it.
    fn turned(from: (usize, usize), to: (usize, usize), degrees: f64, normalised: bool) -> Self {
        // quarters exactly, so that nothing is blurred by a rounded cosine
        let (sine, cosine) = match degrees {
            0.0 => (0.0, 1.0),
            90.0 => (1.0, 0.0),
            180.0 => (0.0, -1.0),
            270.0 => (-1.0, 0.0),
            _ => degrees.to_radians().sin_cos(),
        };
        let ratio = if normalised { from.0 as f64 / from.1 as f64 } else { 1.0 };
        let matrix = [[cosine, sine * ratio], [-sine / ratio, cosine]];
        let (from_centre, to_centre) =
            ([from.0 as f64 / 2.0, from.1 as f64 / 2.0], [to.0 as f64 / 2.0, to.1 as f64 / 2.0]);
        let offset =
            [0, 1].map(|a| from_centre[a] - matrix[a][0] * to_centre[0] - matrix[a][1] * to_centre[1]);
        Self { from, to, matrix, offset, edge: Edge::Zero }
    }

    /// Whether nothing moves.
    pub fn is_identity(&self) -> bool {
        self.from == self.to && self.matrix == [[1.0, 0.0], [0.0, 1.0]] && self.offset == [0.0, 0.0]
    }

    /// The map from planes of the image canvas at resolution `from` to the seen canvas at resolution `to`.
    pub fn sampler(&self, from: (usize, usize), to: (usize, usize)) -> Sampler {
        let input = [from.0 as f64 / self.from.0 as f64, from.1 as f64 / self.from.1 as f64];
        let output = [self.to.0 as f64 / to.0 as f64, self.to.1 as f64 / to.1 as f64];
        // cell (i, j) -> centre on the seen canvas -> image canvas -> input cells, whose centres are at i + 1/2
        let matrix = [0, 1].map(|a| [0, 1].map(|b| input[a] * self.matrix[a][b] * output[b]));
        let offset = [0, 1].map(|a| input[a] * self.offset[a] + 0.5 * (matrix[a][0] + matrix[a][1]) - 0.5);
        Sampler::new(from, to, matrix, offset, self.edge)
    }

    /// The map back: from planes of the seen canvas at resolution `seen` to the image canvas at resolution `to`.
    pub fn undoing(&self, seen: (usize, usize), to: (usize, usize)) -> Sampler {
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
