//! The Reduce family: sums, means, products, extremes, norms and logarithms of sums over axes.
//!
//! Axes are an attribute in older files and an input in newer ones; none means all, unless the file asks for none to mean none. What is
//! tied for an extreme shares its gradient evenly, as in PyTorch's `amax`. A norm of zero has gradient zero.

use super::broadcast::{binary, combine, convert, expand, map};
use super::fold::{Fold, axes_of, fold, fold_hot, folded_shape, sum};
use super::number::{Float, Number, Wide, for_float, for_number};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator, values_of};
use crate::error::Fault;
use crate::tensor::{DType, Room, Tensor};
use evenkeel_kernels::buffer::Flag;

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("ReduceSum", true, |d| build(d, Kind::Sum)),
    entry("ReduceMean", true, |d| build(d, Kind::Mean)),
    entry("ReduceMax", true, |d| build(d, Kind::Max)),
    entry("ReduceMin", true, |d| build(d, Kind::Min)),
    entry("ReduceProd", true, |d| build(d, Kind::Prod)),
    entry("ReduceL1", true, |d| build(d, Kind::L1)),
    entry("ReduceL2", true, |d| build(d, Kind::L2)),
    entry("ReduceSumSquare", true, |d| build(d, Kind::SumSquare)),
    entry("ReduceLogSum", true, |d| build(d, Kind::LogSum)),
    entry("ReduceLogSumExp", true, |d| build(d, Kind::LogSumExp)),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Sum,
    Mean,
    Max,
    Min,
    Prod,
    L1,
    L2,
    SumSquare,
    LogSum,
    LogSumExp,
}

#[derive(Clone, Debug)]
struct Reduce {
    kind: Kind,
    axes: Option<Vec<i64>>,
    keep: bool,
    /// Whether no axes means that nothing is reduced.
    none_is_none: bool,
}

fn build(definition: &Definition<'_>, kind: Kind) -> Result<Box<dyn Operator>, Fault> {
    let attributes = definition.attributes;
    let axes = attributes.ints("axes")?;
    let none_is_none = attributes.flag("noop_with_empty_axes", false)?;
    Ok(Box::new(Reduce { kind, axes, keep: attributes.flag("keepdims", true)?, none_is_none }))
}

impl Operator for Reduce {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let given = match call.optional(1) {
            Some(_) => Some(call.integers(1)?),
            None => self.axes.clone(),
        };
        let x = call.take(0)?;
        let axes = match given {
            Some(axes) if !axes.is_empty() => axes_of(&axes, x.rank())?,
            _ if self.none_is_none => Vec::new(),
            _ => (0..x.rank()).collect(),
        };
        let over = Over { kind: self.kind, axes, keep: self.keep };
        if x.dtype() == DType::Bool {
            let bytes = convert(&x, call.room, |flag: Flag| u8::from(flag.get()))?;
            let y = over.value::<u8>(&bytes, call.room)?;
            let y = convert(&y, call.room, |byte: u8| Flag::from(byte != 0))?;
            return Ok(Answer::one(over.shaped(y, x.shape())?));
        }
        if !x.dtype().is_float() {
            let y = for_number!(x, 0, T => over.value::<T>(&x, call.room))?;
            return Ok(Answer::one(over.shaped(y, x.shape())?));
        }
        let wanted = call.wants(0);
        for_float!(x, 0, T => over.forward::<T>(x, wanted, call.room))
    }
}

/// A reduction over axes counted from the front.
#[derive(Clone, Debug)]
struct Over {
    kind: Kind,
    axes: Vec<usize>,
    keep: bool,
}

impl Over {
    /// Drops the reduced axes if they are not kept.
    fn shaped(&self, y: Tensor, shape: &[usize]) -> Result<Tensor, Fault> {
        if self.keep { Ok(y) } else { y.reshaped(&folded_shape(shape, &self.axes, false)) }
    }

    fn value<T: Number>(&self, x: &Tensor, room: &Room) -> Result<Tensor, Fault> {
        let count: usize = self.axes.iter().map(|&axis| x.shape()[axis]).fold(1, usize::saturating_mul);
        let (zero, one) = (T::Wide::ZERO, T::Wide::ONE);
        let end = |sum: T::Wide, _| T::narrow(sum);
        let axes = &self.axes;
        let through =
            |f: fn(f64) -> f64| move |sum: T::Wide, _| T::narrow(T::Wide::from_float(f(sum.to_float())));
        match self.kind {
            Kind::Sum => sum::<T>(x, axes, room),
            Kind::Mean => {
                let end = |sum: T::Wide, _| T::narrow(sum.share(count));
                fold_hot(
                    x,
                    axes,
                    room,
                    &Fold { start: zero, step: |s: T::Wide, x: T, _| s.plus(x.wide()), end },
                )
            }
            Kind::Max => fold_hot(
                x,
                axes,
                room,
                &Fold { start: T::LOWEST, step: |m: T, x: T, _| m.larger(x), end: |m: T, _| m },
            ),
            Kind::Min => fold(
                x,
                axes,
                room,
                &Fold { start: T::HIGHEST, step: |m: T, x: T, _| m.smaller(x), end: |m: T, _| m },
            ),
            Kind::Prod => {
                fold(x, axes, room, &Fold { start: one, step: |p: T::Wide, x: T, _| p.times(x.wide()), end })
            }
            Kind::L1 => {
                let step = |s: T::Wide, x: T, _| s.plus(x.wide().magnitude());
                fold(x, axes, room, &Fold { start: zero, step, end })
            }
            Kind::SumSquare => fold(x, axes, room, &Fold { start: zero, step: squares::<T>, end }),
            Kind::L2 => {
                fold(x, axes, room, &Fold { start: zero, step: squares::<T>, end: through(f64::sqrt) })
            }
            Kind::LogSum => {
                let step = |s: T::Wide, x: T, _| s.plus(x.wide());
                fold(x, axes, room, &Fold { start: zero, step, end: through(f64::ln) })
            }
            Kind::LogSumExp => log_sum_exp::<T>(x, axes, room),
        }
    }

