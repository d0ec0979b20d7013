//! Sees what hyper hides: a request with both `Transfer-Encoding` and `Content-Length`, whose end two servers in a row may find in different places.
//!
//! hyper takes such a request and leaves the length out of its headers. A [`HeadWatch`] is fed the bytes of a connection as they are read, follows heads and
//! bodies of known length, and says whether a head had both. A chunked body ends the watch: the server closes the connection after it.

/// Heads longer than this are refused by hyper as well.
pub(crate) const LONGEST_HEAD: usize = 64 << 10;

/// Where in the stream we are.
#[derive(Debug)]
enum State {
    Head(Vec<u8>),
    Body(u64),
    Over,
}

/// Watches the bytes of one connection.
#[derive(Debug)]
pub(crate) struct HeadWatch {
    state: State,
    both: bool,
}

impl Default for HeadWatch {
    fn default() -> Self {
        Self { state: State::Head(Vec::new()), both: false }
    }
}

impl HeadWatch {
    /// Whether a head had both.
    pub(crate) fn both(&self) -> bool {
        self.both
    }

    /// The next bytes of the connection.
    pub(crate) fn feed(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            match &mut self.state {
                State::Over => return,
                State::Body(left) => {
                    let step = usize::try_from(*left).unwrap_or(usize::MAX).min(bytes.len());
                    *left -= step as u64;
                    bytes = &bytes[step..];
                    if *left == 0 {
                        self.state = State::Head(Vec::new());
                    }
                }
                State::Head(head) => {
                    let before = head.len();
                    // the usual case: a head that comes whole, in front of its body
                    if let (0, Some(end)) = (before, end_of_head(bytes, 0)) {
                        if end > LONGEST_HEAD {
                            self.state = State::Over;
                            return;
                        }
                        let (next, both) = judge(&bytes[..end]);
                        bytes = &bytes[end..];
                        self.both |= both;
                        self.state = next;
                        continue;
                    }
                    head.extend_from_slice(
                        &bytes[..bytes.len().min(LONGEST_HEAD + 4 - before.min(LONGEST_HEAD))],
                    );
                    match end_of_head(head, before) {
                        Some(end) => {
                            bytes = &bytes[end - before..];
                            head.truncate(end);
                            let (next, both) = judge(head);
                            self.both |= both;
                            self.state = next;
                        }
                        None if head.len() > LONGEST_HEAD => self.state = State::Over,
                        None => return,
                    }
                }
            }
        }
    }
}

/// Where the empty line ends; bytes before `seen` were searched before.
fn end_of_head(head: &[u8], seen: usize) -> Option<usize> {
    let start = seen.saturating_sub(3);
    let mut lines = head[start..].iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    lines.find_map(|(i, _)| match head[start + i + 1..] {
        // hyper takes a bare line feed for a line's end as well
        [b'\n', ..] => Some(start + i + 2),
        [b'\r', b'\n', ..] => Some(start + i + 3),
        _ => None,
    })
}

/// What follows a head, and whether it had both headers.
fn judge(head: &[u8]) -> (State, bool) {
    let (mut length, mut encoded) = (None, false);
    for line in head.split(|b| *b == b'\n') {
        let Some(colon) = line.iter().position(|b| *b == b':') else { continue };
        let (name, value) = (line[..colon].trim_ascii(), line[colon + 1..].trim_ascii());
        if name.eq_ignore_ascii_case(b"content-length") {
            length = Some(std::str::from_utf8(value).ok().and_then(|text| text.parse::<u64>().ok()));
        }
        encoded |= name.eq_ignore_ascii_case(b"transfer-encoding");
    }
    let next = match (length, encoded) {
        (_, true) | (Some(None), _) => State::Over,
        (Some(Some(left)), false) if left > 0 => State::Body(left),
        _ => State::Head(Vec::new()),
    };
    (next, encoded && length.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched(stream: &str, step: usize) -> bool {
        let mut watch = HeadWatch::default();
        stream.as_bytes().chunks(step).for_each(|bytes| watch.feed(bytes));
        watch.both()
    }

    #[test]
    fn both_headers_are_seen_wherever_they_stand() {
        let first = "POST / HTTP/1.1\r\ncontent-length: 5\r\n\r\nhello";
        let inside = "GET / HTTP/1.1\r\ncontent-length: 3\r\ntransfer-encoding: chunked\r\n\r\n";
        let decoy = format!("POST / HTTP/1.1\r\ncontent-length: {}\r\n\r\n{inside}", inside.len());
        for step in [1, 2, 7, 4096] {
            for (both, tail) in [
                (true, "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n"),
                (true, "POST / HTTP/1.1\r\nContent-Length: 3\r\ntransfer-encoding : chunked\r\n\r\n"),
                (true, "POST / HTTP/1.1\nContent-Length: 3\ntransfer-encoding: chunked\n\n"),
                (false, "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n"),
                (false, "GET / HTTP/1.1\r\n\r\n"),
            ] {
                assert_eq!(watched(tail, step), both, "{tail}");
                assert_eq!(watched(&format!("{first}{first}{tail}"), step), both, "{tail}");
            }
            assert!(!watched(&decoy, step), "a body that looks like a head");
        }
    }

    #[test]
    fn an_endless_head_is_not_kept() {
        let mut watch = HeadWatch::default();
        (0..100).for_each(|_| watch.feed(&[b'a'; 4096]));
        assert!(matches!(watch.state, State::Over));
    }
}
