//! GridSample: the data read at the places a grid names, between elements by interpolation.
//!
//! The value at a place is the sum over a few neighbours of the product of one weight an axis. The pullback to the data sends each
//! neighbour its weight; the one to the grid takes the weights' derivatives. Places are computed again instead of kept. Bilinear
//! sampling of f32 images goes through the kernels, channels last if the map is; all else through plain loops.

use evenkeel_kernels::grid as kernel;

use super::conv::floats;
use super::registry::{Entry, entry};
use super::strided::{Real, for_real, row_strides};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{DType, Element, Layout, Room, Store, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("GridSample", true, grid_sample)];

#[derive(Clone, Copy, Debug, PartialEq)]
enum Weights {
    Nearest,
    Linear,
    Cubic,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Outside {
    Zeros,
    Border,
    Reflection,
}

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
struct GridSample {
    weights: Weights,
    outside: Outside,
    align_corners: bool,
}

fn grid_sample(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let attributes = definition.attributes;
    let unknown = |name: &str, value: &str| Fault::Attribute {
        name: name.into(),
        problem: format!("{value:?} is unknown"),
    };
    let weights = match attributes.text("mode")?.as_deref() {
        None | Some("linear" | "bilinear") => Weights::Linear,
        Some("nearest") => Weights::Nearest,
        Some("cubic" | "bicubic") => Weights::Cubic,
        Some(other) => return Err(unknown("mode", other)),
    };
    let outside = match attributes.text("padding_mode")?.as_deref() {
        None | Some("zeros") => Outside::Zeros,
        Some("border") => Outside::Border,
        Some("reflection") => Outside::Reflection,
        Some(other) => return Err(unknown("padding_mode", other)),
    };
    Ok(Box::new(GridSample { weights, outside, align_corners: attributes.flag("align_corners", false)? }))
}

/// A neighbour along one axis: its index (absent outside), its weight, and the weight's derivative by the grid's coordinate.
type Tap = (Option<usize>, f64, f64);

/// Carries `x` into `low..high` by reflecting it at the borders; with the derivative.
fn reflected(x: f64, low: f64, high: f64) -> (f64, f64) {
    let range = high - low;
    if (low..=high).contains(&x) {
        return (x, 1.0);
    }
    if range <= 0.0 {
        return (low, 0.0);
    }
    let (beyond, below) = if x < low { (low - x, true) } else { (x - high, false) };
    let turns = (beyond / range).floor();
    let rest = beyond - turns * range;
    let even = turns.rem_euclid(2.0) == 0.0;
    match (below, even) {
        (true, true) => (low + rest, -1.0),
        (true, false) => (high - rest, 1.0),
        (false, true) => (high - rest, -1.0),
        (false, false) => (low + rest, 1.0),
    }
}

/// The cubic convolution kernel with `a = -0.75` at distance `x`, and its slope.
fn cubic(x: f64) -> (f64, f64) {
    const A: f64 = -0.75;
    if x <= 1.0 {
        (((A + 2.0) * x - (A + 3.0)) * x * x + 1.0, (3.0 * (A + 2.0) * x - 2.0 * (A + 3.0)) * x)
    } else {
        (((A * x - 5.0 * A) * x + 8.0 * A) * x - 4.0 * A, (3.0 * A * x - 10.0 * A) * x + 8.0 * A)
    }
}

impl GridSample {
    /// The neighbours of a grid coordinate along an axis of `size` elements.
    fn taps(&self, coordinate: f64, size: usize, taps: &mut Vec<Tap>) {
        taps.clear();
        let length = size as f64;
        let (mut x, mut slope) = if self.align_corners {
            ((coordinate + 1.0) / 2.0 * (length - 1.0), (length - 1.0) / 2.0)
        } else {
            (((coordinate + 1.0) * length - 1.0) / 2.0, length / 2.0)
        };
        if !x.is_finite() {
            return;
        }
        if self.weights == Weights::Nearest {
            (x, slope) = (x.round_ties_even(), 0.0);
        }
        let (low, high) = if self.align_corners { (0.0, length - 1.0) } else { (-0.5, length - 0.5) };
        if !(low..=high).contains(&x) {
            let (moved, turn) = match self.outside {
                Outside::Zeros => (x, 1.0),
                Outside::Border => (x.clamp(0.0, length - 1.0), 0.0),
                Outside::Reflection => reflected(x, low, high),
            };
            (x, slope) = (moved, slope * turn);
        }
        let index = |i: f64| {
            let moved = match self.outside {
                Outside::Zeros => i,
                Outside::Border => i.clamp(0.0, length - 1.0),
                Outside::Reflection => reflected(i, low, high).0.trunc(),
            };
            (0.0..length).contains(&moved).then_some(moved as usize)
        };
        let floor = x.floor();
        let fraction = x - floor;
        match self.weights {
            Weights::Nearest => taps.push((index(x.trunc()), 1.0, 0.0)),
            Weights::Linear => {
                taps.push((index(floor), 1.0 - fraction, -slope));
                taps.push((index(floor + 1.0), fraction, slope));
            }
            Weights::Cubic => {
                for k in [-1.0, 0.0, 1.0, 2.0] {
                    let away = fraction - k;
                    let (weight, steepness) = cubic(away.abs());
                    taps.push((index(floor + k), weight, steepness * away.signum() * slope));
                }
            }
        }
    }

