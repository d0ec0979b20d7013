//! InstanceNormalization and GroupNormalization: each group of an image's channels brought to mean 0 and variance 1, then scaled and
//! shifted by channel.
//!
//! `y = scale[c] (x - mean) inverse + bias[c]` with `inverse = 1 / sqrt(variance + epsilon)` of the group. With `h = scale g` and
//! `z = (x - mean) inverse`, `dx = inverse (h - mean(h) - z mean(h z))`, which is a factor of `g`, a factor of `x` and a constant for
//! each image and channel. An instance norm is a group norm with one channel a group. The tape is the input and two numbers a group.

use super::broadcast::{binary_hot, combine_hot};
use super::channels::{Affine, affine};
use super::fold::{Fold, fold_hot};
use super::number::{Float, for_float};
use super::registry::{Entry, entry};
use super::{Answer, Call, Definition, Layouts, Operator, values_of};
use crate::error::Fault;
use crate::tensor::{Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] =
    &[entry("InstanceNormalization", true, instance), entry("GroupNormalization", true, group)];

#[derive(Clone, Copy, Debug)]
struct GroupNorm {
    epsilon: f64,
    /// `None` for one group a channel.
    groups: Option<i64>,
    /// Whether scale and bias are given by group, as before opset 21.
    scaled_by_group: bool,
}

fn instance(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let epsilon = definition.attributes.float("epsilon")?.unwrap_or(1e-5).into();
    Ok(Box::new(GroupNorm { epsilon, groups: None, scaled_by_group: false }))
}

fn group(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let epsilon = definition.attributes.float("epsilon")?.unwrap_or(1e-5).into();
    let missing = Fault::Attribute { name: "num_groups".into(), problem: "is missing".into() };
    let groups = definition.attributes.int("num_groups")?.ok_or(missing)?;
    Ok(Box::new(GroupNorm { epsilon, groups: Some(groups), scaled_by_group: definition.opset < 21 }))
}

impl Operator for GroupNorm {
    fn layouts(&self) -> Layouts {
        Layouts::Any
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.take(0)?;
        for_float!(x, 0, T => self.forward::<T>(x, &call))
    }
}

/// The sizes of a map and its groups.
#[derive(Clone, Copy, Debug)]
struct Sizes {
    images: usize,
    channels: usize,
    /// Channels of one group.
    each: usize,
    /// Elements of one channel of one image.
    pixels: usize,
}

impl Sizes {
    /// Sums over each group of numbers given for each image and channel, spread to its channels again.
    fn by_group(&self, sums: &[f64]) -> Vec<f64> {
        let mut totals = vec![0.0; sums.len()];
        for (totals, sums) in totals.chunks_mut(self.each).zip(sums.chunks(self.each)) {
            totals.fill(sums.iter().sum());
        }
        totals
    }

    fn count(&self) -> f64 {
        (self.each * self.pixels) as f64
    }
}

/// The sum of `f(x, i)` over the pixels of each image and channel `i`.
fn channel_sums<T: Float>(
    x: &Tensor,
    room: &Room,
    f: impl Fn(T, usize) -> f64 + Sync + Send,
) -> Result<Vec<f64>, Fault> {
    let axes: Vec<usize> = (2..x.rank()).collect();
    let step = |sum: f64, x: T, i: usize| sum + f(x, i);
    let sums = fold_hot(x, &axes, room, &Fold { start: 0.0, step, end: |sum: f64, _| sum })?;
    Ok(values_of::<f64>(&sums, 0)?.to_vec())
}

impl GroupNorm {
    fn sizes(&self, shape: &[usize]) -> Result<Sizes, Fault> {
        let &[images, channels, ref rest @ ..] = shape else {
            return Err(Fault::Shape { input: 0, expected: "[n, c, ...]".into(), got: shape.to_vec() });
        };
        let groups = self.groups.map_or(Some(channels), |groups| usize::try_from(groups).ok());
        let each = match groups {
            Some(groups) if groups > 0 && channels % groups == 0 => channels / groups,
            _ if channels == 0 => 1,
            _ => {
                let expected = format!("channels in {} groups", self.groups.unwrap_or(0));
                return Err(Fault::Shape { input: 0, expected, got: shape.to_vec() });
            }
        };
        Ok(Sizes {
            images,
            channels,
            each: each.max(1),
            pixels: rest.iter().fold(1, |all, &dim| all.saturating_mul(dim)),
        })
    }

    /// One parameter a channel.
    fn parameter<T: Float>(&self, call: &Call<'_>, i: usize, sizes: Sizes) -> Result<Vec<T>, Fault> {
        let tensor = call.input(i)?;
        let values: &[T] = values_of(tensor, i)?;
        let spread = if self.scaled_by_group && values.len() != sizes.channels { sizes.each } else { 1 };
        if values.len() * spread != sizes.channels {
            let expected = format!("[{}]", sizes.channels / spread);
            return Err(Fault::Shape { input: i, expected, got: tensor.shape().to_vec() });
        }
        Ok((0..sizes.channels).map(|c| values[c / spread]).collect())
    }

