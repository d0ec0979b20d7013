//! Loop: a body run again and again, carrying values from trip to trip and collecting others.
//!
//! Body inputs: trip number, condition, carried values, captures. Body outputs: condition, carried values, collected values. The pullback
//! goes through the trips in reverse.

use evenkeel_kernels::buffer::Flag;

use super::super::concat::{cut, join};
use super::super::{Answer, Call, Definition, Operator};
use super::{body, captures_start, pull, truth};
use crate::error::Fault;
use crate::graph::Body;
use crate::run::Tape;
use crate::tensor::{Room, Tensor};

/// See the [module](self).
#[derive(Debug)]
struct Loop {
    body: Body,
    carried: usize,
    collected: usize,
}

pub(super) fn build(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let body = body(definition, "body")?;
    let carried = body.declared.checked_sub(2);
    let collected = carried.and_then(|carried| body.graph.outputs.len().checked_sub(1 + carried));
    match (carried, collected) {
        (Some(carried), Some(collected)) if definition.outputs <= carried + collected => {
            Ok(Box::new(Loop { body, carried, collected }))
        }
        _ => {
            let problem = "does not have the inputs and outputs of a loop".into();
            Err(Fault::Attribute { name: "body".into(), problem })
        }
    }
}

/// The tapes of the trips, and which of a body's inputs and outputs are carried.
pub(super) struct Trips {
    pub(super) tapes: Vec<Tape>,
    pub(super) carried: usize,
    /// Body inputs before the carried ones.
    pub(super) inputs_before: usize,
    /// Body outputs before the carried ones.
    pub(super) outputs_before: usize,
}

impl Trips {
    /// Pulls back through all trips. `collected` has the cotangents of what a trip gave to collect; `rest` gets the gradients of the
    /// inputs after the carried ones of each trip. Returns those of the first carried values.
    pub(super) fn pull(
        &self,
        mut carried: Vec<Option<Tensor>>,
        collected: impl Fn(usize) -> Result<Vec<Option<Tensor>>, Fault>,
        mut rest: impl FnMut(usize, Vec<Option<Tensor>>) -> Result<(), Fault>,
        room: &Room,
    ) -> Result<Vec<Option<Tensor>>, Fault> {
        for (trip, tape) in self.tapes.iter().enumerate().rev() {
            let mut cotangents: Vec<Option<Tensor>> = vec![None; self.outputs_before];
            cotangents.append(&mut carried);
            cotangents.extend(collected(trip)?);
            let mut grads = pull(tape, cotangents, room)?;
            let after = grads.split_off((self.inputs_before + self.carried).min(grads.len()));
            carried = grads.split_off(self.inputs_before.min(grads.len()));
            rest(trip, after)?;
        }
        Ok(carried)
    }
}

/// Adds a gradient to a sum.
pub(super) fn add(sum: &mut Option<Tensor>, grad: Option<Tensor>, room: &Room) -> Result<(), Fault> {
    if let Some(grad) = grad {
        *sum = Some(match sum.take() {
            Some(sum) => crate::run::sum(sum, grad, room)?,
            None => grad,
        });
    }
    Ok(())
}

/// What the trips gave, one after the other along a new `axis`.
pub(super) fn stack(parts: Vec<Tensor>, axis: usize, room: &Room) -> Result<Tensor, Fault> {
    // Without a trip there is no telling what a value would have been.
    let Some(first) = parts.first() else { return Ok(Tensor::new::<f32>(&[0], Vec::new())) };
    let old = first.shape().to_vec();
    let mut shape = old.clone();
    shape.insert(axis, 1);
    let mut runs = Vec::with_capacity(parts.len());
    for part in &parts {
        if part.shape() != old {
            return Err(Fault::Mismatch { left: old, right: part.shape().to_vec(), verb: "stack" });
        }
        runs.push((1, Some(part.reshaped(&shape)?)));
    }
    shape[axis] = parts.len();
    join(&shape, axis, &runs, room)
}

/// The part of a stack that one trip gave.
pub(super) fn unstack(stack: &Tensor, axis: usize, trip: usize, room: &Room) -> Result<Tensor, Fault> {
    let mut shape = stack.shape().to_vec();
    shape.remove(axis);
    cut(stack, axis, trip, 1, room)?.reshaped(&shape)
}

impl Operator for Loop {
    fn folds_up_to(&self) -> usize {
        0
    }

    fn widened(&self) -> Option<Box<dyn Operator>> {
        Some(Box::new(Loop { body: self.body.widened(), ..*self }))
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input > 1
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let captured = self.body.captures.len();
        let start = captures_start(&call, captured)?;
        let limit = match call.optional(0).filter(|_| start > 0) {
            Some(_) => Some(call.integers(0)?.first().copied().ok_or(Fault::Missing(0))?),
            None => None,
        };
        let mut going = match call.optional(1).filter(|_| start > 1) {
            Some(condition) => truth(condition, 1)?,
            None => true,
        };
        let taped = call.wants_any();
        let captures = (start..start + captured).map(|i| call.take(i)).collect::<Result<Vec<_>, _>>()?;
        let mut wants = vec![taped; 2 + self.carried];
        wants[..2].fill(false);
        wants.extend((start..start + captured).map(|i| call.wants(i)));
        let mut carried = (2..2 + self.carried).map(|i| call.take(i)).collect::<Result<Vec<_>, _>>()?;
        let mut collected: Vec<Vec<Tensor>> = vec![Vec::new(); self.collected];
        let mut trips =
            Trips { tapes: Vec::new(), carried: self.carried, inputs_before: 2, outputs_before: 1 };
        let mut trip = 0i64;
        while going && limit.is_none_or(|limit| trip < limit) {
            call.room.count_trip()?;
            let mut inputs = vec![Some(Tensor::scalar(trip)), Some(Tensor::scalar(Flag::from(true)))];
            inputs.extend(carried.drain(..).map(Some));
            inputs.extend(captures.iter().cloned().map(Some));
            let (mut outputs, tape) = self.body.run(inputs, &wants, call.room)?;
            going = truth(&outputs[0], 1)?;
            let gathered = outputs.split_off(1 + self.carried);
            collected.iter_mut().zip(gathered).for_each(|(list, tensor)| list.push(tensor));
            carried = outputs.split_off(1);
            trips.tapes.extend(tape);
            trip += 1;
        }
        let mut outputs = carried;
        for parts in collected {
            outputs.push(stack(parts, 0, call.room)?);
        }
        let (carried, collected) = (self.carried, self.collected);
        Ok(Answer::new(outputs).with(taped, move |back| {
            let last: Vec<_> = (0..carried).map(|i| back.take(i)).collect();
            let stacks: Vec<_> = (carried..carried + collected).map(|i| back.take(i)).collect();
            let room = back.room().clone();
            let parts = |trip: usize| {
                let part = |stack: &Option<Tensor>| {
                    stack.as_ref().map(|stack| unstack(stack, 0, trip, &room)).transpose()
                };
                stacks.iter().map(part).collect()
            };
            let mut sums: Vec<Option<Tensor>> = vec![None; captured];
            let add_up = |_: usize, grads: Vec<Option<Tensor>>| {
                sums.iter_mut().zip(grads).try_for_each(|(sum, grad)| add(sum, grad, &room))
            };
            let first = trips.pull(last, parts, add_up, &room)?;
            let given = (2..).zip(first).chain((start..).zip(sums));
            given.into_iter().try_for_each(|(i, grad)| match grad {
                Some(grad) => back.give(i, grad),
                None => Ok(()),
            })
        }))
    }
}
