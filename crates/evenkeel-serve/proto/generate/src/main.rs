//! Writes the gRPC code of evenkeel-serve from its proto file, with the file's fingerprint in front, which a test compares.

use std::path::Path;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let proto = crate_folder.join("proto/inference.proto");
    let target = crate_folder.join("src/grpc");
    let mut config = prost_build::Config::new();
    config.bytes(["."]).out_dir(&target);
    let files = protox::compile([&proto], [crate_folder.join("proto")])?;
    let tonic = tonic_prost_build::configure().build_client(false).build_transport(false).out_dir(&target);
    let tonic = tonic.codec_path("super::super::bounded::Bounded");
    tonic.compile_fds_with_config(files, config)?;
    let code = std::fs::read_to_string(target.join("inference.rs"))?;
    let hash = blake3::hash(&std::fs::read(&proto)?).to_hex();
    std::fs::write(target.join("inference.rs"), format!("// Written by proto/generate from inference.proto, BLAKE3 {hash}.\n{code}"))?;
    Ok(())
}
