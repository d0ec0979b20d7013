//! Objectives with a learned head: telling turns apart, and telling the image from others.

use std::path::Path;

use super::head::Head;
use super::{Compared, Cotangent, Pooled, Rest, Seen, ViewObjective, ViewShare, ViewSum, compare_in_turn};
use crate::error::{Error, Result};
use crate::network::Tensor;
use crate::random::Random;
use crate::view::{DrawnView, Turn, ViewSet};

/// A head guesses by how many quarters the image was turned; the objective is minus the mean cross-entropy.
#[derive(Clone, Debug)]
pub struct Rotation {
    /// Pooled features to four scores.
    pub head: Head,
    /// Whether views keep the image's size.
    pub fixed_canvas: bool,
}

impl ViewObjective for Rotation {
    fn draw(&self, _: &Random) -> Vec<DrawnView> {
        let turn = |quarters| DrawnView::of(Turn { quarters }).fitted(self.fixed_canvas);
        (1..4).map(turn).collect()
    }

    fn over_views<'a>(&'a self, base: &'a [Tensor]) -> Result<Option<Box<dyn ViewSum + 'a>>> {
        if self.head.outputs() != 4 {
            return Err(Error::mismatch("scores of a rotation head", 4, self.head.outputs()));
        }
        let (value, base) = self.guess(0, base)?;
        Ok(Some(Box::new(Guesses { rotation: self, value, base })))
    }

    fn compare(&self, base: &[Tensor], seen: &[Seen]) -> Result<Compared> {
        match self.over_views(base)? {
            Some(sum) => compare_in_turn(sum, seen),
            None => Err(Error::setting("rotation", "is a sum over views")),
        }
    }
}

impl Rotation {
    /// What the guess at features turned by this many quarters adds, and its cotangents.
    fn guess(&self, quarters: usize, features: &[Tensor]) -> Result<(f64, Vec<Cotangent>)> {
        // the image as it is and its three turns
        let share = 1.0 / 4.0;
        let pooled = Pooled::of(features)?;
        let (scores, inputs) = self.head.forward(pooled.values())?;
        let top = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        let sum: f32 = scores.iter().map(|s| (s - top).exp()).sum();
        let value = share * f64::from(top + sum.ln() - scores[quarters]);
        let slope = |(i, s): (usize, &f32)| {
            share as f32 * (if i == quarters { 1.0 } else { 0.0 } - (s - top).exp() / sum)
        };
        let cotangent: Vec<f32> = scores.iter().enumerate().map(slope).collect();
        Ok((-value, pooled.pullback(&self.head.pullback(&inputs, &cotangent))))
    }
}

/// The guesses so far.
struct Guesses<'a> {
    rotation: &'a Rotation,
    value: f64,
    base: Vec<Cotangent>,
}

impl ViewSum for Guesses<'_> {
    fn share(&self, place: usize, seen: &Seen, _: bool) -> Result<ViewShare> {
        let (value, cotangents) = self.rotation.guess(place + 1, &seen.features)?;
        Ok(ViewShare { cotangents, rest: Rest::Value(value) })
    }

    fn add(&mut self, share: ViewShare) {
        if let Rest::Value(value) = share.rest {
            self.value += value;
        }
    }

    fn finish(self: Box<Self>) -> Result<(f64, Vec<Cotangent>)> {
        Ok((self.value, self.base))
    }
}

/// Embeddings of other images, `[count, dimensions]`, each of unit length: the negatives of a contrastive objective.
#[derive(Clone, Debug)]
pub struct Bank {
    dimensions: usize,
    vectors: Vec<f32>,
}

impl Bank {
    /// A bank of these vectors, which are brought to unit length.
    ///
    /// # Errors
    /// If there are none or they do not divide into vectors.
    pub fn new(dimensions: usize, mut vectors: Vec<f32>) -> Result<Self> {
        if dimensions == 0 || vectors.is_empty() || !vectors.len().is_multiple_of(dimensions) {
            return Err(Error::mismatch(
                "bank of negatives",
                format!("vectors of {dimensions}"),
                vectors.len(),
            ));
        }
        vectors.chunks_mut(dimensions).for_each(|v| {
            let length = norm(v) + 1e-10;
            v.iter_mut().for_each(|x| *x /= length);
        });
        Ok(Self { dimensions, vectors })
    }

    /// Reads the tensor `bank` of a safetensors file.
    ///
    /// # Errors
    /// If it is not there, or not a matrix of f32.
    pub fn load(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        Self::from_bytes(&std::fs::read(path).map_err(Error::io(path))?, path)
    }

