//! Pictures of a page: PNG in the page itself, so that it is one file.

use evenkeel::Image;

use super::chart::escaped;
use crate::Result;

/// An answer or an image, as it is shown.
pub enum Shown {
    /// A picture.
    Image(Image),
    /// A word.
    Word(String),
}

/// A picture or a word with its caption.
pub struct Picture {
    /// The caption.
    pub caption: String,
    /// What is shown.
    pub shown: Shown,
}

impl Picture {
    /// A picture.
    pub fn new(caption: &str, image: &Image) -> Self {
        Self::labelled(caption, Shown::Image(image.clone()))
    }

    /// A picture or a word.
    pub fn labelled(caption: &str, shown: Shown) -> Self {
        Self { caption: caption.into(), shown }
    }

    /// The picture as HTML.
    ///
    /// # Errors
    /// If it cannot be encoded.
    pub fn html(&self) -> Result<String> {
        let caption = escaped(&self.caption);
        let body = match &self.shown {
            Shown::Image(image) => {
                let (height, width) = image.size();
                let data = base64(&image.encode_png()?);
                // a label around a box that is ticked or not: opens and closes without a script
                format!(
                    "<label class=\"zoom\"><input type=\"checkbox\" aria-label=\"{caption}, large\"><img src=\"data:image/png;base64,{data}\" \
                     width=\"{width}\" height=\"{height}\" alt=\"{caption}\"></label>"
                )
            }
            Shown::Word(word) => format!("<div class=\"word\">{}</div>", escaped(word)),
        };
        Ok(format!("<figure>{body}<figcaption>{caption}</figcaption></figure>"))
    }
}

/// Names and colours as HTML, each once; nothing if there are none.
pub fn legend<'e>(entries: impl IntoIterator<Item = (&'e str, [u8; 3])>) -> String {
    let mut seen: Vec<(&str, [u8; 3])> = Vec::new();
    for entry in entries {
        if !seen.contains(&entry) {
            seen.push(entry);
        }
    }
    let words = |(name, [r, g, b]): &(&str, [u8; 3])| {
        format!("<span><i style=\"background:rgb({r},{g},{b})\"></i>{}</span>", escaped(name))
    };
    match seen.is_empty() {
        true => String::new(),
        false => format!("<p class=\"legend\">{}</p>", seen.iter().map(words).collect::<String>()),
    }
}

/// The difference of two images around middle grey, at full swing where it reaches the bound.
pub fn magnified(from: &Image, to: &Image, bound: f32) -> Image {
    let mut out = to.clone();
    for (o, f) in out.pixels_mut().iter_mut().zip(from.pixels()) {
        *o = (0.5 + (*o - f) / bound.max(1e-6) * 0.5).clamp(0.0, 1.0);
    }
    out
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes in base 64, padded.
fn base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |k: usize| u32::from(group.get(k).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for k in 0..4 {
            let letter = ALPHABET[(bits >> (18 - 6 * k) & 63) as usize];
            text.push(if k <= group.len() { letter as char } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pictures_open_large_and_legends_name_each_class_once() {
        let html = Picture::new("a <b>", &Image::filled(2, 3, 0.5)).html().unwrap();
        assert!(html.contains("<label class=\"zoom\">") && html.contains("a &lt;b&gt;, large"), "{html}");
        let twice = legend([("road", [1, 2, 3]), ("a<b", [0, 0, 0]), ("road", [1, 2, 3])]);
        assert!(twice.matches("rgb(1,2,3)").count() == 1 && twice.contains("a&lt;b"), "{twice}");
        assert_eq!(legend([]), "");
    }

    #[test]
    fn base64_pads() {
        let known = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        assert!(known.iter().all(|(plain, coded)| base64(plain.as_bytes()) == *coded));
    }
}
