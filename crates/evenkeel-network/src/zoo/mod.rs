//! Known architectures, built as graphs from the named weights of their PyTorch checkpoints.
//!
//! A checkpoint holds weights and no program. Each [`Architecture`] of the one [table](ARCHITECTURES) is the program: a function that draws the
//! network's [`Blueprint`] and asks for every weight by PyTorch's name and shape. What it asks for and is not there, and what is there and nobody
//! asked for, is the [`Misfit`]; an architecture without misfit is the checkpoint's. The numbers of classes are read off the weights.
//!
//! All networks take one input, `image` `[n, 3, h, w]`, already normalised as the network was trained, and classifiers and segmenters give
//! one output, `logits`. Inner tensors carry the names of the PyTorch modules that make them, such as `layer3.1.conv2`; a stage's last
//! is called as the stage, such as `layer4`.

pub(crate) mod blueprint;
mod deeplab;
mod draft;
mod drn;
mod file;
mod layers;
pub mod mask_rcnn;
mod misfit;
mod mobilenet_v2;
mod mobilenet_v3;
mod resnet;
mod resnet_cifar;
mod table;
mod weights;

pub use blueprint::Blueprint;
pub use file::{Checkpoint, from_bytes, holds_weights, is_checkpoint, load};
pub use misfit::Misfit;
pub use table::{ARCHITECTURES, Architecture, Task};
pub use weights::Weights;

use crate::error::{Error, Result};

/// The input's name.
pub const IMAGE: &str = "image";
/// The output's name.
pub const LOGITS: &str = "logits";

/// The architecture of this name.
///
/// # Errors
/// If there is none; the names there are get listed.
pub fn find(name: &str) -> Result<&'static Architecture> {
    let known = || {
        let names: Vec<&str> = ARCHITECTURES.iter().map(|architecture| architecture.name).collect();
        Error::Graph(format!("{name:?} is not an architecture of the zoo, which has {}", names.join(", ")))
    };
    ARCHITECTURES.iter().find(|architecture| architecture.name == name).ok_or_else(known)
}

/// The architecture these weights belong to and its blueprint. Where two take the same weights, the first in the table.
///
/// # Errors
/// If none takes exactly these tensors: the differences to the nearest are listed.
pub fn recognise(weights: &Weights) -> Result<Blueprint> {
    let mut nearest: Option<Misfit> = None;
    for architecture in ARCHITECTURES {
        match architecture.fit(weights) {
            Ok(blueprint) => return Ok(blueprint),
            Err(misfit) => {
                if nearest.as_ref().is_none_or(|best| misfit.differences() < best.differences()) {
                    nearest = Some(*misfit);
                }
            }
        }
    }
    let nearest = nearest.map(|misfit| Misfit { guessed: true, ..misfit });
    Err(nearest
        .map_or_else(|| Error::Graph("the zoo is empty".into()), |misfit| Error::Weights(Box::new(misfit))))
}
