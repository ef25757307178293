//! Options that are keys of a plan: name, bounds and help come from the table of keys.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command, Error, FromArgMatches};
use linerate_plan::keys::OLDER_NAME;
use linerate_plan::{Keyed, Source};
use serde_json::{Value, json};
use std::marker::PhantomData;

/// Number of values of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Takes {
    One,
    /// A list separated by commas. Several values are the levels of a factor.
    Levels,
    /// Each time that the option is given, one. They are the key's list.
    Many,
}

/// An option of a verb.
#[derive(Debug, Clone, Copy)]
pub struct Opt {
    keyed: Keyed,
    value: &'static str,
    takes: Takes,
    usual: Option<&'static str>,
    /// The option's value where it stands alone, if it may.
    alone: Option<&'static str>,
    /// The words of the key that the verb takes; none: all.
    only: &'static [&'static str],
    about: Option<&'static str>,
}

/// An option with one value, which is called `value` in the help.
pub const fn key(option: &'static str, key: &'static str, value: &'static str) -> Opt {
    Opt {
        keyed: Keyed { option, key },
        value,
        takes: Takes::One,
        usual: None,
        alone: None,
        only: &[],
        about: None,
    }
}

/// An option of the verb's own that stands for a key.
pub const fn stands_for(option: &'static str, key: &'static str) -> Keyed {
    Keyed { option, key }
}

impl Opt {
    /// Several values, separated by commas, are levels of a factor.
    pub const fn levels(self) -> Opt {
        Opt {
            takes: Takes::Levels,
            ..self
        }
    }

    /// The option takes one value, as the key does.
    pub const fn one(self) -> Opt {
        Opt {
            takes: Takes::One,
            ..self
        }
    }

    /// The option may be repeated.
    pub const fn many(self) -> Opt {
        Opt {
            takes: Takes::Many,
            ..self
        }
    }

    /// Default of the verb, where it is not the plan's.
    pub const fn usual(self, value: &'static str) -> Opt {
        Opt {
            usual: Some(value),
            ..self
        }
    }

    /// The option may stand without a value, and then has this one.
    pub const fn alone(self, value: &'static str) -> Opt {
        Opt {
            alone: Some(value),
            ..self
        }
    }

    /// The verb takes only some of the key's words.
    pub const fn only(self, only: &'static [&'static str]) -> Opt {
        Opt { only, ..self }
    }

    /// Help instead of the key's.
    pub const fn about(self, about: &'static str) -> Opt {
        Opt {
            about: Some(about),
            ..self
        }
    }

    fn name(&self) -> &'static str {
        self.keyed.option.trim_start_matches('-')
    }

    fn arg(&self) -> Arg {
        let keyed = self.keyed;
        let about = self.about.map_or_else(|| keyed.about(), str::to_string);
        // Where the verb has its own default, it stands instead of the key's.
        let about = match self.usual {
            Some(_) => about
                .split(" [default: ")
                .next()
                .unwrap_or_default()
                .to_string(),
            None => about,
        };
        let about = match (self.alone, about.strip_suffix(']')) {
            (Some(value), Some(begin)) => format!("{begin}; without a value: {value}]"),
            (Some(value), None) => format!("{about} [without a value: {value}]"),
            (None, _) => about,
        };
        let read = move |word: &str| keyed.read(word);
        let parser = match keyed.words() {
            [] => ValueParser::new(read),
            words => {
                let taken =
                    |(word, _): &&(&str, &str)| self.only.is_empty() || self.only.contains(word);
                let values = words.iter().filter(taken);
                let values: Vec<PossibleValue> = values
                    .map(|(word, about)| {
                        let value = PossibleValue::new(*word).help(*about);
                        value.hide(about.starts_with(OLDER_NAME))
                    })
                    .collect();
                PossibleValuesParser::new(values)
                    .try_map(move |word| read(&word))
                    .into()
            }
        };
        let arg = Arg::new(self.name())
            .long(self.name())
            .value_name(self.value)
            .value_parser(parser);
        let arg = match self.alone {
            Some(value) => arg.num_args(0..=1).default_missing_value(value),
            None => arg,
        };
        // Names that these options had.
        let arg = match self.name() {
            "sizes" => arg.alias("size"),
            "backend" => arg.alias("port"),
            _ => arg,
        };
        let more = match self.takes {
            Takes::One => "",
            Takes::Levels => {
                ". Several values, separated by commas, are measured in alternating trials"
            }
            Takes::Many => ". The option may be repeated",
        };
        let arg = arg
            .help(format!("{about}{more}"))
            .ignore_case(true)
            .default_value(self.usual);
        match self.takes {
            Takes::One => arg,
            Takes::Levels => arg.value_delimiter(',').action(ArgAction::Append),
            Takes::Many => arg.action(ArgAction::Append),
        }
    }
}

