//! The Python package `evenkeel`: conversions between Python and the method, and nothing else.
//!
//! The module `evenkeel._core` is what is here; `python/evenkeel` holds what a person imports. Rules, names, defaults and ranges are the library's own. Work
//! runs outside the interpreter (`work.rs`); bad input is an `EvenkeelError`, never a crash.

mod attack;
mod bridge;
mod cluster;
mod command;
mod comparison;
mod corrupt;
mod data;
mod detect;
mod error;
mod image;
mod model;
mod pipeline;
mod settings;
mod study;
mod truth;
mod views;
mod work;

use pyo3::prelude::*;

#[pymodule(gil_used = false)]
mod _core {
    use super::*;

    #[pymodule_export]
    use super::attack::attack;
    #[pymodule_export]
    use super::cluster::{study_finish, study_item, study_items};
    #[pymodule_export]
    use super::command::run_command;
    #[pymodule_export]
    use super::comparison::PyComparison;
    #[pymodule_export]
    use super::corrupt::{corrupt, corruptions};
    #[pymodule_export]
    use super::data::{
        PyDataset, coco, dataset_kinds, metrics, ranking, render, scene_classes, segmentation,
    };
    #[pymodule_export]
    use super::detect::{PyCalibration, calibrate, detect, load_calibration};
    #[pymodule_export]
    use super::error::EvenkeelError;
    #[pymodule_export]
    use super::image::PyImage;
    #[pymodule_export]
    use super::model::{PyModel, pixel_preset, shipped_networks, write_shipped};
    #[pymodule_export]
    use super::pipeline::PyPipeline;
    #[pymodule_export]
    use super::settings::{settings, tables};
    #[pymodule_export]
    use super::study::{study_report, study_run, study_size, tune_network};
    #[pymodule_export]
    use super::truth::{PyInstance, PyPrediction};
    #[pymodule_export]
    use super::views::{PyViews, named_views, view_kinds};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        work::settle();
        module.add("ATTACK", evenkeel::Attack::usual().name())?;
        module.add("DELTA", evenkeel::detect::DELTA)?;
        module.add("DETECTOR", evenkeel::DetectorSpec::usual().name())?;
        module.add("FALSE_ALARMS", evenkeel::detect::FALSE_ALARMS)?;
        module.add("TUNE_MINUTES", evenkeel_study::tune::MINUTES)?;
        module.add("TUNE_EPSILON", evenkeel_study::tune::EPSILON.as_str())?;
        module.add("TUNE_CLEAN_LOSS", evenkeel_study::tune::CLEAN_LOSS)?;
        module.add("CPUS_PER_TASK", evenkeel_study::run::CPUS_PER_TASK)?;
        module.add("ITEM_MINUTES", evenkeel_study::run::ITEM_MINUTES)?;
        module.add("RETRIES", evenkeel_study::run::RETRIES)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
