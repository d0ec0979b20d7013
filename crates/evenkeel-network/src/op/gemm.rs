//! Gemm: `alpha A' B' + beta C`, with optional transposes.
//!
//! Pulled back, `dA = alpha g B'`, `dB = alpha A' g` and `dC = beta g`, summed to its shape. Each matrix is kept only for the other's
//! gradient.

use std::sync::{Arc, Mutex, PoisonError};

use evenkeel_kernels::gemm::{Operand, Packed, Scale, Shape, gemm_packed};

use super::broadcast::{self, combine_hot};
use super::fold::sum_to;
use super::number::{Float, for_float};
use super::product::{Side, multiply};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Operator, values_of};
use crate::error::Fault;
use crate::tensor::{Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("Gemm", true, build)];

/// `alpha A' B' + beta C`.
#[derive(Debug)]
pub struct Gemm {
    /// The factor of the product.
    pub alpha: f32,
    /// The factor of the third input.
    pub beta: f32,
    /// Whether the first input is transposed.
    pub a_turned: bool,
    /// Whether the second input is transposed.
    pub b_turned: bool,
    /// The second input last seen, packed: a constant one is packed once.
    packed: Mutex<Option<(Tensor, Arc<Packed>)>>,
}

fn build(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let attributes = definition.attributes;
    Ok(Box::new(Gemm {
        alpha: attributes.float("alpha")?.unwrap_or(1.0),
        beta: attributes.float("beta")?.unwrap_or(1.0),
        a_turned: attributes.flag("transA", false)?,
        b_turned: attributes.flag("transB", false)?,
        packed: Mutex::default(),
    }))
}

impl Operator for Gemm {
    fn folds_up_to(&self) -> usize {
        super::SHORT_PRODUCT
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let a = call.input(0)?;
        for_float!(a, 0, T => self.forward::<T>(&call))
    }

    fn flops(&self, inputs: &[Option<&Tensor>]) -> f64 {
        let [Some(a), Some(b), ..] = inputs else { return 0.0 };
        let columns = b.shape().get(usize::from(!self.b_turned)).copied().unwrap_or(0);
        2.0 * a.len() as f64 * columns as f64
    }

    fn factors(&self) -> usize {
        2
    }
}

impl Gemm {
    fn forward<T: Float>(&self, call: &Call<'_>) -> Result<Answer, Fault> {
        let (a, b) = (call.input(0)?.clone(), call.input(1)?.clone());
        for (input, tensor) in [&a, &b].into_iter().enumerate() {
            if tensor.rank() != 2 {
                return Err(Fault::Shape {
                    input,
                    expected: "a matrix".into(),
                    got: tensor.shape().to_vec(),
                });
            }
        }
        let (alpha, beta) = (f64::from(self.alpha), f64::from(self.beta));
        let mut y = match self.by_packed(&a, call)? {
            Some(y) => y,
            None => matrices::<T>([&a, &b], [self.a_turned, self.b_turned], alpha, call.room)?,
        };
        let c_shape = call.optional(2).map(|c| c.shape().to_vec());
        if let Some(c) = call.optional(2) {
            if broadcast::shape_of(y.shape(), c.shape())? != y.shape() {
                let (left, right) = (y.shape().to_vec(), c.shape().to_vec());
                return Err(Fault::Mismatch { left, right, verb: "broadcast to the first" });
            }
            let beta = T::of(beta);
            y = combine_hot(
                y,
                c.clone(),
                call.room,
                #[inline(always)]
                |y: T, c: T| y + beta * c,
            )?;
        }
        let (a, b) = (call.wants(1).then_some(a), call.wants(0).then_some(b));
        let [a_turned, b_turned] = [self.a_turned, self.b_turned];
        Ok(Answer::one(y).with(call.wants_any(), move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            if let (true, Some(b)) = (back.wants(0), &b) {
                let own = if a_turned {
                    matrices::<T>([b, &g], [b_turned, true], alpha, back.room())?
                } else {
                    matrices::<T>([&g, b], [false, !b_turned], alpha, back.room())?
                };
                back.give(0, own)?;
            }
            if let (true, Some(a)) = (back.wants(1), &a) {
                let own = if b_turned {
                    matrices::<T>([&g, a], [true, a_turned], alpha, back.room())?
                } else {
                    matrices::<T>([a, &g], [!a_turned, false], alpha, back.room())?
                };
                back.give(1, own)?;
            }
            if let (true, Some(shape)) = (back.wants(2), &c_shape) {
                let own = sum_to::<T>(g, shape, back.room())?;
                let own = broadcast::map(own, back.room(), |v: T| v * T::of(beta))?;
                back.give(2, own)?;
            }
            Ok(())
        }))
    }
}

