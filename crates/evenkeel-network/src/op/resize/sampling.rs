//! Where each output of a resize looks along one axis, and with which weights, as ONNX defines it.
//!
//! An output's coordinate is carried to the input by the coordinate mode; the weights come from its fraction, counted in (0, 1] from
//! the neighbour on the left. Neighbours outside are those at the edge, or left out.

use super::super::Attributes;
use crate::error::Fault;

/// Terms that the map of one axis may have.
const MOST_TERMS: f64 = (1u64 << 22) as f64;

/// How an output's coordinate is carried to the input.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Coordinates {
    HalfPixel,
    HalfPixelSymmetric,
    PytorchHalfPixel,
    TfHalfPixel,
    AlignCorners,
    Asymmetric,
    Crop,
}

/// Which neighbour is the nearest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Nearest {
    RoundPreferFloor,
    RoundPreferCeil,
    Floor,
    Ceil,
    /// Down when enlarging, up when shrinking: what resizing meant before the modes had names.
    Simple,
}

/// How neighbours are weighed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Weights {
    Nearest(Nearest),
    Linear,
    Cubic { a: f64 },
}

/// All that is the same along every axis.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sampling {
    pub(super) coordinates: Coordinates,
    pub(super) weights: Weights,
    pub(super) antialias: bool,
    pub(super) exclude_outside: bool,
}

fn unknown(name: &str, value: &str) -> Fault {
    Fault::Attribute { name: name.into(), problem: format!("{value:?} is unknown") }
}

impl Sampling {
    /// From the attributes of version 11 or later of Resize.
    pub(super) fn of(attributes: &Attributes) -> Result<Sampling, Fault> {
        let text = |name: &str, default: &str| -> Result<String, Fault> {
            Ok(attributes.text(name)?.unwrap_or_else(|| default.into()))
        };
        let coordinates = text("coordinate_transformation_mode", "half_pixel")?;
        let coordinates = match &*coordinates {
            "half_pixel" => Coordinates::HalfPixel,
            "half_pixel_symmetric" => Coordinates::HalfPixelSymmetric,
            "pytorch_half_pixel" => Coordinates::PytorchHalfPixel,
            "tf_half_pixel_for_nn" => Coordinates::TfHalfPixel,
            "align_corners" => Coordinates::AlignCorners,
            "asymmetric" => Coordinates::Asymmetric,
            "tf_crop_and_resize" => Coordinates::Crop,
            other => return Err(unknown("coordinate_transformation_mode", other)),
        };
        let nearest = match &*text("nearest_mode", "round_prefer_floor")? {
            "round_prefer_floor" => Nearest::RoundPreferFloor,
            "round_prefer_ceil" => Nearest::RoundPreferCeil,
            "floor" => Nearest::Floor,
            "ceil" => Nearest::Ceil,
            other => return Err(unknown("nearest_mode", other)),
        };
        let weights = match &*text("mode", "nearest")? {
            "nearest" => Weights::Nearest(nearest),
            "linear" => Weights::Linear,
            "cubic" => Weights::Cubic { a: attributes.float("cubic_coeff_a")?.unwrap_or(-0.75).into() },
            other => return Err(unknown("mode", other)),
        };
        Ok(Sampling {
            coordinates,
            weights,
            antialias: attributes.flag("antialias", false)?,
            exclude_outside: attributes.flag("exclude_outside", false)?,
        })
    }

    /// From the attributes of Upsample and of the first Resize.
    pub(super) fn before_modes(attributes: &Attributes) -> Result<Sampling, Fault> {
        let weights = match attributes.text("mode")?.as_deref() {
            None | Some("nearest") => Weights::Nearest(Nearest::Simple),
            Some("linear" | "bilinear") => Weights::Linear,
            Some(other) => return Err(unknown("mode", other)),
        };
        let coordinates = Coordinates::Asymmetric;
        Ok(Sampling { coordinates, weights, antialias: false, exclude_outside: false })
    }
}

/// One axis to be resized.
#[derive(Clone, Copy, Debug)]
pub(super) struct Axis {
    pub(super) input: usize,
    pub(super) output: usize,
    pub(super) scale: f64,
    /// The output before it was rounded to whole elements.
    pub(super) exact_output: f64,
    /// The part that is cropped, as shares of the input.
    pub(super) crop: (f64, f64),
}

impl Axis {
    /// Whether nothing happens along it.
    pub(super) fn is_identity(&self, sampling: &Sampling) -> bool {
        let cropped = sampling.coordinates == Coordinates::Crop && self.crop != (0.0, 1.0);
        self.input == self.output && (self.scale - 1.0).abs() <= 1e-9 && !cropped
    }

