//! Equivariance and invariance: how alike the features of the views are.
//!
//! With f0 = F(x), fi = undo_i(F(view_i(x))), n = ‖f‖ + 1e-10 and masks m: a pair contributes Σ m_i m_j f_i f_j / (n_i n_j).
//! `Anchor` pairs every view with f0; `AllPairs` pairs everything with everything. Invariance averages features over space first,
//! and has no undo and no mask. d(pair)/d f_i = m_i m_j f_j/(n_i n_j) − pair · f_i/(n_i ‖f_i‖).

use std::borrow::Cow;

use rayon::prelude::*;

use super::anchor::Anchor;
use super::{Compared, Cotangent, Pooled, Rest, Seen, ViewObjective, ViewShare, ViewSum, compare_in_turn};
use crate::error::{Error, Result};
use crate::network::{CosineRule, Extents, Tensor};
use crate::random::Random;
use crate::settings::Choice;
use crate::view::{DrawnView, Undo, ViewSet};

/// Which features are compared with which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Each view with the image itself.
    Anchor,
    /// Every two, the image itself among them.
    AllPairs,
}

impl Choice for Pairing {
    const ALL: &'static [Self] = &[Self::Anchor, Self::AllPairs];
    const KIND: &'static str = "pairing";

    fn name(self) -> &'static str {
        match self {
            Self::Anchor => "anchor",
            Self::AllPairs => "all-pairs",
        }
    }
}

/// Features, undone, are alike where they were in sight.
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

    fn rule(&self) -> CosineRule {
        let (cells, cell_seed) = (self.cells, self.cell_seed);
        CosineRule { pooled: false, all_pairs: self.pairing == Pairing::AllPairs, cells, cell_seed }
    }

    /// The cells of the image's own maps that take part, if not all do.
    fn kept_cells(&self, cells: usize) -> Option<Vec<f32>> {
        self.rule().kept_cells(cells)
    }

    /// One level, every two compared.
    fn all_pairs(&self, base: &Tensor, level: usize, seen: &[Seen]) -> Result<Compared> {
        let form = base.extents("features")?;
        let undo = |one: &Seen| {
            let (undo, extents, map) = undone(one, level, form)?;
            Ok((undo.apply(map.data(), extents.channels), undo))
        };
        let undone: Vec<(Vec<f32>, Undo)> = seen.par_iter().map(undo).collect::<Result<_>>()?;
        let kept = self.kept_cells(form.cells()).unwrap_or_else(|| vec![1.0; form.cells()]);
        let mut vectors = vec![(base.data(), kept.as_slice())];
        vectors.extend(undone.iter().map(|(features, undo)| (features.as_slice(), undo.mask())));
        let (value, mut cotangents) = cosines(&vectors, form);
        let base = std::mem::take(&mut cotangents[0]);
        let pull = |((_, undo), cotangent): (&(Vec<f32>, Undo), &Vec<f32>)| {
            vec![undo.pullback(cotangent, form.channels)]
        };
        let seen = undone.par_iter().zip(&cotangents[1..]).map(pull).collect();
        Ok(Compared { value, base: vec![base], seen })
    }
}

/// The way back of one level of a view's features to the image's own grid, their form, and the features.
pub(super) fn undone(seen: &Seen, level: usize, form: Extents) -> Result<(Undo, Extents, &Tensor)> {
    let map = level_of(seen, level)?;
    let extents = map.extents("features")?;
    if extents.channels != form.channels {
        return Err(Error::mismatch("channels of a view's features", form.channels, extents.channels));
    }
    Ok((seen.view.undo_onto(extents.size(), form.size()), extents, map))
}

fn level_of(seen: &Seen, level: usize) -> Result<&Tensor> {
    let count = seen.features.len();
    seen.features.get(level).ok_or_else(|| Error::mismatch("levels of a view's features", level + 1, count))
}

impl ViewObjective for Equivariance {
    fn draw(&self, random: &Random) -> Vec<DrawnView> {
        self.views.draw(random)
    }

    fn cosines(&self) -> Option<CosineRule> {
        Some(self.rule())
    }

