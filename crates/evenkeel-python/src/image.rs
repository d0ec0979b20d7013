//! Images from and to arrays: one copy each way, `[h, w, 3]` or `[3, h, w]`, bytes or floats in [0, 1].

use evenkeel::Image;
use numpy::ndarray::{ArrayView3, Axis};
use numpy::{
    Element, PyArray, PyArray3, PyArrayDyn, PyArrayMethods, PyReadonlyArray3, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::error::{OrRaise, refuse};

/// Values outside [0, 1] by no more than this are rounding, and are clipped.
const ROUNDING: f64 = 1e-5;

/// A picture inside the library.
#[pyclass(name = "Image", module = "evenkeel._core", frozen)]
pub(crate) struct PyImage(pub(crate) Image);

/// `[c, h, w]` of a view whose channels are last or first.
fn channels_first<T>(view: ArrayView3<'_, T>, channels_last: bool) -> ArrayView3<'_, T> {
    if channels_last { view.permuted_axes([2, 0, 1]) } else { view }
}

fn shape_error(shape: &[usize], channels_last: bool) -> PyErr {
    let wanted = if channels_last { "height x width x 3" } else { "3 x height x width" };
    let hint = match *shape {
        [3, _, _] if channels_last => "; channels come last in a numpy image: use array.transpose(1, 2, 0)",
        [_, _, 4] if channels_last => "; leave the alpha channel out: use array[..., :3]",
        [_, _] => "; repeat a grey image: use numpy.stack([array] * 3, axis=-1)",
        _ => "",
    };
    refuse(format!(
        "an image is an array of {wanted}, at least one pixel, but this has the shape {shape:?}{hint}"
    ))
}

fn floats<T: Copy + Into<f64>>(view: ArrayView3<'_, T>, value: impl Fn(T) -> f32) -> PyResult<Vec<f32>> {
    let mut pixels = Vec::with_capacity(view.len());
    let (mut least, mut most, mut odd) = (f64::INFINITY, f64::NEG_INFINITY, false);
    for &v in view {
        let wide: f64 = v.into();
        odd |= !wide.is_finite();
        (least, most) = (least.min(wide), most.max(wide));
        pixels.push(value(v).clamp(0.0, 1.0));
    }
    if odd {
        return Err(refuse("an image holds NaN or infinity"));
    }
    if least < -ROUNDING || most > 1.0 + ROUNDING {
        let hint = if least >= 0.0 && most <= 255.0 { "; divide by 255, or use dtype uint8" } else { "" };
        return Err(refuse(format!(
            "values of a float image are from 0 to 1, but these are from {least} to {most}{hint} (mean and deviation belong to the model)"
        )));
    }
    Ok(pixels)
}

#[pymethods]
impl PyImage {
    /// An image from an array of uint8, or of float32 or float64 in [0, 1].
    #[staticmethod]
    fn from_array(array: &Bound<'_, PyUntypedArray>, channels_last: bool) -> PyResult<Self> {
        let shape = array.shape().to_vec();
        let (height, width) = match (shape.as_slice(), channels_last) {
            (&[h, w, 3], true) | (&[3, h, w], false) if h > 0 && w > 0 => (h, w),
            _ => return Err(shape_error(&shape, channels_last)),
        };
        let any = array.as_any();
        let pixels = if let Ok(bytes) = any.extract::<PyReadonlyArray3<'_, u8>>() {
            // numpy calls arrays in Fortran's order contiguous too; ndarray's slice is in reading order
            if let (Some(plain), true) = (bytes.as_array().as_slice(), channels_last) {
                return Ok(Self(Image::from_rgb8(height, width, plain).or_raise()?));
            }
            channels_first(bytes.as_array(), channels_last).iter().map(|b| f32::from(*b) / 255.0).collect()
        } else if let Ok(singles) = any.extract::<PyReadonlyArray3<'_, f32>>() {
            floats(channels_first(singles.as_array(), channels_last), |v| v)?
        } else if let Ok(doubles) = any.extract::<PyReadonlyArray3<'_, f64>>() {
            floats(channels_first(doubles.as_array(), channels_last), |v| v as f32)?
        } else {
            return Err(refuse(format!(
                "an image has the dtype uint8, float32 or float64, not {}",
                array.dtype()
            )));
        };
        Ok(Self(Image::new(height, width, pixels).or_raise()?))
    }

    /// A PNG or JPEG file.
    #[staticmethod]
    fn load(py: Python<'_>, path: std::path::PathBuf) -> PyResult<Self> {
        py.detach(|| Image::load(path)).or_raise().map(Self)
    }

    /// A PNG or JPEG in memory.
    #[staticmethod]
    fn decode(data: &[u8]) -> PyResult<Self> {
        Image::decode(data, "bytes").or_raise().map(Self)
    }

    /// (height, width).
    #[getter]
    fn size(&self) -> (usize, usize) {
        self.0.size()
    }

    /// The picture as uint8, rounded.
    fn to_uint8<'py>(&self, py: Python<'py>, channels_last: bool) -> PyResult<Bound<'py, PyAny>> {
        let byte = |v: f32| (v.clamp(0.0, 1.0) * 255.0).round() as u8;
        self.array(py, channels_last, byte)
    }

    /// The picture as float32 in [0, 1].
    fn to_float32<'py>(&self, py: Python<'py>, channels_last: bool) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, channels_last, |v| v)
    }

    /// The picture as float64 in [0, 1].
    fn to_float64<'py>(&self, py: Python<'py>, channels_last: bool) -> PyResult<Bound<'py, PyAny>> {
        self.array(py, channels_last, f64::from)
    }

    /// The picture as a PNG file.
    fn png<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        Ok(PyBytes::new(py, &py.detach(|| self.0.encode_png()).or_raise()?))
    }
}

impl PyImage {
    fn array<'py, T: Element + Copy>(
        &self,
        py: Python<'py>,
        channels_last: bool,
        value: impl Fn(f32) -> T,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (height, width) = self.0.size();
        let view = ArrayView3::from_shape((3, height, width), self.0.pixels())
            .map_err(|e| refuse(format!("internal error, please report it: {e}")))?;
        Ok(match channels_last {
            true => PyArray3::from_owned_array(py, in_order(view.permuted_axes([1, 2, 0]), value)).into_any(),
            false => PyArray3::from_owned_array(py, in_order(view, value)).into_any(),
        })
    }
}

/// The values of a view in its own order, each changed.
fn in_order<T>(view: ArrayView3<'_, f32>, value: impl Fn(f32) -> T) -> numpy::ndarray::Array3<T> {
    let shape = view.raw_dim();
    let plane = view.index_axis(Axis(2), 0).len();
    let mut values = Vec::with_capacity(plane * shape[2]);
    values.extend(view.iter().map(|v| value(*v)));
    numpy::ndarray::Array3::from_shape_vec(shape, values).expect("as many values as the view has")
}

/// An array of any shape from its values, which are not copied.
pub(crate) fn array_of<'py, T: Element>(
    py: Python<'py>,
    shape: &[usize],
    values: Vec<T>,
) -> PyResult<Bound<'py, PyArrayDyn<T>>> {
    PyArray::from_vec(py, values).reshape(shape)
}
