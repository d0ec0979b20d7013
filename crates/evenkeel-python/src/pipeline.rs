//! Pipelines: a model with a defence, an answer, a detector and a threshold in front of it; and what they make of images.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use evenkeel::answer::AnswerKind;
use evenkeel::defence::DefenceKind;
use evenkeel::detect::{DetectorKind, Outputs, ViewOutputs, instance_disagreement};
use evenkeel::task::Readout;
use evenkeel::{Error, Pipeline, Policy, Random, Verdict, ViewSet};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::detect::{PyCalibration, interval};
use crate::error::OrRaise;
use crate::image::{PyImage, array_of};
use crate::model::{PyModel, fitted, heads};
use crate::settings::spec;
use crate::truth::PyPrediction;
use crate::work::outside;

/// A model and what protects it.
#[pyclass(name = "Pipeline", module = "evenkeel._core", frozen)]
pub(crate) struct PyPipeline(pub(crate) Pipeline);

/// The name of an entry and what is set of it.
pub(crate) type Named<'py> = (String, Bound<'py, PyDict>);

/// What stands in front of a model.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Parts<'py> {
    defence: Option<Named<'py>>,
    answer: Option<Named<'py>>,
    detector: Option<Named<'py>>,
    calibration: Option<Bound<'py, PyCalibration>>,
    threshold: Option<f64>,
    delta: f64,
    seed: u64,
    head: Option<PathBuf>,
    bank: Option<PathBuf>,
}

#[pymethods]
impl PyPipeline {
    #[new]
    fn new(model: &Bound<'_, PyModel>, parts: Parts<'_>) -> PyResult<Self> {
        let own = model.get();
        let heads_for = |name: &str| heads(own, name, parts.head.as_ref(), parts.bank.as_ref());
        let mut pipeline = Pipeline::new(own.model.clone()).with_seed(parts.seed);
        if let Some((name, given)) = &parts.defence {
            let spec = spec::<DefenceKind>(name, given)?;
            pipeline = pipeline.with_defence(spec.build(&own.model, &heads_for(name)?).or_raise()?);
        }
        if let Some((name, given)) = &parts.answer {
            pipeline = pipeline.with_answer(spec::<AnswerKind>(name, given)?.build(&own.model).or_raise()?);
        }
        if let Some((name, given)) = &parts.detector {
            let spec = spec::<DetectorKind>(name, given)?;
            pipeline = pipeline.with_detector(spec.build(&own.model, heads_for(name)?).or_raise()?);
        }
        if let Some(calibration) = &parts.calibration {
            let calibration = &calibration.get().0;
            let detector = calibration.detector(&own.model, heads_for(&calibration.score)?).or_raise()?;
            pipeline = pipeline.with_detector(detector).with_threshold(calibration.threshold);
            pipeline.estimate = calibration.estimate_rule(parts.delta).or_raise()?;
        }
        pipeline.threshold = parts.threshold.or(pipeline.threshold);
        Ok(Self(pipeline))
    }

    /// The pipeline that a policy's file asks for, which was made for the model; with a sentence about it.
    #[staticmethod]
    fn of_policy(model: &Bound<'_, PyModel>, path: PathBuf) -> PyResult<(Self, String)> {
        let own = model.get();
        let policy = Policy::load(&path, &own.model).or_raise()?;
        let needs =
            policy.defence.as_ref().filter(|defence| defence.needs_head()).map(|defence| defence.name());
        let heads = heads(own, needs.unwrap_or_default(), None, None)?;
        Ok((Self(policy.pipeline(own.model.clone(), &heads).or_raise()?), policy.words()))
    }

    /// The threshold of the alarm.
    #[getter]
    fn threshold(&self) -> Option<f64> {
        self.0.threshold
    }

    /// What is made of each image.
    #[pyo3(signature = (images, seed = None, progress = None))]
    fn run<'py>(
        &self,
        py: Python<'py>,
        images: Vec<Py<PyImage>>,
        seed: Option<u64>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let (mut pipeline, seed) = (self.0.clone(), seed.unwrap_or(self.0.seed));
        let verdicts = outside(py, progress, move |call| {
            pipeline.model = Arc::new(pipeline.model.interruptible(call.stop()));
            call.each(images, |image| {
                let started = Instant::now();
                let verdict = pipeline.run_seeded(&fitted(&pipeline.model, &image)?, seed)?;
                Ok((verdict, image.get().0.size(), started.elapsed().as_secs_f64()))
            })
        })?;
        verdicts
            .into_iter()
            .map(|(verdict, size, seconds)| self.as_dict(py, verdict, size, seconds))
            .collect()
    }

    /// Where the views of an image disagree: the variance of the probability of its answer, a cell of the scores each; for objects, the share of views that see
    /// something else at a pixel.
    fn disagreement<'py>(&self, py: Python<'py>, image: Py<PyImage>) -> PyResult<Bound<'py, PyAny>> {
        let pipeline = self.0.clone();
        let ((height, width), values) = outside(py, None, move |_| {
            let model = &*pipeline.model;
            let (views, seed) = match &pipeline.detector {
                Some(detector) => (detector.views.clone(), detector.seed),
                None => (ViewSet::standard(), pipeline.seed),
            };
            let views = views.fitted(model.network.fixed_size().is_some(), model.multiple);
            let drawn = views.draw(&Random::new(seed));
            let image = fitted(model, &image)?;
            if model.task.readout() == Readout::Objects {
                return Ok((image.size(), instance_disagreement(model, &image, &drawn)?));
            }
            let outputs = ViewOutputs::at(model, &image, &drawn, Outputs::Softmax)?;
            Ok::<_, Error>((outputs.extents.size(), outputs.cell_variances()))
        })?;
        Ok(array_of(py, &[height, width], values)?.into_any())
    }
}

impl PyPipeline {
    fn as_dict<'py>(
        &self,
        py: Python<'py>,
        verdict: Verdict,
        size: (usize, usize),
        seconds: f64,
    ) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        dict.set_item("seconds", seconds)?;
        let prediction = PyPrediction::new(&self.0.model, verdict.prediction, size)?;
        dict.set_item("prediction", Py::new(py, prediction)?)?;
        dict.set_item("image", Py::new(py, PyImage(verdict.shown))?)?;
        dict.set_item("score", verdict.score)?;
        dict.set_item("threshold", self.0.threshold)?;
        dict.set_item("alarm", verdict.alarm)?;
        dict.set_item("defended", verdict.defended)?;
        dict.set_item("voted", verdict.voted)?;
        dict.set_item("trace", trace(&verdict.trace))?;
        dict.set_item("expected_error", verdict.estimate.as_ref().map(|e| e.error))?;
        dict.set_item("error_interval", verdict.estimate.as_ref().and_then(interval))?;
        let certificate = verdict.certificate.map(|c| (c.class, c.radius, c.probability, c.alpha));
        dict.set_item("certificate", certificate)?;
        Ok(dict)
    }
}

/// Restart, step, value, loss, score and distance of every evaluation.
pub(crate) fn trace(
    records: &[evenkeel::optimise::Record],
) -> Vec<(usize, usize, f64, Option<f64>, f64, f64)> {
    records.iter().map(|r| (r.restart, r.step, r.value, r.loss, r.score, r.distance)).collect()
}
