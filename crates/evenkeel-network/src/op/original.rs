//! The nodes a fused operator was made from, run one by one where the fused form does not serve what arrives.

use std::sync::Arc;

use super::{Answer, Call};
use crate::error::Fault;
use crate::plan::Plan;
use crate::run;

/// Runs the plan of the original nodes on a call's inputs, with their tape as its pullback.
pub(crate) fn run_original(plan: &Arc<Plan>, call: Call<'_>) -> Result<Answer, Fault> {
    let body = |error| Fault::Body(Box::new(error));
    let (outputs, tape) = run::walk(plan, call.inputs, call.wants, call.room).map_err(body)?;
    let Some(tape) = tape else { return Ok(Answer::new(outputs)) };
    Ok(Answer::new(outputs).with(true, move |back| {
        let cotangent = back.take(0).map(|c| c.to_plain(back.room())).transpose()?;
        let gradients = tape.pull(vec![cotangent], back.room()).map_err(body)?;
        for (i, gradient) in gradients.into_iter().enumerate() {
            if let Some(gradient) = gradient {
                back.give(i, gradient)?;
            }
        }
        Ok(())
    }))
}
