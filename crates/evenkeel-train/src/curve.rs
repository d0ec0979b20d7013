//! The curves of a training run as a picture: loss on the left, score on held-out pictures on the right.

use crate::train::History;
use evenkeel::Image;

const PANEL: (usize, usize) = (220, 380);
const MARGIN: usize = 16;

/// Draws a history.
pub fn draw(history: &History) -> Image {
    let mut page = Image::filled(PANEL.0 + 2 * MARGIN, 2 * PANEL.1 + 3 * MARGIN, 1.0);
    let losses: Vec<(f64, f64)> = history.losses.iter().map(|&(step, loss)| (step as f64, loss)).collect();
    let scores: Vec<(f64, f64)> = history.scores.iter().map(|&(step, score)| (step as f64, score)).collect();
    let most = losses.iter().map(|p| p.1).fold(0.0, f64::max).max(1e-6);
    panel(&mut page, MARGIN, &losses, most, [0.80, 0.33, 0.19]);
    panel(&mut page, 2 * MARGIN + PANEL.1, &scores, 100.0, [0.10, 0.42, 0.62]);
    page
}

/// One curve over steps, from 0 to `most`, with lines at every quarter.
fn panel(page: &mut Image, left: usize, points: &[(f64, f64)], most: f64, colour: [f32; 3]) {
    for quarter in 0..5 {
        let y = (MARGIN + quarter * PANEL.0 / 4) as f64;
        line(page, (left as f64, y), ((left + PANEL.1) as f64, y), [0.86; 3]);
    }
    let last = points.last().map_or(1.0, |p| p.0).max(1.0);
    let place = |&(x, y): &(f64, f64)| {
        let across = left as f64 + x / last * PANEL.1 as f64;
        (across, MARGIN as f64 + (1.0 - (y / most).clamp(0.0, 1.0)) * PANEL.0 as f64)
    };
    for pair in points.windows(2) {
        let (a, b) = (place(&pair[0]), place(&pair[1]));
        line(page, a, b, colour);
        line(page, (a.0, a.1 + 1.0), (b.0, b.1 + 1.0), colour);
    }
}

fn line(page: &mut Image, a: (f64, f64), b: (f64, f64), colour: [f32; 3]) {
    let (height, width) = page.size();
    let steps = (b.0 - a.0).abs().max((b.1 - a.1).abs()).ceil().max(1.0) as usize;
    for k in 0..=steps {
        let t = k as f64 / steps as f64;
        let (x, y) = ((a.0 + t * (b.0 - a.0)) as usize, (a.1 + t * (b.1 - a.1)) as usize);
        if x < width && y < height {
            (0..3).for_each(|c| page.pixels_mut()[(c * height + y) * width + x] = colour[c]);
        }
    }
}
