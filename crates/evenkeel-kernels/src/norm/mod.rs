//! Normalisation of rows by their own mean and variance (layer, group and instance norm on planar tensors), and local response
//! normalisation across channels; with pullbacks to the input.
//!
//! `y = scale * (x - mean) * r + bias` with `r = 1 / sqrt(variance + epsilon)` over each row. With `h = (x - mean) r` and
//! `t = scale * g`, the pullback is `r (t - mean(t) - h mean(t h))`. Sums are in double precision, in eight fixed lanes, so that a
//! row's result depends on nothing but the row.

mod lrn;
#[cfg(test)]
mod reference;
#[cfg(test)]
mod tests;

use crate::disjoint::Disjoint;
use crate::layout::LANES;
use crate::parallel;
use crate::vectorised::vectorised;

pub use lrn::{Lrn, lrn, lrn_pullback};

/// A row's mean and the reciprocal of its standard deviation (with epsilon): the tape of a normalisation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    /// The mean.
    pub mean: f32,
    /// `1 / sqrt(variance + epsilon)`.
    pub rate: f32,
}

/// The scale and bias that follow. Element `i` of the whole tensor has entry `(i / run) % scale.len()`: a layer norm has
/// a run of one and as many entries as a row has elements; a group or instance norm has a run of one image's pixels and an entry a channel.
#[derive(Clone, Copy, Debug)]
pub struct Affine<'a> {
    /// The factors.
    pub scale: &'a [f32],
    /// The terms, as many; absent means zero.
    pub bias: Option<&'a [f32]>,
    /// Elements that share an entry.
    pub run: usize,
}

impl Affine<'_> {
    fn check(&self, row: usize) {
        assert!(self.run > 0 && !self.scale.is_empty(), "an affine map without entries");
        assert!(self.bias.is_none_or(|bias| bias.len() == self.scale.len()), "bias and scale differ");
        assert!(row.is_multiple_of(self.run) || self.run.is_multiple_of(row.max(1)), "runs straddle rows");
    }

    /// Runs `task(elements, scales, biases)` over a row that begins at element `first`, one run (or one row of single entries) at a time.
    /// A slice of one entry stands for all the elements.
    #[inline]
    fn each_run(
        &self,
        first: usize,
        len: usize,
        mut task: impl FnMut(std::ops::Range<usize>, &[f32], &[f32]),
    ) {
        let entries = self.scale.len();
        let bias = |range: std::ops::Range<usize>| self.bias.map_or(&[][..], |bias| &bias[range]);
        let mut done = 0;
        while done < len {
            let entry = (first + done) / self.run % entries;
            if self.run == 1 {
                let count = (entries - entry).min(len - done);
                task(done..done + count, &self.scale[entry..entry + count], bias(entry..entry + count));
                done += count;
            } else {
                let count = (self.run - (first + done) % self.run).min(len - done);
                task(done..done + count, &self.scale[entry..entry + 1], bias(entry..entry + 1));
                done += count;
            }
        }
    }
}

/// A normalisation of rows.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    /// Elements of a row.
    pub length: usize,
    /// Added to the variance.
    pub epsilon: f32,
    /// What follows, if anything.
    pub affine: Option<Affine<'a>>,
}

impl Rows<'_> {
    fn check(&self, lens: &[usize]) -> usize {
        assert!(
            self.length > 0 && lens[0].is_multiple_of(self.length),
            "{} elements in rows of {}",
            lens[0],
            self.length
        );
        assert!(lens.iter().all(|&len| len == lens[0]), "slices differ in length: {lens:?}");
        if let Some(affine) = &self.affine {
            affine.check(self.length);
        }
        lens[0] / self.length
    }

    fn grain(&self) -> usize {
        ((1 << 13) / self.length).max(1)
    }
}

/// Normalises every row of `input`, and gives the moments if they are asked for, one a row.
///
/// # Panics
/// If the slices are not whole rows of equal number, or the affine map does not fit them.
pub fn forward(rows: &Rows<'_>, input: &[f32], output: &mut [f32], moments: Option<&mut [Moments]>) {
    let count = rows.check(&[input.len(), output.len()]);
    assert!(moments.as_ref().is_none_or(|moments| moments.len() == count), "one pair of moments a row");
    let moments = moments.map(Disjoint::new);
    if count == 0 {
        return;
    }
    parallel::rows(output, rows.length, rows.grain(), |first, part| {
        for (i, y) in part.chunks_exact_mut(rows.length).enumerate() {
            let begin = (first + i) * rows.length;
            let x = &input[begin..begin + rows.length];
            let of_row = row_moments(x, rows.epsilon);
            match &rows.affine {
                None => shift(x, of_row, &[1.0], &[], y),
                Some(affine) => affine.each_run(begin, rows.length, |run, scale, bias| {
                    shift(&x[run.clone()], of_row, scale, bias, &mut y[run]);
                }),
            }
            if let Some(moments) = &moments {
                // SAFETY: one row belongs to one task.
                unsafe { moments.part(first + i..first + i + 1)[0] = of_row };
            }
        }
    });
}

