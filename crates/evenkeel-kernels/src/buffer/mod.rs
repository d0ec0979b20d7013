//! Aligned storage that goes back to the pool it came from.
//!
//! A [`Pool`] keeps freed memory and hands it out again, so that a network asked the same thing a thousand times allocates
//! once. It also counts: live bytes now and at the highest, and refuses to pass a ceiling, which is how a hostile model
//! that asks for a terabyte gets an error instead of the machine.
//!
//! Single bytes (the bits and indices that a tape keeps) and wider values (maps, which come and go) lie in slabs apart: a few bits in the
//! room of a map that has gone would force the next map of that size into fresh memory.

mod slab;

use std::ops::{Deref, DerefMut};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use slab::Slab;

const ALIGN: usize = 64;

/// The largest slab a pool maps ahead of need.
const AHEAD: usize = 64 << 20;

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

/// A run of a slab: aligned, initialised bytes.
struct Block {
    start: *mut u8,
    bytes: usize,
}

// SAFETY: a Block owns its bytes and has no other handle to them.
unsafe impl Send for Block {}
// SAFETY: shared access only reads.
unsafe impl Sync for Block {}

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
    /// Those of wider values, those of single bytes.
    slabs: [Vec<Slab>; 2],
    mapped_bytes: usize,
    live_bytes: usize,
    peak_bytes: usize,
    ceiling: usize,
}

impl Shelf {
    /// A block from the first slab of its kind that has room, or from a new one.
    fn take(&mut self, bytes: usize, kind: usize) -> Option<Block> {
        let start = match self.slabs[kind].iter_mut().find_map(|slab| slab.take(bytes)) {
            Some(start) => start,
            None => {
                // What lies idle did not serve, and would stay beside what is mapped now.
                if self.mapped_bytes + bytes > AHEAD {
                    self.drop_idle();
                }
                // Each as large as all before it, so that there are few.
                let ahead = bytes.max(self.mapped_bytes.min(AHEAD));
                let mut slab = Slab::new(ahead).or_else(|| Slab::new(bytes))?;
                let start = slab.take(bytes)?;
                self.mapped_bytes += slab.len();
                self.slabs[kind].push(slab);
                start
            }
        };
        self.live_bytes += bytes;
        self.peak_bytes = self.peak_bytes.max(self.live_bytes);
        Some(Block { start, bytes })
    }

    fn give_back(&mut self, block: Block) {
        self.live_bytes -= block.bytes;
        let slab = self.slabs.iter_mut().flatten().find(|slab| slab.contains(block.start));
        slab.expect("the slab of a live block is kept").give_back(block.start, block.bytes);
        // Idle slabs are worth having, since fresh pages are slow, but not many times what was ever in use.
        if self.mapped_bytes > 2 * self.peak_bytes + AHEAD {
            self.drop_idle();
        }
    }

    fn drop_idle(&mut self) {
        self.slabs.iter_mut().for_each(|slabs| slabs.retain(|slab| !slab.is_idle()));
        self.mapped_bytes = self.slabs.iter().flatten().map(Slab::len).sum();
    }
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

/// Where packed weights live: long, side by side, and those of all networks together.
static WEIGHTS: LazyLock<Pool> = LazyLock::new(|| Pool::new(usize::MAX));
/// Where weights packed for one call live.
static CALLS: LazyLock<Pool> = LazyLock::new(|| Pool::new(usize::MAX));

impl Pool {
    /// The pool of packed weights, which has no ceiling.
    pub fn of_weights() -> &'static Pool {
        &WEIGHTS
    }

    /// The pool of weights that are packed for one call, which has no ceiling.
    pub fn of_calls() -> &'static Pool {
        &CALLS
    }

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
        let bytes = refused.asked.checked_next_multiple_of(ALIGN).ok_or(refused)?;
        if shelf.live_bytes.saturating_add(bytes) > shelf.ceiling {
            return Err(refused);
        }
        let block = shelf.take(bytes, usize::from(size_of::<T>() == 1)).ok_or(refused)?;
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
        self.shelf().give_back(block);
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
        shelf.drop_idle();
    }
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
    fn idle_memory_does_not_pile_up() {
        let pool = Pool::new(1 << 30);
        for i in 1..200 {
            drop(pool.take::<f32>(i * 100_000).unwrap());
            let shelf = pool.shelf();
            assert!(shelf.mapped_bytes <= 2 * shelf.peak_bytes + AHEAD);
        }
        pool.reset_peak();
        assert_eq!(pool.shelf().mapped_bytes, 0);
    }

    #[test]
    fn buffers_alive_at_once_do_not_overlap() {
        let pool = Pool::new(1 << 30);
        let mut buffers: Vec<Buffer<u32>> = Vec::new();
        for i in 0..500u32 {
            if i % 3 == 2 {
                buffers.swap_remove((i as usize * 7) % buffers.len());
            }
            let mut buffer = pool.take((i as usize * 7919) % 60_000 + 1).unwrap();
            buffer.fill(i);
            buffers.push(buffer);
        }
        assert!(buffers.iter().all(|buffer| buffer.iter().all(|&value| value == buffer[0])));
    }
}
