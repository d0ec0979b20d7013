//! Deterministic splitting: a range of independent tasks, each writing its own part of the output.
//!
//! What a task computes may not depend on how the range was split, so results are the same bytes for any number of threads.
//! Calls nest: an inner call inside an outer task shares the same threads and never adds any. Inside [`together`] calls go to the
//! group it gathered; elsewhere to the thread pool, which is slower to start.

mod affinity;
mod workers;

use std::ops::Range;

use rayon::prelude::*;

use crate::disjoint::Disjoint;
use workers::Place;
pub use workers::together;

/// The number of threads a call from here would use.
pub fn threads() -> usize {
    match workers::place() {
        Place::Piece => 1,
        _ => rayon::current_num_threads(),
    }
}

/// Runs `task` for every index of `0..count`, on as many threads as there are.
pub fn each(count: usize, task: impl Fn(usize) + Sync + Send) {
    each_of(count, &task);
}

/// [`each`], compiled once.
fn each_of(count: usize, task: &(dyn Fn(usize) + Sync + Send)) {
    if count <= 1 || threads() == 1 {
        return (0..count).for_each(task);
    }
    match workers::place() {
        // SAFETY: a leader's slot outlives the time it leads.
        Place::Leading(slot) => unsafe { &*slot }.lead(count, task),
        _ => (0..count).into_par_iter().with_max_len(1).for_each(task),
    }
}

/// Splits `0..count` into ranges of at least `grain` items and runs `task` on each.
pub fn ranges(count: usize, grain: usize, task: impl Fn(Range<usize>) + Sync + Send) {
    let pieces = (count / grain.max(1)).clamp(1, 4 * threads());
    if count == 0 {
        return;
    }
    each(pieces, |i| task(i * count / pieces..(i + 1) * count / pieces));
}

/// Splits `out` into consecutive rows of `row` elements and runs `task(first_row, rows)` on runs of at least `grain` rows.
///
/// # Panics
/// If `out` is not empty and `row` is zero or does not divide its length.
pub fn rows<T: Send>(out: &mut [T], row: usize, grain: usize, task: impl Fn(usize, &mut [T]) + Sync + Send) {
    rows_of(out, row, grain, &task);
}

/// [`rows`], compiled once a type instead of once a task.
fn rows_of<T: Send>(out: &mut [T], row: usize, grain: usize, task: &(dyn Fn(usize, &mut [T]) + Sync + Send)) {
    if out.is_empty() {
        return;
    }
    assert!(row > 0 && out.len().is_multiple_of(row), "{} elements are not rows of {row}", out.len());
    let count = out.len() / row;
    let pieces = (count / grain.max(1)).clamp(1, 4 * threads());
    if pieces == 1 || threads() == 1 {
        return task(0, out);
    }
    let per_piece = count.div_ceil(pieces) * row;
    let len = out.len();
    let out = Disjoint::new(out);
    each_of(len.div_ceil(per_piece), &|i| {
        let part = i * per_piece..len.min((i + 1) * per_piece);
        // SAFETY: pieces are consecutive and do not overlap.
        task(i * per_piece / row, unsafe { out.part(part) });
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn every_index_is_visited_once() {
        for count in [0, 1, 2, 7, 64, 1000] {
            let seen: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(0)).collect();
            ranges(count, 3, |range| {
                for i in range {
                    seen[i].fetch_add(1, Ordering::Relaxed);
                }
            });
            assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 1), "{count}");
        }
    }

    #[test]
    fn a_worker_group_visits_every_index_once() {
        for threads in [1, 2, 3, 5] {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            for count in [0, 1, 2, 7, 64, 1000] {
                let seen: Vec<AtomicU32> = (0..count).map(|_| AtomicU32::new(0)).collect();
                let visit = |i: usize| {
                    seen[i].fetch_add(1, Ordering::Relaxed);
                };
                pool.install(|| together(|| (0..50).for_each(|_| each(count, visit))));
                assert!(seen.iter().all(|n| n.load(Ordering::Relaxed) == 50), "{count} on {threads}");
            }
        }
    }

    #[test]
    fn worker_groups_work_side_by_side_and_calls_in_a_piece_stay_on_its_thread() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let total = AtomicU32::new(0);
        pool.install(|| {
            (0..8usize).into_par_iter().for_each(|_| {
                together(|| {
                    for _ in 0..100 {
                        each(5, |_| {
                            assert_eq!(threads(), 1);
                            each(3, |_| {
                                total.fetch_add(1, Ordering::Relaxed);
                            });
                        });
                    }
                });
            });
        });
        assert_eq!(total.into_inner(), 8 * 100 * 15);
    }

    #[test]
    fn a_panic_in_a_piece_reaches_the_caller_and_the_pool_goes_on() {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
        let attempt = || pool.install(|| together(|| each(64, |i| assert_ne!(i, 40, "piece forty"))));
        let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(attempt)).unwrap_err();
        assert!(panic.downcast_ref::<String>().is_some_and(|text| text.contains("piece forty")));
        assert_eq!(pool.install(|| together(threads)), 2);
    }

    #[test]
    fn rows_know_their_first_index() {
        let mut out = vec![0usize; 3 * 101];
        rows(&mut out, 3, 2, |first, part| {
            for (i, row) in part.chunks_mut(3).enumerate() {
                row.fill(first + i);
            }
        });
        assert!(out.chunks(3).enumerate().all(|(i, row)| row == [i; 3]));
    }
}
