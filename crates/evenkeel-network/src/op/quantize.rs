//! QuantizeLinear and DequantizeLinear.
//!
//! Codes are `clamp(round(x / scale) + zero)`, ties to even; values are `(code - zero) scale`. Scale and zero hold for the whole
//! tensor, for each index of an axis, or for each block along it. The gradient goes straight through the rounding: a quantizer divides it by
//! the scale where the code was not clamped and passes nothing where it was, so that a pair of the two is the identity inside the range.

use super::broadcast::{binary, combine, convert};
use super::fold::axis_of;
use super::number::{Float, Number, Wide, for_float, for_number};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Operator, values_of};
use crate::error::Fault;
use crate::tensor::{DType, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] =
    &[entry("QuantizeLinear", true, quantize), entry("DequantizeLinear", true, dequantize)];

/// Which scale belongs to an element.
#[derive(Clone, Copy, Debug)]
struct Grid {
    axis: i64,
    /// Zero for one scale an index.
    block: usize,
}

fn grid(definition: &Definition<'_>) -> Result<Grid, Fault> {
    let axis = definition.attributes.int("axis")?.unwrap_or(1);
    let block = definition.attributes.int("block_size")?.unwrap_or(0);
    let wrong = |_| Fault::Attribute { name: "block_size".into(), problem: "is negative".into() };
    Ok(Grid { axis, block: usize::try_from(block).map_err(wrong)? })
}

impl Grid {
    /// A parameter in `T`, shaped so that it broadcasts to `shape`.
    fn spread<T: Float>(
        &self,
        of: &Tensor,
        input: usize,
        shape: &[usize],
        room: &Room,
    ) -> Result<Tensor, Fault> {
        let of = for_number!(of, input, U => convert(of, room, |v: U| T::of(v.wide().to_float())))?;
        if of.len() == 1 {
            return of.reshaped(&[]);
        }
        let axis = axis_of(self.axis, shape.len())?;
        let misfit = || Fault::Shape {
            input,
            expected: "one value an index or block".into(),
            got: of.shape().to_vec(),
        };
        if self.block == 0 {
            if of.rank() != 1 || of.len() != shape[axis] {
                return Err(misfit());
            }
            let mut spread = vec![1; shape.len()];
            spread[axis] = of.len();
            return of.reshaped(&spread);
        }
        let blocks = shape[axis].div_ceil(self.block);
        let fits = |(i, (&own, &all)): (usize, (&usize, &usize))| own == if i == axis { blocks } else { all };
        if of.rank() != shape.len() || !of.shape().iter().zip(shape).enumerate().all(fits) {
            return Err(misfit());
        }
        let values: &[T] = values_of(&of, input)?;
        room.tensor(shape, |out| {
            let rest: usize = if out.is_empty() { 1 } else { shape[axis + 1..].iter().product() };
            for (i, out) in out.iter_mut().enumerate() {
                let (lead, at, tail) = (i / rest / shape[axis], i / rest % shape[axis], i % rest);
                *out = values[(lead * blocks + at / self.block) * rest + tail];
            }
        })
    }
}

#[derive(Clone, Copy, Debug)]
struct Quantize {
    grid: Grid,
    /// The type of the codes, if the file says it.
    codes: Option<Codes>,
}

/// A type of codes: what holds them, and their range.
#[derive(Clone, Copy, Debug)]
struct Codes {
    dtype: DType,
    low: f64,
    high: f64,
}

const BYTES: Codes = Codes { dtype: DType::U8, low: 0.0, high: 255.0 };
const SIGNED_BYTES: Codes = Codes { dtype: DType::I8, low: -128.0, high: 127.0 };

fn quantize(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let codes = match definition.attributes.int("output_dtype")?.unwrap_or(0) {
        0 => None,
        2 => Some(BYTES),
        3 => Some(SIGNED_BYTES),
        4 => Some(Codes { dtype: DType::I32, low: 0.0, high: 65535.0 }),
        5 => Some(Codes { dtype: DType::I32, low: -32768.0, high: 32767.0 }),
        other => return Err(Fault::Unsupported(format!("quantization to element type {other}"))),
    };
    Ok(Box::new(Quantize { grid: grid(definition)?, codes }))
}

impl Operator for Quantize {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn passes_through_codes(&self) -> bool {
        true
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let codes = match (call.optional(2).map(Tensor::dtype), self.codes) {
            (_, Some(codes)) => codes,
            (None | Some(DType::U8), None) => BYTES,
            (Some(DType::I8), None) => SIGNED_BYTES,
            (Some(_), None) => return Err(Fault::Unsupported("quantization to 16 bits".into())),
        };
        let x = call.input(0)?;
        for_float!(x, 0, T => self.forward::<T>(&call, codes))
    }
}

