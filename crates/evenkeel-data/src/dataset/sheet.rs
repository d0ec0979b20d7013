//! A contact sheet: samples of a data set on one page, each with its truth drawn over it.
//!
//! Label maps are painted over the image, objects as tinted masks, classes as a number in the corner. Samples are taken
//! at even distances, so the sheet shows the whole selection.

use super::{Dataset, Object, Preparation, Sample, Truth};
use crate::{Error, Result};
use evenkeel::{Image, Palette};
use rayon::prelude::*;

/// Height of a picture on the sheet.
const ROW: usize = 160;
/// Width of a cell; wider pictures are made to fit.
const CELL: usize = 240;
const GAP: usize = 4;
const COLUMNS: usize = 5;
const OPACITY: f32 = 0.5;

/// The sheet of at most `count` samples; broken ones are left out.
///
/// # Errors
/// If no sample can be shown.
pub fn contact_sheet(dataset: &Dataset, count: usize) -> Result<Image> {
    let shown = count.min(dataset.len());
    let cells: Vec<Image> = (0..shown)
        .into_par_iter()
        .filter_map(|k| dataset.listing.source.load(dataset.selection[k * dataset.len() / shown]).ok())
        .map(|sample| cell(&sample, dataset.palette()))
        .collect::<Result<_>>()?;
    if cells.is_empty() {
        return Err(Error::Request("there is no sound sample to show on a contact sheet".into()));
    }
    let columns = COLUMNS.min(cells.len());
    let rows = cells.len().div_ceil(columns);
    let mut sheet = Image::filled(rows * (ROW + GAP) + GAP, columns * (CELL + GAP) + GAP, 1.0);
    for (k, cell) in cells.iter().enumerate() {
        let (top, left) = (k / columns * (ROW + GAP) + GAP, k % columns * (CELL + GAP) + GAP);
        let margin = ((ROW - cell.height()) / 2, (CELL - cell.width()) / 2);
        paste(&mut sheet, cell, top + margin.0, left + margin.1);
    }
    Ok(sheet)
}

/// One picture at sheet size with its truth over it.
fn cell(sample: &Sample, palette: &Palette) -> Result<Image> {
    let (h, w) = sample.image.size();
    let scale = (ROW as f64 / h as f64).min(CELL as f64 / w as f64);
    let side = |length: usize| ((length as f64 * scale) as usize).max(1);
    let fitted = Preparation::Resize { height: side(h), width: side(w) };
    let sample = fitted.apply(sample.clone()).map_err(|offender| Error::Offenders(vec![offender]))?;
    let slip = |e: evenkeel::Error| Error::Request(e.to_string());
    Ok(match &sample.truth {
        Truth::Unlabelled | Truth::Given(_) => sample.image,
        Truth::Labels(map) => map.overlaid(&sample.image, palette, OPACITY).map_err(slip)?,
        Truth::Objects(objects) => with_objects(sample.image, objects),
        Truth::Class(class) => with_number(sample.image, *class),
    })
}

/// Objects in the order they are given, each in the next colour of the VOC palette.
fn with_objects(mut image: Image, objects: &[Object]) -> Image {
    let colours = Palette::of_voc(64);
    let (h, w) = image.size();
    for (k, object) in objects.iter().enumerate() {
        let colour = colours.colours()[1 + k % 63].map(|c| f32::from(c) / 255.0);
        let pixels = image.pixels_mut();
        object.mask.for_each_inside(|y, x| {
            for channel in 0..3 {
                let value = &mut pixels[channel * h * w + y * w + x];
                *value = OPACITY * colour[channel] + (1.0 - OPACITY) * *value;
            }
        });
    }
    image
}

/// Digits of 3x5 dots, a row in three bits.
const DIGITS: [[u8; 5]; 10] = [
    [7, 5, 5, 5, 7],
    [2, 6, 2, 2, 7],
    [7, 1, 7, 4, 7],
    [7, 1, 7, 1, 7],
    [5, 5, 7, 1, 1],
    [7, 4, 7, 1, 7],
    [7, 4, 7, 5, 7],
    [7, 1, 1, 1, 1],
    [7, 5, 7, 5, 7],
    [7, 5, 7, 1, 7],
];
const DOT: usize = 3;

/// The number in white on black in the upper left corner.
fn with_number(mut image: Image, number: usize) -> Image {
    let text = number.to_string();
    let digits: Vec<usize> = text.bytes().map(|b| usize::from(b - b'0')).collect();
    let (height, width) = (7 * DOT, (4 * digits.len() + 1) * DOT);
    let mut label = Image::filled(height, width, 0.0);
    for y in 0..height {
        for x in 0..width {
            let (row, column) = (y / DOT, x / DOT);
            let Some((k, bit)) = column.checked_sub(1).map(|c| (c / 4, c % 4)) else { continue };
            let lit = (1..6).contains(&row)
                && k < digits.len()
                && bit < 3
                && DIGITS[digits[k]][row - 1] >> (2 - bit) & 1 == 1;
            (0..3).for_each(|c| label.pixels_mut()[(c * height + y) * width + x] = f32::from(u8::from(lit)));
        }
    }
    if label.height() > image.height() || label.width() > image.width() {
        label = label.resized(label.height().min(image.height()), label.width().min(image.width()));
    }
    paste(&mut image, &label, 0, 0);
    image
}

fn paste(sheet: &mut Image, picture: &Image, top: usize, left: usize) {
    let (h, w) = sheet.size();
    let (ph, pw) = picture.size();
    for channel in 0..3 {
        for y in 0..ph {
            let to = (channel * h + top + y) * w + left;
            sheet.pixels_mut()[to..to + pw].copy_from_slice(&picture.plane(channel)[y * pw..][..pw]);
        }
    }
}