    /// Runs `visit(place, weight, derivatives)` for every neighbour of a grid point. The grid names the last axis first.
    fn each_neighbour<T: Real>(
        &self,
        point: &[T],
        sizes: &[usize],
        scratch: &mut Scratch,
        mut visit: impl FnMut(usize, f64, &[f64; 3]),
    ) {
        let dims = sizes.len();
        let strides = row_strides(sizes);
        let Scratch { taps, found, next } = scratch;
        found.clear();
        found.push((0, 1.0, [1.0; 3]));
        for axis in 0..dims {
            self.taps(point[dims - 1 - axis].f64(), sizes[axis], taps);
            next.clear();
            for &(at, weight, slopes) in found.iter() {
                for &(index, w, dw) in taps.iter() {
                    let Some(index) = index else { continue };
                    let by = |a: usize| slopes[a] * if a == axis { dw } else { w };
                    next.push((at + index * strides[axis], weight * w, [by(0), by(1), by(2)]));
                }
            }
            std::mem::swap(found, next);
        }
        found.iter().for_each(|(at, weight, slopes)| visit(*at, *weight, slopes));
    }

    /// The spatial sizes of the data and the shape of the output.
    fn shapes(&self, x: &[usize], grid: &[usize]) -> Result<(Vec<usize>, Vec<usize>), Fault> {
        let dims = x.len().saturating_sub(2);
        let fits =
            (1..=3).contains(&dims) && grid.len() == x.len() && grid[0] == x[0] && grid[dims + 1] == dims;
        if !fits {
            return Err(Fault::Mismatch {
                left: x.to_vec(),
                right: grid.to_vec(),
                verb: "give data and grid",
            });
        }
        Ok((x[2..].to_vec(), [&x[..2], &grid[1..=dims]].concat()))
    }

    fn forward<T: Real>(
        &self,
        x: &Store<T>,
        grid: &[T],
        extent: &Extent,
        room: &Room,
    ) -> Result<Tensor, Fault> {
        room.tensor(&extent.shape, |y| {
            y.fill(T::default());
            let mut scratch = Scratch::default();
            for (p, point) in grid.chunks_exact(extent.sizes.len()).enumerate() {
                let (n, at) = (p / extent.points, p % extent.points);
                self.each_neighbour(point, &extent.sizes, &mut scratch, |place, weight, _| {
                    for c in n * extent.channels..(n + 1) * extent.channels {
                        y[c * extent.points + at] += T::of(weight) * x[c * extent.pixels + place];
                    }
                });
            }
        })
    }

