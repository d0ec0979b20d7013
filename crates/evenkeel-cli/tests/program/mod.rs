//! The program as a person runs it, for every test that does: in a folder, with nothing to read, so that a question that waits fails.
#![allow(dead_code)] // each test is a program of its own and takes what it needs

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use evenkeel::image::Image;
use serde_json::Value;

pub(crate) fn evenkeel(folder: &Path, words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_evenkeel"));
    command.current_dir(folder).args(words).stdin(Stdio::null()).output().expect("the binary runs")
}

/// The standard output.
pub(crate) fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// The standard error.
pub(crate) fn complained(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The standard output, a value for each line.
pub(crate) fn lines(output: &Output) -> Vec<Value> {
    said(output).lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect()
}

/// Writes a picture that differs by its number and looks like no photo.
pub(crate) fn picture(file: PathBuf, (width, height): (usize, usize), number: usize) {
    let pixels = (0..3 * height * width).map(|i| ((i * (number + 3) * 37) % 251) as f32 / 250.0).collect();
    Image::new(height, width, pixels).expect("an image").save_png(file).expect("written");
}

/// Cuts a file in half.
pub(crate) fn cut_short(file: PathBuf) {
    let whole = std::fs::read(&file).expect("read");
    std::fs::write(file, &whole[..whole.len() / 2]).expect("written");
}
