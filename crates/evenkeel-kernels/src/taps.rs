//! Which source indices a sliding window reaches along one axis, and through which tap; and the same read the other way.
//!
//! Forwards, output `o` reads input `stride*o + dilation*t - pad` through tap `t` wherever that lies inside the input; the
//! transpose lists for each input the outputs that read it. Both lists are ascending in the tap or the output, so that a sum over them has one order.

use std::ops::Range;

/// One axis of a sliding window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Axis {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) kernel: usize,
    pub(crate) stride: usize,
    pub(crate) dilation: usize,
    pub(crate) pad: usize,
}

impl Axis {
    /// The input index that `output` reads through `tap`, if it is inside.
    #[inline]
    pub(crate) fn source(&self, output: usize, tap: usize) -> Option<usize> {
        (output * self.stride + tap * self.dilation).checked_sub(self.pad).filter(|&i| i < self.input)
    }
}

/// For every target index, the source indices it gathers from and the taps it does so through.
pub(crate) struct Taps {
    starts: Vec<u32>,
    pairs: Vec<(u32, u32)>, // (source, tap)
}

impl Taps {
    /// Targets are outputs, sources are inputs.
    pub(crate) fn forward(axis: Axis) -> Taps {
        let mut taps = Taps { starts: vec![0], pairs: Vec::new() };
        for output in 0..axis.output {
            for tap in 0..axis.kernel {
                if let Some(input) = axis.source(output, tap) {
                    taps.pairs.push((input as u32, tap as u32));
                }
            }
            taps.starts.push(taps.pairs.len() as u32);
        }
        taps
    }

    /// Targets are inputs, sources are outputs.
    pub(crate) fn pullback(axis: Axis) -> Taps {
        let mut readers = vec![Vec::new(); axis.input];
        for output in 0..axis.output {
            for tap in 0..axis.kernel {
                if let Some(input) = axis.source(output, tap) {
                    readers[input].push((output as u32, tap as u32));
                }
            }
        }
        let mut taps = Taps { starts: vec![0], pairs: Vec::new() };
        for list in readers {
            taps.pairs.extend(list);
            taps.starts.push(taps.pairs.len() as u32);
        }
        taps
    }

    /// The `(source, tap)` pairs of `target`.
    #[inline]
    pub(crate) fn of(&self, target: usize) -> &[(u32, u32)] {
        &self.pairs[self.range(target)]
    }

    #[inline]
    fn range(&self, target: usize) -> Range<usize> {
        self.starts[target] as usize..self.starts[target + 1] as usize
    }
}

/// The reach of a two-dimensional window: what each target pixel gathers.
pub(crate) struct Reach {
    rows: Taps,
    columns: Taps,
    source_width: usize,
    kernel_width: usize,
}

impl Reach {
    /// Targets are outputs.
    pub(crate) fn forward([vertical, horizontal]: [Axis; 2]) -> Reach {
        Reach {
            rows: Taps::forward(vertical),
            columns: Taps::forward(horizontal),
            source_width: horizontal.input,
            kernel_width: horizontal.kernel,
        }
    }

    /// Targets are inputs.
    pub(crate) fn pullback([vertical, horizontal]: [Axis; 2]) -> Reach {
        Reach {
            rows: Taps::pullback(vertical),
            columns: Taps::pullback(horizontal),
            source_width: horizontal.output,
            kernel_width: horizontal.kernel,
        }
    }

    /// Fills `list` with `(source pixel within its image, tap of the whole window)` for one target pixel.
    #[inline]
    pub(crate) fn gather(&self, y: usize, x: usize, list: &mut Vec<(usize, usize)>) {
        list.clear();
        for &(source_y, tap_y) in self.rows.of(y) {
            for &(source_x, tap_x) in self.columns.of(x) {
                list.push((
                    source_y as usize * self.source_width + source_x as usize,
                    tap_y as usize * self.kernel_width + tap_x as usize,
                ));
            }
        }
    }
}