    /// Adds the gradients of data and grid.
    fn backward<T: Real>(
        &self,
        (x, grid, gy): (&[T], &[T], &[T]),
        extent: &Extent,
        gx: &mut [T],
        g_grid: &mut [T],
    ) {
        let (dims, mut scratch) = (extent.sizes.len(), Scratch::default());
        for (p, point) in grid.chunks_exact(dims).enumerate() {
            let (n, at) = (p / extent.points, p % extent.points);
            let mut slopes_sum = [0.0; 3];
            self.each_neighbour(point, &extent.sizes, &mut scratch, |place, weight, slopes| {
                let mut common = 0.0;
                for c in n * extent.channels..(n + 1) * extent.channels {
                    let g = gy[c * extent.points + at];
                    gx[c * extent.pixels + place] += T::of(weight) * g;
                    common += g.f64() * x[c * extent.pixels + place].f64();
                }
                (0..dims).for_each(|axis| slopes_sum[axis] += common * slopes[axis]);
            });
            for axis in 0..dims {
                g_grid[p * dims + dims - 1 - axis] = T::of(slopes_sum[axis]);
            }
        }
    }
}

/// The sizes a sampling walks over.
struct Extent {
    sizes: Vec<usize>,
    shape: Vec<usize>,
    channels: usize,
    pixels: usize,
    points: usize,
}

/// Lists that are used again for every grid point.
#[derive(Default)]
struct Scratch {
    taps: Vec<Tap>,
    found: Vec<(usize, f64, [f64; 3])>,
    next: Vec<(usize, f64, [f64; 3])>,
}

fn same_type<'a, T: Element>(_: &Store<T>, tensor: &'a Tensor) -> Result<&'a [T], Fault> {
    tensor.values::<T>().ok_or(Fault::Type {
        input: 1,
        expected: "the type of the data",
        got: tensor.dtype(),
    })
}

impl GridSample {
    /// Bilinear sampling of an image by the kernels.
    fn images(&self, x: Tensor, grid: Tensor, shape: [usize; 4], call: &Call<'_>) -> Result<Answer, Fault> {
        let padding = match self.outside {
            Outside::Zeros => kernel::Padding::Zeros,
            Outside::Border => kernel::Padding::Border,
            Outside::Reflection => kernel::Padding::Reflection,
        };
        let (filter, align_corners) = (kernel::Filter::Bilinear, self.align_corners);
        let sampling = kernel::Sampling { filter, padding, align_corners };
        let geometry = kernel::Geometry {
            batch: shape[0],
            channels: shape[1],
            input: [x.shape()[2], x.shape()[3]],
            points: shape[2] * shape[3],
            layout: match x.layout() {
                Layout::Plain => kernel::Layout::Planar,
                Layout::ChannelsLast => kernel::Layout::ChannelsLast,
            },
        };
        let sample = |y: &mut [f32]| -> Result<(), Fault> {
            kernel::forward(&geometry, sampling, floats(&x)?, floats(&grid)?, y);
            Ok(())
        };
        let y = like(&x, shape, call.room, sample)?;
        Ok(Answer::one(y).with(call.wants_any(), move |back| {
            let Some(gy) = back.take(0) else { return Ok(()) };
            let (input, points, g) = (floats(&x)?, floats(&grid)?, floats(&gy)?);
            if back.wants(1) {
                let at = kernel::SampledAt { input, grid: points };
                let grad = back.room().tensor(grid.shape(), |out| {
                    kernel::pullback_grid(&geometry, sampling, at, g, out);
                })?;
                back.give(1, grad)?;
            }
            if back.wants(0) {
                let [n, c, h, w] = [shape[0], shape[1], geometry.input[0], geometry.input[1]];
                let grad = like(&x, [n, c, h, w], back.room(), |out| {
                    kernel::pullback_input(&geometry, sampling, points, g, out);
                    Ok(())
                })?;
                back.give(0, grad)?;
            }
            Ok(())
        }))
    }
}

