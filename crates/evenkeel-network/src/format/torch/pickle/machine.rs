//! The stack machine: instructions that build numbers, strings, lists, tuples and dicts.

use std::collections::HashMap;

use super::{DEEPEST, Id, LONGEST, MOST_VALUES, Mention, Pickle, Value};

pub(super) struct Machine<'a> {
    pub(super) bytes: &'a [u8],
    at: usize,
    pub(super) values: Vec<Value>,
    pub(super) stack: Vec<Id>,
    marks: Vec<usize>,
    memo: HashMap<u32, Id>,
    pub(super) storages: Vec<Mention>,
    pub(super) keys: HashMap<String, u32>,
    /// What applied names have made, in values.
    pub(super) copied: usize,
}

/// The pickle at the start of these bytes.
///
/// # Errors
/// In words: what it holds that is not data, or where it is damaged.
pub(in crate::format::torch) fn read(bytes: &[u8]) -> Result<Pickle<'_>, String> {
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

    pub(super) fn push(&mut self, value: Value) -> Result<(), String> {
        if self.values.len() == MOST_VALUES {
            return Err(format!("its pickle makes more than {MOST_VALUES} values"));
        }
        self.stack.push(self.values.len() as Id);
        self.values.push(value);
        Ok(())
    }

    pub(super) fn pop(&mut self) -> Result<Id, String> {
        let below = self.marks.last().copied().unwrap_or(0);
        if self.stack.len() <= below {
            return Err("its pickle takes from an empty stack".into());
        }
        self.stack.pop().ok_or_else(|| "its pickle takes from an empty stack".into())
    }

    pub(super) fn top(&self) -> Result<Id, String> {
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
}
