//! The size rule of a data set: how an image and its truth are brought to the size an experiment wants.
//!
//! Images: bilinear with antialiasing ([`Image::resized`]). Label maps and object masks: nearest. Image and truth always go
//! through the same rule, so a label stays on its pixel.

use super::{Object, Offender, Sample, Truth};
use crate::mask::Rle;
use evenkeel::image::{Picture, Window};
use evenkeel::{Image, LabelMap};
use std::fmt;

/// How samples are brought to size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preparation {
    /// As they are.
    Native,
    /// To this height and width, whatever the shape was.
    Resize {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
    /// The shorter side to `short`, then the central square of side `crop`.
    ShortCrop {
        /// Length of the shorter side after resizing.
        short: usize,
        /// Side of the square cut from the centre.
        crop: usize,
    },
    /// As small as covers this height and width without a change of shape, then the centre of that size: for images of any shape that are to be
    /// shown in the frame of others.
    Cover {
        /// Rows.
        height: usize,
        /// Columns.
        width: usize,
    },
}

impl fmt::Display for Preparation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native => write!(f, "as they are"),
            Self::Resize { height, width } => write!(f, "resized to {width}x{height}"),
            Self::ShortCrop { short, crop } => write!(f, "shorter side {short}, centre crop {crop}x{crop}"),
            Self::Cover { height, width } => write!(f, "scaled to cover {width}x{height}, centre cut out"),
        }
    }
}

impl Preparation {
    /// From `WIDTHxHEIGHT`, or `native`.
    ///
    /// # Errors
    /// If it is neither.
    pub fn parse(text: &str) -> crate::Result<Self> {
        if text == "native" {
            return Ok(Self::Native);
        }
        let sides = text.split_once('x').and_then(|(w, h)| Some((w.parse().ok()?, h.parse().ok()?)));
        match sides {
            Some((width, height)) if (1..=1 << 14).contains(&width) && (1..=1 << 14).contains(&height) => {
                Ok(Self::Resize { height, width })
            }
            _ => {
                let words = "write it as WIDTHxHEIGHT, 680x340 say, or native";
                Err(crate::Error::Request(format!("size {text}: {words}")))
            }
        }
    }

    /// The sample at its prepared size.
    pub(crate) fn apply(&self, sample: Sample) -> Result<Sample, Offender> {
        let Some(window) = self.window(sample.image.size()) else {
            return Ok(sample);
        };
        let slip = |e: String| Offender::new(&sample.id, e, "choose another size");
        let image = window.of(&sample.image);
        let truth = match &sample.truth {
            Truth::Labels(map) => Truth::Labels(labels_of(&window, map).map_err(|e| slip(e.to_string()))?),
            Truth::Objects(objects) => {
                let moved: crate::Result<Vec<Object>> =
                    objects.iter().map(|object| object_of(&window, object)).collect();
                Truth::Objects(moved.map_err(|e| slip(e.to_string()))?)
            }
            Truth::Given(_) => {
                return Err(slip("a truth that the task reads has the picture's own size".into()));
            }
            other => other.clone(),
        };
        Ok(Sample { id: sample.id, image, truth })
    }

    /// A picture at its prepared size, on the way from file to planes.
    pub(crate) fn image(&self, picture: Picture) -> evenkeel::Result<Image> {
        match &picture {
            Picture::Rgb8 { height, width, bytes } => match self.window((*height, *width)) {
                Some(window) => Ok(window.of_rgb8(bytes, (*height, *width))),
                None => picture.into_image(),
            },
            Picture::Planes(image) => match self.window(image.size()) {
                Some(window) => Ok(window.of(image)),
                None => picture.into_image(),
            },
        }
    }

    /// `None` if nothing changes.
    fn window(&self, (h, w): (usize, usize)) -> Option<Window> {
        let window = match *self {
            Self::Native => return None,
            Self::Resize { height, width } => Window::whole((height, width)),
            Self::ShortCrop { short, crop } => {
                let long = |side: usize, shorter: usize| (short * side / shorter).max(1);
                let scaled = if h <= w { (short, long(w, h)) } else { (long(h, w), short) };
                let crop = crop.min(scaled.0.min(scaled.1));
                // Half to even, as Python rounds: the usual pipelines cut there.
                let middle = |side: usize| ((side - crop) as f64 / 2.0).round_ties_even() as usize;
                Window { whole: scaled, origin: (middle(scaled.0), middle(scaled.1)), size: (crop, crop) }
            }
            Self::Cover { height, width } => {
                let scale = (height as f64 / h as f64).max(width as f64 / w as f64);
                let side = |side: usize, least: usize| ((side as f64 * scale).round() as usize).max(least);
                let whole = (side(h, height), side(w, width));
                let origin = ((whole.0 - height) / 2, (whole.1 - width) / 2);
                Window { whole, origin, size: (height, width) }
            }
        };
        (window.size != (h, w) || window.whole != (h, w)).then_some(window)
    }
}

/// The window of a label map at its resized size.
fn labels_of(window: &Window, map: &LabelMap) -> evenkeel::Result<LabelMap> {
    let scaled = map.resized(window.whole.0, window.whole.1);
    LabelMap::new(window.size.0, window.size.1, cut(window, scaled.labels()))
}

/// The object, with the window of its mask.
fn object_of(window: &Window, object: &Object) -> crate::Result<Object> {
    let (h, w) = (object.mask.height() as usize, object.mask.width() as usize);
    let labels: Vec<u16> = object.mask.decode().into_iter().map(u16::from).collect();
    let map = LabelMap::new(h, w, labels).map_err(|e| crate::Error::Mask(e.to_string()))?;
    let scaled = map.resized(window.whole.0, window.whole.1);
    let bytes: Vec<u8> = cut(window, scaled.labels()).into_iter().map(|l| l as u8).collect();
    let mask = Rle::encode(window.size.0 as u32, window.size.1 as u32, &bytes)?;
    Ok(Object { area: f64::from(mask.area()), mask, ..*object })
}

fn cut<T: Copy>(window: &Window, plane: &[T]) -> Vec<T> {
    let ((top, left), (height, width)) = (window.origin, window.size);
    (top..top + height).flat_map(|y| &plane[y * window.whole.1 + left..][..width]).copied().collect()
}
