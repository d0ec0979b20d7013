//! Any bytes as the body of an inference request: the first two say where its JSON ends (0: it is all JSON), the rest is the body. What parses has as many values
//! as its shapes say and is asked for its choice of settings; the same bytes come as a gRPC tensor. Errors are fine; panics, long waits and much memory are findings.

#![no_main]

use bytes::Bytes;
use evenkeel_serve::protocol::{InputData, TensorLimits, count, parse, parse_input};
use evenkeel_serve::{Allowed, Choice};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((head, body)) = bytes.split_first_chunk::<2>() else { return };
    let (head, body) = (usize::from(u16::from_le_bytes(*head)), Bytes::copy_from_slice(body));
    let limits = TensorLimits { batch: 8, pixels: 1 << 16 };
    let datatype = ["FP32", "FP16", "UINT8", "BYTES"][head % 4];
    let _ = parse_input("image", datatype, &[1, 3, (head / 4) as i64, 2], body.clone(), &limits);
    let Ok(request) = parse(&body, (head != 0).then_some(head), &limits) else { return };
    for input in &request.inputs {
        let held = match &input.data {
            InputData::Fp32(values) => values.len(),
            InputData::Uint8(values) => values.len(),
            InputData::Bytes(values) => values.len(),
        };
        assert_eq!(Some(held), count(&input.shape));
    }
    let _ = Choice::read(&request.parameters, &Allowed { default: Choice::default(), free: true, most: 200 });
});
