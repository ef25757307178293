//! Arguments, results, files and records, which nearly every verb uses.

pub use crate::args::{
    CampaignArgs, Cpus, Printed, Share, Ssh, cpu_list, duration, families, named, names_of,
};
pub(crate) use crate::output;
pub use crate::output::{
    DONE, Exit, FAILED, INTERRUPTED, Output, SUCCESS, USAGE, all_of, exit, print, print_json,
    result, show, tell, usage,
};
pub use anyhow::{Context, Result, anyhow, bail};
pub use clap::builder::{PossibleValuesParser, TypedValueParser};
pub use clap::{Args, Subcommand, ValueEnum};
pub use linerate_linux::files;
pub use linerate_linux::records::{self, StoredCampaign};
pub use linerate_measure::record::{Campaign, HostFacts, Slot, Stopped, Summary};
pub use linerate_measure::summary::summarise;
pub use linerate_plan::rules::Families;
pub use linerate_plan::units::parse_link_speed;
pub use linerate_plan::{BuiltIn, Diagnostic};
pub use linerate_report::document::{Document, Tone};
pub use linerate_report::pages;
pub use linerate_runner::interrupt::{self, interrupted};
pub use linerate_runner::messages::told;
pub use linerate_runner::progress::Progress;
pub use linerate_runner::{handle, input};
pub use linerate_wire::units::counted;
pub use linerate_wire::words::{Joined, when};
pub use serde::Serialize;
pub use serde_json::{Value, json};
pub use std::collections::BTreeMap;
pub use std::io::{self, BufWriter, IsTerminal, Write};
pub use std::path::{Path, PathBuf};
pub use std::process::ExitCode;
pub use std::time::Duration;
