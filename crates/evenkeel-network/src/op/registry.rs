//! The one table of operators. Adding one is a file beside this and a line here.

use super::{Definition, Operator};
use crate::error::Fault;

/// How an operator is made from what a file says of it.
pub struct Entry {
    /// Its ONNX name.
    pub name: &'static str,
    /// Its domain: empty for ONNX's own.
    pub domain: &'static str,
    /// Makes it, or says why it cannot be run exactly.
    pub build: fn(&Definition<'_>) -> Result<Box<dyn Operator>, Fault>,
    /// Whether it has an input gradient.
    pub gradient: bool,
}

/// An entry of ONNX's own domain.
pub const fn entry(
    name: &'static str,
    gradient: bool,
    build: fn(&Definition<'_>) -> Result<Box<dyn Operator>, Fault>,
) -> Entry {
    Entry { name, domain: "", build, gradient }
}

/// Every file's entries.
const TABLE: &[&[Entry]] = &[
    super::activation::ENTRIES,
    super::activation::FUNCTIONS,
    super::affine_grid::ENTRIES,
    super::arg::ENTRIES,
    super::arithmetic::ENTRIES,
    super::batch_norm::ENTRIES,
    super::cast::ENTRIES,
    super::choose::ENTRIES,
    super::clip::ENTRIES,
    super::compare::ENTRIES,
    super::concat::ENTRIES,
    super::control::ENTRIES,
    super::conv::ENTRIES,
    super::cumsum::ENTRIES,
    super::einsum::ENTRIES,
    super::expand::ENTRIES,
    super::gather::ENTRIES,
    super::grid_sample::ENTRIES,
    super::gemm::ENTRIES,
    super::group_norm::ENTRIES,
    super::identity::ENTRIES,
    super::layer_norm::ENTRIES,
    super::logic::ENTRIES,
    super::matmul::ENTRIES,
    super::nms::ENTRIES,
    super::norms::ENTRIES,
    super::pad::ENTRIES,
    super::pool::ENTRIES,
    super::pow::ENTRIES,
    super::quantize::ENTRIES,
    super::reduce::ENTRIES,
    super::reshape::ENTRIES,
    super::resize::ENTRIES,
    super::roi_align::ENTRIES,
    super::scatter::ENTRIES,
    super::select::ENTRIES,
    super::shape::ENTRIES,
    super::slice::ENTRIES,
    super::softmax::ENTRIES,
    super::top_k::ENTRIES,
    super::transpose::ENTRIES,
    super::two_slope::ENTRIES,
    super::unary::ENTRIES,
    super::variadic::ENTRIES,
];

/// All entries.
pub fn entries() -> impl Iterator<Item = &'static Entry> {
    TABLE.iter().flat_map(|group| group.iter())
}

/// The entry of an operator.
pub fn find(domain: &str, name: &str) -> Option<&'static Entry> {
    let domain = if domain == "ai.onnx" { "" } else { domain };
    entries().find(|entry| entry.name == name && entry.domain == domain)
}
