//! `evenkeel completions`: completions for shells and manual pages, both made from the commands themselves.

use std::io::Write;
use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::CommandFactory;
use clap_complete::Shell;

/// Print completions for a shell, or write manual pages
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  evenkeel completions bash > ~/.local/share/bash-completion/completions/evenkeel\n  \
                        evenkeel completions zsh > ~/.zfunc/_evenkeel\n  evenkeel completions --man /usr/local/share/man/man1"
)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, required_unless_present = "man")]
    shell: Option<Shell>,
    /// Write a manual page for each command into this folder instead
    #[arg(long, value_name = "DIR", conflicts_with = "shell")]
    man: Option<PathBuf>,
}

pub(crate) fn run(args: CompletionsArgs) -> Result<()> {
    let mut command = crate::Cli::command();
    if let Some(folder) = &args.man {
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        clap_mangen::generate_to(command, folder).with_context(|| folder.display().to_string())?;
        return Ok(());
    }
    if let Some(shell) = args.shell {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut command, "evenkeel", &mut script);
        std::io::stdout().write_all(&script)?;
    }
    Ok(())
}
