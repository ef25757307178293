//! Conductor's published tests: all of them are read, unchanged, and no change of their files causes a panic.
#![cfg_attr(
    not(corpus),
    allow(dead_code, reason = "every test here reads the corpus")
)]

use linerate_hosts::phases::Phase;
use linerate_import::conductor::{Mode, Options, Step, Test, read};
use linerate_plan::Diagnostic;
use linerate_wire::SplitMix64;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const CORPUS: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../../shared/corpus/netperf"
);
const MUTATIONS: usize = 200;

/// The files of a test by their names, the main file among them.
type Files = BTreeMap<String, Vec<u8>>;

/// The folders that have a main file, and their files; editors' backups stay out.
fn tests() -> Vec<(PathBuf, Files)> {
    let (mut tests, mut folders) = (Vec::new(), vec![PathBuf::from(CORPUS)]);
    while let Some(folder) = folders.pop() {
        let mut files = Files::new();
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let path = entry.path();
            match path.is_dir() {
                true => folders.push(path),
                false if path.extension().is_some_and(|e| e == "cfg") => {
                    files.insert(name(&path), fs::read(&path).unwrap());
                }
                false => {}
            }
        }
        if files.contains_key("conductor.cfg") {
            tests.push((folder, files));
        }
    }
    tests.sort();
    tests
}

fn name(path: &Path) -> String {
    path.file_name().unwrap().to_string_lossy().into_owned()
}

fn take(files: &Files) -> Result<Test, Vec<Diagnostic>> {
    read("conductor.cfg", &Options::default(), |file| {
        files
            .get(file)
            .cloned()
            .ok_or_else(|| "No such file".to_string())
    })
}

fn whole(folder: &Path, files: &Files) -> Test {
    take(files).unwrap_or_else(|faults| panic!("{}: {faults:#?}", folder.display()))
}

/// Counted with another program that reads INI files.
#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn all_published_tests_are_read() {
    let tests: Vec<Test> = tests()
        .iter()
        .map(|(folder, files)| whole(folder, files))
        .collect();
    assert_eq!(tests.len(), 25);
    let trials = |n| tests.iter().filter(|test| test.trials == n).count();
    assert_eq!([1, 3, 10].map(trials), [15, 3, 7]);
    let workers: Vec<_> = tests.iter().flat_map(|test| &test.workers).collect();
    assert_eq!(workers.len(), 69);
    let of = |phase| workers.iter().flat_map(move |worker| worker.steps(phase));
    let modes = |phase| {
        [Mode::Normal, Mode::Spawn, Mode::Timeout]
            .map(|mode| of(phase).filter(|s| s.mode == mode).count())
    };
    assert_eq!(
        Phase::ALL.map(modes),
        [[361, 0, 0], [90, 7, 37], [139, 0, 0], [266, 0, 0]]
    );
    for worker in workers {
        assert!(worker.host.starts_with("192.168.") && worker.conductor.starts_with("192.168."));
        assert_eq!((worker.command_port, worker.results_port), (6970, 6971));
    }
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn steps_are_what_the_files_say() {
    let tests = tests();
    let (folder, files) = tests
        .iter()
        .find(|(folder, _)| name(folder) == "iperf-twohost")
        .unwrap();
    let test = whole(folder, files);
    let [source, sink] = test.workers.as_slice() else {
        panic!("{:?}", test.workers)
    };
    let names = [source, sink].map(|w| (w.name.as_str(), w.file.as_str(), w.host.as_str()));
    assert_eq!(
        names,
        [
            ("client1", "source.cfg", "192.168.5.151"),
            ("client2", "sink.cfg", "192.168.5.163")
        ]
    );
    let told = |step: &Step| {
        (
            step.key.clone(),
            step.mode,
            step.limit_s,
            step.command.clone(),
        )
    };
    let step =
        |key: &str, mode, limit, command: &str| (key.to_string(), mode, limit, command.to_string());
    let run: Vec<_> = [sink, source]
        .iter()
        .flat_map(|w| w.steps(Phase::Run))
        .map(told)
        .collect();
    let expected = [
        step("timeout30", Mode::Timeout, Some(30), "iperf3 -s"),
        step("step1", Mode::Normal, Some(30), "sleep 5"),
        step("step2", Mode::Normal, Some(30), "iperf3 -c 172.16.0.2"),
    ];
    assert_eq!(run, expected);
}

