//! Equivariance and invariance: how alike the features of the views are.
//!
//! With f0 = F(x), fi = undo_i(F(view_i(x))), n = ‖f‖ + 1e-10 and masks m: a pair contributes Σ m_i m_j f_i f_j / (n_i n_j).
//! `Anchor` pairs every view with f0; `AllPairs` pairs everything with everything. Invariance averages features over space first,
//! and has no undo and no mask. d(pair)/d f_i = m_i m_j f_j/(n_i n_j) − pair · f_i/(n_i ‖f_i‖).

use rayon::prelude::*;

use super::{Compared, Pooled, ViewObjective};
use crate::error::{Error, Result};
use crate::network::{Extents, Tensor};
use crate::random::Random;
use crate::view::{DrawnView as View, ViewSet};

/// Which features are compared with which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Each view with the image itself.
    Anchor,
    /// Every two, the image itself among them.
    AllPairs,
}

impl Pairing {
    /// The pairs among `count` vectors, of which the first is the image's.
    fn pairs(self, count: usize) -> Vec<(usize, usize)> {
        match self {
            Self::Anchor => (1..count).map(|j| (0, j)).collect(),
            Self::AllPairs => (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j))).collect(),
        }
    }
}

/// Features, undone, are alike where they were in evaluation.
#[derive(Clone, Debug)]
pub struct Equivariance {
    /// The views.
    pub views: ViewSet,
    /// Which are compared.
    pub pairing: Pairing,
    /// Each feature cell is kept with this probability.
    pub cells: f32,
    /// What decides which cells; the same for a whole run on an image.
    pub cell_seed: u64,
}

impl Equivariance {
    /// The paper's form: each view with the image itself, all cells.
    pub fn new(views: ViewSet) -> Self {
        Self { views, pairing: Pairing::Anchor, cells: 1.0, cell_seed: 0 }
    }

    fn kept_cells(&self, cells: usize) -> Option<Vec<f32>> {
        let mut random = Random::new(self.cell_seed);
        (self.cells < 1.0)
            .then(|| (0..cells).map(|_| if random.chance(self.cells) { 1.0 } else { 0.0 }).collect())
    }
}

impl ViewObjective for Equivariance {
    fn draw(&self, random: &Random) -> Vec<View> {
        self.views.draw(random)
    }

    fn compare(&self, size: (usize, usize), base: &Tensor, seen: &[(View, Tensor)]) -> Result<Compared> {
        if let Some(levels) = base.split() {
            return over_levels(&levels, seen, |base, seen| self.compare(size, base, seen));
        }
        let form = base.extents("features")?;
        let extents = seen.iter().map(|(_, t)| t.extents("features")).collect::<Result<Vec<_>>>()?;
        if let Some(other) = extents.iter().find(|e| e.channels != form.channels) {
            return Err(Error::mismatch("channels of a view's features", form.channels, other.channels));
        }
        let undone: Vec<(Vec<f32>, Vec<f32>)> = seen
            .par_iter()
            .zip(&extents)
            .map(|((view, map), seen)| {
                let features = view.undo(size, map.data(), *seen, form.size());
                (features, view.mask(size, seen.size(), form.size()))
            })
            .collect();
        let kept = self.kept_cells(form.cells()).unwrap_or_else(|| vec![1.0; form.cells()]);
        let mut vectors = vec![(base.data(), kept)];
        vectors.extend(undone.iter().map(|(features, mask)| (features.as_slice(), mask.clone())));
        let (value, mut cotangents) = cosines(&vectors, self.pairing, form);
        let base = std::mem::take(&mut cotangents[0]);
        let seen = seen
            .par_iter()
            .zip(&extents)
            .zip(&cotangents[1..])
            .map(|(((view, _), seen), cotangent)| view.pull_undo(size, cotangent, *seen, form.size()))
            .collect();
        Ok(Compared { value, base, seen })
    }
}

/// Features averaged over space are alike.
#[derive(Clone, Debug)]
pub struct Invariance {
    /// The views.
    pub views: ViewSet,
    /// Which are compared.
    pub pairing: Pairing,
}

impl ViewObjective for Invariance {
    fn draw(&self, random: &Random) -> Vec<View> {
        self.views.draw(random)
    }

    fn compare(&self, _: (usize, usize), base: &Tensor, seen: &[(View, Tensor)]) -> Result<Compared> {
        match base.split() {
            Some(levels) => over_levels(&levels, seen, |base, seen| self.compare_pooled(base, seen)),
            None => self.compare_pooled(base, seen),
        }
    }
}