    fn forward<T: Float>(self, x: Tensor, wanted: bool, room: &Room) -> Result<Answer, Fault> {
        let y = self.value::<T>(&x, room)?;
        let shape = x.shape().to_vec();
        let layout = x.layout();
        let output = self.shaped(y.clone(), &shape)?;
        let linear = matches!(self.kind, Kind::Sum | Kind::Mean);
        let kept = (wanted && !linear).then_some((x, y));
        Ok(Answer::one(output).with(wanted, move |back| {
            let Some(g) = back.take(0) else { return Ok(()) };
            let g = g.reshaped(&folded_shape(&shape, &self.axes, true))?;
            let g = match &kept {
                None => {
                    let count: usize =
                        self.axes.iter().map(|&axis| shape[axis]).fold(1, usize::saturating_mul);
                    let share = T::of(if self.kind == Kind::Mean { 1.0 / count as f64 } else { 1.0 });
                    let g = map(g, back.room(), |g: T| g * share)?;
                    expand::<T>(&g, &shape, layout, back.room())?
                }
                Some((x, y)) => self.pull::<T>(x, y, g, back.room())?,
            };
            back.give(0, g)
        }))
    }

    /// The cotangent of `x` from that of `y`, both with the reduced axes of size one.
    fn pull<T: Float>(&self, x: &Tensor, y: &Tensor, g: Tensor, room: &Room) -> Result<Tensor, Fault> {
        let (zero, one) = (T::of(0.0), T::of(1.0));
        let times = |a: Tensor, b: Tensor| {
            combine(
                a,
                b,
                room,
                #[inline(always)]
                |a: T, b: T| a * b,
            )
        };
        match self.kind {
            Kind::Sum | Kind::Mean => expand::<T>(&g, x.shape(), x.layout(), room),
            Kind::Max | Kind::Min => {
                let hits = binary(x, y, room, |x: T, y: T| if x == y { one } else { zero })?;
                let ties = sum::<T>(&hits, &self.axes, room)?;
                let share = combine(g, ties, room, |g: T, ties: T| g / ties)?;
                times(hits, share)
            }
            Kind::Prod => product_slopes::<T>(x, &self.axes, room).and_then(|slopes| times(slopes, g)),
            Kind::L1 => binary(x, &g, room, |x: T, g: T| {
                if x > zero {
                    g
                } else if x < zero {
                    -g
                } else {
                    zero
                }
            }),
            Kind::L2 => {
                let scale = binary(&g, y, room, |g: T, y: T| if y == zero { zero } else { g / y })?;
                binary(
                    x,
                    &scale,
                    room,
                    #[inline(always)]
                    |x: T, s: T| x * s,
                )
            }
            Kind::SumSquare => binary(
                x,
                &g,
                room,
                #[inline(always)]
                |x: T, g: T| T::of(2.0) * x * g,
            ),
            Kind::LogSum => {
                let scale = binary(&g, y, room, |g: T, y: T| g / y.exp())?;
                expand::<T>(&scale, x.shape(), x.layout(), room)
            }
            Kind::LogSumExp => {
                let shares = binary(
                    x,
                    y,
                    room,
                    #[inline(always)]
                    |x: T, y: T| (x - y).exp(),
                )?;
                times(shares, g)
            }
        }
    }
}

fn squares<T: Number>(sum: T::Wide, x: T, _: usize) -> T::Wide {
    sum.plus(x.wide().times(x.wide()))
}

/// `max + ln sum exp(x - max)`, with a maximum that is not finite left out of it.
fn log_sum_exp<T: Number>(x: &Tensor, axes: &[usize], room: &Room) -> Result<Tensor, Fault> {
    let finite = |m: T, _| Some(m.wide().to_float()).filter(|m| m.is_finite()).unwrap_or(0.0);
    let most = Fold { start: T::LOWEST, step: |m: T, x: T, _| m.larger(x), end: finite };
    let most = fold(x, axes, room, &most)?;
    let most: &[f64] = values_of(&most, 0)?;
    let step = |s: f64, x: T, i: usize| s + (x.wide().to_float() - most[i]).exp();
    let end = |s: f64, i: usize| T::narrow(T::Wide::from_float(s.ln() + most[i]));
    fold(x, axes, room, &Fold { start: 0.0, step, end })
}

