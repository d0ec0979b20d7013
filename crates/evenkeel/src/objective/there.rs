//! A sum of objectives at an image, for a network that compares features where they are: only scores, the value and gradients on images cross.
//!
//! Losses read the scores here as ever; their cotangents and the comparison are led back together, in one way back over the image and all its views.

use rayon::prelude::*;

use super::batches::BATCHED_PIXELS;
use super::evaluate::{OnTensors, Request};
use super::passes::{add_scaled, pixels};
use super::{Progress, TermSum, Terms, ViewTerm};
use crate::error::{Error, Result};
use crate::image::Image;
use crate::network::{ComparedThere, Comparison, CosineRule, Network, Tensor};
use crate::random::Random;
use crate::view::Placed;

impl Terms<'_> {
    /// The only comparison, if the network can make it: one term, whose objective is a sum of cosines, and losses that have their scores.
    fn comparison(&self, network: &dyn Network) -> Option<(&ViewTerm<'_>, CosineRule)> {
        let [term] = self.views.as_slice() else { return None };
        let scored = self.losses.is_empty() || self.output.is_some();
        (network.compares() && scored).then(|| term.objective.cosines().map(|rule| (term, rule)))?
    }

    /// What [`Terms::evaluate`] gives, compared by the network; nothing where that cannot be.
    pub(super) fn compared_there(
        &self,
        network: &dyn Network,
        image: &Image,
        progress: Progress,
        random: &Random,
        want_gradient: bool,
    ) -> Result<Option<TermSum>> {
        let Some((term, rule)) = self.comparison(network) else { return Ok(None) };
        let drawn = term.objective.draw(&random.fork(0));
        let views: Vec<Placed> = drawn.iter().map(|view| view.placed(image.size())).collect();
        if views.is_empty() || views.iter().map(pixels).sum::<usize>() > BATCHED_PIXELS {
            return Ok(None);
        }
        let seen: Vec<Image> = views.par_iter().map(|view| view.apply(image)).collect();
        let images: Vec<&Image> = std::iter::once(image).chain(&seen).collect();
        let features = self.compared_by(term).iter().map(|name| name.to_string()).collect();
        let asked = Comparison { features, rule, views, weight: term.weight, want_gradient };
        let mut request = Request::default();
        self.output.iter().for_each(|output| request.ask_scores(output));
        let ComparedThere { tensors, value, tape } = network.compare(&images, &request.names, &asked)?;
        let scores = self.output.map(|_| Tensor::joined(request.scores_of(&tensors)));
        let mut on_base = OnTensors::new(&tensors);
        let (losses, mut parts) =
            self.add_losses(scores.as_ref(), progress, &request, &tensors, &mut on_base)?;
        parts.push(value);
        let value = losses + term.weight * value;
        let gradient = match tape {
            Some(tape) if want_gradient => {
                let mut cotangents = vec![on_base.all(&tensors)];
                cotangents.resize_with(images.len(), Vec::new);
                Some(led_back(image, &asked.views, tape.pullback(cotangents)?)?)
            }
            _ => None,
        };
        if !value.is_finite() {
            return Err(Error::NotFinite("the objective".into()));
        }
        Ok(Some(TermSum { value, parts, gradient, scores }))
    }
}

