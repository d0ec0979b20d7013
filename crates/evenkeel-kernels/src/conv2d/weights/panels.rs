//! The form of the direct kernel: lines of sixteen lanes.

use super::source::Source;
use crate::buffer::{Buffer, Pool};
use crate::conv2d::Direction;
use crate::disjoint::Disjoint;
use crate::gemm::tile::{Line, PANEL};
use crate::parallel;

/// Weights as `[group][panel][tap][step]` lines of sixteen lanes; lanes past the last channel are zero.
#[derive(Debug)]
pub(crate) struct Panels {
    /// Groups.
    pub(crate) groups: usize,
    /// Channels made by one group.
    pub(crate) lanes: usize,
    /// Channels read by one group.
    pub(crate) steps: usize,
    /// Taps of the kernel, row by row.
    pub(crate) taps: usize,
    /// As many zeros as one pixel of the map read has channels, for taps that fall outside it.
    pub(crate) zeros: Vec<f32>,
    /// Whether every weight is finite.
    pub(crate) finite: bool,
    lines: Buffer<Line>,
}

/// The sizes of weights `[groups][outs][ins][taps]`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sizes {
    pub groups: usize,
    pub outs: usize,
    pub ins: usize,
    pub taps: usize,
}

impl Sizes {
    fn turned(self, direction: Direction) -> [usize; 2] {
        match direction {
            Direction::Forward => [self.outs, self.ins],
            Direction::Pullback => [self.ins, self.outs],
        }
    }

    /// Bytes of the panels.
    pub(super) fn bytes(self, direction: Direction) -> usize {
        let [lanes, steps] = self.turned(direction);
        self.groups * lanes.next_multiple_of(PANEL) * self.taps * steps * size_of::<f32>()
    }
}

/// Weights staged at a time while packing, for each of sixteen lanes.
const STAGE: usize = 256;

impl Panels {
    /// Forwards a panel's lanes are output channels and its steps input channels; in the pullback the other way round.
    pub(super) fn pack(source: &Source, sizes: Sizes, direction: Direction, pool: &Pool) -> Panels {
        let Sizes { groups, taps, .. } = sizes;
        let [lanes, steps] = sizes.turned(direction);
        let (per_group, len) = (lanes.div_ceil(PANEL), taps * steps);
        let mut lines: Buffer<Line> =
            pool.take(groups * per_group * len).expect("memory for the packed weights");
        let parts = Disjoint::new(&mut lines);
        parallel::each(groups * per_group, |i| {
            // SAFETY: panels do not overlap.
            let lines = unsafe { parts.part(i * len..(i + 1) * len) };
            let (group, first) = (i / per_group, i % per_group * PANEL);
            let here = PANEL.min(lanes - first);
            match direction {
                Direction::Forward => forward_panel(source, sizes, (group, first, here), lines),
                Direction::Pullback => pullback_panel(source, sizes, (group, first, here), lines),
            }
        });
        let finite = lines.iter().all(|line| line.0.iter().all(|weight| weight.is_finite()));
        Panels { groups, lanes, steps, taps, zeros: vec![0.0; groups * steps], finite, lines }
    }

    /// The size of the lines.
    pub(super) fn bytes(&self) -> usize {
        size_of_val(&*self.lines)
    }

    /// Panels of one group.
    pub(crate) fn per_group(&self) -> usize {
        self.lanes.div_ceil(PANEL)
    }

    /// The lines of panel `panel` of group `group`: `[tap][step]`.
    pub(crate) fn panel(&self, group: usize, panel: usize) -> &[Line] {
        let len = self.taps * self.steps;
        let first = (group * self.per_group() + panel) * len;
        &self.lines[first..first + len]
    }
}

/// Output channels as lanes: the rows of sixteen of them, turned.
fn forward_panel(
    source: &Source,
    sizes: Sizes,
    (group, first, here): (usize, usize, usize),
    lines: &mut [Line],
) {
    let Sizes { groups, outs, ins, taps } = sizes;
    let whole = (STAGE / taps).max(1); // steps staged at a time
    let mut stage = vec![0.0; PANEL * whole * taps];
    for step in (0..ins).step_by(whole) {
        let some = whole.min(ins - step);
        for lane in 0..here {
            let row = &mut stage[lane * whole * taps..][..some * taps];
            source.copy(groups * outs, group * outs + first + lane, step * taps, row);
        }
        for tap in 0..taps {
            for k in 0..some {
                let mut line = Line::default();
                for (lane, value) in line.0[..here].iter_mut().enumerate() {
                    *value = stage[lane * whole * taps + k * taps + tap];
                }
                lines[tap * ins + step + k] = line;
            }
        }
    }
}

/// Input channels as lanes: runs of each output channel's row.
fn pullback_panel(
    source: &Source,
    sizes: Sizes,
    (group, first, here): (usize, usize, usize),
    lines: &mut [Line],
) {
    let Sizes { groups, outs, taps, .. } = sizes;
    let mut stage = vec![0.0; here * taps];
    for step in 0..outs {
        source.copy(groups * outs, group * outs + step, first * taps, &mut stage);
        for tap in 0..taps {
            let mut line = Line::default();
            for (lane, value) in line.0[..here].iter_mut().enumerate() {
                *value = stage[lane * taps + tap];
            }
            lines[tap * outs + step] = line;
        }
    }
}
