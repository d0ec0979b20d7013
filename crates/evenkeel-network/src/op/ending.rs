//! A convolution or product with constants and the smooth activation that reads it, in one pass: for walks without a tape.
//!
//! `y = f(w * x + ...)`, the same bytes as one after the other. Whether the kernel serves is known only when the inputs arrive; if it
//! does not, they do run one after the other.

use std::sync::Arc;

use evenkeel_kernels::activation::Function;

use super::activation::Smooth;
use super::conv::FusedConv;
use super::linear::Linear;
use super::{Answer, Call, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::Tensor;

/// An operator whose kernel can end in a smooth activation.
pub(super) trait EndsSmoothly {
    /// What it makes, ended by `function`, without a tape; the call as it came if these inputs are not for the kernel.
    fn apply_with<'a>(&self, function: Function, call: Call<'a>) -> Result<Result<Answer, Fault>, Call<'a>>;
}

/// See the [module](self). The first is the operator of the plan that keeps a tape, so its weights are packed once for both.
#[derive(Debug)]
pub(crate) struct Ending {
    first: Arc<dyn Operator>,
    function: Function,
}

fn as_op<T: Operator>(op: &dyn Operator) -> Option<&T> {
    let any: &dyn std::any::Any = op;
    any.downcast_ref()
}

impl Ending {
    /// Of two operators, the second of which reads what the first makes, if a kernel may serve them.
    pub(crate) fn of(first: &Arc<dyn Operator>, second: &Arc<dyn Operator>) -> Option<Ending> {
        let &Smooth(function) = as_op(&**second)?;
        kernel(&**first).map(|_| Ending { first: first.clone(), function })
    }

    /// The convolution, and what ends it.
    pub(super) fn conv(&self) -> Option<(&FusedConv, Function)> {
        Some((as_op(&*self.first)?, self.function))
    }
}

fn kernel(op: &dyn Operator) -> Option<&dyn EndsSmoothly> {
    let conv = as_op::<FusedConv>(op).map(|conv| conv as &dyn EndsSmoothly);
    conv.or_else(|| as_op::<Linear>(op).map(|linear| linear as &dyn EndsSmoothly))
}

impl Operator for Ending {
    fn layouts(&self) -> Layouts {
        self.first.layouts()
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let lost = || Fault::Value("an ending lost what it ends".into());
        let room = call.room;
        let call = match kernel(&*self.first).ok_or_else(lost)?.apply_with(self.function, call) {
            Ok(answer) => return answer,
            Err(call) => call,
        };
        let mut between = self.first.apply(Call { wants: &[false; 2][..call.inputs.len()], ..call })?.outputs;
        let inputs = vec![Some(between.swap_remove(0))];
        Smooth(self.function).apply(Call { inputs, wants: &[false], outputs: 1, room })
    }

    fn kind(&self, inputs: &[Option<&Tensor>]) -> String {
        self.first.kind(inputs)
    }

    fn flops(&self, inputs: &[Option<&Tensor>]) -> f64 {
        self.first.flops(inputs)
    }
}