/// An f32 tensor of this shape in the layout of `x`.
fn like(
    x: &Tensor,
    shape: [usize; 4],
    room: &Room,
    fill: impl FnOnce(&mut [f32]) -> Result<(), Fault>,
) -> Result<Tensor, Fault> {
    let mut outcome = Ok(());
    let filled = match x.layout() {
        Layout::Plain => room.tensor(&shape, |out| outcome = fill(out)),
        Layout::ChannelsLast => room.feature_map(shape, |out| outcome = fill(out)),
    };
    outcome.and(filled)
}

impl Operator for GridSample {
    fn layouts(&self) -> Layouts {
        if self.weights == Weights::Linear { Layouts::ChannelsLast } else { Layouts::Plain }
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (x, grid) = (call.input(0)?.clone(), call.input(1)?.to_plain(call.room)?);
        let (sizes, shape) = self.shapes(x.shape(), grid.shape())?;
        let (pixels, points) = (sizes.iter().product(), shape[2..].iter().product());
        let empty = x.is_empty() || call.room.len_of(&shape)? == 0;
        let fast = self.weights == Weights::Linear && [x.dtype(), grid.dtype()] == [DType::F32; 2] && !empty;
        if let (true, &[n, c, h, w]) = (fast, &*shape) {
            return self.images(x, grid, [n, c, h, w], &call);
        }
        let x = x.to_plain(call.room)?;
        let extent = Extent { sizes, channels: shape[1], shape, pixels, points };
        let y = for_real!(x, values => self.forward(values, same_type(values, &grid)?, &extent, call.room))?;
        let op = *self;
        Ok(Answer::one(y).with(call.wants_any(), move |back| {
            let Some(gy) = back.take(0) else { return Ok(()) };
            let room = back.room().clone();
            let (gx, g_grid) = for_real!(x, values => {
                let all = (&**values, same_type(values, &grid)?, same_type(values, &gy)?);
                let mut g_grid = room.take(grid.len())?;
                let gx = room.tensor(x.shape(), |gx| {
                    gx.fill(Default::default());
                    op.backward(all, &extent, gx, &mut g_grid);
                })?;
                Ok((gx, Tensor::new(grid.shape(), g_grid)))
            })?;
            back.give(0, gx)?;
            back.give(1, g_grid)
        }))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::proof::{Numbers, build, outputs, prove_gradient};
    use super::super::{Attribute, Operator};
    use crate::tensor::Tensor;

    #[test]
    fn places_between_elements_are_interpolated() {
        let x = Some(Tensor::new(&[1, 1, 1, 3], vec![0.0f32, 10.0, 20.0]));
        let grid = Some(Tensor::new(&[1, 1, 3, 2], vec![-1.0f32, 0.0, 0.5, 0.0, f32::NAN, 0.0]));
        let op: Arc<dyn Operator> =
            build("GridSample", 16, &[("align_corners", Attribute::Int(1))], 2).into();
        assert_eq!(outputs(&op, &[x, grid], 1)[0].values::<f32>(), Some(&[0.0, 15.0, 0.0][..]));
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(51);
        for mode in ["linear", "nearest", "cubic"] {
            for padding in ["zeros", "border", "reflection"] {
                for align in [0, 1] {
                    let attributes = [
                        ("mode", Attribute::Text(mode.into())),
                        ("padding_mode", Attribute::Text(padding.into())),
                        ("align_corners", Attribute::Int(align)),
                    ];
                    let x = Some(numbers.tensor(&[2, 3, 4, 5], -1.0, 1.0));
                    let grid = Some(numbers.tensor(&[2, 2, 3, 2], -1.6, 1.6));
                    prove_gradient(build("GridSample", 20, &attributes, 2), &[x, grid], 1, 1e-4);
                    let x = Some(numbers.tensor(&[1, 2, 2, 3, 2], -1.0, 1.0));
                    let grid = Some(numbers.tensor(&[1, 2, 1, 2, 3], -1.6, 1.6));
                    prove_gradient(build("GridSample", 20, &attributes, 2), &[x, grid], 1, 1e-4);
                }
            }
        }
    }
}
