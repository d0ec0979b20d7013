//! A packed form of weights that is kept while making it anew would cost too much, and made for the call otherwise.
//!
//! Packing costs as much as a few uses of each weight, so where a weight meets many pixels or tiles a call, keeping the form gains
//! nothing but memory traffic, and a Winograd form is up to four times the weights, in each direction. A form is kept from the second
//! call on if the uses of the latest calls were few; kept or not, it has the same bytes, so the choice shows in no result.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// Forms of at most this many bytes are always kept.
const SMALL: usize = 256 << 10;

/// One form of one convolution's weights, in one direction.
#[derive(Debug)]
pub(super) struct Form<T> {
    kept: RwLock<Option<Arc<T>>>,
    /// The most uses of a weight in one of the latest calls; those of earlier calls count for less and less.
    most: AtomicU32,
}

impl<T> Default for Form<T> {
    fn default() -> Form<T> {
        Form { kept: RwLock::new(None), most: AtomicU32::new(0) }
    }
}

/// What a call is about to do with a form.
#[derive(Clone, Copy, Debug)]
pub(super) struct Use {
    /// How often each weight of the form is multiplied.
    pub uses: usize,
    /// The uses from which on making the form anew costs next to nothing beside them.
    pub enough: usize,
    /// The size of the form.
    pub bytes: usize,
}

impl<T> Form<T> {
    /// The form for one call, made (for keeps, or not) if it is not there.
    pub(super) fn get(&self, by: Use, make: impl FnOnce(bool) -> T) -> Arc<T> {
        let [before, most] = self.note(by.uses);
        let keep = by.bytes <= SMALL || (before > 0 && most < by.enough);
        match self.kept() {
            Some(form) => {
                if !keep {
                    *self.kept.write().unwrap_or_else(PoisonError::into_inner) = None;
                }
                form
            }
            // Made outside the lock: making it shares threads with tasks that may want it as well.
            None => {
                let form = Arc::new(make(keep));
                if keep {
                    let mut kept = self.kept.write().unwrap_or_else(PoisonError::into_inner);
                    return kept.get_or_insert(form).clone();
                }
                form
            }
        }
    }

    /// The form, if it is kept.
    pub(super) fn kept(&self) -> Option<Arc<T>> {
        self.kept.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The most uses before this call and with it. Calls at the same time may miss each other: it decides what is kept, not what is
    /// computed.
    fn note(&self, uses: usize) -> [usize; 2] {
        let before = self.most.load(Ordering::Relaxed) as usize;
        let most = uses.clamp(1, 1 << 24).max(before - before.div_ceil(16));
        self.most.store(most as u32, Ordering::Relaxed);
        [before, most]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(form: &Form<u8>, uses: usize, bytes: usize) -> bool {
        let mut made = false;
        form.get(Use { uses, enough: 64, bytes }, |_| {
            made = true;
            0
        });
        made
    }

    #[test]
    fn a_form_is_kept_while_its_uses_are_few() {
        let form = Form::default();
        assert!(made(&form, 10, 1 << 20), "a first call may be a trial");
        assert!(made(&form, 10, 1 << 20) && !made(&form, 10, 1 << 20), "kept");
        made(&form, 1000, 1 << 20);
        assert!(form.kept().is_none(), "let go once a call's uses are many");
        assert!(
            (0..9).all(|_| made(&form, 10, 1 << 20)),
            "a few small calls among large ones change nothing"
        );
        (0..60).for_each(|_| _ = made(&form, 10, 1 << 20));
        assert!(form.kept().is_some(), "many do");
        let small = Form::default();
        assert!(made(&small, 1000, 1000) && !made(&small, 1000, 1000), "a small form is kept");
    }
}
