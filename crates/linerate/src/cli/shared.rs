//! Groups of arguments that several verbs take.

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use linerate_remote::Approach;
use linerate_report::format::{FORMATS, Format};
use std::path::PathBuf;

/// How a result is printed.
#[derive(Debug, Args)]
pub struct Printed {
    /// How to print the result. json gives the whole record, the others what a person reads
    #[arg(long, value_name = "FORMAT", default_value = "text", value_parser = formats())]
    format: &'static dyn Format,

    /// The same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

impl Printed {
    /// The format that is asked for.
    pub fn format(&self) -> &'static dyn Format {
        if self.json { named("json") } else { self.format }
    }

    /// Whether it is one for programs, which get the record instead of the page.
    pub fn is_json(&self) -> bool {
        self.format().name() == "json"
    }

    /// Whether it is what a terminal gets.
    pub fn is_text(&self) -> bool {
        self.format().name() == "text"
    }
}

/// Reads the name of a format.
pub fn formats() -> impl TypedValueParser<Value = &'static dyn Format> {
    PossibleValuesParser::new(FORMATS.map(|format| format.name())).map(|name| named(&name))
}

/// The format of this name, or else text.
pub fn named(name: &str) -> &'static dyn Format {
    FORMATS.into_iter().find(|format| format.name() == name).unwrap_or(FORMATS[0])
}

/// How hosts are reached.
#[derive(Debug, Args)]
pub struct Ssh {
    /// Accept and remember the keys of hosts that ssh does not know yet
    #[arg(long)]
    pub accept_new_keys: bool,

    /// Use this ssh configuration instead of your own
    #[arg(long, value_name = "FILE")]
    pub ssh_config: Option<PathBuf>,
}

impl Ssh {
    pub fn approach(&self) -> Approach {
        Approach { accept_new: self.accept_new_keys, config: self.ssh_config.clone(), ..Approach::default() }
    }
}
