//! What a test would do, as JSON.

use anyhow::Result;
use linerate_hosts::phases::Phase;
use linerate_import::conductor::{self, Mode};
use serde::Serialize;

#[derive(Serialize)]
struct Test<'t> {
    name: &'t str,
    trials: u32,
    workers: Vec<Worker<'t>>,
}

#[derive(Serialize)]
struct Worker<'t> {
    name: &'t str,
    file: &'t str,
    host: &'t str,
    conductor: &'t str,
    cmdport: u16,
    resultsport: u16,
    phases: Phases<'t>,
}

/// The steps of each phase that is asked for.
#[derive(Serialize)]
struct Phases<'t> {
    #[serde(skip_serializing_if = "Option::is_none")]
    startup: Option<Vec<Step<'t>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Vec<Step<'t>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collect: Option<Vec<Step<'t>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<Vec<Step<'t>>>,
}

#[derive(Serialize)]
struct Step<'t> {
    command: &'t str,
    mode: Mode,
    limit_s: Option<u32>,
}

/// The test with those of its phases that are wanted.
pub fn json(test: &conductor::Test, wanted: &[Phase]) -> Result<String> {
    let workers = test.workers.iter().map(|w| worker(w, wanted)).collect();
    let shown = Test { name: &test.name, trials: test.trials, workers };
    Ok(serde_json::to_string_pretty(&shown)? + "\n")
}

fn worker<'t>(worker: &'t conductor::Worker, wanted: &[Phase]) -> Worker<'t> {
    let steps = |phase| wanted.contains(&phase).then(|| worker.steps(phase).iter().map(step).collect());
    Worker {
        name: &worker.name,
        file: &worker.file,
        host: &worker.host,
        conductor: &worker.conductor,
        cmdport: worker.command_port,
        resultsport: worker.results_port,
        phases: Phases {
            startup: steps(Phase::SetUp),
            run: steps(Phase::Run),
            collect: steps(Phase::Collect),
            reset: steps(Phase::Reset),
        },
    }
}

fn step(step: &conductor::Step) -> Step<'_> {
    Step { command: &step.command, mode: step.mode, limit_s: step.limit_s }
}
