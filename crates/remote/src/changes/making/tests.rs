//! Messages about changes.

use super::*;
use linerate_hosts::dut_changes::{self, Port, Steps, Target};
use linerate_measure::experiment::System;
use linerate_plan::settings::{Command, Image, Settings};
use proptest::prelude::*;
use std::path::PathBuf;

#[test]
fn programs_are_shown_without_our_scripts() {
    let steps = Program::new(["sh", "-c", "long\nscript", "linerate", "/etc/pf.conf"]);
    assert_eq!(shown(&steps), "a script of linerate with /etc/pf.conf");
    assert_eq!(shown(&Program::new(["sysctl", "a=1\u{7}"])), "sysctl a=1?");
}

/// An installation of this file by this line, in a folder of its own.
fn installation(file: &Path, line: &str) -> (Changes, Step) {
    let image = Image {
        file: file.display().to_string(),
        install: line.into(),
        undo: "true".into(),
    };
    let settings = Settings {
        image: Some(image),
        ..Settings::default()
    };
    let (changes, steps) = made_of(&file.with_extension("journal"), &settings);
    (changes, steps.steps[0].clone())
}

/// The changes and steps of settings on this machine, with a folder for the journal.
fn made_of(journals: &Path, settings: &Settings) -> (Changes, Steps) {
    let port = || Port {
        name: "in0".into(),
        addresses: Vec::new(),
        next_hops: Vec::new(),
        networks: Vec::new(),
    };
    let target = Target {
        system: System::Linux,
        inside: port(),
        outside: port(),
        config_save: None,
    };
    let steps = dut_changes::steps(settings, None, &target).unwrap();
    let place = Arc::new(ExecutionTarget::Here {
        name: "here".into(),
        netns: None,
    });
    let changes = Changes::open(place, "here", None, journals, false).unwrap();
    (changes, steps)
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("linerate-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn a_command_takes_as_long_as_its_plan_lets_it() {
    let folder = folder("within");
    let command = Command {
        run: "sleep 1000".into(),
        undo: Some("true".into()),
        within_ns: Some(200_000_000),
    };
    let settings = Settings {
        commands: vec![command],
        ..Settings::default()
    };
    let (mut changes, steps) = made_of(&folder, &settings);
    let error = changes
        .make(&steps.steps, false, None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("`sh -c sleep 1000` took longer than 0.2 s"),
        "{error}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Nothing can stay behind, however the program ends.
#[test]
fn a_program_s_input_has_no_name_while_it_runs() {
    let folder = folder("nameless");
    let (mut changes, _) = made_of(&folder, &Settings::default());
    let script = "case $(readlink /proc/self/fd/0) in /tmp/linerate.*deleted*) exec grep -qx rules ;; esac; exit 1";
    let apply = Program {
        input: Input::Text("rules\n".into()),
        ..Program::new(["sh", "-c", script])
    };
    let undo = dut_changes::Undo::Stays;
    let what = "rules".into();
    let step = Step {
        what,
        read: None,
        apply,
        check: None,
        undo,
        within_ns: None,
        cuts: false,
    };
    changes.make(&[step], false, None).unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_image_arrives_whole() {
    let folder = folder("image");
    let (file, to) = (folder.join("image"), folder.join("installed"));
    let bytes: Vec<u8> = (0..3_000_001u32)
        .map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    std::fs::write(&file, &bytes).unwrap();
    let (mut changes, step) = installation(&file, &format!("cat >'{}'", to.display()));
    changes
        .make(std::slice::from_ref(&step), true, None)
        .unwrap();
    assert!(std::fs::read(&to).unwrap() == bytes);
    assert_eq!(
        changes.undo().unwrap().what,
        [format!("image {}", file.display())]
    );
    changes
        .make(std::slice::from_ref(&step), true, None)
        .unwrap();
    changes.undo().unwrap();
    std::fs::write(&file, b"another").unwrap();
    let error = changes.make(&[step], true, None).unwrap_err().to_string();
    assert!(
        error.contains("it has changed since it was installed before"),
        "{error}"
    );
    drop(changes);
    // The program's own words, although it reads no more.
    let (mut changes, step) = installation(&file, "echo no room >&2; exit 3");
    let error = changes.make(&[step], true, None).unwrap_err().to_string();
    assert!(error.contains("ended with status 3 (no room)"), "{error}");
    drop(changes);
    std::fs::remove_file(&file).unwrap();
    let (mut changes, step) = installation(&file, "cat");
    let error = changes.make(&[step], true, None).unwrap_err().to_string();
    assert!(
        error.contains("to be installed on here, cannot be read: No such file"),
        "{error}"
    );
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn an_image_is_a_file_behind_its_length() {
    let folder = folder("length");
    let file = folder.join("image");
    std::fs::write(&file, "image").unwrap();
    let (size, mut content) = image(file.to_str().unwrap()).unwrap();
    let mut text = String::new();
    content.read_to_string(&mut text).unwrap();
    assert_eq!((size, text.as_str()), (5, "5\nimage"));
    assert_eq!(
        image("/").map(drop).unwrap_err().to_string(),
        "it is no regular file"
    );
    // One that becomes shorter while it is installed.
    let (mut changes, step) = installation(&file, &format!("cat; : >'{}'", file.display()));
    std::fs::write(&file, vec![7; 9 << 20]).unwrap();
    let shorter = format!("head -c 9 >/dev/null; : >'{}'; cat", file.display());
    let step = Step {
        apply: Program {
            argv: ["sh", "-c", &shorter].map(String::from).into(),
            ..step.apply
        },
        ..step
    };
    let error = changes.make(&[step], true, None).unwrap_err().to_string();
    assert!(error.contains("it has changed since"), "{error}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn nothing_installs_half_of_an_image() {
    let folder = folder("half");
    let whole = folder.join("whole");
    let (changes, step) = installation(
        &folder.join("image"),
        &format!("cat && : >'{}'", whole.display()),
    );
    let run = |input: &str| {
        let mut input = input.as_bytes();
        changes
            .place
            .exchange(
                &Order::program(&step.apply.argv),
                Some(&mut input),
                None,
                &mut |_| {},
            )
            .unwrap()
    };
    for cut in ["9\nhalf", "3\nlonger", "", "9"] {
        assert!(!run(cut).is_success() && !whole.exists(), "{cut}");
    }
    assert!(run("4\nhalf").is_success() && whole.exists());
    drop(changes);
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_host_that_hangs_is_waited_for_once() {
    let folder = folder("hangs");
    let undoing = |n: u32, line: &str| Undoing {
        what: format!("change {n}"),
        argv: ["sh", "-c", line].map(String::from).into(),
        made: true,
        ..Undoing::default()
    };
    let place = Arc::new(ExecutionTarget::Here {
        name: "here".into(),
        netns: None,
    });
    let mut changes = Changes::open(place, "here", None, &folder, false).unwrap();
    let touched = folder.join("touched");
    for (n, line) in [
        (1, format!(": >'{}'", touched.display())),
        (2, "sleep 1000".into()),
        (3, "exit 1".into()),
        (4, "exit 0".into()),
    ] {
        changes.journal.write(undoing(n, &line)).unwrap();
    }
    changes.limit = Duration::from_secs(5);
    let error = changes.undo().unwrap_err().to_string();
    assert!(
        error.contains("3 of its changes could not be undone") && error.contains("status 1"),
        "{error}"
    );
    let left: Vec<&str> = changes
        .pending()
        .iter()
        .map(|undoing| undoing.what.as_str())
        .collect();
    assert_eq!(left, ["change 1", "change 2", "change 3"], "in their order");
    assert!(!touched.exists(), "nothing is tried behind what hangs");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// Variant after variant changes a setting that goes back only later: the oldest value is kept, and the way back is tried twice at most.
#[test]
fn a_setting_that_goes_back_later_is_written_down_once() {
    let folder = folder("later");
    let (mut changes, _) = made_of(&folder.join("journals"), &Settings::default());
    let tries = folder.join("tries");
    let back = format!("cat >>{}; exit {}", tries.display(), dut_changes::LATER);
    for was in ["a", "b", "c", "d"] {
        let waiting = Undoing {
            what: "interrupts".into(),
            argv: ["sh", "-c", &back].map(String::from).to_vec(),
            input: was.into(),
            made: true,
            ..Undoing::default()
        };
        changes.journal.write(waiting).unwrap();
        let undone = changes.undo().unwrap();
        assert_eq!(undone.later, ["interrupts"]);
        assert_eq!(changes.pending().len(), 1);
    }
    assert_eq!(changes.pending()[0].input, "a");
    assert_eq!(std::fs::read_to_string(tries).unwrap(), "abacada");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_machine_has_one_journal_however_it_is_reached() {
    let folder = folder("machine");
    let place = Arc::new(ExecutionTarget::Here {
        name: "here".into(),
        netns: None,
    });
    let open = |address: &str, machine: &str| {
        Changes::open(
            Arc::clone(&place),
            address,
            Some(machine.into()),
            &folder,
            false,
        )
    };
    let first = open("root@router", "02:00:00:00:00:01").unwrap();
    let error = open("192.0.2.5", "02:00:00:00:00:01").unwrap_err();
    assert_eq!(error.fault, Fault::Busy, "{error}");
    assert!(open("root@router", "02:00:00:00:00:02").is_ok());
    drop(first);
    assert!(open("192.0.2.5", "02:00:00:00:00:01").is_ok());
    std::fs::remove_dir_all(&folder).unwrap();
}

proptest! {
    #[test]
    fn hosts_have_files_of_their_own(a in "[a-z./@ :]{1,8}", b in "[a-z./@ :]{1,8}") {
        prop_assert_eq!(a == b, file_name(&a) == file_name(&b));
        prop_assert!(!file_name(&a).contains('/'));
    }
}

/// The kernel takes what is written, and forgets it.
#[test]
fn a_setting_that_did_not_take_fails() {
    use linerate_hosts::dut_changes::Runtime;
    use linerate_hosts::systems::Kernel;
    let folder = folder("untaken");
    let place = Arc::new(ExecutionTarget::Here {
        name: "here".into(),
        netns: None,
    });
    let mut changes = Changes::open(place, "here", None, &folder, false).unwrap();
    let file = folder.join("setting");
    std::fs::write(&file, "7\n").unwrap();
    let step = |pattern: &str, value: &str| {
        let (pattern, value) = (pattern.into(), value.into());
        Runtime::File {
            path: pattern,
            value,
        }
        .step(Kernel::Linux)
        .unwrap()
    };
    let file = file.to_str().unwrap();
    let error = changes
        .make(&[step(file, "8"), step("/dev/null", "1")], false, None)
        .unwrap_err();
    assert_eq!(error.fault, Fault::Untaken);
    assert!(
        error
            .to_string()
            .contains("/dev/null should be 1, and is  by"),
        "{error}"
    );
    changes.undo().unwrap();
    assert_eq!(std::fs::read_to_string(file).unwrap(), "7\n");
    // Of two values of a setting, the last holds.
    changes
        .make(&[step(file, "8"), step(file, "9")], false, None)
        .unwrap();
    // A change takes another one back.
    let mut other = step("/dev/null", "1");
    other.apply = Program::new(["sh", "-c", &format!("echo 7 >{file}")]);
    other.check = None;
    let error = changes
        .make(&[step(file, "8"), other], false, None)
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("should be 8, and is 7") && error.contains("another setting changed it"),
        "{error}"
    );
    changes.undo().unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
}
