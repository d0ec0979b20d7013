//! The frozen weights of one convolution, and the packed forms the kernels read.
//!
//! Weights are `[out_c][in_c / groups][kh][kw]`, read from a [`Source`] that the network may own. A kernel's form is packed from them
//! when a call needs it; whether it is kept is its [`Form`]'s decision. No form depends on an image's size.

mod form;
mod panels;
mod source;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

pub(crate) use self::panels::Panels;
pub use self::source::{Shared, Source};

use self::form::{Form, Use};
use self::panels::Sizes;
use super::Direction;
use super::grouped::Spread;
use super::winograd::{self, Tile};
use crate::buffer::Pool;
use crate::depthwise;

/// Tiles from which on a Winograd form is made anew for each call, and pixels from which on panels are: making them is then about
/// one part in fifty of the call.
const MANY_TILES: usize = 64;
const MANY_PIXELS: usize = 2048;

/// The weights of one convolution, frozen.
#[derive(Debug)]
pub struct Weights {
    source: Source,
    plain: OnceLock<Vec<f32>>, // [out_c][in_c / groups][kh][kw], for the reference
    out_c: usize,
    in_c: usize,
    kernel: [usize; 2],
    groups: usize,
    stem: (OnceLock<Panels>, OnceLock<Vec<f32>>), // forward, pullback
    panels: [Form<Panels>; 2],                    // forward, pullback
    spread: [OnceLock<Spread>; 2],                // forward, pullback
    depthwise: OnceLock<depthwise::Packed>,       // serves both directions
    winograd: [[Form<winograd::Packed>; 2]; 2],   // F2, F4; forward, pullback
}

impl Weights {
    /// Takes `values` laid out as `[out_c][in_c / groups][kernel[0]][kernel[1]]`.
    ///
    /// # Panics
    /// As [`Weights::of`].
    pub fn new(values: Vec<f32>, out_c: usize, in_c: usize, kernel: [usize; 2], groups: usize) -> Weights {
        Weights::of(values.into(), out_c, in_c, kernel, groups)
    }

    /// The weights of a source, which is `[out_c][in_c / groups][kernel[0]][kernel[1]]`.
    ///
    /// # Panics
    /// If `groups` does not divide both channel counts, or the number of values or factors is not theirs.
    pub fn of(source: Source, out_c: usize, in_c: usize, kernel: [usize; 2], groups: usize) -> Weights {
        assert!(
            groups > 0 && out_c.is_multiple_of(groups) && in_c.is_multiple_of(groups),
            "{groups} groups do not divide {out_c} and {in_c} channels"
        );
        assert!(kernel[0] > 0 && kernel[1] > 0, "an empty kernel");
        let count = out_c * (in_c / groups) * kernel[0] * kernel[1];
        assert_eq!(source.values().len(), count, "number of weights");
        assert!(source.fits(out_c), "one factor an output channel");
        Weights {
            source,
            plain: OnceLock::new(),
            out_c,
            in_c,
            kernel,
            groups,
            stem: Default::default(),
            panels: Default::default(),
            spread: Default::default(),
            depthwise: OnceLock::new(),
            winograd: Default::default(),
        }
    }

    /// Where the weights come from.
    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The weights, `[out_c][in_c / groups][kh][kw]`: those of the source, or a copy made the first time.
    pub fn values(&self) -> &[f32] {
        if let Some(values) = self.plain.get() {
            return values;
        }
        match self.source.all(self.out_c) {
            Cow::Borrowed(values) => values,
            Cow::Owned(values) => self.plain.get_or_init(|| values),
        }
    }

    /// Output channels, all groups together.
    pub fn out_c(&self) -> usize {
        self.out_c
    }

    /// Input channels, all groups together.
    pub fn in_c(&self) -> usize {
        self.in_c
    }

    /// Kernel height and width.
    pub fn kernel(&self) -> [usize; 2] {
        self.kernel
    }

    /// Groups.
    pub fn groups(&self) -> usize {
        self.groups
    }

