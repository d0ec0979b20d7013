//! `evenkeel model bench --layers`: where the time goes, by operator and by layer, forward and pullback.
//!
//! A step's time is its best of all rounds, because whatever else the machine does can only add to it; rates are counted operations over
//! that time. The sum of the steps is therefore a little below the time of a whole pass.

use anyhow::Result;
use evenkeel_network::profile::StepCost;
use serde_json::{Value, json};

/// Layers shown in the table; all of them are in the JSON.
const SHOWN: usize = 40;

/// The costs of the two kinds of pass.
pub(super) struct Layers {
    /// A forward pass without a tape.
    forward: Vec<StepCost>,
    /// A forward pass with a tape, and its pullback.
    gradient: Vec<StepCost>,
    /// Of the machine, GFLOP/s.
    peak: f64,
}

/// Time and operations of one direction.
#[derive(Clone, Copy, Default)]
struct Cost {
    seconds: f64,
    flops: f64,
}

/// One line of a table.
struct Row<'a> {
    steps: usize,
    forward: Cost,
    pullback: Cost,
    label: Label<'a>,
}

enum Label<'a> {
    Kind(&'a str),
    Step(&'a StepCost),
}

impl Layers {
    /// Takes every step's best of `rounds` passes of each kind; the first of each is not timed.
    pub(super) fn measure(
        rounds: u32,
        peak: f64,
        forward: &dyn Fn() -> Result<Vec<StepCost>>,
        gradient: &dyn Fn() -> Result<Vec<StepCost>>,
    ) -> Result<Layers> {
        Ok(Layers { forward: best(rounds, forward)?, gradient: best(rounds, gradient)?, peak })
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "forward": self.pass_json(&self.forward, false),
            "gradient": self.pass_json(&self.gradient, true),
        })
    }

    fn pass_json(&self, steps: &[StepCost], pullback: bool) -> Value {
        let cost = |cost: Cost| {
            json!({
                "milliseconds": cost.seconds * 1e3,
                "flops": cost.flops,
                "gflops_per_second": cost.rate(),
                "share_of_peak": cost.rate() / self.peak,
            })
        };
        let row = |row: &Row<'_>| {
            let mut value = match row.label {
                Label::Kind(kind) => json!({ "operator": kind, "steps": row.steps }),
                Label::Step(step) => json!({
                    "name": step.name, "fused_from": step.operator, "operator": step.kind, "shape": step.shape,
                }),
            };
            value["forward"] = cost(row.forward);
            if pullback {
                value["pullback"] = cost(row.pullback);
            }
            value
        };
        let layers: Vec<Row<'_>> = steps.iter().map(layer).collect();
        json!({
            "operators": by_kind(steps).iter().map(row).collect::<Vec<_>>(),
            "layers": layers.iter().map(row).collect::<Vec<_>>(),
        })
    }

    pub(super) fn print(&self) {
        self.print_pass("forward, no tape", &self.forward, false);
        self.print_pass("forward with a tape, and pullback", &self.gradient, true);
    }

    fn print_pass(&self, title: &str, steps: &[StepCost], pullback: bool) {
        let total = steps.iter().map(layer).fold([Cost::default(); 2], |[forward, pullback], row| {
            [forward.plus(row.forward), pullback.plus(row.pullback)]
        });
        println!("\n  {title}: {} steps, each at its best", steps.len());
        self.print_head(pullback);
        for row in by_kind(steps) {
            self.print_row(&row, total, pullback);
        }
        self.print_row(
            &Row { steps: steps.len(), forward: total[0], pullback: total[1], label: Label::Kind("all") },
            total,
            pullback,
        );
        let mut rows: Vec<Row<'_>> = steps.iter().map(layer).collect();
        rows.sort_by(|a, b| b.seconds().total_cmp(&a.seconds()));
        let (shown, rest) = rows.split_at(rows.len().min(SHOWN));
        println!("\n  {title}: the slowest {} layers", shown.len());
        self.print_head(pullback);
        shown.iter().for_each(|row| self.print_row(row, total, pullback));
        if !rest.is_empty() {
            let seconds: f64 = rest.iter().map(Row::seconds).sum();
            println!("  {:9.3} ms in {} other layers", seconds * 1e3, rest.len());
        }
    }

    fn print_head(&self, pullback: bool) {
        let direction = |name: &str| format!("{name:>9} ms  share   GFLOP/s  of peak");
        let mut head = format!("  {}", direction("forward"));
        if pullback {
            head += &format!("  {}", direction("pullback"));
        }
        println!("{head}   what");
    }

    fn print_row(&self, row: &Row<'_>, total: [Cost; 2], pullback: bool) {
        let direction = |cost: Cost, of: Cost| {
            let share = if of.seconds > 0.0 { 100.0 * cost.seconds / of.seconds } else { 0.0 };
            let time = format!("{:12.3} {share:4.1} %", cost.seconds * 1e3);
            match cost.rate() {
                0.0 => format!("{time}         -        -"),
                rate => format!("{time}  {rate:8.1}  {:5.1} %", 100.0 * rate / self.peak),
            }
        };
        let mut line = format!("  {}", direction(row.forward, total[0]));
        if pullback {
            line += &format!("  {}", direction(row.pullback, total[1]));
        }
        match row.label {
            Label::Kind(kind) => println!("{line}   {kind} ({})", row.steps),
            Label::Step(step) => {
                let shape: Vec<String> = step.shape.iter().map(usize::to_string).collect();
                println!("{line}   {} -> {} {}", step.kind, shape.join("x"), step.name);
            }
        }
    }
}

