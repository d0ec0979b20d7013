//! `turn`: turned by whole quarters, without resampling unless the canvas must keep its size and is not square.

use std::sync::Arc;

use super::key::{Form, Key};
use super::rotate::turned;
use super::{Canvas, Placement, View, ViewKind};

const QUARTERS: Key = Key {
    name: "quarters",
    help: "numbers of quarters to choose from",
    form: Form::Choices(3),
    default: None,
};

pub(super) const KIND: ViewKind = ViewKind {
    name: "turn",
    about: "turned by one of these numbers of quarters",
    keys: &[QUARTERS],
    draw: |rule, random| {
        let quarters = rule.choices(&QUARTERS);
        Arc::new(Turn { quarters: quarters[random.below(quarters.len())] })
    },
};

/// Turned by this many quarters.
#[derive(Clone, Copy, Debug)]
pub struct Turn {
    /// 0, 1, 2 or 3.
    pub quarters: u8,
}

impl View for Turn {
    fn caption(&self) -> String {
        format!("turn {}°", 90 * u32::from(self.quarters % 4))
    }

    fn place(&self, size: (usize, usize), canvas: Canvas) -> Arc<dyn Placement> {
        let lies = !canvas.fixed && self.quarters % 2 == 1;
        let to = if lies { (size.1, size.0) } else { size };
        Arc::new(turned(size, to, 90.0 * f64::from(self.quarters % 4), false))
    }
}
