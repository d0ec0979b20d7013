//! A table that names pictures and their truths: CSV or Parquet.
//!
//! Columns: `image` (a path, relative to the table), and at most one of `label` (a class number, or a class name, numbered
//! in sorted order), `label_map` (the path of a label PNG) and `truth` (a file, or words, that the network's task reads: maps of values, say). An optional `id` names the
//! sample. Other columns are left alone.

use super::files::{FileItem, FileSource, FileTruth, LabelRule};
use super::walk::has_ending;
use super::{Kind, Listing, Offender, Preparation, Request, voc_palette};
use crate::{Error, Result};
use std::collections::BTreeSet;
use std::path::Path;

pub(super) const KIND: Kind = Kind {
    name: "manifest",
    about: "a CSV or Parquet table of pictures and labels",
    layout: "a .csv or .parquet file with the columns image and label, label_map or truth",
    preparation: Preparation::Native,
    far: Some(|_, _| false),
    list,
};

/// The columns of interest, one entry per row.
#[derive(Default)]
struct Table {
    image: Vec<String>,
    id: Option<Vec<String>>,
    label: Option<Vec<String>>,
    label_map: Option<Vec<String>>,
    truth: Option<Vec<String>>,
}

fn list(path: &Path, request: &Request) -> Result<Listing> {
    let table = if has_ending(path, &["parquet"]) { read_parquet(path)? } else { read_csv(path)? };
    let folder = path.parent().unwrap_or(Path::new("."));
    let names = class_names(&table, request);
    let (mut items, mut offenders) = (Vec::new(), Vec::new());
    for (row, image) in table.image.iter().enumerate() {
        let picture = folder.join(image);
        let truth = match (&table.label, &table.label_map) {
            (None, None) if table.truth.is_some() => table.truth.as_ref().map(|given| {
                let file = folder.join(&given[row]);
                FileTruth::Given(if file.is_file() { file.display().to_string() } else { given[row].clone() })
            }),
            (Some(label), _) => names.iter().position(|name| *name == label[row]).map(FileTruth::Class),
            (None, Some(map)) => Some(FileTruth::LabelFile(folder.join(&map[row]))),
            (None, None) => Some(FileTruth::Unlabelled),
        };
        let line = row + 2;
        let missing = std::iter::once(&picture)
            .chain(match &truth {
                Some(FileTruth::LabelFile(map)) => Some(map),
                _ => None,
            })
            .find(|file| !file.is_file());
        if let Some(file) = missing {
            let fault = format!("line {line} names {}, which is missing", file.display());
            offenders.push(Offender::new(path, fault, "correct the path; it is relative to the table"));
        } else if let Some(truth) = truth {
            let id = table.id.as_ref().map_or_else(|| image.clone(), |ids| ids[row].clone());
            items.push(FileItem { id, picture, truth });
        } else {
            let label = table.label.as_ref().map_or("", |labels| &labels[row]);
            let fault =
                format!("line {line} has the label `{label}`, which is none of the {} classes", names.len());
            offenders.push(Offender::new(path, fault, "correct the label or say --classes"));
        }
    }
    let classes = names.len();
    let source = Box::new(FileSource { items, rule: LabelRule::plain(classes) });
    Ok(Listing { source, classes: names, palette: voc_palette(classes), offenders })
}

/// Numbers name themselves, up to the count asked for or the largest met; other labels are sorted.
fn class_names(table: &Table, request: &Request) -> Vec<String> {
    let numbered = |count: usize| (0..count).map(|class| class.to_string()).collect();
    let Some(labels) = &table.label else {
        return if table.label_map.is_some() { numbered(request.classes.unwrap_or(255)) } else { Vec::new() };
    };
    let numbers: Option<Vec<usize>> = labels.iter().map(|label| label.parse().ok()).collect();
    match (request.classes, numbers) {
        (Some(count), _) => numbered(count),
        (None, Some(numbers)) => numbered(numbers.into_iter().max().map_or(0, |most| most + 1).min(1 << 20)),
        (None, None) => labels.iter().collect::<BTreeSet<_>>().into_iter().cloned().collect(),
    }
}

fn fault(path: &Path, fault: impl Into<String>) -> Error {
    Error::Offenders(vec![Offender::new(path, fault, format!("give {}", KIND.layout))])
}

fn read_csv(path: &Path) -> Result<Table> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .from_path(path)
        .map_err(|e| fault(path, e.to_string()))?;
    let header = reader.headers().map_err(|e| fault(path, e.to_string()))?.clone();
    let mut columns: Vec<Vec<String>> = vec![Vec::new(); header.len()];
    for record in reader.records() {
        let record = record.map_err(|e| fault(path, e.to_string()))?;
        columns.iter_mut().zip(&record).for_each(|(column, cell)| column.push(cell.to_string()));
    }
    let header: Vec<String> = header.iter().map(str::to_string).collect();
    Table::from_columns(path, header.into_iter().zip(columns))
}

impl Table {
    fn from_columns(path: &Path, columns: impl Iterator<Item = (String, Vec<String>)>) -> Result<Self> {
        let mut table = Self::default();
        let mut named = false;
        for (name, cells) in columns {
            match name.as_str() {
                "image" => (table.image, named) = (cells, true),
                "id" => table.id = Some(cells),
                "label" => table.label = Some(cells),
                "label_map" => table.label_map = Some(cells),
                "truth" => table.truth = Some(cells),
                _ => {}
            }
        }
        if !named {
            return Err(fault(path, "has no column `image`"));
        }
        Ok(table)
    }
}

#[cfg(not(feature = "parquet"))]
fn read_parquet(path: &Path) -> Result<Table> {
    let remedy =
        "build without `--no-default-features`, or with `--features parquet`, or save the table as CSV";
    Err(Error::Offenders(vec![Offender::new(path, "this program was built without Parquet", remedy)]))
}

#[cfg(feature = "parquet")]
fn read_parquet(path: &Path) -> Result<Table> {
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::record::Field;
    let file = std::fs::File::open(path).map_err(|e| fault(path, e.to_string()))?;
    let reader = SerializedFileReader::new(file).map_err(|e| broken_parquet(path, e))?;
    let header: Vec<String> = reader
        .metadata()
        .file_metadata()
        .schema_descr()
        .columns()
        .iter()
        .map(|c| c.name().to_string())
        .collect();
    let mut columns: Vec<Vec<String>> = vec![Vec::new(); header.len()];
    for row in reader.get_row_iter(None).map_err(|e| broken_parquet(path, e))? {
        let row = row.map_err(|e| broken_parquet(path, e))?;
        for (column, (_, cell)) in columns.iter_mut().zip(row.get_column_iter()) {
            column.push(match cell {
                Field::Str(text) => text.clone(),
                other => other.to_string(),
            });
        }
    }
    Table::from_columns(path, header.into_iter().zip(columns))
}

#[cfg(feature = "parquet")]
fn broken_parquet(path: &Path, error: parquet::errors::ParquetError) -> Error {
    let remedy = match error.to_string().to_lowercase() {
        text if text.contains("zstd") || text.contains("brotli") => {
            "save the table with snappy, gzip or no compression, or as CSV"
        }
        _ => "write the table anew, or save it as CSV",
    };
    Error::Offenders(vec![Offender::new(path, format!("not readable as Parquet: {error}"), remedy)])
}
