//! Shape, Size, Range, Constant, ConstantOfShape and EyeLike: tensors made of shapes and attributes, through which no gradient
//! passes.

use evenkeel_kernels::buffer::Flag;

use super::cast::Target;
use super::registry::{Entry, entry};
use super::{Answer, Attribute, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::for_type;
use crate::tensor::{Data, Element, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("Shape", false, shape),
    entry("Size", false, |_| Ok(Box::new(Made::Size))),
    entry("Range", false, |_| Ok(Box::new(Made::Range))),
    entry("Constant", false, constant),
    entry("ConstantOfShape", false, constant_of_shape),
    entry("EyeLike", false, eye_like),
];

/// What is made.
#[derive(Debug)]
enum Made {
    Shape { start: i64, end: i64 },
    Size,
    Range,
    Constant(Tensor),
    Filled(Tensor),
    Eye { diagonal: i64, target: Option<Target> },
}

fn shape(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let bound = |name| definition.attributes.int(name);
    Ok(Box::new(Made::Shape { start: bound("start")?.unwrap_or(0), end: bound("end")?.unwrap_or(i64::MAX) }))
}

fn constant(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let refused = |name: &str| Fault::Attribute { name: name.into(), problem: "is not supported".into() };
    let Some((name, value)) = definition.attributes.0.iter().find(|(name, _)| name.contains("value")) else {
        return Err(Fault::Attribute { name: "value".into(), problem: "is missing".into() });
    };
    Ok(Box::new(Made::Constant(match value {
        Attribute::Tensor(tensor) => tensor.clone(),
        Attribute::Float(value) => Tensor::scalar(*value),
        Attribute::Int(value) => Tensor::scalar(*value),
        Attribute::Floats(values) => Tensor::new(&[values.len()], values.clone()),
        Attribute::Ints(values) => Tensor::new(&[values.len()], values.clone()),
        _ => return Err(refused(name)),
    })))
}

fn constant_of_shape(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let value = definition.attributes.tensor("value")?.unwrap_or_else(|| Tensor::scalar(0.0f32));
    if value.len() != 1 {
        return Err(Fault::Attribute { name: "value".into(), problem: "has not one element".into() });
    }
    Ok(Box::new(Made::Filled(value)))
}

fn eye_like(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let target = definition.attributes.int("dtype")?.map(Target::of).transpose()?;
    Ok(Box::new(Made::Eye { diagonal: definition.attributes.int("k")?.unwrap_or(0), target }))
}

/// The dimensions an integer input asks for.
pub(super) fn sizes(call: &Call<'_>, input: usize) -> Result<Vec<usize>, Fault> {
    let asked = call.integers(input)?;
    let sizes = asked.iter().map(|&size| usize::try_from(size).ok()).collect::<Option<Vec<_>>>();
    sizes.ok_or_else(|| Fault::Value(format!("{asked:?} is no shape")))
}

fn range(call: &Call<'_>) -> Result<Tensor, Fault> {
    let one = |i: usize| -> Result<&Tensor, Fault> {
        let x = call.input(i)?;
        let expected = || "one element".to_string();
        if x.len() == 1 {
            Ok(x)
        } else {
            Err(Fault::Shape { input: i, expected: expected(), got: x.shape().to_vec() })
        }
    };
    let (start, limit, step) = (one(0)?, one(1)?, one(2)?);
    if let Some(s) = start.integers() {
        let bad =
            |x: &Tensor, input| Fault::Type { input, expected: "the type of the start", got: x.dtype() };
        let l = limit.integers().ok_or_else(|| bad(limit, 1))?;
        let d = step.integers().ok_or_else(|| bad(step, 2))?;
        let (s, l, d) = (i128::from(s[0]), i128::from(l[0]), i128::from(d[0]));
        if d == 0 {
            return Err(Fault::Value("a range cannot have step 0".into()));
        }
        let span = if d > 0 { l - s } else { s - l };
        let count = usize::try_from((span.max(0) + d.abs() - 1) / d.abs()).unwrap_or(usize::MAX);
        return match start.data() {
            Data::I32(_) => room_range(call.room, count, |i| (s + i as i128 * d) as i32),
            _ => room_range(call.room, count, |i| (s + i as i128 * d) as i64),
        };
    }
    match start.data() {
        Data::F32(v) => {
            let (s, l, d) = (v[0], call.values::<f32>(1)?[0], call.values::<f32>(2)?[0]);
            let count = float_count(s.into(), l.into(), d.into())?;
            room_range(call.room, count, |i| s + i as f32 * d)
        }
        Data::F64(v) => {
            let (s, l, d) = (v[0], call.values::<f64>(1)?[0], call.values::<f64>(2)?[0]);
            room_range(call.room, float_count(s, l, d)?, |i| s + i as f64 * d)
        }
        _ => Err(Fault::Type { input: 0, expected: "numbers", got: start.dtype() }),
    }
}

fn float_count(start: f64, limit: f64, step: f64) -> Result<usize, Fault> {
    let count = ((limit - start) / step).ceil();
    if !count.is_finite() {
        return Err(Fault::Value(format!("no range from {start} to {limit} in steps of {step}")));
    }
    Ok(count.max(0.0) as usize)
}

fn room_range<T: Element>(room: &Room, count: usize, value: impl Fn(usize) -> T) -> Result<Tensor, Fault> {
    room.tensor(&[count], |out| out.iter_mut().enumerate().for_each(|(i, out)| *out = value(i)))
}

fn eye(call: &Call<'_>, diagonal: i64, target: Option<Target>) -> Result<Tensor, Fault> {
    let x = call.input(0)?;
    let &[rows, columns] = x.shape() else {
        return Err(Fault::Shape { input: 0, expected: "rank 2".into(), got: x.shape().to_vec() });
    };
    let flags = call.room.tensor::<Flag>(&[rows, columns], |out| {
        for (i, row) in out.chunks_mut(columns.max(1)).enumerate() {
            row.fill(false.into());
            let at = (i as i64).checked_add(diagonal).and_then(|at| usize::try_from(at).ok());
            if let Some(cell) = at.and_then(|at| row.get_mut(at)) {
                *cell = true.into();
            }
        }
    })?;
    target.unwrap_or_else(|| Target::like(x)).cast(&flags, call.room)
}

impl Operator for Made {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, _: usize) -> bool {
        false
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        Ok(Answer::one(match self {
            Made::Shape { start, end } => {
                let dims = call.input(0)?.shape();
                let rank = dims.len() as i64;
                let bound = |i: i64| if i < 0 { i.saturating_add(rank) } else { i }.clamp(0, rank) as usize;
                let (start, end) = (bound(*start), bound(*end));
                let kept: Vec<i64> = dims[start..end.max(start)].iter().map(|&dim| dim as i64).collect();
                Tensor::new(&[kept.len()], kept)
            }
            Made::Size => Tensor::scalar(call.input(0)?.len() as i64),
            Made::Range => range(&call)?,
            Made::Constant(tensor) => tensor.clone(),
            Made::Filled(value) => {
                let shape = sizes(&call, 0)?;
                for_type!(value.data(), value => {
                    let value = value[0];
                    call.room.tensor(&shape, |out| out.fill(value))
                })?
            }
            Made::Eye { diagonal, target } => eye(&call, *diagonal, *target)?,
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::proof::{build, outputs, room};
    use super::super::{Attribute, Call, Operator};
    use crate::tensor::Tensor;

    fn run(name: &str, attributes: &[(&str, Attribute)], inputs: &[Option<Tensor>]) -> Tensor {
        let op: Arc<dyn Operator> = build(name, 15, attributes, inputs.len()).into();
        outputs(&op, inputs, 1).remove(0)
    }

    #[test]
    fn shapes_and_ranges() {
        let x = Some(Tensor::new(&[2, 3, 1], vec![0u8; 6]));
        assert_eq!(run("Shape", &[], std::slice::from_ref(&x)).values::<i64>(), Some(&[2, 3, 1][..]));
        let part = [("start", Attribute::Int(-2)), ("end", Attribute::Int(100))];
        assert_eq!(run("Shape", &part, std::slice::from_ref(&x)).values::<i64>(), Some(&[3, 1][..]));
        assert_eq!(run("Size", &[], &[x]).values::<i64>(), Some(&[6][..]));
        let range = |a: i32, b: i32, c: i32| run("Range", &[], &[a, b, c].map(|v| Some(Tensor::scalar(v))));
        assert_eq!(range(10, 4, -2).values::<i32>(), Some(&[10, 8, 6][..]));
        assert_eq!(range(3, 3, 1).len(), 0);
    }

    #[test]
    fn hostile_sizes_are_refused() {
        let room = room();
        let refuse = |name: &str, inputs: Vec<Option<Tensor>>| {
            let wants = vec![false; inputs.len()];
            let call = Call { inputs, wants: &wants, outputs: 1, room: &room };
            assert!(build(name, 13, &[], 1).apply(call).is_err(), "{name}");
        };
        for shape in [vec![1i64 << 40], vec![-1], vec![1 << 62, 1 << 62], vec![0, 1 << 62, 1 << 62]] {
            refuse("ConstantOfShape", vec![Some(Tensor::new(&[shape.len()], shape))]);
        }
        for [a, b, c] in [[0, i64::MAX, 1], [i64::MIN, i64::MAX, 1], [0, 1, 0]] {
            refuse("Range", [a, b, c].map(|v| Some(Tensor::scalar(v))).to_vec());
        }
        refuse("Range", [0.0, f32::NAN, 1.0].map(|v| Some(Tensor::scalar(v))).to_vec());
        refuse("Range", [0.0, 1.0, 1e-30f32].map(|v| Some(Tensor::scalar(v))).to_vec());
    }
}