impl Quantize {
    fn forward<T: Float>(&self, call: &Call<'_>, codes: Codes) -> Result<Answer, Fault> {
        let (x, room) = (call.input(0)?.clone(), call.room);
        let scale = self.grid.spread::<T>(call.input(1)?, 1, x.shape(), room)?;
        let zero = match call.optional(2) {
            Some(zero) => self.grid.spread::<T>(zero, 2, x.shape(), room)?,
            None => Tensor::scalar(T::of(0.0)),
        };
        let (low, high) = (T::of(codes.low), T::of(codes.high));
        let rounded = binary(&x, &scale, room, |x: T, scale: T| (x / scale).round_even())?;
        let code = combine(rounded, zero, room, |x: T, zero: T| x + zero)?;
        let held = move |code: T| code.larger(low).smaller(high).wide();
        let y = match codes.dtype {
            DType::U8 => convert(&code, room, move |code: T| held(code) as u8),
            DType::I8 => convert(&code, room, move |code: T| held(code) as i8),
            _ => convert(&code, room, move |code: T| held(code) as i32),
        }?;
        let wanted = call.wants(0);
        let kept = wanted.then_some(code);
        Ok(Answer::one(y).with(wanted, move |back| {
            let (Some(g), Some(code)) = (back.take(0), kept.clone()) else { return Ok(()) };
            let inside = |g: T, code: T| if code >= low && code <= high { g } else { T::of(0.0) };
            let g = combine(g, code, back.room(), inside)?;
            let g = combine(g, scale.clone(), back.room(), |g: T, scale: T| g / scale)?;
            back.give(0, g)
        }))
    }
}

#[derive(Clone, Copy, Debug)]
struct Dequantize {
    grid: Grid,
}

fn dequantize(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Dequantize { grid: grid(definition)? }))
}

impl Operator for Dequantize {
    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let scale = call.input(1)?;
        for_float!(scale, 1, T => self.forward::<T>(&call))
    }
}

impl Dequantize {
    fn forward<T: Float>(&self, call: &Call<'_>) -> Result<Answer, Fault> {
        let (x, room) = (call.input(0)?, call.room);
        let scale = self.grid.spread::<T>(call.input(1)?, 1, x.shape(), room)?;
        let mut y = for_number!(x, 0, U => convert(x, room, |code: U| T::of(code.wide().to_float())))?;
        if let Some(zero) = call.optional(2) {
            let zero = self.grid.spread::<T>(zero, 2, x.shape(), room)?;
            y = combine(y, zero, room, |code: T, zero: T| code - zero)?;
        }
        let y = combine(y, scale.clone(), room, |code: T, scale: T| code * scale)?;
        Ok(Answer::one(y).with(call.wants(0), move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            let g = combine(g, scale.clone(), back.room(), |g: T, scale: T| g * scale)?;
            back.give(0, g)
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::super::proof::{build, outputs};
    use crate::graph::Graph;
    use crate::tensor::{DType, Limits, Tensor};
    use crate::{Network, Result};

    #[test]
    fn codes_round_to_even_and_stay_in_range() {
        let x = Some(Tensor::new(&[6], vec![0.0f32, 2.0, 3.0, 1000.0, -254.0, -1000.0]));
        let inputs = [x, Some(Tensor::scalar(2.0f32)), Some(Tensor::scalar(128u8))];
        let y = outputs(&build("QuantizeLinear", 19, &[], 3).into(), &inputs, 1).remove(0);
        assert_eq!(y.values::<u8>().unwrap(), [128, 129, 130, 255, 1, 0]);
        let back = [Some(y), inputs[1].clone(), inputs[2].clone()];
        let x = outputs(&build("DequantizeLinear", 19, &[], 3).into(), &back, 1).remove(0);
        assert_eq!(x.values::<f32>().unwrap(), [0.0, 2.0, 4.0, 254.0, -254.0, -256.0]);
    }

    #[test]
    fn scales_may_follow_an_axis() {
        let x = Some(Tensor::new(&[1, 2, 2], vec![1.0f32, 2.0, 10.0, 20.0]));
        let scale = Some(Tensor::new(&[2], vec![1.0f32, 10.0]));
        let zero = Some(Tensor::new(&[2], vec![0i8, -1]));
        let y = outputs(&build("QuantizeLinear", 13, &[], 3).into(), &[x, scale, zero], 1).remove(0);
        assert_eq!(y.values::<i8>().unwrap(), [1, 2, 0, 1]);
    }

    #[test]
    fn a_pair_passes_the_gradient_inside_its_range() -> Result<()> {
        let mut graph = Graph::default();
        graph.input("x", DType::F32, None);
        graph.constant("scale", Tensor::scalar(0.5f32))?;
        graph.constant("zero", Tensor::scalar(0u8))?;
        graph.node(
            "QuantizeLinear",
            build("QuantizeLinear", 13, &[], 3).into(),
            &["x", "scale", "zero"],
            &["q"],
        );
        graph.node(
            "DequantizeLinear",
            build("DequantizeLinear", 13, &[], 3).into(),
            &["q", "scale", "zero"],
            &["y"],
        );
        let y = graph.value("y");
        graph.outputs.push(y);
        let network = Network::from_graph(graph, Limits::default())?;
        let x = Tensor::new(&[3], vec![-3.0f32, 1.3, 1e6]);
        let trace = network.trace(&[("x", x)], &["y"])?;
        assert_eq!(trace.tensors()[0].values::<f32>().unwrap(), [0.0, 1.5, 127.5]);
        let gradients = trace.pullback(&[("y", Tensor::new(&[3], vec![1.0f32, 2.0, 3.0]))])?;
        assert_eq!(gradients[0].1.values::<f32>().unwrap(), [0.0, 2.0, 0.0]);
        Ok(())
    }
}
