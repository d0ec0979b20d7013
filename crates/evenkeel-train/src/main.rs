//! `evenkeel-train`: trains networks and heads on your own data, and those that evenkeel ships.

use clap::Parser;
use evenkeel_train::command::{TrainArgs, run};
use std::process::ExitCode;

/// Train networks and heads on your own data
#[derive(Debug, Parser)]
#[command(version)]
struct Cli {
    #[command(flatten)]
    args: TrainArgs,
}

fn main() -> ExitCode {
    match run(&Cli::parse().args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is said to somebody who asks for this.
    fn refused(words: &[&str]) -> String {
        let line = ["evenkeel-train", "classifier", "--output"].iter().chain(words);
        match Cli::try_parse_from(line).map(|cli| run(&cli.args)) {
            Err(error) => error.to_string(),
            Ok(Err(error)) => error.to_string(),
            Ok(Ok(())) => panic!("{words:?} was not refused"),
        }
    }

    #[test]
    fn absurd_requests_are_refused_before_anything_is_rendered() {
        for name in ["--batch", "--pictures", "--held-out", "--steps", "--every", "--adversary-steps"] {
            let told = refused(&["a.onnx", name, "0"]);
            assert!(told.contains(name) && told.contains("at least 1"), "{told}");
        }
        let told = refused(&["a.onnx", "--batch", "100000000"]);
        assert!(told.contains("at most 512 pictures"), "{told}");
        let told = refused(&["no/such/folder/a.onnx"]);
        assert!(told.contains("no/such/folder is not a folder"), "{told}");
        let told = refused(&["a.bin"]);
        assert!(told.contains("name it .onnx"), "{told}");
        let told = refused(&["a.onnx", "--data", "voc"]);
        assert!(told.contains("its path is missing"), "{told}");
        let told = refused(&["a.onnx", "--arch", "compact"]);
        assert!(told.contains("is a segmenter"), "{told}");
        let told = refused(&["a.onnx", "--scale", "2,1"]);
        assert!(told.contains("the smaller first"), "{told}");
        let told = refused(&["a.onnx", "--adversarial", "lots"]);
        assert!(told.contains("4/255"), "{told}");
    }
}
