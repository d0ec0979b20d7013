//! The curves of a training run as a picture: loss on the left, the figure on held-out pictures on the right.

use crate::train::History;
use evenkeel::Image;
use font8x8::legacy::BASIC_LEGACY;

/// Height and width of a panel, and the room on its left, above and below for numbers.
const PANEL: (usize, usize) = (220, 360);
const LEFT: usize = 52;
const ABOVE: usize = 28;
const BELOW: usize = 24;
const RIGHT: usize = 20;
/// Side of a letter.
const LETTER: usize = 8;
const INK: [f32; 3] = [0.35; 3];

/// Draws a history; `figure` is the name of its scores.
pub fn draw(history: &History, figure: &str) -> Image {
    let mut page = Image::filled(ABOVE + PANEL.0 + BELOW, 2 * (LEFT + PANEL.1 + RIGHT), 1.0);
    let losses: Vec<(f64, f64)> = history.losses.iter().map(|&(step, loss)| (step as f64, loss)).collect();
    let scores: Vec<(f64, f64)> = history.scores.iter().map(|&(step, score)| (step as f64, score)).collect();
    let most = losses.iter().map(|p| p.1).fold(0.0, f64::max).max(1e-6);
    panel(&mut page, LEFT, "loss", &losses, most, [0.80, 0.33, 0.19]);
    let title = format!("{figure}, held-out pictures, %");
    panel(&mut page, 2 * LEFT + PANEL.1 + RIGHT, &title, &scores, 100.0, [0.10, 0.42, 0.62]);
    page
}

/// One curve over steps, from 0 to `most`, with lines at every quarter.
fn panel(page: &mut Image, left: usize, title: &str, points: &[(f64, f64)], most: f64, colour: [f32; 3]) {
    text(page, (left, LETTER / 2), title, INK);
    for quarter in 0..5 {
        let y = ABOVE + quarter * PANEL.0 / 4;
        line(page, (left as f64, y as f64), ((left + PANEL.1) as f64, y as f64), [0.86; 3]);
        let value = format!("{:.3}", most * (4 - quarter) as f64 / 4.0);
        let value = &value[..value.len().min(5)];
        text(page, (left - (value.len() + 1) * LETTER, y - LETTER / 2), value, INK);
    }
    let last = points.last().map_or(1.0, |p| p.0).max(1.0);
    let bottom = ABOVE + PANEL.0 + LETTER;
    let end = format!("{last} steps");
    text(page, (left, bottom), "0", INK);
    text(page, (left + PANEL.1 - end.len() * LETTER, bottom), &end, INK);
    let place = |&(x, y): &(f64, f64)| {
        let across = left as f64 + x / last * PANEL.1 as f64;
        (across, ABOVE as f64 + (1.0 - (y / most).clamp(0.0, 1.0)) * PANEL.0 as f64)
    };
    for pair in points.windows(2) {
        let (a, b) = (place(&pair[0]), place(&pair[1]));
        line(page, a, b, colour);
        line(page, (a.0, a.1 + 1.0), (b.0, b.1 + 1.0), colour);
    }
    if let Some(point) = points.last() {
        let value = format!("{:.2}", point.1);
        let (x, y) = place(point);
        let at = (x as usize - value.len() * LETTER, (y as usize).saturating_sub(2 * LETTER));
        text(page, at, &value, colour);
    }
}

fn line(page: &mut Image, a: (f64, f64), b: (f64, f64), colour: [f32; 3]) {
    let steps = (b.0 - a.0).abs().max((b.1 - a.1).abs()).ceil().max(1.0) as usize;
    for k in 0..=steps {
        let t = k as f64 / steps as f64;
        dot(page, ((a.0 + t * (b.0 - a.0)) as usize, (a.1 + t * (b.1 - a.1)) as usize), colour);
    }
}

/// Writes ASCII from the upper left corner `(x, y)` on.
fn text(page: &mut Image, (x, y): (usize, usize), words: &str, colour: [f32; 3]) {
    for (i, letter) in words.bytes().enumerate() {
        let rows = BASIC_LEGACY.get(usize::from(letter)).copied().unwrap_or_default();
        for (down, row) in rows.iter().enumerate() {
            for across in (0..LETTER).filter(|bit| row >> bit & 1 == 1) {
                dot(page, (x + i * LETTER + across, y + down), colour);
            }
        }
    }
}

fn dot(page: &mut Image, (x, y): (usize, usize), colour: [f32; 3]) {
    let (height, width) = page.size();
    if x < width && y < height {
        (0..3).for_each(|c| page.pixels_mut()[(c * height + y) * width + x] = colour[c]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where a colour was used: the first and last row and column.
    fn bounds(page: &Image, colour: [f32; 3]) -> Option<[usize; 4]> {
        let (height, width) = page.size();
        let is =
            |y: usize, x: usize| (0..3).all(|c| page.pixels()[(c * height + y) * width + x] == colour[c]);
        let rows = || (0..height).filter(|&y| (0..width).any(|x| is(y, x)));
        let columns = || (0..width).filter(|&x| (0..height).any(|y| is(y, x)));
        Some([rows().next()?, rows().next_back()?, columns().next()?, columns().next_back()?])
    }

    #[test]
    fn a_short_history_has_its_curves_and_its_numbers() {
        let history = History {
            step: 20,
            losses: vec![(10, 2.0), (20, 1.0)],
            scores: vec![(20, 100.0)],
            ..History::default()
        };
        let page = draw(&history, "mIoU");
        let [top, bottom, left, right] = bounds(&page, INK).expect("numbers");
        assert!(top < ABOVE && bottom > ABOVE + PANEL.0, "titles above, steps below: {top}..{bottom}");
        assert!(left < LEFT && right > LEFT + PANEL.1, "numbers beside both panels: {left}..{right}");
        let loss = bounds(&page, [0.80, 0.33, 0.19]).expect("the loss");
        assert_eq!([loss[0], loss[2], loss[3]], [ABOVE, LEFT + PANEL.1 / 2, LEFT + PANEL.1]);
        bounds(&page, [0.10, 0.42, 0.62]).expect("the last score");
    }

    #[test]
    fn no_history_is_an_empty_page_with_axes() {
        assert!(bounds(&draw(&History::default(), "accuracy"), INK).is_some());
    }
}
