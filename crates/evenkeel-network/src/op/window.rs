//! Kernel, strides, dilations and padding as ONNX writes them, brought to two dimensions.
//!
//! A one-dimensional signal `[n, c, l]` is an image of height 1.

use super::Definition;
use crate::error::Fault;

/// No kernel, stride, dilation or padding may be larger: it keeps every product of a few of them far from overflow.
const LARGEST: i64 = 1 << 20;

/// How padding is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AutoPad {
    /// As given.
    Given,
    /// So that the output is the input divided by the stride, rounded up; the odd row at the end.
    SameUpper,
    /// The same, the odd row at the start.
    SameLower,
    /// None.
    Valid,
}

/// The window attributes of a node, for one or two spatial dimensions.
#[derive(Clone, Debug)]
pub struct Window {
    /// `kernel_shape`, if given.
    pub kernel: Option<Vec<usize>>,
    pub(super) strides: Option<Vec<usize>>,
    pub(super) dilations: Option<Vec<usize>>,
    pub(super) pads: Option<Vec<usize>>,
    /// How padding is found.
    pub auto_pad: AutoPad,
}

/// A window brought to two dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window2d {
    /// Kernel height and width.
    pub kernel: [usize; 2],
    /// Strides.
    pub stride: [usize; 2],
    /// Dilations.
    pub dilation: [usize; 2],
    /// Top, left, bottom, right.
    pub pads: [usize; 4],
}

impl Window {
    /// Reads the attributes.
    ///
    /// # Errors
    /// If one has a wrong type or a value outside its range.
    pub fn of(definition: &Definition<'_>) -> Result<Window, Fault> {
        let sizes = |name: &str, low: i64| -> Result<Option<Vec<usize>>, Fault> {
            let Some(values) = definition.attributes.ints(name)? else { return Ok(None) };
            if let Some(bad) = values.iter().find(|&&v| !(low..=LARGEST).contains(&v)) {
                return Err(Fault::Attribute {
                    name: name.into(),
                    problem: format!("{bad} is out of range"),
                });
            }
            Ok(Some(values.into_iter().map(|v| v as usize).collect()))
        };
        let auto_pad = match definition.attributes.text("auto_pad")?.as_deref() {
            None | Some("NOTSET" | "") => AutoPad::Given,
            Some("SAME_UPPER") => AutoPad::SameUpper,
            Some("SAME_LOWER") => AutoPad::SameLower,
            Some("VALID") => AutoPad::Valid,
            Some(other) => {
                return Err(Fault::Attribute {
                    name: "auto_pad".into(),
                    problem: format!("{other:?} is unknown"),
                });
            }
        };
        Ok(Window {
            kernel: sizes("kernel_shape", 1)?,
            strides: sizes("strides", 1)?,
            dilations: sizes("dilations", 1)?,
            pads: sizes("pads", 0)?,
            auto_pad,
        })
    }

    /// The window for a kernel and an input with these spatial extents (one or two of them).
    ///
    /// # Errors
    /// If the number of dimensions disagrees or a size is out of range.
    pub fn resolve(&self, kernel: &[usize], spatial: &[usize]) -> Result<Window2d, Fault> {
        let dims = spatial.len();
        if !(1..=2).contains(&dims) {
            return Err(Fault::Unsupported(format!("a window over {dims} dimensions")));
        }
        let wrong = |name: &str, got: usize| Fault::Attribute {
            name: name.into(),
            problem: format!("has {got} values for {dims} dimensions"),
        };
        let pair = |values: &Option<Vec<usize>>, name: &str| -> Result<[usize; 2], Fault> {
            match values.as_deref() {
                None => Ok([1, 1]),
                Some(&[w]) if dims == 1 => Ok([1, w]),
                Some(&[h, w]) if dims == 2 => Ok([h, w]),
                Some(other) => Err(wrong(name, other.len())),
            }
        };
        if kernel.iter().any(|&k| k == 0 || k > LARGEST as usize) {
            return Err(Fault::Attribute {
                name: "kernel_shape".into(),
                problem: format!("{kernel:?} is out of range"),
            });
        }
        let kernel = pair(&Some(kernel.to_vec()), "kernel_shape")?;
        let (stride, dilation) = (pair(&self.strides, "strides")?, pair(&self.dilations, "dilations")?);
        let size = if dims == 1 { [1, spatial[0]] } else { [spatial[0], spatial[1]] };
        let pads = match (self.auto_pad, self.pads.as_deref()) {
            (AutoPad::Given, None) | (AutoPad::Valid, _) => [0; 4],
            (AutoPad::Given, Some(&[left, right])) if dims == 1 => [0, left, 0, right],
            (AutoPad::Given, Some(&[top, left, bottom, right])) if dims == 2 => [top, left, bottom, right],
            (AutoPad::Given, Some(other)) => return Err(wrong("pads", other.len())),
            (same, _) => {
                let [top, bottom] = same_pads(same, size[0], kernel[0], stride[0], dilation[0]);
                let [left, right] = same_pads(same, size[1], kernel[1], stride[1], dilation[1]);
                [top, left, bottom, right]
            }
        };
        Ok(Window2d { kernel, stride, dilation, pads })
    }
}

pub(super) fn same_pads(
    same: AutoPad,
    size: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
) -> [usize; 2] {
    let reach = dilation * (kernel - 1) + 1;
    let total = ((size.div_ceil(stride).max(1) - 1) * stride + reach).saturating_sub(size);
    let half = total / 2;
    if same == AutoPad::SameLower { [total - half, half] } else { [half, total - half] }
}
