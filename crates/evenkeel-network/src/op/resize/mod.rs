//! Resize and Upsample: every axis resampled by a linear map, one after the other; a nearest resize copies whole blocks.
//!
//! A channels-last map resized in height and width stays so. The tape is the maps, transposed when the pullback runs.

mod sampling;
#[cfg(test)]
mod tests;

use evenkeel_kernels::resample::AxisMap;

use super::concat::storage_axis;
use super::pad::Pattern;
use super::registry::{Entry, entry};
use super::strided::{Real, axis_of, for_real};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::for_type;
use crate::tensor::{Data, Element, Layout, Room, Store, Tensor};
use sampling::{Axis, Coordinates, Sampling, Weights};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("Resize", true, resize), entry("Upsample", true, upsample)];

/// What happens to the other axes when sizes are given for some.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Aspect {
    Stretch,
    NotLarger,
    NotSmaller,
}

/// Where the scales and the other inputs are.
#[derive(Debug)]
enum Source {
    /// An attribute.
    Fixed(Vec<f32>),
    /// Input 1.
    Scales,
    /// Region, scales and sizes in inputs 1 to 3.
    Full,
}

/// See the [module](self).
#[derive(Debug)]
struct Resize {
    sampling: Sampling,
    source: Source,
    axes: Option<Vec<i64>>,
    aspect: Aspect,
    extrapolation: f32,
}

fn resize(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let attributes = definition.attributes;
    if definition.opset < 11 {
        return Ok(Box::new(Resize::simple(Sampling::before_modes(attributes)?, Source::Scales)));
    }
    let policy = attributes.text("keep_aspect_ratio_policy")?.unwrap_or_else(|| "stretch".into());
    let aspect = match &*policy {
        "stretch" => Aspect::Stretch,
        "not_larger" => Aspect::NotLarger,
        "not_smaller" => Aspect::NotSmaller,
        _ => {
            let problem = format!("{policy:?} is unknown");
            return Err(Fault::Attribute { name: "keep_aspect_ratio_policy".into(), problem });
        }
    };
    Ok(Box::new(Resize {
        sampling: Sampling::of(attributes)?,
        source: Source::Full,
        axes: attributes.ints("axes")?,
        aspect,
        extrapolation: attributes.float("extrapolation_value")?.unwrap_or(0.0),
    }))
}

fn upsample(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let sampling = Sampling::before_modes(definition.attributes)?;
    let source = definition.attributes.floats("scales")?.map_or(Source::Scales, Source::Fixed);
    Ok(Box::new(Resize::simple(sampling, source)))
}

/// Floats of an optional input; absent if there are none.
fn given_floats(call: &Call<'_>, i: usize) -> Result<Option<Vec<f64>>, Fault> {
    let Some(tensor) = call.optional(i).filter(|tensor| !tensor.is_empty()) else { return Ok(None) };
    let values = for_real!(tensor, values => Ok(values.iter().map(|v| v.f64()).collect()));
    values.map(Some).map_err(|_: Fault| Fault::Type { input: i, expected: "floats", got: tensor.dtype() })
}

impl Resize {
    fn simple(sampling: Sampling, source: Source) -> Resize {
        Resize { sampling, source, axes: None, aspect: Aspect::Stretch, extrapolation: 0.0 }
    }

    /// What is to happen along each axis of the input.
    fn plan(&self, call: &Call<'_>, shape: &[usize]) -> Result<Vec<Axis>, Fault> {
        let rank = shape.len();
        let axes = match &self.axes {
            Some(axes) => axes.iter().map(|&axis| axis_of(axis, rank)).collect::<Result<Vec<_>, _>>()?,
            None => (0..rank).collect(),
        };
        let (scales, sizes, region) = match &self.source {
            Source::Fixed(scales) => (Some(scales.iter().map(|&s| s.into()).collect()), None, None),
            Source::Scales => (given_floats(call, 1)?, None, None),
            Source::Full => {
                let sizes =
                    call.optional(3).filter(|t| !t.is_empty()).map(|_| call.integers(3)).transpose()?;
                (given_floats(call, 2)?, sizes, given_floats(call, 1)?)
            }
        };
        let mut plan: Vec<Axis> = shape.iter().map(|&size| still(size)).collect();
        match (scales, sizes) {
            (Some(scales), _) if scales.len() == axes.len() => {
                for (&axis, &scale) in axes.iter().zip(&scales) {
                    plan[axis] = scaled(shape[axis], scale)?;
                }
            }
            (None, Some(sizes)) if sizes.len() == axes.len() => {
                self.size(&mut plan, &axes, &sizes)?;
            }
            _ => return Err(Fault::Value(format!("neither scales nor sizes for {} axes", axes.len()))),
        }
        if self.sampling.coordinates == Coordinates::Crop {
            let region = region.filter(|region| region.len() == 2 * axes.len());
            let region = region.ok_or_else(|| Fault::Value("the region does not fit the axes".into()))?;
            for (i, &axis) in axes.iter().enumerate() {
                plan[axis].crop = (region[i], region[i + axes.len()]);
            }
        }
        let output: Vec<usize> = plan.iter().map(|axis| axis.output).collect();
        if call.room.len_of(&output)? > 0 {
            plan.iter().try_for_each(|axis| axis.check(&self.sampling))?;
            if plan.iter().any(|axis| axis.input == 0) {
                return Err(Fault::Value("nothing to resize".into()));
            }
        }
        Ok(plan)
    }

