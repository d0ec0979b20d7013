//! Writes a page of rendered scenes, or of object crops, as one PNG: `gallery scenes.png`, `gallery objects.png --objects`.

use evenkeel::Image;
use evenkeel_data::dataset::scenes::{Split, object, render};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let path = args.next().ok_or("where to?")?;
    let rest: Vec<String> = args.collect();
    let objects = rest.iter().any(|a| a == "--objects");
    let first: u64 = rest.iter().find_map(|a| a.parse().ok()).unwrap_or(0);
    let ((height, width), (rows, columns)) = if objects { ((96, 96), (6, 10)) } else { ((192, 384), (4, 3)) };
    let gap = 6;
    let (h, w) = (rows * (height + gap) + gap, columns * (width + gap) + gap);
    let mut page = Image::filled(h, w, 1.0);
    for k in 0..rows * columns {
        let number = first + k as u64;
        let picture = if objects {
            object(Split::Val, number, height, width).1
        } else {
            render(Split::Val.seed(number), height, width).image
        };
        let (top, left) = (k / columns * (height + gap) + gap, k % columns * (width + gap) + gap);
        for c in 0..3 {
            for y in 0..height {
                let to = (c * h + top + y) * w + left;
                page.pixels_mut()[to..to + width].copy_from_slice(&picture.plane(c)[y * width..][..width]);
            }
        }
    }
    page.save_png(path)?;
    Ok(())
}
