//! Faults: what broken, slow and hostile clients can do, and what the server promised about each. All on loopback, all bounded.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use crate::client::{INFER, JUDGE, connect, exchange, grey, message, quick_limits, read, request, server};

#[test]
fn slow_headers_hold_no_connection_for_long() {
    let server = server(|options| {
        options.limits = quick_limits();
        options.limits.connections = 210;
    });
    let slow: Vec<_> = (0..200)
        .map(|_| {
            let mut stream = connect(server.address());
            stream.write_all(b"POST /v2 HTTP/1.1\r\nx-slow: ").unwrap();
            stream
        })
        .collect();
    assert_eq!(
        request(server.address(), "GET", "/v2/health/live", &[], b"").status,
        200,
        "others are served"
    );
    let start = Instant::now();
    for mut stream in slow {
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
        assert!(start.elapsed() < Duration::from_secs(20), "closed by the header time-out");
    }
    server.finish();
}

#[test]
fn connections_beyond_the_cap_are_turned_away_with_a_word() {
    let server = server(|options| options.limits.connections = 2);
    let idle = [connect(server.address()), connect(server.address())];
    std::thread::sleep(Duration::from_millis(200));
    let mut third = connect(server.address());
    let answer = read(&mut third).expect("an answer without a request");
    assert_eq!(answer.status, 503);
    assert!(answer.error().contains("connection"));
    drop(idle);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(request(server.address(), "GET", "/v2", &[], b"").status, 200);
    server.finish();
}

#[test]
fn half_closed_sockets_and_broken_bodies_free_everything() {
    let server = server(|options| options.limits = quick_limits());
    for _ in 0..20 {
        let mut stream = connect(server.address());
        let bytes = message("POST", INFER, &[], &[b'x'; 1000]);
        stream.write_all(&bytes[..bytes.len() - 500]).unwrap();
        stream.shutdown(Shutdown::Write).unwrap();
        let mut rest = Vec::new();
        let _ = stream.read_to_end(&mut rest);
    }
    let mut stalled = connect(server.address());
    stalled
        .write_all(b"POST /v2/models/classifier/infer HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{")
        .unwrap();
    let answer = read(&mut stalled).expect("told that the body is late");
    assert_eq!(answer.status, 408);
    let body = grey(64).to_string();
    assert_eq!(request(server.address(), "POST", INFER, &[], body.as_bytes()).status, 200);
    // the one that was told is closed by whoever comes first
    drop(stalled);
    let start = Instant::now();
    while !server.metrics().contains("\nevenkeel_connections 0\n") {
        assert!(start.elapsed() < Duration::from_secs(20), "connections stay: {}", server.metrics());
        std::thread::sleep(Duration::from_millis(20));
    }
    server.finish();
}

#[test]
fn two_lengths_are_refused_in_either_order() {
    let server = server(|_| {});
    for headers in [
        "transfer-encoding: chunked\r\ncontent-length: 5",
        "content-length: 5\r\ntransfer-encoding: chunked",
        "Content-Length: 5\r\nTransfer-Encoding:\tchunked",
    ] {
        let mut stream = connect(server.address());
        let text = format!(
            "POST {INFER} HTTP/1.1\r\nhost: x\r\n{headers}\r\n\r\n0\r\n\r\nGET /v2 HTTP/1.1\r\nhost: x\r\n\r\n"
        );
        let answer = exchange(&mut stream, text.as_bytes()).unwrap();
        assert_eq!(answer.status, 400, "{headers}");
        assert!(answer.error().contains("Transfer-Encoding"));
        assert!(read(&mut stream).is_none(), "the smuggled request is not answered");
    }
    let mut stream = connect(server.address());
    let body = grey(64).to_string();
    let text = format!(
        "POST {INFER} HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        body.len()
    );
    assert_eq!(exchange(&mut stream, text.as_bytes()).unwrap().status, 200, "chunked alone is fine");
    server.finish();
}

