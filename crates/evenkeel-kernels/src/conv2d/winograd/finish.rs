//! The epilogue of a convolution, a vector of channels at a time, on the way out of the output transform.

use crate::activation::Function;
use crate::conv2d::finish::bend;
use crate::epilogue::{Activation, Epilogue, Mask};
use crate::lanes::Lanes;

/// Loops over the pixels of a tile; a macro because a closure would not be compiled for the lanes' instructions.
macro_rules! each_pixel {
    ($place:ident, $rows:ident, $columns:ident, |$a:ident, $b:ident, $at:ident| $body:expr) => {
        for $a in 0..$rows {
            for $b in 0..$columns {
                let $at = $place.first + $a * $place.down + $b * $place.right;
                $body;
            }
        }
    };
}

/// An [`Epilogue`] and the map it writes, open to tasks that each write their own elements.
pub(super) struct Finish<'a> {
    out: *mut f32,
    bits: Option<*mut u8>,
    bias: Option<&'a [f32]>,
    residual: Option<&'a [f32]>,
    accumulate: bool,
    activation: Activation,
    mask: Option<Mask<'a>>,
    smooth: Option<Function>,
}

// SAFETY: the pointers stand for exclusive borrows held as long as the value lives, and `store` asks its callers to write disjoint
// elements.
unsafe impl Send for Finish<'_> {}
// SAFETY: as above.
unsafe impl Sync for Finish<'_> {}

impl<'a> Finish<'a> {
    /// # Panics
    /// If a part of the epilogue does not have the size of `out`, or the bias not one value for each of `channels`.
    pub(super) fn new(out: &'a mut [f32], epilogue: Epilogue<'a>, channels: usize) -> Finish<'a> {
        if let Some(bias) = epilogue.bias {
            assert_eq!(bias.len(), channels, "one bias a channel");
        }
        if let Some(residual) = epilogue.residual {
            assert_eq!(residual.len(), out.len(), "residual has the output's shape");
        }
        if let Some(bits) = &epilogue.bits {
            assert_eq!(bits.len() * 8, out.len(), "one bit an element");
        }
        if let Some(mask) = &epilogue.mask {
            assert_eq!(mask.bits.len() * 8, out.len(), "one mask bit an element");
        }
        Finish {
            out: out.as_mut_ptr(),
            bits: epilogue.bits.map(<[u8]>::as_mut_ptr),
            bias: epilogue.bias,
            residual: epilogue.residual,
            accumulate: epilogue.accumulate,
            activation: epilogue.activation,
            mask: epilogue.mask,
            smooth: epilogue.smooth,
        }
    }

    /// The bias of channels `first..`, zero where there is none.
    pub(super) fn bias(&self, first: usize, to: &mut [f32]) {
        to.fill(0.0);
        if let Some(bias) = self.bias {
            let count = to.len().min(bias.len() - first);
            to[..count].copy_from_slice(&bias[first..first + count]);
        }
    }

    /// Sends the results of one tile, a vector of channels of each pixel, through the epilogue. Each part of it is one pass over the tile, so
    /// that what the epilogue is made of is asked once a tile.
    ///
    /// # Safety
    /// The pixels of `place` must lie inside the map at multiples of eight, and no other task may touch these elements.
    #[inline(always)]
    pub(super) unsafe fn store<L: Lanes, const M: usize>(
        &self,
        l: L,
        place: &Place,
        mut tile: [[L::Vector; M]; M],
        part: L::Part,
    ) {
        // A whole tile is the common case: constant bounds let its passes be unrolled.
        // SAFETY: the caller's promise.
        unsafe {
            if place.rows == M && place.columns == M {
                self.store_rows(l, place, &mut tile, [M, M], part);
            } else {
                self.store_rows(l, place, &mut tile, [place.rows, place.columns], part);
            }
        }
    }

    /// # Safety
    /// As for [`Finish::store`].
    #[inline(always)]
    unsafe fn store_rows<L: Lanes, const M: usize>(
        &self,
        l: L,
        place: &Place,
        tile: &mut [[L::Vector; M]; M],
        [rows, columns]: [usize; 2],
        part: L::Part,
    ) {
        // SAFETY: the parts of the epilogue were checked to have the map's size, and the pixels lie in it.
        unsafe {
            if let Some(residual) = self.residual {
                each_pixel!(place, rows, columns, |a, b, at| {
                    tile[a][b] = l.add(tile[a][b], l.load_part(residual.as_ptr().add(at), part));
                });
            }
            if self.accumulate {
                each_pixel!(place, rows, columns, |a, b, at| {
                    tile[a][b] = l.add(tile[a][b], l.load_part(self.out.add(at), part));
                });
            }
            if let Some(bits) = self.bits {
                each_pixel!(place, rows, columns, |a, b, at| {
                    l.store_bits(bits.add(at / 8), bits_of(l, self.activation, tile[a][b]), part);
                });
            }
            if self.activation != Activation::None {
                each_pixel!(place, rows, columns, |a, b, _at| {
                    tile[a][b] = activate(l, self.activation, tile[a][b]);
                });
            }
            if let Some(mask) = &self.mask {
                let (on, off) = (l.splat(mask.on), l.splat(mask.off));
                each_pixel!(place, rows, columns, |a, b, at| {
                    let set = l.load_bits(mask.bits.as_ptr().add(at / 8), part);
                    tile[a][b] = l.mul(tile[a][b], l.select(set, on, off));
                });
            }
            if let Some(function) = self.smooth {
                bend(l, function, tile.as_flattened_mut());
            }
            each_pixel!(place, rows, columns, |a, b, at| l.store_part(self.out.add(at), tile[a][b], part));
        }
    }
}

/// Where the pixels of one tile go: the first one's element, the steps down and right, and how many there are.
pub(super) struct Place {
    pub first: usize,
    pub down: usize,
    pub right: usize,
    pub rows: usize,
    pub columns: usize,
}

#[inline(always)]
fn bits_of<L: Lanes>(l: L, activation: Activation, v: L::Vector) -> u16 {
    match activation {
        Activation::None => u16::MAX,
        Activation::Relu | Activation::LeakyRelu(_) => l.greater(v, l.splat(0.0)),
        Activation::Clip(low, high) => l.greater(v, l.splat(low)) & l.greater(l.splat(high), v),
    }
}

#[inline(always)]
fn activate<L: Lanes>(l: L, activation: Activation, v: L::Vector) -> L::Vector {
    match activation {
        Activation::None => v,
        Activation::Relu => l.max(v, l.splat(0.0)),
        Activation::LeakyRelu(slope) => l.select(l.greater(v, l.splat(0.0)), v, l.mul(v, l.splat(slope))),
        Activation::Clip(low, high) => l.min(l.max(v, l.splat(low)), l.splat(high)),
    }
}
