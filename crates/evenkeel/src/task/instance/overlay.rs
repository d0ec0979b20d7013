//! Pictures of instances: each mask in a colour of its own over the image, with its box around it.

use super::Instance;
use crate::error::{Error, Result};
use crate::image::{Image, Palette};
use crate::task::{ClassInfo, LegendEntry};

/// Objects that a legend lists.
const LISTED: usize = 20;

/// The colour of the object at a place of the list; colour 0 of the palette is black.
fn colour_of(place: usize) -> [u8; 3] {
    Palette::of_voc(256).colours()[1 + place % 255]
}

/// Each object's colour, with its class and score.
pub(super) fn legend(instances: &[&Instance], classes: &ClassInfo<'_>) -> Vec<LegendEntry> {
    let entry = |(place, instance): (usize, &&Instance)| LegendEntry {
        name: format!("{} {:.2}", classes.word(instance.class), instance.score),
        colour: colour_of(place),
    };
    instances.iter().enumerate().take(LISTED).map(entry).collect()
}

/// The image with the instances over it, the least confident drawn first.
///
/// # Errors
/// If a mask has another size than the image.
pub fn overlaid(image: &Image, instances: &[&Instance], opacity: f32) -> Result<Image> {
    let (h, w) = image.size();
    if let Some(other) = instances.iter().find(|instance| instance.mask.size() != (h, w)) {
        let words = |(h, w): (usize, usize)| format!("{w}x{h}");
        return Err(Error::mismatch("mask over image", words((h, w)), words(other.mask.size())));
    }
    let mut out = image.clone();
    for (k, instance) in instances.iter().enumerate().rev() {
        let colour = colour_of(k).map(|c| f32::from(c) / 255.0);
        let mut paint = |y: usize, x: usize, opacity: f32| {
            for (channel, c) in colour.iter().enumerate() {
                let value = &mut out.pixels_mut()[(channel * h + y) * w + x];
                *value = opacity * c + (1.0 - opacity) * *value;
            }
        };
        let ((top, left), (rows, columns)) = instance.mask.window();
        for (y, x) in (top..top + rows).flat_map(|y| (left..left + columns).map(move |x| (y, x))) {
            if instance.mask.contains(y, x) {
                paint(y, x, opacity);
            }
        }
        let [x1, y1, x2, y2] = instance.corners;
        let place = |side: f32, most: usize| (side.max(0.0) as usize).min(most - 1);
        let (x1, y1, x2, y2) = (place(x1, w), place(y1, h), place(x2, w), place(y2, h));
        (x1..=x2).for_each(|x| [y1, y2].iter().for_each(|&y| paint(y, x, 1.0)));
        (y1..=y2).for_each(|y| [x1, x2].iter().for_each(|&x| paint(y, x, 1.0)));
    }
    Ok(out)
}
