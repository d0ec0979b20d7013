//! What tuning leaves behind: a page with the front as a picture and a table, the policy, and the sentence that a person needs.

use std::fmt::Write;

use evenkeel::Policy;
use evenkeel::detect::{DetectorSpec, FALSE_ALARMS};
use evenkeel::policy::{Alarm, Figures, Interval};

use super::{Judged, Request, Tuned, candidates};
use crate::experiment::spec;
use crate::report::STYLE;
use crate::report::chart::escaped;
use crate::report::dots::{LETTER, shortened};
use crate::report::results::Figure;
use crate::{Error, Result};

/// From one line of names to the next.
const LINE: f64 = 13.0;

fn percent(figure: &Figure) -> Interval {
    let (low, high) = figure.interval.unwrap_or((figure.value, figure.value));
    Interval { value: 100.0 * figure.value, low: 100.0 * low, high: 100.0 * high }
}

/// The sentences that a person needs: what to use, what it costs, what it withstands, what it does not.
pub fn words(tuned: &Tuned, request: &Request) -> String {
    let (bare, radius, metric) = (&tuned.choice.bare, request.epsilon_255, tuned.metric);
    let bare_words =
        format!("{metric} {} clean and {} attacked", percent(&bare.clean), percent(&bare.unaware));
    let Some(one) = &tuned.choice.chosen else {
        return format!(
            "Use the alarm alone: nothing that was tried beats the bare network ({bare_words} at {radius}/255) beyond the intervals \
             without losing more than {} points clean.",
            request.rule.clean_loss
        );
    };
    let aware = one.aware.map_or("was not tried".to_string(), |aware| format!("leaves {}", percent(&aware)));
    format!(
        "Use {}: {metric} {} clean, {} under attackers of {radius}/255 who do not know of it; one who does {aware}. An answer costs {:.0} forward passes. \
         The bare network has {bare_words}.",
        one.label,
        percent(&one.clean),
        percent(&one.unaware),
        one.cost
    )
}

/// The policy of the choice, for the network of this fingerprint.
///
/// # Errors
/// If the chosen candidate is none of the table.
pub fn policy(tuned: &Tuned, request: &Request, model: &str) -> Result<Policy> {
    let detector = DetectorSpec::usual().with("seed", request.seed)?;
    let with_alarm =
        tuned.judged.iter().chain(&tuned.chosen_by).find_map(|j| Some((j.threshold?, j.threshold_images)));
    let alarm = with_alarm.map(|(threshold, images)| Alarm {
        threshold,
        images,
        false_alarm_rate: FALSE_ALARMS,
        detector,
    });
    let mut policy = Policy {
        model: model.into(),
        about: words(tuned, request),
        seed: request.seed,
        defence: None,
        answer: None,
        alarm: None,
        figures: None,
    };
    let bare = &tuned.choice.bare;
    let of = tuned.choice.chosen.as_ref().unwrap_or(bare);
    policy.figures = Some(Figures {
        metric: tuned.metric.into(),
        epsilon_255: request.epsilon_255,
        images: of.clean.images,
        cost: of.cost,
        clean: percent(&of.clean),
        unaware: percent(&of.unaware),
        aware: percent(&of.aware.unwrap_or(of.unaware)),
        bare_clean: percent(&bare.clean),
        bare_attacked: percent(&bare.aware.unwrap_or(bare.unaware)),
    });
    let Some(chosen) = &tuned.choice.chosen else { return Ok(Policy { alarm, ..policy }) };
    let all = candidates(request.epsilon_255);
    let candidate = all.iter().find(|c| c.label == chosen.candidate);
    let unknown = || Error::Request(format!("{} is no candidate", chosen.candidate));
    let experiment = super::experiment(request, &[candidate.ok_or_else(unknown)?], 1, false);
    let row = spec::defences(&experiment, &request.subject)?.pop().ok_or_else(unknown)?;
    policy.defence = (row.spec.name() != "none").then_some(row.spec);
    policy.answer = (!row.answer.is_plain()).then_some(row.answer);
    policy.alarm = alarm.filter(|_| chosen.threshold.is_some());
    Ok(policy)
}

