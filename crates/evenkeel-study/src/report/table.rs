//! Tables that can be written as HTML, Markdown, CSV and LaTeX, all from the same cells.

use super::chart::{escaped, marked};

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
    /// How warm the cell is in pages that show heat: from 0 (not) to 1, or down to −1 in the opposite colour.
    pub heat: Option<f64>,
    /// Whether it is what a reader should see first.
    pub strong: bool,
}

impl Entry {
    /// Words alone.
    pub fn words(main: impl Into<String>) -> Self {
        Self { main: main.into(), ..Self::default() }
    }

    /// What stands where nothing was measured.
    pub fn nothing() -> Self {
        Self::words("–")
    }

    /// The same, to be seen first.
    pub fn strong(self) -> Self {
        Self { strong: true, ..self }
    }

    fn plain(&self) -> String {
        if self.aside.is_empty() { self.main.clone() } else { format!("{} {}", self.main, self.aside) }
    }
}

/// The colour of the hottest cell, in % of full: text stays readable on it.
const HOTTEST: f64 = 60.0;

impl Table {
    /// Rows as columns and columns as rows; `corner` is the new head of the first column.
    pub fn turned(self, corner: &str) -> Self {
        let names = self.rows.iter().map(|row| row.first().map_or(String::new(), |e| e.main.clone()));
        let head = std::iter::once(corner.to_string()).chain(names).collect();
        let rows = (1..self.head.len()).map(|c| {
            let cells = self.rows.iter().map(|row| row.get(c).cloned().unwrap_or_default());
            let strong = self.rows.iter().any(|row| row.get(c).is_some_and(|e| e.strong));
            let name = Entry { strong, ..Entry::words(self.head[c].clone()) };
            std::iter::once(name).chain(cells).collect()
        });
        Self { head, rows: rows.collect(), ..self }
    }

    /// As HTML.
    pub fn html(&self) -> String {
        let head: String =
            self.head.iter().map(|h| format!("<th scope=\"col\">{}</th>", escaped(h))).collect();
        let cell = |(i, entry): (usize, &Entry)| {
            let aside = match entry.aside.is_empty() {
                true => String::new(),
                false => format!("<small>{}</small>", escaped(&entry.aside)),
            };
            let kind = match (entry.heat, entry.strong) {
                (Some(heat), _) => format!(
                    " class=\"{}\" style=\"--share:{:.0}%\"",
                    if heat < 0.0 { "heat cold" } else { "heat" },
                    HOTTEST * heat.abs().min(1.0)
                ),
                (None, true) => " class=\"strong\"".into(),
                (None, false) => String::new(),
            };
            match i {
                0 => format!("<th scope=\"row\"{kind}>{}{aside}</th>", escaped(&entry.main)),
                _ => format!("<td{kind}>{}{aside}</td>", escaped(&entry.main)),
            }
        };
        let row =
            |row: &Vec<Entry>| format!("<tr>{}</tr>", row.iter().enumerate().map(cell).collect::<String>());
        let rows: String = self.rows.iter().map(row).collect();
        let notes: String =
            self.notes.iter().map(|n| format!("<p class=\"note\">{}</p>", marked(n))).collect();
        format!(
            "<p class=\"caption\">{title}</p><div class=\"wide\" role=\"region\" tabindex=\"0\" aria-label=\"{title}\"><table><thead><tr>{head}</tr></thead>\
             <tbody>{rows}</tbody></table></div>{notes}",
            title = escaped(&self.title)
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
        let cell = |entry: &Entry| match entry.strong {
            true => format!("**{}**", entry.plain()),
            false => entry.plain(),
        };
        self.rows.iter().for_each(|row| text += &line(row.iter().map(cell).collect()));
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
        let main = |e: &Entry| match e.strong {
            true => format!("\\textbf{{{}}}", safe(&e.main)),
            false => safe(&e.main),
        };
        let cell = |e: &Entry| match e.aside.is_empty() {
            true => main(e),
            false => format!("{} {{\\scriptsize {}}}", main(e), safe(&e.aside)),
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
                Entry { main: "1.5".into(), aside: "[1, 2]".into(), heat: Some(0.5), strong: false },
            ]],
            notes: vec!["a <note>".into()],
        };
        assert!(
            table.html().contains("<td class=\"heat\" style=\"--share:30%\">1.5<small>[1, 2]</small></td>")
        );
        assert!(table.html().contains("a &lt;note&gt;"));
        assert!(table.markdown().contains("| defence | pgd\\|ε |\n|---|---|\n| a_b | 1.5 [1, 2] |"));
        assert_eq!(table.csv(), "defence,pgd|ε,pgd|ε (aside)\na_b,1.5,\"[1, 2]\"\n");
        assert!(table.latex().contains("50 \\% \\& more") && table.latex().contains("a\\_b"));
    }

    #[test]
    fn turned_twice_it_is_the_same_table() {
        let table = Table {
            head: ["defence", "pgd", "worst"].map(String::from).to_vec(),
            rows: vec![
                vec![Entry::words("none"), Entry::words("1"), Entry::words("2").strong()],
                vec![Entry::words("random"), Entry::words("3"), Entry::words("4").strong()],
            ],
            ..Table::default()
        };
        let turned = table.clone().turned("attack");
        assert_eq!(turned.head, ["attack", "none", "random"]);
        assert_eq!(
            turned.rows[1],
            [Entry::words("worst"), Entry::words("2"), Entry::words("4")].map(Entry::strong)
        );
        assert!(turned.markdown().contains("| **worst** | **2** | **4** |"));
        assert!(
            turned.latex().contains("\\textbf{worst}")
                && turned.html().contains("<td class=\"strong\">2</td>")
        );
        let back = turned.turned("defence");
        assert!(back.head == table.head && back.csv() == table.csv());
    }
}
