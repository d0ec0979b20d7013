//! Files: networks from ONNX, weights from safetensors and PyTorch checkpoints, reference values from NumPy archives.

pub mod npz;
pub mod onnx;
pub mod safetensors;
pub mod torch;
mod zip;
