//! Actions of a campaign on the hosts of its lab, listed beforehand.

use crate::dut_changes::{Program, Step, Undo};
use serde::Serialize;

/// Actions on a host at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The host and its role.
    pub host: String,
    /// When it would be done, and for which cells.
    pub when: String,
    /// In order.
    pub actions: Vec<Action>,
}

/// One thing that would be done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Action {
    /// The action.
    pub what: String,
    /// The program with its arguments; empty where none is run.
    pub argv: Vec<String>,
    /// The command line, for people.
    pub command: String,
    /// Undoing of the action.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub undo: Option<String>,
    /// The program that undoes it with its arguments; empty where none does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub undo_argv: Vec<String>,
}

impl Action {
    /// A program that is run.
    pub fn of(what: impl Into<String>, program: &Program) -> Action {
        Action {
            what: what.into(),
            argv: program.argv.clone(),
            command: program.shown(),
            undo: None,
            undo_argv: Vec::new(),
        }
    }
}

impl From<&Step> for Action {
    fn from(step: &Step) -> Action {
        let (undo, undo_argv) = match &step.undo {
            Undo::Run(program) => (format!("`{}`", program.shown()), program.argv.clone()),
            Undo::Reboot => ("a reboot".into(), Vec::new()),
            Undo::With(what) => (format!("the entry \"{what}\" above"), Vec::new()),
            Undo::Stays => ("nothing: it may stay".into(), Vec::new()),
        };
        Action {
            undo: Some(undo),
            undo_argv,
            ..Action::of(&step.what, &step.apply)
        }
    }
}
