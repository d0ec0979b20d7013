//! Effective speed of the Winograd kernels on the 3x3 layers of a DRN-D-22 at 340x680 and of a ResNet at 224x224: multiplications
//! and additions of the direct convolution, divided by the time taken. Best of several runs, in GFLOP/s.
//!
//!     cargo run --release -p evenkeel-kernels --example winograd [filter]

use std::time::Instant;

use evenkeel_kernels::conv2d::Geometry;
use evenkeel_kernels::conv2d::winograd::{Direction, Packed, Tile, run};
use evenkeel_kernels::layout;
use evenkeel_kernels::tail::{Activation, Tail};

const LAYERS: [(&str, [usize; 2], [usize; 2], usize); 14] = [
    ("drn 16", [340, 680], [16, 16], 1),
    ("drn 32", [170, 340], [32, 32], 1),
    ("drn 64", [85, 170], [64, 64], 1),
    ("drn 128", [43, 85], [128, 128], 1),
    ("drn 128-256 d2", [43, 85], [128, 256], 2),
    ("drn 256 d2", [43, 85], [256, 256], 2),
    ("drn 256-512 d4", [43, 85], [256, 512], 4),
    ("drn 512 d4", [43, 85], [512, 512], 4),
    ("drn 512 d2", [43, 85], [512, 512], 2),
    ("drn 512 d1", [43, 85], [512, 512], 1),
    ("resnet 64", [56, 56], [64, 64], 1),
    ("resnet 128", [28, 28], [128, 128], 1),
    ("resnet 256", [14, 14], [256, 256], 1),
    ("resnet 512", [7, 7], [512, 512], 1),
];

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let pools =
        [1, 2].map(|threads| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("threads"));
    println!(
        "{:16} {:>9} {:>4} {:>10} {:>10} {:>7}",
        "layer", "direction", "tile", "1 thread", "2 threads", "ratio"
    );
    for (name, [h, w], [in_c, out_c], d) in LAYERS.into_iter().filter(|l| l.0.contains(&filter)) {
        let geometry = Geometry {
            batch: 1,
            in_h: h,
            in_w: w,
            in_c,
            out_c,
            kernel: [3, 3],
            stride: [1, 1],
            dilation: [d, d],
            pads: [d; 4],
            groups: 1,
        };
        let weights: Vec<f32> =
            (0..in_c * out_c * 9).map(|i| (i * 7919 % 1009) as f32 / 1009.0 - 0.5).collect();
        for direction in [Direction::Forward, Direction::Pullback] {
            for tile in [Tile::F2, Tile::F4] {
                let packed = Packed::new(tile, &weights, out_c, in_c, direction);
                let [one, two] =
                    [&pools[0], &pools[1]].map(|pool| pool.install(|| best(&packed, &geometry, direction)));
                let speed = |seconds: f64| geometry.flops() / seconds / 1e9;
                println!(
                    "{name:16} {:>9} {:>4} {:10.1} {:10.1} {:7.2}",
                    format!("{direction:?}"),
                    format!("{tile:?}"),
                    speed(one),
                    speed(two),
                    one / two
                );
            }
        }
    }
}

/// The shortest of the runs that fit a fifth of a second, at least three.
fn best(packed: &Packed, geometry: &Geometry, direction: Direction) -> f64 {
    let (from_c, to_c) = match direction {
        Direction::Forward => (geometry.in_c, geometry.out_c),
        Direction::Pullback => (geometry.out_c, geometry.in_c),
    };
    let pixels = geometry.in_h * geometry.in_w;
    let x: Vec<f32> =
        (0..pixels * layout::stride(from_c)).map(|i| (i * 31 % 1013) as f32 / 1013.0 - 0.5).collect();
    let mut out = vec![0f32; pixels * layout::stride(to_c)];
    let mut bits = vec![0u8; out.len() / 8];
    let bias = vec![0.1; to_c];
    let (mut shortest, start) = (f64::INFINITY, Instant::now());
    for round in 0.. {
        let tail = Tail {
            bias: Some(&bias),
            activation: Activation::Relu,
            bits: Some(&mut bits),
            ..Tail::default()
        };
        let began = Instant::now();
        run(packed, geometry, &x, &mut out, tail);
        shortest = shortest.min(began.elapsed().as_secs_f64());
        if round >= 2 && start.elapsed().as_secs_f64() > 0.2 {
            break;
        }
    }
    shortest
}
