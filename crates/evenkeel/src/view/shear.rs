//! `shear`: rows slide sideways and columns up or down, by drawn angles about the centre, on a canvas that keeps its size; zeros outside.
//!
//! image = [[1, tan v], [tan h, 1]] · seen in (down, right). Angles stay below 45 degrees, so the map can be inverted.

use std::sync::Arc;

use super::key::{Bounds, Form, Key, Value};
use super::{Affine, Canvas, Edge, Placement, View, ViewKind};

const ANGLE: Form = Form::Range(Bounds::closed(-40.0, 40.0));
const DEGREES: Key = Key {
    name: "degrees",
    help: "range of the angle by which columns lean sideways, in degrees",
    form: ANGLE,
    default: Some(Value::Range([-10.0, 10.0])),
};
const VERTICAL: Key = Key {
    name: "vertical_degrees",
    help: "range of the angle by which rows lean up or down, in degrees",
    form: ANGLE,
    default: Some(Value::Range([0.0, 0.0])),
};

pub(super) const KIND: ViewKind = ViewKind {
    name: "shear",
    about: "sheared about the centre, zeros outside",
    keys: &[DEGREES, VERTICAL],
    draw: |rule, random| {
        let [[low, high], [least, most]] = [rule.range(&DEGREES), rule.range(&VERTICAL)];
        Arc::new(Shear { degrees: random.uniform(low, high), vertical_degrees: random.uniform(least, most) })
    },
};

/// Sheared about the centre, zeros outside.
#[derive(Clone, Copy, Debug)]
pub struct Shear {
    /// The angle by which columns lean sideways.
    pub degrees: f32,
    /// The angle by which rows lean up or down.
    pub vertical_degrees: f32,
}

impl View for Shear {
    fn caption(&self) -> String {
        format!("shear {:.1}°, vertically {:.1}°", self.degrees, self.vertical_degrees)
    }

    fn place(&self, size: (usize, usize), _: Canvas) -> Arc<dyn Placement> {
        let [sideways, upwards] =
            [self.degrees, self.vertical_degrees].map(|a| f64::from(a).to_radians().tan());
        Arc::new(Affine::about_centres(size, size, [[1.0, upwards], [sideways, 1.0]]).outside(Edge::Zero))
    }
}