impl Gemm {
    /// The product with a second input that stays: transposed, as networks keep their weights, it would be gathered anew at
    /// every call. `None` where it is not transposed, may change, or is not of f32.
    fn by_packed(&self, a: &Tensor, call: &Call<'_>) -> Result<Option<Tensor>, Fault> {
        let b = call.input(1)?;
        let (&[n, k], &[rows, columns]) = (b.shape(), a.shape()) else { return Ok(None) };
        let (Some(x), Some(y)) = (a.values::<f32>(), b.values::<f32>()) else { return Ok(None) };
        let (m, depth) = if self.a_turned { (columns, rows) } else { (rows, columns) };
        if !self.b_turned || call.wants(1) || depth != k || x.is_empty() || y.is_empty() {
            return Ok(None);
        }
        let packed = {
            let mut seen = self.packed.lock().unwrap_or_else(PoisonError::into_inner);
            match &*seen {
                Some((tensor, packed)) if tensor.same_values(b) => packed.clone(),
                _ => {
                    let packed = Arc::new(Packed::new(k, n, Operand::row_major(y, n, k).transposed()));
                    *seen = Some((b.clone(), packed.clone()));
                    packed
                }
            }
        };
        let left = Operand::row_major(x, rows, columns);
        let left = if self.a_turned { left.transposed() } else { left };
        let (shape, scale) = (Shape { batch: 1, m, n, k }, Scale { alpha: self.alpha, beta: 0.0 });
        call.room.tensor(&[m, n], |out| gemm_packed(shape, left, &packed, out, scale)).map(Some)
    }
}

/// `alpha A B` of two matrices, each transposed if so.
fn matrices<T: Float>(
    sides: [&Tensor; 2],
    turned: [bool; 2],
    alpha: f64,
    room: &Room,
) -> Result<Tensor, Fault> {
    let dims = |i: usize| {
        let (rows, columns) = (sides[i].shape()[0], sides[i].shape()[1]);
        if turned[i] { (columns, rows) } else { (rows, columns) }
    };
    let ((m, k), (depth, n)) = (dims(0), dims(1));
    if k != depth {
        let (left, right) = (sides[0].shape().to_vec(), sides[1].shape().to_vec());
        return Err(Fault::Mismatch { left, right, verb: "multiply" });
    }
    let side = |i: usize| -> Result<Side<'_, T>, Fault> {
        let values = values_of(sides[i], i)?;
        Ok(Side::new(values, sides[i].shape()[0], sides[i].shape()[1]).transposed(turned[i]))
    };
    let (left, right) = (side(0)?, side(1)?);
    room.tensor(&[m, n], |out| multiply(Shape { batch: 1, m, n, k }, left, right, alpha, out))
}

#[cfg(test)]
mod tests {
    use super::super::proof::{Numbers, build, narrow, outputs, prove_gradient, room};
    use super::super::{Attribute, Call};

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(22);
        for turned in 0..4 {
            let (a_turned, b_turned) = (turned & 1, turned >> 1);
            let a = if a_turned == 1 { [4, 3] } else { [3, 4] };
            let b = if b_turned == 1 { [5, 4] } else { [4, 5] };
            for c in [None, Some(&[5][..]), Some(&[3, 1]), Some(&[3, 5]), Some(&[])] {
                let inputs = [
                    Some(numbers.tensor(&a, -1.0, 1.0)),
                    Some(numbers.tensor(&b, -1.0, 1.0)),
                    c.map(|c| numbers.tensor(c, -1.0, 1.0)),
                ];
                let attributes = [
                    ("transA", Attribute::Int(a_turned)),
                    ("transB", Attribute::Int(b_turned)),
                    ("alpha", Attribute::Float(0.5)),
                    ("beta", Attribute::Float(0.25)),
                ];
                prove_gradient(build("Gemm", 13, &attributes, 3), &inputs, 1, 1e-5);
            }
        }
    }

    #[test]
    fn weights_packed_once_give_the_same_product() {
        let mut numbers = Numbers::new(23);
        let room = room();
        for (a_turned, shape) in [(0, [2, 9]), (1, [9, 2]), (0, [7, 9])] {
            let (a, b) = (numbers.tensor(&shape, -1.0, 1.0), numbers.tensor(&[20, 9], -1.0, 1.0));
            let attributes = [("transA", Attribute::Int(a_turned)), ("transB", Attribute::Int(1))];
            let op = build("Gemm", 13, &attributes, 2);
            let exact =
                outputs(&build("Gemm", 13, &attributes, 2).into(), &[Some(a.clone()), Some(b.clone())], 1);
            let (a, b) = (narrow(&a), narrow(&b));
            for _ in 0..2 {
                let inputs = vec![Some(a.clone()), Some(b.clone())];
                let y = op
                    .apply(Call { inputs, wants: &[false; 2], outputs: 1, room: &room })
                    .unwrap()
                    .outputs
                    .remove(0);
                assert_eq!(y.shape(), exact[0].shape());
                for (y, e) in y.values::<f32>().unwrap().iter().zip(exact[0].values::<f64>().unwrap()) {
                    assert!((f64::from(*y) - e).abs() < 1e-5, "{y} instead of {e}");
                }
            }
        }
    }
}
