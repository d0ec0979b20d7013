//! `rescale` and `random-resize-pad`: the network is shown the image at another size, or smaller at a random place, and its answer is undone.
//!
//! Both are views, so apply, undo and their pullbacks are exact.

use std::sync::Arc;

use super::Transform;
use crate::random::Random;
use crate::view::{Affine, Canvas, DrawnView, Edge, Placement, Resize, View};

/// Shrunk or enlarged, on a canvas that the network accepts.
#[derive(Clone, Copy, Debug)]
pub(in crate::defence) struct Rescale {
    /// Factor of both sides.
    pub(in crate::defence) scale: f64,
    pub(in crate::defence) canvas: Canvas,
}

impl Transform for Rescale {
    fn view(&self, _: &Random) -> Option<DrawnView> {
        let scale = self.scale as f32;
        Some(DrawnView::new(Arc::new(Resize { height: scale, width: scale }), self.canvas))
    }
}

/// Shrunk by a random factor and put at a random place of a canvas of the image's size, zeros around it.
#[derive(Clone, Copy, Debug)]
pub(in crate::defence) struct RandomResizePad {
    /// The smallest factor.
    pub(in crate::defence) least: f64,
}

impl Transform for RandomResizePad {
    fn is_random(&self) -> bool {
        true
    }

    fn view(&self, random: &Random) -> Option<DrawnView> {
        let mut random = random.clone();
        let scale = random.uniform(self.least as f32, 1.0);
        Some(DrawnView::of(Padded { scale, down: random.unit(), right: random.unit() }))
    }
}

/// A smaller image on a canvas of the image's size.
#[derive(Clone, Copy, Debug)]
struct Padded {
    scale: f32,
    /// Which share of the free rows lies above it.
    down: f32,
    /// Which share of the free columns lies to its left.
    right: f32,
}

impl View for Padded {
    fn caption(&self) -> String {
        format!("resize x{:.2}, padded", self.scale)
    }

    fn place(&self, size: (usize, usize), _: Canvas) -> Arc<dyn Placement> {
        let scale = f64::from(self.scale);
        let offset = |side: usize, share: f32| {
            let free = side as f64 * (1.0 - scale);
            -(free * f64::from(share)).floor() / scale
        };
        let offsets = [offset(size.0, self.down), offset(size.1, self.right)];
        Arc::new(Affine::scaled(size, size, [1.0 / scale; 2], offsets).outside(Edge::Zero))
    }
}
