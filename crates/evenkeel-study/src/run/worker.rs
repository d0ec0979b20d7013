//! What the workers of a run share, and what one does with an image under a work: makes it, defends it, detects it, and keeps each result.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use evenkeel::Image;

use super::album::{Album, packed, unpacked};
use super::subject::Sample;
use super::unit::{Evaluator, Seeds};
use super::{Effort, Outcome, Study, Watch};
use crate::experiment::{Threat, Work};
use crate::key::Key;
use crate::record::Entry;
use crate::store::Store;
use crate::{Error, Result};

/// How often the log is brought to the disk itself.
const SYNC: Duration = Duration::from_secs(20);

/// What the workers share.
pub(super) struct Shared<'a> {
    pub(super) study: &'a Study,
    pub(super) effort: &'a Effort<'a>,
    pub(super) watch: &'a dyn Watch,
    pub(super) store: Mutex<(Store, Instant)>,
    next: AtomicUsize,
    made: AtomicUsize,
    kept: AtomicUsize,
    replaced: AtomicUsize,
    failed: Mutex<Option<Error>>,
}

/// The image a worker has at hand.
pub(super) type AtHand = Option<(usize, u32, Sample)>;

impl<'a> Shared<'a> {
    pub(super) fn new(study: &'a Study, store: Store, effort: &'a Effort<'a>, watch: &'a dyn Watch) -> Self {
        Self {
            study,
            effort,
            watch,
            store: Mutex::new((store, Instant::now())),
            next: AtomicUsize::new(0),
            made: AtomicUsize::new(0),
            kept: AtomicUsize::new(0),
            replaced: AtomicUsize::new(0),
            failed: Mutex::new(None),
        }
    }

    /// The store and what the run came to, when every worker is done.
    pub(super) fn end(self, jobs: &[(u32, u32)]) -> Result<(Store, Outcome)> {
        let (mut store, _) = self.store.into_inner().unwrap_or_else(|e| e.into_inner());
        store.sync()?;
        store.publish()?;
        if let Some(error) = self.failed.into_inner().unwrap_or_else(|e| e.into_inner()) {
            return Err(error);
        }
        let stopped = self.next.load(Ordering::SeqCst) < jobs.len() + self.effort.threads.max(1)
            && self.effort.stop.load(Ordering::SeqCst);
        let (made, kept) = (self.made.into_inner(), self.kept.into_inner());
        Ok((store, Outcome { made, kept, replaced: self.replaced.into_inner(), stopped }))
    }

    pub(super) fn halted(&self) -> bool {
        self.effort.stop.load(Ordering::SeqCst) || self.lock_failed().is_some()
    }

