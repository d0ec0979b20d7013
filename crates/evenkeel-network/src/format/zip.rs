//! Zip archives as NumPy and PyTorch write them: the entries of the central directory, stored or deflated. No encryption, no
//! archives in parts, nothing beyond 4 GB.

use std::io::Read;

/// A file in the archive.
pub(super) struct Entry<'a> {
    pub(super) name: String,
    pub(super) packed: &'a [u8],
    pub(super) deflated: bool,
    size: usize,
    checksum: u32,
}

impl Entry<'_> {
    /// Its bytes; `None` if they are not what the directory says or pass the room left.
    pub(super) fn content(&self, room: &mut usize) -> Option<Vec<u8>> {
        *room = room.checked_sub(self.size)?;
        let content = if self.deflated {
            let mut content = Vec::new();
            let unpacked = flate2::read::DeflateDecoder::new(self.packed);
            unpacked.take(self.size as u64 + 1).read_to_end(&mut content).ok()?;
            content
        } else {
            self.packed.to_vec()
        };
        let mut checksum = flate2::Crc::new();
        checksum.update(&content);
        (content.len() == self.size && checksum.sum() == self.checksum).then_some(content)
    }
}

/// `N` bytes at `at`, the least significant first.
pub(super) fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<usize> {
    let bytes = bytes.get(at..at.checked_add(N)?)?;
    let value = bytes.iter().rev().fold(0u64, |value, &byte| value << 8 | u64::from(byte));
    usize::try_from(value).ok()
}

/// The entries that the archive's central directory lists.
pub(super) fn entries(bytes: &[u8]) -> Option<Vec<Entry<'_>>> {
    // The end record is 22 bytes and a comment of at most 65,535.
    let earliest = bytes.len().saturating_sub(22 + 0xffff);
    let end =
        (earliest..=bytes.len().checked_sub(22)?).rev().find(|&i| bytes[i..].starts_with(b"PK\x05\x06"))?;
    let count = number::<2>(bytes, end + 10)?;
    let mut at = number::<4>(bytes, end + 16)?;
    let mut entries = Vec::new();
    for _ in 0..count {
        if !bytes.get(at..)?.starts_with(b"PK\x01\x02") {
            return None;
        }
        let (method, checksum) = (number::<2>(bytes, at + 10)?, number::<4>(bytes, at + 16)?);
        let (packed, size) = (number::<4>(bytes, at + 20)?, number::<4>(bytes, at + 24)?);
        let (name, extra, comment) =
            (number::<2>(bytes, at + 28)?, number::<2>(bytes, at + 30)?, number::<2>(bytes, at + 32)?);
        let local = number::<4>(bytes, at + 42)?;
        let text = std::str::from_utf8(bytes.get(at + 46..at + 46 + name)?).ok()?;
        if !bytes.get(local..)?.starts_with(b"PK\x03\x04") || !matches!(method, 0 | 8) {
            return None;
        }
        let start =
            local.checked_add(30)? + number::<2>(bytes, local + 26)? + number::<2>(bytes, local + 28)?;
        entries.push(Entry {
            name: text.into(),
            packed: bytes.get(start..start.checked_add(packed)?)?,
            deflated: method == 8,
            size,
            checksum: checksum as u32,
        });
        at += 46 + name + extra + comment;
    }
    Some(entries)
}
