//! Data sets, rendered scenes and metrics.

use std::path::PathBuf;
use std::sync::Arc;

use evenkeel::LabelMap;
use evenkeel::task::instance::{Instance, Mask};
use evenkeel_data::coco_instances::{mask_of, rle_of};
use evenkeel_data::dataset::{Dataset, KINDS, Object, Preparation, Request, Subset, Truth, scenes};
use evenkeel_data::metric::instance::{DetectedInstance, InstanceScore, Region, TrueInstance};
use evenkeel_data::metric::{Bootstrap, IGNORE, METRICS, Ranking, SegmentationScore};
use numpy::{PyReadonlyArray1, PyReadonlyArray2};
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{OrRaise, refuse};
use crate::image::{PyImage, array_of};
use crate::truth::PyInstance;
use crate::work::{helped, outside};

/// A data set opened at a path.
#[pyclass(name = "Dataset", module = "evenkeel._core", frozen)]
pub(crate) struct PyDataset(Arc<Dataset>);

/// A sample: its name, its image, and its truth (a class, a label map, objects, a word or file for the task to read, or nothing).
type Sample<'py> = (String, PyImage, Option<Bound<'py, PyAny>>);

fn truth<'py>(py: Python<'py>, truth: Truth) -> PyResult<Option<Bound<'py, PyAny>>> {
    Ok(Some(match truth {
        Truth::Unlabelled => return Ok(None),
        Truth::Class(class) => class.into_pyobject(py)?.into_any(),
        Truth::Labels(map) => labels(py, &map)?,
        Truth::Given(text) => text.into_pyobject(py)?.into_any(),
        Truth::Objects(objects) => {
            let one = |object: &Object| {
                let mask = mask_of(&object.mask).or_raise()?;
                Ok(PyInstance(Instance::truth(object.class, mask)))
            };
            let countable = objects.iter().filter(|object| !object.crowd);
            countable.map(one).collect::<PyResult<Vec<_>>>()?.into_pyobject(py)?.into_any()
        }
    }))
}

fn labels<'py>(py: Python<'py>, map: &LabelMap) -> PyResult<Bound<'py, PyAny>> {
    Ok(array_of(py, &[map.height(), map.width()], map.labels().to_vec())?.into_any())
}

#[pymethods]
impl PyDataset {
    /// Opens the data set of a kind under a path; `size` is WIDTHxHEIGHT or `native`.
    #[staticmethod]
    #[pyo3(signature = (kind, path, split, classes, limit, every, seed, size))]
    #[expect(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn open(
        py: Python<'_>,
        kind: String,
        path: PathBuf,
        split: Option<String>,
        classes: Option<usize>,
        limit: Option<usize>,
        every: Option<usize>,
        seed: Option<u64>,
        size: Option<&str>,
    ) -> PyResult<Self> {
        let preparation = size.map(Preparation::parse).transpose().or_raise()?;
        let request = Request { split, classes, subset: Subset { every, limit, seed }, preparation };
        let opened = outside(py, None, move |_| Dataset::open(&kind, &path, &request))?;
        Ok(Self(Arc::new(opened)))
    }

    /// Names of the classes.
    #[getter]
    fn classes(&self) -> Vec<String> {
        self.0.classes().to_vec()
    }

    /// The names of the samples.
    #[getter]
    fn ids(&self) -> Vec<String> {
        (0..self.0.len()).map(|position| self.0.id(position)).collect()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The sample at a position.
    fn sample<'py>(&self, py: Python<'py>, position: usize) -> PyResult<Sample<'py>> {
        if position >= self.0.len() {
            return Err(PyIndexError::new_err(format!("sample {position} of {}", self.0.len())));
        }
        let dataset = self.0.clone();
        let sample = outside(py, None, move |_| dataset.sample(position))?;
        Ok((sample.id, PyImage(sample.image), truth(py, sample.truth)?))
    }
}

/// Every kind of data set: its name, a line about it, the files it wants to see.
#[pyfunction]
pub(crate) fn dataset_kinds() -> Vec<(&'static str, &'static str, &'static str)> {
    KINDS.iter().map(|kind| (kind.name, kind.about, kind.layout)).collect()
}

/// A scene: the image, its label map, and its people and cars.
#[pyfunction]
pub(crate) fn render<'py>(
    py: Python<'py>,
    seed: u64,
    height: usize,
    width: usize,
) -> PyResult<(PyImage, Bound<'py, PyAny>, Vec<PyInstance>)> {
    const MOST: usize = 4096;
    if height == 0 || width == 0 || height > MOST || width > MOST {
        return Err(refuse(format!("size {width}x{height}: each side of a scene is from 1 to {MOST}")));
    }
    let scene = py.detach(|| helped(|| scenes::render(seed, height, width)));
    let mut objects = Vec::new();
    for (place, class) in scene.instance_classes.iter().enumerate() {
        let inside: Vec<bool> = scene.instances.iter().map(|own| usize::from(*own) == place + 1).collect();
        let mask = Mask::from_full((height, width), &inside).or_raise()?;
        if mask.area() >= scenes::SMALLEST_INSTANCE {
            objects.push(PyInstance(Instance::truth(scenes::instance_class(*class), mask)));
        }
    }
    let map = labels(py, &scene.labels)?;
    Ok((PyImage(scene.image), map, objects))
}

