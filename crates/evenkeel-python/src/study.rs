//! Studies from a TOML file: run, and report.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use evenkeel_study::experiment::{Experiment, SubjectRule};
use evenkeel_study::record::ENDING;
use evenkeel_study::report::Report;
use evenkeel_study::rows;
use evenkeel_study::run::{Effort, Embedded, Study, Watch};
use evenkeel_study::store::{Shard, Store, read_design};
use evenkeel_study::tune::{self, Notice, Request, Rule, Stage, page};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error::{OrRaise, refuse};
use crate::work::{Call, outside};

pub(crate) struct Ticking<'a>(pub(crate) &'a Call);

impl Watch for Ticking<'_> {
    fn done(&self, _: usize, _: Option<f64>) {
        self.0.tick();
    }
}

impl Notice for Ticking<'_> {
    fn stage(&self, _: &Stage<'_>) {}
}

/// What a run came to.
struct Ran {
    made: usize,
    kept: usize,
    missing: usize,
    left_out: Vec<String>,
    rows: Option<usize>,
}

/// How many results a study has in a shard, for progress.
#[pyfunction]
pub(crate) fn study_size(py: Python<'_>, path: PathBuf, shard: &str) -> PyResult<(String, usize)> {
    let shard = Shard::parse(shard).or_raise()?;
    outside(py, None, move |_| {
        let study = Study::load(Experiment::load(&path)?, &Embedded::shipped())?;
        Ok::<_, evenkeel_study::Error>((
            study.design.experiment.name.clone(),
            study.counts(shard).iter().sum(),
        ))
    })
}

/// Runs what is missing of a study, and writes the tables when nothing is.
#[pyfunction]
#[pyo3(signature = (path, folder, threads, shard, save_images, progress = None))]
pub(crate) fn study_run<'py>(
    py: Python<'py>,
    path: PathBuf,
    folder: PathBuf,
    threads: Option<usize>,
    shard: &str,
    save_images: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let shard = Shard::parse(shard).or_raise()?;
    let out = folder.clone();
    let ran = outside(py, progress, move |call| {
        let threads = threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into));
        let store = Store::open(&folder, shard)?;
        let study = Study::load(Experiment::load(&path)?, &Embedded::shipped())?;
        let stop: &AtomicBool = &call.stop();
        let effort = Effort { threads, shard, save_images, stop };
        let (mut store, outcome) = study.run(store, &effort, &Ticking(call))?;
        store.look_again()?;
        let missing = rows::missing(&study.design, &store).len();
        let rows = match missing == 0 && !outcome.stopped {
            true => Some(rows::export(&study.design, &store, &folder)?),
            false => None,
        };
        let left_out = study.design.left_out.clone();
        Ok::<_, evenkeel_study::Error>(Ran {
            made: outcome.made,
            kept: outcome.kept,
            missing,
            left_out,
            rows,
        })
    })?;
    let dict = PyDict::new(py);
    dict.set_item("records", ran.rows.map(|_| out.join(format!("records.{ENDING}"))))?;
    dict.set_item("folder", out)?;
    dict.set_item("rows", ran.rows)?;
    dict.set_item("made", ran.made)?;
    dict.set_item("kept", ran.kept)?;
    dict.set_item("missing", ran.missing)?;
    dict.set_item("left_out", ran.left_out)?;
    Ok(dict)
}

/// Writes the page and tables of a study, and gives the page and the tables as Markdown.
#[pyfunction]
pub(crate) fn study_report(
    py: Python<'_>,
    folder: PathBuf,
    out: PathBuf,
    compare: Option<PathBuf>,
    gallery: bool,
) -> PyResult<(PathBuf, String)> {
    for folder in std::iter::once(&folder).chain(&compare) {
        if !matches!(read_design(folder), Ok(Some(_))) {
            return Err(refuse(format!("{}: no study was run into this folder", folder.display())));
        }
    }
    outside(py, None, move |_| {
        let opened = |folder: &PathBuf| {
            let design = read_design(folder)?.ok_or_else(|| {
                evenkeel_study::Error::Request(format!(
                    "{}: no study was run into this folder",
                    folder.display()
                ))
            })?;
            Ok::<_, evenkeel_study::Error>((design, Store::read(folder)?))
        };
        let (design, store) = opened(&folder)?;
        let other = compare.as_ref().map(opened).transpose()?;
        let study =
            gallery.then(|| Study::load(design.experiment.clone(), &Embedded::shipped()).ok()).flatten();
        let study = study.filter(|study| study.design == design);
        let other = other.as_ref().map(|(design, store)| (design, store));
        let report = Report::of(&design, &store, other, study.as_ref())?;
        Ok::<_, evenkeel_study::Error>((report.write(&out)?, report.markdown()))
    })
}

/// What to tune, as Python gives it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Wanted {
    network: String,
    kind: String,
    path: PathBuf,
    split: Option<String>,
    classes: Option<usize>,
    size: Option<String>,
    limit: Option<usize>,
    minutes: f64,
    epsilon: String,
    clean_loss: f64,
    policy: PathBuf,
    folder: PathBuf,
    threads: Option<usize>,
    seed: u64,
}

/// Finds what to use on a network, writes its policy and a page, and gives what the policy says and whether the time ran out.
#[pyfunction]
#[pyo3(signature = (wanted, progress = None))]
pub(crate) fn tune_network(
    py: Python<'_>,
    wanted: Wanted,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(String, bool)> {
    let fine = wanted.minutes > 0.0
        && wanted.minutes.is_finite()
        && wanted.minutes < 1e6
        && wanted.clean_loss >= 0.0;
    if !fine {
        return Err(refuse("minutes must be above 0 and clean_loss at least 0"));
    }
    let stem = PathBuf::from(wanted.network.replace(':', "-"));
    let subject = SubjectRule {
        name: stem.file_stem().map_or("network".into(), |stem| stem.to_string_lossy().into()),
        model: wanted.network.clone(),
        data: wanted.kind,
        path: wanted.path,
        split: wanted.split,
        classes: wanted.classes,
        size: wanted.size,
        limit: wanted.limit,
        ..SubjectRule::default()
    };
    let request = Request {
        subject,
        epsilon_255: evenkeel::settings::parse_radius_255(&wanted.epsilon).or_raise()?,
        time: std::time::Duration::from_secs_f64(60.0 * wanted.minutes),
        rule: Rule { clean_loss: wanted.clean_loss },
        folder: wanted.folder,
        threads: wanted.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, Into::into)),
        seed: wanted.seed,
    };
    let (network, file) = (wanted.network, wanted.policy);
    outside(py, progress, move |call| {
        let model = match network.strip_prefix("embedded:") {
            Some(name) => evenkeel::shipped::named(name)?.model()?,
            None => evenkeel::Model::load(&network)?,
        };
        let stop: &AtomicBool = &call.stop();
        let tuned = tune::tune(&request, &Embedded::shipped(), stop, &Ticking(call))?;
        let policy = page::policy(&tuned, &request, &model.hash)?;
        policy.save(&file)?;
        let page = request.folder.join("index.html");
        evenkeel::image::write_atomically(&page, page::html(&tuned, &request).as_bytes())?;
        Ok::<_, evenkeel_study::Error>((policy.about, tuned.cut_short))
    })
}
