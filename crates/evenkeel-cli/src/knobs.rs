//! Flags made from the tables of settings: one for every knob of a table, named, explained and defaulted as the table says.
//!
//! A flag of a defence carries the prefix `defence-` where an attack has a knob of the same name, every flag of an answer `answer-`. Nothing is parsed here beyond text: the settings
//! themselves refuse what they cannot use.

use std::marker::PhantomData;

use clap::{Arg, ArgAction, ArgMatches, Command, FromArgMatches};
use evenkeel::attack::AttackSettings;
use evenkeel::settings::{Entry, Kind, Knob, Knobs, Spec, Value};

/// What was given of a table's knobs, in the table's order.
pub(crate) struct KnobArgs<E: Entry> {
    given: Vec<(&'static str, Value)>,
    table: PhantomData<E>,
}

impl<E: Entry> std::fmt::Debug for KnobArgs<E> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.given).finish()
    }
}

/// The flag of a knob, without its dashes.
pub(crate) fn flag<E: Entry>(knob: &str) -> String {
    let shared = match E::KIND {
        "answer" => true,
        "defence" => AttackSettings::knobs().iter().any(|k| k.name == knob),
        _ => false,
    };
    let dashed = knob.replace('_', "-");
    if shared { format!("{}-{dashed}", E::KIND) } else { dashed }
}

/// The flag of a knob's switch.
fn switch_flag<E: Entry>(knob: &Knob<E::Settings>) -> Option<(String, &'static str)> {
    let (switch, value) = knob.switch?;
    let prefixed = flag::<E>(knob.name) != knob.name.replace('_', "-");
    Some((if prefixed { format!("{}-{switch}", E::KIND) } else { switch.to_string() }, value))
}

/// The default that most entries have.
fn default_text<E: Entry>(knob: &Knob<E::Settings>) -> Option<String> {
    knob.text(&E::table().first()?.defaults()).filter(|_| !matches!(knob.kind, Kind::Switch))
}

fn values(kind: Kind) -> String {
    match kind {
        Kind::Choice(names) => format!(" [{}]", names().join(", ")),
        _ => String::new(),
    }
}

impl<E: Entry> KnobArgs<E> {
    /// The flags that were given.
    pub(crate) fn flags(&self) -> Vec<String> {
        self.given.iter().map(|(name, _)| format!("--{}", flag::<E>(name))).collect()
    }

    /// What was given, set in one entry that must read all of it.
    pub(crate) fn apply(&self, spec: &mut Spec<E>) -> evenkeel::Result<()> {
        spec.assign_all(self.given.iter().map(|(name, value)| (*name, value)))
    }

    /// Applies what the entry reads, and passes over the rest.
    pub(crate) fn apply_read(&self, spec: &mut Spec<E>) -> evenkeel::Result<()> {
        let reads = |name: &str| spec.knobs().any(|knob| knob.name == name);
        let read: Vec<_> = self.given.iter().filter(|(name, _)| reads(name)).collect();
        spec.assign_all(read.into_iter().map(|(name, value)| (*name, value)))
    }

    /// What was given, set in every entry that reads it; one must.
    pub(crate) fn apply_to_all(&self, specs: &mut [Spec<E>]) -> evenkeel::Result<()> {
        for (name, value) in &self.given {
            let reads = |spec: &Spec<E>| spec.knobs().any(|knob| knob.name == *name);
            let readers = specs.iter().filter(|spec| reads(spec)).count();
            for spec in specs.iter_mut().filter(|spec| readers == 0 || reads(spec)) {
                spec.assign(name, value)?;
            }
        }
        specs.iter().try_for_each(Spec::check)
    }
}

impl<E: Entry> clap::Args for KnobArgs<E> {
    fn augment_args(command: Command) -> Command {
        E::Settings::knobs().iter().fold(command, |command, knob| {
            let name = flag::<E>(knob.name);
            let help = format!("{}{}", capital(knob.help), values(knob.kind));
            let arg = Arg::new(name.clone()).long(name).aliases(knob.former.map(flag::<E>));
            let arg = match knob.kind {
                Kind::Switch => arg.action(ArgAction::SetTrue).help(help),
                kind => {
                    let default =
                        default_text::<E>(knob).map_or(String::new(), |d| format!(" [default: {d}]"));
                    arg.value_name(placeholder(kind)).allow_negative_numbers(true).help(help + &default)
                }
            };
            let command = command.arg(arg);
            match switch_flag::<E>(knob) {
                Some((switch, value)) => command.arg(
                    Arg::new(switch.clone())
                        .long(switch)
                        .action(ArgAction::SetTrue)
                        .conflicts_with(flag::<E>(knob.name))
                        .help(format!("Short for --{} {value}", flag::<E>(knob.name))),
                ),
                None => command,
            }
        })
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn placeholder(kind: Kind) -> &'static str {
    match kind {
        Kind::Radius => "RADIUS",
        Kind::Whole(_) | Kind::Level(..) => "N",
        Kind::Number(..) | Kind::Above(..) => "X",
        Kind::Choice(_) | Kind::Switch => "NAME",
        Kind::Text => "SET",
    }
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or(String::new(), |first| first.to_uppercase().chain(letters).collect())
}

impl<E: Entry> FromArgMatches for KnobArgs<E> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut given = Vec::new();
        for knob in E::Settings::knobs() {
            let name = flag::<E>(knob.name);
            let switched = switch_flag::<E>(knob).filter(|(switch, _)| matches.get_flag(switch));
            let value = match knob.kind {
                Kind::Switch => matches.get_flag(&name).then_some(Value::Switch(true)),
                _ => matches.get_one::<String>(&name).map(|text| Value::from(text.as_str())),
            };
            given.extend(
                switched.map(|(_, value)| Value::from(value)).or(value).map(|value| (knob.name, value)),
            );
        }
        Ok(Self { given, table: PhantomData })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The entries of a table with a line and the knobs of each, for help.
pub(crate) fn table_help<E: Entry>() -> String {
    let widest = E::table().iter().map(|entry| entry.name().len()).max().unwrap_or(0);
    let line = |entry: &'static E| {
        let flags: Vec<_> =
            evenkeel::settings::read_by(entry).map(|knob| format!("--{}", flag::<E>(knob.name))).collect();
        let reads =
            if flags.is_empty() { String::new() } else { format!("  {:widest$}  {}\n", "", flags.join(" ")) };
        format!("  {:widest$}  {}\n{reads}", entry.name(), entry.about())
    };
    let mut title = E::KIND.to_string() + "s";
    title[..1].make_ascii_uppercase();
    format!("{title}, each with the flags it reads:\n{}", E::table().iter().map(line).collect::<String>())
}

#[cfg(test)]
mod tests;
