//! Dot charts as SVG: named rows, in each a few marks with their intervals on one axis. For what is compared by name, where [`super::chart`]
//! is for what is compared by number.

use std::fmt::Write;

use super::chart::{escaped, span, tick, ticks};

/// Narrow enough that on a phone a letter keeps nine tenths of its size; a row's name stands above its marks, not beside them.
const TOTAL: f64 = 400.0;
const LEFT: f64 = 12.0;
const WIDE: f64 = 372.0;
/// Height of a name, of one mark's own line, and the space between rows.
const NAME: f64 = 15.0;
const LINE: f64 = 9.0;
const GAP: f64 = 7.0;
/// Width of a letter, about.
pub(crate) const LETTER: f64 = 6.6;

/// A value with its interval.
pub type Mark = (f64, Option<(f64, f64)>);

/// A dot chart.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Dots {
    /// What the axis shows.
    pub across: String,
    /// From where to where it goes; what the marks need if `None`.
    pub span: Option<(f64, f64)>,
    /// What the marks of a row are, in order.
    pub kinds: Vec<String>,
    /// The rows: a name, and a mark of each kind where there is one.
    pub rows: Vec<(String, Vec<Option<Mark>>)>,
}

impl Dots {
    /// The highest mark.
    pub fn highest(&self) -> f64 {
        self.rows.iter().flat_map(|r| r.1.iter().flatten()).map(|m| m.0).fold(f64::NEG_INFINITY, f64::max)
    }

    /// The chart.
    pub fn svg(&self) -> String {
        let marks = || self.rows.iter().flat_map(|r| r.1.iter().flatten());
        let scale = ticks(self.span.unwrap_or_else(|| span(marks().map(|m| m.0))));
        let (low, high) = (scale[0], scale[scale.len() - 1]);
        let at = |value: f64| LEFT + (value.clamp(low, high) - low) / (high - low) * WIDE;
        let mut legend = String::new();
        let top = self.legend(&mut legend);
        let row = NAME + LINE * self.kinds.len().max(1) as f64 + GAP;
        let tall = row * self.rows.len() as f64 + GAP;
        let mut svg = format!(
            "<svg viewBox=\"0 0 {TOTAL} {:.0}\" class=\"dots\" role=\"img\" aria-label=\"{}\">{legend}",
            top + tall + 40.0,
            escaped(&self.across)
        );
        for value in &scale {
            let (x, below) = (at(*value), top + tall);
            let _ = write!(
                svg,
                "<path d=\"M{x:.1} {top} v{tall:.1}\" class=\"grid\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                below + 14.0,
                tick(*value)
            );
        }
        let (middle, below) = (LEFT + WIDE / 2.0, top + tall + 32.0);
        let words = escaped(&self.across);
        let _ = write!(svg, "<text x=\"{middle}\" y=\"{below:.1}\" text-anchor=\"middle\">{words}</text>");
        for (number, (name, marks)) in self.rows.iter().enumerate() {
            let start = top + GAP + row * number as f64;
            let (base, shown) = (start + NAME - 4.0, escaped(&shortened(name, (WIDE / LETTER) as usize)));
            let _ = write!(svg, "<text x=\"{LEFT}\" y=\"{base:.1}\" class=\"over\">{shown}</text>");
            for (k, mark) in marks.iter().enumerate() {
                let Some((value, interval)) = mark else { continue };
                let y = start + NAME + LINE * (k as f64 + 0.5);
                if let Some((from, to)) = interval {
                    let _ = write!(
                        svg,
                        "<path d=\"M{:.1} {y:.1} H{:.1}\" class=\"whisker d{k}\"/>",
                        at(*from),
                        at(*to)
                    );
                }
                let _ = write!(
                    svg,
                    "<circle cx=\"{:.1}\" cy=\"{y:.1}\" r=\"4\" class=\"dot d{k}\"><title>{}: {} {}</title></circle>",
                    at(*value),
                    escaped(name),
                    escaped(self.kinds.get(k).map_or("", String::as_str)),
                    tick(*value)
                );
            }
        }
        svg + "</svg>"
    }

    /// What the marks are, in as many lines as that takes; gives where the rows begin.
    fn legend(&self, svg: &mut String) -> f64 {
        let (mut x, mut y) = (LEFT, 10.0);
        for (k, kind) in self.kinds.iter().enumerate() {
            let kind = shortened(kind, ((WIDE - 13.0) / LETTER) as usize);
            let wide = 24.0 + LETTER * kind.chars().count() as f64;
            if x > LEFT && x + wide > TOTAL {
                (x, y) = (LEFT, y + 16.0);
            }
            let _ = write!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{y}\" r=\"4\" class=\"dot d{k}\"/><text x=\"{:.1}\" y=\"{}\">{}</text>",
                x + 4.0,
                x + 13.0,
                y + 4.0,
                escaped(&kind)
            );
            x += wide;
        }
        y + 14.0
    }
}

/// A name of at most this many letters.
pub(crate) fn shortened(name: &str, most: usize) -> String {
    match name.chars().count() > most {
        true => name.chars().take(most - 1).chain(['…']).collect(),
        false => name.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_stand_where_their_values_are() {
        let chart = Dots {
            across: "mIoU, %".into(),
            span: Some((0.0, 100.0)),
            kinds: vec!["clean".into(), "worst case".into()],
            rows: vec![("a <b>".into(), vec![Some((50.0, Some((25.0, 75.0)))), None])],
        };
        let svg = chart.svg();
        assert!(svg.contains("cx=\"198.0\"") && svg.contains("M105.0") && svg.contains("H291.0"), "{svg}");
        assert!(svg.contains("a &lt;b&gt;") && !svg.contains("<b>"));
        assert_eq!(svg.matches("<circle").count(), 3, "two in the legend, one in the row");
        assert_eq!(shortened(&"x".repeat(40), 31).chars().count(), 31);
    }

    #[test]
    fn a_long_legend_takes_more_lines() {
        let kinds = |names: [&str; 3]| Dots { kinds: names.map(String::from).to_vec(), ..Dots::default() };
        let (short, long) = ("pgd", "apgd-ce, 100 steps, 4/255, through");
        assert_eq!(kinds([short; 3]).legend(&mut String::new()), 24.0);
        assert_eq!(kinds([short, long, short]).legend(&mut String::new()), 24.0);
        assert_eq!(kinds([long; 3]).legend(&mut String::new()), 56.0);
    }
}