/// The sum, on the image, of its own gradient and those of its views, in their order.
fn led_back(image: &Image, views: &[Placed], mut back: Vec<Vec<f32>>) -> Result<Vec<f32>> {
    if back.len() != views.len() + 1 {
        return Err(Error::mismatch("gradients of a comparison", views.len() + 1, back.len()));
    }
    let on_views = back.split_off(1);
    let mut gradient = back.remove(0);
    let pulled: Vec<Vec<f32>> =
        views.par_iter().zip(&on_views).map(|(view, back)| view.pull_apply(image, back)).collect();
    pulled.iter().for_each(|own| add_scaled(&mut gradient, 1.0, own));
    match gradient.iter().all(|g| g.is_finite()) {
        true => Ok(gradient),
        false => Err(Error::NotFinite("the gradient".into())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::{BatchTape, Cotangents, TensorNames, Traced};
    use crate::objective::{Compared, Equivariance, Invariance, Pairing, Seen, ViewObjective};
    use crate::objective::{Loss, LossKind};
    use crate::task::Labels;
    use crate::toy::{Conv, picture};
    use crate::view::ViewSet;

    /// A network that compares by itself, with the objective it is given.
    struct There<'a>(Conv, &'a dyn ViewObjective);

    struct Tape<'n> {
        traced: Vec<Traced<'n>>,
        compared: Compared,
        names: usize,
        weight: f32,
    }

    impl BatchTape for Tape<'_> {
        fn pullback(&self, cotangents: Vec<Cotangents>) -> Result<Vec<Vec<f32>>> {
            let on_features = std::iter::once(&self.compared.base).chain(&self.compared.seen);
            let each = self.traced.iter().zip(cotangents).zip(on_features);
            each.map(|((traced, mut own), compared)| {
                let scaled = |c: &Vec<f32>| c.iter().map(|v| v * self.weight).collect();
                own.extend(compared.iter().map(scaled).enumerate().map(|(i, c)| (self.names + i, c)));
                traced.tape.pullback(own)
            })
            .collect()
        }
    }

    impl Network for There<'_> {
        fn fixed_size(&self) -> Option<(usize, usize)> {
            None
        }

        fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
            self.0.run(images, tensors)
        }

        fn trace(&self, _: &[&Image], _: &[&str]) -> Result<Vec<Traced<'_>>> {
            panic!("features would cross")
        }

        fn compares(&self) -> bool {
            true
        }

        fn compare(
            &self,
            images: &[&Image],
            names: &[&str],
            asked: &Comparison,
        ) -> Result<ComparedThere<'_>> {
            let features = asked.features.iter().map(String::as_str);
            let wanted: Vec<&str> = names.iter().copied().chain(features).collect();
            let traced = self.0.trace(images, &wanted)?;
            let of = |traced: &Traced<'_>| traced.tensors[names.len()..].to_vec();
            let seen: Vec<Seen> = (asked.views.iter().zip(&traced[1..]))
                .map(|(view, traced)| Seen { view: view.clone(), features: of(traced) })
                .collect();
            let compared = self.1.compare(&of(&traced[0]), &seen)?;
            let (tensors, value) = (traced[0].tensors[..names.len()].to_vec(), compared.value);
            let tape = Tape { traced, compared, names: names.len(), weight: asked.weight as f32 };
            Ok(ComparedThere { tensors, value, tape: asked.want_gradient.then(|| Box::new(tape) as _) })
        }
    }

    #[test]
    fn what_the_network_compares_is_what_would_be_compared_here() {
        let (image, features) = (picture((16, 20), 3), TensorNames::from("features"));
        let output = TensorNames::from("scores");
        let network = || Conv::random(&[6, 8], 5, true, 4);
        let loss = Loss::against(LossKind::CrossEntropy, Labels { size: (1, 1), labels: vec![1] });
        for pairing in [Pairing::Anchor, Pairing::AllPairs] {
            let equivariance = Equivariance { pairing, ..Equivariance::new(ViewSet::standard()) };
            let invariance = Invariance { views: ViewSet::standard(), pairing };
            for objective in [&equivariance as &dyn ViewObjective, &invariance] {
                let at = |network: &dyn Network| {
                    let views = vec![ViewTerm { weight: 0.7, objective }];
                    let losses = vec![(1.3, &loss)];
                    let terms = Terms { output: Some(&output), feature: &features, losses, views };
                    terms.evaluate(network, &image, Progress::ONCE, &Random::new(2), true).unwrap()
                };
                let (here, there) = (at(&network()), at(&There(network(), objective)));
                assert_eq!((here.value, &here.parts), (there.value, &there.parts));
                let (here, there) = (here.gradient.unwrap(), there.gradient.unwrap());
                let most = here.iter().fold(0f32, |most, g| most.max(g.abs()));
                assert!(here.iter().zip(&there).all(|(a, b)| (a - b).abs() <= 1e-5 * most));
            }
        }
    }

    #[test]
    fn taps_are_the_way_back() {
        let map: Vec<f32> = (0..3 * 70).map(|i| (i as f32 * 0.37).sin()).collect();
        for view in ViewSet::standard().draw(&Random::new(4)) {
            let undo = view.placed((40, 56)).undo_onto((7, 10), (5, 7));
            let (at, weights) = undo.taps();
            for (channel, plane) in undo.apply(&map, 3).chunks(35).enumerate() {
                for (cell, value) in plane.iter().enumerate() {
                    let four = 4 * cell..4 * cell + 4;
                    let own = four.map(|k| weights[k] * map[70 * channel + at[k] as usize]).sum::<f32>();
                    assert!((own - value).abs() < 1e-6, "{}", view.caption());
                }
            }
        }
    }
}
