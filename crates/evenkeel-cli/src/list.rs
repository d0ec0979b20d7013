//! `evenkeel list`: the tables of tasks, answers, attacks, defences, detectors, views, corruptions, data sets and metrics.

use anyhow::Result;
use evenkeel::answer::AnswerKind;
use evenkeel::attack::AttackKind;
use evenkeel::corrupt::CORRUPTIONS;
use evenkeel::defence::DefenceKind;
use evenkeel::detect::DetectorKind;
use evenkeel::settings::{Entry, read_by};
use evenkeel::task::TASKS;
use evenkeel_data::dataset::KINDS;
use evenkeel_data::metric::{Better, METRICS, Metric};
use serde_json::{Value, json};

use crate::knobs::flag;

/// List what can be chosen by name, each with a line and the flags it reads
#[derive(Debug, clap::Args)]
pub(crate) struct ListArgs {
    /// Which table
    #[arg(value_enum)]
    table: Table,
    /// One JSON array instead of lines
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Table {
    /// Tasks
    Tasks,
    /// Answers
    Answers,
    /// Attacks
    Attacks,
    /// Defences
    Defences,
    /// Sets of views
    Views,
    /// Corruptions
    Corruptions,
    /// Detectors
    Detectors,
    /// Kinds of data sets
    Data,
    /// Metrics
    Metrics,
}

/// The entries of a table of settings.
fn entries<E: Entry>() -> Vec<Value> {
    let knob = |entry: &'static E, knob: &'static evenkeel::settings::Knob<E::Settings>| {
        json!({
            "name": knob.name,
            "flag": format!("--{}", flag::<E>(knob.name)),
            "key": knob.key,
            "accepts": knob.kind.words(),
            "default": knob.text(&entry.defaults()),
            "help": knob.help,
        })
    };
    let entry = |entry: &'static E| {
        let knobs: Vec<Value> = read_by(entry).map(|k| knob(entry, k)).collect();
        json!({ "name": entry.name(), "about": entry.about(), "settings": knobs })
    };
    E::table().iter().map(entry).collect()
}

fn lines<'a>(rows: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Value> {
    rows.into_iter().map(|(name, about)| json!({ "name": name, "about": about })).collect()
}

pub(crate) fn run(args: &ListArgs) -> Result<()> {
    let rows = match args.table {
        Table::Tasks => lines(TASKS.iter().map(|task| (task.name, task.about))),
        Table::Answers => entries::<AnswerKind>(),
        Table::Attacks => entries::<AttackKind>(),
        Table::Defences => entries::<DefenceKind>(),
        Table::Detectors => entries::<DetectorKind>(),
        Table::Views => {
            let sets = evenkeel::view::view_sets();
            lines(sets.iter().map(|(name, about)| (name.as_str(), about.as_str())))
        }
        Table::Corruptions => lines(CORRUPTIONS.iter().map(|c| (c.name, c.about))),
        Table::Data => lines(KINDS.iter().map(|kind| (kind.name, kind.about))),
        Table::Metrics => METRICS.iter().map(metric).collect(),
    };
    if args.json {
        println!("{}", Value::from(rows));
        return Ok(());
    }
    let text = |value: &Value| value.as_str().unwrap_or_default().to_string();
    let widest = rows.iter().map(|row| text(&row["name"]).len()).max().unwrap_or(0);
    for row in &rows {
        println!("{:widest$}  {}", text(&row["name"]), text(&row["about"]));
        for knob in row["settings"].as_array().into_iter().flatten() {
            let default = knob["default"].as_str().map_or(String::new(), |d| format!(" [default: {d}]"));
            println!("{:widest$}    {} {}{default}", "", text(&knob["flag"]), text(&knob["help"]));
        }
    }
    Ok(())
}

/// A line of the table of metrics.
fn metric(metric: &Metric) -> Value {
    json!({
        "name": metric.name,
        "about": metric.about,
        "tasks": metric.tasks,
        "higher_is_better": metric.better == Better::Higher,
    })
}
