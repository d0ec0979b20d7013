//! A store whose folder mirrors a place elsewhere: its own log is published there from time to time, as an object that never changes.
//!
//! Publishing makes the own log an item under the name of its content's hash, there and here, and begins a new one. Dying anywhere between leaves
//! a log that the next process on this machine publishes, or an item that is there already. A machine that is lost loses what it had not
//! published: some minutes.

use std::time::{Duration, Instant};

use super::site::Site;
use super::{Log, Shard, Store};
use crate::key::Key;
use crate::record::ENDING;
use crate::{Error, Result};

/// How often the own log is published.
const PUBLISH: Duration = Duration::from_secs(120);

/// Where a store is published, and when it last was.
pub(super) struct Publishing {
    pub(super) site: Site,
    last: Instant,
}

/// The tables of a study.
pub(super) fn tables() -> [String; 3] {
    ["records", "timings", "detections"].map(|name| format!("{name}.{ENDING}"))
}

impl Store {
    /// Opens a site to read what is there.
    ///
    /// # Errors
    /// If it does not answer, or a log cannot be read.
    pub fn read_at(site: &Site) -> Result<Self> {
        site.refresh()?;
        Self::read(site.folder())
    }

    /// Opens a site to add the results of a shard; what an earlier process here did not get to publish is published.
    ///
    /// # Errors
    /// As [`Store::open`], or if the site does not answer.
    pub fn open_at(site: &Site, shard: Shard) -> Result<Self> {
        site.refresh()?;
        let mut store = Self::open(site.folder(), shard)?;
        if site.is_remote() {
            store.publishing = Some(Publishing { site: site.clone(), last: Instant::now() });
            store.publish()?;
        }
        Ok(store)
    }

    /// Publishes if it is time.
    pub(super) fn publish_if_due(&mut self) -> Result<()> {
        match &self.publishing {
            Some(publishing) if publishing.last.elapsed() > PUBLISH => self.publish(),
            _ => Ok(()),
        }
    }

    /// Publishes what was added since the last time, if this store has somewhere to.
    ///
    /// # Errors
    /// If the place does not answer; everything stays in the log here, and the next process publishes it.
    pub fn publish(&mut self) -> Result<()> {
        let (Some(publishing), Some((own, _))) = (&mut self.publishing, &mut self.own) else { return Ok(()) };
        publishing.last = Instant::now();
        let log = &mut self.logs[*own];
        if log.is_empty() {
            return Ok(());
        }
        log.sync()?;
        let path = log.path().to_owned();
        let bytes = std::fs::read(&path).map_err(|e| Error::io(&path, e))?;
        let name = format!("item-{}.log", Key::of_parts(&[&bytes]));
        publishing.site.objects().create(&name, bytes)?;
        log.rename(&self.folder.join(name))?;
        self.logs.push(Log::create(&path)?);
        *own = self.logs.len() - 1;
        Ok(())
    }

    /// Publishes the design.
    pub(super) fn publish_design(&self) -> Result<()> {
        let site = self.publishing.as_ref().map(|publishing| &publishing.site);
        site.map_or(Ok(()), |site| site.publish(&["experiment.toml".into(), "study.json".into()]))
    }

    /// Publishes the tables that were written into the folder, if this store has somewhere to.
    ///
    /// # Errors
    /// If the place does not answer.
    pub fn publish_tables(&self) -> Result<()> {
        let site = self.publishing.as_ref().map(|publishing| &publishing.site);
        site.map_or(Ok(()), Site::publish_tables)
    }
}
