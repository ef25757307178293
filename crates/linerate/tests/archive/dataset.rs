//! An archive as a dataset: campaigns are added, checked, compacted and queried, by several writers and by some that are killed.

mod questions;

use crate::common::{Scratch, linerate, wait_for};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

/// Runs a campaign, and makes campaigns of other names and months of it, in one folder.
fn campaigns(scratch: &Scratch, number: usize) -> String {
    let base = scratch.file("base");
    linerate([
        "bench",
        "--simulate",
        "ok",
        "--trials",
        "5",
        "--quiet",
        "--out",
        &base,
    ])
    .run()
    .ok();
    for at in 0..number {
        let to = scratch.file(&format!("campaigns/{at}"));
        copy(&base, &to);
        change(&to, |campaign| {
            campaign["name"] = format!("campaign {at}").into();
            campaign["started"] = format!("2026-0{}-01T00:00:00Z", 1 + at % 2).into();
        });
    }
    scratch.file("campaigns")
}

fn copy(from: &str, to: &str) {
    fs::create_dir_all(to).unwrap();
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        let to = Path::new(to).join(file.file_name());
        if file.file_type().unwrap().is_dir() {
            copy(file.path().to_str().unwrap(), to.to_str().unwrap());
        } else {
            fs::copy(file.path(), to).unwrap();
        }
    }
}

fn change(campaign: &str, by: impl FnOnce(&mut Value)) {
    let path = format!("{campaign}/campaign.json");
    let mut document = serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
    by(&mut document);
    fs::write(path, document.to_string()).unwrap();
}

/// The state of a campaign before its last trials.
fn earlier(campaign: &str) -> String {
    let to = format!("{campaign}-earlier");
    copy(campaign, &to);
    let path = format!("{to}/trials.jsonl");
    let trials = fs::read_to_string(&path).unwrap();
    let some: Vec<&str> = trials.split_inclusive('\n').take(12).collect();
    fs::write(path, some.concat()).unwrap();
    fs::remove_file(format!("{to}/summary.json")).unwrap();
    to
}

/// Adds, and returns what is said about it.
fn add(from: &str, to: &str) -> String {
    let ended = linerate(["archive", "add", from, "--to", to]).run().ok();
    ended.stdout + &ended.stderr
}

/// The words of `check`, and whether all agrees.
fn check(archive: &str) -> (String, bool) {
    let ended = linerate(["archive", "check", archive]).run().no_panic();
    let agrees = ended.status.success();
    assert!(agrees || ended.status.code() == Some(1), "{ended:?}");
    (ended.stdout + &ended.stderr, agrees)
}

fn compact(archive: &str) -> String {
    linerate(["archive", "compact", archive]).run().ok().stdout
}

/// The files that readers see.
fn files(archive: &str) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut open = ["trials", "cells", "facts"].map(String::from).to_vec();
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(format!("{archive}/{folder}"))
            .into_iter()
            .flatten()
        {
            let entry = entry.unwrap();
            let name = format!("{folder}/{}", entry.file_name().to_str().unwrap());
            if entry.file_type().unwrap().is_dir() {
                open.push(name);
            } else {
                found.insert(name, fs::read(entry.path()).unwrap());
            }
        }
    }
    found
}

/// The one file whose path has all of these in it.
fn file(archive: &str, parts: &[&str]) -> String {
    let all = files(archive);
    let mut found = all
        .keys()
        .filter(|name| parts.iter().all(|part| name.contains(part)));
    let first = found
        .next()
        .unwrap_or_else(|| panic!("no {parts:?} in {:?}", all.keys()));
    format!("{archive}/{first}")
}

