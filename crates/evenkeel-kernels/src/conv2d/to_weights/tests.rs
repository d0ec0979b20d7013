//! The blocked gradient answers to the reference, whatever the instructions and the threads.

use super::{Geometry, reference, to_weights};
use crate::layout;
use crate::seeded::{assert_close, random, with_threads};

fn geometry(
    channels: (usize, usize),
    size: (usize, usize),
    [kernel, stride, dilation]: [usize; 3],
) -> Geometry {
    Geometry {
        batch: 3,
        in_h: size.0,
        in_w: size.1,
        in_c: channels.0,
        out_c: channels.1,
        kernel: [kernel; 2],
        stride: [stride; 2],
        dilation: [dilation; 2],
        pads: [dilation * (kernel - 1) / 2; 4],
        groups: 1,
    }
}

fn table() -> Vec<Geometry> {
    let mut table = Vec::new();
    for channels in [(3, 8), (8, 19), (16, 16), (24, 5), (32, 40), (48, 9), (40, 17), (3, 1)] {
        for (size, shape) in [
            ((7, 9), [3, 1, 1]),
            ((12, 10), [3, 2, 1]),
            ((11, 13), [3, 1, 4]),
            ((9, 8), [1, 2, 1]),
            ((5, 6), [1, 1, 1]),
            ((20, 70), [3, 1, 2]),
            ((10, 11), [7, 3, 1]),
        ] {
            table.push(geometry(channels, size, shape));
        }
    }
    table.push(Geometry {
        pads: [0, 1, 2, 0],
        stride: [2, 1],
        kernel: [2, 3],
        ..geometry((17, 6), (9, 9), [3, 1, 1])
    });
    table
}

fn maps(g: &Geometry) -> (Vec<f32>, Vec<f32>) {
    let x = random(g.batch * g.in_h * g.in_w * layout::stride(g.in_c), 1);
    let gy = random(g.batch * g.out_h() * g.out_w() * layout::stride(g.out_c), 2);
    (x, gy)
}

#[test]
fn gradients_agree_with_the_reference() {
    for g in table() {
        let (x, gy) = maps(&g);
        let start = random(g.out_c * g.in_c * g.kernel[0] * g.kernel[1], 3);
        let (mut expected, mut found) = (start.clone(), start);
        reference::to_weights(&g, &x, &gy, &mut expected);
        to_weights(&g, &x, &gy, &mut found);
        assert_close(&found, &expected, 2e-4, &format!("{g:?}"));
    }
}

#[test]
fn every_set_of_instructions_agrees() {
    #[cfg(target_arch = "x86_64")]
    for g in table() {
        let (x, gy) = maps(&g);
        let run = |which: usize| {
            let mut gw = vec![0.0; g.out_c * g.in_c * g.kernel[0] * g.kernel[1]];
            match (which, crate::cpu::avx2(), crate::cpu::avx512()) {
                (0, Some(l), _) => super::blocked::run(l, &g, &x, &gy, &mut gw),
                (1, _, Some(l)) => super::blocked::run(l, &g, &x, &gy, &mut gw),
                _ => reference::to_weights(&g, &x, &gy, &mut gw),
            }
            gw
        };
        assert_close(&run(0), &run(2), 2e-4, &format!("AVX2 {g:?}"));
        assert_close(&run(1), &run(2), 2e-4, &format!("AVX-512 {g:?}"));
    }
}

#[test]
fn threads_do_not_show() {
    for g in table().into_iter().step_by(5) {
        let (x, gy) = maps(&g);
        let run = |threads: usize| {
            with_threads(threads, || {
                let mut gw = vec![0.0; g.out_c * g.in_c * g.kernel[0] * g.kernel[1]];
                to_weights(&g, &x, &gy, &mut gw);
                gw.into_iter().map(f32::to_bits).collect::<Vec<_>>()
            })
        };
        assert_eq!(run(1), run(3), "{g:?}");
    }
}
