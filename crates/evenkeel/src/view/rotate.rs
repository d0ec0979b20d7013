//! `rotate`: turned about the centre by a drawn angle on a canvas that keeps its size; zeros outside.
//!
//! right' = right · cos − down · sin and down' = right · sin + down · cos, as PyTorch's `affine_grid` has it.

use std::sync::Arc;

use super::key::{Bounds, Form, Key, Value};
use super::{Affine, Canvas, Edge, Placement, View, ViewKind};

const DEGREES: Key = Key {
    name: "degrees",
    help: "range of the angle, in degrees",
    form: Form::Range(Bounds::closed(-360.0, 360.0)),
    default: None,
};
const NORMALISED: Key = Key {
    name: "normalised",
    help: "turn in coordinates from -1 to 1 on both axes, as the reference code does",
    form: Form::Flag,
    default: Some(Value::Flag(false)),
};

pub(super) const KIND: ViewKind = ViewKind {
    name: "rotate",
    about: "turned about the centre by an angle, zeros outside",
    keys: &[DEGREES, NORMALISED],
    draw: |rule, random| {
        let [low, high] = rule.range(&DEGREES);
        Arc::new(Rotate { degrees: random.uniform(low, high), normalised: rule.flag(&NORMALISED) })
    },
};

/// Turned about the centre, zeros outside.
#[derive(Clone, Copy, Debug)]
pub struct Rotate {
    /// The angle in degrees.
    pub degrees: f32,
    /// Whether the turn happens in coordinates from −1 to 1 on both axes, which shears an image that is not square.
    pub normalised: bool,
}

impl View for Rotate {
    fn caption(&self) -> String {
        let how = if self.normalised { " in normalised coordinates" } else { "" };
        format!("rotate {:.1}°{how}", self.degrees)
    }

    fn place(&self, size: (usize, usize), _: Canvas) -> Arc<dyn Placement> {
        Arc::new(turned(size, size, f64::from(self.degrees), self.normalised))
    }
}

/// Turned about the centres of both canvases.
pub(super) fn turned(from: (usize, usize), to: (usize, usize), degrees: f64, normalised: bool) -> Affine {
    // quarters exactly, so that nothing is blurred by a rounded cosine
    let (sine, cosine) = match degrees {
        0.0 => (0.0, 1.0),
        90.0 => (1.0, 0.0),
        180.0 => (0.0, -1.0),
        270.0 => (-1.0, 0.0),
        _ => degrees.to_radians().sin_cos(),
    };
    let ratio = if normalised { from.0 as f64 / from.1 as f64 } else { 1.0 };
    Affine::about_centres(from, to, [[cosine, sine * ratio], [-sine / ratio, cosine]]).outside(Edge::Zero)
}
