//! Where an output lies among the inputs, and how the inputs around that place are weighed: the modes of ONNX Resize, and with
//! them those of the frameworks.
//!
//! Output `o` lies at a real coordinate `x` of the input. Neighbours past the edge stand for the edge, or are left out and the others weighed
//! up. An antialiasing filter is stretched by the shrinking factor.

/// How output indices become input coordinates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coordinates {
    /// Pixel centres: `(o + 1/2) / scale - 1/2`.
    HalfPixel,
    /// As half pixel, but the middles of input and output coincide also where the output was rounded.
    HalfPixelSymmetric,
    /// As half pixel, except that a single output lies at the first input's edge.
    PytorchHalfPixel,
    /// The first and the last elements coincide.
    AlignCorners,
    /// `o / scale`.
    Asymmetric,
    /// A part of the input, its ends as fractions of the whole; outputs outside the input get a constant.
    Crop {
        /// Where the part begins.
        start: f64,
        /// Where it ends.
        end: f64,
        /// What lies outside.
        outside: f32,
    },
}

/// Which neighbour a nearest sampling takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// The nearest, of two the lower.
    PreferFloor,
    /// The nearest, of two the upper.
    PreferCeil,
    /// The lower.
    Floor,
    /// The upper.
    Ceil,
}

/// How neighbours are weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Filter {
    /// One neighbour.
    Nearest(Rounding),
    /// Two, by distance.
    Linear {
        /// Whether shrinking stretches the filter.
        antialias: bool,
    },
    /// Four, by cubic convolution.
    Cubic {
        /// The cubic's free coefficient: -0.75 or -0.5 as a rule.
        a: f64,
        /// Whether shrinking stretches the filter.
        antialias: bool,
    },
}

/// How one axis is resized.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Where outputs lie.
    pub coordinates: Coordinates,
    /// How their neighbours are weighed.
    pub filter: Filter,
    /// Whether neighbours past the edge are left out (and the rest made to sum to one) instead of standing for the edge.
    pub exclude_outside: bool,
}

impl Sampling {
    /// Linear interpolation as image libraries do it: half pixels, edges repeated, no antialiasing.
    pub const LINEAR: Sampling = Sampling {
        coordinates: Coordinates::HalfPixel,
        filter: Filter::Linear { antialias: false },
        exclude_outside: false,
    };

    /// Linear interpolation whose filter is stretched where it shrinks, neighbours past the edge left out: Pillow's BILINEAR.
    pub const ANTIALIASED: Sampling = Sampling {
        coordinates: Coordinates::HalfPixel,
        filter: Filter::Linear { antialias: true },
        exclude_outside: true,
    };

    pub(super) fn fill(&self) -> f32 {
        if let Coordinates::Crop { outside, .. } = self.coordinates { outside } else { 0.0 }
    }

    /// The weighted sources of output `o`; none if it lies outside a crop.
    pub(super) fn list(&self, input: usize, output: usize, scale: f64, o: usize) -> Vec<(usize, f64)> {
        let Some(x) = self.coordinates.place(input, output, scale, o as f64) else {
            return Vec::new();
        };
        let below = x.floor();
        let mut neighbours: Vec<(f64, f64)> = match self.filter {
            Filter::Nearest(rounding) => vec![(below + rounding.step(x - below), 1.0)],
            Filter::Linear { antialias } => weigh(x, 1.0, stretch(scale, antialias), |d| (1.0 - d).max(0.0)),
            Filter::Cubic { a, antialias } => weigh(x, 2.0, stretch(scale, antialias), |d| cubic(a, d)),
        };
        let last = (input - 1) as f64;
        if self.exclude_outside && !matches!(self.filter, Filter::Nearest(_)) {
            neighbours.retain(|&(i, _)| (0.0..=last).contains(&i));
            let sum: f64 = neighbours.iter().map(|pair| pair.1).sum();
            neighbours.iter_mut().for_each(|pair| pair.1 /= sum);
        }
        neighbours.into_iter().map(|(i, weight)| (i.clamp(0.0, last) as usize, weight)).collect()
    }
}

impl Coordinates {
    /// The input coordinate of output `o`; none if it lies outside a crop.
    fn place(self, input: usize, output: usize, scale: f64, o: f64) -> Option<f64> {
        let (input, resized) = (input as f64, input as f64 * scale);
        let centre = (o + 0.5) / scale - 0.5;
        Some(match self {
            Coordinates::HalfPixel => centre,
            Coordinates::HalfPixelSymmetric => input / 2.0 * (1.0 - output as f64 / resized) + centre,
            Coordinates::PytorchHalfPixel => {
                if output == 1 {
                    -0.5
                } else {
                    centre
                }
            }
            Coordinates::AlignCorners => {
                if resized == 1.0 || output == 1 {
                    0.0
                } else {
                    o * (input - 1.0) / (resized - 1.0)
                }
            }
            Coordinates::Asymmetric => o / scale,
            Coordinates::Crop { start, end, .. } => {
                let last = input - 1.0;
                let within = if output == 1 {
                    (end - start) * last / 2.0
                } else {
                    o * (end - start) * last / (resized - 1.0)
                };
                let x = start * last + within;
                return (0.0..=last).contains(&x).then_some(x);
            }
        })
    }
}

impl Rounding {
    /// 0 for the lower neighbour, 1 for the upper, of a coordinate `fraction` above the lower.
    fn step(self, fraction: f64) -> f64 {
        let up = match self {
            Rounding::PreferFloor => fraction > 0.5,
            Rounding::PreferCeil => fraction >= 0.5,
            Rounding::Floor => false,
            Rounding::Ceil => fraction > 0.0,
        };
        f64::from(u8::from(up))
    }
}

fn stretch(scale: f64, antialias: bool) -> f64 {
    if antialias { scale.min(1.0) } else { 1.0 }
}

/// The neighbours of `x` within the filter's support, their weights summing to one.
fn weigh(x: f64, support: f64, shrink: f64, filter: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
    let reach = support / shrink;
    let (first, last) = ((x - reach).floor(), (x + reach).ceil());
    let count = (last - first) as usize + 1;
    let around = (0..count).map(|k| first + k as f64);
    let mut list: Vec<(f64, f64)> =
        around.map(|i| (i, filter(((i - x) * shrink).abs()))).filter(|pair| pair.1 != 0.0).collect();
    let sum: f64 = list.iter().map(|pair| pair.1).sum();
    list.iter_mut().for_each(|pair| pair.1 /= sum);
    list
}

/// Keys' cubic at distance `d`.
fn cubic(a: f64, d: f64) -> f64 {
    if d <= 1.0 {
        ((a + 2.0) * d - (a + 3.0)) * d * d + 1.0
    } else if d < 2.0 {
        ((a * d - 5.0 * a) * d + 8.0 * a) * d - 4.0 * a
    } else {
        0.0
    }
}
