//! `crop`: a window of a drawn share of each side, anywhere; enlarged to the canvas where that must keep its size.

use std::sync::Arc;

use super::key::{Bounds, Form, Key};
use super::{Affine, Canvas, Edge, Placement, View, ViewKind};
use crate::random::Random;

const SHARE: Key = Key {
    name: "share",
    help: "range of the window's share of each side",
    form: Form::Range(Bounds::SHARE),
    default: None,
};

pub(super) const KIND: ViewKind = ViewKind {
    name: "crop",
    about: "a window anywhere in the image",
    keys: &[SHARE],
    draw: |rule, random| Arc::new(Crop::draw(rule.range(&SHARE), random)),
};

/// A window, in shares of the image's sides.
#[derive(Clone, Copy, Debug)]
pub struct Crop {
    /// Distance from the top.
    pub top: f32,
    /// Distance from the left.
    pub left: f32,
    /// Height of the window.
    pub height: f32,
    /// Width of the window.
    pub width: f32,
}

impl Crop {
    pub(super) fn draw([low, high]: [f32; 2], random: &mut Random) -> Self {
        let share = random.uniform(low, high);
        let (top, left) = (random.unit() * (1.0 - share), random.unit() * (1.0 - share));
        Self { top, left, height: share, width: share }
    }
}

impl View for Crop {
    fn caption(&self) -> String {
        let [top, left, height, width] = [self.top, self.left, self.height, self.width].map(|v| 100.0 * v);
        format!("crop of {height:.0} % by {width:.0} %, {top:.0} % down and {left:.0} % right")
    }

    fn place(&self, size: (usize, usize), canvas: Canvas) -> Arc<dyn Placement> {
        Arc::new(if canvas.fixed {
            let scale = [f64::from(self.height), f64::from(self.width)];
            let offset = [size.0 as f64 * f64::from(self.top), size.1 as f64 * f64::from(self.left)];
            Affine::scaled(size, size, scale, offset).outside(Edge::Zero)
        } else {
            let kept = |side: usize, share: f32| canvas.side(side, share).min(side);
            let to = (kept(size.0, self.height), kept(size.1, self.width));
            let start = |at: f32, side: usize, kept: usize| {
                ((side as f64 * f64::from(at)) as usize).min(side - kept) as f64
            };
            let offset = [start(self.top, size.0, to.0), start(self.left, size.1, to.1)];
            Affine::scaled(size, to, [1.0, 1.0], offset)
        })
    }
}
