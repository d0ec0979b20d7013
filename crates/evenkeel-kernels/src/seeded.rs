//! What the tests share: seeded numbers, thread pools of a given size, and how far two answers may lie apart.

/// `len` numbers in (-1, 1), the same for the same seed.
pub(crate) fn random(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0xD1B5_4A32_D192_ED03;
    let mut next = || {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((state >> 40) as f32) / (1 << 23) as f32 - 1.0
    };
    (0..len).map(|_| next()).collect()
}

/// Runs `task` in a pool of `threads` threads.
pub(crate) fn with_threads<R: Send>(threads: usize, task: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(task)
}

/// Asserts that two slices agree to `tolerance` of the larger of one and the expected size.
#[track_caller]
pub(crate) fn assert_close(got: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    for (i, (&a, &b)) in got.iter().zip(expected).enumerate() {
        let apart = (a - b).abs();
        assert!(apart <= tolerance * b.abs().max(1.0) || a == b, "{what}: element {i}: {a} instead of {b}");
    }
}
