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
        let mut map = AxisMap { input, starts: vec![0], pairs: Vec::new(), fill: 0.0 };
        for mut list in lists {
            list.sort_by_key(|&(source, _)| source);
            let begin = map.pairs.len();
            let mut joined: Vec<(usize, f64)> = Vec::with_capacity(list.len());
            for (source, weight) in list {
                assert!(source < input, "source {source} of {input}");
                match joined.last_mut() {
                    Some(last) if last.0 == source => last.1 += weight,
                    _ => joined.push((source, weight)),
                }
            }
            map.pairs.extend(joined.iter().filter(|pair| pair.1 != 0.0).map(|&(i, w)| (i as u32, w as f32)));
            if begin == map.pairs.len() && !joined.is_empty() {
                map.pairs.push((joined[0].0 as u32, 0.0)); // all weights cancelled: still not a fill
            }
            map.starts.push(map.pairs.len() as u32);
        }
        map
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
        let mut readers = vec![Vec::new(); self.input];
        for output in 0..self.output() {
            for &(source, weight) in self.list(output) {
                readers[source as usize].push((output as u32, weight));
            }
        }
        let mut map = AxisMap { input: self.output(), starts: vec![0], pairs: Vec::new(), fill: 0.0 };
        for list in readers {
            map.pairs.extend(list);
            map.starts.push(map.pairs.len() as u32);
        }
        map
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
