//! Sets of views, and images seen through them.

use evenkeel::view::{VIEWS, view_sets};
use evenkeel::{Random, ViewSet};
use pyo3::prelude::*;

use crate::error::OrRaise;
use crate::image::PyImage;
use crate::work::helped;

/// A set of views.
#[pyclass(name = "Views", module = "evenkeel._core", frozen, eq)]
#[derive(PartialEq)]
pub(crate) struct PyViews(pub(crate) ViewSet);

#[pymethods]
impl PyViews {
    /// A set by its name, or from a TOML file.
    #[staticmethod]
    fn named(name: &str) -> PyResult<Self> {
        ViewSet::named(name).or_raise().map(Self)
    }

    /// A set from JSON: a list of rules, each a kind with its keys.
    #[staticmethod]
    fn parse(rules: &str) -> PyResult<Self> {
        let set = ViewSet::of(serde_json::from_str(rules).or_raise()?);
        set.check().or_raise()?;
        Ok(Self(set))
    }

    /// The rules as JSON.
    fn rules(&self) -> PyResult<String> {
        serde_json::to_string(&self.0.rules).or_raise()
    }

    /// The views that a seed draws: what each is, and the image seen through it.
    fn draw(&self, py: Python<'_>, image: &Bound<'_, PyImage>, seed: u64) -> Vec<(String, PyImage)> {
        let image = &image.get().0;
        let seen = || {
            let views = self.0.draw(&Random::new(seed));
            views.iter().map(|view| (view.caption(), PyImage(view.apply(image)))).collect()
        };
        py.detach(|| helped(seen))
    }

    fn __len__(&self) -> usize {
        self.0.rules.len()
    }

    fn __repr__(&self) -> PyResult<String> {
        let rules = serde_json::to_value(&self.0.rules).or_raise()?;
        let kinds: Vec<&str> =
            rules.as_array().into_iter().flatten().filter_map(|r| r["kind"].as_str()).collect();
        Ok(format!("Views({})", kinds.join(", ")))
    }
}

/// Every named set with a line about it.
#[pyfunction]
pub(crate) fn named_views() -> Vec<(String, String)> {
    view_sets().into_iter().map(|(name, about)| (name, about.to_string())).collect()
}

/// Every kind of view with a line about it.
#[pyfunction]
pub(crate) fn view_kinds() -> Vec<(&'static str, &'static str)> {
    VIEWS.iter().map(|kind| (kind.name, kind.about)).collect()
}
