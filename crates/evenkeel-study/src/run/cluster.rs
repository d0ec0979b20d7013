//! A schedule of work items on many machines that fail, played through beforehand.
//!
//! Every machine has this many places for tasks; a free place takes the next item. Machines fail independently, the time to a failure exponential
//! with the given mean; what was in flight on one is lost and queued again, and its places come back after a while. So an item of length w on one
//! place, with failures at rate r and repairs of length d, ends after (e^(rw) - 1)(1/r + d) on average. Invariant: every item ends once, or is
//! named as one that ran out of tries.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use evenkeel::Random;

use crate::{Error, Result};

/// Machines, and what may happen to them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cluster {
    /// Machines.
    pub machines: usize,
    /// Tasks at a time on each.
    pub places: usize,
    /// Mean time to a failure of one machine, in seconds; infinite for none.
    pub mean_seconds_to_failure: f64,
    /// From a failure until the machine, or another in its stead, takes tasks again.
    pub repair_seconds: f64,
    /// What starting a task takes: a process, networks, the list of images.
    pub start_seconds: f64,
    /// How often an item is tried.
    pub tries: usize,
}

/// What a schedule came to.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Schedule {
    /// When the last item ended.
    pub seconds: f64,
    /// Seconds of places, lost work among it.
    pub busy_seconds: f64,
    /// Seconds of places whose work was lost.
    pub lost_seconds: f64,
    /// Machines that failed.
    pub failures: usize,
    /// The most tries that one item took.
    pub most_tries: usize,
    /// Items that ran out of tries.
    pub given_up: usize,
}

/// `100x8`: machines and processors of each.
///
/// # Errors
/// In words.
pub fn parse_cluster(text: &str) -> Result<(usize, usize)> {
    let parts = text.split_once(['x', 'X']).and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    match parts {
        Some((machines, cpus)) if (1..=1_000_000).contains(&machines) && (1..=4096).contains(&cpus) => {
            Ok((machines, cpus))
        }
        _ => Err(Error::Request(format!("cluster {text}: write MACHINESxPROCESSORS, 100x8 say"))),
    }
}

/// Something that happens; the earliest first, and of two at once the one that was foreseen first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Event {
    /// Nanoseconds, so that there is an order.
    at: u128,
    number: u64,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum What {
    /// The item in this place ends, unless the machine failed since.
    End {
        machine: u32,
        place: u32,
        life: u32,
    },
    Fails {
        machine: u32,
    },
    Returns {
        machine: u32,
    },
}

struct Machine {
    /// How often it was begun anew: an end foreseen in an earlier life does not come.
    life: u32,
    up: bool,
    /// What is in each place: the item, and since when.
    places: Vec<Option<(usize, u128)>>,
}

struct Play<'a> {
    items: &'a [f64],
    cluster: &'a Cluster,
    machines: Vec<Machine>,
    events: BinaryHeap<Reverse<Event>>,
    foreseen: u64,
    queue: VecDeque<usize>,
    free: VecDeque<(u32, u32)>,
    tries: Vec<usize>,
    open: usize,
    random: Random,
    now: u128,
    outcome: Schedule,
}

fn nanoseconds(seconds: f64) -> u128 {
    (seconds.max(0.0) * 1e9) as u128
}

impl Cluster {
    /// Plays the items through, the longest first. The same seed, the same schedule.
    ///
    /// # Errors
    /// If there is nothing to run on.
    pub fn schedule(&self, items: &[f64], seed: u64) -> Result<Schedule> {
        if self.machines == 0 || self.places == 0 || self.tries == 0 {
            return Err(Error::Request("a cluster has a machine, a place on it and a try at least".into()));
        }
        let mut order: Vec<usize> = (0..items.len()).collect();
        order.sort_by(|a, b| items[*b].total_cmp(&items[*a]));
        let machine = || Machine { life: 0, up: true, places: vec![None; self.places] };
        let places = (0..self.places as u32).flat_map(|p| (0..self.machines as u32).map(move |m| (m, p)));
        let mut play = Play {
            items,
            cluster: self,
            machines: (0..self.machines).map(|_| machine()).collect(),
            events: BinaryHeap::new(),
            foreseen: 0,
            queue: order.into(),
            free: places.collect(),
            tries: vec![0; items.len()],
            open: items.len(),
            random: Random::new(seed),
            now: 0,
            outcome: Schedule::default(),
        };
        (0..self.machines as u32).for_each(|machine| play.foresee_failure(machine));
        play.through();
        play.outcome.most_tries = play.tries.iter().copied().max().unwrap_or(0);
        Ok(play.outcome)
    }
}

