//! NumPy arrays: `.npy` files, and `.npz` archives of them (zip files with stored or deflated entries).
//!
//! Reference values of a network are kept so. Only what NumPy writes is read: no encryption, no archives in parts.

use std::path::Path;

use evenkeel_kernels::buffer::Flag;
use half::f16;

use super::zip::{self, number};
use crate::error::{Error, Result};
use crate::tensor::{Element, Tensor, checked_len};

/// The most bytes that the arrays of one archive may take together.
const LIMIT: usize = 8 << 30;

fn damaged(problem: impl Into<String>) -> Error {
    Error::Format { format: "NumPy", problem: problem.into() }
}

/// The arrays of an archive, by name (without `.npy`), in the archive's order.
///
/// # Errors
/// If the file cannot be read or is damaged, or an array has a type the engine does not have.
pub fn load(path: &Path) -> Result<Vec<(String, Tensor)>> {
    let bytes = std::fs::read(path).map_err(|source| Error::Read { path: path.into(), source })?;
    archive(&bytes)
}

/// The arrays of an archive's bytes.
///
/// # Errors
/// As for [`load`].
pub fn archive(bytes: &[u8]) -> Result<Vec<(String, Tensor)>> {
    let mut room = LIMIT;
    let mut arrays = Vec::new();
    for entry in zip::entries(bytes).ok_or_else(|| damaged("its directory cannot be followed"))? {
        let name = entry.name.strip_suffix(".npy").unwrap_or(&entry.name).to_string();
        let content =
            entry.content(&mut room).ok_or_else(|| damaged(format!("array {name:?} cannot be unpacked")))?;
        arrays.push((name, array(&content)?));
    }
    Ok(arrays)
}

/// The array of a `.npy` file's bytes.
///
/// # Errors
/// If the bytes are damaged or have a type the engine does not have.
pub fn array(bytes: &[u8]) -> Result<Tensor> {
    let header = header(bytes).ok_or_else(|| damaged("an array's header cannot be read"))?;
    let values = header.values;
    match header.kind {
        "<f4" => plain(&header, values, f32::from_le_bytes),
        "<f8" => plain(&header, values, f64::from_le_bytes),
        "<f2" => plain(&header, values, |b| f16::from_le_bytes(b).to_f32()),
        "<i4" => plain(&header, values, i32::from_le_bytes),
        "<i8" => plain(&header, values, i64::from_le_bytes),
        "<i2" => plain(&header, values, |b| i32::from(i16::from_le_bytes(b))),
        "<u2" => plain(&header, values, |b| i32::from(u16::from_le_bytes(b))),
        "<u4" => plain(&header, values, |b| i64::from(u32::from_le_bytes(b))),
        "|u1" => plain(&header, values, |[b]: [u8; 1]| b),
        "|i1" => plain(&header, values, i8::from_le_bytes),
        "|b1" => plain(&header, values, |[b]: [u8; 1]| Flag::from(b != 0)),
        other => Err(damaged(format!("an array has type {other:?}, which is not supported"))),
    }
}

struct Header<'a> {
    kind: &'a str,
    fortran: bool,
    shape: Vec<usize>,
    values: &'a [u8],
}

fn header(bytes: &[u8]) -> Option<Header<'_>> {
    let major = *bytes.strip_prefix(b"\x93NUMPY")?.first()?;
    let (length, start) =
        if major == 1 { (number::<2>(bytes, 8)?, 10) } else { (number::<4>(bytes, 8)?, 12) };
    let end = length.checked_add(start)?;
    let text = std::str::from_utf8(bytes.get(start..end)?).ok()?;
    let after = |key: &str| text.split_once(&format!("'{key}':")).map(|(_, rest)| rest.trim_start());
    let kind = after("descr")?.strip_prefix('\'')?.split('\'').next()?;
    let fortran = after("fortran_order")?.starts_with("True");
    let dims = after("shape")?.strip_prefix('(')?.split_once(')')?.0;
    let parts = dims.split(',').map(str::trim).filter(|part| !part.is_empty());
    let shape = parts.map(|part| part.parse().ok()).collect::<Option<Vec<usize>>>()?;
    Some(Header { kind, fortran, shape, values: &bytes[end..] })
}

