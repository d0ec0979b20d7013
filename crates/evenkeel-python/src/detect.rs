//! Detection scores, and thresholds calibrated on clean images.

use std::ffi::CString;
use std::path::PathBuf;

use evenkeel::Error;
use evenkeel::detect::{
    Calibration, Detection, Detector, DetectorKind, ErrorEstimate, EstimateRule, Interval,
};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{OrRaise, refuse};
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

/// What decides how images are scored: a calibration, or an entry of the table with the bias of its estimate.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Scoring<'py> {
    detector: Named<'py>,
    calibration: Option<Bound<'py, PyCalibration>>,
    bias: Option<f64>,
    delta: f64,
    head: Option<PathBuf>,
    bank: Option<PathBuf>,
}

impl Scoring<'_> {
    fn detector(&self, model: &PyModel) -> PyResult<Detector> {
        let heads = |name: &str| heads(model, name, self.head.as_ref(), self.bank.as_ref());
        match &self.calibration {
            Some(calibration) => {
                let calibration = &calibration.get().0;
                calibration.detector(&model.model, heads(&calibration.score)?).or_raise()
            }
            None => {
                let (name, given) = &self.detector;
                spec::<DetectorKind>(name, given)?.build(&model.model, heads(name)?).or_raise()
            }
        }
    }

    /// How errors are estimated, where the task has an estimate.
    fn estimate(&self, model: &PyModel) -> PyResult<Option<EstimateRule>> {
        let fitted = self.calibration.as_ref().map(|c| c.get().0.estimate_rule(self.delta));
        let plain = || EstimateRule { bias: self.bias, ..EstimateRule::plain(self.delta) };
        let estimates = model.model.task.kind().estimates_error;
        Ok(fitted.transpose().or_raise()?.flatten().or_else(|| estimates.then(plain)))
    }
}

/// What is found about each image, and the name of the detector.
#[pyfunction]
#[pyo3(signature = (model, images, scoring, progress = None))]
pub(crate) fn detect<'py>(
    py: Python<'py>,
    model: &Bound<'py, PyModel>,
    images: Vec<Py<PyImage>>,
    scoring: Scoring<'py>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let own = model.get();
    let (detector, estimate) = (scoring.detector(own)?, scoring.estimate(own)?);
    let threshold = scoring.calibration.as_ref().map(|c| c.get().0.threshold);
    let model = own.model.clone();
    let seen = outside(py, progress, move |call| {
        let model = model.interruptible(call.stop());
        call.each(images, |image| detector.detect(&model, &fitted(&model, &image)?, estimate.as_ref()))
    })?;
    seen.into_iter().map(|seen| told(py, seen, threshold)).collect()
}

fn told(py: Python<'_>, seen: Detection, threshold: Option<f64>) -> PyResult<Bound<'_, PyDict>> {
    let alarm = threshold.map(|threshold| seen.score > threshold);
    let estimate = match alarm {
        Some(true) => seen.estimate.map(ErrorEstimate::alarmed),
        _ => seen.estimate,
    };
    let dict = PyDict::new(py);
    dict.set_item("score", seen.score)?;
    dict.set_item("threshold", threshold)?;
    dict.set_item("alarm", alarm)?;
    dict.set_item("expected_error", estimate.as_ref().map(|e| e.error))?;
    dict.set_item("error_interval", estimate.as_ref().and_then(interval))?;
    Ok(dict)
}

/// What the error lies between, if that is promised.
pub(crate) fn interval(estimate: &ErrorEstimate) -> Option<(f64, f64)> {
    match estimate.interval {
        Interval::Within { low, high, .. } => Some((low, high)),
        _ => None,
    }
}

/// A threshold from clean images; with truths the error estimate is fitted as well.
#[pyfunction]
#[pyo3(signature = (model, images, scoring, false_alarms, truths = None, progress = None))]
pub(crate) fn calibrate(
    py: Python<'_>,
    model: &Bound<'_, PyModel>,
    images: Vec<Py<PyImage>>,
    scoring: Scoring<'_>,
    false_alarms: f64,
    truths: Option<Vec<Given<'_>>>,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<PyCalibration> {
    let (detector, delta, model) = (scoring.detector(model.get())?, scoring.delta, model.get().model.clone());
    if truths.is_some() && !model.task.kind().estimates_error {
        let task = model.task.name();
        return Err(refuse(format!(
            "truths: the error estimate is about cells, which the task {task} does not have"
        )));
    }
    let mut parts = Vec::with_capacity(images.len());
    for (place, image) in images.into_iter().enumerate() {
        let fitted = fitted(&model, &image).or_raise()?;
        let given = truths.as_ref().and_then(|truths| truths.get(place));
        let frame = model.framing(image.get().0.size()).or_raise()?;
        let truth = given.map(|given| truth_of(&model, given, &frame)).transpose()?;
        parts.push((fitted, truth));
    }
    let labelled = truths.is_some();
    let (made, doubt) = outside(py, progress, move |call| {
        let under_flag = model.interruptible(call.stop());
        let seen = call.each(parts, |(image, truth)| {
            let seen = detector.evaluate(&under_flag, &image, truth.is_some())?;
            let error = truth.as_ref().zip(seen.outputs).map(|(t, outputs)| outputs.labelled(&under_flag, t));
            Ok((seen.score, error.transpose()?.flatten()))
        })?;
        let scores: Vec<f64> = seen.iter().map(|(score, _)| *score).collect();
        let errors: Vec<_> = seen.into_iter().filter_map(|(_, error)| error).collect();
        let calibration = Calibration::new(&model, &detector, &scores, false_alarms)?;
        let doubt = calibration.out_of_reach(&model, &detector, &scores);
        let calibration = match labelled {
            false => calibration,
            true => calibration.with_estimate(EstimateRule::fitted(&errors, delta)?),
        };
        Ok::<_, Error>((calibration, doubt))
    })?;
    if let Some(doubt) = doubt {
        let words = CString::new(doubt).unwrap_or_default();
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), &words, 1)?;
    }
    Ok(PyCalibration(made))
}
