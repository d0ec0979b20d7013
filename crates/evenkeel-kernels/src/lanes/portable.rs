//! Eight lanes on plain arrays, which run anywhere: what the other lanes answer to.

use super::{Kernel, Lanes};

/// Plain arrays: runs anywhere.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Lanes for Portable {
    type Vector = [f32; 8];
    type Part = ();
    const WIDTH: usize = 8;
    const ROWS: usize = 6;

    #[inline(always)]
    fn run<K: Kernel<Self>>(self, kernel: K) {
        kernel.run(self);
    }

    #[inline(always)]
    fn part(self, _: usize) {}

    #[inline(always)]
    fn splat(self, x: f32) -> [f32; 8] {
        [x; 8]
    }

    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> [f32; 8] {
        // SAFETY: the caller says eight floats are there; an array of floats needs no more alignment than one float.
        unsafe { from.cast::<[f32; 8]>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: [f32; 8]) {
        // SAFETY: as in load.
        unsafe { to.cast::<[f32; 8]>().write_unaligned(v) }
    }

    #[inline(always)]
    unsafe fn load_part(self, from: *const f32, _: ()) -> [f32; 8] {
        // SAFETY: the only part is the whole vector.
        unsafe { self.load(from) }
    }

    #[inline(always)]
    unsafe fn store_part(self, to: *mut f32, v: [f32; 8], _: ()) {
        // SAFETY: as in load_part.
        unsafe { self.store(to, v) }
    }

    #[inline(always)]
    unsafe fn load_bits(self, from: *const u8, _: ()) -> u16 {
        // SAFETY: the caller's promise.
        u16::from(unsafe { *from })
    }

    #[inline(always)]
    unsafe fn store_bits(self, to: *mut u8, bits: u16, _: ()) {
        // SAFETY: the caller's promise.
        unsafe { *to = bits as u8 }
    }

    #[inline(always)]
    fn add(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] + b[i])
    }

    #[inline(always)]
    fn sub(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] - b[i])
    }

    #[inline(always)]
    fn mul(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] * b[i])
    }

    #[inline(always)]
    fn mul_add(self, a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| a[i] * b[i] + c[i])
    }

    #[inline(always)]
    fn mul_sub(self, a: [f32; 8], b: [f32; 8], c: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| c[i] - a[i] * b[i])
    }

    #[inline(always)]
    fn max(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| if a[i] > b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn min(self, a: [f32; 8], b: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| if a[i] < b[i] { a[i] } else { b[i] })
    }

    #[inline(always)]
    fn greater(self, a: [f32; 8], b: [f32; 8]) -> u16 {
        (0..8).fold(0, |bits, i| bits | u16::from(a[i] > b[i]) << i)
    }

    #[inline(always)]
    fn select(self, bits: u16, on: [f32; 8], off: [f32; 8]) -> [f32; 8] {
        std::array::from_fn(|i| if bits >> i & 1 == 1 { on[i] } else { off[i] })
    }

    #[inline(always)]
    fn prefetch(self, _: *const f32) {}

    #[inline(always)]
    fn prefetch_near(self, _: *const f32) {}
}