/// The picture: clean against the worst case, cost as size; those on the front are filled.
fn picture(all: &[Judged], front: &[String], metric: &str) -> String {
    let worst = |one: &Judged| 100.0 * one.aware.unwrap_or(one.unaware).value;
    let most = all.iter().map(|one| (100.0 * one.clean.value).max(worst(one))).fold(1.0, f64::max);
    // as narrow as a phone, so that letters keep their size on one
    let (left, top, side) = (34.0, 24.0, 340.0);
    let across = |value: f64| left + value / most * side;
    let down = |value: f64| top + side - value / most * side;
    let mut svg = format!(
        "<svg viewBox=\"0 0 400 410\" class=\"dots\" role=\"img\" aria-label=\"clean against worst case\"><rect x=\"{left}\" y=\"{top}\" width=\"{side}\" \
         height=\"{side}\" class=\"frame\"/>"
    );
    for step in 0..=4 {
        let value = most * f64::from(step) / 4.0;
        let _ = write!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{value:.0}</text><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{value:.0}</text>",
            across(value),
            top + side + 16.0,
            left - 6.0,
            down(value) + 4.0
        );
    }
    let _ = write!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">clean {}, %</text><text x=\"6\" y=\"12\">worst case, %</text>",
        left + side / 2.0,
        top + side + 36.0,
        escaped(metric)
    );
    let mut names = Vec::new();
    for one in all {
        let on = front.contains(&one.label);
        let radius = 3.0 + one.cost.max(1.0).ln();
        let (x, y) = (across(100.0 * one.clean.value), down(worst(one)));
        let _ = write!(
            svg,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius:.1}\" class=\"dot d{}\" fill-opacity=\"{}\"><title>{}</title></circle>",
            usize::from(!on),
            if on { 0.8 } else { 0.25 },
            escaped(&one.label)
        );
        if on {
            // names stand on the side that has room
            let (at, anchor, room) = match x > left + side / 2.0 {
                true => (x - radius - 3.0, "end", x - radius - left),
                false => (x + radius + 3.0, "start", left + side - x - radius),
            };
            let name = shortened(&one.label, (room / LETTER) as usize);
            let width = name.chars().count() as f64 * LETTER;
            let from = if anchor == "end" { at - width } else { at };
            let toward = if y > top + side / 2.0 { -LINE } else { LINE };
            let line = free_line(&mut names, [from, from + width], y + 4.0, toward);
            let _ = write!(
                svg,
                "<text x=\"{at:.1}\" y=\"{line:.1}\" text-anchor=\"{anchor}\">{}</text>",
                escaped(&name)
            );
        }
    }
    svg + "</svg>"
}

/// The first line from `line` on, in steps of `toward`, on which a name of this span meets no other; it is taken then.
fn free_line(names: &mut Vec<([f64; 2], f64)>, [from, to]: [f64; 2], mut line: f64, toward: f64) -> f64 {
    while names.iter().any(|&([left, right], at)| (at - line).abs() < LINE && from < right && left < to) {
        line += toward;
    }
    names.push(([from, to], line));
    line
}

fn table(all: &[Judged], front: &[String]) -> String {
    let figure = |figure: Option<Figure>| figure.map_or("–".to_string(), |f| percent(&f).to_string());
    let line = |one: &Judged| {
        let mark = if front.contains(&one.label) { " ●" } else { "" };
        format!(
            "<tr><th>{}{mark}</th><td>{}</td><td>{}</td><td>{}</td><td>{:.0}</td><td>{}</td></tr>",
            escaped(&one.label),
            figure(Some(one.clean)),
            figure(Some(one.unaware)),
            figure(one.aware),
            one.cost,
            one.clean.images
        )
    };
    let lines: String = all.iter().map(line).collect();
    format!(
        "<div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"candidates\"><table><tr><th></th><th>clean</th><th>unaware attackers</th><th>aware attackers</th><th>forward passes</th><th>images</th></tr>{lines}</table></div>"
    )
}

/// The page.
pub fn html(tuned: &Tuned, request: &Request) -> String {
    let name = escaped(&request.subject.name);
    let late = match tuned.cut_short {
        true => {
            "<p class=\"note\">The time ran out before every stage was complete; figures are over the images that were done. The same command goes on from there.</p>"
        }
        false => "",
    };
    format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><link rel=\"icon\" \
         href=\"data:,\"><title>{name}</title><style>{STYLE}</style></head><body class=\"report\"><header><h1>{name}</h1><p>{}</p></header>{late}\
         <h2>Judged by images that did not choose</h2>{}{}<p class=\"note\">Figures in % with 95 % intervals over images; ● on the front: nothing is better in clean \
         score, both kinds of attackers and cost at once. On alarm, attackers do not try to stay under the threshold.</p>\
         <p class=\"note\">The rule: {}.</p><h2>What chose them</h2>{}</body></html>\n",
        escaped(&words(tuned, request)),
        picture(&tuned.judged, &tuned.choice.front, tuned.metric),
        table(&tuned.judged, &tuned.choice.front),
        escaped(&request.rule.words()),
        table(&tuned.chosen_by, &[]),
    )
}

/// The front in lines for a terminal.
pub fn lines(all: &[Judged]) -> Vec<String> {
    let figure =
        |figure: Option<Figure>| figure.map_or("   –".to_string(), |f| format!("{:4.1}", 100.0 * f.value));
    let front = super::front(all);
    let line = |one: &&Judged| {
        format!(
            "  {:32} clean {}  unaware {}  aware {}  cost {:.0}",
            one.label,
            figure(Some(one.clean)),
            figure(Some(one.unaware)),
            figure(one.aware),
            one.cost
        )
    };
    front.iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_points_that_coincide_stand_on_lines_of_their_own() {
        let mut names = Vec::new();
        let lines = [(); 3].map(|()| free_line(&mut names, [10.0, 60.0], 100.0, -LINE));
        assert_eq!(lines, [100.0, 87.0, 74.0]);
        assert_eq!(free_line(&mut names, [61.0, 90.0], 100.0, -LINE), 100.0);
    }
}
