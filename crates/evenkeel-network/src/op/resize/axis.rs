//! A linear map along one axis: `y[o] = sum over k of w[k] x[i[k]]`, a few terms an output. Its transpose is its pullback.

use evenkeel_kernels::parallel;

use super::super::strided::{GRAIN, Real, for_real};
use crate::error::Fault;
use crate::tensor::{Room, Tensor};

/// See the [module](self). Terms are in ascending order of their source.
#[derive(Clone, Debug)]
pub(super) struct AxisMap {
    inputs: usize,
    starts: Vec<usize>,
    terms: Vec<(usize, f64)>,
}

impl AxisMap {
    /// The map whose outputs are sums of these terms, `(input, weight)` each, in ascending order of the input.
    pub(super) fn new(inputs: usize, outputs: impl Iterator<Item = Vec<(usize, f64)>>) -> AxisMap {
        let mut map = AxisMap { inputs, starts: vec![0], terms: Vec::new() };
        for terms in outputs {
            let first = map.terms.len();
            for (input, weight) in terms {
                match map.terms[first..].last_mut().filter(|term| term.0 == input) {
                    Some(term) => term.1 += weight,
                    None => map.terms.push((input, weight)),
                }
            }
            map.starts.push(map.terms.len());
        }
        map
    }

    fn outputs(&self) -> usize {
        self.starts.len() - 1
    }

    fn terms(&self, output: usize) -> &[(usize, f64)] {
        &self.terms[self.starts[output]..self.starts[output + 1]]
    }

    /// The pullback: each input gathers from the outputs that read it, in ascending order.
    pub(super) fn transposed(&self) -> AxisMap {
        let mut readers = vec![Vec::new(); self.inputs];
        for output in 0..self.outputs() {
            for &(input, weight) in self.terms(output) {
                readers[input].push((output, weight));
            }
        }
        AxisMap::new(self.outputs(), readers.into_iter())
    }

    fn run<T: Real>(&self, inner: usize, x: &[T], y: &mut [T]) {
        let (inputs, outputs) = (self.inputs, self.outputs());
        let weights: Vec<T> = self.terms.iter().map(|term| T::of(term.1)).collect();
        parallel::rows(y, inner, (GRAIN / inner).max(1), |first, part| {
            for (i, row) in part.chunks_exact_mut(inner).enumerate() {
                let (outer, o) = ((first + i) / outputs, (first + i) % outputs);
                let range = self.starts[o]..self.starts[o + 1];
                row.fill(T::default());
                for (&(input, _), &weight) in self.terms[range.clone()].iter().zip(&weights[range]) {
                    let source = &x[(outer * inputs + input) * inner..][..inner];
                    row.iter_mut().zip(source).for_each(|(y, &x)| *y += weight * x);
                }
            }
        });
    }

    /// Applies the map along `axis` of a plain tensor of floats.
    pub(super) fn apply(&self, x: &Tensor, axis: usize, room: &Room) -> Result<Tensor, Fault> {
        let mut shape = x.shape().to_vec();
        let inner: usize = shape[axis + 1..].iter().product();
        shape[axis] = self.outputs();
        for_real!(x, values => room.tensor(&shape, |y| {
            if !y.is_empty() {
                self.run(inner, values, y);
            }
        }))
    }
}
