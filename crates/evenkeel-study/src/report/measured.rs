//! Every metric of a subject's task, for every attack and defence: the table of metrics read off the same tallies as the scores.

use super::detection::entry;
use super::results::Results;
use super::table::{Entry, Table};
use evenkeel_data::metric::{Better, Metric};

/// The table; nothing if the task has one metric only.
pub(super) fn metrics(results: &Results<'_>, subject: usize) -> Option<Table> {
    let card = &results.design.subjects[subject];
    let metrics: Vec<&Metric> = Metric::of_task(&card.task).collect();
    let head = ["attack".to_string(), "defence".to_string()];
    let title = |metric: &&Metric| match metric.better {
        Better::Higher => metric.title.to_string(),
        Better::Lower => format!("{} (lower is better)", metric.title),
    };
    let mut table = Table {
        name: format!("{}-metrics", card.rule.name),
        title: format!("{}: every metric of the task {}", card.rule.name, card.task),
        head: head.into_iter().chain(metrics.iter().map(title)).collect(),
        notes: vec!["Shares in %. `evenkeel list metrics` says what each is.".into()],
        ..Table::default()
    };
    for column in results.plain_columns(subject) {
        for (row, defence) in card.rows.iter().enumerate() {
            let all = results.results(subject, column, row);
            if all.is_empty() {
                continue;
            }
            let mut line =
                vec![Entry::words(card.columns[column].label.clone()), Entry::words(defence.label.clone())];
            let tallies = || all.iter().map(|r| (r.id.as_str(), &r.tally));
            line.extend(metrics.iter().map(|metric| {
                results.summed(subject, metric, tallies()).map_or(Entry::nothing(), |figure| entry(&figure))
            }));
            table.rows.push(line);
        }
    }
    (metrics.len() > 1 && !table.rows.is_empty()).then_some(table)
}
