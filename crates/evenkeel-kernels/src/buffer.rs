//! Aligned storage that goes back to the pool it came from.
//!
//! A [`Pool`] keeps freed buffers and hands them out again, so that a network asked the same thing a thousand times allocates
//! once. It also counts: live bytes now and at the highest, and refuses to pass a ceiling, which is how a hostile model
//! that asks for a terabyte gets an error instead of the machine.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ops::{Deref, DerefMut};
use std::sync::{Arc, Mutex, PoisonError};

const ALIGN: usize = 64;

/// Types that may be read from memory another one of them left behind: any bit pattern is a value.
///
/// # Safety
/// Every bit pattern, all zeros included, must be valid.
pub unsafe trait Plain: Copy + Send + Sync + 'static {}
// SAFETY: all bit patterns of these are values.
unsafe impl Plain for f32 {}
// SAFETY: as above.
unsafe impl Plain for f64 {}
// SAFETY: as above.
unsafe impl Plain for i32 {}
// SAFETY: as above.
unsafe impl Plain for i64 {}
// SAFETY: as above.
unsafe impl Plain for u32 {}
// SAFETY: as above.
unsafe impl Plain for u16 {}
// SAFETY: as above.
unsafe impl Plain for u8 {}
// SAFETY: as above.
unsafe impl Plain for i8 {}

/// A truth value in a byte: any bit pattern is one, zero is false.
#[derive(Clone, Copy, Debug, Default)]
#[repr(transparent)]
pub struct Flag(u8);
// SAFETY: a byte, and every byte has a meaning.
unsafe impl Plain for Flag {}

impl Flag {
    /// True or false.
    pub fn get(self) -> bool {
        self.0 != 0
    }
}

impl From<bool> for Flag {
    fn from(truth: bool) -> Flag {
        Flag(truth as u8)
    }
}

impl PartialEq for Flag {
    fn eq(&self, other: &Flag) -> bool {
        self.get() == other.get()
    }
}

/// One allocation: aligned, initialised bytes.
struct Block {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: a Block owns its bytes and has no other handle to them.
unsafe impl Send for Block {}
// SAFETY: shared access only reads.
unsafe impl Sync for Block {}

impl Block {
    fn new(bytes: usize) -> Block {
        let layout = Layout::from_size_align(bytes, ALIGN).expect("size checked by the pool");
        // SAFETY: the layout's size is not zero (the pool rounds up).
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        Block { start, bytes }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        let layout = Layout::from_size_align(self.bytes, ALIGN).expect("was valid when allocated");
        // SAFETY: allocated in `new` with this very layout.
        unsafe { dealloc(self.start, layout) }
    }
}

/// A buffer of `len` values, 64-byte aligned, borrowed from a [`Pool`] and returned to it on drop.
pub struct Buffer<T: Plain> {
    block: Option<Block>,
    len: usize,
    pool: Pool,
    kind: std::marker::PhantomData<T>,
}

impl<T: Plain> Deref for Buffer<T> {
    type Target = [T];
    fn deref(&self) -> &[T] {
        match &self.block {
            // SAFETY: the block holds at least len initialised values, aligned beyond T's need.
            Some(block) => unsafe { std::slice::from_raw_parts(block.start.cast(), self.len) },
            None => &[],
        }
    }
}

impl<T: Plain> DerefMut for Buffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        match &self.block {
            // SAFETY: as in deref, and we hold the only handle.
            Some(block) => unsafe { std::slice::from_raw_parts_mut(block.start.cast(), self.len) },
            None => &mut [],
        }
    }
}

impl<T: Plain> Drop for Buffer<T> {
    fn drop(&mut self) {
        if let Some(block) = self.block.take() {
            self.pool.give_back(block);
        }
    }
}

impl<T: Plain + std::fmt::Debug> std::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter().take(8)).finish()
    }
}

#[derive(Default)]
struct Shelf {
    free: Vec<Block>, // oldest first
    free_bytes: usize,
    live_bytes: usize,
    peak_bytes: usize,
    ceiling: usize,
}

/// A shared shelf of freed buffers, with a count of what is in use and a ceiling on it.
#[derive(Clone, Default)]
pub struct Pool(Arc<Mutex<Shelf>>);

impl std::fmt::Debug for Pool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Pool({} bytes live)", self.live_bytes())
    }
}

/// What a pool answers when a request would pass its ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// Bytes asked for.
    pub asked: usize,
    /// Bytes in use when asked.
    pub live: usize,
    /// The ceiling.
    pub ceiling: usize,
}

