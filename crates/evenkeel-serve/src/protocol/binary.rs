//! The binary tensor extension: values as bytes behind the JSON, little-endian; strings with their lengths in front.

use bytes::Bytes;
use half::f16;

use super::{Datatype, InputData};
use crate::error::{Error, Result};

/// The values of an input from its binary form; `values` is the product of its shape.
///
/// # Errors
/// If there are more or fewer bytes than the shape wants.
pub(super) fn read(name: &str, datatype: Datatype, values: usize, bytes: Bytes) -> Result<InputData> {
    let place = || format!("input {name}");
    if let Some(width) = datatype.width() {
        let wanted = values.checked_mul(width);
        if wanted != Some(bytes.len()) {
            let wanted = wanted.map_or("more than can be counted".into(), |n| n.to_string());
            let reason = format!("has {} bytes, its shape and datatype want {wanted}", bytes.len());
            return Err(Error::malformed(place(), reason));
        }
    }
    Ok(match datatype {
        Datatype::Uint8 => InputData::Uint8(bytes),
        Datatype::Fp16 => {
            let (pairs, _) = bytes.as_chunks::<2>();
            InputData::Fp32(pairs.iter().map(|b| f16::from_le_bytes(*b).to_f32()).collect())
        }
        Datatype::Bytes => InputData::Bytes(strings(name, values, bytes)?),
        _ => {
            let (fours, _) = bytes.as_chunks::<4>();
            InputData::Fp32(fours.iter().map(|b| f32::from_le_bytes(*b)).collect())
        }
    })
}

/// Strings, each with its length of four bytes in front; nothing may be left over.
fn strings(name: &str, values: usize, mut bytes: Bytes) -> Result<Vec<Bytes>> {
    let broken = |reason: &str| Error::malformed(format!("input {name}"), reason);
    let mut all = Vec::new();
    for _ in 0..values {
        let (length, rest) =
            bytes.split_first_chunk::<4>().ok_or_else(|| broken("has fewer strings than its shape"))?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > rest.len() {
            return Err(broken("holds a string that is longer than the data"));
        }
        let _ = bytes.split_to(4);
        all.push(bytes.split_to(length));
    }
    match bytes.is_empty() {
        true => Ok(all),
        false => Err(broken("has bytes behind its last string")),
    }
}
