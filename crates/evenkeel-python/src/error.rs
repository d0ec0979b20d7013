//! Errors of the library as Python exceptions: `EvenkeelError` with the library's sentence.
//!
//! An exception that a network written in Python raised travels through the method as the source of its error, and comes out as the cause of the
//! `EvenkeelError`.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

create_exception!(
    evenkeel,
    EvenkeelError,
    PyException,
    "What the library refused or could not do, in a sentence that names what and where."
);

/// A sentence as an exception.
pub(crate) fn refuse(sentence: impl Into<String>) -> PyErr {
    EvenkeelError::new_err(sentence.into())
}

/// Errors that become exceptions.
pub(crate) trait OrRaise<T> {
    /// The value, or an exception with the error's sentence.
    fn or_raise(self) -> PyResult<T>;
}

impl<T, E: std::error::Error + 'static> OrRaise<T> for Result<T, E> {
    fn or_raise(self) -> PyResult<T> {
        self.map_err(|error| raised(&error))
    }
}

/// The exception for an error.
pub(crate) fn raised(error: &(dyn std::error::Error + 'static)) -> PyErr {
    let exception = refuse(sentence(error));
    let mut source = Some(error);
    while let Some(this) = source {
        if let Some(own) = this.downcast_ref::<PyErr>() {
            Python::attach(|py| exception.set_cause(py, Some(own.clone_ref(py))));
        }
        source = this.source();
    }
    exception
}

/// An error and its causes in one line; a cause that it holds already is left out.
fn sentence(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !line.contains(&words) {
            line += &format!(": {words}");
        }
        source = cause.source();
    }
    line
}
