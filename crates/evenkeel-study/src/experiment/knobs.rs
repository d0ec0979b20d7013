//! From the knobs of a rule to specs of a table's entry: every list taken apart, every value held against what the entry says of it.
//!
//! Lists are taken apart in one order, whatever the file's: distances first, then names to choose from, then the rest, each in the order of the
//! table; the last varies fastest. Invariant: a spec that comes out of here holds no value that its entry does not read or accept.

use evenkeel::settings::{Entry, Kind, Knob, Spec, Value};

use super::Sweep;
use super::rule::Given;
use crate::{Error, Result};

/// The key of a radius in 1/255, which an experiment has as well.
pub(super) const RADIUS: &str = "epsilon_255";

/// The knob that a study sets itself, for each image.
const SEED: &str = "seed";

/// A spec and the words for what its rule varied.
pub(super) type Varied<E> = (Spec<E>, Vec<String>);

/// One knob with the name that a file calls it by and its values.
struct List<'g, S: 'static> {
    knob: &'static Knob<S>,
    name: &'g str,
    values: &'g Sweep<Value>,
}

/// Every spec that a rule asks for, from one with the defaults.
///
/// # Errors
/// If the entry does not read a knob or accept a value, or a knob is given twice.
pub(super) fn expanded<E: Entry>(base: &Spec<E>, given: &Given) -> Result<Vec<Varied<E>>> {
    let mut all = vec![(base.clone(), Vec::new())];
    for List { knob, name, values } in lists(base, given)? {
        let mut next = Vec::with_capacity(all.len() * values.0.len());
        for (spec, words) in all {
            for value in &values.0 {
                let mut spec: Spec<E> = spec.clone();
                spec.assign(name, value)?;
                let own = (values.0.len() > 1).then(|| word(knob, &spec));
                next.push((spec, words.iter().cloned().chain(own).collect()));
            }
        }
        all = next;
    }
    all.iter().try_for_each(|(spec, _)| spec.check())?;
    Ok(all)
}

/// The knobs that are given, in the order in which they are taken apart.
fn lists<'g, E: Entry>(spec: &Spec<E>, given: &'g Given) -> Result<Vec<List<'g, E::Settings>>> {
    let place = |knob: &Knob<E::Settings>| {
        let rank = match knob.kind {
            Kind::Radius => 0,
            Kind::Choice(_) => 1,
            _ => 2,
        };
        (rank, spec.knobs().position(|k| k.name == knob.name))
    };
    let refuse = |words: String| Err(Error::Request(format!("{} {}: {words}", E::KIND, spec.name())));
    let mut all: Vec<List<'g, E::Settings>> = Vec::new();
    for (name, values) in given {
        let Some(knob) = spec.knobs().find(|k| k.is_called(name)) else {
            // the method says what is wrong with it
            spec.clone().assign(name, &values.0[0])?;
            continue;
        };
        if knob.name == SEED {
            return refuse("`seed` differs for every image; say `seed` or `seeds` of the experiment".into());
        }
        if let Some(other) = all.iter().find(|list| list.knob.name == knob.name) {
            return refuse(format!("`{}` and `{name}` are the same setting", other.name));
        }
        all.push(List { knob, name, values });
    }
    all.sort_by_key(|list| place(list.knob));
    Ok(all)
}

/// How a label says the value of a knob.
fn word<E: Entry>(knob: &Knob<E::Settings>, spec: &Spec<E>) -> String {
    let value = knob.get(spec.settings()).map_or(String::new(), |value| value.to_string());
    if knob.symbol.is_empty() { value } else { format!("{}={value}", knob.symbol) }
}

/// The values of a spec by their keys in files, but for the seed.
pub(super) fn values<E: Entry>(spec: &Spec<E>) -> std::collections::BTreeMap<&'static str, Value> {
    let mut values = spec.values();
    values.remove(SEED);
    values
}
