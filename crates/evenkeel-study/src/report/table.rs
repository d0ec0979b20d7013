//! Tables that can be written as HTML, Markdown, CSV and LaTeX, all from the same cells.

use super::chart::escaped;

/// A table: the first column of every row is its name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// A short name for files.
    pub name: String,
    /// What it shows, in a line.
    pub title: String,
    /// The heads of the columns; the first is that of the rows' names.
    pub head: Vec<String>,
    /// The rows.
    pub rows: Vec<Vec<Entry>>,
    /// Remarks below it.
    pub notes: Vec<String>,
}

/// A cell: what is said, and beside it what qualifies it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Entry {
    /// The figure or words.
    pub main: String,
    /// An interval, a number of images, the paper's figure; empty if nothing.
    pub aside: String,
    /// How much of the cell is filled, from 0 to 1, in pages that show bars or heat.
    pub fill: Option<f64>,
}

impl Entry {
    /// Words alone.
    pub fn words(main: impl Into<String>) -> Self {
        Self { main: main.into(), ..Self::default() }
    }

    fn plain(&self) -> String {
        if self.aside.is_empty() { self.main.clone() } else { format!("{} {}", self.main, self.aside) }
    }
}

impl Table {
    /// As HTML.
    pub fn html(&self) -> String {
        let head: String =
            self.head.iter().map(|h| format!("<th scope=\"col\">{}</th>", escaped(h))).collect();
        let cell = |(i, entry): (usize, &Entry)| {
            let aside = match entry.aside.is_empty() {
                true => String::new(),
                false => format!("<small>{}</small>", escaped(&entry.aside)),
            };
            let heat = entry.fill.map_or(String::new(), |f| {
                format!(" class=\"heat\" style=\"--share:{:.0}%\"", 100.0 * f.clamp(0.0, 1.0))
            });
            match i {
                0 => format!("<th scope=\"row\">{}{aside}</th>", escaped(&entry.main)),
                _ => format!("<td{heat}>{}{aside}</td>", escaped(&entry.main)),
            }
        };
        let row =
            |row: &Vec<Entry>| format!("<tr>{}</tr>", row.iter().enumerate().map(cell).collect::<String>());
        let rows: String = self.rows.iter().map(row).collect();
        let notes: String =
            self.notes.iter().map(|n| format!("<p class=\"note\">{}</p>", escaped(n))).collect();
        format!(
            "<div class=\"wide\"><table><caption>{}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>{notes}",
            escaped(&self.title)
        )
    }

    /// As Markdown.
    pub fn markdown(&self) -> String {
        let line = |cells: Vec<String>| {
            let safe: Vec<String> = cells.iter().map(|c| c.replace('|', "\\|")).collect();
            format!("| {} |\n", safe.join(" | "))
        };
        let mut text = format!("{}\n\n{}", self.title, line(self.head.clone()));
        text += &format!("|{}\n", "---|".repeat(self.head.len()));
        self.rows.iter().for_each(|row| text += &line(row.iter().map(Entry::plain).collect()));
        self.notes.iter().for_each(|note| text += &format!("\n{note}\n"));
        text
    }

    /// As CSV, asides in columns of their own where there are any.
    pub fn csv(&self) -> String {
        let quoted = |text: &str| match text.contains([',', '"', '\n']) {
            true => format!("\"{}\"", text.replace('"', "\"\"")),
            false => text.to_string(),
        };
        let asides: Vec<bool> = (0..self.head.len())
            .map(|c| self.rows.iter().any(|r| r.get(c).is_some_and(|e| !e.aside.is_empty())))
            .collect();
        let mut lines = Vec::new();
        let mut head = Vec::new();
        for (name, aside) in self.head.iter().zip(&asides) {
            head.push(quoted(name));
            head.extend(aside.then(|| quoted(&format!("{name} (aside)"))));
        }
        lines.push(head.join(","));
        for row in &self.rows {
            let mut cells = Vec::new();
            for (entry, aside) in row.iter().zip(&asides) {
                cells.push(quoted(&entry.main));
                cells.extend(aside.then(|| quoted(&entry.aside)));
            }
            lines.push(cells.join(","));
        }
        lines.join("\n") + "\n"
    }

    /// As a LaTeX table.
    pub fn latex(&self) -> String {
        let safe = |text: &str| {
            let mut out = String::new();
            for c in text.chars() {
                match c {
                    '%' | '&' | '#' | '_' | '$' | '{' | '}' => {
                        out.push('\\');
                        out.push(c);
                    }
                    'ε' => out.push_str("$\\varepsilon$"),
                    'λ' => out.push_str("$\\lambda$"),
                    '×' => out.push_str("$\\times$"),
                    '·' => out.push_str("$\\cdot$"),
                    '–' => out.push_str("--"),
                    '≥' => out.push_str("$\\geq$"),
                    '∞' => out.push_str("$\\infty$"),
                    '~' | '^' | '\\' => out.push(' '),
                    c => out.push(c),
                }
            }
            out
        };
        let line = |cells: Vec<String>| format!("{} \\\\\n", cells.join(" & "));
        let cell = |e: &Entry| match e.aside.is_empty() {
            true => safe(&e.main),
            false => format!("{} {{\\scriptsize {}}}", safe(&e.main), safe(&e.aside)),
        };
        let columns = format!("l{}", "r".repeat(self.head.len().saturating_sub(1)));
        let mut text = format!(
            "\\begin{{table}}\n\\caption{{{}}}\n\\begin{{tabular}}{{{columns}}}\n\\hline\n",
            safe(&self.title)
        );
        text += &line(self.head.iter().map(|h| safe(h)).collect());
        text += "\\hline\n";
        self.rows.iter().for_each(|row| text += &line(row.iter().map(cell).collect()));
        text + "\\hline\n\\end{tabular}\n\\end{table}\n"
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_cells_in_four_forms() {
        let table = Table {
            name: "t".into(),
            title: "50 % & more".into(),
            head: vec!["defence".into(), "pgd|ε".into()],
            rows: vec![vec![
                Entry::words("a_b"),
                Entry { main: "1.5".into(), aside: "[1, 2]".into(), fill: Some(0.5) },
            ]],
            notes: vec!["a <note>".into()],
        };
        assert!(
            table.html().contains("<td class=\"heat\" style=\"--share:50%\">1.5<small>[1, 2]</small></td>")
        );
        assert!(table.html().contains("a &lt;note&gt;"));
        assert!(table.markdown().contains("| defence | pgd\\|ε |\n|---|---|\n| a_b | 1.5 [1, 2] |"));
        assert_eq!(table.csv(), "defence,pgd|ε,pgd|ε (aside)\na_b,1.5,\"[1, 2]\"\n");
        assert!(table.latex().contains("50 \\% \\& more") && table.latex().contains("a\\_b"));
    }
}
