//! Where operators get their memory: a pool under the limits of a run, so that a hostile model gets an error instead of the machine.

use std::sync::Arc;

use evenkeel_kernels::buffer::{Buffer, Plain, Pool, TooLarge};
use evenkeel_kernels::layout::stride;

use super::{Element, Tensor};
use crate::error::Fault;

/// The number of elements of a shape, unless it overflows. Zeros do not hide an overflow, so that any product of some of the
/// dimensions is safe to form.
pub fn checked_len(shape: &[usize]) -> Option<usize> {
    let bound = shape.iter().try_fold(1usize, |len, &dim| len.checked_mul(dim.max(1)))?;
    let countable = bound <= isize::MAX as usize / 8;
    countable.then(|| if shape.contains(&0) { 0 } else { bound })
}

/// Bounds on what a network may use, so that a hostile model gets an error instead of the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes that folding constants at load may keep alive.
    pub fold_bytes: usize,
    /// Bytes that one network may keep alive while it runs, weights excluded.
    pub run_bytes: usize,
    /// Iterations that all Loop nodes of one call may make together.
    pub loop_trips: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { fold_bytes: 256 << 20, run_bytes: 16 << 30, loop_trips: 100_000 }
    }
}

/// Where operators get their memory: a pool under the run's limits, and a count of loop trips.
#[derive(Clone, Debug)]
pub struct Room {
    pool: Pool,
    trips_left: Arc<std::sync::atomic::AtomicU64>,
    limits: Limits,
}

impl Room {
    /// Room for one call, on this pool.
    pub fn new(pool: Pool, limits: Limits) -> Room {
        Room { pool, trips_left: Arc::new(limits.loop_trips.into()), limits }
    }

    /// The pool.
    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    /// The limits of this call.
    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Counts one iteration of a Loop.
    ///
    /// # Errors
    /// If the call has used up its trips.
    pub fn count_trip(&self) -> Result<(), Fault> {
        use std::sync::atomic::Ordering::Relaxed;
        let spent = self.trips_left.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_err();
        if spent {
            let limit = self.limits.loop_trips.min(i64::MAX as u64) as i64;
            return Err(Fault::Work { what: "loop trips", asked: limit.saturating_add(1), limit });
        }
        Ok(())
    }

    /// A buffer of unspecified values.
    ///
    /// # Errors
    /// If the limit would be passed.
    pub fn take<T: Plain>(&self, len: usize) -> Result<Buffer<T>, Fault> {
        Ok(self.pool.take(len)?)
    }

    /// The number of elements of a shape.
    ///
    /// # Errors
    /// If it overflows.
    pub fn len_of(&self, shape: &[usize]) -> Result<usize, Fault> {
        let (live, ceiling) = (self.pool.live_bytes(), self.limits.run_bytes);
        checked_len(shape).ok_or(Fault::Memory(TooLarge { asked: usize::MAX, live, ceiling }))
    }

    /// A plain tensor whose values `fill` writes. `fill` gets unspecified values and must write all of them.
    ///
    /// # Errors
    /// If the limit would be passed.
    pub fn tensor<T: Element>(&self, shape: &[usize], fill: impl FnOnce(&mut [T])) -> Result<Tensor, Fault> {
        let mut buffer = self.take::<T>(self.len_of(shape)?)?;
        fill(&mut buffer);
        Ok(Tensor::new(shape, buffer))
    }

    /// A channels-last feature map whose values `fill` writes (padding lanes may be left).
    ///
    /// # Errors
    /// If the limit would be passed.
    pub fn feature_map(&self, shape: [usize; 4], fill: impl FnOnce(&mut [f32])) -> Result<Tensor, Fault> {
        let [n, c, h, w] = shape;
        let mut buffer = self.take::<f32>(self.len_of(&[n, h, w, stride(c)])?)?;
        fill(&mut buffer);
        Ok(Tensor::channels_last(shape, buffer))
    }
}
