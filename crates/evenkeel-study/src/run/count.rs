//! Counting passes: a network that does what the one inside it does, and counts.
//!
//! Counts are kept for each thread. A unit of a study runs on one thread (a pool of one), so what a thread counts between two readings is
//! what the unit did.

use std::cell::Cell;
use std::sync::Arc;

use evenkeel::Image;
use evenkeel::model::Model;
use evenkeel::network::{Cotangents, Network, Tape, Tensor, Traced};

use crate::record::Passes;

thread_local! {
    static PASSES: Cell<Passes> = const { Cell::new(Passes { forwards: 0, backwards: 0, forward_pixels: 0, backward_pixels: 0 }) };
}

fn add(forward: bool, pixels: u64) {
    let mut now = PASSES.get();
    if forward {
        now.forwards += 1;
        now.forward_pixels += pixels;
    } else {
        now.backwards += 1;
        now.backward_pixels += pixels;
    }
    PASSES.set(now);
}

/// The passes of this thread so far; they start again from zero.
pub(super) fn take() -> Passes {
    PASSES.take()
}

/// The passes of this thread so far but for the first forward pass, which stays counted: what a vote takes beyond a plain answer.
pub(super) fn beyond_one() -> Passes {
    let all = PASSES.get();
    let share = all.forward_pixels / all.forwards.max(1);
    let one =
        Passes { forwards: all.forwards.min(1), backwards: 0, forward_pixels: share, backward_pixels: 0 };
    PASSES.set(one);
    Passes { forwards: all.forwards - one.forwards, forward_pixels: all.forward_pixels - share, ..all }
}

/// A network that counts.
struct Counted {
    inner: Arc<dyn Network>,
}

/// The model with its passes counted.
pub(super) fn counted(model: Model) -> Model {
    let network = Arc::new(Counted { inner: model.network });
    Model { network, ..model }
}

fn pixels(image: &Image) -> u64 {
    (image.height() * image.width()) as u64
}

impl Network for Counted {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        self.inner.fixed_size()
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> evenkeel::Result<Vec<Vec<Tensor>>> {
        images.iter().for_each(|image| add(true, pixels(image)));
        self.inner.run(images, tensors)
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> evenkeel::Result<Vec<Traced<'_>>> {
        images.iter().for_each(|image| add(true, pixels(image)));
        let traced = self.inner.trace(images, tensors)?;
        let counted = traced.into_iter().zip(images).map(|(Traced { tensors, tape }, image)| {
            let tape: Box<dyn Tape> = Box::new(CountedTape { inner: tape, pixels: pixels(image) });
            Traced { tensors, tape }
        });
        Ok(counted.collect())
    }
}

struct CountedTape<'n> {
    inner: Box<dyn Tape + 'n>,
    pixels: u64,
}

impl Tape for CountedTape<'_> {
    fn pullback(&self, cotangents: Cotangents) -> evenkeel::Result<Vec<f32>> {
        add(false, self.pixels);
        self.inner.pullback(cotangents)
    }
}
