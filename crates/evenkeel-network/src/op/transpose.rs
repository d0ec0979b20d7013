//! Transpose, DepthToSpace and SpaceToDepth: the axes in another order, the latter two between two reshapes.
//!
//! The pullback reads the cotangent with the inverse order.

use evenkeel_kernels::layout::LANES;

use super::registry::{Entry, entry};
use super::strided::{Strided, row_strides};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{DType, Layout, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("Transpose", true, transpose),
    entry("DepthToSpace", true, depth_to_space),
    entry("SpaceToDepth", true, space_to_depth),
];

/// Puts the axes in this order; reversed if there is none.
#[derive(Debug)]
pub struct Transpose {
    pub(crate) order: Option<Vec<i64>>,
}

fn transpose(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Transpose { order: definition.attributes.ints("perm")? }))
}

/// `x` with axis `order[i]` as its axis `i`.
fn permuted(x: &Tensor, order: &[usize], room: &Room) -> Result<Tensor, Fault> {
    let strides = row_strides(x.shape());
    let shape: Vec<usize> = order.iter().map(|&axis| x.shape()[axis]).collect();
    let steps: Vec<isize> = order.iter().map(|&axis| strides[axis] as isize).collect();
    Strided::new(&shape, &steps, 0).read(x, &shape, room)
}

fn inverse(order: &[usize]) -> Vec<usize> {
    let mut inverse = vec![0; order.len()];
    for (i, &axis) in order.iter().enumerate() {
        inverse[axis] = i;
    }
    inverse
}

impl Transpose {
    fn order(&self, rank: usize) -> Result<Vec<usize>, Fault> {
        let Some(order) = &self.order else { return Ok((0..rank).rev().collect()) };
        let mut seen = vec![false; rank];
        let valid = order.len() == rank
            && order.iter().all(|&axis| {
                let place = usize::try_from(axis).ok().and_then(|axis| seen.get_mut(axis));
                place.is_some_and(|seen| !std::mem::replace(seen, true))
            });
        if !valid {
            let problem = format!("{order:?} is no order of {rank} axes");
            return Err(Fault::Attribute { name: "perm".into(), problem });
        }
        Ok(order.iter().map(|&axis| axis as usize).collect())
    }
}

/// The same values under the transposed shape, where one side is a channels-last map without padding lanes and the other the plain
/// tensor `[n, h, w, c]` that lies in memory alike.
fn view(x: &Tensor, order: &[usize]) -> Result<Option<Tensor>, Fault> {
    let whole = |channels: usize| channels.is_multiple_of(LANES) && channels > 0;
    Ok(match (x.layout(), x.shape()) {
        (Layout::ChannelsLast, &[_, c, _, _]) if order == [0, 2, 3, 1] && whole(c) => Some(x.storage()),
        (Layout::Plain, &[_, _, _, c]) if order == [0, 3, 1, 2] && whole(c) && x.dtype() == DType::F32 => {
            Some(x.as_map_of(c)?)
        }
        _ => None,
    })
}

/// [`permuted`], or a view where one will do.
fn turned(x: &Tensor, order: &[usize], room: &Room) -> Result<Tensor, Fault> {
    match view(x, order)? {
        Some(view) => Ok(view),
        None => permuted(&x.to_plain(room)?, order, room),
    }
}

impl Operator for Transpose {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.take(0)?;
        let order = self.order(x.rank())?;
        let y = turned(&x, &order, call.room)?;
        drop(x);
        let back_order = inverse(&order);
        Ok(Answer::one(y).with(call.wants(0), move |back| {
            let Some(cotangent) = back.take(0) else { return Ok(()) };
            let grad = turned(&cotangent, &back_order, back.room())?;
            back.give(0, grad)
        }))
    }
}

/// Channels to pixels of a block, or back.
#[derive(Debug)]
struct Blocks {
    size: usize,
    /// The order of the six axes between the reshapes.
    order: [usize; 6],
    to_space: bool,
}

fn block_size(definition: &Definition<'_>) -> Result<usize, Fault> {
    let size = definition.attributes.int("blocksize")?.unwrap_or(0);
    let problem = || format!("{size} is no block size");
    let size = u32::try_from(size).ok().filter(|&size| size > 0);
    size.map(|size| size as usize)
        .ok_or_else(|| Fault::Attribute { name: "blocksize".into(), problem: problem() })
}

fn depth_to_space(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let mode = definition.attributes.text("mode")?.unwrap_or_else(|| "DCR".into());
    let order = match &*mode {
        "DCR" => [0, 3, 4, 1, 5, 2],
        "CRD" => [0, 1, 4, 2, 5, 3],
        _ => return Err(Fault::Attribute { name: "mode".into(), problem: format!("{mode:?} is unknown") }),
    };
    Ok(Box::new(Blocks { size: block_size(definition)?, order, to_space: true }))
}

