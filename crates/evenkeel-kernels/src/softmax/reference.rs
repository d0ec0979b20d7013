//! Both functions and pullbacks as their formulas, in either precision.

use super::Kind;
use crate::layout::Along;
use crate::real::Real;

pub(super) fn forward<R: Real>(kind: Kind, along: Along, input: &[R], output: &mut [R]) {
    each_line(along, |line| {
        let most = line.clone().map(|i| input[i]).fold(input[line.clone().next().unwrap_or(0)], R::max);
        let mut sum = R::ZERO;
        for i in line.clone() {
            sum += (input[i] - most).exp();
        }
        for i in line {
            let x = input[i] - most;
            output[i] = if kind == Kind::Softmax { x.exp() / sum } else { x - sum.ln() };
        }
    });
}

pub(super) fn pullback<R: Real>(kind: Kind, along: Along, output: &[R], grad_out: &[R], grad_in: &mut [R]) {
    each_line(along, |line| {
        let mut sum = R::ZERO;
        for i in line.clone() {
            sum += if kind == Kind::Softmax { grad_out[i] * output[i] } else { grad_out[i] };
        }
        for i in line {
            grad_in[i] = match kind {
                Kind::Softmax => output[i] * (grad_out[i] - sum),
                Kind::LogSoftmax => grad_out[i] - output[i].exp() * sum,
            };
        }
    });
}

fn each_line(along: Along, mut task: impl FnMut(std::iter::StepBy<std::ops::Range<usize>>)) {
    for outer in 0..along.outer {
        for inner in 0..along.inner {
            let first = outer * along.length * along.inner + inner;
            task((first..first + along.length * along.inner).step_by(along.inner.max(1)));
        }
    }
}
