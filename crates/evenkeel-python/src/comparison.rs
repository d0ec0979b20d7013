//! A comparison of features that a network written in Python makes where its tensors are (`evenkeel::network::Comparison`), as Python sees it.

use evenkeel::network::Comparison;
use pyo3::prelude::*;

use crate::error::refuse;
use crate::image::array_of;
use crate::work::helped;

/// Which features are compared, and how each view's map is brought back to the image's.
#[pyclass(name = "Comparison", module = "evenkeel._core", frozen)]
pub(crate) struct PyComparison(pub(crate) Comparison);

/// Cells `[n, 4]` of a view's map and their weights for each cell of the image's map, and the mask of those in sight.
type Taps<'py> = (Bound<'py, PyAny>, Bound<'py, PyAny>, Bound<'py, PyAny>);

#[pymethods]
impl PyComparison {
    /// The tensors of features.
    #[getter]
    fn features(&self) -> Vec<String> {
        self.0.features.clone()
    }

    /// Whether features are averaged over space first.
    #[getter]
    fn pooled(&self) -> bool {
        self.0.rule.pooled
    }

    /// Whether every two are compared, or each view with the image.
    #[getter]
    fn all_pairs(&self) -> bool {
        self.0.rule.all_pairs
    }

    /// What the value is multiplied by on the way back.
    #[getter]
    fn weight(&self) -> f64 {
        self.0.weight
    }

    /// Whether a way back is wanted.
    #[getter]
    fn want_gradient(&self) -> bool {
        self.0.want_gradient
    }

    /// 1 for each of the given number of cells that takes part, else 0; None where all do.
    fn kept<'py>(&self, py: Python<'py>, cells: usize) -> PyResult<Option<Bound<'py, PyAny>>> {
        let kept = self.0.rule.kept_cells(cells);
        kept.map(|kept| Ok(array_of(py, &[cells], kept)?.into_any())).transpose()
    }

    /// How a view's map of `seen` (height, width) is brought back to the image's, of `to`.
    fn undo<'py>(
        &self,
        py: Python<'py>,
        view: usize,
        seen: (usize, usize),
        to: (usize, usize),
    ) -> PyResult<Taps<'py>> {
        if [seen.0, seen.1, to.0, to.1].contains(&0) {
            return Err(refuse("a map of features has at least one cell"));
        }
        let undo = py
            .detach(|| helped(|| self.0.undo(view, seen, to)))
            .ok_or_else(|| refuse("there is no such view"))?;
        let (at, weights) = undo.taps();
        let cells = to.0 * to.1;
        let at = array_of(py, &[cells, 4], at.into_iter().map(i64::from).collect())?.into_any();
        let weights = array_of(py, &[cells, 4], weights)?.into_any();
        Ok((at, weights, array_of(py, &[cells], undo.mask().to_vec())?.into_any()))
    }
}
