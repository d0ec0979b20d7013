//! The shipped networks as studies take them, under `embedded:NAME`.

use evenkeel::shipped::{SHIPPED, Shipped};
use evenkeel_study::run::Embedded;

fn embedded(shipped: &Shipped) -> Embedded {
    Embedded {
        name: shipped.name,
        network: shipped.network,
        contract: shipped.contract,
        rotation: shipped.rotation,
        contrastive: shipped.contrastive,
    }
}

/// Every network in the binary.
pub(crate) fn shelf() -> Vec<Embedded> {
    SHIPPED.iter().map(embedded).collect()
}
