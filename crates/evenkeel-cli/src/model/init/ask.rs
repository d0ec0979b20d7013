//! What neither graph nor flags tell: asked on a terminal, listed all together elsewhere, so that nothing ever waits for nobody.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use evenkeel::model::propose::{Answers, Question};
use evenkeel::model::{PIXEL_PRESETS, PixelPreset};
use evenkeel::task::TASKS;

/// The fields that one preset answers.
const OF_PIXELS: [&str; 4] = ["order", "scale", "mean", "std"];

/// The flags that would answer, a line each: one for all that is about pixels.
fn flags(questions: &[Question]) -> Vec<(String, String)> {
    let of_pixels = |q: &&Question| OF_PIXELS.contains(&q.field);
    let mut lines: Vec<(String, String)> = questions
        .iter()
        .filter(|q| !of_pixels(q))
        .map(|q| (format!("--{}", q.field), q.text.clone()))
        .collect();
    let pixels: Vec<&Question> = questions.iter().filter(of_pixels).collect();
    match pixels.len() {
        0 => {}
        4 => {
            let names: Vec<_> = PIXEL_PRESETS.iter().map(|preset| preset.name).collect();
            lines.push(("--pixels".into(), format!("how pixels become input: {}", names.join(", "))));
        }
        _ => lines.extend(pixels.iter().map(|q| (format!("--{}", q.field), q.text.clone()))),
    }
    lines
}

/// The sentence that lists everything that is missing.
pub(super) fn missing(model: &Path, questions: &[Question]) -> String {
    let lines = flags(questions);
    let mut text = format!("{}: the graph cannot tell everything; still needed:", model.display());
    for (flag, question) in &lines {
        text += &format!("\n  {flag:10} {question}");
    }
    if lines.iter().any(|(flag, _)| flag == "--pixels") {
        text += &format!(
            "\n  (or --order, --scale, --mean and --std; `evenkeel model init {} --try PHOTO` shows the answers under each)",
            model.display()
        );
    }
    text
}

/// Asks each question on a terminal; where there is none, lists them.
pub(super) fn all(model: &Path, questions: &[Question], answers: &mut Answers) -> Result<()> {
    if !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        bail!("{}", missing(model, questions));
    }
    for (flag, question) in flags(questions) {
        print!("{question}\n{flag} ");
        std::io::stdout().flush()?;
        let mut line = String::new();
        std::io::stdin().lock().read_line(&mut line)?;
        take(&flag, line.trim(), answers).with_context(|| format!("{flag} {}", line.trim()))?;
    }
    Ok(())
}

/// Puts one answer in its place.
fn take(flag: &str, text: &str, answers: &mut Answers) -> Result<()> {
    let three = || super::three(&[text.to_owned()], flag);
    match flag {
        "--pixels" => {
            let preset = PixelPreset::named(text)?;
            (answers.order, answers.scale) = (Some(preset.order), Some(preset.scale));
            (answers.mean, answers.std) = (Some(preset.mean), Some(preset.std));
        }
        "--task" => answers.task = Some(text.to_owned()),
        "--output" => answers.output = Some(text.into()),
        "--feature" => answers.feature = Some(text.into()),
        "--order" => answers.order = Some(super::order(text).map_err(anyhow::Error::msg)?),
        "--scale" => answers.scale = Some(text.parse()?),
        "--mean" => answers.mean = three()?,
        "--std" => answers.std = three()?,
        other => match TASKS.iter().flat_map(|task| task.keys).find(|key| other == format!("--{}", key.name))
        {
            Some(key) => answers.own.push((key.name.to_owned(), text.to_owned())),
            None => bail!("{other}: cannot be answered here"),
        },
    }
    Ok(())
}
