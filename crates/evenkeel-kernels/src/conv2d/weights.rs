//! The frozen weights of one convolution, and the packed forms the kernels read.
//!
//! Weights arrive as `[out_c][in_c / groups][kh][kw]`. Each kernel's form is packed from them the first time a direction needs
//! it and kept; no form depends on an image's size, so one packing serves every shape.

use std::sync::OnceLock;

use super::Direction;
use super::grouped::Spread;
use super::winograd::{self, Tile};
use crate::depthwise;
use crate::gemm::tile::{Line, PANEL};

/// The weights of one convolution, frozen.
#[derive(Debug)]
pub struct Weights {
    values: Vec<f32>, // [out_c][in_c / groups][kh][kw]
    out_c: usize,
    in_c: usize,
    kernel: [usize; 2],
    groups: usize,
    stem: (OnceLock<Panels>, OnceLock<Vec<f32>>), // forward, pullback
    panels: [OnceLock<Panels>; 2],                // forward, pullback
    spread: [OnceLock<Spread>; 2],                // forward, pullback
    depthwise: OnceLock<depthwise::Packed>,       // serves both directions
    winograd: [[OnceLock<winograd::Packed>; 2]; 2], // F2, F4; forward, pullback
}

impl Weights {
    /// Takes `values` laid out as `[out_c][in_c / groups][kernel[0]][kernel[1]]`.
    ///
    /// # Panics
    /// If `groups` does not divide both channel counts, or the number of values is not theirs.
    pub fn new(values: Vec<f32>, out_c: usize, in_c: usize, kernel: [usize; 2], groups: usize) -> Weights {
        assert!(
            groups > 0 && out_c.is_multiple_of(groups) && in_c.is_multiple_of(groups),
            "{groups} groups do not divide {out_c} and {in_c} channels"
        );
        assert!(kernel[0] > 0 && kernel[1] > 0, "an empty kernel");
        assert_eq!(values.len(), out_c * (in_c / groups) * kernel[0] * kernel[1], "number of weights");
        Weights {
            values,
            out_c,
            in_c,
            kernel,
            groups,
            stem: Default::default(),
            panels: Default::default(),
            spread: Default::default(),
            depthwise: OnceLock::new(),
            winograd: Default::default(),
        }
    }

    /// The values as given: `[out_c][in_c / groups][kh][kw]`.
    pub fn values(&self) -> &[f32] {
        &self.values
    }

    /// Output channels, all groups together.
    pub fn out_c(&self) -> usize {
        self.out_c
    }

    /// Input channels, all groups together.
    pub fn in_c(&self) -> usize {
        self.in_c
    }

    /// Kernel height and width.
    pub fn kernel(&self) -> [usize; 2] {
        self.kernel
    }

    /// Groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Bytes of this copy of the weights and of the forms packed so far.
    pub fn packed_bytes(&self) -> usize {
        let panels = self.panels.iter().filter_map(OnceLock::get).map(|p| size_of_val(&*p.lines));
        let winograd = self.winograd.iter().flatten().filter_map(OnceLock::get).map(winograd::Packed::bytes);
        let depthwise = self.depthwise.get().map_or(0, |_| size_of_val(&*self.values));
        size_of_val(&*self.values) + panels.sum::<usize>() + winograd.sum::<usize>() + depthwise
    }

    /// The panels of the direct kernel. Forwards a panel's lanes are output channels and its steps input channels; in the
    /// pullback the other way round.
    pub(crate) fn panels(&self, direction: Direction) -> &Panels {
        let taps = self.kernel[0] * self.kernel[1];
        let (outs, ins) = (self.out_c / self.groups, self.in_c / self.groups);
        self.panels[direction as usize].get_or_init(|| match direction {
            Direction::Forward => Panels::pack(self.groups, outs, ins, taps, |g, lane, step, tap| {
                self.values[((g * outs + lane) * ins + step) * taps + tap]
            }),
            Direction::Pullback => Panels::pack(self.groups, ins, outs, taps, |g, lane, step, tap| {
                self.values[((g * outs + step) * ins + lane) * taps + tap]
            }),
        })
    }

    /// The form of the kernel for small groups.
    pub(crate) fn spread(&self, direction: Direction) -> &Spread {
        let taps = self.kernel[0] * self.kernel[1];
        let (outs, ins) = (self.out_c / self.groups, self.in_c / self.groups);
        self.spread[direction as usize].get_or_init(|| match direction {
            Direction::Forward => Spread::new([self.groups, outs, ins, taps], |channel, step, tap| {
                self.values[(channel * ins + step) * taps + tap]
            }),
            Direction::Pullback => Spread::new([self.groups, ins, outs, taps], |channel, step, tap| {
                self.values[((channel / ins * outs + step) * ins + channel % ins) * taps + tap]
            }),
        })
    }

    /// The panels of the stem: one step for each input channel and tap, in the order of the values.
    pub(crate) fn stem_panels(&self) -> &Panels {
        let steps = self.in_c * self.kernel[0] * self.kernel[1];
        self.stem.0.get_or_init(|| {
            Panels::pack(1, self.out_c, steps, 1, |_, lane, step, _| self.values[lane * steps + step])
        })
    }

    /// The weights of the stem's pullback: `[out_c][tap][in_c]`.
    pub(crate) fn stem_taps(&self) -> &[f32] {
        let taps = self.kernel[0] * self.kernel[1];
        self.stem.1.get_or_init(|| {
            let place = |i: usize| (i / (taps * self.in_c), i / self.in_c % taps, i % self.in_c);
            let value = |(o, tap, c): (usize, usize, usize)| self.values[(o * self.in_c + c) * taps + tap];
            (0..self.values.len()).map(|i| value(place(i))).collect()
        })
    }

    /// The form of the depthwise kernel.
    pub(crate) fn depthwise(&self) -> &depthwise::Packed {
        self.depthwise.get_or_init(|| depthwise::Packed::new(&self.values, self.out_c, self.kernel))
    }

    /// The form of the Winograd kernel.
    pub(crate) fn winograd(&self, tile: Tile, direction: Direction) -> &winograd::Packed {
        self.winograd[tile as usize][direction as usize]
            .get_or_init(|| winograd::Packed::new(tile, &self.values, self.out_c, self.in_c, direction))
    }
}

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
    lines: Vec<Line>,
}

impl Panels {
    fn pack(
        groups: usize,
        lanes: usize,
        steps: usize,
        taps: usize,
        weight: impl Fn(usize, usize, usize, usize) -> f32,
    ) -> Panels {
        let panels = lanes.div_ceil(PANEL);
        let mut lines = Vec::with_capacity(groups * panels * taps * steps);
        for g in 0..groups {
            for panel in 0..panels {
                let here = PANEL.min(lanes - panel * PANEL);
                for tap in 0..taps {
                    for step in 0..steps {
                        let mut line = Line::default();
                        for (lane, value) in line.0[..here].iter_mut().enumerate() {
                            *value = weight(g, panel * PANEL + lane, step, tap);
                        }
                        lines.push(line);
                    }
                }
            }
        }
        let finite = lines.iter().all(|line| line.0.iter().all(|weight| weight.is_finite()));
        Panels { groups, lanes, steps, taps, zeros: vec![0.0; groups * steps], finite, lines }
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
