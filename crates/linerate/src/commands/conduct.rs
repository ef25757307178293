//! `linerate conduct`: the tests of Conductor, the coordinator of "Measure Twice, Code Once".

mod carry;
mod places;
mod shown;

use crate::cli::{Conduct, named};
use crate::interrupt;
use crate::output::{FAILED, Faulty, INTERRUPTED, print_json, show, usage};
use anyhow::{Context, Result};
use linerate_import::conductor::{self, Form, MOST_BYTES, Options, Test};
use linerate_plan::Diagnostic;
use linerate_report::document::Document;
use linerate_report::pages;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Runs the verb.
///
/// # Errors
/// The main file cannot be read, or records cannot be written.
pub fn run(args: &Conduct) -> Result<ExitCode> {
    let options = Options { limit_s: args.limit, workers: args.workers.clone() };
    let mut test = read(&args.test, &options)?.map_err(|faults| Faulty(page(&args.test, &faults)))?;
    test.trials = args.trials.unwrap_or(test.trials);
    let by_test = || named(if test.form == Some(Form::Json) { "json" } else { "text" });
    let format = args.format.unwrap_or_else(by_test);
    let phases = args.wanted();
    if args.dry_run {
        match format.name() {
            "json" => print_json(&shown::json(&test, &phases))?,
            _ => show(format, &pages::conduct(&test, &phases)),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let places = places::find(args, &test).map_err(|wrong| {
        let wrong: Vec<String> = wrong.iter().map(|why| pages::ascii(why)).collect();
        usage(wrong.join("\nlinerate: "))
    })?;
    let at = places.iter().map(|place| place.at.clone()).collect();
    interrupt::install();
    match places::connect(places, &interrupt::INTERRUPTED) {
        Ok(places) => carry::carry(args, &test, places, at, format),
        Err(_) if interrupt::interrupted() => Ok(ExitCode::from(INTERRUPTED)),
        Err(errors) => {
            errors.iter().for_each(|error| eprintln!("linerate: {}", pages::ascii(&error.to_string())));
            Ok(ExitCode::from(FAILED))
        }
    }
}

/// Reads a test and the files of its players.
fn read(main: &Path, options: &Options) -> Result<Result<Test, Vec<Diagnostic>>> {
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
    contents(&find(main, file)).map_err(|e| e.to_string())
}

/// What is in a file.
fn contents(path: &Path) -> std::io::Result<Vec<u8>> {
    linerate_linux::files::read(path, MOST_BYTES)
}

fn page(main: &Path, faults: &[Diagnostic]) -> Document {
    let mut page = Document::default();
    for of_file in faults.chunk_by(|a, b| a.subject == b.subject) {
        let file = of_file[0].subject.as_deref().unwrap_or_default();
        let path = if file == main.to_string_lossy() { main.to_path_buf() } else { find(main, file) };
        page.append(pages::diagnostics(&path.display().to_string(), of_file));
    }
    page
}
