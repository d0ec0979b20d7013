//! `resize`: both sides times a factor, and the width again by a drawn one. Half-pixel centres, no antialiasing.

use std::sync::Arc;

use super::key::{Bounds, Form, Key, STRETCH};
use super::{Affine, Canvas, Edge, Placement, View, ViewKind};

const SCALE: Key =
    Key { name: "scale", help: "factor of both sides", form: Form::Number(Bounds::FACTOR), default: None };

pub(super) const KIND: ViewKind = ViewKind {
    name: "resize",
    about: "enlarged or shrunk, with the width stretched further",
    keys: &[SCALE, STRETCH],
    draw: |rule, random| {
        let (scale, [low, high]) = (rule.number(&SCALE), rule.range(&STRETCH));
        Arc::new(Resize { height: scale, width: scale * random.uniform(low, high) })
    },
};

/// Height and width multiplied.
#[derive(Clone, Copy, Debug)]
pub struct Resize {
    /// Factor of the height.
    pub height: f32,
    /// Factor of the width.
    pub width: f32,
}

impl View for Resize {
    fn caption(&self) -> String {
        format!("resize, height x{:.2}, width x{:.2}", self.height, self.width)
    }

    fn place(&self, size: (usize, usize), canvas: Canvas) -> Arc<dyn Placement> {
        let factors = [self.height, self.width];
        Arc::new(match canvas.fixed {
            true => Affine::about_centre(size, factors.map(|f| 1.0 / f64::from(f))).outside(Edge::Zero),
            false => {
                let to = (canvas.side(size.0, self.height), canvas.side(size.1, self.width));
                Affine::scaled(size, to, [size.0 as f64 / to.0 as f64, size.1 as f64 / to.1 as f64], [0.0; 2])
            }
        })
    }
}
