//! `linerate conduct`: the tests of Conductor, the coordinator of "Measure Twice, Code Once".

use super::{FAILED, USAGE, print, style};
use crate::cli::{Conduct, Format};
use anyhow::{Context, Result};
use linerate_core::conductor::{self, Fault, MOST_BYTES, Options, Step, Test, Worker};
use linerate_core::phases::Phase;
use linerate_report::text;
use serde::Serialize;
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the verb.
///
/// # Errors
/// The main file cannot be read.
pub fn run(args: &Conduct) -> Result<ExitCode> {
    let mut test = match read(&args.test, &Options { limit_s: args.limit, workers: args.workers.clone() })? {
        Ok(test) => test,
        Err(faults) => {
            tell(&args.test, &faults);
            return Ok(ExitCode::from(USAGE));
        }
    };
    test.trials = args.trials.unwrap_or(test.trials);
    if !args.dry_run {
        eprintln!(
            "linerate: {} has no faults, but tests cannot be carried out over ssh yet: --dry-run shows what would be done",
            args.test.display()
        );
        return Ok(ExitCode::from(FAILED));
    }
    let phases = args.wanted();
    match args.format {
        Format::Text => print(&text::conduct(&test, &phases, style())),
        Format::Json => print(&format!("{:#}\n", as_json(&test, &phases))),
    }
    Ok(ExitCode::SUCCESS)
}

/// Reads a test and the files of its players.
fn read(main: &Path, options: &Options) -> Result<Result<Test, Vec<Fault>>> {
    let bytes = contents(main).with_context(|| format!("cannot read the test {}", main.display()))?;
    let name = main.to_string_lossy();
    Ok(conductor::read(
        &name,
        options,
        |file| if file == name { Ok(bytes.clone()) } else { player(main, file) },
    ))
}

/// A player's file. Conductor looks for it in the working directory, where its tests are beside their players' files.
fn find(main: &Path, file: &str) -> PathBuf {
    let beside = main.parent().unwrap_or(Path::new("")).join(file);
    let here = PathBuf::from(file);
    if !beside.exists() && here.exists() { here } else { beside }
}

fn player(main: &Path, file: &str) -> Result<Vec<u8>, String> {
    let path = find(main, file);
    let kind = std::fs::metadata(&path).map_err(|e| e.to_string())?;
    // A pipe or a terminal would be waited for.
    if !kind.is_file() {
        return Err("it is no regular file".into());
    }
    contents(&path).map_err(|e| e.to_string())
}

/// What is in a file: one byte more than there may be is enough to know that it is too large.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?.take(MOST_BYTES as u64 + 1).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn tell(main: &Path, faults: &[Fault]) {
    for of_file in faults.chunk_by(|a, b| a.file == b.file) {
        let file = &of_file[0].file;
        let path = if *file == main.to_string_lossy() { main.to_path_buf() } else { find(main, file) };
        let faults: Vec<_> = of_file.iter().map(|fault| fault.fault.clone()).collect();
        eprint!("{}", text::plan_faults(&path.display().to_string(), &faults, &[], style()));
    }
}

fn as_json(test: &Test, wanted: &[Phase]) -> Value {
    let worker = |worker: &Worker| {
        let steps =
            |phase: Phase| wanted.contains(&phase).then(|| worker.steps(phase).iter().map(step).collect());
        json!({
            "name": worker.name,
            "file": worker.file,
            "host": worker.host,
            "conductor": worker.conductor,
            "cmdport": worker.command_port,
            "resultsport": worker.results_port,
            "phases": Steps {
                startup: steps(Phase::SetUp),
                run: steps(Phase::Run),
                collect: steps(Phase::Collect),
                reset: steps(Phase::Reset),
            },
        })
    };
    json!({
        "name": test.name,
        "trials": test.trials,
        "workers": test.workers.iter().map(worker).collect::<Vec<_>>(),
    })
}

fn step(step: &Step) -> Value {
    json!({ "command": step.command, "mode": step.mode, "limit_s": step.limit_s })
}

/// The steps of each phase that is asked for.
#[derive(Serialize)]
struct Steps {
    #[serde(skip_serializing_if = "Option::is_none")]
    startup: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    collect: Option<Vec<Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reset: Option<Vec<Value>>,
}
