//! There and back is the identity, every element lands where the formula says, for shapes across the vector edges.

use super::*;
use crate::seeded::{random, with_threads};

#[test]
fn every_element_lands_where_the_formula_says() {
    for (batch, channels, pixels) in [(1, 1, 1), (2, 3, 7), (1, 8, 8), (3, 9, 17), (1, 64, 300), (2, 70, 131)]
    {
        let extents = Extents { batch, channels, pixels };
        let planar = random(extents.planar_len(), 1);
        let mut map = vec![f32::NAN; extents.map_len()];
        from_planar(extents, &planar, &mut map);
        let step = stride(channels);
        for n in 0..batch {
            for p in 0..pixels {
                for c in 0..step {
                    let expected = if c < channels { planar[(n * channels + c) * pixels + p] } else { 0.0 };
                    assert_eq!(map[(n * pixels + p) * step + c], expected, "{extents:?} {n} {p} {c}");
                }
            }
        }
        let mut back = vec![f32::NAN; planar.len()];
        to_planar(extents, &map, &mut back);
        assert_eq!(back, planar, "{extents:?}");
    }
}

#[test]
fn threads_do_not_matter() {
    let extents = Extents { batch: 2, channels: 21, pixels: 9001 };
    let planar = random(extents.planar_len(), 2);
    for threads in [1, 2, 3] {
        with_threads(threads, || {
            let mut map = vec![0.0; extents.map_len()];
            from_planar(extents, &planar, &mut map);
            let mut back = vec![0.0; planar.len()];
            to_planar(extents, &map, &mut back);
            assert!(back == planar);
        });
    }
}

#[test]
fn channel_runs_touch_nothing_else() {
    let pixels = 37;
    for (from, to, count) in [
        (Span { channels: 5, first: 1 }, Span { channels: 12, first: 3 }, 4),
        (Span { channels: 16, first: 0 }, Span { channels: 40, first: 16 }, 16),
        (Span { channels: 40, first: 11 }, Span { channels: 29, first: 0 }, 29),
    ] {
        let (step_in, step_out) = (stride(from.channels), stride(to.channels));
        let source = random(pixels * step_in, 3);
        let before = random(pixels * step_out, 4);
        let (mut copied, mut added) = (before.clone(), before.clone());
        copy_channels(&source, from, &mut copied, to, count);
        add_channels(&source, from, &mut added, to, count);
        for i in 0..before.len() {
            let (p, c) = (i / step_out, i % step_out);
            if (to.first..to.first + count).contains(&c) {
                let x = source[p * step_in + from.first + c - to.first];
                assert_eq!((copied[i], added[i]), (x, before[i] + x));
            } else {
                assert_eq!((copied[i], added[i]), (before[i], before[i]));
            }
        }
    }
}
