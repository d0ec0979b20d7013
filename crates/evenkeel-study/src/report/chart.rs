//! Charts as SVG, written by hand: lines with axes and a legend. Colours come from the page's style, so they follow light, dark and
//! print; series also differ in dashes and marks, for those who see no colour.

use std::fmt::Write;

use super::dots::shortened;

const LEFT: f64 = 46.0;
const TOP: f64 = 10.0;
const WIDE: f64 = 254.0;
const HIGH: f64 = 200.0;

/// A line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// What the legend calls it; no legend if empty.
    pub name: String,
    /// Its points, by the first coordinate.
    pub points: Vec<(f64, f64)>,
    /// Whether the points are only marked, not joined.
    pub loose: bool,
    /// Its interval, as (across, low, high) by the first; empty if it has none.
    pub band: Vec<(f64, f64, f64)>,
}

impl Series {
    /// A line.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { name: name.into(), points, loose: false, band: Vec::new() }
    }

    /// Marks that are not joined.
    pub fn marks(name: impl Into<String>, points: Vec<(f64, f64)>) -> Self {
        Self { loose: true, ..Self::line(name, points) }
    }
}

/// A chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Plot {
    /// What goes across.
    pub across: String,
    /// What goes up.
    pub up: String,
    /// The lines.
    pub series: Vec<Series>,
    /// From where to where across; what the points need if `None`.
    pub x: Option<(f64, f64)>,
    /// From where to where up; what the points need if `None`.
    pub y: Option<(f64, f64)>,
    /// The diagonal, with lines this far above and below it; `None` for none.
    pub diagonal: Option<f64>,
}

/// Text for HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Text for HTML in which what stands between back quotes is code.
pub(super) fn marked(text: &str) -> String {
    let part = |(place, part): (usize, &str)| match place % 2 {
        1 => format!("<code>{}</code>", escaped(part)),
        _ => escaped(part),
    };
    text.split('`').enumerate().map(part).collect()
}

/// A span that holds all values and is not a point.
pub(super) fn span(values: impl Iterator<Item = f64> + Clone) -> (f64, f64) {
    let low = values.clone().fold(f64::INFINITY, f64::min);
    let high = values.fold(f64::NEG_INFINITY, f64::max);
    match low <= high {
        true if high - low < 1e-9 => (low - 0.5, high + 0.5),
        true => (low, high),
        false => (0.0, 1.0),
    }
}

/// Round numbers about a quarter of a span apart, from the last one below it to the first above.
pub(super) fn ticks((low, high): (f64, f64)) -> Vec<f64> {
    let rough = (high - low) / 4.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|m| m * power).into_iter().find(|s| *s >= 0.999 * rough);
    let step = step.unwrap_or(rough);
    let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
    (first as i64..=last as i64).map(|k| k as f64 * step).collect()
}

/// A number without the places it does not need.
pub(super) fn tick(value: f64) -> String {
    let text = format!("{value:.3}");
    let short = text.trim_end_matches('0').trim_end_matches('.');
    if short == "-0" { "0".into() } else { short.into() }
}

/// The numbers along an axis.
fn axis_marks(svg: &mut String, upright: bool, marks: &[f64], (low, high): (f64, f64)) {
    for mark in marks {
        let share = (mark - low) / (high - low);
        let (x, y, anchor) = match upright {
            true => (LEFT - 4.0, TOP + (1.0 - share) * HIGH + 3.5, "end"),
            false => (LEFT + share * WIDE, TOP + HIGH + 14.0, "middle"),
        };
        let words = tick(*mark);
        let _ = write!(
            svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" class=\"tick\" text-anchor=\"{anchor}\">{words}</text>"
        );
    }
}

