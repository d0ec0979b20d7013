//! Expand and Tile: values repeated along axes. The pullback sums over the repetitions.

use super::registry::{Entry, entry};
use super::strided::{Strided, row_strides};
use super::{Answer, Call, Definition, Operator};
use crate::error::Fault;

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("Expand", true, expand), entry("Tile", true, tile)];

/// How values are repeated.
#[derive(Debug)]
enum Repeat {
    /// Broadcast to the shape in input 1.
    Expand,
    /// As often along each axis as input 1 says.
    Tile,
}

fn expand(_: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Repeat::Expand))
}

fn tile(_: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Repeat::Tile))
}

/// The pattern that broadcasts `old` against `asked`, and the shape both go to.
fn broadcast(old: &[usize], asked: &[usize]) -> Result<(Strided, Vec<usize>), Fault> {
    let rank = old.len().max(asked.len());
    let strides = row_strides(old);
    let (mut shape, mut steps) = (Vec::with_capacity(rank), Vec::with_capacity(rank));
    for axis in 0..rank {
        let from = (axis + old.len()).checked_sub(rank);
        let have = from.map_or(1, |axis| old[axis]);
        let want = (axis + asked.len()).checked_sub(rank).map_or(1, |axis| asked[axis]);
        if have != want && have != 1 && want != 1 {
            return Err(Fault::Mismatch { left: old.to_vec(), right: asked.to_vec(), verb: "broadcast" });
        }
        shape.push(if have == 1 { want } else { have });
        steps.push(if have == 1 { 0 } else { from.map_or(0, |axis| strides[axis] as isize) });
    }
    Ok((Strided::new(&shape, &steps, 0), shape))
}

/// The pattern that repeats `old`, and the shape it goes to.
fn tiled(old: &[usize], repeats: &[usize]) -> Result<(Strided, Vec<usize>), Fault> {
    if repeats.len() != old.len() {
        let expected = format!("{} repeats", old.len());
        return Err(Fault::Shape { input: 1, expected, got: vec![repeats.len()] });
    }
    let strides = row_strides(old);
    let (mut inner, mut steps) = (Vec::new(), Vec::new());
    for axis in 0..old.len() {
        inner.extend([repeats[axis], old[axis]]);
        steps.extend([0, strides[axis] as isize]);
    }
    let shape = old.iter().zip(repeats).map(|(&dim, &times)| dim.saturating_mul(times)).collect();
    Ok((Strided::new(&inner, &steps, 0), shape))
}

impl Operator for Repeat {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let asked = call.integers(1)?;
        let sizes: Option<Vec<usize>> = asked.iter().map(|&size| usize::try_from(size).ok()).collect();
        let sizes = sizes.ok_or_else(|| Fault::Value(format!("{asked:?} has negative sizes")))?;
        // Patterns join axes by multiplying, so the sizes must be sane before one is made.
        call.room.len_of(&sizes)?;
        let old = x.shape().to_vec();
        if let Repeat::Tile = self {
            call.room.len_of(&[old.as_slice(), sizes.as_slice()].concat())?;
        }
        let (pattern, shape) = match self {
            Repeat::Expand => broadcast(&old, &sizes)?,
            Repeat::Tile => tiled(&old, &sizes)?,
        };
        let y = pattern.read(x, &shape, call.room)?;
        Ok(Answer::one(y).with(call.wants(0), move |back| {
            let Some(cotangent) = back.take(0) else { return Ok(()) };
            let grad = pattern.pull(&cotangent, &old, back.room())?;
            back.give(0, grad)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Operator;
    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use crate::tensor::Tensor;

    fn ints(values: &[i64]) -> Option<Tensor> {
        Some(Tensor::new(&[values.len()], values.to_vec()))
    }

    #[test]
    fn values_repeat() {
        let x = Some(Tensor::new(&[2, 1], vec![1u8, 2]));
        let expand: Arc<dyn Operator> = build("Expand", 13, &[], 2).into();
        let tile: Arc<dyn Operator> = build("Tile", 13, &[], 2).into();
        let y = outputs(&expand, &[x.clone(), ints(&[2, 1, 3])], 1);
        assert_eq!(y[0].shape(), &[2, 2, 3]);
        assert_eq!(y[0].values::<u8>(), Some(&[1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2][..]));
        let y = outputs(&tile, &[x, ints(&[2, 2])], 1);
        assert_eq!(y[0].values::<u8>(), Some(&[1, 1, 2, 2, 1, 1, 2, 2][..]));
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(8);
        let x = Some(numbers.tensor(&[2, 1, 3, 1], -1.0, 1.0));
        prove_gradient(build("Expand", 13, &[], 2), &[x.clone(), ints(&[4, 1, 2])], 1, 1e-5);
        prove_gradient(build("Tile", 13, &[], 2), &[x.clone(), ints(&[1, 3, 2, 2])], 1, 1e-5);
        prove_gradient(build("Tile", 13, &[], 2), &[x, ints(&[1, 0, 2, 2])], 1, 1e-5);
    }
}
