//! How a row of target pixels falls apart into runs that share one list of taps.
//!
//! Along a row, targets `first, first + advance, ...` read sources that move on by `source_advance` from one to the next. Forwards the
//! interior is one run and each border pixel its own; in a strided pullback every phase of the stride is a run. One kernel over
//! runs therefore serves every stride, dilation and padding in both directions.

use crate::taps::{Axis, Taps};

/// Targets along a row that gather through the same taps from sources a constant step apart.
#[derive(Clone, Debug)]
pub(super) struct Run {
    /// The first target's column.
    pub(super) first: usize,
    /// Targets in the run.
    pub(super) count: usize,
    /// Columns from one target to the next.
    pub(super) advance: usize,
    /// Columns from one target's source to the next's.
    pub(super) source_advance: usize,
    /// `(source column of the first target, tap)`, ascending in the tap or the source as [`Taps`] lists them.
    pub(super) taps: Vec<(u32, u32)>,
}

/// A row whose targets move on with their sources: target `x` gathers the sources `x + lead ..`, one for each tap, of which those
/// outside the row are zeros.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Across {
    /// From a target's column to its first source's.
    pub(super) lead: isize,
    /// The taps, by ascending source.
    pub(super) taps: Vec<usize>,
}

/// The whole row of a window that moves by one and has no gaps, forwards.
pub(super) fn across_forward(axis: Axis) -> Option<Across> {
    dense(axis).then(|| Across { lead: -(axis.pad as isize), taps: (0..axis.kernel).collect() })
}

/// The same of the pullback.
pub(super) fn across_pullback(axis: Axis) -> Option<Across> {
    let lead = axis.pad as isize - axis.kernel as isize + 1;
    dense(axis).then(|| Across { lead, taps: (0..axis.kernel).rev().collect() })
}

fn dense(axis: Axis) -> bool {
    axis.stride == 1 && axis.dilation == 1
}

/// The runs of a row, forwards.
pub(super) fn forward(axis: Axis) -> Vec<Run> {
    split(&Taps::forward(axis), axis.output, 1, axis.stride)
}

/// The runs of a row of the pullback: input columns that agree modulo the stride.
pub(super) fn pullback(axis: Axis) -> Vec<Run> {
    split(&Taps::pullback(axis), axis.input, axis.stride, 1)
}

fn split(taps: &Taps, targets: usize, advance: usize, source_advance: usize) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for phase in 0..advance.min(targets) {
        let begin = runs.len();
        for target in (phase..targets).step_by(advance) {
            let list = taps.of(target);
            let continues = |run: &Run| {
                let moved = (run.count * source_advance) as u32;
                run.taps.len() == list.len()
                    && run.taps.iter().zip(list).all(|(a, b)| (a.0 + moved, a.1) == *b)
            };
            match runs[begin..].last_mut() {
                Some(run) if continues(run) => run.count += 1,
                _ => {
                    runs.push(Run { first: target, count: 1, advance, source_advance, taps: list.to_vec() });
                }
            }
        }
    }
    runs
}