    fn over_views<'a>(&'a self, base: &'a [Tensor]) -> Result<Option<Box<dyn ViewSum + 'a>>> {
        if self.pairing != Pairing::Anchor {
            return Ok(None);
        }
        let level = |map: &'a Tensor| {
            let form = map.extents("features")?;
            let anchor = Anchor::new(Cow::Borrowed(map.data()), form.cells(), self.kept_cells(form.cells()));
            Ok((form, anchor))
        };
        Ok(Some(Box::new(UndoneCosines { levels: base.iter().map(level).collect::<Result<_>>()? })))
    }

    fn compare(&self, base: &[Tensor], seen: &[Seen]) -> Result<Compared> {
        match self.over_views(base)? {
            Some(sum) => compare_in_turn(sum, seen),
            None => over_levels(base, seen, |level, map| self.all_pairs(map, level, seen)),
        }
    }
}

/// Each view's features, undone, with the image's own.
struct UndoneCosines<'a> {
    levels: Vec<(Extents, Anchor<'a>)>,
}

impl ViewSum for UndoneCosines<'_> {
    fn share(&self, _: usize, seen: &Seen, want_cotangents: bool) -> Result<ViewShare> {
        let mut share = (Vec::new(), Vec::new());
        for (level, (form, anchor)) in self.levels.iter().enumerate() {
            let (undo, extents, map) = undone(seen, level, *form)?;
            let pair = anchor.pair(undo.apply(map.data(), extents.channels), Some(undo.mask()));
            if want_cotangents {
                share.0.push(undo.pullback(&anchor.on_view(&pair), extents.channels));
            }
            share.1.push(pair);
        }
        Ok(ViewShare { cotangents: share.0, rest: Rest::Pairs(share.1) })
    }

    fn add(&mut self, share: ViewShare) {
        add_pairs(self.levels.iter_mut().map(|(_, anchor)| anchor), &share);
    }

    fn finish(self: Box<Self>) -> Result<(f64, Vec<Cotangent>)> {
        Ok(finished(self.levels.into_iter().map(|(_, anchor)| anchor)))
    }
}

fn add_pairs<'s, 'a: 's>(anchors: impl Iterator<Item = &'s mut Anchor<'a>>, share: &ViewShare) {
    if let Rest::Pairs(pairs) = &share.rest {
        anchors.zip(pairs).for_each(|(anchor, pair)| anchor.add(pair));
    }
}

fn finished<'a>(anchors: impl Iterator<Item = Anchor<'a>>) -> (f64, Vec<Cotangent>) {
    let (mut value, mut cotangents) = (0.0, Vec::new());
    for (part, cotangent) in anchors.map(Anchor::finish) {
        value += part;
        cotangents.push(cotangent);
    }
    (value, cotangents)
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
    fn draw(&self, random: &Random) -> Vec<DrawnView> {
        self.views.draw(random)
    }

    fn cosines(&self) -> Option<CosineRule> {
        let all_pairs = self.pairing == Pairing::AllPairs;
        Some(CosineRule { pooled: true, all_pairs, cells: 1.0, cell_seed: 0 })
    }

    fn over_views<'a>(&'a self, base: &'a [Tensor]) -> Result<Option<Box<dyn ViewSum + 'a>>> {
        if self.pairing != Pairing::Anchor {
            return Ok(None);
        }
        let level = |map: &Tensor| {
            let pooled = Pooled::of(std::slice::from_ref(map))?;
            let anchor = Anchor::new(Cow::Owned(pooled.values().to_vec()), 1, None);
            Ok((pooled, anchor))
        };
        Ok(Some(Box::new(PooledCosines { levels: base.iter().map(level).collect::<Result<_>>()? })))
    }

    fn compare(&self, base: &[Tensor], seen: &[Seen]) -> Result<Compared> {
        match self.over_views(base)? {
            Some(sum) => compare_in_turn(sum, seen),
            None => over_levels(base, seen, |level, map| all_pooled_pairs(map, level, seen)),
        }
    }
}

