//! Memory of requests: the bytes that all of them hold together, while they are read, wait and are computed. Limits of one request bound one; this bounds their sum.
//!
//! Every request has a [`Share`], which grows with what is read of it and goes back when the request is dropped, whoever drops it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::error::{Error, Result};

/// The bytes that requests may hold together.
#[derive(Debug)]
pub(crate) struct Budget {
    most: usize,
    held: AtomicUsize,
}

impl Budget {
    /// A budget that has room for one request of the largest size at least.
    pub(crate) fn new(most: usize, largest: usize) -> Arc<Self> {
        Arc::new(Self { most: most.max(largest), held: AtomicUsize::new(0) })
    }

    /// The bytes that are held.
    pub(crate) fn held(&self) -> usize {
        self.held.load(Ordering::Relaxed)
    }
}

/// What one request holds.
#[derive(Debug)]
pub(crate) struct Share {
    budget: Arc<Budget>,
    bytes: usize,
}

impl Share {
    /// Nothing yet.
    pub(crate) fn new(budget: &Arc<Budget>) -> Self {
        Self { budget: budget.clone(), bytes: 0 }
    }

    /// Holds so much from now on, more or less than before.
    ///
    /// # Errors
    /// If there is no room for it; what was held before still is.
    pub(crate) fn hold(&mut self, bytes: usize) -> Result<()> {
        let most = self.budget.most;
        let rest = |held: usize| held - self.bytes;
        let changed = self.budget.held.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |held| {
            let after = rest(held).saturating_add(bytes);
            (after <= most || bytes <= self.bytes).then_some(after)
        });
        changed.map_err(|_| Error::NoRoom { limit: most })?;
        self.bytes = bytes;
        Ok(())
    }

    /// Holds so much more.
    ///
    /// # Errors
    /// As [`Share::hold`].
    pub(crate) fn grow(&mut self, bytes: usize) -> Result<()> {
        self.hold(self.bytes.saturating_add(bytes))
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up_and_come_back() {
        let budget = Budget::new(100, 10);
        let (mut one, mut other) = (Share::new(&budget), Share::new(&budget));
        one.grow(60).unwrap();
        other.grow(40).unwrap();
        assert!(matches!(other.grow(1), Err(Error::NoRoom { limit: 100 })));
        assert!(other.grow(usize::MAX).is_err());
        assert_eq!(budget.held(), 100, "what did not fit is not held");
        one.hold(20).unwrap();
        other.grow(40).unwrap();
        drop(one);
        assert_eq!(budget.held(), 80);
        drop(other);
        assert_eq!(budget.held(), 0);
        assert!(Share::new(&Budget::new(5, 10)).grow(10).is_ok(), "one request of the largest size fits");
    }
}
