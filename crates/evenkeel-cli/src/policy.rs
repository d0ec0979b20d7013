//! Policies on the command line: the file beside the network, `--policy FILE` or `--no-policy`, for every subcommand that answers.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Result, bail};
use evenkeel::detect::Heads;
use evenkeel::policy::Figures;
use evenkeel::{Model, Pipeline, Policy};

use crate::colour::{self, Tone};

/// Warns that a policy beside the network chose something else than the flags ask for.
fn against(path: &Path, policy: &Policy, flag: &str) {
    let record = policy.figures.as_ref().map_or(String::new(), |figures| format!(" ({figures})"));
    let sentence = match policy.acts() {
        true => {
            format!("{}: chose {}{record}; {flag} asks for something else", path.display(), policy.words())
        }
        false => format!(
            "warning: {}: nothing that was tried on this network was worth what it costs{record}, and {flag} asks for it",
            path.display()
        ),
    };
    let tone = if policy.acts() { Tone::Calm } else { Tone::Warning };
    eprintln!("{}", colour::err(&sentence, tone));
}

/// What decides unless flags do
#[derive(Debug, clap::Args)]
pub(crate) struct PolicyArgs {
    /// Do what this policy of `evenkeel tune` says [default: net.policy.toml beside the network, if there is one and no flag asks for something else]
    #[arg(long, value_name = "FILE", conflicts_with = "no_policy")]
    policy: Option<PathBuf>,
    /// Leave a policy beside the network alone
    #[arg(long)]
    no_policy: bool,
}

impl PolicyArgs {
    /// The policy to obey. `flag` is one that asks for something else: a policy beside the network then stands back, and one that was named is refused.
    pub(crate) fn load(&self, network: &Path, model: &Model, flag: Option<&str>) -> Result<Option<Policy>> {
        match (&self.policy, flag) {
            (Some(_), Some(flag)) => bail!("{flag} and --policy both say what to do; leave one out"),
            (Some(path), None) => Ok(Some(Policy::load(path, model)?)),
            (None, None) if !self.no_policy => Ok(Policy::beside(network, model)?),
            (None, Some(flag @ ("--defence" | "--answer" | "--always"))) if !self.no_policy => {
                // one for another network says nothing about this
                if let Ok(Some(policy)) = Policy::beside(network, model) {
                    against(&Policy::path_beside(network), &policy, flag);
                }
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// The pipeline of a policy to obey, which is named on standard error.
    pub(crate) fn announced(
        &self,
        network: &Path,
        policy: &Policy,
        model: &Arc<Model>,
        heads: &Heads,
    ) -> Result<Pipeline> {
        let path = self.policy.clone().unwrap_or_else(|| Policy::path_beside(network));
        eprintln!("{}: {}", path.display(), policy.words());
        if let Some(cost) = policy.figures.as_ref().and_then(Figures::costs_more) {
            let sentence = format!("warning: by its own record this policy costs more than it gives: {cost}");
            eprintln!("{}", colour::err(&sentence, Tone::Warning));
        }
        Ok(policy.pipeline(model.clone(), heads)?)
    }
}
