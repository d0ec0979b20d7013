//! Tables of columns, written as Parquet (or CSV, in a program built without it) in blocks, so that memory does not grow with rows.

use std::path::Path;

use crate::{Error, Result};

/// Rows held before they are written.
const BLOCK: usize = 4096;

/// The cells of a column.
#[derive(Clone, Debug, PartialEq)]
pub enum Cells {
    /// Words.
    Text(Vec<String>),
    /// Whole numbers, or nothing.
    Whole(Vec<Option<i64>>),
    /// Numbers, or nothing.
    Number(Vec<Option<f64>>),
    /// A list of whole numbers each.
    Counts(Vec<Vec<i64>>),
}

impl Cells {
    fn clear(&mut self) {
        match self {
            Self::Text(cells) => cells.clear(),
            Self::Whole(cells) => cells.clear(),
            Self::Number(cells) => cells.clear(),
            Self::Counts(cells) => cells.clear(),
        }
    }

    fn len(&self) -> usize {
        match self {
            Self::Text(cells) => cells.len(),
            Self::Whole(cells) => cells.len(),
            Self::Number(cells) => cells.len(),
            Self::Counts(cells) => cells.len(),
        }
    }

    #[cfg_attr(feature = "parquet", allow(dead_code))]
    fn word(&self, row: usize) -> String {
        let or_empty = |text: Option<String>| text.unwrap_or_default();
        match self {
            Self::Text(cells) => cells[row].clone(),
            Self::Whole(cells) => or_empty(cells[row].map(|v| v.to_string())),
            Self::Number(cells) => or_empty(cells[row].map(|v| v.to_string())),
            Self::Counts(cells) => cells[row].iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
        }
    }
}

/// Columns by name.
#[derive(Clone, Debug, PartialEq)]
pub struct Frame {
    /// The columns.
    pub columns: Vec<(&'static str, Cells)>,
}

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Words.
    Text(String),
    /// A whole number, or nothing.
    Whole(Option<i64>),
    /// A number, or nothing.
    Number(Option<f64>),
    /// A list of whole numbers.
    Counts(Vec<i64>),
}

impl Frame {
    /// No rows yet; the columns are those of a row.
    fn like(row: &[(&'static str, Value)]) -> Self {
        let column = |(name, value): &(&'static str, Value)| {
            let cells = match value {
                Value::Text(_) => Cells::Text(Vec::new()),
                Value::Whole(_) => Cells::Whole(Vec::new()),
                Value::Number(_) => Cells::Number(Vec::new()),
                Value::Counts(_) => Cells::Counts(Vec::new()),
            };
            (*name, cells)
        };
        Self { columns: row.iter().map(column).collect() }
    }

    fn push(&mut self, row: Vec<(&'static str, Value)>) {
        for ((_, cells), (_, value)) in self.columns.iter_mut().zip(row) {
            match (cells, value) {
                (Cells::Text(cells), Value::Text(v)) => cells.push(v),
                (Cells::Whole(cells), Value::Whole(v)) => cells.push(v),
                (Cells::Number(cells), Value::Number(v)) => cells.push(v),
                (Cells::Counts(cells), Value::Counts(v)) => cells.push(v),
                _ => unreachable!("every row of a table has the same columns"),
            }
        }
    }

    fn rows(&self) -> usize {
        self.columns.first().map_or(0, |(_, cells)| cells.len())
    }
}

/// A table on its way to a file; the file takes its name when it is whole.
pub struct FrameWriter {
    path: std::path::PathBuf,
    file: tempfile::NamedTempFile,
    frame: Option<Frame>,
    #[cfg(feature = "parquet")]
    writer: Option<parquet::file::writer::SerializedFileWriter<std::fs::File>>,
    #[cfg(not(feature = "parquet"))]
    begun: bool,
}

/// The ending of tables in this program.
pub const ENDING: &str = if cfg!(feature = "parquet") { "parquet" } else { "csv" };

impl FrameWriter {
    /// A table in a folder, by its name without ending.
    ///
    /// # Errors
    /// If the folder cannot be written.
    pub fn new(folder: &Path, name: &str) -> Result<Self> {
        let path = folder.join(format!("{name}.{ENDING}"));
        let file = tempfile::NamedTempFile::new_in(folder).map_err(|e| Error::io(&path, e))?;
        Ok(Self {
            path,
            file,
            frame: None,
            #[cfg(feature = "parquet")]
            writer: None,
            #[cfg(not(feature = "parquet"))]
            begun: false,
        })
    }

    /// Adds a row.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn push(&mut self, row: Vec<(&'static str, Value)>) -> Result<()> {
        let frame = self.frame.get_or_insert_with(|| Frame::like(&row));
        frame.push(row);
        if frame.rows() >= BLOCK { self.flush() } else { Ok(()) }
    }

    /// Writes the rest and gives the file its name. A table without rows is no file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn finish(mut self) -> Result<()> {
        if self.frame.is_none() {
            return match std::fs::remove_file(&self.path) {
                Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::io(&self.path, e)),
                _ => Ok(()),
            };
        }
        self.flush()?;
        #[cfg(feature = "parquet")]
        if let Some(writer) = self.writer.take() {
            writer.close().map_err(|e| self.fault(&e.to_string()))?;
        }
        let fail = |e: std::io::Error| Error::io(&self.path, e);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let open = std::fs::Permissions::from_mode(0o644);
            self.file.as_file().set_permissions(open).map_err(fail)?;
        }
        self.file.persist(&self.path).map_err(|e| fail(e.error))?;
        Ok(())
    }

    #[cfg(feature = "parquet")]
    fn fault(&self, reason: &str) -> Error {
        Error::File { path: self.path.clone(), reason: format!("cannot be written ({reason})") }
    }
}

