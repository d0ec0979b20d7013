//! Winograd convolutions beside the direct one, on the 3x3 layers of a DRN-D-22 at 340x680 and of a ResNet at 224x224: effective
//! GFLOP/s (the direct convolution's operations over the time taken) on one thread and on two, and the ratio to the direct
//! convolution on two. The ways take turns, and each is given its best round.
//!
//!     cargo run --release -p evenkeel-kernels --example winograd -- [part of a layer's name] [rounds]

use std::time::Instant;

use evenkeel_kernels::conv2d::winograd::Tile;
use evenkeel_kernels::conv2d::{
    Algorithm, Direction, Geometry, Weights, choose, forward_with, pullback_with,
};
use evenkeel_kernels::epilogue::{Activation, Epilogue, Mask};
use evenkeel_kernels::layout;

const LAYERS: [(&str, [usize; 2], [usize; 2], usize); 13] = [
    ("drn 16", [340, 680], [16, 16], 1),
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

const WAYS: [Algorithm; 3] =
    [Algorithm::Direct, Algorithm::Winograd(Tile::F2), Algorithm::Winograd(Tile::F4)];

fn main() {
    let filter = std::env::args().nth(1).unwrap_or_default();
    let rounds = std::env::args().nth(2).and_then(|n| n.parse().ok()).unwrap_or(5);
    println!(
        "{:16} {:>9} {:>13} {:>9} {:>9} {:>8} {:>10}",
        "layer", "direction", "way", "1 thread", "2 threads", "scaling", "to direct"
    );
    for (name, [in_h, in_w], [in_c, out_c], d) in LAYERS.into_iter().filter(|l| l.0.contains(&filter)) {
        let (kernel, stride) = ([3, 3], [1, 1]);
        let (dilation, pads) = ([d, d], [d; 4]);
        let geometry =
            Geometry { batch: 1, in_h, in_w, in_c, out_c, kernel, stride, dilation, pads, groups: 1 };
        let values = (0..in_c * out_c * 9).map(|i| (i * 7919 % 1009) as f32 / 1009.0 - 0.5).collect();
        let weights = Weights::new(values, out_c, in_c, kernel, 1);
        for direction in [Direction::Forward, Direction::Pullback] {
            let seconds = best(&geometry, &weights, direction, rounds);
            for (way, [one, two]) in WAYS.into_iter().zip(seconds) {
                let speed = |seconds: f64| geometry.flops() / seconds / 1e9;
                println!(
                    "{name:16} {:>9} {:>13} {:9.1} {:9.1} {:8.2} {:10.2}{}",
                    format!("{direction:?}"),
                    format!("{way:?}"),
                    speed(one),
                    speed(two),
                    one / two,
                    seconds[0][1] / two,
                    if choose(&geometry, direction) == way { "  chosen" } else { "" }
                );
            }
        }
    }
}

/// The shortest time of each way on one thread and on two.
fn best(geometry: &Geometry, weights: &Weights, direction: Direction, rounds: usize) -> [[f64; 2]; 3] {
    let (from_c, to_c) = match direction {
        Direction::Forward => (geometry.in_c, geometry.out_c),
        Direction::Pullback => (geometry.out_c, geometry.in_c),
    };
    let pools = [1, 2].map(|n| rayon::ThreadPoolBuilder::new().num_threads(n).build().expect("threads"));
    let pixels = geometry.in_h * geometry.in_w;
    let x: Vec<f32> =
        (0..pixels * layout::stride(from_c)).map(|i| (i * 31 % 1013) as f32 / 1013.0 - 0.5).collect();
    let mut out = vec![0f32; pixels * layout::stride(to_c)];
    let mut bits = vec![0x5au8; out.len() / 8];
    let bias = vec![0.1; to_c];
    let mut shortest = [[f64::INFINITY; 2]; 3];
    for (way, threads) in (0..=rounds).flat_map(|_| (0..3).flat_map(|way| [(way, 0), (way, 1)])) {
        let seconds = pools[threads].install(|| {
            let began = Instant::now();
            match direction {
                Direction::Forward => {
                    let epilogue = Epilogue {
                        bias: Some(&bias),
                        activation: Activation::Relu,
                        bits: Some(&mut bits),
                        ..Epilogue::default()
                    };
                    forward_with(WAYS[way], geometry, weights, &x, &mut out, epilogue);
                }
                Direction::Pullback => {
                    let mask = Some(Mask { bits: &bits, on: 1.0, off: 0.0 });
                    pullback_with(
                        WAYS[way],
                        geometry,
                        weights,
                        &x,
                        &mut out,
                        Epilogue { mask, ..Epilogue::default() },
                    );
                }
            }
            began.elapsed().as_secs_f64()
        });
        shortest[way][threads] = shortest[way][threads].min(seconds);
    }
    shortest
}
