//! An [`AxisMap`] applied along one axis: row by row where the elements after the axis are many, by gathering where the axis is
//! the last.

use super::AxisMap;
use crate::disjoint::Disjoint;
use crate::layout::{Along, LANES};
use crate::parallel;
use crate::real::Real;
use crate::vectorised::vectorised;

const GRAIN: usize = 1 << 14;

/// Elements after the axis up to which a row is too short to be worth a call.
const NARROW: usize = 256;

/// Outputs that a row's taps pass over before the next tap does.
const BLOCK: usize = 1 << 10;

impl AxisMap {
    fn check(&self, outer: usize, inner: usize, from: usize, into: usize) -> Along {
        assert_eq!(from, outer * self.input * inner, "input of [{outer}, {}, {inner}]", self.input);
        assert_eq!(into, outer * self.output() * inner, "output of [{outer}, {}, {inner}]", self.output());
        Along { outer, length: self.output(), inner }
    }

    /// `into[outer][o][inner]` from `from[outer][i][inner]`.
    ///
    /// # Panics
    /// If a slice's length does not fit.
    pub fn apply(&self, outer: usize, inner: usize, from: &[f32], into: &mut [f32]) {
        let along = self.check(outer, inner, from.len(), into.len());
        if along.is_empty() {
            return;
        }
        if inner == 1 {
            return self.apply_last(outer, from, into);
        }
        if inner <= NARROW {
            return parallel::rows(into, inner, (GRAIN / inner).max(1), |first, part| {
                narrow(self, first, inner, from, part);
            });
        }
        parallel::rows(into, inner, (GRAIN / inner).max(1), |first, part| {
            for (i, row) in part.chunks_exact_mut(inner).enumerate() {
                let (image, o) = ((first + i) / along.length, (first + i) % along.length);
                let list = self.list(o);
                match list {
                    [] => row.fill(self.fill),
                    [(source, 1.0)] => {
                        row.copy_from_slice(
                            &from[(image * self.input + *source as usize) * inner..][..inner],
                        );
                    }
                    _ => blend(&from[image * self.input * inner..], list, row),
                }
            }
        });
    }

    /// [`AxisMap::apply`] for the last axis, in blocks of outputs.
    fn apply_last(&self, outer: usize, from: &[f32], into: &mut [f32]) {
        let length = self.output();
        let most = (0..length).map(|o| self.list(o).len()).max().unwrap_or(0);
        // Lists of very different lengths would make the table mostly holes.
        let table = (most * length <= 2 * self.pairs.len() + 4 * length).then(|| Table::new(self, most));
        let (blocks, parts) = (length.div_ceil(BLOCK), Disjoint::new(into));
        parallel::ranges(outer * blocks, GRAIN / BLOCK, |range| {
            for i in range {
                // Row by row within a block, so that the block's lists stay near.
                let (row, begin) = (i % outer, i / outer * BLOCK);
                let outputs = begin..length.min(begin + BLOCK);
                let x = &from[row * self.input..(row + 1) * self.input];
                // SAFETY: one block of one row belongs to one task.
                let y = unsafe { parts.part(row * length + outputs.start..row * length + outputs.end) };
                match &table {
                    Some(table) if self.input > 0 => gather(table, outputs.start, x, y),
                    _ => self.gather_lists(outputs.start, x, y),
                }
                for (y, o) in y.iter_mut().zip(outputs) {
                    if self.list(o).is_empty() {
                        *y = self.fill;
                    }
                }
            }
        });
    }

    /// The outputs from `first` on of one contiguous row, list by list.
    fn gather_lists(&self, first: usize, x: &[f32], y: &mut [f32]) {
        for (i, y) in y.iter_mut().enumerate() {
            *y = self
                .list(first + i)
                .iter()
                .fold(0.0, |sum, &(source, weight)| sum + weight * x[source as usize]);
        }
    }

    /// [`AxisMap::apply`] as plain loops in either precision.
    ///
    /// # Panics
    /// If a slice's length does not fit.
    pub fn apply_reference<R: Real>(&self, outer: usize, inner: usize, from: &[R], into: &mut [R]) {
        let along = self.check(outer, inner, from.len(), into.len());
        for (at, y) in into.iter_mut().enumerate() {
            let (image, o, column) = (at / (along.length * inner), at / inner % along.length, at % inner);
            *y = if self.list(o).is_empty() { R::of(self.fill.into()) } else { R::ZERO };
            for &(source, weight) in self.list(o) {
                *y += R::of(weight.into()) * from[(image * self.input + source as usize) * inner + column];
            }
        }
    }
}

