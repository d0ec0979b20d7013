//! Answers and truths: a class, a label map, objects, or values.

use std::path::Path;
use std::sync::Arc;

use evenkeel::network::Extents;
use evenkeel::task::TruthSource;
use evenkeel::task::instance::{Instance, Mask};
use evenkeel::task::regression::ValueMap;
use evenkeel::view::Letterbox;
use evenkeel::{LabelMap, Model, Prediction, Truth};
use evenkeel_data::coco_instances::objects_of;
use numpy::{PyReadonlyArray2, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;

use crate::error::{OrRaise, refuse};
use crate::image::{PyImage, array_of};

/// One object, seen or true: its class, its mask, how sure the network is, and its box.
#[pyclass(name = "Instance", module = "evenkeel", frozen)]
pub(crate) struct PyInstance(pub(crate) Instance);

#[pymethods]
impl PyInstance {
    #[new]
    #[pyo3(signature = (label, mask, score = 1.0))]
    fn new(label: usize, mask: PyReadonlyArray2<'_, bool>, score: f32) -> PyResult<Self> {
        let view = mask.as_array();
        let (height, width) = view.dim();
        let inside: Vec<bool> = view.iter().copied().collect();
        if !(0.0..=1.0).contains(&score) {
            return Err(refuse(format!("score {score}: is not from 0 to 1")));
        }
        let truth = Instance::truth(label, Mask::from_full((height, width), &inside).or_raise()?);
        Ok(Self(Instance { score, ..truth }))
    }

    /// Its class.
    #[getter]
    fn label(&self) -> usize {
        self.0.class
    }

    /// How sure the network is, from 0 to 1; 1 for a truth.
    #[getter]
    fn score(&self) -> f32 {
        self.0.score
    }

    /// Left, top, right, bottom in pixels.
    #[getter]
    #[pyo3(name = "box")]
    fn corners(&self) -> (f32, f32, f32, f32) {
        let [left, top, right, bottom] = self.0.corners;
        (left, top, right, bottom)
    }

    /// Its pixels: an array of bool, height x width.
    #[getter]
    fn mask<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let (height, width) = self.0.mask.size();
        Ok(array_of(py, &[height, width], self.0.mask.to_full())?.into_any())
    }

    /// How many pixels it has.
    #[getter]
    fn area(&self) -> usize {
        self.0.mask.area()
    }

    fn __repr__(&self) -> String {
        let [left, top, right, bottom] = self.0.corners;
        format!(
            "Instance(label={}, score={:.3}, box=({left:.1}, {top:.1}, {right:.1}, {bottom:.1}))",
            self.0.class, self.0.score
        )
    }
}

/// What a person gives as a truth.
#[derive(FromPyObject)]
pub(crate) enum Given<'py> {
    #[pyo3(transparent)]
    Said(Bound<'py, PyPrediction>),
    #[pyo3(transparent)]
    Objects(Vec<Bound<'py, PyInstance>>),
    #[pyo3(transparent)]
    Map(PyReadonlyArray2<'py, u16>),
    #[pyo3(transparent)]
    Values(PyReadonlyArrayDyn<'py, f32>),
    #[pyo3(transparent)]
    Class(usize),
    /// The name of a class, or a file, which the task reads.
    #[pyo3(transparent)]
    Words(String),
}

/// A vector `[n]`, a map `[h, w]` or maps `[c, h, w]`; NaN where nothing is known.
fn values_of(array: &PyReadonlyArrayDyn<'_, f32>) -> PyResult<ValueMap> {
    let extents = match *array.shape() {
        [channels] => Extents { channels, height: 1, width: 1 },
        [height, width] => Extents { channels: 1, height, width },
        [channels, height, width] => Extents { channels, height, width },
        ref shape => return Err(refuse(format!("values have one to three dimensions, not {}", shape.len()))),
    };
    ValueMap::new(extents, array.as_array().iter().copied().collect()).or_raise()
}

/// The truth for an image that stands in a model's frame.
pub(crate) fn truth_of(model: &Model, given: &Given<'_>, frame: &Letterbox) -> PyResult<Truth> {
    let (original, fitted) = (frame.image(), frame.frame());
    let strange = |what: &str, (height, width): (usize, usize)| {
        let (h, w) = original;
        refuse(format!("{what} is {width}x{height}, the image {w}x{h}"))
    };
    let truth = match given {
        Given::Said(said) => said.get().said.as_truth(),
        Given::Class(class) => Truth::of_class(*class),
        Given::Map(labels) => {
            let view = labels.as_array();
            let size = view.dim();
            let map = LabelMap::new(size.0, size.1, view.iter().copied().collect()).or_raise()?;
            Truth::of_labels(match size == fitted {
                true => map,
                false if size == original => frame.apply_labels(&map).or_raise()?,
                false => return Err(strange("the label map", size)),
            })
        }
        Given::Objects(objects) => {
            let one = |object: &Bound<'_, PyInstance>| {
                let own = &object.get().0;
                let size = own.mask.size();
                match size == fitted {
                    true => Ok(own.clone()),
                    false if size == original => Ok(Instance::truth(own.class, own.mask.framed(frame))),
                    false => Err(strange("a mask", size)),
                }
            };
            Truth::of_instances(objects.iter().map(one).collect::<PyResult<_>>()?)
        }
        Given::Values(array) => {
            let map = values_of(array)?;
            Truth::of_values(match map.is_vector() || map.size() == fitted {
                true => map,
                false => map.framed(frame).or_raise()?,
            })
        }
        Given::Words(given) => {
            let classes = model.class_info();
            let source = TruthSource { given, picture: Path::new(""), frame, classes, objects: objects_of };
            model.task.read_truth(&source).or_raise()?
        }
    };
    model.task.check_truth(&truth, model.classes, fitted, "truth").or_raise()?;
    Ok(truth)
}

/// What a network says of an image, at the image's own size: `label` for a classifier, `labels` for a segmenter, `instances` for objects, `values` for a
/// regression.
#[pyclass(name = "Prediction", module = "evenkeel", frozen)]
pub(crate) struct PyPrediction {
    model: Arc<Model>,
    /// What was said of the image at the network's size.
    said: Prediction,
    /// The same on the image as it came.
    answer: Prediction,
    /// (height, width) of the image as it came.
    size: (usize, usize),
    labels: PyOnceLock<Py<PyAny>>,
    probabilities: PyOnceLock<Py<PyAny>>,
    values: PyOnceLock<Py<PyAny>>,
}

impl PyPrediction {
    /// What was said of an image of this (height, width).
    pub(crate) fn new(model: &Arc<Model>, said: Prediction, size: (usize, usize)) -> PyResult<Self> {
        let answer = said.unframed(&model.framing(size).or_raise()?).or_raise()?;
        Ok(Self {
            model: model.clone(),
            said,
            answer,
            size,
            labels: PyOnceLock::new(),
            probabilities: PyOnceLock::new(),
            values: PyOnceLock::new(),
        })
    }

    /// An array that is made once and not to be written to.
    fn kept<'py, T: numpy::Element + Copy>(
        py: Python<'py>,
        place: &PyOnceLock<Py<PyAny>>,
        shape: &[usize],
        values: &[T],
    ) -> PyResult<Bound<'py, PyAny>> {
        let made = place.get_or_try_init(py, || {
            let array = array_of(py, shape, values.to_vec())?.into_any();
            array.call_method1("setflags", (false,))?;
            Ok::<_, PyErr>(array.unbind())
        })?;
        Ok(made.bind(py).clone())
    }
}