    /// Reads the tensor `bank` from the bytes of a safetensors file; `path` is for sentences.
    ///
    /// # Errors
    /// As [`Bank::load`].
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Self> {
        let fail = |reason: String| Error::File { path: path.to_owned(), reason };
        let file = safetensors::SafeTensors::deserialize(bytes).map_err(|e| fail(e.to_string()))?;
        let bank = file.tensor("bank").map_err(|e| fail(e.to_string()))?;
        match (bank.shape(), bank.dtype()) {
            (&[_, dimensions], safetensors::tensor::Dtype::F32) => {
                let floats =
                    bank.data().chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]));
                Self::new(dimensions, floats.collect())
            }
            (shape, dtype) => Err(fail(format!("bank is {dtype:?} {shape:?}, not an F32 matrix"))),
        }
    }
}

fn norm(v: &[f32]) -> f32 {
    v.iter().map(|x| x * x).sum::<f32>().sqrt()
}

/// SimCLR's objective: each view's embedding is nearer to the other views' than to the bank's. With s = cosine/temperature, the
/// value is the mean over ordered pairs of views of ln(e^{s_ij} / (e^{s_ij} + Σ_bank e^{s_ib})), the image itself being a view.
#[derive(Clone, Debug)]
pub struct Contrastive {
    /// The views.
    pub views: ViewSet,
    /// Pooled features to an embedding.
    pub head: Head,
    /// Other images' embeddings.
    pub bank: Bank,
    /// The temperature.
    pub temperature: f32,
}

/// An embedding on the way: the features' means, what the head kept, its length and direction.
struct Embedded {
    pooled: Pooled,
    inputs: Vec<Vec<f32>>,
    length: f32,
    unit: Vec<f32>,
}

impl Contrastive {
    fn embed(&self, map: &[Tensor]) -> Result<Embedded> {
        let pooled = Pooled::of(map)?;
        let (out, inputs) = self.head.forward(pooled.values())?;
        if out.len() != self.bank.dimensions {
            return Err(Error::mismatch("dimensions of the bank", out.len(), self.bank.dimensions));
        }
        let length = norm(&out) + 1e-10;
        let unit = out.iter().map(|v| v / length).collect();
        Ok(Embedded { pooled, inputs, length, unit })
    }

    /// The value of one ordered pair; adds its slopes to the cotangents of the two unit vectors.
    fn pair(&self, a: &[f32], b: &[f32], share: f32, to_a: &mut [f32], to_b: &mut [f32]) -> f64 {
        let dot = |u: &[f32], v: &[f32]| u.iter().zip(v).map(|(x, y)| x * y).sum::<f32>() / self.temperature;
        let positive = dot(a, b);
        let negatives: Vec<f32> = self.bank.vectors.chunks(self.bank.dimensions).map(|n| dot(a, n)).collect();
        let top = negatives.iter().copied().fold(positive, f32::max);
        let sum = (positive - top).exp() + negatives.iter().map(|n| (n - top).exp()).sum::<f32>();
        let scale = share / self.temperature;
        let pull = scale * (1.0 - (positive - top).exp() / sum);
        to_a.iter_mut().zip(b).for_each(|(t, v)| *t += pull * v);
        to_b.iter_mut().zip(a).for_each(|(t, v)| *t += pull * v);
        for (score, negative) in negatives.iter().zip(self.bank.vectors.chunks(self.bank.dimensions)) {
            let push = scale * (score - top).exp() / sum;
            to_a.iter_mut().zip(negative).for_each(|(t, v)| *t -= push * v);
        }
        f64::from(share * (positive - top - sum.ln()))
    }
}

impl ViewObjective for Contrastive {
    fn draw(&self, random: &Random) -> Vec<DrawnView> {
        self.views.draw(random)
    }

    fn compare(&self, base: &[Tensor], seen: &[Seen]) -> Result<Compared> {
        let maps: Vec<&[Tensor]> =
            std::iter::once(base).chain(seen.iter().map(|one| one.features.as_slice())).collect();
        let all = maps.iter().map(|map| self.embed(map)).collect::<Result<Vec<_>>>()?;
        let count = all.len();
        let share = 1.0 / (count * (count - 1)).max(1) as f32;
        let mut cotangents = vec![vec![0.0; self.bank.dimensions]; count];
        let mut value = 0.0;
        for i in 0..count {
            for j in (0..count).filter(|&j| j != i) {
                let mut to_j = std::mem::take(&mut cotangents[j]);
                value += self.pair(&all[i].unit, &all[j].unit, share, &mut cotangents[i], &mut to_j);
                cotangents[j] = to_j;
            }
        }
        let mut back = all.iter().zip(&cotangents).map(|(embedded, cotangent)| {
            let along: f32 = embedded.unit.iter().zip(cotangent).map(|(u, c)| u * c).sum();
            let on_head: Vec<f32> =
                embedded.unit.iter().zip(cotangent).map(|(u, c)| (c - along * u) / embedded.length).collect();
            embedded.pooled.pullback(&self.head.pullback(&embedded.inputs, &on_head))
        });
        let base = back.next().unwrap_or_default();
        Ok(Compared { value, base, seen: back.collect() })
    }
}