/// No step's command has blanks at its ends, which a third of the lines of these files have.
#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn every_step_is_a_line_of_its_file() {
    for (folder, files) in tests() {
        for worker in whole(&folder, &files).workers {
            let text = String::from_utf8(files[&worker.file].clone()).unwrap();
            let lines: Vec<&str> = text.lines().collect();
            for step in worker.phases.iter().flat_map(|(_, steps)| steps) {
                let (key, command) = lines[step.line - 1].split_once(':').unwrap();
                assert_eq!(
                    (key.trim(), command.trim()),
                    (step.key.as_str(), step.command.as_str())
                );
            }
        }
    }
}

/// In words of 2025, a test is the same test.
#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn both_vocabularies_say_the_same() {
    for (folder, files) in tests() {
        let old = whole(&folder, &files);
        let renamed = |bytes: &Vec<u8>| {
            let text = String::from_utf8(bytes.clone()).unwrap();
            text.replace("[Clients]", "[Workers]")
                .replace("[Master]", "[Coordinator]")
                .into_bytes()
        };
        let new = files
            .iter()
            .map(|(name, bytes)| (name.clone(), renamed(bytes)))
            .collect();
        assert_eq!(whole(&folder, &new), old);
    }
}

/// Every changed file gives either a test that can be carried out, or a fault with its place.
fn judge(files: &Files) {
    match take(files) {
        Ok(test) => {
            assert!(test.trials >= 1 && !test.workers.is_empty());
            for step in test
                .workers
                .iter()
                .flat_map(|worker| worker.phases.iter().flat_map(|(_, steps)| steps))
            {
                assert!(!step.command.trim().is_empty() && !step.command.contains('\0'));
                assert!(step.limit_s.is_some() || step.mode == Mode::Spawn);
            }
        }
        Err(faults) => {
            assert!(!faults.is_empty());
            assert!(
                faults
                    .iter()
                    .all(|fault| fault.subject.is_some() && !fault.message.is_empty())
            );
        }
    }
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn prefixes_of_every_file_are_taken() {
    for (_, files) in tests() {
        for name in files.keys() {
            let mut cut = files.clone();
            // Every seventh: lines and words have other lengths, so that each place within them is met.
            for end in (0..files[name].len()).rev().step_by(7) {
                cut.get_mut(name).unwrap().truncate(end);
                judge(&cut);
            }
        }
    }
}

#[test]
#[cfg_attr(not(corpus), ignore = "needs ../shared/corpus")]
fn mutated_files_are_taken() {
    let mut random = SplitMix64::new(5);
    for (_, files) in tests() {
        for _ in 0..MUTATIONS {
            let mut mutated = files.clone();
            let at = below(&mut random, files.len());
            let bytes = mutated.values_mut().nth(at).unwrap();
            for _ in 0..=below(&mut random, 6) {
                mutate(bytes, &mut random);
            }
            judge(&mutated);
        }
    }
}

fn below(random: &mut SplitMix64, limit: usize) -> usize {
    (random.next_u64() % limit.max(1) as u64) as usize
}

/// One change of a kind that breaks parsers of lines, keys and values.
fn mutate(bytes: &mut Vec<u8>, random: &mut SplitMix64) {
    const ODD: [&[u8]; 14] = [
        b"\n",
        b"\r",
        b"\0",
        b"\xff",
        b" ",
        b"%(",
        b"%(step1)s",
        b"%",
        b"[DEFAULT]\n",
        b"[Run]\n",
        b"timeout9:",
        b"spawn:",
        b"=",
        b"99999999999999999999999",
    ];
    let at = below(random, bytes.len() + 1);
    let end = (at + below(random, 60)).min(bytes.len());
    match random.next_u64() % 4 {
        0 if at < bytes.len() => bytes[at] = random.next_u64() as u8,
        1 => drop(bytes.drain(at..end)),
        2 => {
            let copy = bytes[at..end].to_vec();
            bytes.splice(at..at, copy);
        }
        _ => drop(bytes.splice(at..at, ODD[below(random, ODD.len())].iter().copied())),
    }
}
