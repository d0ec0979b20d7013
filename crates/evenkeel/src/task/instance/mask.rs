//! The mask of one object: which pixels of the image belong to it, kept inside the smallest window that is needed.
//!
//! A pixel outside the window is outside the mask. Areas and overlaps are counted in whole pixels, so they are exact.

use crate::error::{Error, Result};

/// A binary mask on an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mask {
    size: (usize, usize),
    origin: (usize, usize),
    window: (usize, usize),
    inside: Vec<bool>,
}

impl Mask {
    /// A mask on an image of `size` that is `inside` within a window of `window` (rows, columns) at `origin`, row by row.
    ///
    /// # Errors
    /// If the window reaches beyond the image or the values do not fill it.
    pub fn new(
        size: (usize, usize),
        origin: (usize, usize),
        window: (usize, usize),
        inside: Vec<bool>,
    ) -> Result<Self> {
        let fits = origin.0.saturating_add(window.0) <= size.0 && origin.1.saturating_add(window.1) <= size.1;
        if !fits || window.0.saturating_mul(window.1) != inside.len() {
            let got = format!("{} values for a window of {window:?} at {origin:?}", inside.len());
            return Err(Error::mismatch("mask", format!("a filled window within {size:?}"), got));
        }
        Ok(Self { size, origin, window, inside })
    }

    /// A mask from a value per pixel of the whole image, trimmed to what is inside.
    ///
    /// # Errors
    /// If the number of values is not that of the pixels.
    pub fn from_full(size: (usize, usize), inside: &[bool]) -> Result<Self> {
        if inside.len() != size.0 * size.1 {
            return Err(Error::mismatch("values of a mask", size.0 * size.1, inside.len()));
        }
        let rows: Vec<usize> =
            (0..size.0).filter(|y| inside[y * size.1..][..size.1].contains(&true)).collect();
        let (Some(&top), Some(&bottom)) = (rows.first(), rows.last()) else {
            return Self::new(size, (0, 0), (0, 0), Vec::new());
        };
        let lines = || rows.iter().map(|y| &inside[y * size.1..][..size.1]);
        let left = lines().filter_map(|line| line.iter().position(|i| *i)).min().unwrap_or(0);
        let right = lines().filter_map(|line| line.iter().rposition(|i| *i)).max().unwrap_or(0);
        let window = (bottom + 1 - top, right + 1 - left);
        let cut = (top..=bottom).flat_map(|y| inside[y * size.1 + left..][..window.1].iter().copied());
        Self::new(size, (top, left), window, cut.collect())
    }

    /// (height, width) of the image it is on.
    pub fn size(&self) -> (usize, usize) {
        self.size
    }

    /// The window's upper left corner and its size, both (rows, columns).
    pub fn window(&self) -> ((usize, usize), (usize, usize)) {
        (self.origin, self.window)
    }

    /// Whether a pixel is inside.
    pub fn contains(&self, y: usize, x: usize) -> bool {
        let within = y >= self.origin.0 && x >= self.origin.1;
        let (row, column) = (y.wrapping_sub(self.origin.0), x.wrapping_sub(self.origin.1));
        within && row < self.window.0 && column < self.window.1 && self.inside[row * self.window.1 + column]
    }

    /// Pixels inside.
    pub fn area(&self) -> usize {
        self.inside.iter().filter(|inside| **inside).count()
    }

    /// A value per pixel of the whole image, row by row.
    pub fn to_full(&self) -> Vec<bool> {
        let mut full = vec![false; self.size.0 * self.size.1];
        for row in 0..self.window.0 {
            let line = &self.inside[row * self.window.1..][..self.window.1];
            full[(self.origin.0 + row) * self.size.1 + self.origin.1..][..self.window.1]
                .copy_from_slice(line);
        }
        full
    }

