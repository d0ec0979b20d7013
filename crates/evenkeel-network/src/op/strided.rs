//! Strided reading: what Slice, Transpose, Expand, Tile, DepthToSpace and their kin have in common.
//!
//! Output element `(i0, i1, ...)` is source element `offset + i0*s0 + i1*s1 + ...`. The pullback adds each cotangent to the source
//! element it was read from, in the order of the output, so the sum has one order whatever the threads.

use std::ops::{Add, AddAssign, Div, Mul, Neg, Sub};

use evenkeel_kernels::parallel;

use crate::error::Fault;
use crate::for_type;
use crate::tensor::{Element, Room, Tensor};

/// Elements below which a copy is not worth splitting.
pub(crate) const GRAIN: usize = 1 << 15;

/// A float an operator can compute with.
pub(crate) trait Real:
    Element
    + PartialOrd
    + AddAssign
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    fn of(value: f64) -> Self;
    fn f64(self) -> f64;
}

impl Real for f32 {
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn f64(self) -> f64 {
        self.into()
    }
}

impl Real for f64 {
    fn of(value: f64) -> f64 {
        value
    }
    fn f64(self) -> f64 {
        self
    }
}

/// Runs the same expression on the values of a tensor of floats, whichever; any other type is a fault.
macro_rules! for_real {
    ($tensor:expr, $values:ident => $body:expr) => {
        match $tensor.data() {
            $crate::tensor::Data::F32($values) => $body,
            $crate::tensor::Data::F64($values) => $body,
            _ => {
                let got = $tensor.dtype();
                Err($crate::error::Fault::Type { input: 0, expected: "floats", got })
            }
        }
    };
}
pub(crate) use for_real;

/// Elements from one index to the next along each axis of a plain tensor.
pub(crate) fn row_strides(shape: &[usize]) -> Vec<usize> {
    let mut strides = vec![1usize; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis].saturating_mul(shape[axis]);
    }
    strides
}

/// An axis counted from the front; negative ones count from the back.
///
/// # Errors
/// If it is outside `-rank..rank`.
pub(crate) fn axis_of(axis: i64, rank: usize) -> Result<usize, Fault> {
    let high = rank as i64;
    let from_front = if axis < 0 { axis.checked_add(high) } else { Some(axis) };
    match from_front {
        Some(found) if (0..high).contains(&found) => Ok(found as usize),
        _ => Err(Fault::Range { what: "axis", index: axis, low: -high, high }),
    }
}

/// A way to read a source. See the [module](self). Every index it reaches must be inside the source.
#[derive(Clone, Debug)]
pub(crate) struct Strided {
    shape: Vec<usize>,
    strides: Vec<isize>,
    offset: usize,
}

impl Strided {
    /// Axes of one element are dropped and axes that run on into the next are joined.
    pub(crate) fn new(shape: &[usize], strides: &[isize], offset: usize) -> Strided {
        let mut joined = Strided { shape: Vec::new(), strides: Vec::new(), offset };
        for (&size, &stride) in shape.iter().zip(strides).filter(|&(&size, _)| size != 1) {
            match (joined.shape.last_mut(), joined.strides.last_mut()) {
                (Some(last), Some(step)) if size > 0 && *step == stride.saturating_mul(size as isize) => {
                    *last *= size;
                    *step = stride;
                }
                _ => {
                    joined.shape.push(size);
                    joined.strides.push(stride);
                }
            }
        }
        if joined.shape.is_empty() {
            joined.shape.push(1);
            joined.strides.push(1);
        }
        joined
    }

    /// Calls `run(first output element, first source element)` for each innermost row of `rows`.
    fn each_row(&self, rows: std::ops::Range<usize>, mut run: impl FnMut(usize, usize)) {
        let outer = self.shape.len() - 1;
        let inner = self.shape[outer];
        let mut index = vec![0usize; outer];
        let mut rest = rows.start;
        let mut at = self.offset as isize;
        for axis in (0..outer).rev() {
            index[axis] = rest % self.shape[axis];
            rest /= self.shape[axis];
            at += index[axis] as isize * self.strides[axis];
        }
        for row in rows {
            run(row * inner, at as usize);
            for axis in (0..outer).rev() {
                index[axis] += 1;
                at += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                at -= self.shape[axis] as isize * self.strides[axis];
                index[axis] = 0;
            }
        }
    }

    fn inner(&self) -> (usize, isize) {
        let last = self.shape.len() - 1;
        (self.shape[last], self.strides[last])
    }

    /// Fills `out` from `source`.
    pub(crate) fn copy<T: Element>(&self, source: &[T], out: &mut [T]) {
        let (inner, step) = self.inner();
        if out.is_empty() || inner == 0 {
            return;
        }
        parallel::rows(out, inner, (GRAIN / inner).max(1), |first, part| {
            let rows = part.len() / inner;
            self.each_row(first..first + rows, |to, from| {
                let row = &mut part[to - first * inner..][..inner];
                match step {
                    1 => row.copy_from_slice(&source[from..from + inner]),
                    0 => row.fill(source[from]),
                    _ => {
                        let mut at = from as isize;
                        for value in row {
                            *value = source[at as usize];
                            at += step;
                        }
                    }
                }
            });
        });
    }

    /// Adds each cotangent to the element of `target` it was read from.
    pub(crate) fn add_back<T: Real>(&self, cotangents: &[T], target: &mut [T]) {
        let (inner, step) = self.inner();
        if cotangents.is_empty() || inner == 0 {
            return;
        }
        self.each_row(0..cotangents.len() / inner, |from, to| {
            let row = &cotangents[from..from + inner];
            match step {
                1 => target[to..to + inner].iter_mut().zip(row).for_each(|(t, &g)| *t += g),
                0 => row.iter().for_each(|&g| target[to] += g),
                _ => {
                    let mut at = to as isize;
                    for &g in row {
                        target[at as usize] += g;
                        at += step;
                    }
                }
            }
        });
    }

    /// A plain tensor of `shape`, read from a plain one of any type.
    pub(crate) fn read(&self, source: &Tensor, shape: &[usize], room: &Room) -> Result<Tensor, Fault> {
        for_type!(source.data(), values => room.tensor(shape, |out| self.copy(values, out)))
    }

    /// The pullback of [`Strided::read`]: a plain tensor of the source's `shape`.
    pub(crate) fn pull(&self, cotangent: &Tensor, shape: &[usize], room: &Room) -> Result<Tensor, Fault> {
        for_real!(cotangent, values => room.tensor(shape, |out| {
            out.fill(Default::default());
            self.add_back(values, out);
        }))
    }
}
