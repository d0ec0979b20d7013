//! Vectors of floats: the operations that kernels are written in once and compiled for each set of instructions.
//!
//! [`Lanes`] has eight lanes on plain arrays and AVX2, sixteen on AVX-512. Maps have a multiple of eight channels, so a vector of
//! sixteen may hang over the last eight: loads and stores take a [`Lanes::Part`], the lanes that are there. A value of a `Lanes` type proves
//! that its instructions exist. Every operation works lane by lane: what stands in one lane never reaches another.
//!
//! A kernel's loops are `#[inline(always)]` functions over `L: Lanes`, entered through [`Lanes::run`], which is compiled for the
//! set; whatever is not inlined below it would be compiled without.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod portable;

pub(crate) use portable::Portable;

/// A computation to be compiled for a set of instructions.
pub(crate) trait Kernel<L: Lanes> {
    /// Runs it. Implementations are `#[inline(always)]`.
    fn run(self, l: L);
}

/// Operations on vectors of floats.
pub(crate) trait Lanes: Copy + Send + Sync {
    /// [`Lanes::WIDTH`] floats.
    type Vector: Copy;
    /// The first lanes of a vector: eight or all of them.
    type Part: Copy;
    /// Lanes of a vector: 8 or 16.
    const WIDTH: usize;
    /// Rows of the largest register tile of two vectors a row.
    const ROWS: usize;

    /// Runs a kernel compiled for these instructions.
    fn run<K: Kernel<Self>>(self, kernel: K);

    /// The part of a vector at a place with `left` elements from there on, a multiple of eight.
    fn part(self, left: usize) -> Self::Part;
    /// `x` in every lane.
    fn splat(self, x: f32) -> Self::Vector;
    /// # Safety
    /// [`Lanes::WIDTH`] floats must be readable at `from`.
    unsafe fn load(self, from: *const f32) -> Self::Vector;
    /// # Safety
    /// [`Lanes::WIDTH`] floats must be writable at `to`.
    unsafe fn store(self, to: *mut f32, v: Self::Vector);
    /// The lanes of `part`, zeros in the others.
    ///
    /// # Safety
    /// The floats of `part` must be readable at `from`.
    unsafe fn load_part(self, from: *const f32, part: Self::Part) -> Self::Vector;
    /// # Safety
    /// The floats of `part` must be writable at `to`.
    unsafe fn store_part(self, to: *mut f32, v: Self::Vector, part: Self::Part);
    /// One bit for each lane of `part`.
    ///
    /// # Safety
    /// A byte for each eight lanes of `part` must be readable at `from`.
    unsafe fn load_bits(self, from: *const u8, part: Self::Part) -> u16;
    /// # Safety
    /// A byte for each eight lanes of `part` must be writable at `to`.
    unsafe fn store_bits(self, to: *mut u8, bits: u16, part: Self::Part);
    /// `a + b`.
    fn add(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a - b`.
    fn sub(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a * b`.
    fn mul(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// `a * b + c`.
    fn mul_add(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// `c - a * b`.
    fn mul_sub(self, a: Self::Vector, b: Self::Vector, c: Self::Vector) -> Self::Vector;
    /// The larger; `b` where either is not a number.
    fn max(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// The smaller; `b` where either is not a number.
    fn min(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;
    /// Bit `i` is `a > b` in lane `i`.
    fn greater(self, a: Self::Vector, b: Self::Vector) -> u16;
    /// `on` in the lanes whose bit is set, `off` in the others.
    fn select(self, bits: u16, on: Self::Vector, off: Self::Vector) -> Self::Vector;
    /// Says that the line at `at` will be read soon, from the second-level cache. Any address will do.
    fn prefetch(self, at: *const f32);
    /// Says that the line at `at` will be used at once. Any address will do.
    fn prefetch_near(self, at: *const f32);
}
