//! `gamma`: every value v becomes ((v + t)^γ − t^γ) / ((1 + t)^γ − t^γ), which keeps 0 and 1.
//!
//! The toe t, a step of 8 bits, bounds the slope at black, which is infinite for v^γ with γ < 1. γ is drawn evenly in its logarithm,
//! so that darkening and lightening are as likely.

use std::sync::Arc;

use super::key::{Bounds, Form, Key, Value};
use super::{View, ViewKind};
use crate::image::Image;

const TOE: f32 = 1.0 / 255.0;

const EXPONENT: Key = Key {
    name: "exponent",
    help: "range of the exponent; below 1 lightens, above 1 darkens",
    form: Form::Range(Bounds { low: 0.1, high: 10.0, above_low: false }),
    default: Some(Value::Range([0.6, 1.6])),
};

pub(super) const KIND: ViewKind = ViewKind {
    name: "gamma",
    about: "lighter or darker by a power of every value",
    keys: &[EXPONENT],
    draw: |rule, random| {
        let [low, high] = rule.range(&EXPONENT).map(f32::ln);
        Arc::new(Gamma { exponent: random.uniform(low, high).exp() })
    },
};

/// Every value to a power, 0 and 1 kept.
#[derive(Clone, Copy, Debug)]
pub struct Gamma {
    /// The exponent.
    pub exponent: f32,
}

impl Gamma {
    /// t^γ and 1 / ((1 + t)^γ − t^γ).
    fn scale(self) -> (f32, f32) {
        let black = TOE.powf(self.exponent);
        (black, 1.0 / ((1.0 + TOE).powf(self.exponent) - black))
    }
}

impl View for Gamma {
    fn caption(&self) -> String {
        format!("gamma {:.2}", self.exponent)
    }

    fn recolour(&self, image: &Image) -> Option<Image> {
        let (black, scale) = self.scale();
        let mut out = image.clone();
        for v in out.pixels_mut() {
            *v = (((v.clamp(0.0, 1.0) + TOE).powf(self.exponent) - black) * scale).clamp(0.0, 1.0);
        }
        Some(out)
    }

    fn pull_recolour(&self, image: &Image, mut cotangent: Vec<f32>) -> Vec<f32> {
        let slope = self.exponent * self.scale().1;
        for (c, v) in cotangent.iter_mut().zip(image.pixels()) {
            let inside = (0.0..=1.0).contains(v);
            *c *= if inside { slope * (v + TOE).powf(self.exponent - 1.0) } else { 0.0 };
        }
        cotangent
    }
}
