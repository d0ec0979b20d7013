//! Scan: a body run once for each slice of its scanned inputs, carrying states and collecting others.
//!
//! Body inputs: states, slices, captures. Body outputs: states, collected values.

use super::super::strided::axis_of;
use super::super::{Answer, Attributes, Call, Definition, Operator};
use super::repeat::{Trips, add, stack, unstack};
use super::{body, captures_start};
use crate::error::Fault;
use crate::for_type;
use crate::graph::Body;
use crate::tensor::{Element, Room, Store, Tensor};

/// See the [module](self).
#[derive(Debug)]
struct Scan {
    body: Body,
    states: usize,
    scanned: Vec<Way>,
    collected: Vec<Way>,
}

/// The axis along which slices are taken or put, and whether from the end.
#[derive(Clone, Copy, Debug)]
struct Way {
    axis: i64,
    backwards: bool,
}

impl Way {
    fn slice(self, trip: usize, trips: usize) -> usize {
        if self.backwards { trips - 1 - trip } else { trip }
    }
}

fn ways(attributes: &Attributes, kind: &str, count: usize) -> Result<Vec<Way>, Fault> {
    let list = |name: String| {
        let values = attributes.ints(&name)?.unwrap_or_else(|| vec![0; count]);
        let problem = || format!("has {} values for {count}", values.len());
        if values.len() == count { Ok(values) } else { Err(Fault::Attribute { name, problem: problem() }) }
    };
    let (axes, directions) = (list(format!("scan_{kind}_axes"))?, list(format!("scan_{kind}_directions"))?);
    Ok(axes.iter().zip(directions).map(|(&axis, way)| Way { axis, backwards: way != 0 }).collect())
}

pub(super) fn build(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    if definition.opset < 9 {
        return Err(Fault::Unsupported("Scan over batches".into()));
    }
    let body = body(definition, "body")?;
    let scanned = definition.attributes.int("num_scan_inputs")?.and_then(|count| usize::try_from(count).ok());
    let states = scanned.and_then(|count| body.declared.checked_sub(count));
    let collected = states.and_then(|states| body.graph.outputs.len().checked_sub(states));
    match (scanned, states, collected) {
        (Some(scanned @ 1..), Some(states), Some(collected)) if definition.outputs <= states + collected => {
            Ok(Box::new(Scan {
                body,
                states,
                scanned: ways(definition.attributes, "input", scanned)?,
                collected: ways(definition.attributes, "output", collected)?,
            }))
        }
        _ => {
            let problem = "does not have the inputs and outputs of a scan".into();
            Err(Fault::Attribute { name: "body".into(), problem })
        }
    }
}

fn zeros<T: Element>(_: &Store<T>, shape: &[usize], room: &Room) -> Result<Tensor, Fault> {
    room.tensor::<T>(shape, |out| out.fill(T::default()))
}

impl Scan {
    /// The axis of each scanned input, and how many slices there are.
    fn axes(&self, call: &Call<'_>) -> Result<(Vec<usize>, usize), Fault> {
        let (mut axes, mut trips) = (Vec::new(), None);
        for (i, way) in self.scanned.iter().enumerate() {
            let x = call.input(self.states + i)?;
            let axis = axis_of(way.axis, x.rank())?;
            if *trips.get_or_insert(x.shape()[axis]) != x.shape()[axis] {
                return Err(Fault::Value("scanned inputs differ in length".into()));
            }
            axes.push(axis);
        }
        Ok((axes, trips.unwrap_or(0)))
    }

    /// One collected output.
    fn collect(&self, way: Way, mut parts: Vec<Tensor>, room: &Room) -> Result<Tensor, Fault> {
        if way.backwards {
            parts.reverse();
        }
        let rank = parts.first().map_or(1, |part| part.rank() + 1);
        stack(parts, axis_of(way.axis, rank)?, room)
    }
}

impl Operator for Scan {
    fn folds_up_to(&self) -> usize {
        0
    }