    fn size(&self, plan: &mut [Axis], axes: &[usize], sizes: &[i64]) -> Result<(), Fault> {
        let mut ratios = Vec::with_capacity(axes.len());
        for (&axis, &size) in axes.iter().zip(sizes) {
            let output =
                usize::try_from(size).map_err(|_| Fault::Value(format!("{sizes:?} has negative sizes")))?;
            let (input, exact_output) = (plan[axis].input, output as f64);
            let scale = if input == output { 1.0 } else { exact_output / input as f64 };
            plan[axis] = Axis { output, scale, exact_output, ..plan[axis] };
            ratios.push(scale);
        }
        let ratio = match self.aspect {
            Aspect::Stretch => return Ok(()),
            Aspect::NotLarger => ratios.iter().copied().fold(f64::INFINITY, f64::min),
            Aspect::NotSmaller => ratios.iter().copied().fold(0.0, f64::max),
        };
        for &axis in axes {
            let exact_output = ratio * plan[axis].input as f64;
            plan[axis] =
                Axis { output: whole(exact_output + 0.5)?, scale: ratio, exact_output, ..plan[axis] };
        }
        Ok(())
    }

    /// The nearest resize of any type, by copying.
    fn copied(&self, x: &Tensor, plan: &[Axis], room: &Room) -> Result<Tensor, Fault> {
        let Weights::Nearest(nearest) = self.sampling.weights else { return Err(Fault::Missing(0)) };
        let list = |axis: &Axis| -> Vec<Option<usize>> {
            let source = |o| {
                let outside = axis.is_outside(o, &self.sampling);
                (!outside).then(|| axis.nearest(o, &self.sampling, nearest))
            };
            let still = axis.is_identity(&self.sampling);
            (0..axis.output).map(|o| if still { Some(o) } else { source(o) }).collect()
        };
        let shape: Vec<usize> = plan.iter().map(|axis| axis.output).collect();
        let pattern = Pattern::new(x.shape(), plan.iter().map(list).collect());
        for_type!(x.data(), values => {
            let value = constant(values, self.extrapolation);
            room.tensor(&shape, |out| pattern.copy(values, value, out))
        })
    }

    /// The maps along the axes where something happens.
    fn maps(&self, plan: &[Axis]) -> Vec<(usize, AxisMap)> {
        let mut moved: Vec<usize> =
            (0..plan.len()).filter(|&i| !plan[i].is_identity(&self.sampling)).collect();
        // What shrinks comes first: there is less to do afterwards.
        moved.sort_by(|&a, &b| plan[a].scale.total_cmp(&plan[b].scale));
        let map = |axis: &Axis| {
            AxisMap::from_lists(axis.input, (0..axis.output).map(|o| axis.terms(o, &self.sampling)))
        };
        moved.into_iter().map(|i| (i, map(&plan[i]))).collect()
    }

    /// Puts the extrapolation value wherever an output looks outside along some axis.
    fn extrapolated(&self, y: Tensor, plan: &[Axis], room: &Room) -> Result<Tensor, Fault> {
        if self.sampling.coordinates != Coordinates::Crop || self.extrapolation == 0.0 {
            return Ok(y);
        }
        for_real!(y, values => {
            let value = constant(values, self.extrapolation);
            room.tensor(y.shape(), |out| {
                out.copy_from_slice(values);
                for (i, axis) in plan.iter().enumerate() {
                    let inner: usize = y.shape()[i + 1..].iter().product();
                    for (row, out) in out.chunks_mut(inner.max(1)).enumerate() {
                        if axis.is_outside(row % axis.output, &self.sampling) {
                            out.fill(value);
                        }
                    }
                }
            })
        })
    }
}