fn plain<T: Element, const N: usize>(
    header: &Header<'_>,
    bytes: &[u8],
    decode: impl Fn([u8; N]) -> T,
) -> Result<Tensor> {
    let shape = &header.shape;
    let len = checked_len(shape).filter(|&len| len.checked_mul(N) == Some(bytes.len()));
    let Some(len) = len else {
        return Err(damaged(format!("an array of shape {shape:?} has {} bytes", bytes.len())));
    };
    let values = bytes.as_chunks::<N>().0;
    if !header.fortran {
        return Ok(Tensor::new(shape, values.iter().map(|&bytes| decode(bytes)).collect::<Vec<T>>()));
    }
    // Fortran's order runs fastest along the first axis: element (i, j, ..) is at i + d0 * (j + d1 * ..).
    let at = |mut row_major: usize| {
        let mut digits: Vec<usize> = Vec::with_capacity(shape.len());
        for &dim in shape.iter().rev() {
            digits.push(row_major % dim);
            row_major /= dim;
        }
        digits.iter().zip(shape.iter().rev()).fold(0, |flat, (&digit, &dim)| flat * dim + digit)
    };
    Ok(Tensor::new(shape, (0..len).map(|i| decode(values[at(i)])).collect::<Vec<T>>()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn npy(kind: &str, fortran: &str, shape: &str, values: &[u8]) -> Vec<u8> {
        let text = format!("{{'descr': '{kind}', 'fortran_order': {fortran}, 'shape': {shape}, }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend((text.len() as u16).to_le_bytes());
        bytes.extend(text.as_bytes());
        bytes.extend(values);
        bytes
    }

    /// An archive of one entry, stored or deflated.
    fn npz(name: &str, content: &[u8], deflated: bool) -> Vec<u8> {
        use std::io::Write;
        let packed = if deflated {
            let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::default());
            encoder.write_all(content).unwrap();
            encoder.finish().unwrap()
        } else {
            content.to_vec()
        };
        let mut checksum = flate2::Crc::new();
        checksum.update(content);
        let mut sizes = vec![0, 0, if deflated { 8 } else { 0 }, 0, 0, 0, 0, 0];
        sizes.extend(checksum.sum().to_le_bytes());
        sizes.extend((packed.len() as u32).to_le_bytes());
        sizes.extend((content.len() as u32).to_le_bytes());
        sizes.extend((name.len() as u16).to_le_bytes());
        sizes.extend([0, 0]);
        let local = [b"PK\x03\x04\x14\x00", sizes.as_slice(), name.as_bytes(), &packed].concat();
        let central = [b"PK\x01\x02\x14\x00\x14\x00", sizes.as_slice(), &[0; 14], name.as_bytes()].concat();
        let mut end = b"PK\x05\x06\0\0\0\0\x01\0\x01\0".to_vec();
        end.extend((central.len() as u32).to_le_bytes());
        end.extend((local.len() as u32).to_le_bytes());
        end.extend([0, 0]);
        [local, central, end].concat()
    }

    #[test]
    fn arrays_of_both_orders_and_packings() {
        let values: Vec<u8> = (0..6).flat_map(|i: i32| (i as f32).to_le_bytes()).collect();
        let rows = array(&npy("<f4", "False", "(2, 3)", &values)).unwrap();
        assert_eq!(rows.values(), Some(&[0.0f32, 1.0, 2.0, 3.0, 4.0, 5.0][..]));
        let columns = npy("<f4", "True", "(2, 3)", &values);
        for deflated in [false, true] {
            let arrays = archive(&npz("y.npy", &columns, deflated)).unwrap();
            assert_eq!(arrays[0].0, "y");
            assert_eq!(arrays[0].1.shape(), [2, 3]);
            assert_eq!(arrays[0].1.values(), Some(&[0.0f32, 2.0, 4.0, 1.0, 3.0, 5.0][..]));
        }
        let scalar = array(&npy("<i8", "False", "()", &7i64.to_le_bytes())).unwrap();
        assert_eq!((scalar.rank(), scalar.values()), (0, Some(&[7i64][..])));
        assert_eq!(array(&npy("|b1", "False", "(2,)", &[0, 1])).unwrap().shape(), [2]);
    }

    #[test]
    fn damage_is_told() {
        let whole = npz("y.npy", &npy("<f4", "False", "(1,)", &1f32.to_le_bytes()), true);
        assert!(archive(&whole).is_ok());
        for cut in 0..whole.len() {
            assert!(archive(&whole[..cut]).is_err(), "cut to {cut}");
        }
        for at in 0..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            let _ = archive(&bytes);
        }
        assert!(array(&npy("<f4", "False", "(9223372036854775807, 9)", &[])).is_err());
        assert!(array(&npy("<c8", "False", "(1,)", &[0; 8])).is_err());
    }
}
