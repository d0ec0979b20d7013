//! Models: a network of the engine, of the shelf, or in Python, with its contract.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use evenkeel::detect::Calibration;
use evenkeel::model::propose::Answers;
use evenkeel::model::{Contract, ModelFile, PixelPreset, Proposal};
use evenkeel::objective::Bank;
use evenkeel::objective::head::Head;
use evenkeel::shipped::{SHIPPED, Shipped};
use evenkeel::{Error, Heads, Image, Model, Result, shipped};
use numpy::PyReadonlyArrayDyn;
use pyo3::prelude::*;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::bridge::PyExecutor;
use crate::detect::PyCalibration;
use crate::error::{OrRaise, refuse};
use crate::image::{PyImage, array_of};
use crate::truth::PyPrediction;
use crate::work::{helped, outside};

/// A frozen network and what it means.
#[pyclass(name = "Model", module = "evenkeel._core", frozen)]
pub(crate) struct PyModel {
    pub(crate) model: Arc<Model>,
    shipped: Option<&'static Shipped>,
    /// The network's file, if it has one.
    path: Option<PathBuf>,
}

/// One value over another: objects key by key, everything else whole.
fn laid_over(base: &mut Value, over: Value) {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            for (key, value) in over {
                laid_over(base.entry(key).or_insert(Value::Null), value);
            }
        }
        (base, over) => *base = over,
    }
}

/// The contract that keyword arguments make, over the one beside the network if there is one.
fn contract_over(base: Option<Contract>, given: &str) -> PyResult<Contract> {
    let given: Value = serde_json::from_str(given).or_raise()?;
    let mut all = base.map(serde_json::to_value).transpose().or_raise()?.unwrap_or(Value::Null);
    laid_over(&mut all, given);
    let contract: Contract = serde_json::from_value(all).map_err(|e| {
        refuse(format!("how pixels become input and what comes out is not guessed: {e}; give it as an argument, or write a contract with `evenkeel model init`"))
    })?;
    contract.check().or_raise()?;
    Ok(contract)
}

/// The contract that a network's graph and keyword arguments make; what neither tells is asked for, all of it together.
fn contract_proposed(path: &Path, given: &str) -> PyResult<Contract> {
    fn field<T: DeserializeOwned>(given: &Value, at: &str) -> PyResult<Option<T>> {
        let found = given.pointer(at).filter(|value| !value.is_null());
        let wrong = |e| refuse(format!("{}: {e}", at.rsplit('/').next().unwrap_or(at)));
        found.map(|value| serde_json::from_value(value.clone()).map_err(wrong)).transpose()
    }
    let given: Value = serde_json::from_str(given).or_raise()?;
    let own = given.as_object().into_iter().flatten().filter_map(|(_, table)| table.as_object());
    let words = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let answers = Answers {
        task: field(&given, "/task")?,
        output: field(&given, "/output")?,
        feature: field(&given, "/feature")?,
        order: field(&given, "/input/order")?,
        scale: field(&given, "/input/scale")?,
        mean: field(&given, "/input/mean")?,
        std: field(&given, "/input/std")?,
        channels_last: field(&given, "/input/channels_last")?.unwrap_or(false),
        size: field(&given, "/input/size")?,
        resize: field(&given, "/input/resize")?,
        multiple: field(&given, "/input/multiple")?,
        palette: field(&given, "/classes/palette")?,
        names: field(&given, "/classes/names")?,
        ids: field(&given, "/classes/ids")?,
        own: own.flatten().map(|(key, value)| (key.clone(), words(value))).collect(),
    };
    Proposal::of_file(path).and_then(|proposal| proposal.contract(&answers)).or_raise()?.map_err(
        |questions| {
            let asked: Vec<String> = questions.iter().map(|q| format!("{} ({})", q.field, q.text)).collect();
            let path = path.display();
            refuse(format!(
                "{path}: there is no contract beside it, and the graph does not tell {}",
                asked.join(", ")
            ))
        },
    )
}

