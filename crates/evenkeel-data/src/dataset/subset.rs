//! Which samples of a data set are taken: every n-th, at most this many, drawn at random from a seed.

use crate::{Error, Result};
use evenkeel::Random;

/// A choice of samples. The order of the data set is kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Subset {
    /// Take samples 0, n, 2n…; `None` takes all.
    pub every: Option<usize>,
    /// Take at most this many of them.
    pub limit: Option<usize>,
    /// With a limit: draw them at random from this seed instead of taking the first.
    pub seed: Option<u64>,
}

impl Subset {
    /// The chosen indices out of `count`, ascending.
    ///
    /// # Errors
    /// If nothing can be chosen by this rule.
    pub fn select(&self, count: usize) -> Result<Vec<usize>> {
        let every = self.every.unwrap_or(1);
        if every == 0 || self.limit == Some(0) {
            return Err(Error::Request("--every and --limit must be at least 1".into()));
        }
        let candidates: Vec<usize> = (0..count).step_by(every).collect();
        let limit = self.limit.unwrap_or(usize::MAX).min(candidates.len());
        let Some(seed) = self.seed else {
            return Ok(candidates[..limit].to_vec());
        };
        let order = Random::new(seed).order(candidates.len());
        let mut chosen: Vec<usize> = order[..limit].iter().map(|&k| candidates[k]).collect();
        chosen.sort_unstable();
        Ok(chosen)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_comes_before_limit_and_seeds_repeat() {
        let all = |every, limit, seed| Subset { every, limit, seed }.select(10);
        assert_eq!(all(None, None, None).unwrap().len(), 10);
        assert_eq!(all(Some(3), Some(3), None).unwrap(), [0, 3, 6]);
        assert_eq!(all(None, Some(99), Some(1)).unwrap(), (0..10).collect::<Vec<_>>());
        let drawn = all(Some(2), Some(3), Some(7)).unwrap();
        assert_eq!(drawn, all(Some(2), Some(3), Some(7)).unwrap());
        assert!(drawn.len() == 3 && drawn.iter().all(|i| i % 2 == 0) && drawn.is_sorted());
        let others: Vec<_> = (0..20).map(|seed| all(None, Some(3), Some(seed)).unwrap()).collect();
        assert!(others.iter().any(|o| *o != others[0]), "the seed matters");
        assert!(all(Some(0), None, None).is_err() && all(None, Some(0), None).is_err());
    }
}
