//! The token that clients must send, if there is one. Hashes are compared, in constant time, so that a clock tells nothing about the token.

use std::path::Path;

use crate::error::{Error, Result};

/// The fingerprint of the token.
#[derive(Clone, Debug)]
pub struct Token(blake3::Hash);

/// Shorter tokens could be guessed.
const SHORTEST: usize = 16;

impl Token {
    /// The token in a file, without white space around it.
    ///
    /// # Errors
    /// If the file cannot be read or the token is short.
    pub fn load(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(Error::io(path))?;
        Self::new(&text).map_err(|reason| Error::setup(path.display().to_string(), reason))
    }

    /// This token.
    ///
    /// # Errors
    /// If it is short.
    pub fn new(text: &str) -> std::result::Result<Self, String> {
        let text = text.trim();
        match text.len() < SHORTEST {
            true => Err(format!("a token of at least {SHORTEST} characters is needed")),
            false => Ok(Self(blake3::hash(text.as_bytes()))),
        }
    }

    /// Whether a header `Authorization` holds the token.
    pub fn accepts(&self, header: Option<&[u8]>) -> bool {
        let Some((scheme, token)) = header.and_then(|header| header.split_at_checked(7)) else {
            return false;
        };
        // the comparison of hashes takes the same time wherever they differ
        scheme.eq_ignore_ascii_case(b"bearer ") && blake3::hash(token.trim_ascii()) == self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_token_is_accepted() {
        let token = Token::new(" 0123456789abcdef\n").unwrap();
        assert!(token.accepts(Some(b"Bearer 0123456789abcdef")));
        assert!(token.accepts(Some(b"bearer  0123456789abcdef ")));
        for header in ["", "Bearer ", "Basic 0123456789abcdef", "Bearer 0123456789abcdeg", "0123456789abcdef"]
        {
            assert!(!token.accepts(Some(header.as_bytes())), "{header}");
        }
        assert!(!token.accepts(None));
        assert!(Token::new("short").is_err());
    }
}