    fn forward<T: Float>(&self, x: Tensor, call: &Call<'_>) -> Result<Answer, Fault> {
        let sizes = self.sizes(x.shape())?;
        let (scale, bias) = (self.parameter::<T>(call, 1, sizes)?, self.parameter::<T>(call, 2, sizes)?);
        if (call.wants(1) && call.input(1)?.len() != sizes.channels)
            || (call.wants(2) && call.input(2)?.len() != sizes.channels)
        {
            return Err(Fault::Unsupported("the gradient of a scale given by group".into()));
        }
        if x.is_empty() {
            return Ok(Answer::one(x));
        }
        let share = 1.0 / sizes.count();
        let sums = channel_sums(&x, call.room, |x: T, _| x.wide())?;
        let mean: Vec<f64> = sizes.by_group(&sums).iter().map(|sum| sum * share).collect();
        let squares = channel_sums(&x, call.room, |x: T, i| (x.wide() - mean[i]) * (x.wide() - mean[i]))?;
        let inverse: Vec<f64> =
            sizes.by_group(&squares).iter().map(|sum| 1.0 / (sum * share + self.epsilon).sqrt()).collect();
        let factor: Vec<f64> =
            (0..mean.len()).map(|i| inverse[i] * scale[i % sizes.channels].wide()).collect();
        let shift = |i: usize| T::of(bias[i % sizes.channels].wide() - mean[i] * factor[i]);
        let pairs = Affine {
            scale: factor.iter().map(|&factor| T::of(factor)).collect(),
            shift: Some((0..mean.len()).map(shift).collect()),
        };
        let wanted = call.wants_any();
        let kept = wanted.then(|| x.clone());
        let y = affine(x, &pairs, call.room)?;
        let moments = Moments { sizes, mean, inverse, factor };
        Ok(Answer::one(y).with(wanted, move |back| {
            let (Some(g), Some(x)) = (back.take(0), &kept) else { return Ok(()) };
            moments.pull::<T>(x, g, back)
        }))
    }
}

/// What the pullback needs besides the input, for each image and channel.
struct Moments {
    sizes: Sizes,
    mean: Vec<f64>,
    inverse: Vec<f64>,
    /// `scale * inverse`.
    factor: Vec<f64>,
}

impl Moments {
    fn pull<T: Float>(&self, x: &Tensor, g: Tensor, back: &mut super::Back<'_>) -> Result<(), Fault> {
        let sizes = self.sizes;
        let channels = sizes.channels;
        let mut map_shape = vec![sizes.images, channels];
        map_shape.resize(x.rank(), 1);
        let means = Tensor::new(&map_shape, self.mean.iter().map(|&mean| T::of(mean)).collect::<Vec<_>>());
        let centred = binary_hot(
            x,
            &means,
            back.room(),
            #[inline(always)]
            |x: T, mean: T| x - mean,
        )?;
        let weighted = combine_hot(
            centred,
            g.clone(),
            back.room(),
            #[inline(always)]
            |x: T, g: T| x * g,
        )?;
        let plain = channel_sums(&g, back.room(), |g: T, _| g.wide())?;
        let weighted = channel_sums(&weighted, back.room(), |v: T, _| v.wide())?;
        let by_channel = |sums: &dyn Fn(usize) -> f64| -> Tensor {
            let total = |c: usize| T::of((0..sizes.images).map(|n| sums(n * channels + c)).sum());
            Tensor::new(&[channels], (0..channels).map(total).collect::<Vec<T>>())
        };
        back.give(1, by_channel(&|i| weighted[i] * self.inverse[i]))?;
        back.give(2, by_channel(&|i| plain[i]))?;
        if !back.wants(0) {
            return Ok(());
        }
        let share = 1.0 / sizes.count();
        let scaled = |sums: &[f64]| -> Vec<f64> {
            sums.iter().zip(&self.factor).map(|(sum, factor)| sum * factor).collect()
        };
        let (plain, weighted) = (sizes.by_group(&scaled(&plain)), sizes.by_group(&scaled(&weighted)));
        // dx = factor g - (inverse^2 sum(factor g (x - mean)) (x - mean) + sum(factor g)) / count
        let slope = |i: usize| -self.inverse[i] * self.inverse[i] * weighted[i] * share;
        let slopes = Affine {
            scale: (0..self.mean.len()).map(|i| T::of(slope(i))).collect(),
            shift: Some(
                (0..self.mean.len()).map(|i| T::of(-plain[i] * share - slope(i) * self.mean[i])).collect(),
            ),
        };
        let factors =
            Affine { scale: self.factor.iter().map(|&factor| T::of(factor)).collect(), shift: None };
        let rest = affine(x.clone(), &slopes, back.room())?;
        let g = affine(g, &factors, back.room())?;
        let g = combine_hot(
            g,
            rest,
            back.room(),
            #[inline(always)]
            |g: T, rest: T| g + rest,
        )?;
        back.give(0, g)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Attribute;
    use super::super::proof::{Numbers, build, prove_gradient, prove_layouts};

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(51);
        for shape in [&[2, 6, 3, 2][..], &[1, 4, 7], &[2, 2, 2, 3, 2]] {
            let channels = &shape[1..2];
            let inputs = [
                Some(numbers.tensor(shape, -2.0, 3.0)),
                Some(numbers.tensor(channels, 0.5, 1.5)),
                Some(numbers.tensor(channels, -1.0, 1.0)),
            ];
            prove_gradient(build("InstanceNormalization", 22, &[], 3), &inputs, 1, 5e-5);
            prove_layouts(build("InstanceNormalization", 22, &[], 3), &inputs);
            for groups in [1, 2] {
                let attributes = [("num_groups", Attribute::Int(groups))];
                prove_gradient(build("GroupNormalization", 21, &attributes, 3), &inputs, 1, 5e-5);
                prove_layouts(build("GroupNormalization", 21, &attributes, 3), &inputs);
            }
        }
    }
}
