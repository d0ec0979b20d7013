//! The corruptions of ImageNet-C.

use evenkeel::corrupt::{CORRUPTIONS, Corruption};
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::image::PyImage;
use crate::work::outside;

/// Every corruption: its name, a line about it, and whether it is one of the standard fifteen.
#[pyfunction]
pub(crate) fn corruptions() -> Vec<(&'static str, &'static str, bool)> {
    CORRUPTIONS.iter().map(|c| (c.name, c.about, c.standard)).collect()
}

/// Corrupts images.
#[pyfunction]
pub(crate) fn corrupt(
    py: Python<'_>,
    images: Vec<Py<PyImage>>,
    name: &str,
    severity: usize,
    seed: u64,
) -> PyResult<Vec<PyImage>> {
    let corruption = Corruption::named(name).or_raise()?;
    let made = outside(py, None, move |call| {
        call.each(images, |image| corruption.apply(&image.get().0, severity, seed))
    })?;
    Ok(made.into_iter().map(PyImage).collect())
}
