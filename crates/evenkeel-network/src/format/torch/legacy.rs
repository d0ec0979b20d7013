//! The format before zip archives: pickles in a row (a magic number, a version, facts about the writer, the object, the keys of its
//! storages), then for each key the number of elements and the elements.

use std::collections::HashMap;

use super::pickle::{self, Value};
use super::{gather, sized};
use crate::tensor::Tensor;

/// The number every such file begins with, least significant byte first.
const MAGIC: [u8; 10] = [0x6c, 0xfc, 0x9c, 0x46, 0xf9, 0x20, 0x6a, 0xa8, 0x50, 0x19];
/// The only version there has been.
const VERSION: i64 = 1001;

/// The tensors of a file of pickles in a row.
pub(super) fn tensors(bytes: &[u8]) -> Result<Vec<(String, Tensor)>, String> {
    let magic = pickle::read(bytes)?;
    if magic.opaque(magic.root) != Some(&MAGIC) {
        return Err("it is a pickle, but not one of a checkpoint: the magic number is missing".into());
    }
    let mut at = magic.length;
    let version = pickle::read(&bytes[at..])?;
    at += version.length;
    if !matches!(version.value(version.root), Value::Int(VERSION)) {
        return Err(format!("it is not of version {VERSION}"));
    }
    let writer = pickle::read(&bytes[at..])?;
    at += writer.length;
    let little = writer.entry(writer.root, "little_endian").map(|id| writer.value(id));
    if !matches!(little, Some(Value::Bool(true))) {
        return Err("its numbers are not little-endian".into());
    }
    let object = pickle::read(&bytes[at..])?;
    at += object.length;
    let keys = pickle::read(&bytes[at..])?;
    at += keys.length;
    let Value::List(order) = keys.value(keys.root) else {
        return Err("it does not list its storages".into());
    };
    let mentions = object.storages.iter().enumerate();
    let places: HashMap<&str, usize> = mentions.map(|(place, mention)| (&*mention.key, place)).collect();
    let mut storages: Vec<Option<&[u8]>> = vec![None; object.storages.len()];
    for &key in order {
        let key = keys.text(key).ok_or("it lists a storage that is not a string")?;
        let place = *places
            .get(key)
            .ok_or_else(|| format!("it lists storage {key:?}, which its object never mentions"))?;
        let mention = &object.storages[place];
        let cut = || format!("it ends inside storage {key:?}");
        let (count, rest) = bytes[at..].split_first_chunk::<8>().ok_or_else(cut)?;
        if u64::from_le_bytes(*count) != mention.elements {
            let (count, said) = (u64::from_le_bytes(*count), mention.elements);
            return Err(format!("storage {key:?} has {count} elements where its object says {said}"));
        }
        let length = mention.elements.checked_mul(mention.kind.width() as u64);
        let length =
            length.and_then(|length| usize::try_from(length).ok()).filter(|&length| length <= rest.len());
        let length = length.ok_or_else(cut)?;
        storages[place] = Some(sized(mention, &rest[..length])?);
        at += 8 + length;
    }
    let missing = |(mention, storage): (&pickle::Mention, Option<_>)| {
        storage.ok_or_else(|| format!("storage {:?} is missing", mention.key))
    };
    let storages: Vec<&[u8]> = object.storages.iter().zip(storages).map(missing).collect::<Result<_, _>>()?;
    gather(&object, &storages, bytes.len())
}
