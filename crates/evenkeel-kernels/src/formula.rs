//! A caller's formula applied to every element, split over threads and compiled for wide vectors.
//!
//! The functions take closures so that an operator states its formula and nothing else. A closure sees one element; what it
//! gives cannot depend on how the slice was split.

use crate::parallel;
use crate::vectorised::vectorised;

/// Elements below which splitting costs more than it gains.
const GRAIN: usize = 1 << 15;

vectorised! {
    /// Runs `task`, compiled for the widest vectors this machine has where it is inlined.
    pub fn wide<F: FnOnce()>(task: F) {
        task()
    }
}

/// `x = f(x)` for every element.
pub fn map_in_place<T: Copy + Send>(values: &mut [T], f: impl Fn(T) -> T + Sync + Send) {
    parallel::rows(values, 1, GRAIN, |_, part| {
        wide(
            #[inline(always)]
            || part.iter_mut().for_each(|v| *v = f(*v)),
        );
    });
}

/// `out = f(x)` for every element.
///
/// # Panics
/// If the lengths differ.
pub fn map<T: Copy + Sync, R: Send>(x: &[T], out: &mut [R], f: impl Fn(T) -> R + Sync + Send) {
    assert_eq!(x.len(), out.len());
    parallel::rows(out, 1, GRAIN, |first, part| {
        let x = &x[first..first + part.len()];
        wide(
            #[inline(always)]
            || part.iter_mut().zip(x).for_each(|(out, &x)| *out = f(x)),
        );
    });
}

/// `a = f(a, b)` for every pair.
///
/// # Panics
/// If the lengths differ.
pub fn zip_in_place<T: Copy + Send, U: Copy + Sync>(
    a: &mut [T],
    b: &[U],
    f: impl Fn(T, U) -> T + Sync + Send,
) {
    assert_eq!(a.len(), b.len());
    parallel::rows(a, 1, GRAIN, |first, part| {
        let b = &b[first..first + part.len()];
        wide(
            #[inline(always)]
            || part.iter_mut().zip(b).for_each(|(a, &b)| *a = f(*a, b)),
        );
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_is_met_once_whatever_the_split() {
        let len = 3 * GRAIN + 5;
        let x: Vec<f32> = (0..len).map(|i| i as f32).collect();
        let mut out = vec![0.0; len];
        zip_in_place(&mut out, &x, |y, x| y - x);
        map_in_place(&mut out, |y| -y);
        assert_eq!(out, x);
        let mut whole = vec![0i64; len];
        map(&x, &mut whole, |x| x as i64);
        assert!(whole.iter().enumerate().all(|(i, &v)| v == i as i64));
    }
}
