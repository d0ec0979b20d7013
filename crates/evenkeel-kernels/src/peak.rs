//! How fast this machine multiplies and adds: the ceiling that every kernel's GFLOP/s is a share of.
//!
//! Chains of fused multiply-adds that never leave the registers, as many as hide the instruction's latency, on each thread at
//! once. With the set of instructions that the kernels use; where there is no AVX2 the same is done with plain numbers, and the answer says what plain code can reach.

use std::sync::Barrier;
use std::time::{Duration, Instant};

const CHAINS: usize = 12;

/// Billions of multiplications and additions a second that `threads` threads reach together, in single precision: the best of
/// many short windows, so that a busy neighbour does not lower it. Takes about a fifth of a second.
pub fn fma_peak(threads: usize) -> f64 {
    const WINDOWS: usize = 160;
    let threads = threads.max(1);
    let together = Barrier::new(threads);
    let window = || {
        let rates = (0..WINDOWS).map(|_| {
            together.wait();
            rate(Duration::from_millis(1))
        });
        rates.collect::<Vec<f64>>()
    };
    let rates: Vec<Vec<f64>> = std::thread::scope(|scope| {
        let runs: Vec<_> = (0..threads).map(|_| scope.spawn(window)).collect();
        runs.into_iter().map(|run| run.join().expect("arithmetic does not panic")).collect()
    });
    (0..WINDOWS).map(|i| rates.iter().map(|of_thread| of_thread[i]).sum()).fold(0.0, f64::max)
}

/// GFLOP/s of this thread over about `time`.
fn rate(time: Duration) -> f64 {
    const ROUNDS: usize = 20_000;
    let start = Instant::now();
    let mut flops = 0.0;
    while start.elapsed() < time {
        flops += chains(ROUNDS);
    }
    flops / start.elapsed().as_secs_f64() / 1e9
}

/// Runs `rounds` steps of all chains and answers how many operations that was.
fn chains(rounds: usize) -> f64 {
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::avx512().is_some() {
        // SAFETY: the machine has AVX-512.
        unsafe { chains_avx512(rounds) };
        return (rounds * CHAINS * 16 * 2) as f64;
    }
    #[cfg(target_arch = "x86_64")]
    if crate::cpu::avx2().is_some() {
        // SAFETY: the machine has AVX2 and FMA.
        unsafe { chains_avx2(rounds) };
        return (rounds * CHAINS * 8 * 2) as f64;
    }
    let mut sums = [1.0f32; CHAINS * 4];
    let (a, b) = (std::hint::black_box(0.999f32), std::hint::black_box(0.001f32));
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = *sum * a + b;
        }
    }
    std::hint::black_box(sums);
    (rounds * sums.len() * 2) as f64
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn chains_avx2(rounds: usize) {
    use std::arch::x86_64::{_mm256_fmadd_ps, _mm256_set1_ps};
    let (a, b) = (_mm256_set1_ps(std::hint::black_box(0.999)), _mm256_set1_ps(std::hint::black_box(0.001)));
    let mut sums = [_mm256_set1_ps(1.0); CHAINS];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm256_fmadd_ps(*sum, a, b);
        }
    }
    std::hint::black_box(sums);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn chains_avx512(rounds: usize) {
    use std::arch::x86_64::{_mm512_fmadd_ps, _mm512_set1_ps};
    let (a, b) = (_mm512_set1_ps(std::hint::black_box(0.999)), _mm512_set1_ps(std::hint::black_box(0.001)));
    let mut sums = [_mm512_set1_ps(1.0); CHAINS];
    for _ in 0..rounds {
        for sum in &mut sums {
            *sum = _mm512_fmadd_ps(*sum, a, b);
        }
    }
    std::hint::black_box(sums);
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_machine_multiplies() {
        let peak = super::fma_peak(1);
        assert!(peak > 0.01 && peak < 1e5, "{peak}");
    }
}