impl Plot {
    /// The chart.
    pub fn svg(&self) -> String {
        let points = || self.series.iter().flat_map(|s| s.points.iter());
        let edges = self.series.iter().flat_map(|s| s.band.iter().flat_map(|b| [b.1, b.2]));
        let heights = points().map(|p| p.1).chain(edges);
        let marks = [
            ticks(self.x.unwrap_or_else(|| span(points().map(|p| p.0)))),
            ticks(self.y.unwrap_or_else(|| span(heights))),
        ];
        let [x, y] = [&marks[0], &marks[1]].map(|m| (m[0], m[m.len() - 1]));
        let place = |&(px, py): &(f64, f64)| {
            let share = |v: f64, (low, high): (f64, f64)| (v - low) / (high - low);
            (LEFT + share(px, x) * WIDE, TOP + (1.0 - share(py, y)) * HIGH)
        };
        let legend = self.series.iter().filter(|s| !s.name.is_empty()).count();
        let total = TOP + HIGH + 44.0 + 16.0 * legend as f64;
        let mut svg = format!(
            "<svg viewBox=\"0 0 310 {total:.0}\" role=\"img\" aria-label=\"{} by {}\"><rect x=\"{LEFT}\" y=\"{TOP}\" width=\"{WIDE}\" \
             height=\"{HIGH}\" class=\"frame\"/>",
            escaped(&self.up),
            escaped(&self.across)
        );
        for (axis, (marks, span)) in [(&marks[0], x), (&marks[1], y)].into_iter().enumerate() {
            axis_marks(&mut svg, axis == 1, marks, span);
        }
        self.axes(&mut svg);
        for aside in self.diagonal.into_iter().flat_map(|margin| [-margin, 0.0, margin]) {
            // clipped where it leaves the frame
            let (from, to) = (x.0.max(y.0 - aside), x.1.min(y.1 - aside));
            let ((x0, y0), (x1, y1)) = (place(&(from, from + aside)), place(&(to, to + aside)));
            let _ = write!(svg, "<path d=\"M{x0:.1} {y0:.1} L{x1:.1} {y1:.1}\" class=\"faint\"/>");
        }
        for (k, series) in self.series.iter().enumerate().filter(|(_, s)| s.band.len() > 1) {
            let low = series.band.iter().map(|b| place(&(b.0, b.1)));
            let high = series.band.iter().rev().map(|b| place(&(b.0, b.2)));
            let line: Vec<String> = low.chain(high).map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
            let _ = write!(svg, "<polygon points=\"{}\" class=\"band s{}\"/>", line.join(" "), k % 8);
        }
        for (k, series) in self.series.iter().enumerate() {
            let placed: Vec<(f64, f64)> = series.points.iter().map(place).collect();
            if !series.loose {
                let line: Vec<String> = placed.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                let _ = write!(svg, "<polyline points=\"{}\" class=\"curve s{}\"/>", line.join(" "), k % 8);
            }
            if series.loose || placed.len() <= 24 {
                for (x, y) in placed {
                    let _ = write!(
                        svg,
                        "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"2.4\" class=\"mark s{}\"/>",
                        k % 8
                    );
                }
            }
        }
        self.legend(&mut svg);
        svg + "</svg>"
    }

    fn axes(&self, svg: &mut String) {
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">{}</text><text x=\"{}\" y=\"12\" transform=\"rotate(-90)\" \
             text-anchor=\"middle\">{}</text>",
            LEFT + WIDE / 2.0,
            TOP + HIGH + 32.0,
            escaped(&self.across),
            -(TOP + HIGH / 2.0),
            escaped(&self.up)
        );
    }

    fn legend(&self, svg: &mut String) {
        let named = self.series.iter().enumerate().filter(|(_, s)| !s.name.is_empty());
        for (line, (k, series)) in named.enumerate() {
            let y = TOP + HIGH + 50.0 + 16.0 * line as f64;
            let _ = write!(
                svg,
                "<path d=\"M8 {:.1} h22\" class=\"curve s{}\"/><text x=\"36\" y=\"{y:.1}\" class=\"key\">{}</text>",
                y - 4.0,
                k % 8,
                escaped(&shortened(&series.name, 46))
            );
        }
    }
}