impl Cost {
    fn plus(self, other: Cost) -> Cost {
        Cost { seconds: self.seconds + other.seconds, flops: self.flops + other.flops }
    }

    /// GFLOP/s; zero for what has no counted operations.
    fn rate(self) -> f64 {
        if self.seconds > 0.0 { self.flops / self.seconds / 1e9 } else { 0.0 }
    }
}

impl Row<'_> {
    fn seconds(&self) -> f64 {
        self.forward.seconds + self.pullback.seconds
    }
}

fn layer(step: &StepCost) -> Row<'_> {
    Row {
        steps: 1,
        forward: Cost { seconds: step.seconds, flops: step.flops },
        pullback: Cost { seconds: step.pullback_seconds, flops: step.pullback_flops },
        label: Label::Step(step),
    }
}

/// The steps of one kind together, slowest first.
fn by_kind(steps: &[StepCost]) -> Vec<Row<'_>> {
    let mut rows: Vec<(&str, Row<'_>)> = Vec::new();
    for step in steps {
        let own = Row { label: Label::Kind(&step.kind), ..layer(step) };
        match rows.iter_mut().find(|(kind, _)| *kind == step.kind) {
            None => rows.push((&step.kind, own)),
            Some((_, row)) => {
                row.steps += 1;
                row.forward = row.forward.plus(own.forward);
                row.pullback = row.pullback.plus(own.pullback);
            }
        }
    }
    let mut rows: Vec<Row<'_>> = rows.into_iter().map(|(_, row)| row).collect();
    rows.sort_by(|a, b| b.seconds().total_cmp(&a.seconds()));
    rows
}

fn best(rounds: u32, run: &dyn Fn() -> Result<Vec<StepCost>>) -> Result<Vec<StepCost>> {
    run()?;
    let mut steps = run()?;
    for _ in 1..rounds {
        for (step, again) in steps.iter_mut().zip(run()?) {
            step.seconds = step.seconds.min(again.seconds);
            step.pullback_seconds = step.pullback_seconds.min(again.pullback_seconds);
        }
    }
    Ok(steps)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(kind: &str, seconds: f64, flops: f64) -> StepCost {
        StepCost {
            name: "n".into(),
            operator: kind.into(),
            kind: kind.into(),
            shape: vec![1],
            flops,
            seconds,
            pullback_flops: 2.0 * flops,
            pullback_seconds: seconds / 2.0,
        }
    }

    #[test]
    fn steps_of_a_kind_are_summed_and_the_slowest_kind_is_first() {
        let steps =
            [step("Add", 1.0, 0.0), step("Conv", 2.0, 4e9), step("Add", 3.0, 0.0), step("Conv", 1.0, 2e9)];
        let rows = by_kind(&steps);
        let seen: Vec<_> = rows
            .iter()
            .map(|row| match row.label {
                Label::Kind(kind) => {
                    (kind, row.steps, row.seconds(), row.forward.rate(), row.pullback.rate())
                }
                Label::Step(_) => unreachable!(),
            })
            .collect();
        assert_eq!(seen, [("Add", 2, 6.0, 0.0, 0.0), ("Conv", 2, 4.5, 2.0, 8.0)]);
    }

    #[test]
    fn every_step_is_taken_at_its_best() {
        let runs = std::cell::Cell::new(0);
        let times = [[0.1, 0.1], [5.0, 1.0], [2.0, 3.0], [4.0, 2.0]];
        let run = || {
            let [a, b] = times[runs.replace(runs.get() + 1)];
            Ok(vec![step("A", a, 0.0), step("B", b, 0.0)])
        };
        let steps = best(3, &run).unwrap();
        assert_eq!([steps[0].seconds, steps[1].seconds], [2.0, 1.0], "the first run is not timed");
        assert_eq!([steps[0].pullback_seconds, steps[1].pullback_seconds], [1.0, 0.5]);
    }
}
