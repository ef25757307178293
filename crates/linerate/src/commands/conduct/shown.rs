//! The steps of a test, as JSON.

use linerate_hosts::phases::Phase;
use linerate_import::conductor::{self, Mode, phase_name};
use serde::{Serialize, Serializer};

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
    #[serde(serialize_with = "in_order")]
    phases: Vec<(&'static str, Vec<Step<'t>>)>,
}

#[derive(Serialize)]
struct Step<'t> {
    command: &'t str,
    mode: Mode,
    limit_s: Option<u32>,
}

fn in_order<S: Serializer>(phases: &[(&str, Vec<Step<'_>>)], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_map(phases.iter().map(|(name, steps)| (name, steps)))
}

/// The test with those of its phases that are wanted.
pub fn json(test: &conductor::Test, wanted: &[Phase]) -> impl Serialize {
    let workers = test.workers.iter().map(|w| worker(w, wanted)).collect();
    Test { name: &test.name, trials: test.trials, workers }
}

fn worker<'t>(worker: &'t conductor::Worker, wanted: &[Phase]) -> Worker<'t> {
    let steps = |phase: &Phase| (phase_name(*phase), worker.steps(*phase).iter().map(of).collect());
    Worker {
        name: &worker.name,
        file: &worker.file,
        host: &worker.host,
        conductor: &worker.conductor,
        cmdport: worker.command_port,
        resultsport: worker.results_port,
        phases: wanted.iter().map(steps).collect(),
    }
}

fn of(step: &conductor::Step) -> Step<'_> {
    Step { command: &step.command, mode: step.mode, limit_s: step.limit_s }
}