impl Play<'_> {
    fn foresee(&mut self, seconds: f64, what: What) {
        self.foreseen += 1;
        let event = Event { at: self.now + nanoseconds(seconds), number: self.foreseen, what };
        self.events.push(Reverse(event));
    }

    fn foresee_failure(&mut self, machine: u32) {
        if self.cluster.mean_seconds_to_failure.is_finite() {
            let unit = 1.0 - f64::from(self.random.unit()).min(1.0 - 1e-9);
            self.foresee(-unit.ln() * self.cluster.mean_seconds_to_failure, What::Fails { machine });
        }
    }

    fn through(&mut self) {
        while self.open > 0 {
            self.fill();
            let Some(Reverse(event)) = self.events.pop() else { return };
            self.now = event.at;
            match event.what {
                What::End { machine, place, life } => self.end(machine, place, life),
                What::Fails { machine } => self.fail(machine),
                What::Returns { machine } => self.come_back(machine),
            }
        }
    }

    /// Gives items to free places.
    fn fill(&mut self) {
        while !self.queue.is_empty() {
            let Some((machine, place)) = self.free.pop_front() else { return };
            if !self.machines[machine as usize].up {
                continue;
            }
            let Some(item) = self.queue.pop_front() else { return };
            self.tries[item] += 1;
            let own = &mut self.machines[machine as usize];
            own.places[place as usize] = Some((item, self.now));
            let life = own.life;
            let seconds = self.cluster.start_seconds + self.items[item];
            self.foresee(seconds, What::End { machine, place, life });
        }
    }

    fn end(&mut self, machine: u32, place: u32, life: u32) {
        let own = &mut self.machines[machine as usize];
        if own.life != life {
            return;
        }
        if let Some((_, since)) = own.places[place as usize].take() {
            self.outcome.busy_seconds += (self.now - since) as f64 / 1e9;
            self.outcome.seconds = self.now as f64 / 1e9;
            self.open -= 1;
            self.free.push_back((machine, place));
        }
    }

    fn fail(&mut self, machine: u32) {
        self.outcome.failures += 1;
        let own = &mut self.machines[machine as usize];
        own.up = false;
        own.life += 1;
        let in_flight: Vec<(usize, u128)> = own.places.iter_mut().filter_map(Option::take).collect();
        for (item, since) in in_flight {
            let seconds = (self.now - since) as f64 / 1e9;
            self.outcome.busy_seconds += seconds;
            self.outcome.lost_seconds += seconds;
            if self.tries[item] < self.cluster.tries {
                self.queue.push_front(item);
            } else {
                self.outcome.given_up += 1;
                self.open -= 1;
            }
        }
        self.foresee(self.cluster.repair_seconds, What::Returns { machine });
    }

    fn come_back(&mut self, machine: u32) {
        // places that were free when it failed are still in the list, and would be there twice
        self.free.retain(|(m, _)| *m != machine);
        self.machines[machine as usize].up = true;
        self.free.extend((0..self.cluster.places as u32).map(|place| (machine, place)));
        self.foresee_failure(machine);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALM: Cluster = Cluster {
        machines: 10,
        places: 2,
        mean_seconds_to_failure: f64::INFINITY,
        repair_seconds: 60.0,
        start_seconds: 0.0,
        tries: 1000,
    };

    fn items(count: usize) -> Vec<f64> {
        (0..count).map(|i| 60.0 + (i % 7) as f64 * 40.0).collect()
    }

    #[test]
    fn without_failures_a_schedule_is_within_one_item_of_the_best() {
        for workers in [10, 100, 1_000, 10_000] {
            let cluster = Cluster { machines: workers / 2, ..CALM };
            let items = items(8 * workers + 3);
            let (total, longest) = (items.iter().sum::<f64>(), 300.0);
            let schedule = cluster.schedule(&items, 0).unwrap();
            let best = total / workers as f64;
            assert!(
                schedule.seconds >= best && schedule.seconds <= best + longest,
                "{workers}: {schedule:?}"
            );
            assert!((schedule.busy_seconds - total).abs() < 1e-3 * total);
            assert_eq!((schedule.failures, schedule.most_tries, schedule.given_up), (0, 1, 0));
        }
    }

    #[test]
    fn one_place_takes_what_the_formula_says() {
        let (length, mean, repair) = (100.0, 250.0, 40.0);
        let cluster =
            Cluster { machines: 1, places: 1, mean_seconds_to_failure: mean, repair_seconds: repair, ..CALM };
        let count = 20_000;
        let schedule = cluster.schedule(&vec![length; count], 3).unwrap();
        let expected = ((length / mean).exp() - 1.0) * (mean + repair);
        let measured = schedule.seconds / count as f64;
        assert!((measured / expected - 1.0).abs() < 0.03, "{measured} instead of {expected}");
    }

    #[test]
    fn failures_cost_what_they_lose_and_every_item_ends() {
        for workers in [10, 100, 1_000, 10_000] {
            let cluster = Cluster { machines: workers / 2, mean_seconds_to_failure: 3600.0, ..CALM };
            let items = items(8 * workers);
            let total: f64 = items.iter().sum();
            let schedule = cluster.schedule(&items, 7).unwrap();
            assert_eq!(schedule, cluster.schedule(&items, 7).unwrap());
            assert_eq!(schedule.given_up, 0);
            let kept = schedule.busy_seconds - schedule.lost_seconds;
            assert!((kept - total).abs() < 1e-3 * total, "{workers}: {schedule:?}");
            assert!(schedule.failures > 0 && schedule.lost_seconds > 0.0);
            // a place loses on average less than the rate times half an item's square
            let expected = items.iter().map(|w| w * w / 2.0 / 3600.0).sum::<f64>();
            assert!(
                workers < 1000 || (schedule.lost_seconds / expected - 1.0).abs() < 0.3,
                "{workers}: {expected} {schedule:?}"
            );
        }
    }

    #[test]
    fn an_item_that_outlives_every_machine_is_given_up() {
        let cluster = Cluster { mean_seconds_to_failure: 10.0, tries: 5, ..CALM };
        let schedule = cluster.schedule(&[1e6, 1e6], 1).unwrap();
        assert_eq!((schedule.given_up, schedule.most_tries), (2, 5));
    }

    #[test]
    fn a_cluster_is_machines_times_processors() {
        assert_eq!(parse_cluster("100x8").unwrap(), (100, 8));
        for wrong in ["", "100", "x8", "0x8", "8x0", "-1x2", "99999999x1", "2x8x3"] {
            assert!(parse_cluster(wrong).is_err(), "{wrong}");
        }
    }
}