fn space_to_depth(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let mode = definition.attributes.text("mode")?.unwrap_or_else(|| "DCR".into());
    let order = match &*mode {
        "DCR" => [0, 3, 5, 1, 2, 4],
        "CRD" => [0, 1, 3, 5, 2, 4],
        _ => return Err(Fault::Attribute { name: "mode".into(), problem: format!("{mode:?} is unknown") }),
    };
    Ok(Box::new(Blocks { size: block_size(definition)?, order, to_space: false }))
}

impl Blocks {
    /// The six axes before the permutation, and the shape after it.
    fn shapes(&self, shape: &[usize]) -> Result<([usize; 6], [usize; 4]), Fault> {
        let b = self.size;
        let square = b * b; // a block size has at most 32 bits
        let refused = |expected: String| Fault::Shape { input: 0, expected, got: shape.to_vec() };
        let &[n, c, h, w] = shape else { return Err(refused("rank 4".into())) };
        if self.to_space {
            if !c.is_multiple_of(square) {
                return Err(refused(format!("a multiple of {square} channels")));
            }
            let split =
                if self.order[1] == 3 { [n, b, b, c / square, h, w] } else { [n, c / square, b, b, h, w] };
            Ok((split, [n, c / square, h.saturating_mul(b), w.saturating_mul(b)]))
        } else {
            if !h.is_multiple_of(b) || !w.is_multiple_of(b) {
                return Err(refused(format!("multiples of {b} in height and width")));
            }
            Ok(([n, c, h / b, b, w / b, b], [n, c.saturating_mul(square), h / b, w / b]))
        }
    }
}

impl Operator for Blocks {
    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let (split, shape) = self.shapes(x.shape())?;
        let moved = permuted(&x.reshaped(&split)?, &self.order, call.room)?;
        let (old, between, back_order) = (x.shape().to_vec(), moved.shape().to_vec(), inverse(&self.order));
        Ok(Answer::one(moved.reshaped(&shape)?).with(call.wants(0), move |back| {
            let Some(cotangent) = back.take(0) else { return Ok(()) };
            let grad = permuted(&cotangent.reshaped(&between)?, &back_order, back.room())?;
            back.give(0, grad.reshaped(&old)?)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use super::super::{Attribute, Operator};
    use crate::tensor::Tensor;

    #[test]
    fn axes_change_places() {
        let x = Tensor::new(&[2, 3], vec![1i64, 2, 3, 4, 5, 6]);
        let op: Arc<dyn Operator> = build("Transpose", 13, &[], 1).into();
        let y = outputs(&op, &[Some(x)], 1);
        assert_eq!(y[0].shape(), &[3, 2]);
        assert_eq!(y[0].values::<i64>(), Some(&[1, 4, 2, 5, 3, 6][..]));
    }

    #[test]
    fn depth_and_space_undo_each_other() {
        let x = Numbers::new(4).tensor(&[2, 8, 3, 5], -1.0, 1.0);
        let size = [("blocksize", Attribute::Int(2))];
        let spread: Arc<dyn Operator> = build("DepthToSpace", 13, &size, 1).into();
        let gather: Arc<dyn Operator> = build("SpaceToDepth", 13, &size, 1).into();
        let y = outputs(&spread, &[Some(x.clone())], 1);
        assert_eq!(y[0].shape(), &[2, 2, 6, 10]);
        let back = outputs(&gather, &[Some(y[0].clone())], 1);
        assert_eq!(back[0].values::<f64>(), x.values::<f64>());
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(2);
        let x = numbers.tensor(&[2, 3, 4, 5], -1.0, 1.0);
        for order in [vec![0, 2, 3, 1], vec![3, 1, 0, 2], vec![0, 1, 3, 2]] {
            let order = [("perm", Attribute::Ints(order))];
            prove_gradient(build("Transpose", 13, &order, 1), &[Some(x.clone())], 1, 1e-6);
        }
        let map = numbers.tensor(&[1, 8, 2, 4], -1.0, 1.0);
        for mode in ["DCR", "CRD"] {
            let attributes = [("blocksize", Attribute::Int(2)), ("mode", Attribute::Text(mode.into()))];
            prove_gradient(build("DepthToSpace", 13, &attributes, 1), &[Some(map.clone())], 1, 1e-6);
        }
        prove_gradient(
            build("SpaceToDepth", 13, &[("blocksize", Attribute::Int(2))], 1),
            &[Some(map)],
            1,
            1e-6,
        );
    }
}
