//! Two maps, one a side, on whole images in either layout: columns then rows or rows then columns, whichever leaves less in
//! between.

use super::AxisMap;
use crate::layout::stride;

/// A separable map of images: one [`AxisMap`] down, one across.
#[derive(Clone, Debug, PartialEq)]
pub struct Separable {
    /// Along the height.
    pub rows: AxisMap,
    /// Along the width.
    pub columns: AxisMap,
}

impl Separable {
    /// The transposed map: the pullback.
    pub fn transposed(&self) -> Separable {
        Separable { rows: self.rows.transposed(), columns: self.columns.transposed() }
    }

    /// Whether to go down first.
    fn rows_first(&self) -> bool {
        let (down, across) = (&self.rows, &self.columns);
        down.output() * across.input() < down.input() * across.output()
    }

    /// Maps `planes` planar images `[h][w]`.
    ///
    /// # Panics
    /// If a slice's length does not fit.
    pub fn apply_planar(&self, planes: usize, from: &[f32], into: &mut [f32]) {
        let (down, across) = (&self.rows, &self.columns);
        if self.rows_first() {
            let mut between = vec![0.0; planes * down.output() * across.input()];
            down.apply(planes, across.input(), from, &mut between);
            across.apply(planes * down.output(), 1, &between, into);
        } else {
            let mut between = vec![0.0; planes * down.input() * across.output()];
            across.apply(planes * down.input(), 1, from, &mut between);
            down.apply(planes, across.output(), &between, into);
        }
    }

    /// Maps `batch` channels-last images.
    ///
    /// # Panics
    /// If a slice's length does not fit.
    pub fn apply_channels_last(&self, batch: usize, channels: usize, from: &[f32], into: &mut [f32]) {
        let (down, across, step) = (&self.rows, &self.columns, stride(channels));
        if self.rows_first() {
            let mut between = vec![0.0; batch * down.output() * across.input() * step];
            down.apply(batch, across.input() * step, from, &mut between);
            across.apply(batch * down.output(), step, &between, into);
        } else {
            let mut between = vec![0.0; batch * down.input() * across.output() * step];
            across.apply(batch * down.input(), step, from, &mut between);
            down.apply(batch, across.output() * step, &between, into);
        }
    }
}