impl Pool {
    /// An empty pool that lets at most `ceiling` bytes be live at once.
    pub fn new(ceiling: usize) -> Pool {
        Pool(Arc::new(Mutex::new(Shelf { ceiling, ..Shelf::default() })))
    }

    fn shelf(&self) -> std::sync::MutexGuard<'_, Shelf> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of `len` values. What they are is unspecified: zeros, or what an earlier user left.
    ///
    /// # Errors
    /// If the pool's ceiling would be passed.
    pub fn take<T: Plain>(&self, len: usize) -> Result<Buffer<T>, TooLarge> {
        let buffer = |block| Buffer { block, len, pool: self.clone(), kind: std::marker::PhantomData };
        if len == 0 {
            return Ok(buffer(None));
        }
        let mut shelf = self.shelf();
        let refused = TooLarge {
            asked: len.saturating_mul(size_of::<T>()),
            live: shelf.live_bytes,
            ceiling: shelf.ceiling,
        };
        let bytes = size_class(refused.asked).ok_or(refused)?;
        if shelf.live_bytes.saturating_add(bytes) > shelf.ceiling {
            return Err(refused);
        }
        let fit = (0..shelf.free.len())
            .filter(|&i| (bytes..=bytes + bytes / 4).contains(&shelf.free[i].bytes))
            .min_by_key(|&i| shelf.free[i].bytes);
        let block = match fit {
            Some(i) => {
                let block = shelf.free.remove(i);
                shelf.free_bytes -= block.bytes;
                block
            }
            None => Block::new(bytes),
        };
        shelf.live_bytes += block.bytes;
        shelf.peak_bytes = shelf.peak_bytes.max(shelf.live_bytes);
        // What lies idle may not make the whole larger than the peak of what was in use.
        while shelf.free_bytes > 0 && shelf.live_bytes + shelf.free_bytes > shelf.peak_bytes {
            let oldest = shelf.free.remove(0);
            shelf.free_bytes -= oldest.bytes;
        }
        drop(shelf);
        Ok(buffer(Some(block)))
    }

    /// A buffer of `len` zeros.
    ///
    /// # Errors
    /// If the pool's ceiling would be passed.
    pub fn zeros<T: Plain + Default>(&self, len: usize) -> Result<Buffer<T>, TooLarge> {
        let mut buffer = self.take(len)?;
        buffer.fill(T::default());
        Ok(buffer)
    }

    fn give_back(&self, block: Block) {
        let mut shelf = self.shelf();
        shelf.live_bytes -= block.bytes;
        shelf.free_bytes += block.bytes;
        shelf.free.push(block);
    }

    /// Bytes in use now.
    pub fn live_bytes(&self) -> usize {
        self.shelf().live_bytes
    }

    /// The most bytes in use at once since the pool was made or the peak last reset.
    pub fn peak_bytes(&self) -> usize {
        self.shelf().peak_bytes
    }

    /// Starts counting the peak afresh from what is live now, and frees what lies idle.
    pub fn reset_peak(&self) {
        let mut shelf = self.shelf();
        shelf.peak_bytes = shelf.live_bytes;
        shelf.free.clear();
        shelf.free_bytes = 0;
    }
}

/// Sizes are rounded up to one of eight steps per power of two, so that nearly equal requests share buffers.
fn size_class(bytes: usize) -> Option<usize> {
    if bytes > isize::MAX as usize / 2 {
        return None;
    }
    let step = (bytes.next_power_of_two() / 16).max(ALIGN);
    Some(bytes.div_ceil(step) * step)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_buffer_is_used_again() {
        let pool = Pool::new(1 << 20);
        let first = pool.take::<f32>(1000).unwrap();
        let place = first.as_ptr();
        assert_eq!(place as usize % ALIGN, 0);
        drop(first);
        assert_eq!(pool.take::<f32>(990).unwrap().as_ptr(), place);
        assert_eq!(pool.live_bytes(), 0);
    }

    #[test]
    fn the_ceiling_holds() {
        let pool = Pool::new(10_000);
        let half = pool.take::<u8>(5000).unwrap();
        assert!(pool.take::<f32>(5000).is_err());
        assert!(pool.take::<f32>(usize::MAX / 2).is_err());
        drop(half);
        assert!(pool.take::<u8>(9000).is_ok());
    }

    #[test]
    fn idle_buffers_do_not_pile_up() {
        let pool = Pool::new(1 << 30);
        for i in 1..200 {
            drop(pool.take::<f32>(i * 1000).unwrap());
            let shelf = pool.shelf();
            assert!(shelf.free_bytes <= shelf.peak_bytes);
        }
    }
}
