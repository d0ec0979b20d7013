//! Matrix products of the shapes that classifiers and attention ask for: microseconds, GFLOP/s, and the share of the multiply-add
//! peak measured in the same run. `cargo run --release -p evenkeel-kernels --example products -- [threads]`

use std::time::Instant;

use evenkeel_kernels::gemm::{Operand, Packed, Scale, Shape, gemm, gemm_packed};
use evenkeel_kernels::peak::fma_peak;

fn best(mut call: impl FnMut()) -> f64 {
    let start = Instant::now();
    let mut best = f64::INFINITY;
    while start.elapsed().as_millis() < 60 {
        let now = Instant::now();
        call();
        best = best.min(now.elapsed().as_secs_f64());
    }
    best
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|n| n.parse().ok()).unwrap_or(1);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
    let peak = fma_peak(threads);
    println!("{threads} threads, peak {peak:.0} GFLOP/s; batch x m x n x k: microseconds, share of peak");
    println!("{:>24} {:>16} {:>16} {:>16}", "", "packed", "plain", "b transposed");
    let shapes = [
        [1, 1, 1000, 2048],
        [1, 8, 1000, 2048],
        [1, 197, 768, 768],
        [1, 197, 3072, 768],
        [1, 197, 768, 3072],
        [12, 197, 197, 64],
        [12, 197, 64, 197],
        [1, 1024, 1024, 1024],
        [1, 3136, 64, 64],
    ];
    for [batch, m, n, k] in shapes {
        let shape = Shape { batch, m, n, k };
        let (a, b) = (vec![0.5; batch * m * k], vec![0.25; batch * k * n]);
        let mut c = vec![0.0; batch * m * n];
        let left = Operand::row_major(&a, m, k);
        let packed = Packed::new(k, n, Operand::row_major(&b, k, n));
        let times = pool.install(|| {
            let right = Operand::row_major(&b, k, n);
            let turned = Operand::row_major(&b, n, k).transposed();
            [
                best(|| gemm_packed(shape, left, &packed, &mut c, Scale::default())),
                best(|| gemm(shape, left, right, &mut c, Scale::default())),
                best(|| gemm(shape, left, turned, &mut c, Scale::default())),
            ]
        });
        print!("{:>24}", format!("{batch} x {m} x {n} x {k}"));
        for time in times {
            let share = 2.0 * (batch * m * n * k) as f64 / time / 1e9 / peak;
            print!(" {:>10.0} {:>3.0} %", time * 1e6, 100.0 * share);
        }
        println!();
    }
}
