//! Sizes on the command line: WIDTHxHEIGHT everywhere, as file managers and cameras say them.

/// (height, width) of `WIDTHxHEIGHT`.
///
/// # Errors
/// A sentence for clap.
pub(crate) fn parse(text: &str) -> Result<(usize, usize), String> {
    let parsed = text.split_once(['x', 'X', '×']).and_then(|(w, h)| Some((h.parse().ok()?, w.parse().ok()?)));
    match parsed {
        Some((h, w)) if (1..=1 << 16).contains(&h) && (1..=1 << 16).contains(&w) => Ok((h, w)),
        _ => Err("expected WIDTHxHEIGHT, such as 640x480".into()),
    }
}

/// `WIDTHxHEIGHT` of (height, width).
pub(crate) fn words((h, w): (usize, usize)) -> String {
    format!("{w}x{h}")
}

/// What to say about a size that does not fit one that is fixed: if the sides are the wrong way round, how to write them.
pub(crate) fn cure(given: (usize, usize), fixed: (usize, usize)) -> String {
    match given == (fixed.1, fixed.0) {
        true => format!("sizes are WIDTHxHEIGHT; write --size {}", words(fixed)),
        false => format!("leave --size out, or write --size {}", words(fixed)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn width_comes_first() {
        assert_eq!(parse("640x480"), Ok((480, 640)));
        assert_eq!(words((480, 640)), "640x480");
        for wrong in ["640", "x480", "640x", "0x3", "70000x1", "6 40x480", "-1x2"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(cure((480, 640), (640, 480)).contains("--size 480x640"));
        assert!(cure((1, 2), (640, 480)).contains("leave --size out"));
    }
}
