//! A small blocking client over plain sockets, which can also send what no proper client would.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use evenkeel::shipped;
use evenkeel_serve::{Hosted, Limits, Options, Server};
use serde_json::Value;

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("{e}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// The sentence of an error.
    pub(crate) fn error(&self) -> String {
        self.json()["error"].as_str().expect("every error is {\"error\": …}").to_owned()
    }
}

/// A server with the shipped classifier, on a port of its own.
pub(crate) fn server(change: impl FnOnce(&mut Options)) -> Server {
    let mut options = Options::default();
    options.port = 0;
    options.threads = 2;
    options.workers = 2;
    change(&mut options);
    let hosted = Hosted::shipped(shipped::named("classifier").unwrap()).unwrap();
    Server::start(options, vec![hosted]).unwrap()
}

pub(crate) fn quick_limits() -> Limits {
    let mut limits = Limits::default();
    limits.header_time = Duration::from_millis(400);
    limits.body_time = Duration::from_millis(600);
    limits.body_bytes = 4 << 20;
    limits
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    stream
}

/// Sends bytes and reads one answer.
pub(crate) fn exchange(stream: &mut TcpStream, bytes: &[u8]) -> Option<Answer> {
    stream.write_all(bytes).ok()?;
    read(stream)
}

/// Reads one answer; `None` if the connection ends before it.
pub(crate) fn read(stream: &mut TcpStream) -> Option<Answer> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        head.push(byte[0]);
    }
    let text = String::from_utf8(head).unwrap();
    let mut lines = text.lines();
    let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    let header = |line: &str| line.split_once(':').map(|(k, v)| (k.to_owned(), v.trim().to_owned()));
    let headers: Vec<_> = lines.filter_map(header).collect();
    let mut answer = Answer { status, headers, body: Vec::new() };
    let length = answer.header("content-length").map_or(0, |v| v.parse().unwrap());
    answer.body.resize(length, 0);
    stream.read_exact(&mut answer.body).ok()?;
    Some(answer)
}

/// One request on a connection of its own.
pub(crate) fn request(
    address: SocketAddr,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> Answer {
    let mut stream = connect(address);
    exchange(&mut stream, &message(method, path, headers, body)).expect("an answer")
}

pub(crate) fn message(method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Vec<u8> {
    let mut text = format!("{method} {path} HTTP/1.1\r\nhost: test\r\ncontent-length: {}\r\n", body.len());
    headers.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
    let mut bytes = (text + "\r\n").into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

pub(crate) const INFER: &str = "/v2/models/classifier/infer";
pub(crate) const JUDGE: &str = "/v2/models/classifier/judge";

/// A request for a grey image of this side.
pub(crate) fn grey(side: usize) -> Value {
    let data = vec![0.5; 3 * side * side];
    serde_json::json!({ "inputs": [{ "name": "image", "shape": [1, 3, side, side], "datatype": "FP32", "data": data }] })
}