/// A float as a value of the type of `like`; zero for other types.
fn constant<T: Element>(_: &Store<T>, value: f32) -> T {
    let mut made = Tensor::scalar(T::default());
    if let Some(values) = made.values_mut::<f32>() {
        values[0] = value;
    } else if let Some(values) = made.values_mut::<f64>() {
        values[0] = value.into();
    }
    made.values::<T>().map_or(T::default(), |v| v[0])
}

fn still(size: usize) -> Axis {
    Axis { input: size, output: size, scale: 1.0, exact_output: size as f64, crop: (0.0, 1.0) }
}

fn scaled(input: usize, scale: f64) -> Result<Axis, Fault> {
    let exact_output = input as f64 * scale;
    if !(scale > 0.0 && scale.is_finite()) {
        return Err(Fault::Value(format!("{scale} is no scale")));
    }
    Ok(Axis { output: whole(exact_output)?, scale, exact_output, ..still(input) })
}

fn whole(size: f64) -> Result<usize, Fault> {
    if (0.0..1e15).contains(&size) {
        return Ok(size as usize);
    }
    Err(Fault::Value(format!("{size} is no size")))
}

impl Operator for Resize {
    fn layouts(&self) -> Layouts {
        Layouts::ChannelsLast
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, mut call: Call<'_>) -> Result<Answer, Fault> {
        let wanted = call.wants(0);
        let given = call.input(0)?.clone();
        let plan = self.plan(&call, given.shape())?;
        drop(call.take(0)?);
        let shape: Vec<usize> = plan.iter().map(|axis| axis.output).collect();
        let spatial = given.rank() == 4 && plan[..2].iter().all(|axis| axis.is_identity(&self.sampling));
        let channels = (given.layout() == Layout::ChannelsLast && spatial).then(|| given.shape()[1]);
        let (x, plan) = match channels {
            Some(_) => {
                let x = given.storage();
                let mut moved: Vec<Axis> = x.shape().iter().map(|&size| still(size)).collect();
                (0..4).for_each(|i| {
                    if let Some(at) = storage_axis(i) {
                        moved[at] = plan[i]
                    }
                });
                (x, moved)
            }
            None => (given.to_plain(call.room)?, plan),
        };
        let old = x.shape().to_vec();
        if call.room.len_of(&shape)? == 0 {
            let empty = for_type!(x.data(), values => nothing(values, &shape, call.room))?;
            return Ok(Answer::one(empty).with(wanted, move |back| {
                let Some(gy) = back.take(0) else { return Ok(()) };
                let gx = for_real!(gy, _gy => zeros(_gy, &old, back.room()))?;
                back.give(
                    0,
                    match channels {
                        Some(channels) => gx.as_map_of(channels)?,
                        None => gx,
                    },
                )
            }));
        }
        let copies = matches!(self.sampling.weights, Weights::Nearest(_));
        let maps = if copies && !wanted { Vec::new() } else { self.maps(&plan) };
        let y = if copies {
            self.copied(&x, &plan, call.room)?
        } else {
            let mut y = x;
            for (axis, map) in &maps {
                y = mapped(map, &y, *axis, call.room)?;
            }
            self.extrapolated(y, &plan, call.room)?
        };
        let y = match channels {
            Some(channels) => y.as_map_of(channels)?,
            None => y,
        };
        Ok(Answer::one(y).with(wanted, move |back| {
            let Some(gy) = back.take(0) else { return Ok(()) };
            let mut grad = gy.storage();
            for (axis, map) in maps.iter().rev() {
                grad = mapped(&map.transposed(), &grad, *axis, back.room())?;
            }
            back.give(
                0,
                match channels {
                    Some(channels) => grad.as_map_of(channels)?,
                    None => grad,
                },
            )
        }))
    }
}

/// A map applied along `axis` of a plain tensor of floats.
pub(super) fn mapped(map: &AxisMap, x: &Tensor, axis: usize, room: &Room) -> Result<Tensor, Fault> {
    let mut shape = x.shape().to_vec();
    let (outer, inner) = (shape[..axis].iter().product(), shape[axis + 1..].iter().product());
    shape[axis] = map.output();
    match x.data() {
        Data::F32(values) => room.tensor(&shape, |y| map.apply(outer, inner, values, y)),
        Data::F64(values) => room.tensor(&shape, |y| map.apply_reference(outer, inner, values, y)),
        _ => Err(Fault::Type { input: 0, expected: "floats", got: x.dtype() }),
    }
}

fn nothing<T: Element>(_: &Store<T>, shape: &[usize], room: &Room) -> Result<Tensor, Fault> {
    room.tensor::<T>(shape, |_| {})
}

fn zeros<T: Real>(_: &Store<T>, shape: &[usize], room: &Room) -> Result<Tensor, Fault> {
    room.tensor::<T>(shape, |out| out.fill(T::default()))
}
