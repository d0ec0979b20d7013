//! FAB: the least change that reaches the decision boundary, for classifiers.
//!
//! The objective finds the nearest boundary: for every class l ≠ y, |z_l − z_y| over the dual norm of the gradient of the difference.
//! One traced pass serves all classes; with many, only the best few are tried.

use super::family::single_class;
use super::minimal::{finish, search};
use super::{Aim, AttackSettings, Outcome, Scenario};
use crate::budget::{Norm, length};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::network::Network;
use crate::objective::Progress;
use crate::optimise::{Evaluation, Objective, Plan, Start, optimise};
use crate::random::Random;
use crate::step::Boundary;

struct NearestBoundary<'a> {
    aim: Aim<'a>,
    label: usize,
    norm: Norm,
    /// How many other classes are tried, best first.
    tried: usize,
}

impl NearestBoundary<'_> {
    fn dual(&self, w: &[f32]) -> f64 {
        match self.norm {
            Norm::Linf => w.iter().map(|v| f64::from(v.abs())).sum(),
            Norm::L2 => length(w),
        }
    }
}

impl Objective for NearestBoundary<'_> {
    fn evaluate(
        &self,
        image: &Image,
        _: Progress,
        random: &Random,
        want_gradient: bool,
    ) -> Result<Evaluation> {
        self.aim.mean(image, random, |network| self.on(network, image, want_gradient))
    }
}

impl NearestBoundary<'_> {
    fn on(&self, network: &dyn Network, image: &Image, want_gradient: bool) -> Result<Evaluation> {
        let model = self.aim.scenario.model;
        let traced = network.trace_one(image, &model.output.list())?;
        let scores = &traced.tensors[0];
        let z = scores.data();
        let score = self.aim.scenario.score(scores)?;
        let mut others: Vec<usize> = (0..z.len()).filter(|l| *l != self.label).collect();
        others.sort_by(|a, b| z[*b].total_cmp(&z[*a]).then(a.cmp(b)));
        let lead = others.first().map_or(0.0, |l| f64::from(z[*l] - z[self.label]));
        if !want_gradient || lead > 0.0 {
            let gradient = want_gradient.then(|| vec![0.0; image.pixels().len()]);
            return Ok(Evaluation { value: lead, gradient, score, loss: None });
        }
        let mut nearest: Option<(f64, f64, Vec<f32>)> = None;
        for &other in others.iter().take(self.tried) {
            let mut cotangent = vec![0.0; z.len()];
            cotangent[other] = 1.0;
            cotangent[self.label] = -1.0;
            let w = traced.tape.pullback(vec![(0, cotangent)])?;
            let difference = f64::from(z[other] - z[self.label]);
            let distance = difference.abs() / (self.dual(&w) + 1e-12);
            if nearest.as_ref().is_none_or(|n| distance < n.0) {
                nearest = Some((distance, difference, w));
            }
        }
        let (_, value, gradient) = nearest.unwrap_or((0.0, 0.0, vec![0.0; image.pixels().len()]));
        Ok(Evaluation { value, gradient: Some(gradient), score, loss: None })
    }
}

pub(super) fn fab(scenario: &Scenario<'_>, settings: &AttackSettings) -> Result<Outcome> {
    let label = single_class(scenario.truth, "fab")?;
    let aim = Aim::new(scenario, settings);
    if scenario.model.scores(scenario.image)?.data().len() < 2 {
        return Err(Error::setting("attack fab", "needs at least 2 classes"));
    }
    let objective = NearestBoundary { aim, label, norm: settings.norm, tried: settings.targets.max(9) };
    let plan = search(&aim, settings)?;
    let mut best = optimise(&objective, scenario.image, &plan, &|| Box::new(Boundary))?;
    let random = Random::new(settings.seed);
    for restart in 1..settings.restarts {
        let start = settings.budget().start(scenario.image, &mut random.fork(restart as u64));
        let plan = Plan { start: Start::From(start), ..plan.clone() };
        let again = optimise(&objective, scenario.image, &plan, &|| Box::new(Boundary))?;
        let far = |image: &Image| settings.budget().distance(scenario.image, image);
        if (again.score, far(&again.image)) < (best.score, far(&best.image)) {
            best = again;
        }
    }
    finish(scenario, settings, best.image, best.trace)
}
