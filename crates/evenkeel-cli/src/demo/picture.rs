//! Pictures of the page: PNG in the page itself, so that it is one file.

use super::trial::Shown;
use anyhow::Result;
use evenkeel::Image;

/// A picture or a word with its caption.
pub(super) struct Picture {
    pub(super) caption: String,
    pub(super) shown: Shown,
}

/// The pictures of one scene.
pub(super) struct Panel {
    pub(super) pictures: Vec<Picture>,
}

impl Picture {
    pub(super) fn new(caption: &str, image: &Image) -> Self {
        Self::labelled(caption, Shown::Image(image.clone()))
    }

    pub(super) fn labelled(caption: &str, shown: Shown) -> Self {
        Self { caption: caption.into(), shown }
    }

    /// The picture as HTML.
    pub(super) fn html(&self) -> Result<String> {
        let body = match &self.shown {
            Shown::Image(image) => {
                let (height, width) = image.size();
                let data = base64(&image.encode_png()?);
                let caption = &self.caption;
                format!(
                    "<img src=\"data:image/png;base64,{data}\" width=\"{width}\" height=\"{height}\" alt=\"{caption}\">"
                )
            }
            Shown::Word(word) => format!("<div class=\"word\">{word}</div>"),
        };
        Ok(format!("<figure>{body}<figcaption>{}</figcaption></figure>", self.caption))
    }
}

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Bytes in base 64, padded.
pub(super) fn base64(bytes: &[u8]) -> String {
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
    use super::base64;

    #[test]
    fn base64_pads() {
        let known = [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foobar", "Zm9vYmFy")];
        assert!(known.iter().all(|(plain, coded)| base64(plain.as_bytes()) == *coded));
    }
}