#[test]
fn sizes_are_judged_before_anything_is_allocated() {
    let server = server(|options| options.limits = quick_limits());
    let mut stream = connect(server.address());
    let declared = format!("POST {INFER} HTTP/1.1\r\nhost: x\r\ncontent-length: 10000000000\r\n\r\n");
    let answer = exchange(&mut stream, declared.as_bytes()).unwrap();
    assert_eq!((answer.status, answer.header("connection")), (413, Some("close")));

    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    (0..64).for_each(|_| encoder.write_all(&vec![b' '; 1 << 20]).unwrap());
    let bomb = encoder.finish().unwrap();
    assert_eq!(request(server.address(), "POST", INFER, &[("content-encoding", "gzip")], &bomb).status, 413);

    let mut png = evenkeel::Image::filled(8, 8, 0.5).encode_png().unwrap();
    png[16..20].copy_from_slice(&60_000u32.to_be_bytes());
    png[20..24].copy_from_slice(&60_000u32.to_be_bytes());
    // a JPEG of one scan, whose frame header announces as much
    let folder = tempfile::tempdir().unwrap();
    evenkeel::Image::filled(16, 16, 0.5).save_jpeg(folder.path().join("a.jpg"), 90).unwrap();
    let mut jpeg = std::fs::read(folder.path().join("a.jpg")).unwrap();
    let frame = jpeg.windows(2).position(|w| matches!(w, [0xff, 0xc0..=0xc2])).unwrap();
    jpeg[frame + 5..frame + 9].copy_from_slice(&[0xea, 0x60, 0xea, 0x60]);
    let many = evenkeel::Image::filled(2000, 2000, 0.5).encode_png().unwrap();
    for files in [vec![&png], vec![&jpeg], vec![&many; 5]] {
        if let [file] = files[..] {
            let answer = request(server.address(), "POST", JUDGE, &[("content-type", "image/png")], file);
            assert_eq!(answer.status, 413, "{}", answer.error());
        }
        let data: Vec<String> = files.iter().map(|file| STANDARD.encode(file)).collect();
        let body = json!({ "inputs": [{ "name": "image", "shape": [data.len()], "datatype": "BYTES", "data": data }] });
        let answer = request(server.address(), "POST", INFER, &[], body.to_string().as_bytes());
        assert_eq!(answer.status, 413, "{}", answer.error());
    }

    let answer = request(server.address(), "POST", JUDGE, &[("content-type", "image/png")], &many);
    assert_eq!(answer.status, 413);
    assert!(answer.error().contains("without a size of its own"), "{}", answer.error());

    let huge = json!({ "inputs": [{ "name": "image", "shape": [1, 3, 4294967295u64, 4294967295u64], "datatype": "FP32", "data": [] }] });
    assert_eq!(request(server.address(), "POST", INFER, &[], huge.to_string().as_bytes()).status, 413);
    let overflow = json!({ "inputs": [{ "name": "image", "shape": [u64::MAX, 3, u64::MAX, 64], "datatype": "FP32", "data": [] }] });
    assert_eq!(request(server.address(), "POST", INFER, &[], overflow.to_string().as_bytes()).status, 413);
    server.finish();
}

#[test]
fn bodies_of_all_clients_together_are_bounded() {
    let server = server(|options| {
        options.limits = quick_limits();
        options.limits.body_time = Duration::from_secs(20);
        options.limits.held_bytes = 4 << 20;
    });
    let held = |bytes: usize| {
        let start = Instant::now();
        while !server.metrics().contains(&format!("\nevenkeel_held_bytes {bytes}\n")) {
            assert!(start.elapsed() < Duration::from_secs(20), "{bytes}: {}", server.metrics());
            std::thread::sleep(Duration::from_millis(10));
        }
    };
    let (big, small) = (message("POST", INFER, &[], &vec![b' '; 3 << 20]), vec![b' '; 2 << 20]);
    let mut slow = connect(server.address());
    slow.write_all(&big[..big.len() - 1]).unwrap();
    held((3 << 20) - 1);
    let answer = request(server.address(), "POST", INFER, &[], &small);
    assert_eq!((answer.status, answer.header("retry-after")), (429, Some("1")), "{}", answer.error());
    let body = grey(64).to_string();
    assert_eq!(
        request(server.address(), "POST", INFER, &[], body.as_bytes()).status,
        200,
        "there is some room"
    );
    assert_eq!(exchange(&mut slow, b" ").unwrap().status, 400, "who has room is answered");
    held(0);
    assert_eq!(request(server.address(), "POST", INFER, &[], &small).status, 400, "and there is room again");
    let mut leaves = connect(server.address());
    leaves.write_all(&big[..big.len() - 1]).unwrap();
    held((3 << 20) - 1);
    drop(leaves);
    held(0);
    server.finish();
}

