//! The model card: what was trained on what, for how long, and how well it does, as a Markdown file beside the network.

use crate::error::{Error, Result};
use crate::goal::{Goal, Task};
use crate::score::Scores;
use crate::train::{History, Plan};
use evenkeel::image::write_atomically;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// What a card tells beside plan and history.
pub(crate) struct Card<'a> {
    /// The command that trains the network.
    pub(crate) command: &'a str,
    /// What the network is.
    pub(crate) network: String,
    /// Lines about the data: what it is, how much, its hash.
    pub(crate) data: Vec<String>,
    /// Labelled pixels, pictures or objects of each class; empty for rendered pictures.
    pub(crate) amounts: &'a [u64],
    /// Pictures held out.
    pub(crate) held_out: usize,
}

impl Card<'_> {
    /// Where the card of a network lies.
    pub(crate) fn path(graph: &Path) -> PathBuf {
        graph.with_extension("card.md")
    }

    /// Writes the card beside the network.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn save(
        &self,
        graph: &Path,
        plan: &Plan,
        history: &History,
        scores: &Scores,
    ) -> Result<PathBuf> {
        let path = Self::path(graph);
        let text = self.text(graph, plan, history, scores);
        write_atomically(&path, text.as_bytes()).map_err(|e| Error::file(&path, e))?;
        Ok(path)
    }

    fn text(&self, graph: &Path, plan: &Plan, history: &History, scores: &Scores) -> String {
        let name = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let figure = plan.goal.task.figure();
        let mut text = String::new();
        let mut line = |words: String| writeln!(text, "{words}").expect("a string takes all");
        line(format!("# {}\n", name(graph)));
        line(format!("{}\n", self.network));
        line(format!("    {}\n", self.command));
        line(format!("- {figure} {:.2} % on {} held-out pictures", 100.0 * scores.figure, self.held_out));
        line(format!(
            "- {} of {} steps of {} windows of {}x{} in {:.1} minutes of training, evaluations included",
            history.step,
            history.steps,
            plan.batch,
            plan.window.1,
            plan.window.0,
            history.seconds / 60.0
        ));
        if let Some(adversary) = &plan.adversary {
            line(format!(
                "- trained on attacked pictures: radius {:.2}/255, {} steps of PGD from a random start, {:.0} % of the loss",
                255.0 * adversary.epsilon,
                adversary.steps,
                100.0 * adversary.weight
            ));
        }
        self.data.iter().for_each(|words| line(format!("- {words}")));
        line(String::new());
        let amount = match plan.goal.task {
            Task::Semantic => "labelled pixels to learn from",
            Task::Classification => "pictures to learn from",
            Task::Instances => "objects to learn from",
        };
        line(format!("| class | {figure}, % | {amount} |\n|---|---|---|"));
        for (class, name) in plan.goal.classes.iter().enumerate() {
            let score = scores.classes.get(class).copied().flatten();
            let score = score.map_or("not seen".into(), |score| format!("{:.1}", 100.0 * score));
            let amount = self.amounts.get(class).map_or("rendered".into(), u64::to_string);
            line(format!("| {name} | {score} | {amount} |"));
        }
        line(format!("\n![curves]({})", name(&plan.checkpoint.with_extension("curves.png"))));
        text
    }
}

/// A sentence about a network.
pub(crate) fn about(architecture: &str, parameters: usize, goal: &Goal) -> String {
    format!(
        "{architecture}, {:.2} million parameters, {} classes, task {}. How pixels become its input is in the contract beside it.",
        parameters as f64 / 1e6,
        goal.classes.len(),
        goal.task.name()
    )
}
