//! Vision networks made robust at the moment they are used, without retraining them.
//!
//! A natural image gives features that are equivariant: transform the image, undo the transformation on the features, and you are back where you
//! started. An attacked, corrupted or foreign image breaks that. This crate measures the break ([`detect`]) and repairs the image by gradient ascent
//! on equivariance ([`defence`]); [`attack`] holds the attacks that try to beat both. It implements the method of the ICML 2023 paper "Robust
//! Perception through Equivariance" for image classification, semantic and instance segmentation, and dense regression.
//!
//! # From an ONNX file to a defended answer with an alarm
//!
//! ```
//! use std::sync::Arc;
//!
//! use evenkeel::{DefenceSpec, DetectorSpec, Heads, Image, Model, Pipeline, shipped};
//!
//! fn main() -> evenkeel::Result<()> {
//!     // `Model::load("net.onnx")` reads a network and the contract beside it; this one comes with the crate.
//!     let model: Arc<Model> = Arc::new(shipped::named("classifier")?.model()?);
//!     // `Image::load("photo.jpg")` reads a picture; `fit` brings it to the network's size.
//!     let image: Image = model.fit(&Image::filled(64, 64, 0.5))?;
//!     let defence = DefenceSpec::named("equivariance")?.with("steps", 5)?.build(&model, &Heads::default())?;
//!     let detector = DetectorSpec::named("variance")?.build(&model, Heads::default())?;
//!     let pipeline = Pipeline::new(model.clone()).with_defence(defence).with_detector(detector).with_threshold(0.2);
//!     let verdict = pipeline.run(&image)?;
//!     println!("{}", verdict.prediction.words(&model.class_info()));
//!     println!("score {:?}, alarm {:?}, defended {}", verdict.score, verdict.alarm, verdict.defended);
//!     Ok(())
//! }
//! ```
//!
//! # Attack what is deployed
//!
//! A pipeline is a network again, so every attack of the table can be aimed through every defence:
//!
//! ```
//! use std::sync::Arc;
//!
//! use evenkeel::{Attack, DefenceSpec, Heads, Image, Pipeline, Scenario, Truth, shipped};
//!
//! # fn main() -> evenkeel::Result<()> {
//! let model = Arc::new(shipped::named("classifier")?.model()?);
//! let image = model.fit(&Image::filled(64, 64, 0.5))?;
//! let defence = DefenceSpec::named("equivariance")?.with("steps", 1)?.build(&model, &Heads::default())?;
//! let pipeline = Pipeline::new(model).with_defence(defence);
//! let attack = Attack::named("apgd-ce")?.with("epsilon", "4/255")?.with("steps", 3)?.with("draws", 2)?;
//! let outcome = attack.run(&Scenario::through(&pipeline, &image, &Truth::of_class(0)))?;
//! assert!(attack.settings().budget().contains(&image, &outcome.image));
//! # Ok(())
//! # }
//! ```
//!
//! # Where things are
//!
//! The flow is also the module order: image, [`view`], [`network`] (the seam to any executor), [`model`], [`task`], [`objective`], [`budget`],
//! [`step`], [`optimise`] (the one loop), [`attack`], [`defence`], [`answer`], [`detect`], [`pipeline`], [`policy`]; beside it [`corrupt`], [`settings`] (every knob,
//! described once) and [`shipped`]. `examples/` holds programs to start from: defend, attack, detect and a network of one's own; a study from Rust is
//! `crates/evenkeel-study/examples/study.rs`.

#![forbid(unsafe_code)]

pub mod answer;
pub mod attack;
pub mod budget;
pub mod corrupt;
pub mod defence;
pub mod detect;
pub mod error;
pub mod image;
pub mod model;
pub mod network;
pub mod objective;
pub mod optimise;
pub mod pipeline;
pub mod policy;
pub mod random;
pub mod settings;
pub mod shipped;
pub mod step;
pub mod task;
#[cfg(test)]
mod toy;
pub mod view;

pub use answer::{Answer, AnswerSpec};
pub use attack::{Attack, Scenario};
pub use budget::{Budget, Norm};
pub use corrupt::Corruption;
pub use defence::{Defence, DefenceSpec};
pub use detect::{Calibration, Detector, DetectorSpec, Heads};
pub use error::{Error, Result};
pub use image::{Image, LabelMap, Palette};
pub use model::{Contract, Model};
pub use network::Network;
pub use pipeline::{Pipeline, Verdict};
pub use policy::Policy;
pub use random::Random;
pub use task::{Prediction, Truth};
pub use view::ViewSet;
