//! `flip`: mirrored left to right, and the width times a drawn factor.

use std::sync::Arc;

use super::key::STRETCH;
use super::{Affine, Canvas, Edge, Placement, View, ViewKind};

pub(super) const KIND: ViewKind = ViewKind {
    name: "flip",
    about: "mirrored left to right, with the width stretched",
    keys: &[STRETCH],
    draw: |rule, random| {
        let [low, high] = rule.range(&STRETCH);
        Arc::new(Flip { width: random.uniform(low, high) })
    },
};

/// Mirrored left to right, and the width multiplied.
#[derive(Clone, Copy, Debug)]
pub struct Flip {
    /// Factor of the width.
    pub width: f32,
}

impl View for Flip {
    fn caption(&self) -> String {
        format!("flip, width x{:.2}", self.width)
    }

    fn place(&self, size: (usize, usize), canvas: Canvas) -> Arc<dyn Placement> {
        Arc::new(if canvas.fixed {
            // unstretched, the canvas maps onto itself and nothing outside is read
            let edge = if self.width == 1.0 { Edge::Nearest } else { Edge::Zero };
            Affine::about_centre(size, [1.0, -1.0 / f64::from(self.width)]).outside(edge)
        } else {
            let to = (size.0, canvas.side(size.1, self.width));
            let scale = [size.0 as f64 / to.0 as f64, -(size.1 as f64 / to.1 as f64)];
            Affine::scaled(size, to, scale, [0.0, size.1 as f64])
        })
    }
}