/// The options of a verb.
pub trait Verb {
    /// The options, in the order of the help.
    const OPTIONS: &'static [&'static [Opt]];

    /// Options of the verb that are keys and have a reading of their own.
    const OWN: &'static [Keyed] = &[];
}

/// The options of a verb that were given.
pub struct Keys<V> {
    given: Vec<(Opt, Vec<Value>)>,
    verb: PhantomData<V>,
}

impl<V: Verb> Keys<V> {
    fn all() -> impl Iterator<Item = &'static Opt> {
        V::OPTIONS.iter().copied().flatten()
    }

    /// The values of an option; none where it was not given.
    pub fn of(&self, option: &str) -> &[Value] {
        let given = self
            .given
            .iter()
            .find(|(opt, _)| opt.keyed.option == option);
        given
            .map(|(_, values)| values.as_slice())
            .unwrap_or_default()
    }

    /// The text of an option, if it was given.
    pub fn text(&self, option: &str) -> Option<&str> {
        self.of(option).first()?.as_str()
    }

    /// Whether an option was given.
    pub fn has(&self, option: &str) -> bool {
        !self.of(option).is_empty()
    }

    /// A plan whose remedies name the options of this verb.
    pub fn over(&self, source: Source) -> Source {
        let keyed = Self::all()
            .map(|opt| opt.keyed)
            .chain(V::OWN.iter().copied());
        source.with_options(keyed.collect())
    }

    /// Whether no option was given.
    pub fn is_empty(&self) -> bool {
        self.given.is_empty()
    }

    /// Sets the keys of the options that were given.
    pub fn set(&self, source: &mut Source) {
        for (opt, values) in &self.given {
            set(source, opt.keyed, opt.takes == Takes::Many, values);
        }
    }
}

/// Sets a key, or a factor of it if there are several levels.
fn set(source: &mut Source, keyed: Keyed, list: bool, values: &[Value]) {
    let Keyed { option, key } = keyed;
    let path: Vec<&str> = key.split('.').collect();
    match values {
        _ if list => source.set(option, &path, values),
        [] => {}
        [only] => source.set(option, &path, only.clone()),
        levels => {
            let name = path.last().copied().unwrap_or_default();
            source.set(option, &["factors", name, "sets"], key);
            source.set(option, &["factors", name, "levels"], json!(levels));
        }
    }
}

/// Sets a key; several values are the levels of a factor.
pub fn levels(source: &mut Source, option: &'static str, key: &'static str, values: &[Value]) {
    set(source, Keyed { option, key }, false, values);
}

impl<V: Verb> FromArgMatches for Keys<V> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        let values = |opt: &Opt| -> Vec<Value> {
            matches
                .get_many(opt.name())
                .into_iter()
                .flatten()
                .cloned()
                .collect()
        };
        let given = Self::all()
            .map(|opt| (*opt, values(opt)))
            .filter(|(_, values)| !values.is_empty());
        Ok(Keys {
            given: given.collect(),
            verb: PhantomData,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl<V: Verb> clap::Args for Keys<V> {
    fn augment_args(command: Command) -> Command {
        command.args(Self::all().map(Opt::arg))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl<V: Verb> std::fmt::Debug for Keys<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list()
            .entries(
                self.given
                    .iter()
                    .map(|(opt, values)| (opt.keyed.option, values)),
            )
            .finish()
    }
}
