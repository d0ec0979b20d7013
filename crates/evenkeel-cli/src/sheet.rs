//! Pictures with captions on one sheet that fits a screen: what `inspect-views` writes.

use anyhow::Result;
use evenkeel::image::{Image, TEXT_HEIGHT, draw_text, text_width};

const GAP: usize = 6;
const LINE: usize = TEXT_HEIGHT + 3;
/// The largest sheet: what a common screen shows.
const SCREEN: (usize, usize) = (1080, 1880);

/// Pictures side by side under lines of words.
pub(crate) struct Strip {
    /// The words.
    pub(crate) lines: Vec<String>,
    /// The pictures.
    pub(crate) pictures: Vec<Image>,
}

/// How strips are laid out: this many beside each other, their pictures in boxes of (height, width).
struct Layout {
    columns: usize,
    cell: (usize, usize),
    strip: (usize, usize),
}

impl Layout {
    /// The layout with the largest pictures that fits the screen.
    fn of(strips: &[Strip], (h, w): (usize, usize)) -> Self {
        let pictures = strips.iter().map(|strip| strip.pictures.len()).max().unwrap_or(1).max(1);
        let lines = strips.iter().map(|strip| strip.lines.len()).max().unwrap_or(0) * LINE;
        let fit = |columns: usize| {
            let rows = strips.len().div_ceil(columns).max(1);
            let tall = (SCREEN.0 / rows).saturating_sub(lines + 2 * GAP) as f64 / h as f64;
            let wide = (SCREEN.1 / (columns * pictures)).saturating_sub(GAP) as f64 / w as f64;
            tall.min(wide)
        };
        let columns = (1..=strips.len().max(1)).max_by(|a, b| fit(*a).total_cmp(&fit(*b))).unwrap_or(1);
        // small pictures are enlarged, so that words beside them can be read
        let scale = fit(columns).clamp(0.02, 4.0);
        let cell = ((h as f64 * scale).max(8.0) as usize, (w as f64 * scale).max(8.0) as usize);
        let words =
            strips.iter().flat_map(|strip| &strip.lines).map(|line| text_width(line)).max().unwrap_or(0);
        let room = SCREEN.1 / columns - GAP;
        let width = (pictures * (cell.1 + GAP)).max(words.min(room));
        Self { columns, cell, strip: (lines + cell.0 + 2 * GAP, width + GAP) }
    }
}

/// The sheet of these strips, whose pictures are made for images of this (height, width).
pub(crate) fn sheet(strips: &[Strip], size: (usize, usize)) -> Result<Image> {
    let layout = Layout::of(strips, size);
    let rows = strips.len().div_ceil(layout.columns);
    let mut out = Image::filled(rows * layout.strip.0 + GAP, layout.columns * layout.strip.1 + GAP, 1.0);
    for (place, strip) in strips.iter().enumerate() {
        let top = GAP + place / layout.columns * layout.strip.0;
        let left = GAP + place % layout.columns * layout.strip.1;
        for (k, line) in strip.lines.iter().enumerate() {
            let most = (layout.strip.1 - GAP) / 8;
            let shown: String = line.chars().take(most).collect();
            draw_text(&mut out, &shown, (top + k * LINE, left), [0.0; 3]);
        }
        for (k, picture) in strip.pictures.iter().enumerate() {
            let at = (top + strip.lines.len() * LINE, left + k * (layout.cell.1 + GAP));
            paste(&mut out, picture, at, layout.cell);
        }
    }
    Ok(out)
}

/// Puts a picture into a box without changing its proportions.
fn paste(out: &mut Image, picture: &Image, (top, left): (usize, usize), cell: (usize, usize)) {
    let ((h, w), (height, width)) = (picture.size(), out.size());
    let fit = (cell.0 as f64 / h as f64).min(cell.1 as f64 / w as f64);
    let (ph, pw) = (((h as f64 * fit) as usize).max(1), ((w as f64 * fit) as usize).max(1));
    for i in 0..3 * ph * pw {
        let (channel, y, x) = (i / (ph * pw), i / pw % ph, i % pw);
        if top + y < height && left + x < width {
            out.pixels_mut()[(channel * height + top + y) * width + left + x] =
                picture.plane(channel)[(y * h / ph) * w + x * w / pw];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sheets_fit_a_screen_and_words_stand_above_pictures() {
        for (size, pictures) in [((256, 512), 4), ((32, 32), 1), ((640, 640), 2), ((1000, 300), 4)] {
            let strip = |k: usize| Strip {
                lines: vec![format!("view {k}: turned by 7 degrees"), "says road 45 %".into()],
                pictures: vec![Image::filled(size.0, size.1, 0.5); pictures],
            };
            let strips: Vec<Strip> = (0..9).map(strip).collect();
            let (h, w) = sheet(&strips, size).unwrap().size();
            assert!(h <= 1200 && w <= 1920, "{size:?}: {w}x{h}");
        }
    }
}
