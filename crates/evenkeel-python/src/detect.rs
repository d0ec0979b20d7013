//! Detection scores, and thresholds calibrated on clean images.

use std::path::PathBuf;

use evenkeel::detect::{Calibration, DELTA, DetectorKind, EstimateRule, Outputs, ViewOutputs};
use evenkeel::{Error, Random};
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::image::PyImage;
use crate::model::{PyModel, fitted, heads};
use crate::pipeline::Named;
use crate::settings::spec;
use crate::truth::{Given, truth_of};
use crate::work::outside;

/// A threshold from clean images.
#[pyclass(name = "Calibration", module = "evenkeel", frozen)]
pub(crate) struct PyCalibration(pub(crate) Calibration);

#[pymethods]
impl PyCalibration {
    /// Scores above this raise the alarm.
    #[getter]
    fn threshold(&self) -> f64 {
        self.0.threshold
    }

    /// The detector that gave the scores.
    #[getter]
    fn detector(&self) -> &str {
        &self.0.score
    }

    /// The share of clean images that may raise an alarm.
    #[getter]
    fn false_alarm_rate(&self) -> f64 {
        self.0.false_alarm_rate
    }

    /// How many clean images there were.
    #[getter]
    fn images(&self) -> usize {
        self.0.images
    }

    /// The bias of the error estimate, if labels were given.
    #[getter]
    fn bias(&self) -> Option<f64> {
        self.0.bias
    }

    /// Writes it as a TOML file, as `evenkeel detect --calibrate` does.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        self.0.save(&path).or_raise()
    }

    fn __repr__(&self) -> String {
        let Calibration { score, threshold, images, .. } = &self.0;
        format!("Calibration(detector='{score}', threshold={threshold:.6}, images={images})")
    }
}

/// Reads a calibration that was made for a model.
#[pyfunction]
pub(crate) fn load_calibration(path: PathBuf, model: &Bound<'_, PyModel>) -> PyResult<PyCalibration> {
    Calibration::load(&path, &model.get().model).or_raise().map(PyCalibration)
}

/// Score and expected error of each image.
type Detections = Vec<(f64, Option<f64>)>;

/// The detection scores of images, with the error estimate where the task has one.
#[pyfunction]
#[pyo3(signature = (model, images, detector, bias, delta, head = None, bank = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn detect(
    py: Python<'_>,
    model: &Bound<'_, PyModel>,
    images: Vec<Py<PyImage>>,
    detector: Named<'_>,
    bias: Option<f64>,
    delta: f64,
    head: Option<PathBuf>,
    bank: Option<PathBuf>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<Detections> {
    let (name, given) = detector;
    let own = model.get();
    let heads = heads(own, &name, head.as_ref(), bank.as_ref())?;
    let detector = spec::<DetectorKind>(&name, &given)?.build(&own.model, heads).or_raise()?;
    let model = own.model.clone();
    let estimate =
        model.task.kind().estimates_error.then(|| EstimateRule { bias, ..EstimateRule::plain(delta) });
    outside(py, progress, move |call| {
        let model = model.interruptible(call.stop());
        call.each(images, |image| {
            let seen = detector.detect(&model, &fitted(&model, &image)?, estimate.as_ref())?;
            Ok((seen.score, seen.estimate.map(|e| e.error)))
        })
    })
}

/// A threshold from clean images; with truths the error estimate is fitted as well.
#[pyfunction]
#[pyo3(signature = (model, images, detector, false_alarms, truths = None, head = None, bank = None, progress = None))]
#[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
pub(crate) fn calibrate(
    py: Python<'_>,
    model: &Bound<'_, PyModel>,
    images: Vec<Py<PyImage>>,
    detector: Named<'_>,
    false_alarms: f64,
    truths: Option<Vec<Given<'_>>>,
    head: Option<PathBuf>,
    bank: Option<PathBuf>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyCalibration> {
    let (name, given) = detector;
    let own = model.get();
    let heads = heads(own, &name, head.as_ref(), bank.as_ref())?;
    let detector = spec::<DetectorKind>(&name, &given)?.build(&own.model, heads).or_raise()?;
    let model = own.model.clone();
    let mut parts = Vec::with_capacity(images.len());
    for (place, image) in images.into_iter().enumerate() {
        let fitted = fitted(&model, &image).or_raise()?;
        let given = truths.as_ref().and_then(|truths| truths.get(place));
        let frame = model.framing(image.get().0.size()).or_raise()?;
        let truth = given.map(|given| truth_of(&model, given, &frame)).transpose()?;
        parts.push((fitted, truth));
    }
    let made = outside(py, progress, move |call| {
        let under_flag = model.interruptible(call.stop());
        let seen = call.each(parts, |(image, truth)| {
            let score = detector.score(&under_flag, &image)?;
            let Some(truth) = truth else { return Ok((score, None)) };
            let views = detector.views.draw(&Random::new(detector.seed));
            let outputs = ViewOutputs::at(&under_flag, &image, &views, Outputs::Softmax)?;
            Ok((score, outputs.labelled(&under_flag, &truth)?))
        })?;
        let scores: Vec<f64> = seen.iter().map(|(score, _)| *score).collect();
        let errors: Vec<_> = seen.into_iter().filter_map(|(_, error)| error).collect();
        let calibration = Calibration::new(&model, &detector, &scores, false_alarms)?;
        Ok::<_, Error>(match errors.is_empty() {
            true => calibration,
            false => calibration.with_estimate(EstimateRule::fitted(&errors, DELTA)?),
        })
    })?;
    Ok(PyCalibration(made))
}