    /// Bytes of the forms that are kept now, the source not among them.
    pub fn packed_bytes(&self) -> usize {
        let panels = self.panels.iter().filter_map(Form::kept).map(|p| p.bytes());
        let winograd = self.winograd.iter().flatten().filter_map(Form::kept).map(|w| w.bytes());
        let depthwise = self.depthwise.get().map_or(0, |_| size_of_val(self.source.values()));
        panels.sum::<usize>() + winograd.sum::<usize>() + depthwise
    }

    fn taps(&self) -> usize {
        self.kernel[0] * self.kernel[1]
    }

    fn sizes(&self) -> Sizes {
        let (outs, ins) = (self.out_c / self.groups, self.in_c / self.groups);
        Sizes { groups: self.groups, outs, ins, taps: self.taps() }
    }

    /// The panels of the direct kernel, for a call that makes `pixels` pixels.
    pub(crate) fn panels(&self, direction: Direction, pixels: usize) -> Arc<Panels> {
        let by = Use { uses: pixels, enough: MANY_PIXELS, bytes: self.sizes().bytes(direction) };
        self.panels[direction as usize]
            .get(by, |keep| Panels::pack(&self.source, self.sizes(), direction, pool(keep)))
    }

    /// The form of the kernel for small groups.
    pub(crate) fn spread(&self, direction: Direction) -> &Spread {
        let (taps, [outs, ins]) = (self.taps(), [self.out_c / self.groups, self.in_c / self.groups]);
        self.spread[direction as usize].get_or_init(|| {
            let values = self.source.all(self.out_c);
            match direction {
                Direction::Forward => Spread::new([self.groups, outs, ins, taps], |channel, step, tap| {
                    values[(channel * ins + step) * taps + tap]
                }),
                Direction::Pullback => Spread::new([self.groups, ins, outs, taps], |channel, step, tap| {
                    values[((channel / ins * outs + step) * ins + channel % ins) * taps + tap]
                }),
            }
        })
    }

    /// The panels of the stem: one step for each input channel and tap, in the order of the values.
    pub(crate) fn stem_panels(&self) -> &Panels {
        let sizes = Sizes { groups: 1, outs: self.out_c, ins: self.in_c * self.taps(), taps: 1 };
        self.stem.0.get_or_init(|| Panels::pack(&self.source, sizes, Direction::Forward, pool(true)))
    }

    /// The weights of the stem's pullback: `[out_c][tap][in_c]`.
    pub(crate) fn stem_taps(&self) -> &[f32] {
        let taps = self.taps();
        self.stem.1.get_or_init(|| {
            let values = self.source.all(self.out_c);
            let place = |i: usize| (i / (taps * self.in_c), i / self.in_c % taps, i % self.in_c);
            let value = |(o, tap, c): (usize, usize, usize)| values[(o * self.in_c + c) * taps + tap];
            (0..values.len()).map(|i| value(place(i))).collect()
        })
    }

    /// The form of the depthwise kernel.
    pub(crate) fn depthwise(&self) -> &depthwise::Packed {
        self.depthwise
            .get_or_init(|| depthwise::Packed::new(&self.source.all(self.out_c), self.out_c, self.kernel))
    }

    /// The form of the Winograd kernel, for a call over `tiles` tiles.
    pub(crate) fn winograd(&self, tile: Tile, direction: Direction, tiles: usize) -> Arc<winograd::Packed> {
        let channels = [self.out_c, self.in_c];
        let bytes = winograd::Packed::bytes_of(tile, channels, direction);
        self.winograd[tile as usize][direction as usize]
            .get(Use { uses: tiles, enough: MANY_TILES, bytes }, |keep| {
                winograd::Packed::pack(tile, &self.source, channels, direction, pool(keep))
            })
    }
}

/// Where a form lives that is kept, or that is not.
fn pool(keep: bool) -> &'static Pool {
    if keep { Pool::of_weights() } else { Pool::of_calls() }
}
