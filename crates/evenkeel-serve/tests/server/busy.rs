//! Work: a panic, too much of it, clients that leave, deadlines, and lanes that do not starve each other.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::client::{INFER, connect, exchange, grey, message, read, request, server};

#[test]
fn a_panic_answers_500_and_the_worker_is_replaced() {
    let count = Arc::new(AtomicUsize::new(0));
    let seen = count.clone();
    let server = server(move |options| {
        options.hook = Some(Arc::new(move |_| {
            assert!(seen.fetch_add(1, Ordering::SeqCst) >= 4, "planned by the test");
        }));
    });
    let body = grey(64).to_string();
    let mut stream = connect(server.address());
    for number in 0..8 {
        let answer = exchange(&mut stream, &message("POST", INFER, &[], body.as_bytes())).unwrap();
        assert_eq!(answer.status, if number < 4 { 500 } else { 200 }, "request {number}");
    }
    assert!(server.metrics().contains("evenkeel_workers_replaced_total 4"));
    server.finish();
}

#[test]
fn too_much_work_is_refused_with_a_time_and_nothing_else_breaks() {
    let server = server(|options| {
        options.limits.plain_queue = 4;
        options.hook = Some(Arc::new(|_| std::thread::sleep(Duration::from_millis(20))));
    });
    let (address, body) = (server.address(), grey(64).to_string());
    let client = |_| {
        let body = body.clone();
        std::thread::spawn(move || {
            let mut stream = connect(address);
            let bytes = message("POST", INFER, &[], body.as_bytes());
            (0..10).map(|_| exchange(&mut stream, &bytes).unwrap()).collect::<Vec<_>>()
        })
    };
    let clients: Vec<_> = (0..24).map(client).collect();
    let answers: Vec<_> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    let count = |status: u16| answers.iter().filter(|answer| answer.status == status).count();
    assert_eq!(count(200) + count(429), 240, "only 200 and 429");
    assert!(count(429) > 0 && count(200) > 0);
    let refused = answers.iter().find(|answer| answer.status == 429).unwrap();
    assert!(refused.header("retry-after").unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(request(address, "POST", INFER, &[], body.as_bytes()).status, 200, "it has recovered");
    server.finish();
}

#[test]
fn work_whose_client_has_gone_is_dropped() {
    let done = Arc::new(AtomicUsize::new(0));
    let seen = done.clone();
    let server = server(move |options| {
        (options.threads, options.workers) = (1, 1);
        options.hook = Some(Arc::new(move |_| {
            seen.fetch_add(1, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(300));
        }));
    });
    let body = grey(64).to_string();
    let bytes = message("POST", INFER, &[], body.as_bytes());
    let mut clients: Vec<_> = (0..5).map(|_| connect(server.address())).collect();
    clients.iter_mut().for_each(|client| {
        client.write_all(&bytes).unwrap();
        std::thread::sleep(Duration::from_millis(20));
    });
    drop(clients.drain(1..));
    std::thread::sleep(Duration::from_millis(50));
    assert_eq!(read(&mut clients[0]).unwrap().status, 200);
    assert_eq!(request(server.address(), "POST", INFER, &[], body.as_bytes()).status, 200);
    assert_eq!(done.load(Ordering::SeqCst), 2, "four of the six were abandoned in the queue");
    server.finish();
}

#[test]
fn a_request_ends_at_its_deadline() {
    let server = server(|options| {
        options.limits.request_time = Duration::from_millis(700);
        options.hook = Some(Arc::new(|_| std::thread::sleep(Duration::from_millis(1500))));
    });
    let mut body = grey(64);
    for (timeout, limit) in [(Some(200_000), "0.2 s"), (None, "0.7 s")] {
        body["parameters"] = timeout.map_or(json!({}), |us| json!({ "timeout": us }));
        let start = Instant::now();
        let answer = request(server.address(), "POST", INFER, &[], body.to_string().as_bytes());
        assert_eq!(answer.status, 504);
        assert!(answer.error().contains(limit), "{}", answer.error());
        assert!(start.elapsed() < Duration::from_millis(1400), "the answer does not wait for the worker");
    }
    server.finish();
}

#[test]
fn a_defence_ends_at_its_deadline_and_frees_the_worker() {
    let server = server(|options| {
        (options.threads, options.workers) = (1, 1);
        options.limits.knob = 100_000;
    });
    let mut body = grey(256);
    body["parameters"] =
        json!({ "defence": "equivariance", "steps": 100_000, "always": true, "timeout": 1_000_000 });
    let answer = request(server.address(), "POST", INFER, &[], body.to_string().as_bytes());
    assert_eq!(answer.status, 504, "{:?}", String::from_utf8_lossy(&answer.body));
    let start = Instant::now();
    let body = grey(64).to_string();
    assert_eq!(request(server.address(), "POST", INFER, &[], body.as_bytes()).status, 200);
    assert!(start.elapsed() < Duration::from_secs(10), "the one worker is free again");
    server.finish();
}

#[test]
fn defended_requests_do_not_starve_plain_ones() {
    const LONG: Duration = Duration::from_millis(200);
    let server = server(|options| {
        options.limits.defended_queue = 64;
        options.hook = Some(Arc::new(|question| {
            if question.choice.defence.is_some() {
                std::thread::sleep(LONG);
            }
        }));
    });
    let (address, plain) = (server.address(), grey(64).to_string());
    let mut defended = grey(64);
    defended["parameters"] = json!({ "defence": "jpeg" });
    let defended = defended.to_string();
    let stop = AtomicUsize::new(0);
    let flood = || {
        let mut stream = connect(address);
        let mut answered = 0;
        while stop.load(Ordering::SeqCst) == 0 {
            let answer = exchange(&mut stream, &message("POST", INFER, &[], defended.as_bytes())).unwrap();
            answered += usize::from(answer.status == 200);
        }
        answered
    };
    std::thread::scope(|scope| {
        let floods: Vec<_> = (0..12).map(|_| scope.spawn(flood)).collect();
        std::thread::sleep(3 * LONG);
        let mut times = Vec::new();
        for _ in 0..15 {
            let start = Instant::now();
            assert_eq!(request(address, "POST", INFER, &[], plain.as_bytes()).status, 200);
            times.push(start.elapsed());
        }
        stop.store(1, Ordering::SeqCst);
        times.sort();
        // in one queue each would have waited for six rounds of two
        assert!(times[7] < LONG, "plain requests wait: {times:?}");
        let answered: usize = floods.into_iter().map(|flood| flood.join().unwrap()).sum();
        assert!(answered >= 12, "defended requests go on: {answered}");
    });
    server.finish();
}
