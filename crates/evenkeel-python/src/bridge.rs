//! A network written in Python behind the seam: a PyTorch module, or a person's own.
//!
//! The object has `run(inputs, names)`, `trace(inputs, names)` and, if its `compares` is true, `compare(inputs, names, comparison)`; inputs are prepared tensors
//! `[1, 3, h, w]`, which may differ in size. The views of a step come in one call. The interpreter is attached inside each call and nowhere else; an exception
//! travels through the method as its error's source.

use evenkeel::network::{
    BatchTape, ComparedThere, Comparison, Cotangents, Executor, Tape, Tensor, Traced, TracedBatch,
};
use evenkeel::{Error, Result};
use numpy::{PyArrayDyn, PyReadonlyArrayDyn, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyString};

use crate::comparison::PyComparison;
use crate::image::array_of;

/// An executor that an object of Python is.
pub(crate) struct PyExecutor {
    object: Py<PyAny>,
    /// The only (height, width) it takes, if there is only one.
    size: Option<(usize, usize)>,
    /// Whether it makes comparisons where its tensors are.
    compares: bool,
}

type Shapes = Vec<Vec<usize>>;

impl PyExecutor {
    pub(crate) fn new(object: Bound<'_, PyAny>, size: Option<(usize, usize)>) -> PyResult<Self> {
        let compares = match object.getattr_opt("compares")? {
            Some(compares) => compares.is_truthy()?,
            None => false,
        };
        Ok(Self { object: object.unbind(), size, compares })
    }
}

/// What a call into Python raised, as an error of the network.
fn of_python<T>(outcome: PyResult<T>) -> Result<T> {
    outcome.map_err(Error::network)
}

/// The tensors as a list of arrays; their values are not copied.
fn inputs_of(py: Python<'_>, inputs: Vec<Tensor>) -> PyResult<Bound<'_, PyList>> {
    let array = |tensor: Tensor| {
        let shape = tensor.shape().to_vec();
        array_of(py, &shape, tensor.into_data())
    };
    PyList::new(py, inputs.into_iter().map(array).collect::<PyResult<Vec<_>>>()?)
}

fn names_of<'py>(py: Python<'py>, names: &[&str]) -> PyResult<Bound<'py, PyList>> {
    PyList::new(py, names.iter().map(|name| PyString::new(py, name)))
}

/// An array as values in reading order.
fn values(array: &Bound<'_, PyAny>) -> PyResult<(Vec<usize>, Vec<f32>)> {
    let array: PyReadonlyArrayDyn<'_, f32> = array.extract()?;
    let view = array.as_array();
    let data = view.as_slice().map_or_else(|| view.iter().copied().collect(), <[f32]>::to_vec);
    Ok((array.shape().to_vec(), data))
}

/// For each of `inputs` inputs, its `names` tensors.
fn tensors(answer: &Bound<'_, PyAny>, inputs: usize, names: &[&str]) -> Result<Vec<Vec<Tensor>>> {
    let rows: Vec<Vec<Bound<'_, PyAny>>> = of_python(answer.extract())?;
    if rows.len() != inputs {
        return Err(Error::mismatch(
            "answers of a network in Python (one list for each input)",
            inputs,
            rows.len(),
        ));
    }
    let row = |row: &Vec<Bound<'_, PyAny>>| {
        if row.len() != names.len() {
            return Err(Error::mismatch(
                "tensors of an answer of a network in Python",
                names.len(),
                row.len(),
            ));
        }
        let one = |(array, name): (&Bound<'_, PyAny>, &&str)| {
            let (shape, data) = values(array).map_err(|_| {
                let kind = array.get_type().name().map(|n| n.to_string()).unwrap_or_default();
                Error::mismatch(format!("tensor {name} of a network in Python"), "an array of float32", kind)
            })?;
            Tensor::new(shape, data)
        };
        row.iter().zip(names).map(one).collect()
    };
    rows.iter().map(row).collect()
}

/// The way back through a call.
struct PyTape {
    pullback: Py<PyAny>,
    /// For each input, the shapes of its tensors.
    shapes: Vec<Shapes>,
    /// For each input, how many values it has.
    lengths: Vec<usize>,
}

/// The cotangents of one input, an array or `None` for each name.
fn row_of<'py>(py: Python<'py>, shapes: &Shapes, own: Cotangents) -> Result<Bound<'py, PyList>> {
    let mut row: Vec<Option<Vec<f32>>> = vec![None; shapes.len()];
    for (place, cotangent) in own {
        let Some(shape) = shapes.get(place) else {
            return Err(Error::mismatch("place of a cotangent", shapes.len(), place));
        };
        let expected: usize = shape.iter().product();
        if cotangent.len() != expected {
            return Err(Error::mismatch("values of a cotangent", expected, cotangent.len()));
        }
        match &mut row[place] {
            Some(sum) => sum.iter_mut().zip(&cotangent).for_each(|(s, c)| *s += c),
            empty => *empty = cotangent.iter().any(|v| *v != 0.0).then_some(cotangent),
        }
    }
    let array =
        |(values, shape): (Option<Vec<f32>>, &Vec<usize>)| -> PyResult<Option<Bound<'py, PyArrayDyn<f32>>>> {
            values.map(|values| array_of(py, shape, values)).transpose()
        };
    let arrays = row.into_iter().zip(shapes).map(array).collect::<PyResult<Vec<_>>>();
    of_python(arrays.and_then(|arrays| PyList::new(py, arrays)))
}

