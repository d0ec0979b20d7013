//! MatMul: the product over the last two dimensions, the others broadcast.
//!
//! A vector counts as a row on the left and a column on the right. Pulled back, `dA = g B'` and `dB = A' g`, summed over repeated
//! matrices; each side is kept only for the other's gradient.

use evenkeel_kernels::gemm::Shape;

use super::broadcast;
use super::fold::sum_to;
use super::number::{Float, Number, for_float, for_number};
use super::product::{Side, multiply};
use super::registry::{Entry, entry};
use super::walk::row_strides;
use super::{Answer, Call, Operator, values_of};
use crate::error::Fault;
use crate::tensor::{Room, Tensor, checked_len};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("MatMul", true, |_| Ok(Box::new(MatMul)))];

/// The product over the last two dimensions.
#[derive(Clone, Copy, Debug)]
pub struct MatMul;

/// How two shapes multiply.
struct Batches {
    /// Broadcast leading dimensions.
    lead: Vec<usize>,
    m: usize,
    k: usize,
    n: usize,
    /// The operands as stacks of matrices.
    a: Vec<usize>,
    b: Vec<usize>,
}

impl Batches {
    fn new(a: &[usize], b: &[usize]) -> Result<Batches, Fault> {
        let mismatch = || Fault::Mismatch { left: a.to_vec(), right: b.to_vec(), verb: "multiply" };
        if a.is_empty() || b.is_empty() {
            return Err(mismatch());
        }
        let left = if a.len() == 1 { vec![1, a[0]] } else { a.to_vec() };
        let right = if b.len() == 1 { vec![b[0], 1] } else { b.to_vec() };
        let (&[m, k], &[other, n]) = (&left[left.len() - 2..], &right[right.len() - 2..]) else {
            return Err(mismatch());
        };
        if k != other {
            return Err(mismatch());
        }
        let lead = broadcast::shape_of(&left[..left.len() - 2], &right[..right.len() - 2])?;
        Ok(Batches { lead, m, k, n, a: left, b: right })
    }

    /// The output's shape as stacks of matrices, and as the operator gives it.
    fn output(&self, a: &[usize], b: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let mut whole = self.lead.clone();
        whole.extend([self.m, self.n]);
        let mut given = self.lead.clone();
        given.extend((a.len() > 1).then_some(self.m));
        given.extend((b.len() > 1).then_some(self.n));
        (whole, given)
    }
}

impl Operator for MatMul {
    fn folds_up_to(&self) -> usize {
        super::SHORT_PRODUCT
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (a, b) = (call.input(0)?.clone(), call.input(1)?.clone());
        if !a.dtype().is_float() {
            return for_number!(a, 0, T => whole_product::<T>(&a, &b, call.room)).map(Answer::one);
        }
        for_float!(a, 0, T => forward::<T>(a, b, &call))
    }

    fn flops(&self, inputs: &[Option<&Tensor>]) -> f64 {
        let [Some(a), Some(b), ..] = inputs else { return 0.0 };
        Batches::new(a.shape(), b.shape()).map_or(0.0, |sizes| {
            let products = sizes.lead.iter().product::<usize>() as f64;
            2.0 * products * sizes.m as f64 * sizes.k as f64 * sizes.n as f64
        })
    }

    fn factors(&self) -> usize {
        2
    }
}

fn forward<T: Float>(a: Tensor, b: Tensor, call: &Call<'_>) -> Result<Answer, Fault> {
    let plan = Batches::new(a.shape(), b.shape())?;
    let (whole, given) = plan.output(a.shape(), b.shape());
    let (a_shape, b_shape) = (a.shape().to_vec(), b.shape().to_vec());
    let (a, b) = (a.reshaped(&plan.a)?, b.reshaped(&plan.b)?);
    let y = stacks::<T>(&a, false, &b, false, call.room)?.reshaped(&given)?;
    let (a, b) = (call.wants(1).then_some(a), call.wants(0).then_some(b));
    Ok(Answer::one(y).with(call.wants_any(), move |back| {
        let Some(g) = back.take(0) else { return Ok(()) };
        let g = g.reshaped(&whole)?;
        if let (true, Some(b)) = (back.wants(0), &b) {
            let own = stacks::<T>(&g, false, b, true, back.room())?;
            back.give(0, sum_to::<T>(own, &plan.a, back.room())?.reshaped(&a_shape)?)?;
        }
        if let (true, Some(a)) = (back.wants(1), &a) {
            let own = stacks::<T>(a, true, &g, false, back.room())?;
            back.give(1, sum_to::<T>(own, &plan.b, back.room())?.reshaped(&b_shape)?)?;
        }
        Ok(())
    }))
}

