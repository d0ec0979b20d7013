//! The types that settings have, and how each is read from a [`Value`] that its knob's kind has accepted.

use super::Value;
use crate::error::{Error, Result};

/// A field of a settings struct.
pub trait Setting {
    /// Its value; `None` if it is left to the entry.
    fn value(&self) -> Option<Value>;

    /// Takes a value.
    ///
    /// # Errors
    /// If it is not of this type, or names something that is not there.
    fn assign(&mut self, value: &Value) -> Result<()>;
}

fn wrong(value: &Value) -> Error {
    Error::setting(value.to_string(), "is not a value of this setting")
}

impl Setting for usize {
    fn value(&self) -> Option<Value> {
        Some((*self).into())
    }

    fn assign(&mut self, value: &Value) -> Result<()> {
        let Value::Whole(whole) = value else { return Err(wrong(value)) };
        *self = usize::try_from(*whole).map_err(|_| wrong(value))?;
        Ok(())
    }
}

impl Setting for u64 {
    fn value(&self) -> Option<Value> {
        Some((*self).into())
    }

    fn assign(&mut self, value: &Value) -> Result<()> {
        let Value::Whole(whole) = value else { return Err(wrong(value)) };
        *self = *whole;
        Ok(())
    }
}

impl Setting for f64 {
    fn value(&self) -> Option<Value> {
        Some((*self).into())
    }

    fn assign(&mut self, value: &Value) -> Result<()> {
        let Value::Number(number) = value else { return Err(wrong(value)) };
        *self = *number;
        Ok(())
    }
}

impl Setting for bool {
    fn value(&self) -> Option<Value> {
        Some((*self).into())
    }

    fn assign(&mut self, value: &Value) -> Result<()> {
        let Value::Switch(yes) = value else { return Err(wrong(value)) };
        *self = *yes;
        Ok(())
    }
}

/// A setting that may be left out.
impl<T: Setting + Default> Setting for Option<T> {
    fn value(&self) -> Option<Value> {
        self.as_ref().and_then(Setting::value)
    }

    fn assign(&mut self, value: &Value) -> Result<()> {
        self.get_or_insert_default().assign(value)
    }
}

/// A choice between names.
pub trait Choice: Copy + 'static {
    /// All there are.
    const ALL: &'static [Self];
    /// What they are called together: `norm`.
    const KIND: &'static str;

    /// Its name in settings.
    fn name(self) -> &'static str;

    /// Every name.
    fn names() -> Vec<&'static str> {
        Self::ALL.iter().map(|one| one.name()).collect()
    }

    /// The one of this name.
    ///
    /// # Errors
    /// Listing the names there are.
    fn named(name: &str) -> Result<Self> {
        Self::ALL.iter().copied().find(|one| one.name() == name).ok_or_else(|| {
            Error::setting(
                format!("{} {name}", Self::KIND),
                format!("is not one of {}", Self::names().join(", ")),
            )
        })
    }
}

impl<C: Choice> Setting for C {
    fn value(&self) -> Option<Value> {
        Some(self.name().into())
    }

    fn assign(&mut self, value: &Value) -> Result<()> {
        let Value::Text(name) = value else { return Err(wrong(value)) };
        *self = Self::named(name)?;
        Ok(())
    }
}
