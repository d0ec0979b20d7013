//! A protected inference server: models behind the Open Inference Protocol v2, with an alarm and a defended answer, and a page for people.
//!
//! ```no_run
//! use evenkeel_serve::{Hosted, Options, Server};
//!
//! fn main() -> evenkeel_serve::Result<()> {
//!     let model = Hosted::load("net.onnx".as_ref(), true)?; // with its contract and, if there are any, calibration and policy beside it
//!     let server = Server::start(Options::default(), vec![model])?;
//!     println!("http://{}", server.address());
//!     server.run(); // until SIGTERM or Ctrl-C; what was accepted is answered
//!     Ok(())
//! }
//! ```
//!
//! The way of a request: `connection` (bytes, under time-outs) → `front` → `routes` (one table) → `protocol` (parsed, within limits) → `choice` (settings, checked by the
//! tables of `evenkeel`) → `queue` (bounded, two lanes) → `workers` → `question` (the method) → back. `grpc` joins at the parser.

#![forbid(unsafe_code)]

mod accept;
mod alarms;
mod auth;
mod body;
mod budget;
mod choice;
mod connection;
mod error;
mod front;
mod grpc;
mod head_watch;
mod hosted;
mod infer;
mod job;
mod judge;
mod limits;
mod logs;
mod metadata;
mod metrics;
mod openapi;
mod page;
mod pictures;
pub mod protocol;
mod question;
mod queue;
mod render;
mod respond;
mod routes;
mod server;
mod service;
mod signals;
mod sizes;
mod tensors;
mod watched;
mod workers;

pub use auth::Token;
pub use choice::{Allowed, Choice};
pub use error::{Error, Result};
pub use hosted::{Example, Hosted};
pub use job::Hook;
pub use limits::Limits;
pub use logs::{LogFormat, init as init_logs};
pub use question::{Question, Source, Wants};
pub use server::{Options, Server};
pub use watched::Passes;
