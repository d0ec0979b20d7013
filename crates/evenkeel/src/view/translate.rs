//! `translate`: moved by whole pixels, up to a share of each side; zeros where nothing was.

use std::sync::Arc;

use super::key::{Bounds, Form, Key};
use super::{Affine, Canvas, Edge, Placement, View, ViewKind};

const MOST: Key = Key {
    name: "most",
    help: "the most it moves either way, as a share of each side",
    form: Form::Number(Bounds::closed(0.0, 1.0)),
    default: None,
};

pub(super) const KIND: ViewKind = ViewKind {
    name: "translate",
    about: "moved by up to a share of each side, zeros outside",
    keys: &[MOST],
    draw: |rule, random| {
        let most = rule.number(&MOST);
        Arc::new(Translate { down: random.uniform(-most, most), right: random.uniform(-most, most) })
    },
};

/// Moved, zeros where nothing was; in shares of the image's sides.
#[derive(Clone, Copy, Debug)]
pub struct Translate {
    /// Downwards.
    pub down: f32,
    /// To the right.
    pub right: f32,
}

impl View for Translate {
    fn caption(&self) -> String {
        format!("translate {:.0} % down and {:.0} % right", 100.0 * self.down, 100.0 * self.right)
    }

    fn place(&self, size: (usize, usize), _: Canvas) -> Arc<dyn Placement> {
        let whole = |side: usize, share: f32| -(side as f64 * f64::from(share)).trunc();
        let offset = [whole(size.0, self.down), whole(size.1, self.right)];
        Arc::new(Affine::scaled(size, size, [1.0, 1.0], offset).outside(Edge::Zero))
    }
}