#[pymethods]
impl PyPrediction {
    /// The task that it answers.
    #[getter]
    fn task(&self) -> &'static str {
        self.model.task.name()
    }

    /// The class of the image; None unless the task is classification.
    #[getter]
    fn label(&self) -> Option<usize> {
        self.answer.class()
    }

    /// The name of the class of the image, if the model has names.
    #[getter]
    fn name(&self) -> Option<String> {
        self.model.class_names.get(self.label()?).cloned()
    }

    /// The probability of each class (classification), or at each pixel that of its label (semantic), as a read-only array of float32; None for objects,
    /// which have their scores, and for values.
    #[getter]
    fn probabilities<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        if let Some(values) = self.answer.probabilities() {
            return Self::kept(py, &self.probabilities, &[values.len()], values).map(Some);
        }
        let (Some(map), Some(values)) = (self.answer.label_map(), self.answer.confidence()) else {
            return Ok(None);
        };
        Self::kept(py, &self.probabilities, &[map.height(), map.width()], values).map(Some)
    }

    /// The class of each pixel, a read-only array height x width of uint16; None unless the task is semantic.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(map) = self.answer.label_map() else { return Ok(None) };
        Self::kept(py, &self.labels, &[map.height(), map.width()], map.labels()).map(Some)
    }

    /// The objects, the most confident first; None unless the task is instance.
    #[getter]
    fn instances(&self) -> Option<Vec<PyInstance>> {
        Some(self.answer.instances()?.iter().cloned().map(PyInstance).collect())
    }

    /// The values of a regression in the network's own unit, a read-only array of float32: `[n]` for the whole image, height x width, or channels x height x
    /// width; NaN where the network does not see. None for other tasks.
    #[getter]
    fn values<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let Some(map) = self.answer.values() else { return Ok(None) };
        let Extents { channels, height, width } = map.extents();
        let shape = [channels, height, width];
        let own = match (map.is_vector(), channels) {
            (true, _) => &shape[..1],
            (false, 1) => &shape[1..],
            (false, _) => &shape[..],
        };
        Self::kept(py, &self.values, own, map.values()).map(Some)
    }

    /// The answer as JSON, as `evenkeel predict --json` prints it.
    fn json(&self) -> String {
        self.answer.json(&self.model.class_info()).to_string()
    }

    /// The answer drawn over an image, either as it came or at the network's size.
    fn draw(&self, image: &Bound<'_, PyImage>) -> PyResult<PyImage> {
        let image = &image.get().0;
        let answer = if image.size() == self.size { &self.answer } else { &self.said };
        Ok(PyImage(answer.paint(image, 0.5, &self.model.class_info()).or_raise()?.image))
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        other.cast::<Self>().is_ok_and(|other| other.get().answer == self.answer)
    }

    fn __repr__(&self) -> String {
        format!("Prediction({})", self.answer.words(&self.model.class_info()))
    }
}