/// For each element, the product of the others it was multiplied with.
fn product_slopes<T: Float>(x: &Tensor, axes: &[usize], room: &Room) -> Result<Tensor, Fault> {
    // The product without zeros, and how many zeros were left out.
    let step = |p: f64, x: T, _| if x.wide() == 0.0 { p } else { p * x.wide() };
    let rest = fold(x, axes, room, &Fold { start: 1.0, step, end: |p: f64, _| T::of(p) })?;
    let count = |n: f64, x: T, _| if x.wide() == 0.0 { n + 1.0 } else { n };
    let zeros = fold(x, axes, room, &Fold { start: 0.0, step: count, end: |n: f64, _| T::of(n) })?;
    let (zero, one) = (T::of(0.0), T::of(1.0));
    // With no zero it is the product over the element; with one, only that one has a slope; with more, none has.
    let without = binary(&rest, &zeros, room, |p: T, n: T| if n == zero { p } else { zero })?;
    let alone = binary(&rest, &zeros, room, |p: T, n: T| if n == one { p } else { zero })?;
    let many = binary(x, &without, room, |x: T, p: T| if x == zero { zero } else { p / x })?;
    let single = binary(x, &alone, room, |x: T, p: T| if x == zero { p } else { zero })?;
    combine(many, single, room, |a: T, b: T| a + b)
}

#[cfg(test)]
mod tests {
    use super::super::proof::{Numbers, build, outputs, prove_gradient, prove_layouts};
    use super::super::{Attribute, Call};
    use super::ENTRIES;
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(31);
        for entry in ENTRIES {
            for axes in [&[2, 3][..], &[1], &[-1], &[0, 2], &[0, 1, 2, 3], &[3, 1], &[]] {
                for keep in [0, 1] {
                    let x = [Some(numbers.tensor(&[2, 5, 3, 2], 0.3, 2.0))];
                    let attributes =
                        [("axes", Attribute::Ints(axes.to_vec())), ("keepdims", Attribute::Int(keep))];
                    prove_gradient(build(entry.name, 11, &attributes, 1), &x, 1, 2e-5);
                    prove_layouts(build(entry.name, 11, &attributes, 1), &x);
                }
            }
            let axes = Tensor::new(&[1], vec![1i64]);
            let x = numbers.tensor(&[3, 4], 0.3, 2.0);
            prove_gradient(build(entry.name, 18, &[], 2), &[Some(x), Some(axes)], 1, 2e-5);
            prove_gradient(build(entry.name, 18, &[], 1), &[Some(numbers.tensor(&[], 0.3, 2.0))], 1, 2e-5);
        }
        let x = Tensor::new(&[3, 3], vec![1.0f64, 0.0, 3.0, 0.0, 0.0, 2.0, 1.0, 2.0, 3.0]);
        let axes = [("axes", Attribute::Ints(vec![1]))];
        prove_gradient(build("ReduceProd", 11, &axes, 1), &[Some(x)], 1, 1e-5);
    }

    #[test]
    fn integers_and_empty_tensors_reduce() {
        let of = |name, x: Tensor| outputs(&build(name, 13, &[], 1).into(), &[Some(x)], 1).remove(0);
        let x = Tensor::new(&[2, 2], vec![1i32, -2, 3, 5]);
        for (name, value) in [
            ("ReduceSum", 7),
            ("ReduceMean", 1),
            ("ReduceMax", 5),
            ("ReduceMin", -2),
            ("ReduceProd", -30),
            ("ReduceL1", 11),
            ("ReduceSumSquare", 39),
        ] {
            assert_eq!(of(name, x.clone()).values::<i32>().unwrap(), [value], "{name}");
        }
        let none = Tensor::new(&[0, 3], Vec::<f32>::new());
        assert_eq!(of("ReduceSum", none.clone()).values::<f32>().unwrap(), [0.0]);
        assert_eq!(of("ReduceMax", none.clone()).values::<f32>().unwrap(), [f32::NEG_INFINITY]);
        assert_eq!(of("ReduceLogSumExp", none).values::<f32>().unwrap(), [f32::NEG_INFINITY]);
    }

    #[test]
    fn axes_outside_the_rank_are_refused() {
        let room = super::super::proof::room();
        for axes in [vec![4], vec![-5], vec![0, 0], vec![i64::MIN], vec![i64::MAX]] {
            let attributes = [("axes", Attribute::Ints(axes.clone()))];
            let x = Some(Tensor::new(&[1, 2, 1, 1], vec![0.0f32; 2]));
            let call = Call { inputs: vec![x], wants: &[false], outputs: 1, room: &room };
            assert!(build("ReduceSum", 11, &attributes, 1).apply(call).is_err(), "{axes:?}");
        }
    }
}