/// The gradient with respect to the input, from the input and the moments of the forward pass.
///
/// # Panics
/// If the slices are not whole rows of equal number, or the affine map does not fit them.
pub fn pullback(rows: &Rows<'_>, input: &[f32], moments: &[Moments], grad_out: &[f32], grad_in: &mut [f32]) {
    let count = rows.check(&[input.len(), grad_out.len(), grad_in.len()]);
    assert_eq!(moments.len(), count, "one pair of moments a row");
    if count == 0 {
        return;
    }
    parallel::rows(grad_in, rows.length, rows.grain(), |first, part| {
        for (i, into) in part.chunks_exact_mut(rows.length).enumerate() {
            let begin = (first + i) * rows.length;
            let (x, g) = (&input[begin..begin + rows.length], &grad_out[begin..begin + rows.length]);
            match &rows.affine {
                None => into.copy_from_slice(g),
                Some(affine) => affine.each_run(begin, rows.length, |run, scale, _| {
                    scaled(&g[run.clone()], scale, &mut into[run]);
                }),
            }
            centre(x, moments[first + i], into);
        }
    });
}

/// The sum of `value(i)` over `0..len` in double precision, in eight lanes that fold in halves.
#[inline(always)]
fn sum(len: usize, value: impl Fn(usize) -> f64) -> f64 {
    let mut parts = [0.0; LANES];
    let whole = len / LANES * LANES;
    for i in (0..whole).step_by(LANES) {
        for lane in 0..LANES {
            parts[lane] += value(i + lane);
        }
    }
    for i in whole..len {
        parts[i - whole] += value(i);
    }
    for half in [4, 2, 1] {
        for lane in 0..half {
            parts[lane] += parts[lane + half];
        }
    }
    parts[0]
}

vectorised! {
    /// Mean first, then the mean square about it.
    pub(crate) fn row_moments(x: &[f32], epsilon: f32) -> Moments {
        let count = x.len() as f64;
        let mean = sum(x.len(), #[inline(always)] |i| f64::from(x[i])) / count;
        let variance = sum(x.len(), #[inline(always)] |i| {
            let apart = f64::from(x[i]) - mean;
            apart * apart
        }) / count;
        Moments { mean: mean as f32, rate: (1.0 / (variance + f64::from(epsilon)).sqrt()) as f32 }
    }
}

vectorised! {
    /// `y = (x - mean) rate scale + bias`, where a single scale or bias serves all.
    fn shift(x: &[f32], moments: Moments, scale: &[f32], bias: &[f32], y: &mut [f32]) {
        let Moments { mean, rate } = moments;
        let y = &mut y[..x.len()];
        if scale.len() == 1 {
            let (scale, bias) = (rate * scale[0], bias.first().copied().unwrap_or(0.0));
            for i in 0..x.len() {
                y[i] = (x[i] - mean) * scale + bias;
            }
        } else {
            for i in 0..x.len() {
                y[i] = (x[i] - mean) * rate * scale[i];
            }
            for (y, bias) in y.iter_mut().zip(bias) {
                *y += bias;
            }
        }
    }
}

vectorised! {
    fn scaled(g: &[f32], scale: &[f32], into: &mut [f32]) {
        if scale.len() == 1 {
            let scale = scale[0];
            for (into, &g) in into.iter_mut().zip(g) {
                *into = g * scale;
            }
        } else {
            for ((into, &g), &scale) in into.iter_mut().zip(g).zip(scale) {
                *into = g * scale;
            }
        }
    }
}

vectorised! {
    /// `t` becomes `rate (t - mean(t) - h mean(t h))` with `h = (x - mean) rate`.
    fn centre(x: &[f32], moments: Moments, t: &mut [f32]) {
        let (mean, rate) = (moments.mean, moments.rate);
        let (count, x) = (t.len() as f64, &x[..t.len()]);
        let level = (sum(t.len(), #[inline(always)] |i| f64::from(t[i])) / count) as f32;
        let tilt = (sum(t.len(), #[inline(always)] |i| f64::from(t[i] * ((x[i] - mean) * rate))) / count) as f32;
        for i in 0..t.len() {
            t[i] = rate * (t[i] - level - (x[i] - mean) * rate * tilt);
        }
    }
}
