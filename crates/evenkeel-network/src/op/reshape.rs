//! Reshape, Flatten, Squeeze and Unsqueeze: the same values under another shape, shared, not copied.

use super::registry::{Entry, entry};
use super::strided::axis_of;
use super::{Answer, Call, Definition, Operator};
use crate::error::Fault;
use crate::tensor::checked_len;

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("Reshape", true, reshape),
    entry("Flatten", true, flatten),
    entry("Squeeze", true, squeeze),
    entry("Unsqueeze", true, unsqueeze),
];

/// How the new shape follows from the old one.
#[derive(Debug)]
enum Reshaped {
    /// Input 1 names it; 0 copies a dimension (unless zeros are meant), -1 is what remains.
    Given { zeros_are_meant: bool },
    /// Two axes: those before this one, and the rest.
    Flat { axis: i64 },
    /// Without axes of one element. The axes may come as input 1.
    Squeezed { axes: Option<Vec<i64>> },
    /// With new axes of one element. The axes may come as input 1.
    Unsqueezed { axes: Option<Vec<i64>> },
}

fn reshape(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Reshaped::Given { zeros_are_meant: definition.attributes.flag("allowzero", false)? }))
}

fn flatten(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Reshaped::Flat { axis: definition.attributes.int("axis")?.unwrap_or(1) }))
}

fn squeeze(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Reshaped::Squeezed { axes: definition.attributes.ints("axes")? }))
}

fn unsqueeze(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Reshaped::Unsqueezed { axes: definition.attributes.ints("axes")? }))
}

fn given(old: &[usize], asked: &[i64], zeros_are_meant: bool) -> Result<Vec<usize>, Fault> {
    let refused = || Fault::Value(format!("{old:?} cannot be reshaped to {asked:?}"));
    let mut open = None;
    let mut shape = Vec::with_capacity(asked.len());
    for (axis, &dim) in asked.iter().enumerate() {
        shape.push(match dim {
            -1 if open.is_none() => {
                open = Some(axis);
                1
            }
            0 if !zeros_are_meant => *old.get(axis).ok_or_else(refused)?,
            _ => usize::try_from(dim).map_err(|_| refused())?,
        });
    }
    if let Some(axis) = open {
        let (whole, rest) = (checked_len(old), checked_len(&shape));
        shape[axis] = match (whole, rest) {
            (Some(whole), Some(rest)) if rest > 0 && whole.is_multiple_of(rest) => whole / rest,
            _ => return Err(refused()),
        };
    }
    Ok(shape)
}

fn squeezed(old: &[usize], axes: Option<&[i64]>) -> Result<Vec<usize>, Fault> {
    let Some(axes) = axes else { return Ok(old.iter().copied().filter(|&dim| dim != 1).collect()) };
    let mut dropped = vec![false; old.len()];
    for &axis in axes {
        let axis = axis_of(axis, old.len())?;
        if old[axis] != 1 {
            let expected = format!("one element along axis {axis}");
            return Err(Fault::Shape { input: 0, expected, got: old.to_vec() });
        }
        dropped[axis] = true;
    }
    Ok(old.iter().zip(dropped).filter(|(_, dropped)| !dropped).map(|(&dim, _)| dim).collect())
}

fn unsqueezed(old: &[usize], axes: &[i64]) -> Result<Vec<usize>, Fault> {
    let rank = old.len() + axes.len();
    let mut new = vec![false; rank];
    for &axis in axes {
        if std::mem::replace(&mut new[axis_of(axis, rank)?], true) {
            return Err(Fault::Value(format!("axis {axis} is added twice")));
        }
    }
    let mut rest = old.iter();
    Ok(new.iter().map(|&new| if new { 1 } else { rest.next().copied().unwrap_or(1) }).collect())
}

impl Reshaped {
    fn shape(&self, call: &Call<'_>) -> Result<Vec<usize>, Fault> {
        let old = call.input(0)?.shape();
        let axes = |fixed: &Option<Vec<i64>>| match call.optional(1) {
            Some(_) => call.integers(1).map(Some),
            None => Ok(fixed.clone()),
        };
        match self {
            Reshaped::Given { zeros_are_meant } => given(old, &call.integers(1)?, *zeros_are_meant),
            Reshaped::Flat { axis } => {
                let axis = if *axis == old.len() as i64 { old.len() } else { axis_of(*axis, old.len())? };
                Ok(vec![old[..axis].iter().product(), old[axis..].iter().product()])
            }
            Reshaped::Squeezed { axes: fixed } => squeezed(old, axes(fixed)?.as_deref()),
            Reshaped::Unsqueezed { axes: fixed } => unsqueezed(old, &axes(fixed)?.ok_or(Fault::Missing(1))?),
        }
    }
}

impl Operator for Reshaped {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let shape = self.shape(&call)?;
        let x = call.take(0)?;
        let old = x.shape().to_vec();
        Ok(Answer::one(x.reshaped(&shape)?).with(call.wants(0), move |back| match back.take(0) {
            Some(cotangent) => back.give(0, cotangent.reshaped(&old)?),
            None => Ok(()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, prove_gradient};
    use super::{given, squeezed, unsqueezed};
    use crate::tensor::Tensor;

    #[test]
    fn shapes_follow_the_standard() {
        assert_eq!(given(&[2, 3, 4], &[0, -1], false).ok(), Some(vec![2, 12]));
        assert_eq!(given(&[0, 3], &[3, 0], true).ok(), Some(vec![3, 0]));
        assert_eq!(given(&[2, 3], &[-1, -1], false).ok(), None);
        assert_eq!(given(&[2, 3], &[4, -1], false).ok(), None);
        assert_eq!(given(&[2, 3], &[i64::MAX, i64::MAX, -1], false).ok(), None);
        assert_eq!(given(&[2], &[1, 0], false).ok(), None);
        assert_eq!(squeezed(&[1, 3, 1], None).ok(), Some(vec![3]));
        assert_eq!(squeezed(&[1, 3, 1], Some(&[-1])).ok(), Some(vec![1, 3]));
        assert_eq!(squeezed(&[1, 3], Some(&[1])).ok(), None);
        assert_eq!(unsqueezed(&[3, 4], &[0, -1]).ok(), Some(vec![1, 3, 4, 1]));
        assert_eq!(unsqueezed(&[3], &[0, 0]).ok(), None);
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(3);
        let x = Some(numbers.tensor(&[2, 9, 1, 3], -1.0, 1.0));
        let ints = |values: &[i64]| Some(Tensor::new(&[values.len()], values.to_vec()));
        prove_gradient(build("Reshape", 13, &[], 2), &[x.clone(), ints(&[3, -1])], 1, 1e-6);
        prove_gradient(build("Flatten", 13, &[], 1), std::slice::from_ref(&x), 1, 1e-6);
        prove_gradient(build("Squeeze", 13, &[], 2), &[x.clone(), ints(&[2])], 1, 1e-6);
        let axes = [("axes", Attribute::Ints(vec![0, 3]))];
        prove_gradient(build("Unsqueeze", 11, &axes, 1), &[x], 1, 1e-6);
    }
}
