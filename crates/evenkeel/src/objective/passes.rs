//! The passes over the views of one term, within bounds on what is held at once.
//!
//! Where the objective is a sum over views ([`ViewSum`]), a view is traced, compared, led back to the image and dropped before the next;
//! small views run side by side. Otherwise all features are needed first: tapes are kept as long as they are small, and the other views are
//! traced again once the cotangents are known. Gradients are added in the order of the views and every pass gives the same bytes with
//! or without a tape, so the sum depends neither on threads nor on these bounds.

use rayon::prelude::*;

use super::batches::BATCHED_PIXELS;
use super::{Cotangent, Seen, ViewSum, ViewTerm};
use crate::error::Result;
use crate::image::Image;
use crate::network::{Network, Tape, Tensor, TensorNames};
use crate::random::Random;
use crate::view::Placed;

/// Views run side by side while they have no more pixels than this together; larger ones fill the threads by themselves.
const SIDE_BY_SIDE_PIXELS: usize = 1 << 17;
/// Tapes of views are kept while these have no more pixels than this together.
const KEPT_PIXELS: usize = 1 << 18;

/// A pass that may lead back.
pub(super) struct Pass<'n> {
    pub(super) tensors: Vec<Tensor>,
    pub(super) tape: Option<Box<dyn Tape + 'n>>,
}

pub(super) fn pass<'n>(
    network: &'n dyn Network,
    image: &Image,
    names: &[&str],
    taped: bool,
) -> Result<Pass<'n>> {
    if taped {
        let traced = network.trace_one(image, names)?;
        Ok(Pass { tensors: traced.tensors, tape: Some(traced.tape) })
    } else {
        Ok(Pass { tensors: network.run_one(image, names)?, tape: None })
    }
}

pub(super) fn add_scaled(into: &mut [f32], weight: f64, from: &[f32]) {
    into.iter_mut().zip(from).for_each(|(i, f)| *i += weight as f32 * f);
}

/// What a term is at an image.
pub(super) struct TermValue {
    /// The value, unweighted.
    pub(super) value: f64,
    /// The cotangents on the image's own features, unweighted.
    pub(super) base: Vec<Cotangent>,
    /// What the views lead back to the image, weighted; empty if no gradient is wanted.
    pub(super) gradient: Vec<f32>,
}

/// One image, to be seen through the views of a term.
#[derive(Clone, Copy)]
pub(super) struct ViewPasses<'a> {
    pub(super) network: &'a dyn Network,
    pub(super) feature: &'a TensorNames,
    pub(super) image: &'a Image,
    pub(super) want_gradient: bool,
}

/// A view with its place among the term's.
type Numbered = (usize, Placed);

pub(super) fn pixels(view: &Placed) -> usize {
    let (height, width) = view.seen_size();
    height * width
}

/// The views in order, taken apart into those that run side by side.
fn groups(views: Vec<Placed>) -> Vec<Vec<Numbered>> {
    let most = rayon::current_num_threads();
    let mut groups: Vec<Vec<Numbered>> = Vec::new();
    let mut together = 0;
    for (place, view) in views.into_iter().enumerate() {
        together += pixels(&view);
        match groups.last_mut() {
            Some(group) if group.len() < most && together <= SIDE_BY_SIDE_PIXELS => group.push((place, view)),
            _ => {
                together = pixels(&view);
                groups.push(vec![(place, view)]);
            }
        }
    }
    groups
}

