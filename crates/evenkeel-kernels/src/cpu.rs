//! Which instructions this machine has, read once. A value of type [`Avx2`] proves that AVX2 and FMA are there, so that a
//! function that needs them can ask for the proof instead of trusting its caller.
//!
//! `EVENKEEL_CPU=reference` in the environment selects the portable kernels everywhere.

use std::sync::OnceLock;

/// Proof that this machine has AVX2 and FMA. Only [`avx2`] makes one.
#[derive(Clone, Copy, Debug)]
pub struct Avx2(());

/// The proof, if the machine has AVX2 and FMA and the portable kernels were not asked for.
pub fn avx2() -> Option<Avx2> {
    static FOUND: OnceLock<Option<Avx2>> = OnceLock::new();
    *FOUND.get_or_init(|| {
        if std::env::var_os("EVENKEEL_CPU").is_some_and(|choice| choice == "reference") {
            return None;
        }
        detect()
    })
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Option<Avx2> {
    (std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma")).then_some(Avx2(()))
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Option<Avx2> {
    None
}

/// The name of the kernels in use, for reports.
pub fn name() -> &'static str {
    if avx2().is_some() { "avx2+fma" } else { "reference" }
}
