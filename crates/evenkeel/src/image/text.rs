//! Words on pictures: a fixed font of 8x8 pixels for legends and captions.
//!
//! A character the font does not have is drawn as `?`. What lies beyond the picture is left out.

use font8x8::legacy::{BASIC_LEGACY, LATIN_LEGACY};

use super::Image;

/// Pixels down of a line of text.
pub const TEXT_HEIGHT: usize = 8;

/// Pixels across of a text.
pub fn text_width(text: &str) -> usize {
    8 * text.chars().count()
}

/// Draws a line of text with its upper left corner at (row, column).
pub fn draw_text(image: &mut Image, text: &str, (top, left): (usize, usize), colour: [f32; 3]) {
    let (height, width) = image.size();
    for (k, character) in text.chars().enumerate() {
        let rows = match u32::from(character) as usize {
            code @ 0x20..0x7f => BASIC_LEGACY[code],
            code @ 0xa0..0x100 => LATIN_LEGACY[code - 0xa0],
            _ => BASIC_LEGACY[usize::from(b'?')],
        };
        for (y, x) in (0..8).flat_map(|y| (0..8).map(move |x| (y, x))) {
            let (row, column) = (top + y, left + 8 * k + x);
            if rows[y] >> x & 1 == 1 && row < height && column < width {
                for (channel, value) in colour.iter().enumerate() {
                    image.pixels_mut()[(channel * height + row) * width + column] = *value;
                }
            }
        }
    }
}