#[test]
fn adding_again_changes_nothing_and_a_campaign_that_went_on_replaces_itself() {
    let scratch = Scratch::new();
    let (all, archive) = (campaigns(&scratch, 3), scratch.file("archive"));
    let (whole, before) = (format!("{all}/2"), earlier(&format!("{all}/2")));
    assert!(add(&before, &archive).contains("1 campaign: 1 added"));
    assert_eq!(
        check(&archive),
        (
            "1 campaign with 12 trials in 3 files: all agree\n".into(),
            true
        )
    );
    assert!(add(&whole, &archive).contains("1 campaign: 0 added, 1 replaced"));
    let once = files(&archive);
    assert!(add(&whole, &archive).contains("0 added, 0 replaced, 1 there already"));
    let kept = add(&before, &archive);
    assert!(
        kept.contains("12 trials") && kept.contains("has 20 of the same"),
        "{kept}"
    );
    assert_eq!(files(&archive), once);
    // In the file of a month it is the same.
    let months = scratch.file("months");
    for from in [&format!("{all}/0"), &before, &format!("{all}/1")] {
        add(from, &months);
    }
    assert_eq!(compact(&months), "6 files became 3\n");
    assert!(add(&before, &months).contains("1 there already"));
    assert!(add(&whole, &months).contains("1 replaced"));
    assert!(add(&before, &months).contains("has 20 of the same"));
    fs::remove_dir_all(&before).unwrap();
    assert!(add(&all, &months).contains("3 campaigns: 0 added, 0 replaced, 3 there already"));
    assert_eq!(
        check(&months),
        (
            "3 campaigns with 60 trials in 6 files: all agree\n".into(),
            true
        )
    );
    assert_eq!(compact(&months), "0 files became 0\n");
}

#[test]
fn whatever_cannot_be_added_is_named_and_stays_outside() {
    let scratch = Scratch::new();
    let all = campaigns(&scratch, 4);
    change(&format!("{all}/0"), |campaign| {
        campaign["name"] = "../../../name".into();
        campaign["started"] = "../../../time".into();
    });
    fs::write(format!("{all}/1/campaign.json"), "{").unwrap();
    fs::write(format!("{all}/2/trials.jsonl"), "").unwrap();
    fs::remove_file(format!("{all}/2/summary.json")).unwrap();
    let add = |lab: &str, limit: u64| {
        let to = scratch.file("to/archive");
        let arguments = ["archive", "add", &all, "nowhere", "--to", &to, "--lab", lab];
        fs::create_dir_all(scratch.file("nowhere")).unwrap();
        linerate(arguments)
            .dir(scratch.path())
            .file_limit(limit)
            .run()
    };
    let full = add("lab", 4000);
    full.fails(1, &["left out: 0: ", "File too large"]);
    assert_eq!(files(&scratch.file("to/archive")).len(), 0);
    assert_eq!(
        fs::read_dir(scratch.file("to/archive/.drafts"))
            .unwrap()
            .count(),
        0
    );
    let ended = add("../../é%2F", 1 << 30);
    assert!(
        ended
            .stdout
            .contains("2 campaigns: 2 added, 0 replaced, 0 there already; others are left out")
    );
    ended.fails(
        1,
        &[
            "left out: ",
            "1/campaign.json",
            "left out: 2: no single trial",
            "nowhere holds no campaign",
        ],
    );
    let inside: Vec<String> = files(&scratch.file("to/archive")).into_keys().collect();
    let folders = [
        "year=2026/month=2",
        "year=__HIVE_DEFAULT_PARTITION__/month=__HIVE_DEFAULT_PARTITION__",
    ];
    for folder in folders {
        let folder = format!("trials/lab=..%2F..%2Fé%252F/{folder}/");
        assert!(
            inside.iter().any(|name| name.starts_with(&folder)),
            "{inside:?}"
        );
    }
    assert_eq!(fs::read_dir(scratch.file("to")).unwrap().count(), 1);
    assert!(check(&scratch.file("to/archive")).1);
    for lab in ["", "a\nb", "__HIVE_DEFAULT_PARTITION__"] {
        add(lab, 1 << 30).fails(2, &["--lab"]);
    }
    add("another", 1 << 30).fails(1, &["as a campaign of the lab ../../é%2F"]);
    linerate(["archive", "check", &all])
        .run()
        .fails(1, &["is no archive"]);
}

