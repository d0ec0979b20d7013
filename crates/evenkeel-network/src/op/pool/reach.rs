//! Which inputs each window of a pooling reaches, along any number of axes.
//!
//! Cell `t` of output `o` is the input at `stride*o + dilation*t - before`. With rounding up, a last window that would start in the
//! padding after the input is dropped.

use super::super::window::{AutoPad, Window, same_pads};
use crate::error::Fault;

/// Cells that the lists of one axis may have.
const MOST_CELLS: usize = 1 << 24;

/// One axis of a pooling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Axis {
    pub(super) input: usize,
    pub(super) output: usize,
    pub(super) kernel: usize,
    pub(super) stride: usize,
    pub(super) dilation: usize,
    pub(super) before: usize,
    pub(super) after: usize,
}

impl Axis {
    /// The input indices that output `o` reaches.
    fn inputs(&self, o: usize) -> impl Iterator<Item = usize> + use<> {
        let Axis { input, kernel, dilation, before, .. } = *self;
        let start = o * self.stride;
        let first = before.saturating_sub(start).div_ceil(dilation);
        let end = (input + before).saturating_sub(start).div_ceil(dilation).min(kernel);
        (first..end.max(first)).map(move |t| start + t * dilation - before)
    }

    /// Cells of output `o` that lie inside the padded input.
    fn padded(&self, o: usize) -> usize {
        let whole = self.before + self.input + self.after;
        whole.saturating_sub(o * self.stride).div_ceil(self.dilation).min(self.kernel)
    }
}

/// The axes of a pooling over an input with these spatial extents.
pub(super) fn axes(window: &Window, ceil: bool, spatial: &[usize]) -> Result<Vec<Axis>, Fault> {
    let dims = spatial.len();
    let values = |given: &Option<Vec<usize>>, name: &str, count: usize, default: usize| match given {
        None => Ok(vec![default; count]),
        Some(values) if values.len() == count => Ok(values.clone()),
        Some(values) => {
            let problem = format!("has {} values for {dims} dimensions", values.len());
            Err(Fault::Attribute { name: name.into(), problem })
        }
    };
    if window.kernel.is_none() {
        return Err(Fault::Attribute { name: "kernel_shape".into(), problem: "is missing".into() });
    }
    let kernel = values(&window.kernel, "kernel_shape", dims, 1)?;
    let stride = values(&window.strides, "strides", dims, 1)?;
    let dilation = values(&window.dilations, "dilations", dims, 1)?;
    let given = window.pads.clone().filter(|_| window.auto_pad == AutoPad::Given);
    let pads = values(&given, "pads", 2 * dims, 0)?;
    let same = matches!(window.auto_pad, AutoPad::SameUpper | AutoPad::SameLower);
    let axis = |i: usize| {
        let [before, after] = if same {
            same_pads(window.auto_pad, spatial[i], kernel[i], stride[i], dilation[i])
        } else {
            [pads[i], pads[i + dims]]
        };
        let (input, reach) = (spatial[i], dilation[i] * (kernel[i] - 1) + 1);
        let Some(room) = (input + before + after).checked_sub(reach) else {
            return Err(Fault::Value(format!(
                "a window of {reach} does not fit {input} padded to {}",
                input + before + after
            )));
        };
        let output = if ceil && !same {
            let output = room.div_ceil(stride[i]) + 1;
            if (output - 1) * stride[i] >= input + before { output - 1 } else { output }
        } else {
            room / stride[i] + 1
        };
        let cells = output.saturating_mul(kernel[i]);
        if cells > MOST_CELLS {
            let (asked, limit) = (i64::try_from(cells).unwrap_or(i64::MAX), MOST_CELLS as i64);
            return Err(Fault::Work { what: "cells of windows", asked, limit });
        }
        let (kernel, stride, dilation) = (kernel[i], stride[i], dilation[i]);
        Ok(Axis { input, output, kernel, stride, dilation, before, after })
    };
    (0..dims).map(axis).collect()
}

/// Runs `visit(output, cells, counted)` for every output of one plane: the inputs its window reaches, in order, and how many cells
/// it counts, those in the padding included.
pub(super) fn each_window(axes: &[Axis], mut visit: impl FnMut(usize, &[usize], usize)) {
    let outputs: usize = axes.iter().map(|axis| axis.output).product();
    let (mut cells, mut next) = (Vec::new(), Vec::new());
    for output in 0..outputs {
        let (mut rest, mut at) = (output, vec![0; axes.len()]);
        for (i, axis) in axes.iter().enumerate().rev() {
            at[i] = rest % axis.output;
            rest /= axis.output;
        }
        cells.clear();
        cells.push(0);
        for (axis, &o) in axes.iter().zip(&at) {
            next.clear();
            for &cell in &cells {
                next.extend(axis.inputs(o).map(|i| cell * axis.input + i));
            }
            std::mem::swap(&mut cells, &mut next);
        }
        visit(output, &cells, axes.iter().zip(&at).map(|(axis, &o)| axis.padded(o)).product());
    }
}
