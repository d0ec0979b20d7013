//! Pow: one tensor to the power of another, with broadcasting; the exponent may be of another type.
//!
//! `dx = g y x^(y-1)`, zero where y is zero, and `dy = g x^y ln x`, zero where x is zero and y is not negative. It keeps its inputs.

use super::broadcast::{binary, combine, combine_hot, convert};
use super::fold::sum_to;
use super::number::{Float, Number, Wide, for_number};
use super::registry::{Entry, entry};
use super::{Answer, Call, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{DType, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("Pow", true, |_| Ok(Box::new(Pow)))];

/// One tensor to the power of another.
#[derive(Clone, Copy, Debug)]
pub struct Pow;

impl Operator for Pow {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wants = [call.wants(0), call.wants(1)];
        let (x, y) = (call.take(0)?, call.take(1)?);
        match x.dtype() {
            DType::F32 => power::<f32>(x, &y, wants, call.room),
            DType::F64 => power::<f64>(x, &y, wants, call.room),
            _ => for_number!(x, 0, T => whole_power::<T>(&x, &y, call.room)),
        }
    }
}

/// A tensor of any numbers as `T`.
fn cast<T: Number>(x: &Tensor, room: &Room) -> Result<Tensor, Fault> {
    if x.dtype() == T::DTYPE {
        return Ok(x.clone());
    }
    for_number!(x, 1, U => convert(x, room, |v: U| T::narrow(T::Wide::from_float(v.wide().to_float()))))
}

fn whole_power<T: Number>(x: &Tensor, y: &Tensor, room: &Room) -> Result<Answer, Fault> {
    let y = cast::<f64>(y, room)?;
    let power = |x: T, y: f64| {
        if y < 0.0 || y.fract() != 0.0 || y > f64::from(u32::MAX) {
            return T::narrow(T::Wide::from_float(x.wide().to_float().powf(y)));
        }
        let (mut base, mut left, mut product) = (x.wide(), y as u32, T::Wide::ONE);
        while left > 0 {
            if left & 1 == 1 {
                product = product.times(base);
            }
            base = base.times(base);
            left >>= 1;
        }
        T::narrow(product)
    };
    Ok(Answer::one(binary(x, &y, room, power)?))
}

fn power<T: Float>(x: Tensor, y: &Tensor, wants: [bool; 2], room: &Room) -> Result<Answer, Fault> {
    let y = cast::<T>(y, room)?;
    let square = y.len() == 1 && y.values::<T>().is_some_and(|values| values[0] == T::of(2.0));
    let (x_shape, y_shape) = (x.shape().to_vec(), y.shape().to_vec());
    let kept = (wants[0] || wants[1]).then(|| x.clone());
    let z = if square {
        combine_hot(
            x,
            y.clone(),
            room,
            #[inline(always)]
            |x: T, _: T| x * x,
        )?
    } else {
        combine(x, y.clone(), room, |x: T, y: T| x.powf(y))?
    };
    Ok(Answer::one(z).with(wants[0] || wants[1], move |back| {
        let (Some(g), Some(x)) = (back.take(0), &kept) else { return Ok(()) };
        let zero = T::of(0.0);
        if back.wants(0) {
            let slope =
                binary(
                    x,
                    &y,
                    back.room(),
                    |x: T, y: T| {
                        if y == zero { zero } else { y * x.powf(y - T::of(1.0)) }
                    },
                )?;
            let own = combine(
                g.clone(),
                slope,
                back.room(),
                #[inline(always)]
                |g: T, s: T| g * s,
            )?;
            back.give(0, sum_to::<T>(own, &x_shape, back.room())?)?;
        }
        if back.wants(1) {
            let slope =
                binary(
                    x,
                    &y,
                    back.room(),
                    |x: T, y: T| {
                        if x == zero && y >= zero { zero } else { x.powf(y) * x.ln() }
                    },
                )?;
            let own = combine(
                g,
                slope,
                back.room(),
                #[inline(always)]
                |g: T, s: T| g * s,
            )?;
            back.give(1, sum_to::<T>(own, &y_shape, back.room())?)?;
        }
        Ok(())
    }))
}

#[cfg(test)]
mod tests {
    use super::super::proof::{Numbers, build, outputs, prove_gradient, prove_layouts};
    use crate::tensor::Tensor;

    #[test]
    fn pullbacks_agree_with_differences_and_layouts_with_each_other() {
        let mut numbers = Numbers::new(5);
        let shapes: &[[&[usize]; 2]] = &[
            [&[2, 5, 3, 2], &[2, 5, 3, 2]],
            [&[2, 5, 3, 2], &[]],
            [&[2, 5, 3, 2], &[5, 1, 1]],
            [&[3, 1], &[2, 1, 4]],
        ];
        for [x, y] in shapes {
            let inputs = [Some(numbers.tensor(x, 0.5, 2.0)), Some(numbers.tensor(y, 0.5, 2.0))];
            prove_gradient(build("Pow", 15, &[], 2), &inputs, 1, 2e-5);
            prove_layouts(build("Pow", 15, &[], 2), &inputs);
        }
    }

    #[test]
    fn a_square_of_a_negative_number_is_positive() {
        let x = Tensor::new(&[2], vec![-3.0f32, 0.5]);
        let op = build("Pow", 15, &[], 2).into();
        let y = outputs(&op, &[Some(x), Some(Tensor::scalar(2i64))], 1).remove(0);
        assert_eq!(y.values::<f32>().unwrap(), [9.0, 0.25]);
    }

    #[test]
    fn integers_have_integer_powers() {
        let inputs =
            [Some(Tensor::new(&[3], vec![2i32, -3, 5])), Some(Tensor::new(&[3], vec![10.0f32, 3.0, 0.0]))];
        let y = outputs(&build("Pow", 15, &[], 2).into(), &inputs, 1).remove(0);
        assert_eq!(y.values::<i32>().unwrap(), [1024, -27, 1]);
    }
}
