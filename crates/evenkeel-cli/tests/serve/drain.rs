//! SIGTERM under load: every request that the server took is answered whole, and the program ends with 0.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::program::{Program, exchange, message};

const INFER: &str = "/v2/models/classifier/infer";

fn request(parameters: &Value) -> Vec<u8> {
    let pixels = vec![127u8; 3 * 64 * 64];
    let body = json!({
        "inputs": [{ "name": "image", "shape": [1, 64, 64, 3], "datatype": "UINT8", "data": pixels }],
        "parameters": parameters,
    });
    message(INFER, "", body.to_string().as_bytes())
}

#[test]
fn every_accepted_request_is_answered_when_the_program_is_told_to_end() {
    let server = Program::start(&["embedded:classifier", "--log-json"]);
    let (answered, started) = (AtomicUsize::new(0), Instant::now());
    // most keep their connection, some open one for each request, some ask for work that takes long
    let client = |number: usize| {
        let bytes = match number % 4 {
            3 => request(&json!({ "defence": "equivariance", "steps": 10, "always": true })),
            _ => request(&json!({})),
        };
        let mut stream = server.connect();
        while started.elapsed() < Duration::from_secs(60) {
            if number % 4 == 1 {
                let Ok(fresh) = std::net::TcpStream::connect(&server.address) else { return };
                fresh.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
                stream = fresh;
            }
            match exchange(&mut stream, &bytes) {
                Some((200, _)) => drop(answered.fetch_add(1, Ordering::SeqCst)),
                Some((429 | 503, _)) => std::thread::sleep(Duration::from_millis(20)),
                Some((status, body)) => panic!("{status}: {}", String::from_utf8_lossy(&body)),
                None => return,
            }
        }
        panic!("the server went on");
    };
    std::thread::scope(|scope| {
        (0..16).for_each(|number| drop(scope.spawn(move || client(number))));
        std::thread::sleep(Duration::from_millis(1500));
        server.terminate();
    });
    assert!(std::net::TcpStream::connect(&server.address).is_err(), "nobody listens any more");
    let (code, log) = server.end();
    assert_eq!(code, Some(0), "{log}");
    let lines = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let taken = lines.filter(|line| line["path"] == INFER && line["status"] == 200).count();
    assert_eq!(answered.load(Ordering::SeqCst), taken, "answers received, and answers logged");
    assert!(taken > 20, "there was load: {taken}");
}