    /// The input coordinate of an output.
    fn coordinate(&self, o: usize, mode: Coordinates) -> f64 {
        let (o, input, scale) = (o as f64, self.input as f64, self.scale);
        match mode {
            Coordinates::HalfPixel => (o + 0.5) / scale - 0.5,
            Coordinates::HalfPixelSymmetric => {
                let adjustment = self.output as f64 / self.exact_output;
                input / 2.0 * (1.0 - adjustment) + (o + 0.5) / scale - 0.5
            }
            Coordinates::PytorchHalfPixel if self.exact_output == 1.0 => -0.5,
            Coordinates::PytorchHalfPixel => (o + 0.5) / scale - 0.5,
            Coordinates::TfHalfPixel => (o + 0.5) / scale,
            Coordinates::AlignCorners if self.exact_output == 1.0 => 0.0,
            Coordinates::AlignCorners => o * (input - 1.0) / (self.exact_output - 1.0),
            Coordinates::Asymmetric => o / scale,
            Coordinates::Crop => {
                let (start, end) = self.crop;
                let span = (end - start) * (input - 1.0);
                let along =
                    if self.exact_output == 1.0 { span / 2.0 } else { o * span / (self.exact_output - 1.0) };
                along + start * (input - 1.0)
            }
        }
    }

    /// Whether an output looks outside what is cropped and so gets the extrapolation value.
    pub(super) fn is_outside(&self, o: usize, sampling: &Sampling) -> bool {
        let inside = |x: f64| x >= 0.0 && x <= self.input as f64 - 1.0;
        sampling.coordinates == Coordinates::Crop && !inside(self.coordinate(o, Coordinates::Crop))
    }

    /// The nearest input of an output.
    pub(super) fn nearest(&self, o: usize, sampling: &Sampling, nearest: Nearest) -> usize {
        let x = self.coordinate(o, sampling.coordinates);
        let found = match nearest {
            Nearest::RoundPreferFloor => (x - 0.5).ceil(),
            Nearest::RoundPreferCeil => (x + 0.5).floor(),
            Nearest::Floor => x.floor(),
            Nearest::Ceil => x.ceil(),
            Nearest::Simple if self.scale < 1.0 => x.ceil(),
            Nearest::Simple => x.floor(),
        };
        (found.max(0.0) as usize).min(self.input - 1)
    }

    /// The weighed inputs of an output.
    pub(super) fn terms(&self, o: usize, sampling: &Sampling) -> Vec<(usize, f64)> {
        if self.is_outside(o, sampling) {
            return Vec::new();
        }
        if let Weights::Nearest(nearest) = sampling.weights {
            return vec![(self.nearest(o, sampling, nearest), 1.0)];
        }
        let x = self.coordinate(o, sampling.coordinates);
        let left = x.ceil() - 1.0; // so that the fraction is in (0, 1]
        let (first, mut weights) = self.weigh(x - left, sampling);
        let index = |k: usize| left + first + k as f64;
        let inside = |i: f64| i >= 0.0 && i < self.input as f64;
        if sampling.exclude_outside {
            let outside = |k: &usize| !inside(index(*k));
            (0..weights.len()).filter(outside).collect::<Vec<_>>().into_iter().for_each(|k| weights[k] = 0.0);
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w /= if sum == 0.0 { 1.0 } else { sum });
        }
        let clamped = |i: f64| (i.max(0.0) as usize).min(self.input - 1);
        weights.iter().enumerate().map(|(k, &weight)| (clamped(index(k)), weight)).collect()
    }

    /// The weights of the neighbours of a coordinate `fraction` right of its left neighbour, and the first one's place from there.
    fn weigh(&self, fraction: f64, sampling: &Sampling) -> (f64, Vec<f64>) {
        let (radius, weight): (f64, fn(f64, f64) -> f64) = match sampling.weights {
            Weights::Cubic { .. } => (2.0, cubic),
            _ => (1.0, |x, _| (1.0 - x).max(0.0)),
        };
        let a = if let Weights::Cubic { a } = sampling.weights { a } else { 0.0 };
        let scale = if sampling.antialias { self.scale.min(1.0) } else { 1.0 };
        let first = (-radius / scale).floor() + 1.0;
        let count = (2.0 - 2.0 * first) as usize;
        let mut weights: Vec<f64> =
            (0..count).map(|k| weight((scale * (first + k as f64 - fraction)).abs(), a)).collect();
        if sampling.antialias {
            let sum: f64 = weights.iter().sum();
            weights.iter_mut().for_each(|w| *w /= sum);
        }
        (first, weights)
    }

    /// Refuses a map with more terms than any image needs.
    pub(super) fn check(&self, sampling: &Sampling) -> Result<(), Fault> {
        let each = if sampling.antialias { 4.0 + 4.0 / self.scale.min(1.0) } else { 4.0 };
        let terms = each * self.output as f64;
        if terms <= MOST_TERMS {
            return Ok(());
        }
        let asked = if terms < i64::MAX as f64 { terms as i64 } else { i64::MAX };
        Err(Fault::Work { what: "terms of an interpolation", asked, limit: MOST_TERMS as i64 })
    }
}

/// The cubic convolution kernel at distance `x`.
fn cubic(x: f64, a: f64) -> f64 {
    if x <= 1.0 {
        ((a + 2.0) * x - (a + 3.0)) * x * x + 1.0
    } else if x < 2.0 {
        ((a * x - 5.0 * a) * x + 8.0 * a) * x - 4.0 * a
    } else {
        0.0
    }
}