#[test]
fn eight_writers_at_once_write_what_one_does() {
    let scratch = Scratch::new();
    let (all, archive) = (campaigns(&scratch, 4), scratch.file("archive"));
    add(&all, &scratch.file("alone"));
    let writers = [(); 8].map(|()| linerate(["archive", "add", &all, "--to", &archive]).start());
    for writer in writers {
        let said = writer.wait().ok().stdout;
        assert!(
            said.contains("4 campaigns: ") && said.contains(" 0 replaced,"),
            "{said}"
        );
    }
    assert!(
        files(&archive) == files(&scratch.file("alone")),
        "other files"
    );
    assert_eq!(
        check(&archive),
        (
            "4 campaigns with 80 trials in 12 files: all agree\n".into(),
            true
        )
    );
}

#[test]
fn check_names_what_does_not_agree() {
    let scratch = Scratch::new();
    let (all, sound) = (campaigns(&scratch, 2), scratch.file("sound"));
    add(&all, &sound);
    let before = earlier(&format!("{all}/0"));
    add(&before, &scratch.file("earlier"));
    let january = |archive: &str, table: &str| file(archive, &[table, "month=1"]);
    let damaged = |by: &dyn Fn(&str)| {
        let archive = scratch.file("damaged");
        let _ = fs::remove_dir_all(&archive);
        copy(&sound, &archive);
        by(&archive);
        check(&archive)
    };
    let moved = |archive: &str, from: &str, to: &str| {
        let path = january(archive, "trials");
        let other = path.replace(from, to);
        fs::create_dir_all(Path::new(&other).parent().unwrap()).unwrap();
        fs::rename(path, other).unwrap();
    };
    type Damage<'a> = &'a dyn Fn(&str);
    let damages: [(&str, Damage<'_>); 9] = [
        ("cannot be read: ", &|archive| {
            let path = january(archive, "cells");
            let bytes = fs::read(&path).unwrap();
            fs::write(path, &bytes[..bytes.len() - 9]).unwrap();
        }),
        ("has rows of simulated", &|archive| {
            moved(archive, "lab=simulated", "lab=other")
        }),
        ("is of another month", &|archive| {
            moved(archive, "month=1", "month=3")
        }),
        ("is in two files", &|archive| {
            let path = january(archive, "trials");
            let folder = Path::new(&path).parent().unwrap();
            fs::copy(&path, folder.join("campaigns.parquet")).unwrap();
        }),
        ("has no cells: its writer was killed", &|archive| {
            fs::remove_file(january(archive, "cells")).unwrap();
        }),
        ("trials/lab=simulated/notes does not belong", &|archive| {
            fs::write(format!("{archive}/trials/lab=simulated/notes"), "").unwrap();
        }),
        ("month=1/notes does not belong", &|archive| {
            let path = january(archive, "facts");
            fs::write(Path::new(&path).with_file_name("notes"), "").unwrap();
        }),
        ("has rows of another campaign", &|archive| {
            let path = january(archive, "facts");
            let other = format!("{:032}.parquet", 1);
            fs::rename(&path, Path::new(&path).with_file_name(other)).unwrap();
        }),
        (" trials, and its row counts ", &|archive| {
            let cells = january(&scratch.file("earlier"), "cells");
            fs::copy(cells, january(archive, "cells")).unwrap();
        }),
    ];
    for (says, damage) in damages {
        let (said, agrees) = damaged(damage);
        assert!(!agrees && said.contains(says), "no '{says}' in:\n{said}");
    }
    // The remains of a writer are named, and no fault.
    let (said, agrees) =
        damaged(&|archive| fs::write(format!("{archive}/.drafts/1-0-5"), "PAR1").unwrap());
    assert!(agrees && said.contains(".drafts/1-0-5 is being written, or its writer was killed"));
    assert!(compact(&scratch.file("damaged")).contains("1 draft of killed writers removed"));
    assert!(!check(&scratch.file("damaged")).0.contains("drafts"));
    // A user who may not write can check.
    fs::set_permissions(format!("{sound}/.lock"), Permissions::from_mode(0o444)).unwrap();
    let by_anyone = linerate(["archive", "check", &sound]);
    // SAFETY: the call has no effect.
    let is_root = unsafe { libc::geteuid() } == 0;
    if is_root {
        by_anyone.user(65534)
    } else {
        by_anyone
    }
    .run()
    .ok();
    fs::set_permissions(format!("{sound}/.lock"), Permissions::from_mode(0o644)).unwrap();
    // Nothing is compacted that is not understood, and nothing lost.
    add(&all, &sound);
    change(&format!("{all}/1"), |campaign| {
        campaign["started"] = "2026-01-02T00:00:00Z".into()
    });
    add(&all, &sound);
    damaged(&|archive| {
        let path = january(archive, "cells");
        fs::write(Path::new(&path).with_file_name("notes"), "").unwrap();
    });
    let archive = scratch.file("damaged");
    let before = files(&archive);
    let ended = linerate(["archive", "compact", &archive]).run();
    ended.fails(
        1,
        &["not compacted: cells/lab=simulated/year=2026/month=1/: notes does not belong"],
    );
    let after = files(&archive);
    let cells = |files: &BTreeMap<String, Vec<u8>>| {
        files
            .keys()
            .filter(|name| name.starts_with("cells"))
            .count()
    };
    assert_eq!(cells(&before), cells(&after));
}

/// Kills a linerate somewhere in the time that it takes.
fn kill(arguments: &[&str], at: Duration) {
    let running = linerate(arguments).start();
    let began = Instant::now();
    wait_for("the moment of the kill", || {
        (began.elapsed() >= at).then_some(())
    });
    running.signal(libc::SIGKILL);
    running.wait();
}

#[test]
fn takes_minutes_two_hundred_kills_lose_nothing() {
    let scratch = Scratch::new();
    let all = campaigns(&scratch, 6);
    let (added, compacted) = (scratch.file("added"), scratch.file("compacted"));
    let began = Instant::now();
    add(&all, &added);
    let adds = began.elapsed();
    copy(&added, &compacted);
    let began = Instant::now();
    compact(&compacted);
    let compacts = began.elapsed();
    let [all_added, all_compacted] = [files(&added), files(&compacted)];
    let mut random = 1_u32;
    let mut at = |most: Duration| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        most.mul_f64(f64::from(random >> 8) / f64::from(1 << 24))
    };
    let archive = scratch.file("archive");
    let mut halted = [0; 2];
    for number in 0..100 {
        let _ = fs::remove_dir_all(&archive);
        kill(&["archive", "add", &all, "--to", &archive], at(adds));
        if Path::new(&archive).join("trials").exists() {
            let (said, agrees) = check(&archive);
            halted[0] += usize::from(!agrees);
            let mut lines: Vec<&str> = said.lines().collect();
            lines.pop();
            let excused = |line: &&str| line.contains("its writer was killed");
            assert!(lines.iter().all(excused), "kill {number}: {said}");
        }
        add(&all, &archive);
        assert!(files(&archive) == all_added, "kill {number}: other files");
        assert!(check(&archive).1);
    }
    for number in 0..100 {
        let _ = fs::remove_dir_all(&archive);
        copy(&added, &archive);
        kill(&["archive", "compact", &archive], at(compacts));
        let (said, agrees) = check(&archive);
        assert!(
            agrees && said.contains("6 campaigns with 120 trials"),
            "kill {number}: {said}"
        );
        let now = files(&archive);
        halted[1] += usize::from(now != all_added && now != all_compacted);
        assert!(add(&all, &archive).contains("0 added, 0 replaced, 6 there already"));
        compact(&archive);
        assert!(
            files(&archive) == all_compacted,
            "kill {number}: other files"
        );
        let left = fs::read_dir(format!("{archive}/.drafts")).unwrap().count();
        assert_eq!(left, 0, "kill {number}: drafts are left");
    }
    println!("kills between the files of a campaign, and between folders: {halted:?}");
}
