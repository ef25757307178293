//! Blocks, charts, records, numbers and lists in words, which nearly every page uses.

pub(crate) use crate::chart::ends;
pub use crate::chart::{Axis, Chart, Look, Scale, Series, Spot};
pub use crate::document::{Bar, Bars, Block, Cell, Document, Drawing, Link, Rows, Table, Tone};
pub use crate::pages::numbers::*;
pub use linerate_hosts::configuration::Configuration;
pub use linerate_measure::experiment::Judgement;
pub use linerate_measure::record::{
    Campaign, Direction, HostFacts, LabKind, Limit, Mode, Row, Slot, Stopped, Summary, TrialRecord,
};
pub use linerate_stats::Estimate;
pub use linerate_wire::words::{Joined, when};
pub use serde::Serialize;
pub use std::collections::{BTreeMap, BTreeSet};
