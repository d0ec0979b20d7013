//! Deterministic splitting: a range of independent tasks, each writing its own part of the output.
//!
//! What a task computes may not depend on how the range was split, so results are the same bytes for any number of threads.
//! Calls nest: an inner call inside an outer task shares the same pool and never adds threads.

use std::ops::Range;

use rayon::prelude::*;

/// The number of threads a call from here would use.
pub fn threads() -> usize {
    rayon::current_num_threads()
}

/// Runs `task` for every index of `0..count`, on as many threads as the current pool has.
pub fn each(count: usize, task: impl Fn(usize) + Sync + Send) {
    if count <= 1 || threads() == 1 {
        (0..count).for_each(task);
    } else {
        (0..count).into_par_iter().with_max_len(1).for_each(task);
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
    let per_piece = count.div_ceil(pieces);
    out.par_chunks_mut(per_piece * row)
        .with_max_len(1)
        .enumerate()
        .for_each(|(i, part)| task(i * per_piece, part));
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