/// The classes of scenes.
#[pyfunction]
pub(crate) fn scene_classes() -> Vec<&'static str> {
    scenes::SCENE_CLASSES.to_vec()
}

/// Every metric with a line about it.
#[pyfunction]
pub(crate) fn metrics() -> Vec<(&'static str, &'static str)> {
    METRICS.iter().map(|metric| (metric.name, metric.about)).collect()
}

/// Mean IoU, IoU of each class, pixel accuracy; what does not exist is None.
type Figures = (Option<f64>, Vec<Option<f64>>, Option<f64>);

/// Mean IoU, IoU of each class and pixel accuracy over all images together.
#[pyfunction]
pub(crate) fn segmentation<'py>(
    py: Python<'py>,
    predictions: Vec<PyReadonlyArray2<'py, u16>>,
    truths: Vec<PyReadonlyArray2<'py, u16>>,
    classes: usize,
    ignore: Option<u16>,
) -> PyResult<Figures> {
    if classes == 0 || classes > usize::from(u16::MAX) {
        return Err(refuse(format!("classes {classes}: from 1 to {} are possible", u16::MAX)));
    }
    let copied = |arrays: &[PyReadonlyArray2<'_, u16>]| -> Vec<((usize, usize), Vec<u16>)> {
        arrays.iter().map(|a| (a.as_array().dim(), a.as_array().iter().copied().collect())).collect()
    };
    let (said, is) = (copied(&predictions), copied(&truths));
    if said.len() != is.len() {
        return Err(refuse(format!("{} predictions, but {} truths", said.len(), is.len())));
    }
    outside(py, None, move |_| {
        let mut score = SegmentationScore::new(classes, ignore.unwrap_or(IGNORE), Bootstrap::NONE);
        for (key, ((said_size, said), (is_size, is))) in said.iter().zip(&is).enumerate() {
            if said_size != is_size {
                let reason = format!("image {key}: the prediction is {said_size:?}, the truth {is_size:?}");
                return Err(evenkeel_data::Error::Request(reason));
            }
            score.push(key as u64, is, said)?;
        }
        let figures = score.figures();
        Ok((figures.mean_iou(), figures.iou(), figures.pixel_accuracy()))
    })
}

/// AUROC, average precision and FPR95 of scores that should be greater for what is anomalous.
#[pyfunction]
pub(crate) fn ranking(
    scores: PyReadonlyArray1<'_, f64>,
    anomalous: PyReadonlyArray1<'_, bool>,
) -> PyResult<(f64, f64, f64)> {
    let (scores, anomalous) = (scores.as_array(), anomalous.as_array());
    if scores.len() != anomalous.len() {
        return Err(refuse(format!("{} scores, but {} labels", scores.len(), anomalous.len())));
    }
    let mut ranking = Ranking::new(Bootstrap::NONE);
    for (key, (score, anomalous)) in scores.iter().zip(anomalous).enumerate() {
        ranking.push(key as u64, *score, *anomalous).or_raise()?;
    }
    let figures = ranking.figures().ok_or_else(|| refuse("a ranking needs normal and anomalous scores"))?;
    Ok((figures.auroc, figures.average_precision, figures.fpr95))
}

/// COCO's twelve figures for masks, as its tool prints them; those that do not exist are None.
#[pyfunction]
pub(crate) fn coco<'py>(
    py: Python<'py>,
    predictions: Vec<Vec<Bound<'py, PyInstance>>>,
    truths: Vec<Vec<Bound<'py, PyInstance>>>,
) -> PyResult<Bound<'py, PyDict>> {
    if predictions.len() != truths.len() {
        return Err(refuse(format!("{} predictions, but {} truths", predictions.len(), truths.len())));
    }
    let mut score = InstanceScore::new();
    for (image, (said, is)) in predictions.iter().zip(&truths).enumerate() {
        let area = |mask: &evenkeel_data::mask::Rle| f64::from(mask.area());
        let mut found = Vec::with_capacity(said.len());
        for one in said {
            let own = &one.get().0;
            let mask = rle_of(&own.mask).or_raise()?;
            let (category, confidence) = (own.class as i64, f64::from(own.score));
            found.push(DetectedInstance {
                category,
                score: confidence,
                area: area(&mask),
                region: Region::Mask(mask),
            });
        }
        let mut wanted = Vec::with_capacity(is.len());
        for one in is {
            let mask = rle_of(&one.get().0.mask).or_raise()?;
            let category = one.get().0.class as i64;
            let area = area(&mask);
            wanted.push(TrueInstance {
                category,
                crowd: false,
                area,
                region: Region::Mask(mask),
                countable: true,
            });
        }
        score.push(image as i64, &wanted, &found).or_raise()?;
    }
    let dict = PyDict::new(py);
    let names = [
        "ap",
        "ap50",
        "ap75",
        "ap_small",
        "ap_medium",
        "ap_large",
        "ar1",
        "ar10",
        "ar100",
        "ar_small",
        "ar_medium",
        "ar_large",
    ];
    for (name, figure) in names.iter().zip(score.figures().0) {
        dict.set_item(name, figure)?;
    }
    Ok(dict)
}
