//! The compressed text form of run lengths: six bits to a character from `0` on, five of them payload.
//!
//! Each count after the third is written as the difference to the one two before it, which has the same colour and a
//! similar length. A number goes out low bits first; bit 5 of a character says that more follow, bit 4 of the last
//! one is the sign. Invariant: `from_text(to_text(m)) == m`.

use super::Rle;
use crate::{Error, Result};

impl Rle {
    /// The compressed text, as in the `counts` of a COCO file.
    pub fn to_text(&self) -> String {
        let mut text = String::with_capacity(self.counts.len() * 3);
        for (k, &count) in self.counts.iter().enumerate() {
            let before = if k > 2 { i64::from(self.counts[k - 2]) } else { 0 };
            let mut rest = i64::from(count) - before;
            loop {
                let payload = (rest & 0x1f) as u8;
                rest >>= 5;
                let more = rest != if payload & 0x10 != 0 { -1 } else { 0 };
                text.push(char::from(48 + payload + if more { 0x20 } else { 0 }));
                if !more {
                    break;
                }
            }
        }
        text
    }

    /// Reads the compressed text; refuses foreign characters, a cut-off end, and runs that do not cover the mask.
    pub fn from_text(height: u32, width: u32, text: &str) -> Result<Self> {
        let mut counts: Vec<u32> = Vec::with_capacity(text.len() / 2 + 1);
        let mut bytes = text.bytes();
        while let Some(first) = bytes.next() {
            let (mut value, mut shift, mut byte) = (0i64, 0u32, first);
            loop {
                let code = byte.wrapping_sub(48);
                if code > 63 || shift > 30 {
                    return Err(Error::Mask(format!(
                        "`{}` is not part of a run-length text",
                        char::from(byte)
                    )));
                }
                value |= i64::from(code & 0x1f) << shift;
                shift += 5;
                if code & 0x20 == 0 {
                    if code & 0x10 != 0 {
                        value |= -1 << shift;
                    }
                    break;
                }
                byte = bytes.next().ok_or_else(|| Error::Mask("its run-length text is cut off".into()))?;
            }
            if counts.len() > 2 {
                value += i64::from(counts[counts.len() - 2]);
            }
            counts.push(u32::try_from(value).map_err(|_| Error::Mask(format!("a run of {value} pixels")))?);
        }
        Self::from_counts(height, width, counts)
    }
}
