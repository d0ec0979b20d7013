//! Identity and Dropout as a frozen network runs it: the values as they are.

use evenkeel_kernels::buffer::Flag;

use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("Identity", true, identity), entry("Dropout", true, dropout)];

/// Passes input 0 on; a second output is a mask of ones.
#[derive(Debug)]
struct Identity {
    dropout: bool,
}

fn identity(_: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Identity { dropout: false }))
}

fn dropout(_: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Identity { dropout: true }))
}

impl Operator for Identity {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let training = call.optional(2).and_then(|t| t.values::<Flag>()?.first().copied());
        let ratio = call.optional(1).and_then(|t| t.values::<f32>()?.first().copied()).unwrap_or(0.5);
        if self.dropout && training.is_some_and(Flag::get) && ratio != 0.0 {
            return Err(Fault::Unsupported("dropout in training".into()));
        }
        let x = call.take(0)?;
        let mask = match call.outputs {
            0 | 1 => None,
            _ => Some(call.room.tensor::<Flag>(x.shape(), |out| out.fill(true.into()))?),
        };
        let outputs = std::iter::once(x).chain(mask).collect();
        Ok(Answer::new(outputs).with(call.wants(0), |back| match back.take(0) {
            Some(cotangent) => back.give(0, cotangent),
            None => Ok(()),
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::proof::{Numbers, build, prove_gradient};

    #[test]
    fn pullbacks_agree_with_differences() {
        let x = Some(Numbers::new(1).tensor(&[2, 3, 4, 1], -2.0, 2.0));
        prove_gradient(build("Identity", 14, &[], 1), std::slice::from_ref(&x), 1, 1e-6);
        prove_gradient(build("Dropout", 13, &[], 1), &[x], 1, 1e-6);
    }
}
