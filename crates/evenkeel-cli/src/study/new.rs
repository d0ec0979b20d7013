//! `evenkeel study new`: a commented experiment to start from.

use anyhow::{Result, bail};
use evenkeel_study::experiment::TEMPLATES;

/// Print a commented experiment to start from
#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// The template
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// Name the templates
    #[arg(long)]
    list: bool,
}

pub(crate) fn run(args: &NewArgs) -> Result<()> {
    let Some(name) = args.name.as_ref().filter(|_| !args.list) else {
        TEMPLATES.iter().for_each(|t| println!("{:<24} {}", t.name, t.about()));
        return Ok(());
    };
    match TEMPLATES.iter().find(|t| t.name == name) {
        Some(template) => print!("{}", template.text),
        None => bail!("there is no template `{name}`; `evenkeel study new --list` names them"),
    }
    Ok(())
}
