//! Files: networks from ONNX, weights from safetensors, reference values from NumPy archives.

pub mod npz;
pub mod onnx;
pub mod safetensors;
