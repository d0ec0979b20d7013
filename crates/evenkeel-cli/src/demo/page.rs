//! The page: one file, no script, nothing fetched.

use super::trial::{Report, attack};
use anyhow::Result;
use evenkeel_data::dataset::scenes::{SCENE_CLASSES, SCENE_COLOURS};
use evenkeel_study::report::{STYLE, chart, picture};

/// The whole page.
pub(super) fn page(reports: &[Report], seconds: f64) -> Result<String> {
    let mut body = String::new();
    for report in reports {
        body += &section(report)?;
    }
    let radius = attack().settings().epsilon_255;
    Ok(format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
         content=\"width=device-width, initial-scale=1\"><link rel=\"icon\" href=\"data:,\"><title>evenkeel demo</title>\
         <style>{STYLE}</style></head><body><header><h1>evenkeel</h1><p>A network looks at street scenes it has never seen. An \
         attacker moves every colour value by at most {radius}/255, and the answer falls apart. The defence knows neither \
         the attack nor the truth: it nudges the picture until the network's views of it (larger, smaller, turned, mirrored) \
         agree again. The attacker does not know of the defence either; one who does is not tried here.</p></header>{body}<footer>{seconds:.0} s on this machine, all of it offline.</footer></body></html>\n"
    ))
}

fn section(report: &Report) -> Result<String> {
    let rows: String = report
        .rows
        .iter()
        .map(|row| {
            format!(
                "<tr><th>{}</th><td>{:.1}</td><td>{}</td></tr>",
                row.defence,
                100.0 * row.clean,
                bar(row.attacked)
            )
        })
        .collect();
    let auroc = report.auroc.map_or(String::new(), |a| format!("<p class=\"note\">AUROC {a:.3}</p>"));
    let times: String =
        report.seconds.iter().map(|(name, s)| format!("<tr><th>{name}</th><td>{s:.3} s</td></tr>")).collect();
    let values: Vec<f64> = report.trace.iter().map(|record| record.value).collect();
    let mut panels = String::new();
    for panel in &report.panels {
        let pictures = panel.pictures.iter().map(|p| Ok(p.html()?)).collect::<Result<String>>()?;
        panels += &format!("<div class=\"panel {}\">{pictures}</div>", report.figure.replace(' ', "-"));
    }
    let scene_classes = || picture::legend(SCENE_CLASSES.into_iter().zip(SCENE_COLOURS));
    let legend = if report.figure == "mIoU" { scene_classes() } else { String::new() };
    Ok(format!(
        "<section><h2>{}</h2><div class=\"figures\"><div><h3>{}</h3><table><tr><th>defence</th><th>clean</th><th>attacked</th></tr>\
         {rows}</table></div><div><h3>detection of attacked pictures</h3>{}{auroc}</div><div><h3>the defence's \
         objective</h3>{}</div><div><h3>time per picture</h3><table>{times}</table></div></div>{legend}{panels}</section>",
        report.title,
        report.figure,
        chart::roc(&[(String::new(), report.scores.clone())], "attacks found"),
        chart::ascent(&values, "agreement of views"),
    ))
}

fn bar(share: f64) -> String {
    let percent = 100.0 * share;
    format!("<span class=\"bar\" style=\"--share:{percent:.1}%\">{percent:.1}</span>")
}
