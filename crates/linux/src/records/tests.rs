//! Records on real file systems, full ones too.

use super::*;
use linerate_measure::audit::{Evidence, audit};
use linerate_measure::counters::PortCounters;
use linerate_measure::record::{Asked, LabKind, Slot, Stopped, VERSION};
use linerate_measure::summary::summarise;
use linerate_measure::trial::Timing;
use rustix::mount::{MountFlags, MountPropagationFlags, mount, mount_change};
use rustix::process::{Resource, Rlimit, setrlimit};
use rustix::thread::UnshareFlags;
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that goes away at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("linerate-records-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn campaign() -> Campaign {
    Campaign {
        version: VERSION,
        name: "test".into(),
        started: utc_now(),
        asked: Asked {
            lab: LabKind::Simulated,
            ..Asked::default()
        },
        slots: vec![Slot::default()],
        ..Campaign::default()
    }
}

fn trial(number: u64) -> TrialRecord {
    TrialRecord {
        version: VERSION,
        trial: number,
        block: 0,
        slot: 0,
        began_ns: 0,
        timing: Timing::slice(250_000_000),
        rates: None,
        loss_ratio: 0.0,
        generator: PortCounters::default(),
        receiver: PortCounters::default(),
        audit: audit(&Evidence::default()),
        ..TrialRecord::default()
    }
}

fn host() -> HostFacts {
    HostFacts {
        version: VERSION,
        kernel: "6".into(),
        ..HostFacts::default()
    }
}

#[test]
fn what_was_written_is_read_back() {
    let folder = Folder::new();
    let mut store = RecordStore::create(&folder.0.join("results"), "a b/../c\u{b5}", None).unwrap();
    let directory = store.directory().to_path_buf();
    let name = directory.file_name().unwrap().to_str().unwrap();
    assert!(
        name.len() == 17 + 9 && name[15..].starts_with("Z-") && name.ends_with("-a-b-..-c-"),
        "{name}"
    );
    store.write_campaign(&campaign()).unwrap();
    store.write_host(&host()).unwrap();
    assert_eq!(read(&directory).unwrap().summary, None);
    let trials: Vec<_> = (0..50).map(trial).collect();
    trials.iter().for_each(|t| store.append_trial(t).unwrap());
    let summary = summarise(&campaign(), &[], Stopped::Trials, 1);
    store.write_summary(&summary).unwrap();
    store.finish().unwrap();
    let stored = read(&directory).unwrap();
    assert_eq!(
        (stored.trials, stored.missing, stored.host),
        (trials, vec![], host())
    );
    assert_eq!(
        (stored.campaign.name.as_str(), stored.summary),
        ("test", Some(summary))
    );
    let mut files: Vec<_> = fs::read_dir(&directory)
        .unwrap()
        .map(|e| e.unwrap().file_name())
        .collect();
    files.sort();
    assert_eq!(
        files,
        ["campaign.json", "host.json", "summary.json", "trials.jsonl"]
    );
}

