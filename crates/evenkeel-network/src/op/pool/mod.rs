//! MaxPool, AveragePool, LpPool and the pools over whole images.
//!
//! Channels-last maps go through the kernels; a max pool's tape there is one byte an output, an average's nothing. Everything else (f64,
//! integers, other ranks, a max pool whose indices are asked for) goes through plain loops.

mod exact;
mod reach;
mod unpool;

use evenkeel_kernels::epilogue::Epilogue;
use evenkeel_kernels::layout::Extents;
use evenkeel_kernels::pool::{self as kernel, Geometry, LpTape, Winners, WinnersMut};

use super::conv::{finished, floats};
use super::registry::{Entry, entry};
use super::strided::for_real;
use super::window::Window;
use super::{Answer, Back, Call, Definition, Layouts, Operator};
use crate::error::Fault;
use crate::tensor::{Data, Element, Layout, Room, Store, Tensor};
use exact::Ordered;
use reach::Axis;

/// The entries of this file.
pub const ENTRIES: &[Entry] = &[
    entry("MaxPool", true, max_pool),
    entry("AveragePool", true, average_pool),
    entry("LpPool", true, lp_pool),
    entry("GlobalMaxPool", true, |_| Ok(Box::new(Pool { window: None, ceil: false, kind: Kind::MAX }))),
    entry("GlobalAveragePool", true, |_| Ok(Box::new(Pool { window: None, ceil: false, kind: Kind::MEAN }))),
    entry("GlobalLpPool", true, global_lp_pool),
    entry("MaxUnpool", true, unpool::build),
];

/// How a window becomes one value.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Max { column_major: bool },
    Average { count_padding: bool },
    Lp { p: f32 },
}

impl Kind {
    const MAX: Kind = Kind::Max { column_major: false };
    const MEAN: Kind = Kind::Average { count_padding: false };
}

/// A pooling over windows or, without one, over whole images.
#[derive(Debug)]
struct Pool {
    window: Option<Window>,
    ceil: bool,
    kind: Kind,
}

fn windowed(definition: &Definition<'_>, kind: Kind) -> Result<Box<dyn Operator>, Fault> {
    let window = Some(Window::of(definition)?);
    Ok(Box::new(Pool { window, ceil: definition.attributes.flag("ceil_mode", false)?, kind }))
}

fn max_pool(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    windowed(definition, Kind::Max { column_major: definition.attributes.flag("storage_order", false)? })
}

fn average_pool(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    windowed(
        definition,
        Kind::Average { count_padding: definition.attributes.flag("count_include_pad", false)? },
    )
}

fn power(definition: &Definition<'_>) -> Result<Kind, Fault> {
    let p = definition.attributes.int("p")?.unwrap_or(2);
    if p < 1 {
        return Err(Fault::Attribute { name: "p".into(), problem: format!("{p} is no norm") });
    }
    Ok(Kind::Lp { p: p as f32 })
}

fn lp_pool(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    windowed(definition, power(definition)?)
}

fn global_lp_pool(definition: &Definition<'_>) -> Result<Box<dyn Operator>, Fault> {
    Ok(Box::new(Pool { window: None, ceil: false, kind: power(definition)? }))
}

impl Pool {
    fn axes(&self, shape: &[usize]) -> Result<Vec<Axis>, Fault> {
        if shape.len() < 2 {
            return Err(Fault::Shape {
                input: 0,
                expected: "images and channels".into(),
                got: shape.to_vec(),
            });
        }
        let whole = |&input: &usize| Axis {
            input,
            output: 1,
            kernel: input.max(1),
            stride: 1,
            dilation: 1,
            before: 0,
            after: 0,
        };
        match &self.window {
            Some(window) => reach::axes(window, self.ceil, &shape[2..]),
            None => Ok(shape[2..].iter().map(whole).collect()),
        }
    }
}

impl Operator for Pool {
    fn folds_up_to(&self) -> usize {
        crate::op::SHORT_PRODUCT
    }

    fn layouts(&self) -> Layouts {
        Layouts::ChannelsLast
    }

    fn apply(&self, call: Call<'_>) -> Result<Answer, Fault> {
        let x = call.input(0)?;
        let axes = self.axes(x.shape())?;
        let shape: Vec<usize> = x.shape()[..2].iter().copied().chain(axes.iter().map(|a| a.output)).collect();
        let fast = x.layout() == Layout::ChannelsLast
            && call.outputs < 2
            && !x.is_empty()
            && call.room.len_of(&shape)? > 0;
        match (<[usize; 4]>::try_from(shape.as_slice()), &*axes) {
            (Ok(shape), &[vertical, horizontal]) if fast => {
                let map = Map { kind: self.kind, geometry: geometry(shape, vertical, horizontal) };
                if self.window.is_some() { map.windows(&call) } else { map.whole_images(&call) }
            }
            _ => {
                let plain = x.to_plain(call.room)?;
                let loops = Loops { kind: self.kind, axes, shape };
                loops.apply(plain, &call)
            }
        }
    }
}

