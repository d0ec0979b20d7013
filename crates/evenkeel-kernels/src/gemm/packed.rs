//! A right side in panels of sixteen columns, `[panel][k]` lines, zeros past the last column.

use super::Operand;
use super::tile::{Line, PANEL};

/// The right side of a product, packed once for many.
#[derive(Clone, Debug)]
pub struct Packed {
    k: usize,
    n: usize,
    lines: Vec<Line>,
}

impl Packed {
    /// Packs the first matrix of `b`, `k` rows by `n` columns.
    ///
    /// # Panics
    /// If `b` is too short.
    pub fn new(k: usize, n: usize, b: Operand<'_>) -> Packed {
        b.check(1, k, n, "the right side");
        let mut lines = Vec::with_capacity(n.div_ceil(PANEL) * k);
        for panel in 0..n.div_ceil(PANEL) {
            pack_panel(k, n, b, 0, panel, &mut lines);
        }
        Packed { k, n, lines }
    }

    /// Rows.
    pub fn k(&self) -> usize {
        self.k
    }

    /// Columns.
    pub fn n(&self) -> usize {
        self.n
    }

    /// The lines of one panel.
    pub(super) fn panel(&self, panel: usize) -> &[Line] {
        &self.lines[panel * self.k..(panel + 1) * self.k]
    }
}

/// Adds panel `panel` of the matrix that starts at element `start` of `b`, of `k` rows and `n` columns, to `lines`.
pub(super) fn pack_panel(
    k: usize,
    n: usize,
    b: Operand<'_>,
    start: usize,
    panel: usize,
    lines: &mut Vec<Line>,
) {
    let columns = PANEL.min(n - panel * PANEL);
    let start = start + panel * PANEL * b.column_stride;
    if b.column_stride == 1 {
        for i in 0..k {
            let mut line = Line::default();
            let from = start + i * b.row_stride;
            line.0[..columns].copy_from_slice(&b.values[from..from + columns]);
            lines.push(line);
        }
        return;
    }
    // Columns far apart: each is read in one go, so that a cache line fetched serves more than one of its elements.
    let first = lines.len();
    lines.resize(first + k, Line::default());
    for column in 0..columns {
        let from = start + column * b.column_stride;
        for (i, line) in lines[first..].iter_mut().enumerate() {
            line.0[column] = b.values[from + i * b.row_stride];
        }
    }
}
