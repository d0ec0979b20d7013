//! Any bytes as a PyTorch checkpoint or safetensors file, and what it holds as weights of every known architecture. Errors are fine; panics, aborts, long
//! waits and much memory are findings.

#![no_main]

use evenkeel_network::zoo;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(checkpoint) = zoo::from_bytes(bytes) else { return };
    let _ = checkpoint.blueprint(None);
});