/// The products of two stacks of matrices whose leading dimensions broadcast, each side transposed if so.
fn stacks<T: Float>(
    a: &Tensor,
    a_turned: bool,
    b: &Tensor,
    b_turned: bool,
    room: &Room,
) -> Result<Tensor, Fault> {
    let dims = |t: &Tensor, turned: bool| {
        let (rows, columns) = (t.shape()[t.rank() - 2], t.shape()[t.rank() - 1]);
        if turned { (columns, rows) } else { (rows, columns) }
    };
    let ((m, k), (_, n)) = (dims(a, a_turned), dims(b, b_turned));
    let (a_lead, b_lead) = (&a.shape()[..a.rank() - 2], &b.shape()[..b.rank() - 2]);
    let lead = broadcast::shape_of(a_lead, b_lead)?;
    let mut shape = lead.clone();
    shape.extend([m, n]);
    let (x, y): (&[T], &[T]) = (values_of(a, 0)?, values_of(b, 1)?);
    let side = |values, turned: bool, rows, columns| {
        let side = if turned { Side::new(values, columns, rows) } else { Side::new(values, rows, columns) };
        side.transposed(turned)
    };
    let (left, right) = (side(x, a_turned, m, k), side(y, b_turned, k, n));
    room.tensor(&shape, |out| {
        if out.is_empty() {
            return;
        }
        let batch: usize = lead.iter().product();
        let repeats = |own: &[usize]| checked_len(own) == Some(1);
        // One stack against another of the same shape, or against a single matrix, is one call.
        if (a_lead == lead || repeats(a_lead)) && (b_lead == lead || repeats(b_lead)) {
            if b_lead.iter().all(|&dim| dim == 1) && a_lead == lead && !a_turned {
                let shape = Shape { batch: 1, m: batch * m, n, k };
                return multiply(shape, left, right, 1.0, out);
            }
            let step = |own: &[usize], side: Side<'_, T>| if repeats(own) { 0 } else { side.batch };
            let (left, right) =
                (Side { batch: step(a_lead, left), ..left }, Side { batch: step(b_lead, right), ..right });
            return multiply(Shape { batch, m, n, k }, left, right, 1.0, out);
        }
        let offsets = |own: &[usize]| matrix_offsets(&lead, own);
        let (a_at, b_at) = (offsets(a_lead), offsets(b_lead));
        for (i, c) in out.chunks_exact_mut(m * n).enumerate() {
            let (left, right) = (
                Side { values: &x[a_at[i] * m * k..], ..left },
                Side { values: &y[b_at[i] * k * n..], ..right },
            );
            multiply(Shape { batch: 1, m, n, k }, left, right, 1.0, c);
        }
    })
}

/// For each matrix of a broadcast stack, which matrix of the operand it reads.
fn matrix_offsets(lead: &[usize], own: &[usize]) -> Vec<usize> {
    let strides = row_strides(own);
    let missing = lead.len() - own.len();
    (0..lead.iter().product())
        .map(|mut i: usize| {
            let mut offset = 0;
            for axis in (0..lead.len()).rev() {
                let at = i % lead[axis];
                i /= lead[axis];
                if axis >= missing && own[axis - missing] != 1 {
                    offset += at * strides[axis - missing];
                }
            }
            offset
        })
        .collect()
}

fn whole_product<T: Number>(a: &Tensor, b: &Tensor, room: &Room) -> Result<Tensor, Fault> {
    let plan = Batches::new(a.shape(), b.shape())?;
    let (_, given) = plan.output(a.shape(), b.shape());
    let (x, y): (&[T], &[T]) = (values_of(a, 0)?, values_of(b, 1)?);
    let (m, k, n) = (plan.m, plan.k, plan.n);
    room.tensor(&given, |out| {
        if out.is_empty() {
            return;
        }
        let a_at = matrix_offsets(&plan.lead, &plan.a[..plan.a.len() - 2]);
        let b_at = matrix_offsets(&plan.lead, &plan.b[..plan.b.len() - 2]);
        for (i, c) in out.iter_mut().enumerate() {
            let (batch, row, column) = (i / n / m, i / n % m, i % n);
            let (a, b) = (&x[a_at[batch] * m * k + row * k..], &y[b_at[batch] * k * n + column..]);
            *c = (0..k).fold(T::default(), |sum, j| sum.plus(a[j].times(b[j * n])));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::Call;
    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(21);
        let shapes: &[[&[usize]; 2]] = &[
            [&[3, 4], &[4, 5]],
            [&[4], &[4]],
            [&[4], &[4, 3]],
            [&[2, 4], &[4]],
            [&[2, 3, 4], &[4, 5]],
            [&[3, 4], &[2, 4, 5]],
            [&[2, 1, 3, 4], &[1, 3, 4, 2]],
            [&[2, 3, 3, 4], &[2, 3, 4, 2]],
            [&[5], &[2, 5, 3]],
            [&[3, 2, 5], &[5]],
        ];
        for [a, b] in shapes {
            let inputs = [Some(numbers.tensor(a, -1.0, 1.0)), Some(numbers.tensor(b, -1.0, 1.0))];
            prove_gradient(build("MatMul", 13, &[], 2), &inputs, 1, 1e-5);
        }
    }

    #[test]
    fn shapes_that_do_not_multiply_are_refused() {
        let room = super::super::proof::room();
        for (a, b) in [(&[2usize, 3][..], &[2usize, 3][..]), (&[], &[3]), (&[2, 2, 3], &[3, 3, 2])] {
            let zeros = |shape: &[usize]| Some(Tensor::new(shape, vec![0.0f32; shape.iter().product()]));
            let call = Call { inputs: vec![zeros(a), zeros(b)], wants: &[false; 2], outputs: 1, room: &room };
            assert!(build("MatMul", 13, &[], 2).apply(call).is_err(), "{a:?} {b:?}");
        }
    }

    #[test]
    fn empty_sums_are_zero_and_integers_multiply() {
        let op = build("MatMul", 13, &[], 2).into();
        let none = |shape: &[usize]| Some(Tensor::new(shape, Vec::<f32>::new()));
        let y = outputs(&op, &[none(&[2, 0]), none(&[0, 3])], 1).remove(0);
        assert_eq!(y.values::<f32>().unwrap(), [0.0; 6]);
        let (a, b) = (Tensor::new(&[1, 2], vec![3i32, 4]), Tensor::new(&[2, 1], vec![5i32, 6]));
        assert_eq!(outputs(&op, &[Some(a), Some(b)], 1).remove(0).values::<i32>().unwrap(), [39]);
    }
}
