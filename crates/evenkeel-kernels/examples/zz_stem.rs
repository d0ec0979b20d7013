use evenkeel_kernels::conv2d::*;
use evenkeel_kernels::layout;
use evenkeel_kernels::tail::*;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    s.split(' ').next().unwrap().parse::<f64>().unwrap() * 1e-6
}
fn meas(name: &str, fl: f64, mut f: impl FnMut()) {
    f();
    let n = (6e9 / (fl / 16.0)).ceil().max(3.0) as usize;
    let mut best = 1e9f64;
    for _ in 0..3 {
        let t = cpu();
        for _ in 0..n / 3 + 1 {
            f();
        }
        best = best.min((cpu() - t) / (n / 3 + 1) as f64);
    }
    println!("{name} {:.3} ms {:.1} GF/s", best, fl / best / 1e6);
}
fn main() {
    let a: Vec<String> = std::env::args().collect();
    rayon::ThreadPoolBuilder::new().num_threads(1).use_current_thread().build_global().unwrap();
    if a[1] == "stem" {
        for (h, w, o, k, s) in [(224, 224, 64, 7, 2), (340, 680, 16, 7, 1), (224, 224, 32, 3, 2)] {
            let g = Geometry {
                batch: 1,
                in_h: h,
                in_w: w,
                in_c: 3,
                out_c: o,
                kernel: [k, k],
                stride: [s, s],
                dilation: [1, 1],
                pads: [k / 2; 4],
                groups: 1,
            };
            let wt = Weights::new((0..o * 3 * k * k).map(|i| (i % 7) as f32).collect(), o, 3, [k, k], 1);
            let mut y = vec![0.5f32; g.out_h() * g.out_w() * layout::stride(o)];
            let mut gx = vec![0f32; 3 * h * w];
            let x = gx.clone();
            let mut bits = vec![0u8; y.len() / 8];
            meas(&format!("stem fwd {h}x{w}"), g.flops(), || {
                stem_forward(
                    &g,
                    &wt,
                    &x,
                    &mut y,
                    Tail { activation: Activation::Relu, bits: Some(&mut bits), ..Tail::default() },
                )
            });
            meas(&format!("stem pull {h}x{w}"), g.flops(), || stem_pullback(&g, &wt, &y, &mut gx, false));
        }
    } else {
        for (h, w, i, o, k, s, d) in [
            (340, 680, 16, 32, 3, 2, 1),
            (340, 680, 16, 16, 3, 1, 1),
            (170, 340, 32, 64, 3, 2, 1),
            (85, 170, 64, 128, 3, 2, 1),
            (43, 85, 256, 512, 1, 1, 1),
            (43, 85, 512, 19, 1, 1, 1),
            (43, 85, 256, 256, 3, 1, 2),
            (112, 112, 16, 96, 1, 1, 1),
            (170, 340, 32, 64, 1, 2, 1usize),
        ] {
            let g = Geometry {
                batch: 1,
                in_h: h,
                in_w: w,
                in_c: i,
                out_c: o,
                kernel: [k, k],
                stride: [s, s],
                dilation: [d, d],
                pads: [d * (k / 2); 4],
                groups: 1,
            };
            let wt = Weights::new((0..o * i * k * k).map(|i| (i % 7) as f32).collect(), o, i, [k, k], 1);
            let mut y = vec![0.5f32; g.out_h() * g.out_w() * layout::stride(o)];
            let mut gx = vec![0f32; i * h * w];
            let x = gx.clone();
            let mut bits = vec![0u8; y.len() / 8];
            let below = vec![0x5au8; gx.len() / 8];
            meas(&format!("fwd  {h}x{w} {i}>{o} {k}/{s}/{d}"), g.flops(), || {
                forward_with(
                    Algorithm::Direct,
                    &g,
                    &wt,
                    &x,
                    &mut y,
                    Tail { activation: Activation::Relu, bits: Some(&mut bits), ..Tail::default() },
                )
            });
            meas(&format!("pull {h}x{w} {i}>{o} {k}/{s}/{d}"), g.flops(), || {
                pullback_with(
                    Algorithm::Direct,
                    &g,
                    &wt,
                    &y,
                    &mut gx,
                    Tail { mask: Some(Mask { bits: &below, on: 1.0, off: 0.0 }), ..Tail::default() },
                )
            });
        }
    }
}
