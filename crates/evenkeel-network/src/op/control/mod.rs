//! If, Loop and Scan: nodes with bodies of their own.
//!
//! What a body reads from the graph around it comes as extra inputs at the end, the bodies in the order of their attributes' names
//! (`else_branch` before `then_branch`). The tape is that of the branch taken, or one for each trip.

mod repeat;
mod scan;
#[cfg(test)]
mod tests;

use evenkeel_kernels::buffer::Flag;

use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Operator};
use crate::error::Fault;
use crate::graph::Body;
use crate::run::Tape;
use crate::tensor::{Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] =
    &[entry("If", true, branch), entry("Loop", true, repeat::build), entry("Scan", true, scan::build)];

/// A body that an attribute must hold.
fn body(definition: &Definition<'_>, name: &str) -> Result<Body, Fault> {
    let missing = || Fault::Attribute { name: name.into(), problem: "is missing".into() };
    definition.attributes.body(name)?.map(|body| *body).ok_or_else(missing)
}

/// The first element of a tensor of truth values.
fn truth(tensor: &Tensor, input: usize) -> Result<bool, Fault> {
    let flags = tensor.values::<Flag>();
    let flags = flags.ok_or(Fault::Type { input, expected: "bool", got: tensor.dtype() })?;
    let one = || Fault::Shape { input, expected: "one element".into(), got: tensor.shape().to_vec() };
    flags.first().map(|flag| flag.get()).ok_or_else(one)
}

/// Where the captured values of a node begin.
fn captures_start(call: &Call<'_>, captured: usize) -> Result<usize, Fault> {
    call.inputs.len().checked_sub(captured).ok_or(Fault::Missing(call.inputs.len()))
}

/// Pulls back through a body.
fn pull(tape: &Tape, cotangents: Vec<Option<Tensor>>, room: &Room) -> Result<Vec<Option<Tensor>>, Fault> {
    tape.pull(cotangents, room).map_err(|error| Fault::Body(Box::new(error)))
}

/// Runs one of two bodies.
#[derive(Debug)]
struct If {
    then_body: Body,
    else_body: Body,
}

fn branch(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let (then_body, else_body) = (body(definition, "then_branch")?, body(definition, "else_branch")?);
    for (branch, name) in [(&then_body, "then_branch"), (&else_body, "else_branch")] {
        if branch.declared != 0 || branch.graph.outputs.len() < definition.outputs {
            let problem = "does not have the inputs and outputs of a branch".into();
            return Err(Fault::Attribute { name: name.into(), problem });
        }
    }
    Ok(Box::new(If { then_body, else_body }))
}

impl Operator for If {
    fn widened(&self) -> Option<Box<dyn Operator>> {
        Some(Box::new(If { then_body: self.then_body.widened(), else_body: self.else_body.widened() }))
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input > 0
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let (in_else, in_then) = (self.else_body.captures.len(), self.then_body.captures.len());
        let start = captures_start(&call, in_else + in_then)?;
        let (taken, start) = if truth(call.input(0)?, 0)? {
            (&self.then_body, start + in_else)
        } else {
            (&self.else_body, start)
        };
        let range = start..start + taken.captures.len();
        let wants: Vec<bool> = range.clone().map(|i| call.wants(i)).collect();
        let inputs = range.map(|i| call.take(i).map(Some)).collect::<Result<Vec<_>, _>>()?;
        let (outputs, tape) = taken.run(inputs, &wants, call.room)?;
        let count = outputs.len();
        let answer = Answer::new(outputs);
        let Some(tape) = tape else { return Ok(answer) };
        Ok(answer.with(true, move |back| {
            let cotangents = (0..count).map(|i| back.take(i)).collect();
            for (i, grad) in pull(&tape, cotangents, back.room())?.into_iter().enumerate() {
                if let Some(grad) = grad {
                    back.give(start + i, grad)?;
                }
            }
            Ok(())
        }))
    }
}
