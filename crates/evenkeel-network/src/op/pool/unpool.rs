//! MaxUnpool: values put back where a max pool's indices say they came from, zeros elsewhere. The pullback picks the cotangents there.

use super::super::strided::row_strides;
use super::super::window::Window;
use super::super::{Answer, Call, Definition, Operator};
use crate::error::Fault;
use crate::for_type;
use crate::tensor::{Element, Room, Store, Tensor};

/// See the [module](self).
#[derive(Debug)]
struct MaxUnpool {
    window: Window,
}

pub(super) fn build(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(MaxUnpool { window: Window::of(definition)? }))
}

impl MaxUnpool {
    /// The shape the pool had read, as far as its output tells.
    fn pooled(&self, shape: &[usize]) -> Result<Vec<usize>, Fault> {
        let dims = shape.len().saturating_sub(2);
        let unit = Some(vec![1; dims]);
        let parts = [&self.window.kernel, &self.window.strides.clone().or(unit)];
        let pads = self.window.pads.clone().unwrap_or_else(|| vec![0; 2 * dims]);
        let (Some(kernel), Some(stride)) = (parts[0], parts[1]) else {
            return Err(Fault::Attribute { name: "kernel_shape".into(), problem: "is missing".into() });
        };
        if dims == 0 || kernel.len() != dims || stride.len() != dims || pads.len() != 2 * dims {
            let expected = format!("{} spatial dimensions", kernel.len());
            return Err(Fault::Shape { input: 0, expected, got: shape.to_vec() });
        }
        let mut whole = shape[..2].to_vec();
        for i in 0..dims {
            let span = shape[2 + i].saturating_sub(1).saturating_mul(stride[i]).saturating_add(kernel[i]);
            whole.push(span.saturating_sub(pads[i] + pads[i + dims]));
        }
        Ok(whole)
    }
}

fn place<T: Element>(x: &Store<T>, positions: &[i64], shape: &[usize], room: &Room) -> Result<Tensor, Fault> {
    room.tensor(shape, |out| {
        out.fill(T::default());
        positions.iter().zip(x.iter()).for_each(|(&at, &value)| out[at as usize] = value);
    })
}

impl Operator for MaxUnpool {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (x, indices) = (call.input(0)?, call.integers(1)?);
        let inner = self.pooled(x.shape())?;
        let shape = match call.optional(2) {
            Some(_) => super::super::shape::sizes(&call, 2)?,
            None => inner.clone(),
        };
        let (len, within) = (call.room.len_of(&shape)?, call.room.len_of(&inner)?);
        let fits =
            shape.len() == inner.len() && shape.iter().zip(&inner).all(|(outer, inner)| outer >= inner);
        if !fits || indices.len() != x.len() {
            return Err(Fault::Mismatch { left: shape, right: inner, verb: "hold each other" });
        }
        let (outer_strides, inner_strides) = (row_strides(&shape), row_strides(&inner));
        let mut positions = call.room.take::<i64>(indices.len())?;
        for (&index, position) in indices.iter().zip(positions.iter_mut()) {
            let Some(at) = usize::try_from(index).ok().filter(|&at| at < within.min(len)) else {
                return Err(Fault::Range { what: "index", index, low: 0, high: within as i64 });
            };
            let along = |d: usize| at / inner_strides[d] % inner[d] * outer_strides[d];
            *position = (0..inner.len()).map(along).sum::<usize>() as i64;
        }
        let y = for_type!(x.data(), values => place(values, &positions, &shape, call.room))?;
        let old = x.shape().to_vec();
        Ok(Answer::one(y).with(call.wants(0), move |back| {
            let Some(gy) = back.take(0) else { return Ok(()) };
            let gx = for_type!(gy.data(), gy => back.room().tensor(&old, |gx| {
                positions.iter().zip(gx).for_each(|(&at, g)| *g = gy[at as usize]);
            }))?;
            back.give(0, gx)
        }))
    }
}
