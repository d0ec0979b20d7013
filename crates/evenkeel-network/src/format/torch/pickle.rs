//! A reader of the pickles in PyTorch checkpoints, that builds plain values and can call nothing.
//!
//! A pickle is a program for a stack machine. Of its instructions only those that build numbers, strings, lists, tuples and dicts are
//! followed; of the names it may mention only those in [`Name`], which stand for shapes of data and are never looked up anywhere. Values live
//! in one list and refer to each other by place, so that nothing recurses however deeply they nest, and what is shared is
//! kept once. The number of values is bounded by [`MOST_VALUES`], the rest of the memory by [`LONGEST`]: under 200 MB for any pickle.

use std::collections::HashMap;

use super::storage::{Kind, View};

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

struct Machine<'a> {
    bytes: &'a [u8],
    at: usize,
    values: Vec<Value>,
    stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
    storages: Vec<Mention>,
    keys: HashMap<String, u32>,
    /// What applied names have made, in values.
    copied: usize,
}

/// The pickle at the start of these bytes.
///
/// # Errors
/// In words: what it holds that is not data, or where it is damaged.
pub(super) fn read(bytes: &[u8]) -> Result<Pickle<'_>, String> {
    let bytes = &bytes[..bytes.len().min(LONGEST)];
    let mut machine = Machine {
        bytes,
        at: 0,
        values: Vec::new(),
        stack: Vec::new(),
        marks: Vec::new(),
        memo: HashMap::new(),
        storages: Vec::new(),
        keys: HashMap::new(),
        copied: 0,
    };
    loop {
        let [instruction] = machine.take()?;
        if instruction == b'.' {
            let root = machine.pop()?;
            let Machine { values, storages, at, .. } = machine;
            return Ok(Pickle { bytes, values, root, storages, length: at });
        }
        machine.follow(instruction)?;
    }
}

