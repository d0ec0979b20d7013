//! Work items: what one task of a cluster does, some minutes of jobs, and keeps as one object.
//!
//! An item is a stretch of (image, work) pairs that lack results, cut by what the probe says they take. Its name is a hash of the design and of
//! its jobs, so that a machine with other networks, images or code refuses it, and so that of several that did the same item one is kept.
//! Invariant: the object of an item is there whole or not at all, whenever its task is killed.

use serde::{Deserialize, Serialize};

use super::probe::Forecast;
use super::{Effort, Outcome, Study, Watch};
use crate::key::Key;
use crate::store::{Objects, Shard, Store};
use crate::{Error, Result};

/// Processors of one task, unless somebody says otherwise: of Ray, Slurm, Kubernetes and what is planned for them.
pub const CPUS_PER_TASK: usize = 4;
/// Minutes of one item on all processors of its task.
pub const ITEM_MINUTES: f64 = 5.0;
/// How often an item is begun again when its worker or its machine failed.
pub const RETRIES: usize = 20;

/// Jobs of one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Item {
    /// A hash of design and jobs.
    pub name: Key,
    /// (place of the image, first work, work after the last).
    pub jobs: Vec<(u32, u32, u32)>,
    /// What it takes on one thread, by the probe.
    pub seconds: f64,
    /// Logs with results that the jobs build on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub needs: Vec<String>,
}

impl Item {
    /// The name of its object.
    pub fn object(&self) -> String {
        format!("item-{}.log", self.name)
    }
}

/// What became of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// It was made.
    Made(Outcome),
    /// Another task had kept it before.
    There,
    /// It was stopped; nothing is kept.
    Stopped,
}

impl Study {
    /// Cuts what is missing into items of at least this many seconds of one thread each, or of one job.
    ///
    /// # Errors
    /// If the design has no form in JSON.
    pub fn items(&self, forecast: &Forecast, there: Option<&Store>, seconds: f64) -> Result<Vec<Item>> {
        let design = Key::of(&self.design)?;
        let mut items = Vec::new();
        let mut cut = Cut::default();
        for (place, number) in self.jobs(Shard::WHOLE) {
            let work = &self.design.works[number as usize];
            let id = &self.design.subjects[work.subject].images[place as usize];
            let keys = self.design.keys_of(work);
            let log = |key: &Key| there.and_then(|store| store.log_of(key, id));
            if keys.iter().all(|key| log(key).is_some()) {
                continue;
            }
            cut.add(place, number, forecast.works[number as usize].seconds);
            keys.iter().filter_map(log).for_each(|log| cut.need(log));
            if cut.seconds >= seconds {
                items.push(std::mem::take(&mut cut).item(&design)?);
            }
        }
        if !cut.jobs.is_empty() {
            items.push(cut.item(&design)?);
        }
        Ok(items)
    }

    /// Does an item and keeps it, unless it is there.
    ///
    /// # Errors
    /// If the item is of another design than this machine sees, a unit fails, this machine's disk for temporary files is full, or the place does
    /// not answer. Nothing is kept then.
    pub fn run_item(
        &self,
        item: &Item,
        place: &dyn Objects,
        effort: &Effort<'_>,
        watch: &dyn Watch,
    ) -> Result<Done> {
        if named(&Key::of(&self.design)?, &item.jobs)? != item.name {
            let words = "experiment, networks, images or version on this machine are not those that the work was planned with";
            return Err(Error::Request(format!("work item {}: {words}", item.name)));
        }
        let scratch = tempfile::tempdir().map_err(|e| Error::io(std::env::temp_dir(), e))?;
        for (number, need) in item.needs.iter().enumerate() {
            let path = scratch.path().join(format!("need-{number}.log"));
            if let Some(bytes) = place.read(need)? {
                std::fs::write(&path, bytes).map_err(|e| Error::io(path, e))?;
            }
        }
        let store = Store::open(scratch.path(), Shard::WHOLE)?;
        let jobs: Vec<(u32, u32)> =
            item.jobs.iter().flat_map(|(place, from, to)| (*from..*to).map(|work| (*place, work))).collect();
        let (store, outcome) = self.run_jobs(store, &jobs, effort, watch)?;
        if outcome.stopped {
            return Ok(Done::Stopped);
        }
        let path = store.own_path().ok_or_else(|| Error::Request("an item has no log".into()))?;
        let bytes = std::fs::read(path).map_err(|e| Error::io(path, e))?;
        Ok(if place.create(&item.object(), bytes)? { Done::Made(outcome) } else { Done::There })
    }
}

/// The name of an item.
fn named(design: &Key, jobs: &[(u32, u32, u32)]) -> Result<Key> {
    Key::of(&(design, jobs))
}

/// An item that is being cut.
#[derive(Default)]
struct Cut {
    jobs: Vec<(u32, u32, u32)>,
    seconds: f64,
    needs: Vec<String>,
}

impl Cut {
    fn add(&mut self, place: u32, work: u32, seconds: f64) {
        match self.jobs.last_mut() {
            Some((p, _, to)) if (*p, *to) == (place, work) => *to += 1,
            _ => self.jobs.push((place, work, work + 1)),
        }
        self.seconds += seconds.max(0.0);
    }

    fn need(&mut self, log: &str) {
        if !self.needs.iter().any(|known| known == log) {
            self.needs.push(log.to_string());
        }
    }

    fn item(self, design: &Key) -> Result<Item> {
        let name = named(design, &self.jobs)?;
        Ok(Item { name, jobs: self.jobs, seconds: self.seconds, needs: self.needs })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbouring_jobs_of_an_image_are_one_stretch() {
        let mut cut = Cut::default();
        for (place, work) in [(0, 1), (0, 2), (0, 4), (1, 5), (1, 6)] {
            cut.add(place, work, 0.5);
        }
        ["a", "b", "a"].into_iter().for_each(|log| cut.need(log));
        let key = Key::of(&0).unwrap();
        let item = cut.item(&key).unwrap();
        assert_eq!(item.jobs, [(0, 1, 3), (0, 4, 5), (1, 5, 7)]);
        assert_eq!((item.seconds, item.needs), (2.5, vec!["a".to_string(), "b".to_string()]));
        assert_ne!(item.name, named(&Key::of(&1).unwrap(), &item.jobs).unwrap());
    }
}
