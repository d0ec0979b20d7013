//! The networks that come with the crate: small, trained on rendered street scenes, so that everything can be tried without a file.
//!
//! `models/README.md` says how each was made and what it scores.

use std::path::Path;

use crate::detect::{Calibration, Heads};
use crate::error::{Error, Result};
use crate::model::{Contract, Model};
use crate::objective::Bank;
use crate::objective::head::Head;

/// A network in the crate.
pub struct Shipped {
    /// Its name.
    pub name: &'static str,
    /// What it does, in a line.
    pub about: &'static str,
    /// The ONNX file.
    pub network: &'static [u8],
    /// Its contract, a TOML file.
    pub contract: &'static str,
    /// A rotation head on its features, as safetensors.
    pub rotation: &'static [u8],
    /// A projection head on its features with a bank of other images' embeddings, as safetensors.
    pub contrastive: &'static [u8],
    /// The calibration of its alarm on rendered scenes, a TOML file.
    pub calibration: &'static str,
}

macro_rules! shipped {
    ($name:literal, $file:literal, $about:literal) => {
        Shipped {
            name: $name,
            about: $about,
            network: include_bytes!(concat!("../models/", $file, ".onnx")),
            contract: include_str!(concat!("../models/", $file, ".evenkeel.toml")),
            rotation: include_bytes!(concat!("../models/", $file, ".rotation.safetensors")),
            contrastive: include_bytes!(concat!("../models/", $file, ".contrastive.safetensors")),
            calibration: include_str!(concat!("../models/", $file, ".calibration.toml")),
        }
    };
}

/// Every shipped network.
pub static SHIPPED: [Shipped; 5] = [
    shipped!("segmenter", "scenes_segmenter", "segments street scenes"),
    shipped!("classifier", "scenes_classifier", "classifies crops of street scenes"),
    shipped!("instances", "scenes_instances", "finds cars and people in street scenes"),
    shipped!("segmenter-adv", "scenes_segmenter_adv", "segments street scenes; trained on attacked ones"),
    shipped!("classifier-adv", "scenes_classifier_adv", "classifies crops; trained on attacked ones"),
];

/// The shipped network of this name.
///
/// # Errors
/// Listing the names there are.
pub fn named(name: &str) -> Result<&'static Shipped> {
    SHIPPED.iter().find(|shipped| shipped.name == name).ok_or_else(|| {
        let names: Vec<_> = SHIPPED.iter().map(|shipped| shipped.name).collect();
        Error::setting(format!("shipped network {name}"), format!("is not one of {}", names.join(", ")))
    })
}

impl Shipped {
    /// The network, ready to be used.
    ///
    /// # Errors
    /// Never, unless the crate was damaged.
    pub fn model(&self) -> Result<Model> {
        let path = Path::new(self.name);
        Model::from_bytes(self.network, path, &Contract::parse(self.contract, path)?)
    }

    /// The calibration of its alarm, for the network that [`Shipped::model`] gives.
    ///
    /// # Errors
    /// If it was made for another network than this.
    pub fn calibration(&self, model: &Model) -> Result<Calibration> {
        Calibration::parse(self.calibration, Path::new(self.name), model)
    }

    /// The heads that a defence or detector of this name needs, if it needs any.
    ///
    /// # Errors
    /// Never, unless the crate was damaged.
    pub fn heads_for(&self, name: &str) -> Result<Heads> {
        let path = Path::new(self.name);
        Ok(match name {
            "rotation" => Heads { head: Some(Head::from_bytes(self.rotation, path)?), bank: None },
            "contrastive" => Heads {
                head: Some(Head::from_bytes(self.contrastive, path)?),
                bank: Some(Bank::from_bytes(self.contrastive, path)?),
            },
            _ => Heads::default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_network_loads() {
        for shipped in &SHIPPED {
            let model = shipped.model().unwrap();
            assert!(!model.class_names.is_empty(), "{}", shipped.name);
            let calibration = shipped.calibration(&model).unwrap();
            assert!(calibration.detector(&model, Heads::default()).is_ok(), "{}", shipped.name);
            for name in ["rotation", "contrastive"] {
                let Heads { head, bank } = shipped.heads_for(name).unwrap();
                assert!(head.is_some(), "{} has no head for {name}", shipped.name);
                assert_eq!(bank.is_some(), name == "contrastive");
            }
        }
        assert!(named("oracle").err().unwrap().to_string().contains("segmenter"));
    }
}
