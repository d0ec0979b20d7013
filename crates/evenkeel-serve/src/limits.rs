//! Limits: the most that a client can make the server hold, wait for or compute. Every one has a flag and a default that is safe on a small machine.

use std::time::Duration;

/// The most that is accepted.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Bytes of a body, as sent and as decompressed.
    pub body_bytes: usize,
    /// Bytes of all requests together, while they are read, wait and are computed; never less than one body.
    pub held_bytes: usize,
    /// Pixels of a request's images together, in millions; judged before anything of that size is allocated.
    pub megapixels: usize,
    /// Pixels of one image for a network that has no size of its own, in millions: its memory grows with them.
    pub network_megapixels: usize,
    /// Images of one request.
    pub batch: usize,
    /// Connections at a time.
    pub connections: usize,
    /// How long a client may take for its headers, and how long a connection may be idle.
    pub header_time: Duration,
    /// How long a client may take for a body, or to take up the answer.
    pub body_time: Duration,
    /// How long a request may wait and run.
    pub request_time: Duration,
    /// How long requests are finished after the signal to stop.
    pub drain_time: Duration,
    /// Plain requests that may wait.
    pub plain_queue: usize,
    /// Defended requests that may wait.
    pub defended_queue: usize,
    /// The largest whole number a request may set a knob of a defence or an answer to: gradients, draws.
    pub knob: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            body_bytes: 32 << 20,
            held_bytes: 256 << 20,
            megapixels: 16,
            network_megapixels: 3,
            batch: 64,
            connections: 512,
            header_time: Duration::from_secs(10),
            body_time: Duration::from_secs(30),
            request_time: Duration::from_secs(30),
            drain_time: Duration::from_secs(30),
            plain_queue: 128,
            defended_queue: 16,
            knob: 200,
        }
    }
}

impl Limits {
    /// Pixels of a request's images together.
    pub fn pixels(&self) -> usize {
        self.megapixels.saturating_mul(1_000_000)
    }

    /// Pixels of one image for a network that has no size of its own.
    pub fn network_pixels(&self) -> usize {
        self.network_megapixels.saturating_mul(1_000_000)
    }
}
