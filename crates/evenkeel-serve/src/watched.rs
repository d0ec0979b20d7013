//! A network that counts its passes and ends when nobody waits for the answer any more.
//!
//! Defences, detectors and votes spend their time in passes, so a question asked before each ends them all. Answers are the network's own, bit for bit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use evenkeel::image::Image;
use evenkeel::network::{BatchTape, Cotangents, Network, Tape, Tensor, Traced, TracedBatch};
use evenkeel::{Error, Result};

/// Images that went through a network, and gradients that came back.
#[derive(Debug, Default)]
pub struct Passes {
    /// Forwards.
    pub forward: AtomicU64,
    /// Backwards.
    pub backward: AtomicU64,
}

/// Whether to stop.
pub(crate) type Stop = Arc<dyn Fn() -> bool + Send + Sync>;

/// The network, counted and stoppable.
pub(crate) struct Watched {
    network: Arc<dyn Network>,
    passes: Arc<Passes>,
    stop: Stop,
}

impl Watched {
    pub(crate) fn new(network: Arc<dyn Network>, passes: Arc<Passes>, stop: Stop) -> Self {
        Self { network, passes, stop }
    }

    fn go_on(&self, images: usize) -> Result<&dyn Network> {
        if (self.stop)() {
            return Err(Error::network("nobody waits for the answer any more"));
        }
        self.passes.forward.fetch_add(images as u64, Ordering::Relaxed);
        Ok(&*self.network)
    }
}

impl Network for Watched {
    fn fixed_size(&self) -> Option<(usize, usize)> {
        self.network.fixed_size()
    }

    fn run(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Vec<Tensor>>> {
        self.go_on(images.len())?.run(images, tensors)
    }

    fn trace(&self, images: &[&Image], tensors: &[&str]) -> Result<Vec<Traced<'_>>> {
        let traced = self.go_on(images.len())?.trace(images, tensors)?;
        let counted =
            |Traced { tensors, tape }| Traced { tensors, tape: Box::new(Counted(tape, &self.passes)) };
        Ok(traced.into_iter().map(counted).collect())
    }

    fn prefers_batches(&self) -> bool {
        self.network.prefers_batches()
    }

    fn trace_batch(&self, images: &[&Image], tensors: &[&str]) -> Result<TracedBatch<'_>> {
        let TracedBatch { tensors, tape } = self.go_on(images.len())?.trace_batch(images, tensors)?;
        Ok(TracedBatch { tensors, tape: Box::new(Counted(tape, &self.passes)) })
    }
}

/// A tape whose pullbacks are counted.
struct Counted<'n, T>(T, &'n Passes);

impl Tape for Counted<'_, Box<dyn Tape + '_>> {
    fn pullback(&self, cotangents: Cotangents) -> Result<Vec<f32>> {
        self.1.backward.fetch_add(1, Ordering::Relaxed);
        self.0.pullback(cotangents)
    }
}

impl BatchTape for Counted<'_, Box<dyn BatchTape + '_>> {
    fn pullback(&self, cotangents: Vec<Cotangents>) -> Result<Vec<Vec<f32>>> {
        self.1.backward.fetch_add(cotangents.len() as u64, Ordering::Relaxed);
        self.0.pullback(cotangents)
    }
}
