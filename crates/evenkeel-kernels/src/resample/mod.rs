//! Resampling as separable linear maps: each output along an axis is a short weighted list of inputs.
//!
//! `y[o] = sum over (i, w) in list(o) of w * x[i]`, along any axis of a dense slice. The pullback is the transposed map, itself such a
//! list, so that it gathers too. A list is summed in ascending order of its sources, alike in every layout and on any number of threads.
//! This serves Resize and Upsample in every mode, and the views of an image.

mod apply;
mod sampling;
mod separable;
#[cfg(test)]
mod tests;

pub use sampling::{Coordinates, Filter, Rounding, Sampling};
pub use separable::Separable;

/// A linear map along one axis.
#[derive(Clone, Debug, PartialEq)]
pub struct AxisMap {
    input: usize,
    starts: Vec<u32>,
    pairs: Vec<(u32, f32)>, // (source, weight)
    fill: f32,
}

impl AxisMap {
    /// A map from `input` elements whose `o`-th output is the weighted sum of the `o`-th list. Sources that repeat are joined,
    /// weights of zero dropped.
    ///
    /// # Panics
    /// If a source is not below `input`.
    pub fn from_lists(input: usize, lists: impl IntoIterator<Item = Vec<(usize, f64)>>) -> AxisMap {
        let mut map = AxisMap::empty(input);
        for mut list in lists {
            map.push(&mut list);
        }
        map
    }

    /// As [`AxisMap::from_lists`]: `list(o, into)` writes the list of output `o` into an empty vector.
    ///
    /// # Panics
    /// If a source is not below `input`.
    pub fn from_fn(
        input: usize,
        output: usize,
        mut list: impl FnMut(usize, &mut Vec<(usize, f64)>),
    ) -> AxisMap {
        let mut map = AxisMap::empty(input);
        map.starts.reserve(output);
        let mut into = Vec::new();
        for o in 0..output {
            into.clear();
            list(o, &mut into);
            map.push(&mut into);
        }
        map
    }

    fn empty(input: usize) -> AxisMap {
        AxisMap { input, starts: vec![0], pairs: Vec::new(), fill: 0.0 }
    }

    /// Adds an output with this list.
    fn push(&mut self, list: &mut [(usize, f64)]) {
        if !list.is_sorted_by_key(|&(source, _)| source) {
            list.sort_by_key(|&(source, _)| source);
        }
        let begin = self.pairs.len();
        let mut i = 0;
        while i < list.len() {
            let (source, mut weight) = list[i];
            assert!(source < self.input, "source {source} of {}", self.input);
            i += 1;
            while i < list.len() && list[i].0 == source {
                weight += list[i].1;
                i += 1;
            }
            if weight != 0.0 {
                self.pairs.push((source as u32, weight as f32));
            }
        }
        if let (true, Some(first)) = (begin == self.pairs.len(), list.first()) {
            self.pairs.push((first.0 as u32, 0.0)); // all weights cancelled: still not a fill
        }
        self.starts.push(self.pairs.len() as u32);
    }

    /// The map of a resize from `input` to `output` elements. `scale` is the ratio asked for, which is `output / input` unless
    /// the output was rounded.
    ///
    /// # Panics
    /// If there is no input to read an output from.
    pub fn resize(input: usize, output: usize, scale: f64, sampling: Sampling) -> AxisMap {
        assert!(input > 0 || output == 0, "{output} outputs of no input");
        let lists = (0..output).map(|o| sampling.list(input, output, scale, o));
        let mut map = AxisMap::from_lists(input, lists);
        map.fill = sampling.fill();
        map
    }

    /// The transposed map: the pullback. Outputs that were filled send nothing back.
    pub fn transposed(&self) -> AxisMap {
        let mut starts = vec![0u32; self.input + 1];
        for &(source, _) in &self.pairs {
            starts[source as usize + 1] += 1;
        }
        for i in 0..self.input {
            starts[i + 1] += starts[i];
        }
        let mut next = starts.clone();
        let mut pairs = vec![(0, 0.0); self.pairs.len()];
        for output in 0..self.output() {
            for &(source, weight) in self.list(output) {
                let place = &mut next[source as usize];
                pairs[*place as usize] = (output as u32, weight);
                *place += 1;
            }
        }
        AxisMap { input: self.output(), starts, pairs, fill: 0.0 }
    }

    /// Elements read along the axis.
    pub fn input(&self) -> usize {
        self.input
    }

    /// Elements written along the axis.
    pub fn output(&self) -> usize {
        self.starts.len() - 1
    }

    /// The `(source, weight)` pairs of an output; none means that it is filled.
    pub fn list(&self, output: usize) -> &[(u32, f32)] {
        &self.pairs[self.starts[output] as usize..self.starts[output + 1] as usize]
    }

    /// Whether every output is the input at the same place.
    pub fn is_identity(&self) -> bool {
        self.input == self.output() && (0..self.input).all(|i| self.list(i) == [(i as u32, 1.0)])
    }
}
