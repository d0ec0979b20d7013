//! A weighted sum of objectives at an image: its value and its gradient with respect to the image.
//!
//! One pass over the image itself serves every term; each view has one pass of its own. All passes run before any pullback, since
//! a comparison needs all features first; what waits meanwhile are the tapes, which are small. Views run side by side, those that
//! enlarge the image one after another (a pass uses all threads anyway, and two large ones at once would need twice the memory);
//! their gradients are added in the order of the views, so the sum does not depend on threads.

use rayon::prelude::*;

use super::{Loss, Progress, ViewObjective};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::network::{Network, Tape, Tensor};
use crate::random::Random;
use crate::view::DrawnView as View;

/// A view objective and its weight.
pub struct ViewTerm<'a> {
    /// The weight.
    pub weight: f64,
    /// The objective.
    pub objective: &'a dyn ViewObjective,
}

/// What to sum, and the names of the tensors it is made of.
#[derive(Default)]
pub struct Terms<'a> {
    /// The tensor of scores; empty if neither losses nor the answer are wanted.
    pub output: &'a str,
    /// The tensor of features.
    pub feature: &'a str,
    /// Losses on the scores, with weights.
    pub losses: Vec<(f64, &'a Loss)>,
    /// Objectives on the features of views, with weights.
    pub views: Vec<ViewTerm<'a>>,
}

/// What was found at an image.
#[derive(Clone, Debug)]
pub struct TermSum {
    /// The weighted sum.
    pub value: f64,
    /// Each term unweighted: losses first, then view objectives.
    pub parts: Vec<f64>,
    /// The gradient `[3, h, w]`, if it was wanted.
    pub gradient: Option<Vec<f32>>,
    /// The scores, if their tensor was named.
    pub scores: Option<Tensor>,
}

/// A pass that may lead back.
struct Pass<'n> {
    tensors: Vec<Tensor>,
    tape: Option<Box<dyn Tape + 'n>>,
}

fn pass<'n>(network: &'n dyn Network, image: &Image, names: &[&str], taped: bool) -> Result<Pass<'n>> {
    if taped {
        let traced = network.trace(image, names)?;
        Ok(Pass { tensors: traced.tensors, tape: Some(traced.tape) })
    } else {
        Ok(Pass { tensors: network.run(image, names)?, tape: None })
    }
}

fn add_scaled(into: &mut [f32], weight: f64, from: &[f32]) {
    into.iter_mut().zip(from).for_each(|(i, f)| *i += weight as f32 * f);
}

impl Terms<'_> {
    /// The sum at `image`. Views are drawn from `random`.
    ///
    /// # Errors
    /// If the network refuses the image or a view of it, or a term does not fit the network.
    pub fn evaluate(
        &self,
        network: &dyn Network,
        image: &Image,
        progress: Progress,
        random: &Random,
        want_gradient: bool,
    ) -> Result<TermSum> {
        let names: &[&str] = match (self.output.is_empty(), self.views.is_empty()) {
            (false, true) => &[self.output],
            (false, false) if self.output != self.feature => &[self.output, self.feature],
            _ => &[self.feature],
        };
        let base = pass(network, image, names, want_gradient)?;
        let (scores, features) = (&base.tensors[0], &base.tensors[names.len() - 1]);
        let mut parts = Vec::new();
        let mut value = 0.0;
        let mut cotangents: Vec<Vec<f32>> = base.tensors.iter().map(|t| vec![0.0; t.data().len()]).collect();
        for (weight, loss) in &self.losses {
            let (part, cotangent) = loss.evaluate(scores, progress)?;
            parts.push(part);
            value += weight * part;
            add_scaled(&mut cotangents[0], *weight, &cotangent);
        }
        let mut gradient = vec![0.0; if want_gradient { image.pixels().len() } else { 0 }];
        for (i, term) in self.views.iter().enumerate() {
            let look = Look { network, feature: self.feature, image, taped: want_gradient };
            let (part, on_base, on_image) = look.term(term, features, &random.fork(i as u64))?;
            parts.push(part);
            value += term.weight * part;
            add_scaled(&mut cotangents[names.len() - 1], term.weight, &on_base);
            add_scaled(&mut gradient, 1.0, &on_image);
        }
        if let Some(tape) = &base.tape {
            let pairs: Vec<(usize, &[f32])> = cotangents.iter().map(Vec::as_slice).enumerate().collect();
            add_scaled(&mut gradient, 1.0, &tape.pullback(&pairs)?);
            if !gradient.iter().all(|g| g.is_finite()) {
                return Err(Error::NotFinite("the gradient".into()));
            }
        }
        if !value.is_finite() {
            return Err(Error::NotFinite("the objective".into()));
        }
        let scores = base.tensors.into_iter().next().filter(|_| !self.output.is_empty());
        Ok(TermSum { value, parts, gradient: want_gradient.then_some(gradient), scores })
    }
}

/// A look at one image through the views of one term.
struct Look<'a> {
    network: &'a dyn Network,
    feature: &'a str,
    image: &'a Image,
    taped: bool,
}

/// Does the work for every item, the marked ones one after another and then the others side by side; results keep their places.
fn in_turn<T: Send, R: Send>(
    items: Vec<T>,
    marked: &[bool],
    work: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    let (first, rest): (Vec<_>, Vec<_>) = items.into_iter().enumerate().partition(|(i, _)| marked[*i]);
    let numbered = |(i, item)| work(item).map(|result| (i, result));
    let mut all = first.into_iter().map(numbered).collect::<Result<Vec<_>>>()?;
    all.extend(rest.into_par_iter().map(numbered).collect::<Result<Vec<_>>>()?);
    all.sort_by_key(|(i, _)| *i);
    Ok(all.into_iter().map(|(_, result)| result).collect())
}

impl Look<'_> {
    /// Whether a view shows twice as many pixels as the image has, or more.
    fn enlarges(&self, view: &View) -> bool {
        view.enlarges(self.image.size())
    }

    /// The term's value, its cotangent on the image's own features, and what its views lead back to the image, weighted.
    fn term(&self, term: &ViewTerm<'_>, base: &Tensor, random: &Random) -> Result<(f64, Vec<f32>, Vec<f32>)> {
        let views = term.objective.draw(random);
        let large: Vec<bool> = views.iter().map(|view| self.enlarges(view)).collect();
        let passes = in_turn(views, &large, |view| {
            let mut pass = pass(self.network, &view.apply(self.image), &[self.feature], self.taped)?;
            let features = pass.tensors.remove(0);
            Ok(((view, features), pass.tape))
        })?;
        let (seen, tapes): (Vec<(View, Tensor)>, Vec<_>) = passes.into_iter().unzip();
        let compared = term.objective.compare(self.image.size(), base, &seen)?;
        if !self.taped {
            return Ok((compared.value, compared.base, Vec::new()));
        }
        let ways: Vec<_> = tapes.into_iter().zip(&seen).zip(compared.seen).collect();
        let gradients = in_turn(ways, &large, |((tape, (view, _)), cotangent)| {
            let tape = tape.expect("a taped pass has a tape");
            let on_view = tape.pullback(&[(0, &cotangent)])?;
            Ok(view.pull_apply(self.image, &on_view))
        })?;
        let mut total = vec![0.0; self.image.pixels().len()];
        gradients.iter().for_each(|g| add_scaled(&mut total, term.weight, g));
        Ok((compared.value, compared.base, total))
    }
}
