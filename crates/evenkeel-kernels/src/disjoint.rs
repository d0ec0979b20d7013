//! One mutable slice handed to several tasks, each of which writes its own part.
//!
//! [`crate::parallel::rows`] serves outputs that fall apart into consecutive rows; this serves the others (a planar map written by pixel
//! ranges, a map and its bits written together). The invariant is the caller's: no element belongs to two tasks.

use std::marker::PhantomData;
use std::ops::Range;

/// A slice whose parts are given out by index range.
pub(crate) struct Disjoint<'a, T> {
    start: *mut T,
    len: usize,
    life: PhantomData<&'a mut [T]>,
}

// SAFETY: parts are handed out as `&mut [T]`, which may cross threads when T may.
unsafe impl<T: Send> Send for Disjoint<'_, T> {}
// SAFETY: sharing the handle gives nothing but `part`, whose contract keeps parts apart.
unsafe impl<T: Send> Sync for Disjoint<'_, T> {}

impl<'a, T> Disjoint<'a, T> {
    pub(crate) fn new(slice: &'a mut [T]) -> Self {
        Disjoint { start: slice.as_mut_ptr(), len: slice.len(), life: PhantomData }
    }

    /// The elements of `range`.
    ///
    /// # Safety
    /// No two parts that are alive at once may overlap.
    ///
    /// # Panics
    /// If the range is not inside the slice.
    #[allow(clippy::mut_from_ref)]
    #[inline]
    pub(crate) unsafe fn part(&self, range: Range<usize>) -> &mut [T] {
        assert!(range.start <= range.end && range.end <= self.len);
        // SAFETY: in bounds by the assert, unaliased by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.end - range.start) }
    }

    /// Where the elements of `range` begin, for tasks whose elements interleave.
    ///
    /// # Panics
    /// If the range is not inside the slice.
    #[inline]
    pub(crate) fn pointer(&self, range: Range<usize>) -> *mut T {
        assert!(range.start <= range.end && range.end <= self.len);
        self.start.wrapping_add(range.start)
    }
}
