//! How weights differ from what an architecture asks for.

use std::fmt;

/// The most names of one list that a message shows.
const SHOWN: usize = 40;

/// How weights differ from what an architecture asks for.
#[derive(Clone, Debug, Default)]
pub struct Misfit {
    /// The architecture.
    pub architecture: &'static str,
    /// Whether it was chosen as the nearest, not named by the caller.
    pub guessed: bool,
    /// What it asks for and is not there: name and shape.
    pub missing: Vec<(String, Vec<usize>)>,
    /// What is there and it does not ask for.
    pub unexpected: Vec<String>,
    /// What is there in another type or shape: name, the shape asked for, what is there.
    pub misshapen: Vec<(String, Vec<usize>, String)>,
}

impl Misfit {
    /// How many tensors differ.
    pub fn differences(&self) -> usize {
        self.missing.len() + self.unexpected.len() + self.misshapen.len()
    }
}

fn list(
    f: &mut fmt::Formatter<'_>,
    title: &str,
    lines: impl ExactSizeIterator<Item = String>,
) -> fmt::Result {
    let count = lines.len();
    if count > 0 {
        write!(f, "\n  {title} ({count}):")?;
    }
    for line in lines.take(SHOWN) {
        write!(f, "\n    {line}")?;
    }
    if count > SHOWN { write!(f, "\n    and {} more", count - SHOWN) } else { Ok(()) }
}

impl fmt::Display for Misfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.guessed {
            write!(f, "no known architecture has these tensors; the nearest is {}", self.architecture)?;
        } else {
            write!(f, "the tensors are not those of {}", self.architecture)?;
        }
        list(f, "missing", self.missing.iter().map(|(name, shape)| format!("{name} {shape:?}")))?;
        list(f, "unexpected", self.unexpected.iter().cloned())?;
        let wrong = |(name, expected, got): &(String, Vec<usize>, String)| {
            format!("{name} should be {expected:?}, is {got}")
        };
        list(f, "of another shape or type", self.misshapen.iter().map(wrong))
    }
}
