//! Frames: how results stand in a log so that each can be told from bytes that are none.
//!
//! ```text
//! length u32 | check of the length u32 | checksum of the payload, 16 bytes | payload
//! ```
//!
//! All little-endian. A write cut short leaves bytes after which no sound frame comes: a torn end. Where one does come, the bytes between are
//! damage. The check of the length lets a search for the next frame pass by all but one place of 2^32 without reading a payload.

use crate::key::Key;

/// Bytes before the payload.
pub(super) const HEADER: usize = 24;
/// What stands at the beginning of a log.
pub(super) const MAGIC: &[u8; 16] = b"evenkeel study 1";

/// The largest payload: a picture of many megapixels and some text.
const LARGEST: u32 = 1 << 30;

fn length_check(length: u32) -> u32 {
    length.wrapping_mul(0x9e37_79b1).rotate_left(15) ^ 0x6576_656e
}

/// A payload in its frame.
pub(super) fn framed(payload: &[u8]) -> Option<Vec<u8>> {
    let length = u32::try_from(payload.len()).ok().filter(|l| *l <= LARGEST)?;
    let mut frame = Vec::with_capacity(HEADER + payload.len());
    frame.extend_from_slice(&length.to_le_bytes());
    frame.extend_from_slice(&length_check(length).to_le_bytes());
    frame.extend_from_slice(&Key::of_parts(&[payload]).bytes());
    frame.extend_from_slice(payload);
    Some(frame)
}

/// Reads a header: the payload's length and checksum.
pub(super) fn header(bytes: &[u8; HEADER]) -> Option<(usize, [u8; 16])> {
    let number = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let length = number(0);
    let mut checksum = [0; 16];
    checksum.copy_from_slice(&bytes[8..HEADER]);
    (length <= LARGEST && number(4) == length_check(length)).then_some((length as usize, checksum))
}

/// Whether a payload is what was written.
pub(super) fn sound(payload: &[u8], checksum: &[u8; 16]) -> bool {
    Key::of_parts(&[payload]).bytes() == *checksum
}
