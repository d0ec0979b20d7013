//! The networks in the binary: trained on rendered scenes, so that everything works without a file.

use anyhow::Result;
use evenkeel::model::{Contract, Model};
use evenkeel::objective::Bank;
use evenkeel::objective::head::Head;
use evenkeel_study::run::Embedded;
use std::path::Path;

/// A network in the binary.
pub(crate) struct Shipped {
    name: &'static str,
    network: &'static [u8],
    contract: &'static str,
    heads: ShippedHeads,
}

/// The heads on a network's frozen features, as safetensors.
struct ShippedHeads {
    rotation: &'static [u8],
    contrastive: &'static [u8],
}

macro_rules! shipped {
    ($name:literal) => {
        Shipped {
            name: $name,
            network: include_bytes!(concat!("../../../models/", $name, ".onnx")),
            contract: include_str!(concat!("../../../models/", $name, ".evenkeel.toml")),
            heads: ShippedHeads {
                rotation: include_bytes!(concat!("../../../models/", $name, ".rotation.safetensors")),
                contrastive: include_bytes!(concat!("../../../models/", $name, ".contrastive.safetensors")),
            },
        }
    };
}

/// Segments street scenes; trained without an adversary.
pub(crate) const SEGMENTER: Shipped = shipped!("scenes_segmenter");

/// Names object crops; trained without an adversary.
pub(crate) const CLASSIFIER: Shipped = shipped!("scenes_classifier");

/// Finds cars and people; trained without an adversary.
pub(crate) const INSTANCES: Shipped = shipped!("scenes_instances");

/// Segments street scenes; trained on attacked ones.
const ROBUST_SEGMENTER: Shipped = shipped!("scenes_segmenter_adv");

/// Names object crops; trained on attacked ones.
const ROBUST_CLASSIFIER: Shipped = shipped!("scenes_classifier_adv");

/// Every network in the binary, by the name that follows `embedded:`.
pub(crate) const SHELF: [(&str, Shipped); 5] = [
    ("segmenter", SEGMENTER),
    ("classifier", CLASSIFIER),
    ("instances", INSTANCES),
    ("segmenter-adv", ROBUST_SEGMENTER),
    ("classifier-adv", ROBUST_CLASSIFIER),
];

impl Shipped {
    /// As studies take it.
    pub(crate) const fn embedded(&self, name: &'static str) -> Embedded {
        Embedded {
            name,
            network: self.network,
            contract: self.contract,
            rotation: self.heads.rotation,
            contrastive: self.heads.contrastive,
        }
    }

    /// The network, ready to look.
    pub(crate) fn model(&self) -> Result<Model> {
        let contract = Contract::parse(self.contract, Path::new(self.name))?;
        Ok(Model::from_bytes(self.network, Path::new(self.name), &contract)?)
    }

    /// The head and bank that a defence or detector of this name needs, if it needs any.
    pub(crate) fn head_for(&self, name: &str) -> Result<(Option<Head>, Option<Bank>)> {
        let path = Path::new(self.name);
        let heads = &self.heads;
        Ok(match name {
            "rotation" => (Some(Head::from_bytes(heads.rotation, path)?), None),
            "contrastive" => (
                Some(Head::from_bytes(heads.contrastive, path)?),
                Some(Bank::from_bytes(heads.contrastive, path)?),
            ),
            _ => (None, None),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_network_loads() {
        for (_, shipped) in SHELF {
            let model = shipped.model().unwrap();
            assert!(!model.class_names.is_empty(), "{}", shipped.name);
            for name in ["rotation", "contrastive"] {
                let (head, bank) = shipped.head_for(name).unwrap();
                assert!(head.is_some(), "{} has no head for {name}", shipped.name);
                assert_eq!(bank.is_some(), name == "contrastive");
            }
        }
    }
}
