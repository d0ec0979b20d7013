//! The passes over the views of one term for a network that prefers several images in a call, such as a framework's module.
//!
//! The views of a step go into one call, within a bound on their pixels, and their cotangents are led back together. Shares and gradients are
//! added in the order of the views, so a network whose answers do not depend on the others of their call gives the same bytes either way.

use rayon::prelude::*;

use super::passes::{TermValue, ViewPasses, add_scaled, pixels};
use super::{Cotangent, Seen, ViewSum, ViewTerm};
use crate::error::Result;
use crate::image::Image;
use crate::network::{BatchTape, Tensor, TracedBatch};
use crate::view::Placed;

/// Views go into one call while they have no more pixels than this together.
pub(super) const BATCHED_PIXELS: usize = 1 << 22;

/// The features of several views, and the way back.
struct Batch<'n> {
    tensors: Vec<Vec<Tensor>>,
    tape: Option<Box<dyn BatchTape + 'n>>,
}

impl From<(&Placed, Vec<Tensor>)> for Seen {
    fn from((view, features): (&Placed, Vec<Tensor>)) -> Self {
        Self { view: view.clone(), features }
    }
}

impl ViewPasses<'_> {
    /// The features of views from one call, and the way back if a gradient is wanted.
    fn see_batch<'n>(&'n self, views: &[Placed]) -> Result<Batch<'n>> {
        let images: Vec<Image> = views.par_iter().map(|view| view.apply(self.image)).collect();
        let (images, names) = (images.iter().collect::<Vec<_>>(), self.feature.list());
        if !self.want_gradient {
            return Ok(Batch { tensors: self.network.run(&images, &names)?, tape: None });
        }
        let TracedBatch { tensors, tape } = self.network.trace_batch(&images, &names)?;
        Ok(Batch { tensors, tape: Some(tape) })
    }

    /// What views show, from one call without a tape.
    pub(super) fn seen_together(&self, views: &[Placed]) -> Result<Vec<Seen>> {
        let untaped = ViewPasses { want_gradient: false, ..*self };
        let Batch { tensors, .. } = untaped.see_batch(views)?;
        Ok(views.iter().zip(tensors).map(Seen::from).collect())
    }

    /// What cotangents on the views' features lead back to the image, for each view.
    fn lead_batch_back(
        &self,
        tape: Option<Box<dyn BatchTape + '_>>,
        views: &[Placed],
        on_views: Vec<Vec<Cotangent>>,
    ) -> Result<Vec<Vec<f32>>> {
        let Some(tape) = tape else { return Ok(Vec::new()) };
        let numbered = on_views.into_iter().map(|on| on.into_iter().enumerate().collect()).collect();
        let back = tape.pullback(numbered)?;
        drop(tape);
        Ok(views.par_iter().zip(&back).map(|(view, back)| view.pull_apply(self.image, back)).collect())
    }

    /// The sum over views, as many views in a call as the bound allows.
    pub(super) fn in_batches(
        &self,
        weight: f64,
        mut sum: Box<dyn ViewSum + '_>,
        views: Vec<Placed>,
    ) -> Result<TermValue> {
        let mut gradient = self.gradient();
        let mut place = 0;
        while place < views.len() {
            let mut together = 0;
            let fits = |view: &&Placed| {
                together += pixels(view);
                together <= BATCHED_PIXELS
            };
            let count = views[place..].iter().take_while(fits).count().max(1);
            let group = &views[place..place + count];
            let Batch { tensors, tape } = self.see_batch(group)?;
            let seen: Vec<Seen> = group.iter().zip(tensors).map(Seen::from).collect();
            let share = |(i, one): (usize, &Seen)| sum.share(place + i, one, self.want_gradient);
            let mut shares = seen.par_iter().enumerate().map(share).collect::<Result<Vec<_>>>()?;
            drop(seen);
            let on_views = shares.iter_mut().map(|share| std::mem::take(&mut share.cotangents)).collect();
            shares.into_iter().for_each(|share| sum.add(share));
            for back in self.lead_batch_back(tape, group, on_views)? {
                add_scaled(&mut gradient, weight, &back);
            }
            place += count;
        }
        let (value, base) = sum.finish()?;
        Ok(TermValue { value, base, gradient })
    }

    /// All views compared at once, their features from one call.
    pub(super) fn in_one_batch(
        &self,
        term: &ViewTerm<'_>,
        base: &[Tensor],
        views: Vec<Placed>,
    ) -> Result<TermValue> {
        let Batch { tensors, tape } = self.see_batch(&views)?;
        let seen: Vec<Seen> = views.iter().zip(tensors).map(Seen::from).collect();
        let compared = term.objective.compare(base, &seen)?;
        drop(seen);
        let mut gradient = self.gradient();
        for back in self.lead_batch_back(tape, &views, compared.seen)? {
            add_scaled(&mut gradient, term.weight, &back);
        }
        Ok(TermValue { value: compared.value, base: compared.base, gradient })
    }
}
