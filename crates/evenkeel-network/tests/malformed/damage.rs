//! Damage by chance: files cut short, and bytes changed.

use std::path::{Path, PathBuf};

use super::{assert_modest, attempt, model, survive};

/// Seeded numbers: a linear congruence, its upper bits.
struct Chance(u64);

impl Chance {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        ((self.0 >> 33) as usize) % bound
    }
}

fn small_models() -> [(&'static str, Vec<u8>); 3] {
    [
        ("convnet", model::small_convnet()),
        ("transformer", model::small_transformer()),
        ("program", model::small_program()),
    ]
}

#[test]
fn whole_models_run() {
    for (name, bytes) in small_models() {
        survive(name, bytes).unwrap_or_else(|error| panic!("{name}: {error}"));
    }
}

#[test]
fn truncations_are_told() {
    for (name, bytes) in small_models() {
        for cut in (0..bytes.len()).step_by(64) {
            let outcome = survive(&format!("{name} cut to {cut} bytes"), bytes[..cut].to_vec());
            assert!(outcome.is_err(), "{name} cut to {cut} of {} bytes loads and runs", bytes.len());
        }
    }
    assert_modest();
}

#[test]
fn flipped_bytes_do_no_harm() {
    let mut models: Vec<(String, Vec<u8>)> =
        small_models().into_iter().map(|(name, bytes)| (name.to_string(), bytes)).collect();
    // The three models take half of the flips, the standard's cases, one operator each, the rest.
    let mut harmed = flip(&models, 5_000, 1);
    models = sampled_cases()
        .into_iter()
        .filter_map(|path| Some((name(&path), std::fs::read(&path).ok()?)))
        .collect();
    assert!(!models.is_empty());
    harmed.extend(flip(&models, 5_000, 2));
    assert!(harmed.is_empty(), "{}", harmed.join("\n"));
    assert_modest();
}

/// What went wrong beyond error values in `count` rounds.
fn flip(models: &[(String, Vec<u8>)], count: usize, seed: u64) -> Vec<String> {
    let mut chance = Chance(seed);
    let mut harmed = Vec::new();
    for round in 0..count {
        let (name, bytes) = &models[round % models.len()];
        let mut bytes = bytes.clone();
        for _ in 0..=chance.below(3) {
            let at = chance.below(bytes.len());
            bytes[at] ^= 1 << chance.below(8);
            if chance.below(4) == 0 {
                bytes[at] = chance.below(256) as u8;
            }
        }
        if let Err(harm) = attempt(bytes) {
            harmed.push(format!("{name}, round {round} of seed {seed}: {harm}"));
        }
    }
    harmed
}

fn sampled_cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/onnx/cases");
    let inside = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        paths.sort();
        paths
    };
    let cases = inside(&root).iter().flat_map(|kind| inside(kind)).collect::<Vec<_>>();
    cases.into_iter().map(|case| case.join("model.onnx")).collect()
}

fn name(path: &Path) -> String {
    path.parent()
        .and_then(Path::file_name)
        .map(|name| name.to_string_lossy().into_owned())
        .unwrap_or_default()
}
