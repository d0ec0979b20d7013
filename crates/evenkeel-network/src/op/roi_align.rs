//! RoiAlign: each region of interest divided into bins, each bin the mean (or the largest weighed corner) of some bilinear samples.
//!
//! f32 maps go through the kernels, channels last if the map is; f64 through plain loops. The pullback finds the samples again and adds
//! region after region, so the sum has one order.

use evenkeel_kernels::{grid, roi};

use super::registry::{Entry, entry};
use super::strided::{Real, for_real};
use super::{Answer, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{Layout, Room, Tensor};

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[entry("RoiAlign", true, roi_align)];

/// Samples that one call may take.
const MOST_SAMPLES: f64 = (1u64 << 23) as f64;

/// See the [module](self).
#[derive(Clone, Copy, Debug)]
struct RoiAlign {
    max: bool,
    half_pixel: bool,
    bins: [usize; 2],
    samples: usize,
    scale: f64,
}

fn roi_align(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    let attributes = definition.attributes;
    let size = |name: &str, default: i64, low: i64| {
        let value = attributes.int(name)?.unwrap_or(default);
        let wrong = || Fault::Attribute { name: name.into(), problem: format!("{value} is out of range") };
        if (low..1 << 20).contains(&value) { Ok(value as usize) } else { Err(wrong()) }
    };
    let unknown = |name: &str, value: &str| Fault::Attribute {
        name: name.into(),
        problem: format!("{value:?} is unknown"),
    };
    let max = match attributes.text("mode")?.as_deref() {
        None | Some("avg") => false,
        Some("max") => true,
        Some(other) => return Err(unknown("mode", other)),
    };
    let half_pixel = match attributes.text("coordinate_transformation_mode")?.as_deref() {
        None => definition.opset >= 16,
        Some("half_pixel") => true,
        Some("output_half_pixel") => false,
        Some(other) => return Err(unknown("coordinate_transformation_mode", other)),
    };
    Ok(Box::new(RoiAlign {
        max,
        half_pixel,
        bins: [size("output_height", 1, 1)?, size("output_width", 1, 1)?],
        samples: size("sampling_ratio", 0, 0)?,
        scale: attributes.float("spatial_scale")?.unwrap_or(1.0).into(),
    }))
}

/// The four corners of a sample: pixel and weight.
type Corners = [(usize, f64); 4];

/// One region: where it starts, how large its bins are, and how many samples a bin takes, vertically and horizontally.
#[derive(Clone, Copy, Debug)]
struct Region {
    image: usize,
    start: [f64; 2],
    bin: [f64; 2],
    grid: [usize; 2],
}

impl RoiAlign {
    fn region(&self, corners: &[f64], image: usize) -> Region {
        let offset = if self.half_pixel { 0.5 } else { 0.0 };
        let at = |i: usize| corners[i] * self.scale - offset;
        let side = |low: f64, high: f64| if self.half_pixel { high - low } else { (high - low).max(1.0) };
        let extent = [side(at(1), at(3)), side(at(0), at(2))];
        let bin = [extent[0] / self.bins[0] as f64, extent[1] / self.bins[1] as f64];
        let count = |i: usize| if self.samples > 0 { self.samples } else { bin[i].ceil().max(0.0) as usize };
        Region { image, start: [at(1), at(0)], bin, grid: [count(0), count(1)] }
    }
}

impl Region {
    /// Runs `visit(corners)` for every sample of a bin that lies on the map; returns how many samples count.
    fn each_sample(&self, bin: [usize; 2], size: [usize; 2], mut visit: impl FnMut(&Corners)) -> f64 {
        let at = |axis: usize, i: usize| {
            let within = (i as f64 + 0.5) * self.bin[axis] / self.grid[axis] as f64;
            self.start[axis] + bin[axis] as f64 * self.bin[axis] + within
        };
        for y in 0..self.grid[0] {
            for x in 0..self.grid[1] {
                let corners = match (between(at(0, y), size[0]), between(at(1, x), size[1])) {
                    (Some((top, low, ly)), Some((left, right, lx))) => {
                        let at = |row: usize, column: usize| row * size[1] + column;
                        [
                            (at(top, left), (1.0 - ly) * (1.0 - lx)),
                            (at(top, right), (1.0 - ly) * lx),
                            (at(low, left), ly * (1.0 - lx)),
                            (at(low, right), ly * lx),
                        ]
                    }
                    _ => [(0, 0.0); 4],
                };
                visit(&corners);
            }
        }
        (self.grid[0] as f64 * self.grid[1] as f64).max(1.0)
    }
}

/// The neighbours of a coordinate and how far it is from the first; `None` if it is off the map.
fn between(x: f64, size: usize) -> Option<(usize, usize, f64)> {
    if !(-1.0..=size as f64).contains(&x) {
        return None;
    }
    let x = x.max(0.0);
    let low = x as usize;
    if low + 1 >= size {
        return Some((size - 1, size - 1, 0.0));
    }
    Some((low, low + 1, x - low as f64))
}

/// How the elements of a plain tensor follow each other.
#[derive(Clone, Copy)]
struct Steps {
    channels: usize,
    channel: usize,
    image: usize,
}

impl Steps {
    fn of(channels: usize, pixels: usize) -> Steps {
        Steps { channels, channel: pixels, image: channels * pixels }
    }
}

/// All that both directions walk over.
struct Walk {
    op: RoiAlign,
    regions: Vec<Region>,
    /// As given: left, top, right, bottom.
    corners: Vec<f64>,
    batch: usize,
    size: [usize; 2],
    from: Steps,
    to: Steps,
}

impl Walk {
    /// One region's answer.
    fn pool<T: Real>(&self, region: &Region, x: &[T], out: &mut [T]) {
        let x = &x[region.image * self.from.image..];
        let [rows, columns] = self.op.bins;
        for bin in 0..rows * columns {
            let mut first = true;
            let at = bin;
            (0..self.to.channels).for_each(|c| out[at + c * self.to.channel] = T::default());
            let count = region.each_sample([bin / columns, bin % columns], self.size, |corners| {
                for c in 0..self.from.channels {
                    let value =
                        |(pixel, weight): (usize, f64)| T::of(weight) * x[pixel + c * self.from.channel];
                    let out = &mut out[at + c * self.to.channel];
                    if self.op.max {
                        let larger = |a: T, b: T| if b > a { b } else { a };
                        let [a, b, c, d] = corners.map(value);
                        let best = larger(larger(a, b), larger(c, d));
                        *out = if first { best } else { larger(*out, best) };
                    } else {
                        *out += value(corners[0]) + value(corners[1]) + value(corners[2]) + value(corners[3]);
                    }
                }
                first = false;
            });
            if !self.op.max {
                let share = T::of(1.0 / count);
                for c in 0..self.to.channels {
                    out[at + c * self.to.channel] = out[at + c * self.to.channel] * share;
                }
            }
        }
    }

    /// Adds what one region's cotangent gives each pixel.
    fn spread<T: Real>(&self, region: &Region, x: &[T], gy: &[T], gx: &mut [T]) {
        let start = region.image * self.from.image;
        let [rows, columns] = self.op.bins;
        let mut winners: Vec<Option<(T, usize, f64)>> = Vec::new();
        for bin in 0..rows * columns {
            let place = [bin / columns, bin % columns];
            let g = |c: usize| gy[bin + c * self.to.channel];
            let at = |pixel: usize, c: usize| start + pixel + c * self.from.channel;
            if self.op.max {
                winners.clear();
                winners.resize(self.from.channels, None);
                region.each_sample(place, self.size, |corners| {
                    for (c, winner) in winners.iter_mut().enumerate() {
                        for &(pixel, weight) in corners {
                            let v = T::of(weight) * x[at(pixel, c)];
                            if winner.is_none_or(|(best, ..)| v > best) {
                                *winner = Some((v, pixel, weight));
                            }
                        }
                    }
                });
                for (c, winner) in winners.iter().enumerate() {
                    if let Some((_, pixel, weight)) = *winner {
                        gx[at(pixel, c)] += T::of(weight) * g(c);
                    }
                }
            } else {
                let share = 1.0 / (region.grid[0] as f64 * region.grid[1] as f64).max(1.0);
                region.each_sample(place, self.size, |corners| {
                    for &(pixel, weight) in corners.iter().filter(|corner| corner.1 != 0.0) {
                        let weight = T::of(weight * share);
                        (0..self.from.channels).for_each(|c| gx[at(pixel, c)] += weight * g(c));
                    }
                });
            }
        }
    }
}

fn doubles(tensor: &Tensor) -> Result<Vec<f64>, Fault> {
    for_real!(tensor, values => Ok(values.iter().map(|v| v.f64()).collect()))
}

impl RoiAlign {
    fn walk(&self, call: &Call<'_>) -> Result<(Walk, [usize; 4]), Fault> {
        let (x, rois) = (call.input(0)?, call.input(1)?);
        let images = call.integers(2)?;
        let (&[batch, channels, height, width], &[count, 4]) = (x.shape(), rois.shape()) else {
            let (left, right) = (x.shape().to_vec(), rois.shape().to_vec());
            return Err(Fault::Mismatch { left, right, verb: "give a map and regions" });
        };
        if images.len() != count {
            return Err(Fault::Shape { input: 2, expected: format!("[{count}]"), got: vec![images.len()] });
        }
        let corners = doubles(rois)?;
        let mut regions = Vec::with_capacity(count);
        let mut work = 0.0;
        for (corners, &image) in corners.chunks_exact(4).zip(&images) {
            let Some(at) = usize::try_from(image).ok().filter(|&at| at < batch) else {
                return Err(Fault::Range { what: "image", index: image, low: 0, high: batch as i64 });
            };
            let region = self.region(corners, at);
            work += (self.bins[0] * self.bins[1]) as f64 * region.grid[0] as f64 * region.grid[1] as f64;
            regions.push(region);
        }
        if work > MOST_SAMPLES {
            let asked = work.min(1e18) as i64;
            return Err(Fault::Work { what: "samples", asked, limit: MOST_SAMPLES as i64 });
        }
        if height * width == 0 && count > 0 {
            return Err(Fault::Shape { input: 0, expected: "pixels".into(), got: x.shape().to_vec() });
        }
        let from = Steps::of(channels, height * width);
        let to = Steps::of(channels, self.bins[0] * self.bins[1]);
        let walk = Walk { op: *self, regions, corners, batch, size: [height, width], from, to };
        Ok((walk, [count, channels, self.bins[0], self.bins[1]]))
    }
}

impl Operator for RoiAlign {
    fn folds_up_to(&self) -> usize {
        0
    }

    fn layouts(&self) -> Layouts {
        Layouts::ChannelsLast
    }

    fn passes_gradient(&self, input: usize) -> bool {
        input == 0
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let (walk, shape) = self.walk(&call)?;
        let x = call.input(0)?;
        call.room.len_of(&shape)?;
        if x.values::<f32>().is_some() && !x.is_empty() {
            return walk.kernels(x, shape, &call);
        }
        let x = x.to_plain(call.room)?;
        let y = for_real!(x, values => call.room.tensor(&shape, |y| {
            for (region, row) in walk.regions.iter().zip(y.chunks_exact_mut(walk.to.image.max(1))) {
                walk.pool(region, values, row);
            }
        }))?;
        Ok(Answer::one(y).with(call.wants(0), move |back| {
            let Some(gy) = back.take(0) else { return Ok(()) };
            let grad = for_real!(gy, gy => back.room().tensor(x.shape(), |gx| {
                gx.fill(Default::default());
                let values = x.values().unwrap_or(&[]);
                for (region, g) in walk.regions.iter().zip(gy.chunks_exact(walk.to.image.max(1))) {
                    walk.spread(region, values, g, gx);
                }
            }))?;
            back.give(0, grad)
        }))
    }
}

impl Walk {
    /// The same for f32 maps, by the kernels.
    fn kernels(self, x: &Tensor, shape: [usize; 4], call: &Call<'_>) -> Result<Answer, Fault> {
        let layout = x.layout();
        let maps = roi::Maps {
            batch: self.batch,
            channels: self.from.channels,
            size: self.size,
            layout: match layout {
                Layout::Plain => grid::Layout::Planar,
                Layout::ChannelsLast => grid::Layout::ChannelsLast,
            },
        };
        let pooling = roi::Pooling {
            cells: self.op.bins,
            sampling_ratio: self.op.samples,
            spatial_scale: self.op.scale as f32,
            half_pixel: self.op.half_pixel,
            mode: if self.op.max { roi::Mode::Max } else { roi::Mode::Average },
        };
        let given = self.regions.iter().zip(self.corners.chunks_exact(4));
        let corner = |c: &[f64]| [c[0] as f32, c[1] as f32, c[2] as f32, c[3] as f32];
        let regions: Vec<roi::Region> =
            given.map(|(r, c)| roi::Region { image: r.image, corners: corner(c) }).collect();
        let features = x.values::<f32>().unwrap_or(&[]);
        let y = filled(layout, shape, call.room, |y| roi::forward(&maps, &pooling, &regions, features, y))?;
        // The largest corner depends on the values; a mean does not.
        let kept = (call.wants(0) && self.op.max).then(|| x.clone());
        let old = [maps.batch, maps.channels, maps.size[0], maps.size[1]];
        Ok(Answer::one(y).with(call.wants(0), move |back| {
            let Some(gy) = back.take(0) else { return Ok(()) };
            let features = kept.as_ref().and_then(Tensor::values).unwrap_or(&[]);
            let at = roi::PooledAt { grad_out: gy.values().unwrap_or(&[]), features };
            let grad =
                filled(layout, old, back.room(), |gx| roi::pullback(&maps, &pooling, &regions, at, gx))?;
            back.give(0, grad)
        }))
    }
}

/// An f32 tensor of this shape and layout.
fn filled(
    layout: Layout,
    shape: [usize; 4],
    room: &Room,
    fill: impl FnOnce(&mut [f32]),
) -> Result<Tensor, Fault> {
    match layout {
        Layout::Plain => room.tensor(&shape, fill),
        Layout::ChannelsLast => room.feature_map(shape, fill),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::proof::{Numbers, build, narrow, outputs, prove_gradient, room};
    use super::super::{Attribute, Call, Operator};
    use crate::tensor::Tensor;

    fn attributes(mode: &str, samples: i64) -> [(&str, Attribute); 5] {
        [
            ("mode", Attribute::Text(mode.into())),
            ("output_height", Attribute::Int(2)),
            ("output_width", Attribute::Int(3)),
            ("sampling_ratio", Attribute::Int(samples)),
            ("spatial_scale", Attribute::Float(0.5)),
        ]
    }

    fn regions() -> (Option<Tensor>, Option<Tensor>) {
        let corners = vec![1.0f32, 2.0, 9.0, 11.0, -3.0, 0.0, 30.0, 5.0, 4.0, 4.0, 4.5, 4.5];
        (Some(Tensor::new(&[3, 4], corners)), Some(Tensor::new(&[3], vec![0i64, 1, 0])))
    }

    #[test]
    fn a_ramp_gives_the_centres_of_its_bins() {
        let ramp: Vec<f32> = (0..64).map(|i| (i % 8) as f32).collect();
        let x = Some(Tensor::new(&[1, 1, 8, 8], ramp));
        let rois = Some(Tensor::new(&[1, 4], vec![2.0f32, 2.0, 14.0, 14.0]));
        let op: Arc<dyn Operator> = build("RoiAlign", 16, &attributes("avg", 2), 3).into();
        let y = outputs(&op, &[x, rois, Some(Tensor::new(&[1], vec![0i64]))], 1);
        assert_eq!(y[0].values::<f32>(), Some(&[1.5, 3.5, 5.5, 1.5, 3.5, 5.5][..]));
    }

    #[test]
    fn pullbacks_agree_with_differences() {
        let mut numbers = Numbers::new(61);
        for mode in ["avg", "max"] {
            for (opset, samples) in [(10, 0), (16, 0), (16, 2)] {
                let x = Some(numbers.tensor(&[2, 3, 6, 7], -1.0, 1.0));
                let (rois, images) = regions();
                let op = build("RoiAlign", opset, &attributes(mode, samples), 3);
                prove_gradient(op, &[x, rois, images], 1, 1e-4);
            }
        }
    }

    #[test]
    fn endless_regions_are_refused() {
        let room = room();
        let x = Some(narrow(&Numbers::new(1).tensor(&[1, 1, 4, 4], 0.0, 1.0)));
        for (size, image) in [(1e30f32, 0i64), (2.0, 1), (2.0, -1)] {
            let rois = Some(Tensor::new(&[1, 4], vec![0.0, 0.0, size, size]));
            let inputs = vec![x.clone(), rois, Some(Tensor::new(&[1], vec![image]))];
            let call = Call { inputs, wants: &[false; 3], outputs: 1, room: &room };
            assert!(build("RoiAlign", 16, &attributes("avg", 0), 3).apply(call).is_err());
        }
    }
}