/// A map's lists made equally long: tap `k` of every output in a row, missing ones with weight zero on a source the output
/// reads anyway.
struct Table {
    output: usize,
    input: usize,
    sources: Vec<u32>,
    weights: Vec<f32>,
}

impl Table {
    fn new(map: &AxisMap, most: usize) -> Table {
        let output = map.output();
        let mut table = Table {
            output,
            input: map.input,
            sources: vec![0; most * output],
            weights: vec![0.0; most * output],
        };
        for o in 0..output {
            let list = map.list(o);
            let Some(&(first, _)) = list.first() else {
                continue;
            };
            for k in 0..most {
                let (source, weight) = list.get(k).copied().unwrap_or((first, 0.0));
                table.sources[k * output + o] = source;
                table.weights[k * output + o] = weight;
            }
        }
        assert!(table.sources.iter().all(|&source| (source as usize) < map.input.max(1)));
        table
    }
}

vectorised! {
    /// The outputs from `first` on of one contiguous row through the table.
    fn gather(table: &Table, first: usize, x: &[f32], y: &mut [f32]) {
        assert!(x.len() == table.input && !x.is_empty() && first + y.len() <= table.output);
        y.fill(0.0);
        for (sources, weights) in table.sources.chunks_exact(table.output).zip(table.weights.chunks_exact(table.output)) {
            let (sources, weights) = (&sources[first..first + y.len()], &weights[first..first + y.len()]);
            for ((y, &source), &weight) in y.iter_mut().zip(sources).zip(weights) {
                // SAFETY: the table's sources lie below its input, which is the row's length.
                *y += weight * unsafe { *x.get_unchecked(source as usize) };
            }
        }
    }
}

vectorised! {
    /// The rows from `first` on of a map with short rows, in one loop; each as `blend` makes it.
    fn narrow(map: &AxisMap, first: usize, inner: usize, from: &[f32], part: &mut [f32]) {
        let length = map.output();
        let (mut image, mut o) = (first / length, first % length);
        for row in part.chunks_exact_mut(inner) {
            let source = |i: u32| &from[(image * map.input + i as usize) * inner..][..inner];
            match map.list(o) {
                [] => row.fill(map.fill),
                [(only, 1.0)] => row.copy_from_slice(source(*only)),
                [(only, weight)] => {
                    for (y, &a) in row.iter_mut().zip(source(*only)) {
                        *y = weight * a;
                    }
                }
                [(one, w0), (two, w1)] => {
                    for ((y, &a), &b) in row.iter_mut().zip(source(*one)).zip(source(*two)) {
                        *y = w0 * a + w1 * b;
                    }
                }
                [(one, w0), rest @ ..] => {
                    for (y, &a) in row.iter_mut().zip(source(*one)) {
                        *y = w0 * a;
                    }
                    for &(i, weight) in rest {
                        for (y, &x) in row.iter_mut().zip(source(i)) {
                            *y += weight * x;
                        }
                    }
                }
            }
            o += 1;
            if o == length {
                (image, o) = (image + 1, 0);
            }
        }
    }
}

vectorised! {
    /// `row = sum of weight * source row`, eight vectors' worth of columns at a time.
    fn blend(from: &[f32], list: &[(u32, f32)], row: &mut [f32]) {
        let inner = row.len();
        let (&(first, w0), rest) = list.split_first().expect("a list with sources");
        let first = &from[first as usize * inner..][..inner];
        if let [(second, w1)] = rest {
            let second = &from[*second as usize * inner..][..inner];
            for ((y, &a), &b) in row.iter_mut().zip(first).zip(second) {
                *y = w0 * a + w1 * b;
            }
            return;
        }
        for begin in (0..inner).step_by(8 * LANES) {
            let end = inner.min(begin + 8 * LANES);
            for (y, &a) in row[begin..end].iter_mut().zip(&first[begin..end]) {
                *y = w0 * a;
            }
            for &(source, weight) in rest {
                let from = &from[source as usize * inner..][begin..end];
                for (y, &x) in row[begin..end].iter_mut().zip(from) {
                    *y += weight * x;
                }
            }
        }
    }
}