#[cfg(not(feature = "parquet"))]
impl FrameWriter {
    fn flush(&mut self) -> Result<()> {
        let Some(frame) = &mut self.frame else { return Ok(()) };
        let mut writer = csv::WriterBuilder::new().from_writer(&mut self.file);
        let mut done = Ok(());
        if !self.begun {
            done = writer.write_record(frame.columns.iter().map(|(name, _)| *name));
            self.begun = true;
        }
        for row in 0..frame.rows() {
            done = done.and_then(|()| writer.write_record(frame.columns.iter().map(|(_, c)| c.word(row))));
        }
        done.and_then(|()| writer.flush().map_err(Into::into)).map_err(|e| Error::File {
            path: self.path.clone(),
            reason: format!("cannot be written ({e})"),
        })?;
        frame.columns.iter_mut().for_each(|(_, cells)| cells.clear());
        Ok(())
    }
}

#[cfg(feature = "parquet")]
mod with_parquet {
    use std::sync::Arc;

    use parquet::basic::Compression;
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::errors::Result as Parquet;
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use parquet::schema::parser::parse_message_type;

    use super::{Cells, Frame, FrameWriter};
    use crate::{Error, Result};

    impl FrameWriter {
        pub(super) fn flush(&mut self) -> Result<()> {
            let Some(mut frame) = self.frame.take() else { return Ok(()) };
            if self.writer.is_none() {
                let handle = self.file.as_file().try_clone().map_err(|e| Error::io(&self.path, e))?;
                let made = schema(&frame).and_then(|schema| {
                    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
                    SerializedFileWriter::new(handle, Arc::new(schema), Arc::new(properties))
                });
                self.writer = Some(made.map_err(|e| self.fault(&e.to_string()))?);
            }
            if let Some(writer) = &mut self.writer
                && frame.rows() > 0
            {
                let written = writer.next_row_group().and_then(|group| block(group, &frame));
                written.map_err(|e| self.fault(&e.to_string()))?;
            }
            frame.columns.iter_mut().for_each(|(_, cells)| cells.clear());
            self.frame = Some(frame);
            Ok(())
        }
    }

    fn schema(frame: &Frame) -> Parquet<parquet::schema::types::Type> {
        let column = |(name, cells): &(&str, Cells)| match cells {
            Cells::Text(_) => format!("REQUIRED BYTE_ARRAY {name} (UTF8);"),
            Cells::Whole(_) => format!("OPTIONAL INT64 {name};"),
            Cells::Number(_) => format!("OPTIONAL DOUBLE {name};"),
            Cells::Counts(_) => format!(
                "REQUIRED GROUP {name} (LIST) {{ REPEATED GROUP list {{ REQUIRED INT64 element; }} }}"
            ),
        };
        let columns: String = frame.columns.iter().map(column).collect();
        parse_message_type(&format!("message records {{ {columns} }}"))
    }

    /// Present values, and 1 where there is one.
    fn split<T: Copy>(cells: &[Option<T>]) -> (Vec<T>, Vec<i16>) {
        (cells.iter().flatten().copied().collect(), cells.iter().map(|c| i16::from(c.is_some())).collect())
    }

    fn block(mut group: SerializedRowGroupWriter<'_, std::fs::File>, frame: &Frame) -> Parquet<()> {
        for (_, cells) in &frame.columns {
            let Some(mut column) = group.next_column()? else { break };
            match cells {
                Cells::Text(cells) => {
                    let texts: Vec<ByteArray> = cells.iter().map(|t| t.as_str().into()).collect();
                    column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
                }
                Cells::Whole(cells) => {
                    let (values, there) = split(cells);
                    column.typed::<Int64Type>().write_batch(&values, Some(&there), None)?;
                }
                Cells::Number(cells) => {
                    let (values, there) = split(cells);
                    column.typed::<DoubleType>().write_batch(&values, Some(&there), None)?;
                }
                Cells::Counts(cells) => {
                    let (mut values, mut there, mut again) = (Vec::new(), Vec::new(), Vec::new());
                    for list in cells {
                        values.extend_from_slice(list);
                        // an empty list is one place where nothing is
                        let places = list.len().max(1);
                        there.extend(std::iter::repeat_n(i16::from(!list.is_empty()), places));
                        again.extend((0..places).map(|i| i16::from(i > 0)));
                    }
                    column.typed::<Int64Type>().write_batch(&values, Some(&there), Some(&again))?;
                }
            }
            column.close()?;
        }
        group.close().map(|_| ())
    }
}