    fn widened(&self) -> Option<Box<dyn Operator>> {
        let (scanned, collected) = (self.scanned.clone(), self.collected.clone());
        Some(Box::new(Scan { body: self.body.widened(), states: self.states, scanned, collected }))
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let captured = self.body.captures.len();
        let start = captures_start(&call, captured)?;
        let (axes, count) = self.axes(&call)?;
        let taped = call.wants_any();
        let scanned_at = self.states..self.states + self.scanned.len();
        let mut wants = vec![taped; self.states];
        wants.extend(scanned_at.clone().map(|i| call.wants(i)));
        wants.extend((start..start + captured).map(|i| call.wants(i)));
        let mut states = (0..self.states).map(|i| call.take(i)).collect::<Result<Vec<_>, _>>()?;
        let scanned = scanned_at.map(|i| call.take(i)).collect::<Result<Vec<_>, _>>()?;
        let captures = (start..start + captured).map(|i| call.take(i)).collect::<Result<Vec<_>, _>>()?;
        let mut collected: Vec<Vec<Tensor>> = vec![Vec::new(); self.collected.len()];
        let mut trips =
            Trips { tapes: Vec::new(), carried: self.states, inputs_before: 0, outputs_before: 0 };
        for trip in 0..count {
            call.room.count_trip()?;
            let mut inputs: Vec<Option<Tensor>> = states.drain(..).map(Some).collect();
            for ((x, way), &axis) in scanned.iter().zip(&self.scanned).zip(&axes) {
                inputs.push(Some(unstack(x, axis, way.slice(trip, count), call.room)?));
            }
            inputs.extend(captures.iter().cloned().map(Some));
            let (mut outputs, tape) = self.body.run(inputs, &wants, call.room)?;
            let gathered = outputs.split_off(self.states);
            collected.iter_mut().zip(gathered).for_each(|(list, tensor)| list.push(tensor));
            states = outputs;
            trips.tapes.extend(tape);
        }
        let mut outputs = states;
        for (&way, parts) in self.collected.iter().zip(collected) {
            outputs.push(self.collect(way, parts, call.room)?);
        }
        let (states, ways, out_ways) = (self.states, self.scanned.clone(), self.collected.clone());
        let shapes: Vec<Vec<usize>> = scanned.iter().map(|x| x.shape().to_vec()).collect();
        Ok(Answer::new(outputs).with(taped, move |back| {
            let last: Vec<_> = (0..states).map(|i| back.take(i)).collect();
            let stacks: Vec<_> = (states..states + out_ways.len()).map(|i| back.take(i)).collect();
            let room = back.room().clone();
            let parts = |trip: usize| {
                let part = |(stack, way): (&Option<Tensor>, &Way)| {
                    let Some(stack) = stack else { return Ok(None) };
                    let axis = axis_of(way.axis, stack.rank())?;
                    unstack(stack, axis, way.slice(trip, count), &room).map(Some)
                };
                stacks.iter().zip(&out_ways).map(part).collect()
            };
            let mut slices: Vec<Vec<Option<Tensor>>> = vec![vec![None; count]; ways.len()];
            let mut sums: Vec<Option<Tensor>> = vec![None; captured];
            let sort = |trip: usize, mut grads: Vec<Option<Tensor>>| {
                let of_captures = grads.split_off(ways.len().min(grads.len()));
                for ((list, way), grad) in slices.iter_mut().zip(&ways).zip(grads) {
                    list[way.slice(trip, count)] = grad;
                }
                sums.iter_mut().zip(of_captures).try_for_each(|(sum, grad)| add(sum, grad, &room))
            };
            let first = trips.pull(last, parts, sort, &room)?;
            for (i, list) in slices.into_iter().enumerate() {
                let Some(like) = list.iter().flatten().next().cloned() else { continue };
                let filled = list.into_iter().map(|part| match part {
                    Some(part) => Ok(part),
                    None => for_type!(like.data(), values => zeros(values, like.shape(), &room)),
                });
                let grad = stack(filled.collect::<Result<_, _>>()?, axes[i], &room)?;
                back.give(states + i, grad.reshaped(&shapes[i])?)?;
            }
            let given = (0..).zip(first).chain((start..).zip(sums));
            given.into_iter().try_for_each(|(i, grad)| match grad {
                Some(grad) => back.give(i, grad),
                None => Ok(()),
            })
        }))
    }
}
