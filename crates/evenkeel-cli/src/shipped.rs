//! The networks in the binary: trained on rendered scenes, so that everything works without a file.

use anyhow::Result;
use evenkeel::model::{Contract, Model};
use evenkeel_study::run::Embedded;
use std::path::Path;

/// A network in the binary.
pub(crate) struct Shipped {
    name: &'static str,
    network: &'static [u8],
    contract: &'static str,
}

/// Segments street scenes; trained without an adversary.
pub(crate) const SEGMENTER: Shipped = Shipped {
    name: "scenes_segmenter",
    network: include_bytes!("../../../models/scenes_segmenter.onnx"),
    contract: include_str!("../../../models/scenes_segmenter.evenkeel.toml"),
};

/// Names object crops; trained without an adversary.
pub(crate) const CLASSIFIER: Shipped = Shipped {
    name: "scenes_classifier",
    network: include_bytes!("../../../models/scenes_classifier.onnx"),
    contract: include_str!("../../../models/scenes_classifier.evenkeel.toml"),
};

/// Every network in the binary, by the name that follows `embedded:`.
pub(crate) const SHELF: [(&str, Shipped); 2] = [("segmenter", SEGMENTER), ("classifier", CLASSIFIER)];

impl Shipped {
    /// As studies take it.
    pub(crate) const fn embedded(&self, name: &'static str) -> Embedded {
        Embedded { name, network: self.network, contract: self.contract }
    }

    /// The network, ready to look.
    pub(crate) fn model(&self) -> Result<Model> {
        let contract = Contract::parse(self.contract, Path::new(self.name))?;
        Ok(Model::from_bytes(self.network, Path::new(self.name), &contract)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_network_loads() {
        for shipped in [SEGMENTER, CLASSIFIER] {
            assert!(!shipped.model().unwrap().class_names.is_empty(), "{}", shipped.name);
        }
    }
}
