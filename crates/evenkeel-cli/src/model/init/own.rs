//! The flags of the contract's table that belongs to the task, made from the tasks' own lists of keys.

use anyhow::{Result, bail};
use evenkeel::task::{TASKS, TaskKey, TaskKind};

/// What the contract's table of the task holds, by key, as it was given.
#[derive(Debug)]
pub(super) struct TaskArgs(pub(super) Vec<(&'static str, String)>);

/// The keys of all tasks' tables, each once, with the tasks that read it.
fn task_keys() -> Vec<(&'static TaskKey, Vec<&'static str>)> {
    let mut all: Vec<(&TaskKey, Vec<&str>)> = Vec::new();
    for (kind, key) in TASKS.iter().flat_map(|kind| kind.keys.iter().map(move |key| (kind, key))) {
        match all.iter_mut().find(|(known, _)| known.name == key.name) {
            Some((_, tasks)) => tasks.push(kind.name),
            None => all.push((key, vec![kind.name])),
        }
    }
    all
}

fn flag_of(key: &str) -> String {
    key.replace('_', "-")
}

impl clap::Args for TaskArgs {
    fn augment_args(command: clap::Command) -> clap::Command {
        task_keys().into_iter().fold(command, |command, (key, tasks)| {
            let default = key.default.map_or(String::new(), |value| format!(" [default: {value}]"));
            let help = format!("For {}: {}{default}", tasks.join(", "), key.help);
            let arg = clap::Arg::new(flag_of(key.name)).long(flag_of(key.name));
            command.arg(arg.value_name("VALUE").allow_negative_numbers(true).help(help))
        })
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for TaskArgs {
    fn from_arg_matches(matches: &clap::ArgMatches) -> Result<Self, clap::Error> {
        let value =
            |key: &'static TaskKey| Some((key.name, matches.get_one::<String>(&flag_of(key.name))?.clone()));
        Ok(Self(task_keys().into_iter().filter_map(|(key, _)| value(key)).collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &clap::ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl TaskArgs {
    /// Refuses what the task does not read.
    pub(super) fn check(&self, task: &str) -> Result<()> {
        let kind = TaskKind::find(task)?;
        match self.0.iter().find(|(name, _)| kind.keys.iter().all(|key| key.name != *name)) {
            Some((name, _)) => bail!("--{}: the task {task} does not read it", flag_of(name)),
            None => Ok(()),
        }
    }
}
