//! A network that can be stopped: the point where every long loop of the method can be ended from outside.
//!
//! Attacks, defences, detectors and votes spend their time in passes of a network, so a flag that each pass looks at first ends them all; what was
//! under way is dropped. Answers are the network's own, bit for bit.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::{ComparedThere, Comparison, Network, Tensor, Traced, TracedBatch};
use crate::error::{Error, Result};
use crate::image::Image;

/// A network whose passes fail with [`Error::Interrupted`] once a flag is raised.
pub struct Interruptible {
    network: Arc<dyn Network>,
    stop: Arc<AtomicBool>,
}

impl Interruptible {
    /// The network, under a flag that anyone may raise.
    pub fn new(network: Arc<dyn Network>, stop: Arc<AtomicBool>) -> Self {
        Self { network, stop }
    }

    fn go_on(&self) -> Result<&dyn Network> {
        match self.stop.load(Ordering::Relaxed) {
            true => Err(Error::Interrupted),
            false => Ok(&*self.network),
        }
    }
}

impl Network for Interruptible {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        self.network.fixed_size()
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        self.go_on()?.run(images, tensors)
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Traced<'_>>> {
        self.go_on()?.trace(images, tensors)
    }

    fn prefers_batches(&self) -> bool {
        self.network.prefers_batches()
    }

    fn trace_batch(&self, images: &[&Image], tensors: &[&str]) -> Result<TracedBatch<'_>> {
        self.go_on()?.trace_batch(images, tensors)
    }

    fn compares(&self) -> bool {
        self.network.compares()
    }

    fn compare(&self, images: &[&Image], tensors: &[&str], asked: &Comparison) -> Result<ComparedThere<'_>> {
        self.go_on()?.compare(images, tensors, asked)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attack, Scenario, shipped};

    #[test]
    fn a_raised_flag_ends_an_attack_and_a_lowered_one_changes_nothing() {
        let model = shipped::named("classifier").unwrap().model().unwrap();
        let image = model.fit(&Image::filled(64, 64, 0.5)).unwrap();
        let truth = model.predict(&image).unwrap().as_truth();
        let attack = Attack::named("pgd").unwrap().with("steps", 2).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let under_flag = model.interruptible(stop.clone());
        let plain = attack.run(&Scenario::new(&model, &image, &truth)).unwrap();
        let same = attack.run(&Scenario::new(&under_flag, &image, &truth)).unwrap();
        assert_eq!(plain.image, same.image);
        stop.store(true, Ordering::Relaxed);
        let ended = attack.run(&Scenario::new(&under_flag, &image, &truth));
        assert!(matches!(ended, Err(Error::Interrupted)));
    }
}