#[test]
fn a_trial_is_on_disk_without_any_further_call() {
    let folder = Folder::new();
    let mut store = RecordStore::create(&folder.0, "x", None).unwrap();
    store.append_trial(&trial(0)).unwrap();
    let path = store.directory().join(TRIALS);
    let written = || fs::read_to_string(&path).unwrap().ends_with('\n');
    let began = std::time::Instant::now();
    while !written() {
        assert!(
            began.elapsed().as_secs() < 10,
            "the trial is not in {}",
            path.display()
        );
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[test]
fn folders_do_not_clash_and_are_not_mixed_up() {
    let folder = Folder::new();
    let new = || {
        make_new(&folder.0, "same", "", |path| DirBuilder::new().create(path))
            .unwrap()
            .0
    };
    let names = [new(), new(), new()].map(|d| d.file_name().unwrap().to_str().unwrap().to_string());
    assert_eq!(names, ["same", "same-2", "same-3"]);
    let out = folder.0.join("new/out");
    let store = RecordStore::create(Path::new("/nonexistent"), "x", Some(&out)).unwrap();
    assert_eq!(store.directory(), out);
    let again = RecordStore::create(&folder.0, "x", Some(&out))
        .unwrap_err()
        .to_string();
    assert!(again.contains("new/out is not empty"), "{again}");
    assert_eq!(
        (sanitised(""), sanitised("a/b c")),
        ("campaign".into(), "a-b-c".into())
    );
}

#[test]
fn what_is_no_record_is_said_to_be_none() {
    let folder = Folder::new();
    let reason = |path: &Path| read(path).unwrap_err().to_string();
    assert!(reason(&folder.0).ends_with("is not a record of linerate: it has no campaign.json"));
    assert!(reason(&folder.0.join("none")).contains("No such file or directory"));
    assert!(reason(Path::new("/proc/version")).ends_with("it is not a folder"));
    let store = RecordStore::create(&folder.0, "x", None).unwrap();
    store.write_campaign(&campaign()).unwrap();
    let inside = reason(&folder.0);
    assert!(
        inside.contains("the newest is") && inside.contains(store.directory().to_str().unwrap()),
        "{inside}"
    );
    fs::write(store.directory().join(CAMPAIGN), "{\"version\":1}").unwrap();
    assert!(
        reason(store.directory()).contains("campaign.json, line 1"),
        "{}",
        reason(store.directory())
    );
}

#[test]
fn a_cut_off_line_loses_only_itself() {
    let folder = Folder::new();
    let mut store = RecordStore::create(&folder.0, "x", None).unwrap();
    store.write_campaign(&campaign()).unwrap();
    (0..3).for_each(|n| store.append_trial(&trial(n)).unwrap());
    let directory = store.directory().to_path_buf();
    store.finish().unwrap();
    let path = directory.join(TRIALS);
    let length = fs::metadata(&path).unwrap().len();
    OpenOptions::new()
        .write(true)
        .open(&path)
        .unwrap()
        .set_len(length - 10)
        .unwrap();
    let stored = read(&directory).unwrap();
    assert_eq!(stored.trials.len(), 2);
    assert_eq!(
        stored.missing,
        ["the last line of trials.jsonl is cut off and left out"]
    );
}

#[test]
fn a_broken_line_and_a_trial_of_no_cell_lose_only_themselves() {
    let folder = Folder::new();
    let mut store = RecordStore::create(&folder.0, "x", None).unwrap();
    store.write_campaign(&campaign()).unwrap();
    (0..4).for_each(|n| store.append_trial(&trial(n)).unwrap());
    let directory = store.directory().to_path_buf();
    store.finish().unwrap();
    let path = directory.join(TRIALS);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(String::from).collect();
    lines[1] = lines[1].replace("\"loss_ratio\":0.0", "\"loss_ratio\":NaN");
    lines[2] = lines[2].replace("\"slot\":0", "\"slot\":98");
    fs::write(&path, lines.join("\n") + "\n").unwrap();
    let stored = read(&directory).unwrap();
    let kept: Vec<u64> = stored.trials.iter().map(|trial| trial.trial).collect();
    assert_eq!(kept, [0, 3]);
    let [broken, stray] = &stored.missing[..] else {
        panic!("{:?}", stored.missing)
    };
    assert!(
        broken.starts_with("a line is left out: ") && broken.contains("trials.jsonl, line 2"),
        "{broken}"
    );
    assert!(
        stray.starts_with("trial 2 of trials.jsonl is left out: it belongs to cell 99"),
        "{stray}"
    );
    let refused = RecordStore::reopen(&directory).unwrap_err().to_string();
    assert!(
        refused.contains("cannot be resumed: a line is left out"),
        "{refused}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap().lines().count(), 4);
}

/// Appends trials until it fails; the folder must then hold whole records. Returns the number of trials on disk, and the error.
fn fill(base: &Path) -> (usize, Error) {
    let mut store = RecordStore::create(base, "full", None).unwrap();
    store.write_campaign(&campaign()).unwrap();
    let directory = store.directory().to_path_buf();
    let error = (0..10_000)
        .find_map(|n| store.append_trial(&trial(n)).err())
        .expect("the disk is endless");
    let after = store.append_trial(&trial(10_001)).unwrap_err();
    assert!(
        after.to_string().contains("takes no more trials"),
        "{after}"
    );
    store.finish().unwrap();
    let text = fs::read_to_string(directory.join(TRIALS)).unwrap();
    assert!(text.ends_with('\n'), "an incomplete line was left behind");
    let stored = read(&directory).unwrap();
    assert!(stored.missing.is_empty() && stored.trials.iter().zip(0..).all(|(t, n)| t.trial == n));
    (stored.trials.len(), error)
}

fn assert_says_what_is_kept(kept: usize, error: &Error, reason: &str) {
    let text = error.to_string();
    assert!(
        kept > 0 && text.contains(&format!("cannot write trial {kept} to ")),
        "{kept}: {text}"
    );
    assert!(
        text.contains(&format!("the first {kept} trials are safe there")) && text.contains(reason),
        "{text}"
    );
}

/// The limit on file sizes is the process's, so the test runs itself again in a process of its own.
#[test]
fn at_a_limit_on_file_sizes_nothing_recorded_is_lost() {
    const BASE: &str = "LINERATE_TEST_RECORDS_BASE";
    if let Ok(base) = std::env::var(BASE) {
        let (kept, error) = fill(Path::new(&base));
        return assert_says_what_is_kept(kept, &error, "ulimit -f");
    }
    let folder = Folder::new();
    let name = "records::tests::at_a_limit_on_file_sizes_nothing_recorded_is_lost";
    let mut child = Command::new(std::env::current_exe().unwrap());
    child
        .args(["--exact", name, "--nocapture"])
        .env(BASE, &folder.0);
    let limit = || {
        // SAFETY: an ignored signal has no handler that could be wrong.
        if unsafe { libc::signal(libc::SIGXFSZ, libc::SIG_IGN) } == libc::SIG_ERR {
            return Err(io::Error::last_os_error());
        }
        Ok(setrlimit(
            Resource::Fsize,
            Rlimit {
                current: Some(20_000),
                maximum: Some(20_000),
            },
        )?)
    };
    // SAFETY: between fork and exec, `limit` only makes system calls; it neither allocates nor locks.
    unsafe { child.pre_exec(limit) };
    let output = child.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn on_a_full_disk_nothing_recorded_is_lost() {
    let folder = Folder::new();
    let target = folder.0.clone();
    // A namespace belongs to a thread: no other test sees the mount, and it ends with this one.
    let filled = std::thread::spawn(move || {
        crate::net::netns::unshare(UnshareFlags::NEWNS).unwrap();
        mount_change(
            "/",
            MountPropagationFlags::PRIVATE | MountPropagationFlags::REC,
        )
        .unwrap();
        mount("tmpfs", &target, "tmpfs", MountFlags::empty(), c"size=64k").unwrap();
        fill(&target)
    });
    let (kept, error) = filled.join().unwrap();
    assert_says_what_is_kept(kept, &error, "Free space there");
}

#[test]
fn a_stopped_campaign_goes_on_after_its_whole_trials() {
    let folder = Folder::new();
    let out = folder.0.join("record");
    let campaign = campaign();
    let mut store = RecordStore::create(&folder.0, "x", Some(&out)).unwrap();
    store.write_campaign(&campaign).unwrap();
    store.append_trial(&trial(0)).unwrap();
    let refused = RecordStore::reopen(&out).unwrap_err();
    assert!(
        refused
            .to_string()
            .contains("is being written by another linerate"),
        "{refused}"
    );
    store.finish().unwrap();
    let mut file = OpenOptions::new()
        .append(true)
        .open(out.join(TRIALS))
        .unwrap();
    file.write_all(b"{\"version\":1,\"tri").unwrap();
    drop(file);
    let (mut store, stored) = RecordStore::reopen(&out).unwrap();
    assert_eq!((stored.trials.len(), &stored.campaign), (1, &campaign));
    store.append_trial(&trial(1)).unwrap();
    store.finish().unwrap();
    let again = read(&out).unwrap();
    assert_eq!(again.trials, [trial(0), trial(1)]);
    assert!(again.missing.is_empty());
    assert!(
        RecordStore::reopen(&folder.0)
            .unwrap_err()
            .to_string()
            .contains("is not a record of linerate")
    );
    assert!(
        !folder.0.join(TRIALS).exists(),
        "nothing is made where there is no record"
    );
}

/// A program that another thread has just started has the descriptor until it begins.
#[test]
fn trials_can_be_added_once_their_log_is_closed_whoever_has_its_descriptor() {
    let folder = Folder::new();
    let out = folder.0.join("record");
    let mut store = RecordStore::create(&folder.0, "x", Some(&out)).unwrap();
    store.write_campaign(&campaign()).unwrap();
    store.finish().unwrap();
    let file = open_trials(&out, &mut OpenOptions::new()).unwrap();
    let _elsewhere = file.try_clone().unwrap();
    drop(TrialLog::new(file, out.join(TRIALS), 0).unwrap());
    RecordStore::reopen(&out).unwrap();
}

#[test]
fn known_times() {
    // As `date -u -d @N` prints them.
    for (seconds, text) in [
        (0, "1970-01-01T00:00:00Z"),
        (951_782_399, "2000-02-28T23:59:59Z"),
        (951_782_400, "2000-02-29T00:00:00Z"),
        (951_868_800, "2000-03-01T00:00:00Z"),
        (1_767_225_599, "2025-12-31T23:59:59Z"),
        (4_107_542_400, "2100-03-01T00:00:00Z"),
    ] {
        assert_eq!(rfc3339_utc(UNIX_EPOCH + Duration::from_secs(seconds)), text);
    }
    assert_eq!(
        rfc3339_utc(UNIX_EPOCH - Duration::from_secs(5)),
        "1970-01-01T00:00:00Z"
    );
}

#[test]
fn agrees_with_the_c_library() {
    for day in (0..80_000).step_by(17) {
        let seconds = day * 86_400 + 3_723;
        // SAFETY: zero is a value of all members of a tm, and both pointers are to values that live through the call.
        let tm = unsafe {
            let mut tm: libc::tm = std::mem::zeroed();
            assert!(!libc::gmtime_r(&(seconds as libc::time_t), &mut tm).is_null());
            tm
        };
        let theirs = format!(
            "{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z",
            tm.tm_year + 1900,
            tm.tm_mon + 1,
            tm.tm_mday,
            tm.tm_hour,
            tm.tm_min,
            tm.tm_sec
        );
        assert_eq!(
            rfc3339_utc(UNIX_EPOCH + Duration::from_secs(seconds)),
            theirs
        );
    }
}

mod imported {
    use super::*;
    use crate::records::read;

    #[test]
    fn campaigns_of_any_name_are_written_and_read_back() {
        let scratch = std::env::temp_dir().join(format!("linerate-import-{}", std::process::id()));
        let out = scratch.join("records");
        let store = ImportStore::create(&out).unwrap();
        let names = ["a/b", "a/b", "../../up", &"x".repeat(400)];
        let trials = [trial(0), trial(1)];
        let mut written = Vec::new();
        for name in names {
            let campaign = Campaign {
                name: name.into(),
                ..campaign()
            };
            let summary = summarise(&campaign, &trials, Stopped::Trials, 0);
            let path = store.write(&campaign, &host(), &trials, &summary).unwrap();
            assert_eq!(path.parent(), Some(out.as_path()));
            let back = read(&path).unwrap();
            assert_eq!((back.campaign, back.trials.len()), (campaign, 2));
            written.push(path);
        }
        store.finish().unwrap();
        written.dedup();
        assert_eq!(written.len(), 4);
        assert_eq!(fs::read_dir(&out).unwrap().count(), 4);
        assert!(ImportStore::create(&out).is_err());
        fs::remove_dir_all(scratch).unwrap();
    }
}
