//! Polygons to masks, by the rule of the official COCO tools, bit for bit.
//!
//! The outline is traced on a grid five times finer. Wherever it passes from one fine column to the next at the centre
//! of a coarse column, the mask changes colour at that height; sorted, those crossings are the run boundaries.
//! Invariant: crossings that coincide cancel in pairs, so no run but the first is empty.

use super::{BoxXywh, Rle};
use crate::{Error, Result};

const FINE: f64 = 5.0;
/// Beyond this a coordinate is a slip of the file, not a place near the image.
const FARTHEST: f64 = 1e6;

impl Rle {
    /// Fills the polygon `x0 y0 x1 y1 …`; refuses fewer than three points, an odd count and coordinates that are not numbers.
    pub fn from_polygon(height: u32, width: u32, xy: &[f64]) -> Result<Self> {
        if xy.len() < 6 || !xy.len().is_multiple_of(2) {
            return Err(Error::Mask(format!(
                "a polygon needs an even count of 6 or more numbers, not {}",
                xy.len()
            )));
        }
        if let Some(wild) = xy.iter().find(|c| c.is_nan() || c.abs() > FARTHEST) {
            return Err(Error::Mask(format!("a polygon coordinate is {wild}")));
        }
        let mut boundary = Vec::new();
        let mut previous: Option<(i32, i32)> = None;
        trace_outline(xy, |u, v| {
            if let Some((pu, pv)) = previous.replace((u, v))
                && let Some(at) = crossing((pu, pv), (u, v), height, width)
            {
                boundary.push(at);
            }
        });
        boundary.push(height * width);
        boundary.sort_unstable();
        Self::from_counts(height, width, runs_between(&boundary))
    }

    /// Fills a box.
    pub fn from_box(height: u32, width: u32, [x, y, w, h]: BoxXywh) -> Result<Self> {
        Self::from_polygon(height, width, &[x, y, x, y + h, x + w, y + h, x + w, y])
    }
}

/// Visits every fine-grid point of the closed outline, edge by edge; each edge steps along its longer axis.
fn trace_outline(xy: &[f64], mut visit: impl FnMut(i32, i32)) {
    let points = xy.len() / 2;
    let fine = |k: usize| {
        let k = k % points;
        // Truncation, not floor: negative coordinates round towards zero in the official tool.
        ((FINE * xy[2 * k] + 0.5) as i32, (FINE * xy[2 * k + 1] + 0.5) as i32)
    };
    for k in 0..points {
        let ((xs, ys), (xe, ye)) = (fine(k), fine(k + 1));
        let (dx, dy) = ((xe - xs).abs(), (ye - ys).abs());
        let wide = dx >= dy;
        let back = if wide { xs > xe } else { ys > ye };
        let ((xs, ys), (xe, ye)) = if back { ((xe, ye), (xs, ys)) } else { ((xs, ys), (xe, ye)) };
        let length = dx.max(dy);
        let slope = if wide { f64::from(ye - ys) } else { f64::from(xe - xs) } / f64::from(length);
        for d in 0..=length {
            let t = if back { length - d } else { d };
            let beside = |start: i32| (f64::from(start) + slope * f64::from(t) + 0.5) as i32;
            if wide { visit(t + xs, beside(ys)) } else { visit(beside(xs), t + ys) }
        }
    }
}

/// The column-major pixel where the mask changes colour, if the step passes the centre of a column inside the image.
fn crossing(from: (i32, i32), to: (i32, i32), height: u32, width: u32) -> Option<u32> {
    if from.0 == to.0 {
        return None;
    }
    let coarse = |fine: i32| (f64::from(fine) + 0.5) / FINE - 0.5;
    let x = coarse(if to.0 < from.0 { to.0 } else { to.0 - 1 });
    if x.floor() != x || x < 0.0 || x > f64::from(width) - 1.0 {
        return None;
    }
    let y = coarse(to.1.min(from.1)).clamp(0.0, f64::from(height)).ceil();
    Some(x as u32 * height + y as u32)
}

/// Differences of the sorted boundary; a zero difference is a pair that cancels, so the next run joins the last.
fn runs_between(boundary: &[u32]) -> Vec<u32> {
    let mut runs = vec![boundary[0]];
    let mut steps = boundary.windows(2).map(|pair| pair[1] - pair[0]);
    while let Some(step) = steps.next() {
        match (step, runs.last_mut()) {
            (0, Some(last)) => *last += steps.next().unwrap_or(0),
            _ => runs.push(step),
        }
    }
    runs
}