    /// Pixels inside both.
    pub fn shared(&self, other: &Self) -> usize {
        let rows = span(self.origin.0, self.window.0, other.origin.0, other.window.0);
        let columns = span(self.origin.1, self.window.1, other.origin.1, other.window.1);
        let line = |mask: &Self, y: usize| -> usize { (y - mask.origin.0) * mask.window.1 };
        rows.map(|y| {
            let (a, b) = (line(self, y), line(other, y));
            let both = |x: &usize| self.inside[a + x - self.origin.1] && other.inside[b + x - other.origin.1];
            columns.clone().filter(both).count()
        })
        .sum()
    }

    /// Intersection over union; 0 for two empty masks.
    pub fn iou(&self, other: &Self) -> f64 {
        let shared = self.shared(other);
        match self.area() + other.area() - shared {
            0 => 0.0,
            union => shared as f64 / union as f64,
        }
    }

    /// The mask on another grid whose row y shows row `rows[y]` of this one (`None`: nothing), and columns likewise.
    pub fn on_grid(&self, rows: &[Option<usize>], columns: &[Option<usize>]) -> Self {
        let wanted = |places: &[Option<usize>], start: usize, length: usize| {
            let seen = |place: &Option<usize>| place.is_some_and(|p| (start..start + length).contains(&p));
            let first = places.iter().position(seen).unwrap_or(0);
            first..places.iter().rposition(seen).map_or(first, |last| last + 1)
        };
        let down = wanted(rows, self.origin.0, self.window.0);
        let across = wanted(columns, self.origin.1, self.window.1);
        let inside = down.clone().flat_map(|y| across.clone().map(move |x| (y, x))).map(
            |(y, x)| matches!((rows[y], columns[x]), (Some(row), Some(column)) if self.contains(row, column)),
        );
        Self {
            size: (rows.len(), columns.len()),
            origin: (down.start, across.start),
            window: (down.len(), across.len()),
            inside: inside.collect(),
        }
    }
}

fn span(a: usize, a_length: usize, b: usize, b_length: usize) -> std::ops::Range<usize> {
    let start = a.max(b);
    start..(a + a_length).min(b + b_length).max(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_change_nothing_that_is_counted() {
        let at = |list: &[(usize, usize)]| {
            let mut full = vec![false; 6 * 7];
            list.iter().for_each(|(y, x)| full[y * 7 + x] = true);
            full
        };
        let (a, b) = (at(&[(1, 2), (1, 3), (2, 2), (4, 5)]), at(&[(1, 3), (2, 2), (5, 6)]));
        let masks = [&a, &b].map(|full| Mask::from_full((6, 7), full).unwrap());
        assert_eq!(masks[0].window(), ((1, 2), (4, 4)));
        assert_eq!((masks[0].to_full(), masks[1].to_full()), (a, b));
        assert_eq!((masks[0].area(), masks[1].area(), masks[0].shared(&masks[1])), (4, 3, 2));
        assert_eq!(masks[1].iou(&masks[0]), 2.0 / 5.0);
        let empty = Mask::from_full((6, 7), &[false; 42]).unwrap();
        assert_eq!((empty.area(), empty.iou(&empty), empty.shared(&masks[0])), (0, 0.0, 0));
        assert!(Mask::from_full((6, 7), &[false; 41]).is_err());
        assert!(Mask::new((6, 7), (5, 5), (2, 2), vec![true; 4]).is_err());
    }

    #[test]
    fn a_grid_shows_the_rows_and_columns_it_names() {
        let full: Vec<bool> = (0..16).map(|i| i == 5 || i == 6).collect();
        let mask = Mask::from_full((4, 4), &full).unwrap();
        let doubled: Vec<Option<usize>> = (0..8).map(|i| Some(i / 2)).collect();
        let mut padded = doubled.clone();
        padded[2] = None;
        let big = mask.on_grid(&padded, &doubled);
        assert_eq!((big.size(), big.area()), ((8, 8), 4));
        assert!(big.contains(3, 2) && big.contains(3, 5) && !big.contains(2, 2) && !big.contains(7, 7));
    }
}