impl PyTape {
    fn gradients(&self, cotangents: Vec<Cotangents>) -> Result<Vec<Vec<f32>>> {
        if cotangents.len() != self.shapes.len() {
            return Err(Error::mismatch("lists of cotangents", self.shapes.len(), cotangents.len()));
        }
        Python::attach(|py| {
            let rows = self.shapes.iter().zip(cotangents).map(|(shapes, own)| row_of(py, shapes, own));
            let rows = rows.collect::<Result<Vec<_>>>()?;
            let answer = of_python(self.pullback.bind(py).call1((rows,)))?;
            let all: Vec<Bound<'_, PyAny>> = of_python(answer.extract())?;
            if all.len() != self.lengths.len() {
                return Err(Error::mismatch(
                    "gradients of a network in Python",
                    self.lengths.len(),
                    all.len(),
                ));
            }
            let one = |(array, length): (&Bound<'_, PyAny>, &usize)| {
                let (_, data) = of_python(values(array))?;
                match data.len() == *length {
                    true => Ok(data),
                    false => Err(Error::mismatch(
                        "values of a gradient of a network in Python",
                        length,
                        data.len(),
                    )),
                }
            };
            all.iter().zip(&self.lengths).map(one).collect()
        })
    }
}

impl BatchTape for PyTape {
    fn pullback(&self, cotangents: Vec<Cotangents>) -> Result<Vec<Vec<f32>>> {
        self.gradients(cotangents)
    }
}

impl Tape for PyTape {
    fn pullback(&self, cotangents: Cotangents) -> Result<Vec<f32>> {
        Ok(self.gradients(vec![cotangents])?.remove(0))
    }
}

impl PyExecutor {
    fn traced(&self, inputs: Vec<Tensor>, names: &[&str]) -> Result<(Vec<Vec<Tensor>>, PyTape)> {
        let lengths: Vec<usize> = inputs.iter().map(Tensor::len).collect();
        Python::attach(|py| {
            let given =
                of_python(inputs_of(py, inputs).and_then(|inputs| Ok((inputs, names_of(py, names)?))))?;
            let answer = of_python(self.object.bind(py).call_method1("trace", given))?;
            let (answer, pullback): (Bound<'_, PyAny>, Bound<'_, PyAny>) = of_python(answer.extract())?;
            let tensors = tensors(&answer, lengths.len(), names)?;
            let shapes = tensors.iter().map(|row| row.iter().map(|t| t.shape().to_vec()).collect()).collect();
            Ok((tensors, PyTape { pullback: pullback.unbind(), shapes, lengths }))
        })
    }
}

impl Executor for PyExecutor {
    fn input_dims(&self) -> Option<Vec<Option<usize>>> {
        self.size.map(|(height, width)| vec![Some(1), Some(3), Some(height), Some(width)])
    }

    fn check_tensors(&self, names: &[&str]) -> Result<()> {
        of_python(Python::attach(|py| {
            let names = names_of(py, names)?;
            self.object.bind(py).call_method1("check", (names,)).map(drop)
        }))
    }

    fn run(&self, inputs: Vec<Tensor>, names: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        let count = inputs.len();
        Python::attach(|py| {
            let given =
                of_python(inputs_of(py, inputs).and_then(|inputs| Ok((inputs, names_of(py, names)?))))?;
            tensors(&of_python(self.object.bind(py).call_method1("run", given))?, count, names)
        })
    }

    fn trace(&self, inputs: Vec<Tensor>, names: &[&str]) -> Result<Vec<Traced<'_>>> {
        let one = |input: Tensor| {
            let (mut tensors, tape) = self.traced(vec![input], names)?;
            Ok(Traced { tensors: tensors.remove(0), tape: Box::new(tape) as Box<dyn Tape> })
        };
        inputs.into_iter().map(one).collect()
    }

    fn prefers_batches(&self) -> bool {
        true
    }

    fn trace_batch(&self, inputs: Vec<Tensor>, names: &[&str]) -> Result<TracedBatch<'_>> {
        let (tensors, tape) = self.traced(inputs, names)?;
        Ok(TracedBatch { tensors, tape: Box::new(tape) })
    }

    fn compares(&self) -> bool {
        self.compares
    }

    fn compare(&self, inputs: Vec<Tensor>, names: &[&str], asked: &Comparison) -> Result<ComparedThere<'_>> {
        let lengths: Vec<usize> = inputs.iter().map(Tensor::len).collect();
        Python::attach(|py| {
            let given = of_python(inputs_of(py, inputs).and_then(|inputs| {
                Ok((inputs, names_of(py, names)?, Py::new(py, PyComparison(asked.clone()))?))
            }))?;
            let answer = of_python(self.object.bind(py).call_method1("compare", given))?;
            let (row, value, pullback): (Bound<'_, PyAny>, f64, Option<Bound<'_, PyAny>>) =
                of_python(answer.extract())?;
            let rows = of_python(PyList::new(py, [row]))?;
            let tensors = tensors(rows.as_any(), 1, names)?.remove(0);
            let mut shapes = vec![tensors.iter().map(|t| t.shape().to_vec()).collect()];
            shapes.resize_with(lengths.len(), Vec::new);
            let tape = |pullback: Bound<'_, PyAny>| {
                Box::new(PyTape { pullback: pullback.unbind(), shapes, lengths }) as Box<dyn BatchTape>
            };
            Ok(ComparedThere { tensors, value, tape: pullback.map(tape) })
        })
    }
}