/// Each view's features, averaged, with the image's own.
struct PooledCosines {
    levels: Vec<(Pooled, Anchor<'static>)>,
}

impl ViewSum for PooledCosines {
    fn share(&self, _: usize, seen: &Seen, want_cotangents: bool) -> Result<ViewShare> {
        let mut share = (Vec::new(), Vec::new());
        for (level, (own, anchor)) in self.levels.iter().enumerate() {
            let pooled = Pooled::of(std::slice::from_ref(level_of(seen, level)?))?;
            check_channels(own.values().len(), pooled.values().len())?;
            let pair = anchor.pair(pooled.values().to_vec(), None);
            if want_cotangents {
                share.0.extend(pooled.pullback(&anchor.on_view(&pair)));
            }
            share.1.push(pair);
        }
        Ok(ViewShare { cotangents: share.0, rest: Rest::Pairs(share.1) })
    }

    fn add(&mut self, share: ViewShare) {
        add_pairs(self.levels.iter_mut().map(|(_, anchor)| anchor), &share);
    }

    fn finish(self: Box<Self>) -> Result<(f64, Vec<Cotangent>)> {
        let (pooled, anchors): (Vec<_>, Vec<_>) = self.levels.into_iter().unzip();
        let (value, cotangents) = finished(anchors.into_iter());
        Ok((value, pooled.iter().zip(&cotangents).flat_map(|(pooled, c)| pooled.pullback(c)).collect()))
    }
}

fn check_channels(own: usize, seen: usize) -> Result<()> {
    match own == seen {
        true => Ok(()),
        false => Err(Error::mismatch("channels of a view's features", own, seen)),
    }
}

/// One level's means, every two compared.
fn all_pooled_pairs(base: &Tensor, level: usize, seen: &[Seen]) -> Result<Compared> {
    let maps = std::iter::once(Ok(base)).chain(seen.iter().map(|one| level_of(one, level)));
    let pool = |map: Result<&Tensor>| Pooled::of(std::slice::from_ref(map?));
    let pooled = maps.map(pool).collect::<Result<Vec<_>>>()?;
    let channels = pooled[0].values().len();
    pooled.iter().try_for_each(|p| check_channels(channels, p.values().len()))?;
    let vectors: Vec<_> = pooled.iter().map(|p| (p.values(), [1.0].as_slice())).collect();
    let (value, cotangents) = cosines(&vectors, Extents { channels, height: 1, width: 1 });
    let mut spread = pooled.iter().zip(&cotangents).map(|(p, c)| p.pullback(c));
    let base = spread.next().unwrap_or_default();
    Ok(Compared { value, base, seen: spread.collect() })
}

/// Several feature maps, each compared by itself: values add up, cotangents come one after the other.
fn over_levels(
    levels: &[Tensor],
    seen: &[Seen],
    compare: impl Fn(usize, &Tensor) -> Result<Compared>,
) -> Result<Compared> {
    let mut total = Compared { value: 0.0, base: Vec::new(), seen: vec![Vec::new(); seen.len()] };
    for (level, map) in levels.iter().enumerate() {
        let compared = compare(level, map)?;
        total.value += compared.value;
        total.base.extend(compared.base);
        total.seen.iter_mut().zip(compared.seen).for_each(|(all, own)| all.extend(own));
    }
    Ok(total)
}

/// The sum of masked cosines over every two vectors `[channels, cells]`, and its gradient on each.
///
/// The first vector's mask applies to every pair (it holds the kept cells).
fn cosines(vectors: &[(&[f32], &[f32])], form: Extents) -> (f64, Vec<Vec<f32>>) {
    let squares = |v: &[f32]| v.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>();
    let norms: Vec<f64> = vectors.par_iter().map(|(v, _)| squares(v).sqrt()).collect();
    let length = |i: usize| norms[i] + 1e-10;
    let count = vectors.len();
    let pairs: Vec<_> = (0..count).flat_map(|i| (i + 1..count).map(move |j| (i, j))).collect();
    let mask = |i: usize, j: usize| -> Vec<f32> {
        let kept = vectors[0].1;
        kept.iter().zip(vectors[i].1).zip(vectors[j].1).map(|((k, a), b)| k * a * b).collect()
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