impl Machine<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], String> {
        let found = self.bytes.get(self.at..).and_then(|rest| rest.first_chunk());
        self.at += N;
        found.copied().ok_or_else(|| self.cut())
    }

    fn cut(&self) -> String {
        if self.bytes.len() == LONGEST {
            format!("its pickle is longer than {} MB", LONGEST >> 20)
        } else {
            "its pickle ends too early".into()
        }
    }

    fn skip(&mut self, length: u64) -> Result<(u32, u32), String> {
        let end = usize::try_from(length).ok().and_then(|length| self.at.checked_add(length));
        let end = end.filter(|&end| end <= self.bytes.len()).ok_or_else(|| self.cut())?;
        let range = (self.at as u32, end as u32);
        self.at = end;
        Ok(range)
    }

    fn text(&mut self, length: u64) -> Result<(), String> {
        let (start, end) = self.skip(length)?;
        if std::str::from_utf8(&self.bytes[start as usize..end as usize]).is_err() {
            return Err("its pickle holds a string that is not UTF-8".into());
        }
        self.push(Value::Text(start, end))
    }

    fn opaque(&mut self, length: u64) -> Result<(), String> {
        let (start, end) = self.skip(length)?;
        self.push(Value::Opaque(start, end))
    }

    fn line(&mut self) -> Result<String, String> {
        let rest = &self.bytes[self.at.min(self.bytes.len())..];
        let length =
            rest.iter().take(256).position(|&b| b == b'\n').ok_or("its pickle holds an endless name")?;
        self.at += length + 1;
        Ok(String::from_utf8_lossy(&rest[..length]).into_owned())
    }

    fn push(&mut self, value: Value) -> Result<(), String> {
        if self.values.len() == MOST_VALUES {
            return Err(format!("its pickle makes more than {MOST_VALUES} values"));
        }
        self.stack.push(self.values.len() as Id);
        self.values.push(value);
        Ok(())
    }

    fn pop(&mut self) -> Result<Id, String> {
        let below = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= below {
            return Err("its pickle takes from an empty stack".into());
        }
        self.stack.pop().ok_or_else(|| "its pickle takes from an empty stack".into())
    }

    fn top(&self) -> Result<Id, String> {
        self.stack.last().copied().ok_or_else(|| "its pickle takes from an empty stack".into())
    }

    fn since_mark(&mut self) -> Result<Vec<Id>, String> {
        let mark = self.marks.pop().ok_or("its pickle goes back to a mark it never set")?;
        Ok(self.stack.split_off(mark))
    }

    fn tuple(&mut self, length: usize) -> Result<(), String> {
        let mut items = vec![0; length];
        for item in items.iter_mut().rev() {
            *item = self.pop()?;
        }
        self.push(Value::Tuple(items))
    }

    fn follow(&mut self, instruction: u8) -> Result<(), String> {
        match instruction {
            0x80 => self.take::<1>().map(drop),
            0x95 => self.take::<8>().map(drop),
            b'(' if self.marks.len() == DEEPEST => Err(format!("its pickle nests deeper than {DEEPEST}")),
            b'(' => {
                self.marks.push(self.stack.len());
                Ok(())
            }
            b'0' => self.pop().map(drop),
            b'2' => self.top().map(|top| self.stack.push(top)),
            b'N' => self.push(Value::None),
            0x88 => self.push(Value::Bool(true)),
            0x89 => self.push(Value::Bool(false)),
            b'K' | b'M' | b'J' | 0x8a | b'G' => self.number(instruction),
            b'X' => self.take().map(u32::from_le_bytes).and_then(|length| self.text(length.into())),
            0x8c => self.take().and_then(|[length]| self.text(length.into())),
            0x8d => self.take().map(u64::from_le_bytes).and_then(|length| self.text(length)),
            b'T' | b'B' => self.take().map(u32::from_le_bytes).and_then(|length| self.opaque(length.into())),
            b'U' | b'C' => self.take().and_then(|[length]| self.opaque(length.into())),
            b'q' | b'r' | 0x94 | b'h' | b'j' => self.remember(instruction),
            b']' | b'}' | b')' | b'l' | b'd' | b't' | 0x85..=0x87 => self.container(instruction),
            b'a' | b'e' | b's' | b'u' => self.fill(instruction),
            b'c' => {
                let (module, item) = (self.line()?, self.line()?);
                self.mention(&module, &item)
            }
            0x93 => {
                let (item, module) = (self.pop()?, self.pop()?);
                let text = |id: Id| match self.values[id as usize] {
                    Value::Text(start, end) => {
                        String::from_utf8_lossy(&self.bytes[start as usize..end as usize]).into_owned()
                    }
                    _ => String::new(),
                };
                let (module, item) = (text(module), text(item));
                self.mention(&module, &item)
            }
            b'R' => self.reduce(),
            b'b' => self.build(),
            b'Q' => self.storage(),
            other => Err(format!("its pickle uses instruction {:?}, which is not data", char::from(other))),
        }
    }

    fn number(&mut self, instruction: u8) -> Result<(), String> {
        let value = match instruction {
            b'K' => Value::Int(self.take::<1>()?[0].into()),
            b'M' => Value::Int(u16::from_le_bytes(self.take()?).into()),
            b'J' => Value::Int(i32::from_le_bytes(self.take()?).into()),
            b'G' => {
                self.take::<8>()?;
                Value::Float
            }
            _ => {
                let [length] = self.take()?;
                let (start, end) = self.skip(length.into())?;
                let digits = &self.bytes[start as usize..end as usize];
                match digits.len() {
                    0..=8 => {
                        let sign = if digits.last().is_some_and(|d| d & 0x80 != 0) { 0xff } else { 0 };
                        let mut bytes = [sign; 8];
                        bytes[..digits.len()].copy_from_slice(digits);
                        Value::Int(i64::from_le_bytes(bytes))
                    }
                    _ => Value::Opaque(start, end),
                }
            }
        };
        self.push(value)
    }

    fn remember(&mut self, instruction: u8) -> Result<(), String> {
        let place = match instruction {
            b'q' | b'h' => self.take::<1>()?[0].into(),
            b'r' | b'j' => u32::from_le_bytes(self.take()?),
            _ => self.memo.len() as u32,
        };
        if matches!(instruction, b'h' | b'j') {
            let kept = self.memo.get(&place).ok_or("its pickle recalls what it never kept")?;
            self.stack.push(*kept);
        } else {
            let top = self.top()?;
            if self.memo.len() == MOST_VALUES {
                return Err(format!("its pickle keeps more than {MOST_VALUES} values"));
            }
            self.memo.insert(place, top);
        }
        Ok(())
    }

    fn container(&mut self, instruction: u8) -> Result<(), String> {
        match instruction {
            b']' => self.push(Value::List(Vec::new())),
            b'}' => self.push(Value::Dict(Vec::new())),
            b')' => self.push(Value::Tuple(Vec::new())),
            b'l' => {
                let items = self.since_mark()?;
                self.push(Value::List(items))
            }
            b't' => {
                let items = self.since_mark()?;
                self.push(Value::Tuple(items))
            }
            b'd' => {
                let items = self.since_mark()?;
                self.push(Value::Dict(items.as_chunks().0.iter().map(|&[k, v]| (k, v)).collect()))
            }
            few => self.tuple(usize::from(few - 0x84)),
        }
    }

    fn fill(&mut self, instruction: u8) -> Result<(), String> {
        let items = match instruction {
            b'a' => vec![self.pop()?],
            b's' => {
                let (value, key) = (self.pop()?, self.pop()?);
                vec![key, value]
            }
            _ => self.since_mark()?,
        };
        let filled = self.top()? as usize;
        match (&mut self.values[filled], instruction) {
            (Value::List(list), b'a' | b'e') => list.extend(items),
            (Value::Dict(dict), b's' | b'u') => dict.extend(items.as_chunks().0.iter().map(|&[k, v]| (k, v))),
            _ => return Err("its pickle fills what is neither a list nor a dict".into()),
        }
        Ok(())
    }

    fn mention(&mut self, module: &str, item: &str) -> Result<(), String> {
        match name(module, item) {
            Some(name) => self.push(Value::Name(name)),
            None => {
                let safe = |text: &str| text.escape_default().to_string();
                Err(format!("its pickle asks for {}.{}, which is not data", safe(module), safe(item)))
            }
        }
    }

    /// A name applied to a tuple.
    fn reduce(&mut self) -> Result<(), String> {
        let (arguments, called) = (self.pop()?, self.pop()?);
        let Value::Tuple(arguments) = &self.values[arguments as usize] else {
            return Err("its pickle applies a name to what is not a tuple".into());
        };
        let first = arguments.first().copied();
        let made = match (&self.values[called as usize], first) {
            (Value::Name(Name::OrderedDict), None) => Value::Dict(Vec::new()),
            (Value::Name(Name::OrderedDict), Some(pairs)) => self.pairs(pairs)?,
            // These stand for their argument, which is shared, not copied.
            (Value::Name(Name::Size | Name::Parameter), Some(same)) => {
                self.stack.push(same);
                return Ok(());
            }
            (Value::Name(Name::Tensor), Some(_)) => Value::Tensor(Box::new(self.view(arguments)?)),
            _ => return Err("its pickle applies what cannot be applied".into()),
        };
        let cost = match &made {
            Value::Dict(pairs) => pairs.len(),
            _ => 8,
        };
        self.copied = self.copied.saturating_add(cost);
        if self.copied > MOST_VALUES {
            return Err(format!("its pickle makes more than {MOST_VALUES} values"));
        }
        self.push(made)
    }

    /// A dict from a list of pairs.
    fn pairs(&self, list: Id) -> Result<Value, String> {
        let wrong = || String::from("its pickle has a dict of what are not pairs");
        let Value::List(items) = &self.values[list as usize] else { return Err(wrong()) };
        let pair = |&id: &Id| match &self.values[id as usize] {
            Value::List(pair) | Value::Tuple(pair) if pair.len() == 2 => Ok((pair[0], pair[1])),
            _ => Err(wrong()),
        };
        Ok(Value::Dict(items.iter().map(pair).collect::<Result<_, _>>()?))
    }

    fn view(&self, arguments: &[Id]) -> Result<View, String> {
        let wrong = || String::from("its pickle has a tensor without storage, offset, shape or strides");
        let &[storage, offset, shape, strides, ..] = arguments else { return Err(wrong()) };
        let numbers = |id: Id| match &self.values[id as usize] {
            Value::Tuple(items) | Value::List(items) if items.len() <= 16 => {
                items.iter().map(|&item| self.natural(item)).collect::<Option<Vec<u64>>>()
            }
            _ => None,
        };
        match (&self.values[storage as usize], self.natural(offset), numbers(shape), numbers(strides)) {
            (&Value::Storage(storage), Some(offset), Some(shape), Some(strides))
                if shape.len() == strides.len() =>
            {
                Ok(View { storage, offset, shape, strides })
            }
            _ => Err(wrong()),
        }
    }

    fn natural(&self, id: Id) -> Option<u64> {
        match self.values[id as usize] {
            Value::Int(value) => u64::try_from(value).ok(),
            _ => None,
        }
    }

    /// The state that an object gets after it is made. Dicts of tensors carry version numbers so; they are let go.
    fn build(&mut self) -> Result<(), String> {
        self.pop()?;
        match self.values[self.top()? as usize] {
            Value::Dict(_) => Ok(()),
            _ => Err("its pickle sets the inner state of what is not a dict".into()),
        }
    }

    /// A storage: ("storage", type, key, device, elements) and perhaps the part of another storage that it is.
    fn storage(&mut self) -> Result<(), String> {
        let wrong = || String::from("its pickle refers to something outside it that is not a storage");
        let id = self.pop()?;
        let Value::Tuple(parts) = &self.values[id as usize] else { return Err(wrong()) };
        let text = |id: Id| match self.values[id as usize] {
            Value::Text(start, end) => std::str::from_utf8(&self.bytes[start as usize..end as usize]).ok(),
            _ => None,
        };
        let (&[tag, kind, key, _, elements], part) = match parts.split_at_checked(5) {
            Some((five, part)) => (five.first_chunk::<5>().ok_or_else(wrong)?, part),
            None => return Err(wrong()),
        };
        if part.iter().any(|&part| !matches!(self.values[part as usize], Value::None)) {
            return Err("its pickle has a storage that is a part of another, which is not supported".into());
        }
        let (Some("storage"), &Value::Name(Name::Storage(kind)), Some(key), Some(elements)) =
            (text(tag), &self.values[kind as usize], text(key), self.natural(elements))
        else {
            return Err(wrong());
        };
        let next = self.storages.len() as u32;
        let place = *self.keys.entry(key.to_string()).or_insert(next);
        if place == next {
            if self.storages.len() == MOST_STORAGES {
                return Err(format!("its pickle mentions more than {MOST_STORAGES} storages"));
            }
            self.storages.push(Mention { key: key.to_string(), kind, elements });
        } else {
            let earlier = &self.storages[place as usize];
            if earlier.kind != kind || earlier.elements != elements {
                return Err(format!("its pickle describes storage {key:?} in two ways"));
            }
        }
        self.push(Value::Storage(place))
    }
}