fn geometry(shape: [usize; 4], vertical: Axis, horizontal: Axis) -> Geometry {
    Geometry {
        batch: shape[0],
        channels: shape[1],
        in_h: vertical.input,
        in_w: horizontal.input,
        out_h: vertical.output,
        out_w: horizontal.output,
        kernel: [vertical.kernel, horizontal.kernel],
        stride: [vertical.stride, horizontal.stride],
        dilation: [vertical.dilation, horizontal.dilation],
        pads: [vertical.before, horizontal.before, vertical.after, horizontal.after],
    }
}

/// A pooling of a channels-last map.
struct Map {
    kind: Kind,
    geometry: Geometry,
}

/// Gives the gradient of input 0: what `run` makes of the cotangent, with the sum so far and the mask in the same pass.
fn give_map(
    back: &mut Back<'_>,
    shape: [usize; 4],
    run: impl FnOnce(&[f32], &mut [f32], Epilogue<'_>),
) -> Result<(), Fault> {
    let Some(cotangent) = back.take(0) else { return Ok(()) };
    let finish = back.finish(0, Layout::ChannelsLast)?;
    let grad = finished(shape, floats(&cotangent)?, finish, back.room(), run)?;
    back.give(0, grad)
}

impl Map {
    fn shapes(&self) -> ([usize; 4], [usize; 4]) {
        let g = &self.geometry;
        ([g.batch, g.channels, g.in_h, g.in_w], [g.batch, g.channels, g.out_h, g.out_w])
    }

    fn windows(self, call: &Call<'_>) -> Result<Answer, Fault> {
        let (x, taped, room, g) = (floats(call.input(0)?)?, call.wants(0), call.room, self.geometry);
        let (from, to) = self.shapes();
        match self.kind {
            Kind::Max { .. } if !taped => {
                Ok(Answer::one(room.feature_map(to, |y| kernel::max(&g, x, y, None))?))
            }
            Kind::Max { .. } if g.cells() <= 256 => {
                let mut winners = room.take::<u8>(stored(to))?;
                let y =
                    room.feature_map(to, |y| kernel::max(&g, x, y, Some(WinnersMut::Bytes(&mut winners))))?;
                Ok(Answer::one(y).with(true, move |back| {
                    give_map(back, from, |gy, gx, epilogue| {
                        kernel::max_pullback(&g, Winners::Bytes(&winners), gy, gx, epilogue);
                    })
                }))
            }
            Kind::Max { .. } => {
                let mut winners = room.take::<u32>(stored(to))?;
                let y =
                    room.feature_map(to, |y| kernel::max(&g, x, y, Some(WinnersMut::Words(&mut winners))))?;
                Ok(Answer::one(y).with(true, move |back| {
                    give_map(back, from, |gy, gx, epilogue| {
                        kernel::max_pullback(&g, Winners::Words(&winners), gy, gx, epilogue);
                    })
                }))
            }
            Kind::Average { count_padding } => {
                let y = room.feature_map(to, |y| kernel::average(&g, count_padding, x, y))?;
                Ok(Answer::one(y).with(taped, move |back| {
                    give_map(back, from, |gy, gx, epilogue| {
                        kernel::average_pullback(&g, count_padding, gy, gx, epilogue);
                    })
                }))
            }
            Kind::Lp { p } => self.norms(call, p),
        }
    }

    fn norms(self, call: &Call<'_>, p: f32) -> Result<Answer, Fault> {
        let (g, (from, to)) = (self.geometry, self.shapes());
        let x = call.input(0)?.clone();
        let y = call.room.feature_map(to, |y| kernel::lp(&g, p, x.values().unwrap_or(&[]), y))?;
        let kept = y.clone();
        Ok(Answer::one(y).with(call.wants(0), move |back| {
            let (input, output) = (floats(&x)?, floats(&kept)?);
            give_map(back, from, |gy, gx, epilogue| {
                kernel::lp_pullback(&g, LpTape { p, input, output }, gy, gx, epilogue);
            })
        }))
    }

    fn whole_images(self, call: &Call<'_>) -> Result<Answer, Fault> {
        let (x, taped, room) = (floats(call.input(0)?)?, call.wants(0), call.room);
        let (from, to) = self.shapes();
        let extents = Extents { batch: from[0], channels: from[1], pixels: from[2] * from[3] };
        match self.kind {
            Kind::Max { .. } => {
                let mut winners = room.take::<u32>(if taped { stored(to) } else { 0 })?;
                let y = room.feature_map(to, |y| {
                    kernel::global_max(extents, x, y, taped.then_some(&mut *winners));
                })?;
                Ok(Answer::one(y).with(taped, move |back| {
                    give_map(back, from, |gy, gx, epilogue| {
                        kernel::global_max_pullback(extents, &winners, gy, gx, epilogue);
                    })
                }))
            }
            Kind::Average { .. } => {
                let y = room.feature_map(to, |y| kernel::global_average(extents, x, y))?;
                Ok(Answer::one(y).with(taped, move |back| {
                    give_map(back, from, |gy, gx, epilogue| {
                        kernel::global_average_pullback(extents, gy, gx, epilogue);
                    })
                }))
            }
            Kind::Lp { p } => self.norms(call, p),
        }
    }
}

/// Elements in storage of a channels-last map.
fn stored([n, c, h, w]: [usize; 4]) -> usize {
    n * h * w * evenkeel_kernels::layout::stride(c)
}

/// A pooling of plain tensors.
struct Loops {
    kind: Kind,
    axes: Vec<Axis>,
    shape: Vec<usize>,
}

impl Loops {
    fn apply(self, x: Tensor, call: &Call<'_>) -> Result<Answer, Fault> {
        match self.kind {
            Kind::Max { column_major } => match x.data() {
                Data::F32(v) => self.maxima(v, column_major, call),
                Data::F64(v) => self.maxima(v, column_major, call),
                Data::I32(v) => self.maxima(v, column_major, call),
                Data::I64(v) => self.maxima(v, column_major, call),
                Data::U8(v) => self.maxima(v, column_major, call),
                Data::I8(v) => self.maxima(v, column_major, call),
                Data::Bool(_) => Err(Fault::Type { input: 0, expected: "numbers", got: x.dtype() }),
            },
            Kind::Average { count_padding } => {
                let y = for_real!(x, values => call.room.tensor(&self.shape, |y| {
                    exact::average(&self.axes, count_padding, values, y);
                }))?;
                let old = x.shape().to_vec();
                Ok(Answer::one(y).with(call.wants(0), move |back| {
                    let Some(gy) = back.take(0) else { return Ok(()) };
                    let gx = for_real!(gy, gy => zeroed(&old, back.room(), |gx| {
                        exact::average_back(&self.axes, count_padding, gy, gx);
                    }))?;
                    back.give(0, gx)
                }))
            }
            Kind::Lp { p } => {
                let y = for_real!(x, values => call.room.tensor(&self.shape, |y| {
                    exact::lp(&self.axes, p.into(), values, y);
                }))?;
                let kept = y.clone();
                Ok(Answer::one(y).with(call.wants(0), move |back| {
                    let Some(gy) = back.take(0) else { return Ok(()) };
                    let gx = for_real!(gy, gy => zeroed(x.shape(), back.room(), |gx| {
                        let maps = (x.values().unwrap_or(&[]), kept.values().unwrap_or(&[]));
                        exact::lp_back(&self.axes, p.into(), maps, gy, gx);
                    }))?;
                    back.give(0, gx)
                }))
            }
        }
    }

    fn maxima<T: Ordered>(self, x: &Store<T>, column_major: bool, call: &Call<'_>) -> Result<Answer, Fault> {
        let mut winners = call.room.take::<u32>(call.room.len_of(&self.shape)?)?;
        let y = call.room.tensor(&self.shape, |y| exact::max(&self.axes, x, y, &mut winners))?;
        let mut outputs = vec![y];
        if call.outputs > 1 {
            outputs.push(self.indices(&winners, column_major, call.room)?);
        }
        let old = call.input(0)?.shape().to_vec();
        Ok(Answer::new(outputs).with(call.wants(0), move |back| {
            let Some(gy) = back.take(0) else { return Ok(()) };
            let gx = for_real!(gy, gy => zeroed(&old, back.room(), |gx| {
                exact::max_back(&self.axes, &winners, gy, gx);
            }))?;
            back.give(0, gx)
        }))
    }

    /// The winners' places in the whole input.
    fn indices(&self, winners: &[u32], column_major: bool, room: &Room) -> Result<Tensor, Fault> {
        let plane: usize = self.axes.iter().map(|axis| axis.input).product();
        let outputs: usize = self.axes.iter().map(|axis| axis.output).product();
        let turned = |mut at: usize| {
            let mut place = 0;
            for (i, axis) in self.axes.iter().enumerate().rev() {
                let before: usize = self.axes[..i].iter().map(|axis| axis.input).product();
                place += at % axis.input * before;
                at /= axis.input;
            }
            place
        };
        room.tensor(&self.shape, |out| {
            for (i, (out, &winner)) in out.iter_mut().zip(winners).enumerate() {
                let at = if column_major { turned(winner as usize) } else { winner as usize };
                *out = if winner == exact::NOBODY { -1 } else { (i / outputs * plane + at) as i64 };
            }
        })
    }
}

fn zeroed<T: Element>(shape: &[usize], room: &Room, add: impl FnOnce(&mut [T])) -> Result<Tensor, Fault> {
    room.tensor(shape, |out| {
        out.fill(T::default());
        add(out);
    })
}

#[cfg(test)]
mod tests;
