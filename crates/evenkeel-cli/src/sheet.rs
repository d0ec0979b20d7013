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
    fn of(strips: &[Strip], captions: &[Vec<String>], (h, w): (usize, usize)) -> Self {
        let pictures = strips.iter().map(|strip| strip.pictures.len()).max().unwrap_or(1).max(1);
        let lines = captions.iter().map(Vec::len).max().unwrap_or(0) * LINE;
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
        let words = captions.iter().flatten().map(|line| text_width(line)).max().unwrap_or(0);
        let room = SCREEN.1 / columns - GAP;
        let width = (pictures * (cell.1 + GAP)).max(words.min(room));
        Self { columns, cell, strip: (lines + cell.0 + 2 * GAP, width + GAP) }
    }

    /// How many letters a line of words has room for.
    fn letters(&self) -> usize {
        (self.strip.1 - GAP) / text_width("m")
    }
}

/// The words of a line in lines of at most the given number of letters.
fn wrapped(line: &str, letters: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let last = lines
            .last_mut()
            .filter(|last| last.is_empty() || last.chars().count() + 1 + word.chars().count() <= letters);
        match last {
            Some(last) if last.is_empty() => last.push_str(word),
            Some(last) => *last += &format!(" {word}"),
            None => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The sheet of these strips, whose pictures are made for images of this (height, width).
pub(crate) fn sheet(strips: &[Strip], size: (usize, usize)) -> Result<Image> {
    let mut captions: Vec<Vec<String>> = strips.iter().map(|strip| strip.lines.clone()).collect();
    let mut layout = Layout::of(strips, &captions, size);
    // more lines make pictures smaller, and so the room for words
    for _ in 0..4 {
        let fold =
            |strip: &Strip| strip.lines.iter().flat_map(|line| wrapped(line, layout.letters())).collect();
        captions = strips.iter().map(fold).collect();
        layout = Layout::of(strips, &captions, size);
    }
    let lines = captions.iter().map(Vec::len).max().unwrap_or(0);
    let rows = strips.len().div_ceil(layout.columns);
    let mut out = Image::filled(rows * layout.strip.0 + GAP, layout.columns * layout.strip.1 + GAP, 1.0);
    for (place, strip) in strips.iter().enumerate() {
        let top = GAP + place / layout.columns * layout.strip.0;
        let left = GAP + place % layout.columns * layout.strip.1;
        for (k, line) in captions[place].iter().enumerate() {
            let shown: String = line.chars().take(layout.letters()).collect();
            draw_text(&mut out, &shown, (top + k * LINE, left), [0.0; 3]);
        }
        for (k, picture) in strip.pictures.iter().enumerate() {
            let at = (top + lines * LINE, left + k * (layout.cell.1 + GAP));
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

    #[test]
    fn long_captions_go_on_in_the_next_line() {
        let caption = "view 7: colour, brightness x1.55, contrast x1.77; resize, height x1.00";
        let lines = wrapped(caption, 30);
        assert!(lines.len() == 3 && lines.iter().all(|line| line.len() <= 30), "{lines:?}");
        assert_eq!(lines.join(" "), caption);
        assert_eq!(wrapped("unbreakable", 4), ["unbreakable"]);
    }
}
