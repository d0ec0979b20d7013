//! Reading a body: within a size, within a time, decompressed within the same size; and compressing an answer for those who ask.

use std::io::{Read, Write};

use axum::body::Body;
use axum::http::{HeaderMap, header};
use bytes::{Bytes, BytesMut};
use flate2::Compression;
use http_body_util::BodyExt;

use crate::budget::Share;
use crate::error::{Error, Result};
use crate::limits::Limits;

/// Reads a body; `share` holds its bytes.
///
/// # Errors
/// If it is larger than the limit (as announced, as sent or as decompressed), does not come in time, breaks off, is compressed in a way not read here, or
/// requests hold as much as they may.
pub(crate) async fn read(
    headers: &HeaderMap,
    body: Body,
    limits: &Limits,
    share: &mut Share,
) -> Result<Bytes> {
    let (limit, time) = (limits.body_bytes, limits.body_time);
    let too_large = || Error::TooLarge { what: "body", limit, unit: "bytes" };
    let announced = headers.get(header::CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
    if announced.is_some_and(|length| length > limit as u64) {
        return Err(too_large());
    }
    let coding = headers.get(header::CONTENT_ENCODING).map_or("identity", |v| v.to_str().unwrap_or("?"));
    let coding = Coding::named(coding)?;
    let whole = async {
        let (mut whole, mut body) = (BytesMut::new(), body);
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame.map_err(|_| Error::Broken)?.into_data() else { continue };
            if whole.len() + data.len() > limit {
                return Err(too_large());
            }
            share.grow(data.len())?;
            // the usual case: a body that came whole is not copied
            if announced == Some(data.len() as u64) {
                return Ok(data);
            }
            if whole.is_empty() {
                whole.reserve(announced.map_or(0, |n| (n as usize).min(1 << 20)));
            }
            whole.extend_from_slice(&data);
        }
        Ok(whole.freeze())
    };
    let sent = tokio::time::timeout(time, whole).await.map_err(|_| Error::SlowBody { limit: time })??;
    if coding == Coding::Identity {
        return Ok(sent);
    }
    // other connections go on meanwhile
    let decoded = tokio::task::block_in_place(|| coding.decoded(sent, limit))?;
    share.hold(decoded.len())?;
    Ok(decoded)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Coding {
    Identity,
    Gzip,
    Deflate,
}

impl Coding {
    fn named(name: &str) -> Result<Self> {
        match name.trim().to_ascii_lowercase().as_str() {
            "identity" | "" => Ok(Self::Identity),
            "gzip" | "x-gzip" => Ok(Self::Gzip),
            "deflate" => Ok(Self::Deflate),
            other => Err(Error::Unsupported {
                what: "Content-Encoding",
                value: other.chars().take(40).collect(),
                accepted: "gzip and deflate are",
            }),
        }
    }

    fn decoded(self, sent: Bytes, limit: usize) -> Result<Bytes> {
        match self {
            Self::Identity => Ok(sent),
            Self::Gzip => inflated(flate2::read::MultiGzDecoder::new(&*sent), limit),
            // HTTP's "deflate" is zlib's format
            Self::Deflate => inflated(flate2::read::ZlibDecoder::new(&*sent), limit),
        }
    }
}

/// At most `limit` bytes of a decoder; a byte more is an error, not an allocation.
fn inflated(decoder: impl Read, limit: usize) -> Result<Bytes> {
    let mut whole = Vec::new();
    decoder
        .take(limit as u64 + 1)
        .read_to_end(&mut whole)
        .map_err(|e| Error::malformed("compressed body", e.to_string()))?;
    match whole.len() > limit {
        true => Err(Error::TooLarge { what: "decompressed body", limit, unit: "bytes" }),
        false => Ok(whole.into()),
    }
}

/// Answers shorter than this are not compressed.
const WORTH_IT: usize = 1024;

/// The answer compressed as the client asked, with the name of the coding; `None` if it did not ask.
pub(crate) fn compressed(headers: &HeaderMap, body: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    let wanted = headers.get(header::ACCEPT_ENCODING)?.to_str().ok()?;
    let accepts = |coding: &str| {
        wanted.split(',').any(|part| {
            let mut words = part.split(';').map(str::trim);
            words.next().is_some_and(|name| name.eq_ignore_ascii_case(coding)) && !words.any(|q| q == "q=0")
        })
    };
    if body.len() < WORTH_IT || !(accepts("gzip") || accepts("deflate")) {
        return None;
    }
    let fast = Compression::new(1);
    // other connections go on meanwhile
    tokio::task::block_in_place(|| {
        if accepts("gzip") {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), fast);
            encoder.write_all(body).ok()?;
            return Some(("gzip", encoder.finish().ok()?));
        }
        if accepts("deflate") {
            let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), fast);
            encoder.write_all(body).ok()?;
            return Some(("deflate", encoder.finish().ok()?));
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bomb_is_refused_before_it_is_unpacked() {
        let bomb = {
            let mut encoder = flate2::write::GzEncoder::new(Vec::new(), Compression::new(9));
            encoder.write_all(&vec![0; 10 << 20]).unwrap();
            encoder.finish().unwrap()
        };
        assert!(bomb.len() < 20_000);
        let refused = Coding::Gzip.decoded(bomb.clone().into(), 1 << 20);
        assert!(matches!(refused, Err(Error::TooLarge { .. })));
        assert_eq!(Coding::Gzip.decoded(bomb.into(), 10 << 20).unwrap().len(), 10 << 20);
        assert!(Coding::Gzip.decoded(Bytes::from_static(b"not gzip"), 100).is_err());
        assert!(Coding::named("br").is_err());
    }

    #[test]
    fn answers_are_compressed_only_when_asked() {
        let body = vec![7; 4000];
        let mut headers = HeaderMap::new();
        assert!(compressed(&headers, &body).is_none());
        headers.insert(header::ACCEPT_ENCODING, "br, deflate;q=0, GZIP".parse().unwrap());
        let (coding, bytes) = compressed(&headers, &body).unwrap();
        assert_eq!(coding, "gzip");
        assert_eq!(Coding::Gzip.decoded(bytes.into(), 4000).unwrap(), body);
        assert!(compressed(&headers, &body[..100]).is_none());
    }
}
