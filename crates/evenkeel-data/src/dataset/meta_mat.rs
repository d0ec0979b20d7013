//! The synset table of the ImageNet devkit, `meta.mat`: a MATLAB 5 file with a struct array `synsets`.
//!
//! Only what is needed is read: elements (tag, length, data padded to 8 bytes), zlib-compressed elements, struct arrays,
//! text and real numbers. Everything is bounds-checked; a file that is not of this form is refused.

use super::Offender;
use super::packed::read;
use crate::{Error, Result};
use flate2::read::ZlibDecoder;
use std::io::Read;
use std::path::Path;

/// One row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Synset {
    /// The number the ground truth uses.
    pub(crate) id: u32,
    /// WordNet's name for it.
    pub(crate) wnid: String,
    /// Whether it is one of the classes, not a group of them.
    pub(crate) leaf: bool,
}

const HEADER: usize = 128;
const COMPRESSED: u32 = 15;
const MATRIX: u32 = 14;
const STRUCT_CLASS: u8 = 2;

/// Reads the table.
pub(crate) fn read_synsets(path: &Path) -> Result<Vec<Synset>> {
    let bytes = read(path, "it is part of the devkit, beside the ground truth")?;
    parse(&bytes).ok_or_else(|| {
        let fault =
            "is not a MATLAB 5 file with a struct array of synsets (ILSVRC2012_ID, WNID, num_children)";
        Error::Offenders(vec![Offender::new(path, fault, "use the meta.mat of the ILSVRC2012 devkit")])
    })
}

fn parse(bytes: &[u8]) -> Option<Vec<Synset>> {
    // Little-endian files carry "IM" here; the devkit's is one.
    if bytes.get(126..128)? != b"IM" {
        return None;
    }
    let mut rest = bytes.get(HEADER..)?;
    while !rest.is_empty() {
        let element = next(&mut rest)?;
        let unpacked;
        let matrix = if element.kind == COMPRESSED {
            let mut plain = Vec::new();
            ZlibDecoder::new(element.data).read_to_end(&mut plain).ok()?;
            unpacked = plain;
            next(&mut unpacked.as_slice())?
        } else {
            element
        };
        if let Some(synsets) = synsets(&matrix) {
            return Some(synsets);
        }
    }
    None
}

#[derive(Clone, Copy)]
struct Element<'a> {
    kind: u32,
    data: &'a [u8],
}

/// Takes the next element off the front.
fn next<'a>(rest: &mut &'a [u8]) -> Option<Element<'a>> {
    let word = |at: usize| Some(u32::from_le_bytes(rest.get(at..at + 4)?.try_into().ok()?));
    let tag = word(0)?;
    // A small element keeps its length in the tag's upper half and its data in the next four bytes.
    if tag >> 16 != 0 {
        let data = rest.get(4..4 + (tag >> 16) as usize)?;
        *rest = rest.get(8..)?;
        return Some(Element { kind: tag & 0xffff, data });
    }
    let length = word(4)? as usize;
    let data = rest.get(8..8usize.checked_add(length)?)?;
    let padded = if tag == COMPRESSED { length } else { length.next_multiple_of(8) };
    *rest = rest.get(8 + padded..).unwrap_or(&[]);
    Some(Element { kind: tag, data })
}

/// The parts every matrix begins with: its class and how many elements it has; what follows is left in `rest`.
fn open<'a>(matrix: &Element<'a>) -> Option<(u8, usize, &'a [u8])> {
    if matrix.kind != MATRIX {
        return None;
    }
    let mut rest = matrix.data;
    let class = *next(&mut rest)?.data.first()?;
    let count = next(&mut rest)?
        .data
        .chunks_exact(4)
        .try_fold(1usize, |n, d| n.checked_mul(u32::from_le_bytes(d.try_into().ok()?) as usize))?;
    next(&mut rest)?; // the name
    Some((class, count, rest))
}

fn synsets(matrix: &Element<'_>) -> Option<Vec<Synset>> {
    let (class, count, mut rest) = open(matrix)?;
    if class != STRUCT_CLASS {
        return None;
    }
    let width = u32::from_le_bytes(next(&mut rest)?.data.get(..4)?.try_into().ok()?) as usize;
    let names: Vec<&[u8]> = next(&mut rest)?
        .data
        .chunks_exact(width.max(1))
        .map(|name| name.split(|&b| b == 0).next().unwrap_or(name))
        .collect();
    let column = |name: &str| names.iter().position(|n| *n == name.as_bytes());
    let (id, wnid, children) = (column("ILSVRC2012_ID")?, column("WNID")?, column("num_children")?);
    let mut synsets = Vec::new();
    for _ in 0..count {
        let row: Option<Vec<Element<'_>>> = names.iter().map(|_| next(&mut rest)).collect();
        let row = row?;
        let leaf = number(&row[children])? == 0.0;
        synsets.push(Synset { id: number(&row[id])? as u32, wnid: text(&row[wnid])?, leaf });
    }
    Some(synsets)
}

/// The first value of a numeric matrix, whatever type it is stored in.
fn number(matrix: &Element<'_>) -> Option<f64> {
    let (_, _, mut rest) = open(matrix)?;
    let Element { kind, data } = next(&mut rest)?;
    Some(match kind {
        1 => f64::from(*data.first()? as i8),
        2 => f64::from(*data.first()?),
        3 => f64::from(i16::from_le_bytes(data.get(..2)?.try_into().ok()?)),
        4 => f64::from(u16::from_le_bytes(data.get(..2)?.try_into().ok()?)),
        5 => f64::from(i32::from_le_bytes(data.get(..4)?.try_into().ok()?)),
        6 => f64::from(u32::from_le_bytes(data.get(..4)?.try_into().ok()?)),
        9 => f64::from_le_bytes(data.get(..8)?.try_into().ok()?),
        _ => return None,
    })
}

/// A text matrix: 16-bit characters, or bytes.
fn text(matrix: &Element<'_>) -> Option<String> {
    let (_, _, mut rest) = open(matrix)?;
    let Element { kind, data } = next(&mut rest)?;
    let step = if matches!(kind, 3 | 4 | 17) { 2 } else { 1 };
    let text: String = data.iter().step_by(step).map(|&b| char::from(b)).collect();
    Some(text.trim().to_string())
}
