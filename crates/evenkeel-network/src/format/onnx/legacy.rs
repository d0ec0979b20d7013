//! Broadcasting as operator sets before 7 had it: the second input's axes start at an attribute's axis of the first.
//!
//! Where the attribute's axis is the one at which today's rule would put them the two agree; anything else is refused.

use crate::error::Fault;
use crate::op::{Answer, Call, Layouts, Operator};

/// An operator of two inputs under the old rule.
#[derive(Debug)]
pub(super) struct AtAxis {
    pub(super) inner: Box<dyn Operator>,
    pub(super) axis: i64,
}

impl Operator for AtAxis {
    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (a, b) = (call.input(0)?.rank() as i64, call.input(1)?.rank() as i64);
        let start = if self.axis < 0 { self.axis.saturating_add(a) } else { self.axis };
        if start != a - b {
            let (axis, newer) = (self.axis, "which newer operator sets cannot express");
            return Err(Fault::Unsupported(format!("broadcasting at axis {axis}, {newer},")));
        }
        self.inner.apply(call)
    }

    fn layouts(&self) -> Layouts {
        self.inner.layouts()
    }

    fn passes_gradient(&self, input: usize) -> bool {
        self.inner.passes_gradient(input)
    }
}
