//! The way back through a defence's steps against differences of what the defence does.

use super::*;
use crate::defence::DefenceSpec;
use crate::detect::Heads;
use crate::task::{Classification, Semantic};
use crate::toy::{Conv, picture};

/// With steps of twice the radius, as published, what comes back is the derivative of the defence whose sign is a tanh (its rms held fixed), and
/// that is not the identity.
#[test]
fn a_saturating_step_is_differentiated_too() {
    let network = Box::new(Conv::random(&[6, 8], 5, true, 3));
    let model = Model::new(network, Box::new(Classification), "scores", "features");
    let mut image = picture((8, 8), 5);
    image.pixels_mut().iter_mut().for_each(|v| *v = 0.3 + 0.4 * *v);
    let spec = DefenceSpec::named("equivariance").unwrap();
    let spec = spec.with("epsilon", 0.05).unwrap().with("steps", 1usize).unwrap();
    let spec = spec.with("schedule", "paper").unwrap();
    let defence = spec.build(&model, &Heads::default()).unwrap();
    assert_eq!(defence.size, 0.1);
    let unrolled = Unrolled::new(&model, &defence, 1.0).unwrap();
    let run = |image: &Image| unrolled.run(image, 4).unwrap();
    let (end, visits) = run(&image);
    let mut random = Random::new(2);
    let cotangent: Vec<f32> = image.pixels().iter().map(|_| random.normal()).collect();
    let pulled = unrolled.back(&image, &visits, cotangent.clone(), &end).unwrap();
    let sharp = unrolled.sharp(&unrolled.directions(&visits)[0]);
    // the cotangent times what the soft defence makes of an image
    let soft = |image: &Image| {
        let (_, visits) = run(image);
        let direction = &unrolled.directions(&visits)[0];
        let ends = visits[0].image.pixels().iter().zip(direction).zip(image.pixels());
        let ends = ends.map(|((v, d), o)| (v + 0.1 * (sharp * d).tanh()).clamp(o - 0.05, o + 0.05));
        ends.zip(&cotangent).map(|(v, c)| f64::from(v) * f64::from(*c)).sum::<f64>()
    };
    let (mut off, mut off_identity, mut total) = (0.0, 0.0, 0.0);
    for _ in 0..12 {
        let way: Vec<f32> = image.pixels().iter().map(|_| random.normal()).collect();
        let at = |step: f32| {
            let mut moved = image.clone();
            moved.pixels_mut().iter_mut().zip(&way).for_each(|(p, d)| *p += step * d);
            soft(&moved)
        };
        let central = (at(1e-4) - at(-1e-4)) / 2e-4;
        let along = |g: &[f32]| g.iter().zip(&way).map(|(g, d)| f64::from(g * d)).sum::<f64>();
        off += (central - along(&pulled)).powi(2);
        off_identity += (central - along(&cotangent)).powi(2);
        total += central.powi(2);
    }
    assert!(off < 0.01 * total, "off by {off} of {total}");
    assert!(off < 0.05 * off_identity, "no better than the identity: {off} {off_identity}");
}

/// In L2 a step is smooth, so what comes back through several steps of an image that learns is the derivative of the defence itself: with fresh targets and
/// with held ones, for every signal, whether views count alike or by their agreement.
#[test]
fn steps_that_views_taught_are_differentiated_exactly() {
    let net = |seed| Box::new(Conv::random(&[6, 8], 5, true, seed));
    let models = [
        Model::new(net(3), Box::new(Classification), "scores", "features"),
        Model::new(net(4), Box::new(Semantic), "map", "features"),
    ];
    let mut image = picture((12, 16), 5);
    image.pixels_mut().iter_mut().for_each(|v| *v = 0.3 + 0.4 * *v);
    for model in models {
        for (name, refresh, teach) in [
            ("consensus", 1, "answer"),
            ("consensus", 2, "features"),
            ("leave-out", 2, "answer"),
            ("leave-out", 1, "features"),
        ] {
            let spec =
                DefenceSpec::named(name).unwrap().with("norm", "l2").unwrap().with("epsilon", 0.5).unwrap();
            let spec = spec
                .with("steps", 3)
                .unwrap()
                .with("refresh", refresh)
                .unwrap()
                .with("teach", teach)
                .unwrap()
                .with("agree", 1.0)
                .unwrap();
            let defence = spec.build(&model, &Heads::default()).unwrap();
            let unrolled = Unrolled::new(&model, &defence, 1.0).unwrap();
            let (end, visits) = unrolled.run(&image, 4).unwrap();
            assert_eq!(visits.len(), 3);
            let mut random = Random::new(2);
            let cotangent: Vec<f32> = image.pixels().iter().map(|_| random.normal()).collect();
            let pulled = unrolled.back(&image, &visits, cotangent.clone(), &end).unwrap();
            let value = |image: &Image| {
                let end = defence.apply(&model, image, 4).unwrap().image;
                end.pixels().iter().zip(&cotangent).map(|(v, c)| f64::from(*v) * f64::from(*c)).sum::<f64>()
            };
            let (mut off, mut off_identity, mut total) = (0.0, 0.0, 0.0);
            for _ in 0..6 {
                let way: Vec<f32> = image.pixels().iter().map(|_| random.normal()).collect();
                let at = |step: f32| {
                    let mut moved = image.clone();
                    moved.pixels_mut().iter_mut().zip(&way).for_each(|(p, d)| *p += step * d);
                    value(&moved)
                };
                // what the defence adds to the identity
                let along =
                    |g: &[f32]| g.iter().zip(&way).map(|(g, d)| f64::from(*g) * f64::from(*d)).sum::<f64>();
                let same = along(&cotangent);
                let central = (at(1e-3) - at(-1e-3)) / 2e-3 - same;
                off += (central - (along(&pulled) - same)).powi(2);
                off_identity += central.powi(2);
                total += (central + same).powi(2);
            }
            assert!(
                off < 0.02 * off_identity,
                "{name} {teach} {refresh}: off by {off} of {off_identity}, {total} in all"
            );
        }
    }
}
