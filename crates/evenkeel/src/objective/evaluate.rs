//! A weighted sum of objectives at an image: its value and its gradient with respect to the image.
//!
//! One pass over the image itself serves every term; each view has a pass of its own (see `passes`). The image's own tape stays until
//! all terms have given their cotangents on its tensors, and is led back last.

use super::passes::{ViewPasses, add_scaled, pass};
use super::{Cotangent, Loss, Progress, ViewObjective};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::network::{Network, Tensor, TensorNames};
use crate::random::Random;

/// A view objective and its weight.
pub struct ViewTerm<'a> {
    /// The weight.
    pub weight: f64,
    /// The objective.
    pub objective: &'a dyn ViewObjective,
}

/// What to sum, and the names of the tensors it is made of.
pub struct Terms<'a> {
    /// The tensors of scores, if losses or the answer are wanted.
    pub output: Option<&'a TensorNames>,
    /// The tensors of features.
    pub feature: &'a TensorNames,
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
    /// The scores, if their tensors were named.
    pub scores: Option<Tensor>,
}

/// The tensors of one pass that serves scores and every term's features: each name once, and where scores and features stand among them.
#[derive(Default)]
pub(super) struct Request<'a> {
    pub(super) names: Vec<&'a str>,
    scores: Vec<usize>,
    /// One list for each view objective.
    features: Vec<Vec<usize>>,
}

impl<'a> Request<'a> {
    fn place(&mut self, name: &'a str) -> usize {
        self.names.iter().position(|own| *own == name).unwrap_or_else(|| {
            self.names.push(name);
            self.names.len() - 1
        })
    }

    pub(super) fn ask_scores(&mut self, output: &'a TensorNames) {
        self.scores = output.iter().map(|name| self.place(name)).collect();
    }

    /// The tensors of scores among those of the pass.
    pub(super) fn scores_of(&self, tensors: &[Tensor]) -> Vec<Tensor> {
        gathered(&self.scores, tensors)
    }
}

/// The tensors at these places; their values are shared.
fn gathered(places: &[usize], tensors: &[Tensor]) -> Vec<Tensor> {
    places.iter().map(|place| tensors[*place].clone()).collect()
}

/// The cotangents on the tensors of a pass; empty where nothing was added yet.
pub(super) struct OnTensors(Vec<Cotangent>);

impl OnTensors {
    pub(super) fn new(tensors: &[Tensor]) -> Self {
        Self(vec![Vec::new(); tensors.len()])
    }

    fn add(&mut self, place: usize, weight: f64, values: &[f32]) {
        match &mut self.0[place] {
            sum if sum.is_empty() => sum.extend(values.iter().map(|v| 0.0 + weight as f32 * v)),
            sum => add_scaled(sum, weight, values),
        }
    }

    /// The cotangents of all tensors, zeros where nothing was added.
    pub(super) fn all(mut self, tensors: &[Tensor]) -> Vec<(usize, Cotangent)> {
        self.0.iter_mut().zip(tensors).for_each(|(sum, tensor)| sum.resize(tensor.len(), 0.0));
        self.0.into_iter().enumerate().collect()
    }
}

impl Terms<'_> {
    fn request(&self) -> Request<'_> {
        let mut request = Request::default();
        if let Some(output) = self.output {
            request.ask_scores(output);
        }
        for term in &self.views {
            let places = self.compared_by(term).iter().map(|name| request.place(name)).collect();
            request.features.push(places);
        }
        if request.names.is_empty() {
            self.feature.iter().for_each(|name| _ = request.place(name));
        }
        request
    }

    /// The tensors that an objective compares.
    pub(super) fn compared_by<'t>(&'t self, term: &'t ViewTerm<'_>) -> &'t TensorNames {
        term.objective.tensors().unwrap_or(self.feature)
    }

    /// The weighted sum of the losses and each of them; their cotangents are added to those on the tensors of the pass.
    pub(super) fn add_losses(
        &self,
        scores: Option<&Tensor>,
        progress: Progress,
        request: &Request<'_>,
        tensors: &[Tensor],
        on_base: &mut OnTensors,
    ) -> Result<(f64, Vec<f64>)> {
        let (mut value, mut parts) = (0.0, Vec::new());
        for (weight, loss) in &self.losses {
            let missing = || Error::setting("losses", "need the tensors of scores");
            let (part, cotangent) = loss.evaluate(scores.ok_or_else(missing)?, progress)?;
            parts.push(part);
            value += weight * part;
            let mut rest = cotangent.as_slice();
            for place in &request.scores {
                let (own, after) = rest.split_at(tensors[*place].len().min(rest.len()));
                on_base.add(*place, *weight, own);
                rest = after;
            }
        }
        Ok((value, parts))
    }

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
        if let Some(made) = self.compared_there(network, image, progress, random, want_gradient)? {
            return Ok(made);
        }
        let request = self.request();
        let base = pass(network, image, &request.names, want_gradient)?;
        let scores = self.output.map(|_| Tensor::joined(request.scores_of(&base.tensors)));
        let mut on_base = OnTensors::new(&base.tensors);
        let (mut value, mut parts) =
            self.add_losses(scores.as_ref(), progress, &request, &base.tensors, &mut on_base)?;
        let mut gradient = vec![0.0; if want_gradient { image.pixels().len() } else { 0 }];
        for (i, (term, places)) in self.views.iter().zip(&request.features).enumerate() {
            let passes = ViewPasses { network, feature: self.compared_by(term), image, want_gradient };
            let features = gathered(places, &base.tensors);
            let seen = passes.term(term, &features, &random.fork(i as u64))?;
            parts.push(seen.value);
            value += term.weight * seen.value;
            places.iter().zip(&seen.base).for_each(|(p, own)| on_base.add(*p, term.weight, own));
            add_scaled(&mut gradient, 1.0, &seen.gradient);
        }
        if let Some(tape) = &base.tape {
            add_scaled(&mut gradient, 1.0, &tape.pullback(on_base.all(&base.tensors))?);
            if !gradient.iter().all(|g| g.is_finite()) {
                return Err(Error::NotFinite("the gradient".into()));
            }
        }
        if !value.is_finite() {
            return Err(Error::NotFinite("the objective".into()));
        }
        Ok(TermSum { value, parts, gradient: want_gradient.then_some(gradient), scores })
    }
}
