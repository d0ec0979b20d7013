//! The program, started on a port of its own, and a client that speaks just enough HTTP.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;

/// A picture of the server's page.
pub(crate) fn example(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../evenkeel-serve/src/examples").join(name)
}

/// A file beside the shipped networks.
pub(crate) fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../evenkeel/models").join(name)
}

pub(crate) fn evenkeel(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_evenkeel")).args(args).output().unwrap()
}

/// A server that ends with the test.
pub(crate) struct Program {
    child: Child,
    /// Reads what is logged; a pipe that nobody reads would stop the server.
    log: Option<JoinHandle<String>>,
    pub(crate) address: String,
}

impl Program {
    /// `evenkeel serve` with these arguments, when it listens.
    pub(crate) fn start(args: &[&str]) -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_evenkeel"))
            .args(["serve", "--port", "0", "--threads", "2", "--request-time", "300"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let address = line.trim().rsplit("http://").next().unwrap_or_default().to_owned();
        let mut stderr = child.stderr.take().unwrap();
        let log = std::thread::spawn(move || {
            let mut log = String::new();
            stderr.read_to_string(&mut log).unwrap();
            log
        });
        assert!(line.contains("http://"), "{line}");
        Self { child, log: Some(log), address }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(300))).unwrap();
        stream
    }

    pub(crate) fn terminate(&self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
    }

    /// Waits for the end: the exit code, and what was logged.
    pub(crate) fn end(mut self) -> (Option<i32>, String) {
        let log = self.log.take().unwrap().join().unwrap();
        (self.child.wait().unwrap().code(), log)
    }

    /// The body of a 200.
    pub(crate) fn post(&self, path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
        let (status, body) = exchange(&mut self.connect(), &message(path, headers, body)).unwrap();
        assert_eq!(status, 200, "{path}: {}", String::from_utf8_lossy(&body));
        body
    }

    /// What `/infer` says of image files: the verdicts, without a score unless `outputs` has it.
    pub(crate) fn verdicts(
        &self,
        model: &str,
        files: &[PathBuf],
        outputs: &[&str],
        parameters: &Value,
    ) -> Vec<Value> {
        let files: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        let binary: Vec<u8> =
            files.iter().flat_map(|file| [&(file.len() as u32).to_le_bytes()[..], file].concat()).collect();
        let outputs: Vec<Value> = outputs.iter().map(|name| serde_json::json!({ "name": name })).collect();
        let head = serde_json::json!({
            "inputs": [{ "name": "image", "shape": [files.len()], "datatype": "BYTES", "parameters": { "binary_data_size": binary.len() } }],
            "outputs": outputs,
            "parameters": parameters,
        })
        .to_string();
        let length = format!("Inference-Header-Content-Length: {}\r\n", head.len());
        let answer =
            self.post(&format!("/v2/models/{model}/infer"), &length, &[head.as_bytes(), &binary].concat());
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let last = answer["outputs"].as_array().unwrap().last().unwrap();
        last["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|v| serde_json::from_str(v.as_str().unwrap()).unwrap())
            .collect()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // a test that failed leaves nothing behind
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(crate) fn message(path: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("POST {path} HTTP/1.1\r\nhost: x\r\n{headers}content-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

/// Sends a request and reads its answer; `None` if the connection ends before the answer's first byte.
pub(crate) fn exchange(stream: &mut TcpStream, bytes: &[u8]) -> Option<(u16, Vec<u8>)> {
    stream.write_all(bytes).ok()?;
    read(stream)
}

/// Reads one answer. An answer that breaks off fails the test.
pub(crate) fn read(stream: &mut TcpStream) -> Option<(u16, Vec<u8>)> {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read(&mut byte) {
            Ok(1) => head.push(byte[0]),
            _ => {
                assert!(head.is_empty(), "broken off: {}", String::from_utf8_lossy(&head));
                return None;
            }
        }
    }
    let head = String::from_utf8(head).unwrap().to_lowercase();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    stream.read_exact(&mut body).expect("a whole answer");
    Some((status, body))
}