/// True against false alarms as the threshold falls, for scores that are (score, anomalous).
pub fn roc_points(scores: &[(f64, bool)]) -> Vec<(f64, f64)> {
    let mut sorted = scores.to_vec();
    sorted.sort_by(|a, b| b.0.total_cmp(&a.0));
    let anomalous = scores.iter().filter(|s| s.1).count().max(1) as f64;
    let normal = scores.iter().filter(|s| !s.1).count().max(1) as f64;
    let mut points = vec![(0.0, 0.0)];
    let (mut hits, mut alarms) = (0.0, 0.0);
    for (i, (score, is_anomalous)) in sorted.iter().enumerate() {
        *(if *is_anomalous { &mut hits } else { &mut alarms }) += 1.0;
        // Equal scores cross the threshold together.
        if sorted.get(i + 1).is_none_or(|next| next.0 != *score) {
            points.push((alarms / normal, hits / anomalous));
        }
    }
    points
}

/// Scores by the name of their curve: (score, anomalous).
pub type Scores = (String, Vec<(f64, bool)>);

/// The ROC curves of several sets of scores, by name.
pub fn roc(sets: &[Scores], found: &str) -> String {
    let series = |(name, scores): &Scores| Series::line(name, roc_points(scores));
    let unit = Some((0.0, 1.0));
    let plot = Plot {
        across: "false alarms".into(),
        up: found.into(),
        series: sets.iter().map(series).collect(),
        x: unit,
        y: unit,
        diagonal: Some(0.0),
    };
    plot.svg()
}

/// Values by step.
pub fn ascent(values: &[f64], up: &str) -> String {
    let points = values.iter().enumerate().map(|(i, v)| (i as f64, *v)).collect();
    let series = vec![Series::line("", points)];
    Plot { across: "step".into(), up: up.into(), series, x: None, y: None, diagonal: None }.svg()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_perfect_detector_goes_up_then_right() {
        let scores = [(0.9, true), (0.8, true), (0.1, false)];
        assert_eq!(roc_points(&scores), [(0.0, 0.0), (0.0, 0.5), (0.0, 1.0), (1.0, 1.0)]);
        let svg = roc(&[("pgd".into(), scores.to_vec())], "found");
        assert!(svg.contains("points=\"46.0,210.0 46.0,110.0 46.0,10.0 300.0,10.0\""), "{svg}");
        assert!(ascent(&[1.0], "height").contains("polyline") && ascent(&[], "height").contains("polyline"));
    }

    #[test]
    fn axes_have_round_numbers_that_hold_everything() {
        assert_eq!(ticks((0.0, 1.0)), [0.0, 0.25, 0.5, 0.75, 1.0]);
        assert_eq!(ticks((12.3, 38.9)), [10.0, 20.0, 30.0, 40.0]);
        assert_eq!(ticks((-0.5, 0.5)).len(), 5);
        assert_eq!(["0", "2.5", "-0.125", "100"].map(String::from), [-0.0, 2.5, -0.125, 100.0].map(tick));
        for (low, high) in [(0.0, 1e-6), (3.0, 3.1), (0.0, 97.3), (-7.0, 5000.0)] {
            let marks = ticks((low, high));
            assert!(marks[0] <= low && marks[marks.len() - 1] >= high && marks.len() <= 7, "{marks:?}");
        }
    }

    #[test]
    fn a_margin_is_clipped_to_the_frame() {
        let plot = Plot {
            across: "x".into(),
            up: "y".into(),
            series: vec![],
            x: Some((0.0, 1.0)),
            y: Some((0.0, 1.0)),
            diagonal: Some(0.25),
        };
        let svg = plot.svg();
        assert_eq!(svg.matches("class=\"faint\"").count(), 3);
        assert!(svg.contains("M46.0 160.0 L236.5 10.0") && svg.contains("M109.5 210.0 L300.0 60.0"), "{svg}");
    }

    #[test]
    fn names_cannot_break_the_page() {
        let series = vec![Series::marks("<b>&", vec![(0.0, f64::NAN.max(1.0))])];
        let plot = Plot { across: "x\"".into(), up: "y".into(), series, x: None, y: None, diagonal: None };
        let svg = plot.svg();
        assert!(svg.contains("&lt;b&gt;&amp;") && !svg.contains("<b>"), "{svg}");
    }
}