    fn lock_failed(&self) -> std::sync::MutexGuard<'_, Option<Error>> {
        self.failed.lock().unwrap_or_else(|e| e.into_inner())
    }

    fn fail(&self, error: Error) {
        self.lock_failed().get_or_insert(error);
    }

    /// Takes jobs until there are none.
    pub(super) fn work_through(&self, jobs: &[(u32, u32)]) {
        let pool = match rayon::ThreadPoolBuilder::new().num_threads(1).build() {
            Ok(pool) => pool,
            Err(e) => return self.fail(Error::Request(format!("no thread could be had: {e}"))),
        };
        pool.install(|| {
            let mut at_hand: AtHand = None;
            while !self.halted() {
                let Some(&(place, work)) = jobs.get(self.next.fetch_add(1, Ordering::SeqCst)) else { return };
                if let Err(error) = self.job(place, work as usize, &mut at_hand) {
                    return self.fail(error);
                }
            }
        });
    }

    /// Whether a result of these pixels is there.
    pub(super) fn has(&self, key: &Key, id: &str, image: &Key) -> bool {
        self.store.lock().unwrap_or_else(|e| e.into_inner()).0.has(key, id, Some(image))
    }

    pub(super) fn count_kept(&self, count: usize) {
        self.kept.fetch_add(count, Ordering::SeqCst);
    }

    /// Adds a result to the store.
    pub(super) fn keep(&self, entry: &Entry, picture: &[u8]) -> Result<()> {
        let mut store = self.store.lock().unwrap_or_else(|e| e.into_inner());
        let stale = store.0.has(&entry.key, &entry.id, None)
            && !store.0.has(&entry.key, &entry.id, Some(&entry.image));
        store.0.append(entry, picture)?;
        self.replaced.fetch_add(usize::from(stale), Ordering::SeqCst);
        if store.1.elapsed() > SYNC {
            store.0.sync()?;
            store.1 = Instant::now();
        }
        self.made.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }

    /// One image under one work, with all that is evaluated on it.
    fn job(&self, place: u32, number: usize, at_hand: &mut AtHand) -> Result<()> {
        let study = self.study;
        let work = &study.design.works[number];
        if study.design.is_foreign(work) {
            return self.foreign_job(place, number);
        }
        let subject = &study.subjects[work.subject];
        if at_hand.as_ref().is_none_or(|(s, p, _)| (*s, *p) != (work.subject, place)) {
            *at_hand = Some((work.subject, place, subject.sample(place as usize)?));
        }
        let Some((_, _, sample)) = at_hand.as_ref() else { return Ok(()) };
        let album = self.effort.save_images.then(|| Album::new(self, work, &sample.id));
        let start = Instant::now();
        let (shown_there, answers, detections) = self.missing(work, sample, album.as_ref());
        let kept = usize::from(shown_there) + work.answers.len() + work.detections.len()
            - answers.len()
            - detections.len();
        self.count_kept(kept);
        let saved = album.as_ref().is_none_or(|a| a.path("attacked").exists());
        if shown_there && saved && answers.is_empty() && detections.is_empty() {
            self.watch.done(number, None);
            return Ok(());
        }
        let image = self.shown(work, sample, shown_there)?;
        if let Some(album) = &album {
            album.save("attacked", &image)?;
        }
        let complete =
            self.defend_and_detect(work, sample, &image, (&answers, &detections), album.as_ref())?;
        if complete {
            self.watch.done(number, Some(start.elapsed().as_secs_f64()));
        }
        Ok(())
    }

    /// Whether the image of a work is there, and which answers and detections are not.
    fn missing(&self, work: &Work, sample: &Sample, album: Option<&Album>) -> (bool, Vec<usize>, Vec<usize>) {
        let store = self.store.lock().unwrap_or_else(|e| e.into_inner());
        let there = |key| store.0.has(key, &sample.id, Some(&sample.hash));
        let saved = |row: usize| {
            album.is_none_or(|a| a.path(&self.study.design.subjects[work.subject].rows[row].label).exists())
        };
        let shown = there(&work.key);
        let answers = (0..work.answers.len())
            .filter(|i| !there(&work.answers[*i].key) || !saved(work.answers[*i].row))
            .collect();
        let detections = (0..work.detections.len()).filter(|i| !there(&work.detections[*i].0)).collect();
        (shown, answers, detections)
    }

    /// The image of a work: out of the store, or made and kept.
    fn shown(&self, work: &Work, sample: &Sample, there: bool) -> Result<Image> {
        let study = self.study;
        let card = &study.design.subjects[work.subject];
        let threat = &card.columns[work.column].threat;
        if there && matches!(threat, Threat::Attack(_)) {
            let store = self.store.lock().unwrap_or_else(|e| e.into_inner());
            if let Some((_, picture)) = store.0.get(&work.key, &sample.id)? {
                return unpacked(&picture);
            }
        }
        if there && *threat == Threat::Clean {
            return Ok(sample.image.clone());
        }
        let root = study.design.experiment.seed;
        let evaluator = Evaluator::new(&study.subjects[work.subject], sample, threat, root)?;
        let seeds = Seeds::new(root, work.draw, &sample.id);
        let (entry, image) = evaluator.show(work.key, threat, study.adversary(work).as_ref(), seeds)?;
        if !there {
            let picture = if matches!(threat, Threat::Attack(_)) { packed(&image)? } else { Vec::new() };
            self.keep(&entry, &picture)?;
        }
        Ok(image)
    }

    /// Defends and detects; false if it was stopped before the end.
    fn defend_and_detect(
        &self,
        work: &Work,
        sample: &Sample,
        image: &Image,
        (answers, detections): (&[usize], &[usize]),
        album: Option<&Album>,
    ) -> Result<bool> {
        let study = self.study;
        let (card, prepared) = (&study.design.subjects[work.subject], &study.prepared[work.subject]);
        let root = study.design.experiment.seed;
        let threat = &card.columns[work.column].threat;
        let evaluator = Evaluator::new(&study.subjects[work.subject], sample, threat, root)?;
        for answer in answers.iter().map(|i| &work.answers[*i]) {
            if self.halted() {
                return Ok(false);
            }
            let row = &card.rows[answer.row];
            let seeds = Seeds::new(root, answer.draw, &sample.id);
            let measure = study.design.experiment.objective;
            let pipeline = &prepared.pipelines[answer.row];
            let (entry, defended) =
                evaluator.answer(answer.key, (pipeline, &row.spec), image, seeds, measure)?;
            if let Some(album) = album {
                album.save(&row.label, &defended)?;
            }
            self.keep(&entry, &[])?;
        }
        for (key, place) in detections.iter().map(|i| &work.detections[*i]) {
            if self.halted() {
                return Ok(false);
            }
            let entry = evaluator.detect(*key, &prepared.detectors[*place], image)?;
            self.keep(&entry, &[])?;
        }
        Ok(true)
    }
}