/// How pixels become input under a preset's name, as JSON fields.
#[pyfunction]
pub(crate) fn pixel_preset(name: &str) -> PyResult<String> {
    let PixelPreset { order, scale, mean, std, .. } = PixelPreset::named(name).or_raise()?;
    Ok(serde_json::json!({ "order": order, "scale": scale, "mean": mean, "std": std }).to_string())
}

/// Heads from files, or those that come with a shipped network.
pub(crate) fn heads(
    model: &PyModel,
    name: &str,
    head: Option<&PathBuf>,
    bank: Option<&PathBuf>,
) -> PyResult<Heads> {
    match model.shipped {
        Some(shipped) if head.is_none() && bank.is_none() => shipped.heads_for(name).or_raise(),
        _ => Ok(Heads {
            head: head.map(Head::load).transpose().or_raise()?,
            bank: bank.map(Bank::load).transpose().or_raise()?,
        }),
    }
}

/// Images as they came, at the model's size.
pub(crate) fn fitted(model: &Model, image: &Py<PyImage>) -> Result<Image> {
    model.fit(&image.get().0)
}

#[pymethods]
impl PyModel {
    /// Reads a network; `contract` is JSON laid over the contract beside it.
    #[staticmethod]
    #[pyo3(signature = (path, contract = None))]
    fn load(py: Python<'_>, path: PathBuf, contract: Option<&str>) -> PyResult<Self> {
        std::fs::metadata(&path).map_err(Error::io(&path)).or_raise()?;
        let beside = Contract::path_beside(&path);
        let contract = match contract {
            None => Contract::beside(&path).or_raise()?,
            Some(given) => match beside.exists() {
                true => contract_over(Some(Contract::load(&beside).or_raise()?), given)?,
                false => contract_proposed(&path, given)?,
            },
        };
        let file = path.clone();
        let model = outside(py, None, move |_| ModelFile::read(&file)?.model(&contract))?;
        Ok(Self { model: Arc::new(model), shipped: None, path: Some(path) })
    }

    /// A network that comes with the package.
    #[staticmethod]
    fn shipped(py: Python<'_>, name: &str) -> PyResult<Self> {
        let shipped = shipped::named(name).or_raise()?;
        let model = outside(py, None, move |_| shipped.model())?;
        Ok(Self { model: Arc::new(model), shipped: Some(shipped), path: None })
    }

    /// A network written in Python under a contract in JSON.
    #[staticmethod]
    #[pyo3(signature = (network, contract, size = None))]
    fn of_network(
        py: Python<'_>,
        network: Bound<'_, PyAny>,
        contract: &str,
        size: Option<(usize, usize)>,
    ) -> PyResult<Self> {
        let contract = contract_over(None, contract)?;
        let executor = PyExecutor::new(network, size)?;
        let model = outside(py, None, move |_| Model::from_executor(executor, &contract))?;
        Ok(Self { model: Arc::new(model), shipped: None, path: None })
    }