impl Invariance {
    fn compare_pooled(&self, base: &Tensor, seen: &[(View, Tensor)]) -> Result<Compared> {
        let maps: Vec<&Tensor> = std::iter::once(base).chain(seen.iter().map(|(_, t)| t)).collect();
        let pooled = maps.iter().map(|map| Pooled::of(map)).collect::<Result<Vec<_>>>()?;
        let vectors: Vec<_> = pooled.iter().map(|p| (p.values(), vec![1.0])).collect();
        let form = Extents { channels: pooled[0].values().len(), height: 1, width: 1 };
        let (value, cotangents) = cosines(&vectors, self.pairing, form);
        let mut spread = pooled.iter().zip(&cotangents).map(|(p, c)| p.pullback(c));
        let base = spread.next().unwrap_or_default();
        Ok(Compared { value, base, seen: spread.collect() })
    }
}

/// Several feature maps, each compared by itself: values add up, cotangents come one after the other.
fn over_levels(
    levels: &[Tensor],
    seen: &[(View, Tensor)],
    compare: impl Fn(&Tensor, &[(View, Tensor)]) -> Result<Compared>,
) -> Result<Compared> {
    let mut total = Compared { value: 0.0, base: Vec::new(), seen: vec![Vec::new(); seen.len()] };
    let mut parts: Vec<std::vec::IntoIter<Tensor>> = Vec::new();
    for (_, tensor) in seen {
        let own = tensor.split().filter(|own| own.len() == levels.len());
        let own =
            own.ok_or_else(|| Error::mismatch("levels of a view's features", levels.len(), "others"))?;
        parts.push(own.into_iter());
    }
    for level in levels {
        let views = seen.iter().map(|(view, _)| view.clone());
        let here: Vec<(View, Tensor)> =
            views.zip(&mut parts).filter_map(|(view, own)| Some((view, own.next()?))).collect();
        let compared = compare(level, &here)?;
        total.value += compared.value;
        total.base.extend(compared.base);
        total.seen.iter_mut().zip(compared.seen).for_each(|(all, own)| all.extend(own));
    }
    Ok(total)
}

/// The sum of masked cosines over the pairs, and its gradient on every vector `[channels, cells]`.
///
/// The first vector's mask applies to every pair (it holds the kept cells).
fn cosines(vectors: &[(&[f32], Vec<f32>)], pairing: Pairing, form: Extents) -> (f64, Vec<Vec<f32>>) {
    let squares = |v: &[f32]| v.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    let norms: Vec<f64> = vectors.par_iter().map(|(v, _)| squares(v).sqrt()).collect();
    let length = |i: usize| norms[i] + 1e-10;
    let pairs = pairing.pairs(vectors.len());
    let mask = |i: usize, j: usize| -> Vec<f32> {
        let kept = &vectors[0].1;
        kept.iter().zip(&vectors[i].1).zip(&vectors[j].1).map(|((k, a), b)| k * a * b).collect()
    };
    let dots: Vec<f64> = pairs
        .par_iter()
        .map(|&(i, j)| {
            let mask = mask(i, j);
            let (a, b) = (vectors[i].0.chunks(form.cells()), vectors[j].0.chunks(form.cells()));
            let channel = |(a, b): (&[f32], &[f32])| {
                a.iter().zip(b).zip(&mask).map(|((a, b), m)| f64::from(a * m) * f64::from(*b)).sum::<f64>()
            };
            a.zip(b).map(channel).sum::<f64>() / (length(i) * length(j))
        })
        .collect();
    let gradient = |i: usize| {
        let mut out = vec![0.0f32; vectors[i].0.len()];
        let mut own = 0.0;
        for (&(a, b), dot) in pairs.iter().zip(&dots).filter(|((a, b), _)| *a == i || *b == i) {
            let other = if a == i { b } else { a };
            let scale = (1.0 / (length(i) * length(other))) as f32;
            let mask: Vec<f32> = mask(a, b).iter().map(|m| m * scale).collect();
            for (out, from) in out.chunks_mut(form.cells()).zip(vectors[other].0.chunks(form.cells())) {
                out.iter_mut().zip(from).zip(&mask).for_each(|((o, f), m)| *o += f * m);
            }
            own += dot;
        }
        let shrink = if norms[i] > 0.0 { (own / (length(i) * norms[i])) as f32 } else { 0.0 };
        out.iter_mut().zip(vectors[i].0).for_each(|(o, f)| *o -= shrink * f);
        out
    };
    let gradients = (0..vectors.len()).into_par_iter().map(gradient).collect();
    (dots.iter().sum(), gradients)
}