#[test]
fn what_is_no_request_is_refused_with_a_sentence() {
    let server = server(|_| {});
    let values = |count: usize| vec![0.5; count];
    let input = |shape: serde_json::Value, datatype: &str, data: serde_json::Value| {
        json!({ "inputs": [{ "name": "image", "shape": shape, "datatype": datatype, "data": data }] })
            .to_string()
    };
    let nested = "[".repeat(100_000);
    for (body, word) in [
        ("".to_string(), "request"),
        ("{".to_string(), "request"),
        ("[]".to_string(), "request"),
        ("{}".to_string(), "inputs"),
        (json!({ "inputs": [] }).to_string(), "inputs"),
        (nested, "request"),
        (input(json!([1, 3, 64, 64]), "FP32", json!(values(3))), "values"),
        (input(json!([1, 3, 63, 63]), "FP32", json!(values(3 * 63 * 63))), "multiples"),
        (input(json!([1, 4, 64, 64]), "FP32", json!(values(4 * 64 * 64))), "[n, 3, height, width]"),
        (input(json!([64]), "FP32", json!(values(64))), "[n, 3, h, w]"),
        (input(json!([0, 3, 64, 64]), "FP32", json!([])), "no values"),
        (input(json!([1, 3, 64, 64]), "INT32", json!(values(3 * 64 * 64))), "INT32"),
        (input(json!([1, 3, 64, 64]), "FP32", json!(vec![2.0; 3 * 64 * 64])), "from 0 to 1"),
        (
            input(json!([1, 3, 64, 64]), "FP32", json!(values(3 * 64 * 64))).replace("0.5,0.5", "NaN,0.5"),
            "request",
        ),
        (input(json!([1, 3, 64, 64]), "UINT8", json!(vec![256; 3 * 64 * 64])), "255"),
        (input(json!([1]), "BYTES", json!(["not base64"])), "base64"),
        (input(json!([1]), "BYTES", json!(["PHN2Zy8+"])), "PNG"),
        (
            json!({ "inputs": grey(64)["inputs"], "outputs": [{ "name": "scores" }, { "name": "scores" }] })
                .to_string(),
            "twice",
        ),
        (input(json!([1]), "BYTES", json!(["aHR0cDovL2V4YW1wbGUuY29tL2EucG5n"])), "PNG"),
    ] {
        let answer = request(server.address(), "POST", INFER, &[], body.as_bytes());
        assert_eq!(answer.status, 400, "{}", &body[..body.len().min(200)]);
        assert!(answer.error().contains(word), "{word}: {}", answer.error());
    }
    // NaN in binary form
    let mut pixels = vec![0.5f32; 3 * 64 * 64];
    pixels[77] = f32::NAN;
    let data: Vec<u8> = pixels.iter().flat_map(|v| v.to_le_bytes()).collect();
    let head = json!({ "inputs": [{ "name": "image", "shape": [1, 3, 64, 64], "datatype": "FP32", "parameters": { "binary_data_size": data.len() } }] });
    let head = head.to_string();
    let length = head.len().to_string();
    let body = [head.as_bytes(), &data].concat();
    let answer =
        request(server.address(), "POST", INFER, &[("inference-header-content-length", &length)], &body);
    assert_eq!(answer.status, 400);
    assert!(answer.error().contains("NaN"));
    server.finish();
}

#[test]
fn http_2_on_the_port_of_http_1_is_told_so() {
    let server = server(|_| {});
    let mut stream = connect(server.address());
    let answer = exchange(&mut stream, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").unwrap();
    assert_eq!(answer.status, 505);
    assert!(answer.error().contains("--grpc-port"));
    assert!(read(&mut stream).is_none());
    server.finish();
}

#[test]
fn a_silent_grpc_connection_is_closed() {
    let server = server(|options| {
        options.grpc_port = Some(0);
        options.limits = quick_limits();
    });
    let address = server.grpc_address().unwrap();
    let start = Instant::now();
    for opening in [&b""[..], b"PRI * HTTP/2.0\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
        let mut stream = connect(address);
        stream.write_all(opening).unwrap();
        let _ = stream.read_to_end(&mut Vec::new());
        assert!(start.elapsed() < Duration::from_secs(20), "closed by the header time-out");
    }
    server.finish();
}
