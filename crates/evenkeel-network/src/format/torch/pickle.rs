//! A reader of the pickles in PyTorch checkpoints, that builds plain values and can call nothing.
//!
//! A pickle is a program for a stack machine. Of its instructions only those that build numbers, strings, lists, tuples and dicts are
//! followed; of the names it may mention only those in [`Name`], which stand for shapes of data and are never looked up anywhere. Values live
//! in one list and refer to each other by place, so that nothing recurses however deeply they nest, and what is shared is
//! kept once. The number of values is bounded by [`MOST_VALUES`], the rest of the memory by [`LONGEST`]: under 200 MB for any pickle.

mod machine;
mod named;

use super::storage::{Kind, View};

pub(super) use machine::read;

/// The longest pickle that is read. A checkpoint's pickle holds names and shapes only.
pub(super) const LONGEST: usize = 8 << 20;
/// The most values a pickle may make.
const MOST_VALUES: usize = 1 << 20;
/// The most marks that may be open at a time.
const DEEPEST: usize = 1 << 16;
/// The most storages a pickle may mention.
const MOST_STORAGES: usize = 1 << 16;

/// The place of a value.
pub(super) type Id = u32;

/// The names a pickle may mention.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Name {
    /// A dict that remembers its order.
    OrderedDict,
    /// A tuple of extents.
    Size,
    /// A view of a storage. The second form also says whether it wanted a gradient.
    Tensor,
    /// A tensor that was trained.
    Parameter,
    /// A type of storage.
    Storage(Kind),
}

fn name(module: &str, item: &str) -> Option<Name> {
    Some(match (module, item) {
        ("collections", "OrderedDict") => Name::OrderedDict,
        ("torch", "Size") => Name::Size,
        ("torch._utils", "_rebuild_tensor" | "_rebuild_tensor_v2") => Name::Tensor,
        ("torch._utils", "_rebuild_parameter") => Name::Parameter,
        ("torch", storage) => Name::Storage(Kind::of_storage(storage)?),
        _ => return None,
    })
}

/// What a pickle builds.
#[derive(Clone, Debug)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float,
    /// Where its UTF-8 bytes are in the pickle.
    Text(u32, u32),
    /// Bytes, and integers beyond 64 bits.
    Opaque(u32, u32),
    List(Vec<Id>),
    Tuple(Vec<Id>),
    Dict(Vec<(Id, Id)>),
    Name(Name),
    /// The place of a storage in [`Pickle::storages`].
    Storage(u32),
    Tensor(Box<View>),
}

/// A storage a pickle mentions: its key and its number of elements.
#[derive(Clone, Debug)]
pub(super) struct Mention {
    pub(super) key: String,
    pub(super) kind: Kind,
    pub(super) elements: u64,
}

/// One pickle, read.
#[derive(Debug)]
pub(super) struct Pickle<'a> {
    bytes: &'a [u8],
    values: Vec<Value>,
    /// What it stands for.
    pub(super) root: Id,
    /// The storages it mentions.
    pub(super) storages: Vec<Mention>,
    /// Where it ends.
    pub(super) length: usize,
}

impl Pickle<'_> {
    pub(super) fn value(&self, id: Id) -> &Value {
        &self.values[id as usize]
    }

    /// A string value.
    pub(super) fn text(&self, id: Id) -> Option<&str> {
        match *self.value(id) {
            Value::Text(start, end) => std::str::from_utf8(&self.bytes[start as usize..end as usize]).ok(),
            _ => None,
        }
    }

    /// The bytes of an opaque value.
    pub(super) fn opaque(&self, id: Id) -> Option<&[u8]> {
        match *self.value(id) {
            Value::Opaque(start, end) => Some(&self.bytes[start as usize..end as usize]),
            _ => None,
        }
    }

    /// The value of a key in a dict.
    pub(super) fn entry(&self, dict: Id, key: &str) -> Option<Id> {
        let Value::Dict(pairs) = self.value(dict) else { return None };
        pairs.iter().rev().find(|(k, _)| self.text(*k) == Some(key)).map(|&(_, value)| value)
    }
}
