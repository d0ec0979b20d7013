//! An answer as a picture, with what its colours mean: a legend of names and colours, a scale bar, or a caption.
//!
//! [`Painting::drawn`] writes these under the picture, for files; pages and other programs take them as they are.

use crate::image::{Image, TEXT_HEIGHT, draw_text, text_width};

/// A picture of an answer and what its colours mean.
#[derive(Clone, Debug, PartialEq)]
pub struct Painting {
    /// The picture, at the size of the image that was answered.
    pub image: Image,
    /// Names and colours, in the order of classes.
    pub legend: Vec<LegendEntry>,
    /// What the colours of values mean.
    pub scale: Option<ScaleBar>,
    /// The answer in words, where the picture does not show it.
    pub caption: Option<String>,
}

/// One line of a legend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LegendEntry {
    /// What has this colour.
    pub name: String,
    /// The colour.
    pub colour: [u8; 3],
}

/// The colours between two values.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaleBar {
    /// The value of the first colour.
    pub low: f32,
    /// The value of the last colour.
    pub high: f32,
    /// The unit of the values; empty if they have none.
    pub unit: String,
    /// The colours from the first to the last.
    pub colours: Vec<[u8; 3]>,
}

const MARGIN: usize = 4;
const LINE: usize = TEXT_HEIGHT + 4;
const SWATCH: usize = TEXT_HEIGHT;
const INK: [f32; 3] = [0.0; 3];

impl Painting {
    /// A picture that needs no words.
    pub fn of(image: Image) -> Self {
        Self { image, legend: Vec::new(), scale: None, caption: None }
    }

    /// The picture with its caption, legend and scale bar drawn under it, as a file holds it.
    pub fn drawn(&self) -> Image {
        let (height, width) = self.image.size();
        let entry_width = |entry: &LegendEntry| SWATCH + MARGIN + text_width(&entry.name) + 2 * MARGIN;
        let ends = self.scale.as_ref().map(ScaleBar::ends);
        let widest = self.legend.iter().map(entry_width).chain(self.caption.iter().map(|c| text_width(c)));
        let of_scale = ends.iter().map(|(low, high)| text_width(low) + text_width(high) + 2 * MARGIN);
        let wide = widest.chain(of_scale).max().map_or(0, |w| w + 2 * MARGIN).max(width);
        let mut places = Vec::new();
        let (mut row, mut left) = (0, MARGIN);
        for entry in &self.legend {
            if left + entry_width(entry) > wide && left > MARGIN {
                (row, left) = (row + 1, MARGIN);
            }
            places.push((row, left));
            left += entry_width(entry);
        }
        let captions = usize::from(self.caption.is_some());
        let legend_lines = places.last().map_or(0, |(row, _)| row + 1);
        let lines = captions + legend_lines + 2 * usize::from(self.scale.is_some());
        if lines == 0 {
            return self.image.clone();
        }
        let mut out = Image::filled(height + MARGIN + lines * LINE, wide, 1.0);
        let tall = out.height();
        for (channel, y) in (0..3).flat_map(|c| (0..height).map(move |y| (c, y))) {
            let line = &self.image.plane(channel)[y * width..][..width];
            out.pixels_mut()[(channel * tall + y) * wide..][..width].copy_from_slice(line);
        }
        let top = |line: usize| height + MARGIN + line * LINE;
        if let Some(caption) = &self.caption {
            draw_text(&mut out, caption, (top(0), MARGIN), INK);
        }
        for (entry, (row, left)) in self.legend.iter().zip(places) {
            let at = top(captions + row);
            fill(&mut out, (at, left), (SWATCH, SWATCH), entry.colour);
            draw_text(&mut out, &entry.name, (at, left + SWATCH + MARGIN), INK);
        }
        if let (Some(scale), Some((low, high))) = (&self.scale, ends) {
            let (at, across) = (top(captions + legend_lines), wide - 2 * MARGIN);
            for x in 0..across {
                let place = x * (scale.colours.len().max(1) - 1) / across.saturating_sub(1).max(1);
                let colour = scale.colours.get(place).copied().unwrap_or_default();
                fill(&mut out, (at, MARGIN + x), (SWATCH, 1), colour);
            }
            draw_text(&mut out, &low, (at + LINE, MARGIN), INK);
            draw_text(&mut out, &high, (at + LINE, wide - MARGIN - text_width(&high)), INK);
        }
        out
    }
}

impl ScaleBar {
    /// The two ends in words.
    pub fn ends(&self) -> (String, String) {
        let word = |value: f32| match self.unit.as_str() {
            "" => format!("{}", rounded(value)),
            unit => format!("{} {unit}", rounded(value)),
        };
        (word(self.low), word(self.high))
    }
}

/// Four significant digits.
fn rounded(value: f32) -> f32 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn fill(image: &mut Image, (top, left): (usize, usize), (rows, columns): (usize, usize), colour: [u8; 3]) {
    let (height, width) = image.size();
    for (y, x) in (top..top + rows).flat_map(|y| (left..left + columns).map(move |x| (y, x))) {
        if y < height && x < width {
            for (channel, value) in colour.iter().enumerate() {
                image.pixels_mut()[(channel * height + y) * width + x] = f32::from(*value) / 255.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The picture stays as it is, above; every colour of the legend is found below it.
    #[test]
    fn legends_stand_under_the_picture() {
        let image = Image::filled(20, 30, 0.25);
        assert_eq!(Painting::of(image.clone()).drawn(), image);
        let entry = |name: &str, colour| LegendEntry { name: name.into(), colour };
        let scale = ScaleBar { low: 0.0, high: 80.0, unit: "m".into(), colours: vec![[9, 8, 7], [5, 4, 3]] };
        let painting = Painting {
            legend: vec![entry("road", [255, 0, 0]), entry("a long class name", [0, 255, 0])],
            scale: Some(scale),
            caption: Some("car 97 %".into()),
            ..Painting::of(image.clone())
        };
        let drawn = painting.drawn();
        assert!(drawn.width() >= text_width("a long class name"));
        let bytes = drawn.to_rgb8();
        let colours = bytes.as_chunks::<3>().0;
        for colour in [[255, 0, 0], [0, 255, 0], [9, 8, 7], [5, 4, 3], [0, 0, 0]] {
            assert!(colours[20 * drawn.width()..].contains(&colour), "{colour:?}");
        }
        for (y, x) in (0..20).flat_map(|y| (0..30).map(move |x| (y, x))) {
            assert_eq!(drawn.plane(1)[y * drawn.width() + x], 0.25);
        }
        assert_eq!(painting.scale.unwrap().ends(), ("0 m".into(), "80 m".into()));
    }
}
