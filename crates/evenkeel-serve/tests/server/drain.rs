//! Ending: every request that was accepted is answered, readiness goes first, and the port is free afterwards.

use std::io::Write;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use crate::client::{INFER, connect, exchange, grey, message, read, server};

#[test]
fn what_was_accepted_is_answered() {
    let server = server(|options| {
        options.hook = Some(Arc::new(|_| std::thread::sleep(Duration::from_millis(50))));
    });
    let address = server.address();
    let body = grey(64).to_string();
    let mut clients: Vec<_> = (0..16).map(|_| connect(address)).collect();
    for client in &mut clients {
        client.write_all(&message("POST", INFER, &[], body.as_bytes())).unwrap();
    }
    std::thread::sleep(Duration::from_millis(150));
    let ending = std::thread::spawn(move || server.finish());
    for client in &mut clients {
        let answer = read(client).expect("accepted before the end, so answered");
        assert!(
            matches!(answer.status, 200),
            "{} {:?}",
            answer.status,
            String::from_utf8_lossy(&answer.body)
        );
    }
    ending.join().unwrap();
    assert!(TcpListener::bind(address).is_ok(), "the port is free");
}

#[test]
fn readiness_goes_first() {
    let server = server(|_| {});
    let (address, whole) = (server.address(), message("GET", "/v2/health/ready", &[], b""));
    assert_eq!(exchange(&mut connect(address), &whole).unwrap().status, 200);
    let mut asking = connect(address);
    asking.write_all(&whole[..whole.len() - 2]).unwrap();
    std::thread::sleep(Duration::from_millis(150));
    let ending = std::thread::spawn(move || server.finish());
    std::thread::sleep(Duration::from_millis(150));
    let answer = exchange(&mut asking, b"\r\n").expect("asked before the end, so answered");
    assert_eq!((answer.status, answer.header("connection")), (503, Some("close")));
    ending.join().unwrap();
}
