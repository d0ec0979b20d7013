//! A slab: one mapping from the system, cut into blocks and grown together again.
//!
//! Blocks are taken from the lowest free address that fits, so that what was just freed, and is still in cache, is what is used
//! next, and so that a slab is touched no further than its fullest moment needed. A slab is aligned to large pages and asks for
//! them: a walk through a network touches all its weights once, and would otherwise wait for a page table entry every 4 KB.

use memmap2::MmapMut;

use super::ALIGN;

/// The size of a large page.
const LARGE: usize = 2 << 20;

/// A run of bytes of a slab.
#[derive(Clone, Copy, Debug)]
struct Span {
    start: usize,
    len: usize,
}

/// One mapping and the free spans of it, in order and never touching.
pub(super) struct Slab {
    _mapping: MmapMut,
    base: *mut u8,
    len: usize,
    free: Vec<Span>,
}

// SAFETY: a slab owns its mapping; blocks of it are handed out once at a time.
unsafe impl Send for Slab {}

impl Slab {
    /// A slab of at least `bytes`, zeroed; nothing if the system has no room.
    pub(super) fn new(bytes: usize) -> Option<Slab> {
        let len = bytes.checked_next_multiple_of(LARGE)?;
        let mut mapping = MmapMut::map_anon(len.checked_add(LARGE)?).ok()?;
        let base = mapping.as_mut_ptr();
        let base = base.wrapping_add(base.align_offset(LARGE));
        #[cfg(target_os = "linux")]
        let _ = mapping.advise(memmap2::Advice::HugePage); // a kernel without large pages serves as well, only slower
        Some(Slab { _mapping: mapping, base, len, free: vec![Span { start: 0, len }] })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_idle(&self) -> bool {
        self.free.first().is_some_and(|span| span.len == self.len)
    }

    pub(super) fn contains(&self, start: *mut u8) -> bool {
        (self.base.addr()..self.base.addr() + self.len).contains(&start.addr())
    }

    /// A block of `bytes`, a multiple of the alignment.
    pub(super) fn take(&mut self, bytes: usize) -> Option<*mut u8> {
        debug_assert!(bytes.is_multiple_of(ALIGN));
        let i = self.free.iter().position(|span| span.len >= bytes)?;
        let span = &mut self.free[i];
        let start = self.base.wrapping_add(span.start);
        *span = Span { start: span.start + bytes, len: span.len - bytes };
        if span.len == 0 {
            self.free.remove(i);
        }
        Some(start)
    }

    /// Takes a block back.
    pub(super) fn give_back(&mut self, start: *mut u8, bytes: usize) {
        let mut span = Span { start: start.addr() - self.base.addr(), len: bytes };
        let mut i = self.free.partition_point(|other| other.start < span.start);
        if i < self.free.len() && span.start + span.len == self.free[i].start {
            span.len += self.free.remove(i).len;
        }
        if i > 0 && self.free[i - 1].start + self.free[i - 1].len == span.start {
            i -= 1;
            span = Span { start: self.free[i].start, len: self.free[i].len + span.len };
            self.free.remove(i);
        }
        self.free.insert(i, span);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn freed_spans_grow_together_in_any_order() {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut slab = Slab::new(1).unwrap();
            assert_eq!(slab.base.addr() % LARGE, 0);
            let third = slab.len() / 4;
            let blocks = [0; 3].map(|_| slab.take(third).unwrap());
            assert!(slab.take(2 * third).is_none() && !slab.is_idle());
            order.iter().for_each(|&i: &usize| slab.give_back(blocks[i], third));
            assert!(slab.is_idle(), "{order:?}");
        }
    }

    #[test]
    fn the_lowest_fitting_span_is_used() {
        let mut slab = Slab::new(1).unwrap();
        let blocks = [0; 4].map(|_| slab.take(1024).unwrap());
        slab.give_back(blocks[2], 1024);
        slab.give_back(blocks[0], 1024);
        assert_eq!(slab.take(512), Some(blocks[0]));
        assert_eq!(slab.take(1024), Some(blocks[2]));
    }
}