impl ViewPasses<'_> {
    /// The term, its views drawn from `random`.
    pub(super) fn term(&self, term: &ViewTerm<'_>, base: &[Tensor], random: &Random) -> Result<TermValue> {
        let drawn = term.objective.draw(random);
        let views: Vec<Placed> = drawn.iter().map(|view| view.placed(self.image.size())).collect();
        let batched = self.network.prefers_batches();
        if term.objective.teacher().is_some() {
            let untaped = ViewPasses { want_gradient: false, ..*self };
            return untaped.compared(term, base, views);
        }
        match term.objective.over_views(base)? {
            Some(sum) if batched => self.in_batches(term.weight, sum, views),
            Some(sum) => self.one_by_one(term.weight, sum, views),
            None => self.compared(term, base, views),
        }
    }

    /// All views compared at once.
    fn compared(&self, term: &ViewTerm<'_>, base: &[Tensor], views: Vec<Placed>) -> Result<TermValue> {
        let together = views.iter().map(pixels).sum::<usize>();
        match self.network.prefers_batches() && together <= BATCHED_PIXELS {
            true => self.in_one_batch(term, base, views),
            false => self.all_at_once(term, base, views),
        }
    }

    /// What views of an image show, without tapes, in the order of the views.
    pub(super) fn seen(&self, views: Vec<Placed>) -> Result<Vec<Seen>> {
        let together = views.iter().map(pixels).sum::<usize>();
        if self.network.prefers_batches() && together <= BATCHED_PIXELS {
            return self.seen_together(&views);
        }
        let mut seen = Vec::with_capacity(views.len());
        for group in groups(views) {
            let one = |(_, view): Numbered| {
                let features = self.see(&view, false)?.tensors;
                Ok(Seen { view, features })
            };
            seen.extend(group.into_par_iter().map(one).collect::<Result<Vec<_>>>()?);
        }
        Ok(seen)
    }

    pub(super) fn gradient(&self) -> Vec<f32> {
        vec![0.0; if self.want_gradient { self.image.pixels().len() } else { 0 }]
    }

    fn see<'n>(&'n self, view: &Placed, taped: bool) -> Result<Pass<'n>> {
        pass(self.network, &view.apply(self.image), &self.feature.list(), taped)
    }

    fn lead_back(&self, tape: Box<dyn Tape + '_>, view: &Placed, on: Vec<Cotangent>) -> Result<Vec<f32>> {
        let on_view = tape.pullback(on.into_iter().enumerate().collect())?;
        drop(tape);
        Ok(view.pull_apply(self.image, &on_view))
    }

    fn one_by_one(
        &self,
        weight: f64,
        mut sum: Box<dyn ViewSum + '_>,
        views: Vec<Placed>,
    ) -> Result<TermValue> {
        let mut gradient = self.gradient();
        for group in groups(views) {
            let one = |(place, view): Numbered| {
                let Pass { tensors, tape } = self.see(&view, self.want_gradient)?;
                let seen = Seen { view, features: tensors };
                let mut share = sum.share(place, &seen, self.want_gradient)?;
                let on_view = std::mem::take(&mut share.cotangents);
                let view = seen.view;
                drop(seen.features);
                let back = tape.map(|tape| self.lead_back(tape, &view, on_view)).transpose()?;
                Ok((share, back))
            };
            let shares = group.into_par_iter().map(one).collect::<Result<Vec<_>>>()?;
            for (share, back) in shares {
                sum.add(share);
                add_scaled(&mut gradient, weight, &back.unwrap_or_default());
            }
        }
        let (value, base) = sum.finish()?;
        Ok(TermValue { value, base, gradient })
    }

    fn all_at_once(&self, term: &ViewTerm<'_>, base: &[Tensor], views: Vec<Placed>) -> Result<TermValue> {
        let kept: Vec<bool> = views
            .iter()
            .scan(0, |sum, view| {
                *sum += pixels(view);
                Some(self.want_gradient && *sum <= KEPT_PIXELS)
            })
            .collect();
        let (mut seen, mut tapes) = (Vec::with_capacity(views.len()), Vec::new());
        for group in groups(views) {
            let one = |(place, view): Numbered| {
                let Pass { tensors, tape } = self.see(&view, kept[place])?;
                Ok((Seen { view, features: tensors }, tape))
            };
            for (one, tape) in group.into_par_iter().map(one).collect::<Result<Vec<_>>>()? {
                seen.push(one);
                tapes.push(tape);
            }
        }
        let compared = term.objective.compare(base, &seen)?;
        let mut gradient = self.gradient();
        if !self.want_gradient {
            return Ok(TermValue { value: compared.value, base: compared.base, gradient });
        }
        let views: Vec<Placed> = seen.into_iter().map(|seen| seen.view).collect();
        let mut ways = tapes.into_iter().zip(compared.seen);
        for group in groups(views) {
            let group: Vec<_> = group.into_iter().zip(ways.by_ref()).collect();
            let back = |((_, view), (tape, on_view)): (Numbered, (Option<Box<dyn Tape + '_>>, _))| {
                let again = || self.see(&view, true).map(|pass| pass.tape);
                match tape.map_or_else(again, |tape| Ok(Some(tape)))? {
                    Some(tape) => self.lead_back(tape, &view, on_view),
                    None => Ok(Vec::new()),
                }
            };
            for back in group.into_par_iter().map(back).collect::<Result<Vec<_>>>()? {
                add_scaled(&mut gradient, term.weight, &back);
            }
        }
        Ok(TermValue { value: compared.value, base: compared.base, gradient })
    }
}
