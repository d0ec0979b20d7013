//! Attacks on a model or through a pipeline, judged by a fresh pass over the final eight-bit image.
//!
//! A pipeline is attacked knowingly: an attack that can aim through a defence does, with the identity estimator unless another is asked for.

use std::sync::Arc;

use evenkeel::attack::{AttackKind, worst_case};
use evenkeel::objective::{Equivariance, ViewObjective};
use evenkeel::settings::{Spec, Value};
use evenkeel::{Attack, Image, Model, Pipeline, Prediction, Scenario, Truth, ViewSet};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{OrRaise, refuse};
use crate::image::PyImage;
use crate::model::{PyModel, fitted};
use crate::pipeline::{PyPipeline, trace};
use crate::settings::spec;
use crate::truth::{Given, PyPrediction, truth_of};
use crate::work::outside;

/// The attacks of these names; of several, each takes the settings that it reads, and one must read each.
fn attacks(names: &[String], given: &Bound<'_, PyDict>, through: bool) -> PyResult<Vec<Attack>> {
    let several = names.len() > 1;
    let mut all = Vec::with_capacity(names.len());
    for name in names {
        let own = PyDict::new(given.py());
        let plain = Attack::named(name).or_raise()?;
        let reads = |spec: &Attack, knob: &str| spec.knobs().any(|k| k.is_called(knob));
        for (knob, value) in given {
            let word: String = knob.extract()?;
            let others = || names.iter().filter_map(|n| Attack::named(n).ok()).any(|a| reads(&a, &word));
            if !several || reads(&plain, &word) || !others() {
                own.set_item(knob, value)?;
            }
        }
        let mut attack: Spec<AttackKind> = spec(name, &own)?;
        let unasked = !given.contains("estimator")? && !attack.aims_through();
        if through && unasked && reads(&attack, "estimator") {
            attack.assign("estimator", &Value::from("identity")).or_raise()?;
        }
        if attack.aims_through() && !through {
            return Err(refuse(format!(
                "attack {name}: needs a pipeline with a defence or a vote to aim through"
            )));
        }
        all.push(attack);
    }
    Ok(all)
}

/// One image to be attacked.
struct Case {
    image: Image,
    truth: Option<Truth>,
    target: Option<Truth>,
}

/// What became of it.
struct Attacked {
    name: &'static str,
    image: Image,
    before: Prediction,
    after: Prediction,
    scores: [f64; 3],
    success: bool,
    distance: f64,
    trace: Vec<evenkeel::optimise::Record>,
}

/// What is attacked, and by what.
struct Assault {
    model: Arc<Model>,
    pipeline: Option<Pipeline>,
    attacks: Vec<Attack>,
    views: ViewSet,
}

impl Assault {
    fn on(&self, case: &Case) -> evenkeel::Result<Attacked> {
        let (model, image) = (&*self.model, &case.image);
        let (seed, budget) = (self.attacks[0].settings().seed, self.attacks[0].settings().budget());
        let fixed = model.network.fixed_size().is_some();
        let equivariance = Equivariance::new(self.views.clone().fitted(fixed, model.multiple));
        let raised =
            self.pipeline.as_ref().and_then(|p| p.defence.as_ref()).and_then(|d| d.objective.as_deref());
        let objective: &dyn ViewObjective = raised.unwrap_or(&equivariance);
        let truth = match &case.truth {
            Some(truth) => truth.clone(),
            None => model.predict(image)?.as_truth(),
        };
        let (target, pipeline) = (case.target.as_ref(), self.pipeline.as_ref());
        let scenario = Scenario { model, image, truth: &truth, target, pipeline, objective: Some(objective) };
        let before = scenario.deployed(image, seed)?;
        let attempt = worst_case(&scenario, &self.attacks, seed)?.into_worst();
        let score = |said: &Prediction| model.task.score(said, &truth);
        let scores = [score(&before), score(&attempt.prediction), attempt.outcome.score];
        let success = scenario.reached(&before, &attempt.prediction);
        let distance = budget.distance(image, &attempt.image);
        let (name, after, trace) = (attempt.name, attempt.prediction, attempt.outcome.trace);
        Ok(Attacked { name, image: attempt.image, before, after, scores, success, distance, trace })
    }
}

/// Attacks images; `model` is attacked bare unless a pipeline stands in front of it.
#[pyfunction]
#[pyo3(signature = (model, pipeline, images, truths, targets, names, given, views = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn attack<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyModel>,
    pipeline: Option<&Bound<'py, PyPipeline>>,
    images: Vec<Py<PyImage>>,
    truths: Vec<Option<Given<'py>>>,
    targets: Vec<Option<Given<'py>>>,
    names: Vec<String>,
    given: &Bound<'py, PyDict>,
    views: Option<&Bound<'py, crate::views::PyViews>>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    if names.is_empty() || truths.len() != images.len() || targets.len() != images.len() {
        return Err(refuse("attack: as many truths and targets as images and at least one name are needed"));
    }
    let pipeline = pipeline.map(|pipeline| pipeline.get().0.clone());
    let protects = |p: &Pipeline| {
        p.defence.as_ref().is_some_and(|d| !d.is_none()) || p.answer.as_ref().is_some_and(|a| !a.is_plain())
    };
    let attacks = attacks(&names, given, pipeline.as_ref().is_some_and(protects))?;
    let model = model.get().model.clone();
    let mut cases = Vec::with_capacity(images.len());
    for (image, (truth, target)) in images.iter().zip(truths.iter().zip(&targets)) {
        let fitted = fitted(&model, image).or_raise()?;
        let of = |given: &Option<Given<'_>>| {
            let frame = model.framing(image.get().0.size()).or_raise()?;
            given.as_ref().map(|given| truth_of(&model, given, &frame)).transpose()
        };
        let (truth, target) = (of(truth)?, of(target)?);
        cases.push(Case { image: fitted, truth, target });
    }
    let own = model.clone();
    let views = views.map_or_else(ViewSet::standard, |views| views.get().0.clone());
    let made = outside(py, progress, move |call| {
        let model = Arc::new(model.interruptible(call.stop()));
        let pipeline = pipeline.map(|mut pipeline| {
            pipeline.model = model.clone();
            pipeline
        });
        let assault = Assault { model, pipeline, attacks, views };
        call.each(cases, |case| assault.on(&case))
    })?;
    made.into_iter().map(|attacked| as_dict(py, &own, attacked)).collect()
}

fn as_dict<'py>(py: Python<'py>, model: &Arc<Model>, attacked: Attacked) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    dict.set_item("attack", attacked.name)?;
    let size = attacked.image.size();
    dict.set_item("image", Py::new(py, PyImage(attacked.image))?)?;
    dict.set_item("before", Py::new(py, PyPrediction::new(model, attacked.before, size)?)?)?;
    dict.set_item("prediction", Py::new(py, PyPrediction::new(model, attacked.after, size)?)?)?;
    let [before, after, unrounded] = attacked.scores;
    dict.set_item("score_before", before)?;
    dict.set_item("score", after)?;
    dict.set_item("score_before_rounding", unrounded)?;
    dict.set_item("success", attacked.success)?;
    dict.set_item("distance", attacked.distance)?;
    dict.set_item("trace", trace(&attacked.trace))?;
    Ok(dict)
}
