//! What a pickle makes of the names it mentions: storages, tensors over them, ordered dicts.

use super::machine::Machine;
use super::{Id, MOST_STORAGES, MOST_VALUES, Mention, Name, Value, name};
use crate::format::torch::storage::View;

impl Machine<'_> {
    pub(super) fn mention(&mut self, module: &str, item: &str) -> Result<(), String> {
        match name(module, item) {
            Some(name) => self.push(Value::Name(name)),
            None => {
                let safe = |text: &str| text.escape_default().to_string();
                Err(format!("its pickle asks for {}.{}, which is not data", safe(module), safe(item)))
            }
        }
    }

    /// A name applied to a tuple.
    pub(super) fn reduce(&mut self) -> Result<(), String> {
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
    pub(super) fn build(&mut self) -> Result<(), String> {
        self.pop()?;
        match self.values[self.top()? as usize] {
            Value::Dict(_) => Ok(()),
            _ => Err("its pickle sets the inner state of what is not a dict".into()),
        }
    }

    /// A storage: ("storage", type, key, device, elements) and perhaps the part of another storage that it is.
    pub(super) fn storage(&mut self) -> Result<(), String> {
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
