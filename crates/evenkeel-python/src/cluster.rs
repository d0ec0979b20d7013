//! Work items of a study, for `evenkeel.ray`: cut, run one by one anywhere, and joined.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use evenkeel_study::experiment::Experiment;
use evenkeel_study::record::ENDING;
use evenkeel_study::rows;
use evenkeel_study::run::{Done, Effort, Embedded, Item, Study};
use evenkeel_study::store::{Shard, Site, Store, read_design};
use evenkeel_study::{Error, Result};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::study::Ticking;
use crate::work::outside;

/// An experiment as the tasks of a study get it: its text, its file's name for words, how much of it.
#[derive(Clone, PartialEq, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Part {
    text: String,
    file: PathBuf,
    quick: bool,
    limit: Option<usize>,
}

impl Part {
    fn study(&self) -> Result<Study> {
        let mut experiment = Experiment::parse(&self.text, &self.file)?;
        experiment.limit = [self.limit, experiment.limit].into_iter().flatten().min();
        experiment.check()?;
        if self.quick {
            experiment = experiment.quick();
            experiment.name += "-quick";
        }
        Study::load(experiment, &Embedded::shipped())
    }
}

/// The study that this process loaded last: tasks of one study follow each other in a process.
static LOADED: Mutex<Option<(Part, Arc<Study>)>> = Mutex::new(None);

fn loaded(part: &Part) -> Result<Arc<Study>> {
    let mut last = LOADED.lock().unwrap_or_else(|e| e.into_inner());
    if let Some((known, study)) = last.as_ref().filter(|(known, _)| known == part) {
        let _ = known;
        return Ok(study.clone());
    }
    let study = Arc::new(part.study()?);
    *last = Some((part.clone(), study.clone()));
    Ok(study)
}

/// Cuts what is missing of a study at a place into items of the given number of seconds on one thread, and keeps its design there. Gives name and JSON of the
/// items, with the seconds of each.
#[pyfunction]
pub(crate) fn study_items(
    py: Python<'_>,
    part: Part,
    place: PathBuf,
    seconds: f64,
) -> PyResult<(String, Vec<(String, f64)>)> {
    outside(py, None, move |call| {
        let study = loaded(&part)?;
        let site = Site::at(&place)?;
        site.refresh()?;
        let there = match site.folder().exists() {
            true => Some(Store::read(site.folder())?),
            false => None,
        };
        site.keep_design(&study.design)?;
        let missing = there.as_ref().is_none_or(|store| !rows::missing(&study.design, store).is_empty());
        let mut all = Vec::new();
        if missing {
            let forecast = study.forecast(&Ticking(call))?;
            for item in study.items(&forecast, there.as_ref(), seconds)? {
                let json = serde_json::to_string(&item).map_err(|e| Error::Request(e.to_string()))?;
                all.push((json, item.seconds));
            }
        }
        Ok::<_, Error>((study.design.experiment.name.clone(), all))
    })
}

/// Does one item and keeps it at the place; gives how many results were made.
#[pyfunction]
pub(crate) fn study_item(
    py: Python<'_>,
    part: Part,
    place: PathBuf,
    item: String,
    threads: usize,
) -> PyResult<usize> {
    outside(py, None, move |call| {
        let item: Item = serde_json::from_str(&item).map_err(|e| Error::Request(e.to_string()))?;
        let study = loaded(&part)?;
        let site = Site::at(&place)?;
        let stop: &AtomicBool = &call.stop();
        let effort = Effort { threads, shard: Shard::WHOLE, save_images: false, stop };
        match study.run_item(&item, &*site.objects(), &effort, &Ticking(call))? {
            Done::Made(outcome) => Ok(outcome.made),
            Done::There => Ok(0),
            Done::Stopped => Err(Error::Request("stopped before the end of the item".into())),
        }
    })
}

/// What a place holds: the folder with the tables, which are written if nothing is missing.
#[pyfunction]
pub(crate) fn study_finish(py: Python<'_>, place: PathBuf) -> PyResult<Bound<'_, PyDict>> {
    let (folder, missing, rows, left_out) = outside(py, None, move |_| finish(&place))?;
    let dict = PyDict::new(py);
    dict.set_item("records", rows.map(|_| folder.join(format!("records.{ENDING}"))))?;
    dict.set_item("folder", folder)?;
    dict.set_item("rows", rows)?;
    dict.set_item("missing", missing)?;
    dict.set_item("left_out", left_out)?;
    Ok(dict)
}

fn finish(place: &Path) -> Result<(PathBuf, usize, Option<usize>, Vec<String>)> {
    let site = Site::at(place)?;
    site.refresh()?;
    let none = || Error::Request(format!("{}: no study was run into this place", place.display()));
    let design = read_design(site.folder())?.ok_or_else(none)?;
    let store = Store::read(site.folder())?;
    let missing = rows::missing(&design, &store).len();
    let count = match missing {
        0 => Some(rows::export(&design, &store, site.folder())?),
        _ => None,
    };
    if count.is_some() {
        site.publish_tables()?;
    }
    Ok((site.folder().to_owned(), missing, count, design.left_out))
}