    /// The task: classification, semantic or instance.
    #[getter]
    fn task(&self) -> &'static str {
        self.model.task.name()
    }

    /// How many classes it tells apart.
    #[getter]
    fn classes(&self) -> usize {
        self.model.classes
    }

    /// The names of the classes, if they have any.
    #[getter]
    fn class_names(&self) -> Vec<String> {
        self.model.class_names.clone()
    }

    /// The colours that the classes are painted in, as far as a palette goes.
    #[getter]
    fn colours(&self) -> Vec<(u8, u8, u8)> {
        let palette = self.model.class_info().colours();
        palette.colours().iter().take(self.model.classes).map(|[r, g, b]| (*r, *g, *b)).collect()
    }

    /// The tensors of scores.
    #[getter]
    fn output(&self) -> Vec<String> {
        self.model.output.to_vec()
    }

    /// The tensors of features that views are compared on.
    #[getter]
    fn feature(&self) -> Vec<String> {
        self.model.feature.to_vec()
    }

    /// The (height, width) that images are brought to; None keeps theirs.
    #[getter]
    fn size(&self) -> Option<(usize, usize)> {
        self.model.size
    }

    /// Sides of images are cut to multiples of this.
    #[getter]
    fn multiple(&self) -> usize {
        self.model.multiple
    }

    /// A fingerprint of the network's file; empty if there is none.
    #[getter]
    fn hash(&self) -> String {
        self.model.hash.clone()
    }

    /// The calibration that came with a shipped network, or lies beside the file; None if there is none.
    #[getter]
    fn calibration(&self) -> PyResult<Option<PyCalibration>> {
        let beside = self.path.as_deref().map(Calibration::path_beside).filter(|path| path.exists());
        let found = match (self.shipped, beside) {
            (Some(shipped), _) => shipped.calibration(&self.model),
            (None, Some(path)) => Calibration::load(&path, &self.model),
            (None, None) => return Ok(None),
        };
        found.or_raise().map(|calibration| Some(PyCalibration(calibration)))
    }

    /// The image at the network's size.
    fn fit(&self, py: Python<'_>, image: &Bound<'_, PyImage>) -> PyResult<PyImage> {
        let image = &image.get().0;
        py.detach(|| helped(|| self.model.fit(image))).or_raise().map(PyImage)
    }

    /// The answers for images.
    #[pyo3(signature = (images, progress = None))]
    fn predict(
        &self,
        py: Python<'_>,
        images: Vec<Py<PyImage>>,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<PyPrediction>> {
        let model = self.model.clone();
        let answers = outside(py, progress, move |call| {
            let model = model.interruptible(call.stop());
            call.each(images, |image| Ok((model.predict(&fitted(&model, &image)?)?, image.get().0.size())))
        })?;
        answers.into_iter().map(|(said, size)| PyPrediction::new(&self.model, said, size)).collect()
    }

    /// Named tensors of an image.
    fn tensors<'py>(
        &self,
        py: Python<'py>,
        image: Py<PyImage>,
        names: Vec<String>,
    ) -> PyResult<Vec<Bound<'py, PyAny>>> {
        let model = self.model.clone();
        let made = outside(py, None, move |_| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            model.network.run_one(&fitted(&model, &image)?, &names)
        })?;
        let array = |tensor: evenkeel::network::Tensor| {
            let shape = tensor.shape().to_vec();
            Ok(array_of(py, &shape, tensor.into_data())?.into_any())
        };
        made.into_iter().map(array).collect()
    }

    /// The gradient, with respect to the image, of the sum of products of named tensors with cotangents: `[3, h, w]`.
    fn pullback<'py>(
        &self,
        py: Python<'py>,
        image: Py<PyImage>,
        names: Vec<String>,
        cotangents: Vec<PyReadonlyArrayDyn<'_, f32>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let model = self.model.clone();
        let cotangents: Vec<(usize, Vec<f32>)> =
            cotangents.iter().map(|array| array.as_array().iter().copied().collect()).enumerate().collect();
        let (size, gradient) = outside(py, None, move |_| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            let image = fitted(&model, &image)?;
            let gradient = model.network.trace_one(&image, &names)?.tape.pullback(cotangents)?;
            Ok::<_, Error>((image.size(), gradient))
        })?;
        Ok(array_of(py, &[3, size.0, size.1], gradient)?.into_any())
    }
}

/// The networks that come with the package, each with a line about it.
#[pyfunction]
pub(crate) fn shipped_networks() -> Vec<(&'static str, &'static str)> {
    SHIPPED.iter().map(|shipped| (shipped.name, shipped.about)).collect()
}

/// Writes a shipped network and its contract into a folder, as `NAME.onnx` and `NAME.evenkeel.toml`.
#[pyfunction]
pub(crate) fn write_shipped(name: &str, folder: PathBuf) -> PyResult<PathBuf> {
    let shipped = shipped::named(name).or_raise()?;
    let path = folder.join(format!("{name}.onnx"));
    let write = |path: &Path, bytes: &[u8]| evenkeel::image::write_atomically(path, bytes).or_raise();
    write(&path, shipped.network)?;
    write(&Contract::path_beside(&path), shipped.contract.as_bytes())?;
    Ok(path)
}
