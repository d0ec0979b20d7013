//! The datatypes of the protocol that this server reads or writes.

use crate::error::{Error, Result};

/// What the values of a tensor are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Datatype {
    /// One byte, 0 or 1.
    Bool,
    /// Unsigned bytes.
    Uint8,
    /// Signed 64-bit numbers.
    Int64,
    /// Half precision.
    Fp16,
    /// Single precision.
    Fp32,
    /// Double precision.
    Fp64,
    /// Strings of bytes, each with its length in front in binary form.
    Bytes,
}

const ALL: [Datatype; 7] = [
    Datatype::Bool,
    Datatype::Uint8,
    Datatype::Int64,
    Datatype::Fp16,
    Datatype::Fp32,
    Datatype::Fp64,
    Datatype::Bytes,
];

impl Datatype {
    /// Its name in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bool => "BOOL",
            Self::Uint8 => "UINT8",
            Self::Int64 => "INT64",
            Self::Fp16 => "FP16",
            Self::Fp32 => "FP32",
            Self::Fp64 => "FP64",
            Self::Bytes => "BYTES",
        }
    }

    /// The bytes of one value; `None` if they vary.
    pub fn width(self) -> Option<usize> {
        match self {
            Self::Bool | Self::Uint8 => Some(1),
            Self::Fp16 => Some(2),
            Self::Fp32 => Some(4),
            Self::Int64 | Self::Fp64 => Some(8),
            Self::Bytes => None,
        }
    }

    /// The datatype of an input by its name.
    ///
    /// # Errors
    /// If inputs of that datatype are not read.
    pub fn of_input(input: &str, name: &str) -> Result<Self> {
        let known = ALL.into_iter().find(|datatype| datatype.name() == name);
        known
            .filter(|datatype| matches!(datatype, Self::Uint8 | Self::Fp16 | Self::Fp32 | Self::Bytes))
            .ok_or_else(|| {
                let reason = format!("datatype {name:?} is not read; FP32, FP16, UINT8 and BYTES are");
                Error::malformed(format!("input {input}"), reason)
            })
    }
}
