//! The cell that a check is about.

use crate::diagnostic::Span;
use crate::draft::Draft;
use linerate_measure::experiment::System;
use linerate_wire::Family;

/// Place of a cell, for its faults.
pub(in super::super) struct Place<'a> {
    pub(in super::super) draft: &'a Draft,
    pub(in super::super) variant: usize,
    pub(in super::super) system: System,
    pub(in super::super) embedded: bool,
    pub(in super::super) levels: &'a [(usize, usize)],
    /// IP version of its frames.
    pub(in super::super) family: Family,
}

impl Place<'_> {
    pub(super) fn name(&self) -> &str {
        &self.draft.variants[self.variant].name
    }

    pub(super) fn span(&self) -> Span {
        self.draft.variants[self.variant].span
    }

    /// Whether the plan lets the device under test be rebooted.
    pub(in super::super) fn reboots(&self) -> bool {
        let trials = self.draft.tree.table("trials");
        trials
            .and_then(|t| t.text("reboot"))
            .is_some_and(|reboot| reboot != "never")
    }
}
