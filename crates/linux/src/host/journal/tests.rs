use super::*;
use proptest::prelude::*;

/// A host of files, and its journal.
struct Host {
    root: PathBuf,
    journal: Journal,
}

const MAX: &str = "proc/sys/net/netfilter/nf_conntrack_max";
const HASH: &str = "sys/module/nf_conntrack/parameters/hashsize";

impl Host {
    fn new(name: &str) -> Host {
        let root = std::env::temp_dir().join(format!("linerate-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let host = Host { journal: Journal::new(root.join("run"), root.join("host")), root };
        host.put(MAX, "262144\n");
        host.put(HASH, "65536\n");
        host
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.root.join("host").join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn get(&self, file: &str) -> String {
        self.journal.read(file).unwrap()
    }

    fn books(&self) -> Vec<PathBuf> {
        self.journal.list().map_or(vec![], |books| books.into_iter().map(|(path, _)| path).collect())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn change(file: &str, value: &str) -> Change {
    Change { file: file.into(), value: value.into(), at_least: false }
}

#[test]
fn changes_are_undone_in_reverse_order_and_leave_no_journal() {
    let host = Host::new("undo");
    let mut changes = host.journal.begin();
    assert!(host.books().is_empty(), "nothing is written before the first change");
    changes.set(&change(MAX, "300000")).unwrap();
    changes.set(&change(HASH, "100000")).unwrap();
    changes.set(&change(MAX, "400000")).unwrap();
    changes.set(&change(MAX, "100").or_more()).unwrap();
    assert_eq!((host.get(MAX), host.get(HASH)), ("400000".into(), "100000".into()));
    assert_eq!(host.books().len(), 1);
    let words = changes.undo().unwrap();
    assert_eq!(words.len(), 3, "{words:?}");
    assert_eq!((host.get(MAX), host.get(HASH)), ("262144".into(), "65536".into()));
    assert!(host.books().is_empty());
}

#[test]
fn a_dropped_lab_puts_back_what_it_changed() {
    let host = Host::new("drop");
    let mut changes = host.journal.begin();
    changes.set(&change(MAX, "1000000")).unwrap();
    assert_eq!(host.get(MAX), "1000000");
    drop(changes);
    assert_eq!(host.get(MAX), "262144");
}

#[test]
fn two_labs_cannot_change_the_same() {
    let host = Host::new("held");
    let (mut one, mut two) = (host.journal.begin(), host.journal.begin());
    one.set(&change(MAX, "300000")).unwrap();
    let error = two.set(&change(MAX, "400000")).unwrap_err();
    assert!(error.to_string().contains("was set by another linerate"), "{error}");
    assert!(
        two.set(&change(MAX, "300000").or_more()).is_err(),
        "it would change under the second lab's feet"
    );
    two.set(&change(HASH, "70000")).unwrap();
    assert_eq!(host.get(MAX), "300000");
}

#[test]
fn what_somebody_else_has_changed_since_is_left_alone() {
    let host = Host::new("else");
    let mut changes = host.journal.begin();
    changes.set(&change(MAX, "300000")).unwrap();
    host.put(MAX, "777777\n");
    let words = changes.undo().unwrap();
    assert!(words[0].ends_with("another program has set it to 777777 since: left alone"), "{words:?}");
    assert_eq!(host.get(MAX), "777777");
}

/// The journals of a process that was killed: before and after each step, and while it wrote one down.
#[test]
fn a_process_killed_at_any_moment_is_cleaned_up_after() {
    let step = |file: &str, old: &str, new: &str, became: Option<&str>| Written {
        step: Step::Set { file: file.into(), old: old.into(), new: new.into() },
        became: became.map(Into::into),
    };
    let max = |became| step(MAX, "262144", "300000", became);
    let hash = |became| step(HASH, "65536", "100000", became);
    let moments = [
        vec![],
        vec![max(None)],
        vec![max(Some("300000"))],
        vec![max(Some("300000")), hash(None)],
        vec![max(Some("300000")), hash(Some("100352"))],
    ];
    for (number, steps) in moments.into_iter().enumerate() {
        for made in [false, true] {
            let host = Host::new(&format!("killed-{number}-{made}"));
            let owner = Owner { pid: 4_294_967_294, pid_started: Some(1) };
            let mut left = host.journal.begin();
            left.book = Book { version: VERSION, owner, steps: Vec::new() };
            fs::create_dir_all(&host.journal.books).unwrap();
            fs::write(host.journal.books.join("draft"), "{\"version\":2,").unwrap();
            for (nth, written) in steps.iter().enumerate() {
                if let Step::Set { file, new, .. } = &written.step
                    && (made || nth + 1 < steps.len() || written.became.is_some())
                {
                    host.put(file, written.became.as_ref().unwrap_or(new));
                }
            }
            left.book.steps =
                steps.iter().map(|w| Written { step: w.step.clone(), became: w.became.clone() }).collect();
            left.save().unwrap();
            left.book.steps.clear();
            let words = host.journal.restore_remains().unwrap();
            assert_eq!((host.get(MAX), host.get(HASH)), ("262144".into(), "65536".into()), "{words:?}");
            assert!(host.books().is_empty(), "{number}");
            assert!(host.journal.restore_remains().unwrap().is_empty());
        }
    }
}

#[test]
fn journals_of_running_processes_and_damaged_ones_are_left_alone() {
    let host = Host::new("alone");
    let mut changes = host.journal.begin();
    changes.set(&change(MAX, "300000")).unwrap();
    let folder = host.root.join("run/host");
    fs::write(folder.join("bad.journal"), "{}\n{}\n").unwrap();
    fs::write(folder.join("other.txt"), "x").unwrap();
    let words = host.journal.restore_remains().unwrap();
    assert_eq!(words.len(), 1, "{words:?}");
    assert!(words[0].contains("bad.journal is damaged"), "{words:?}");
    assert_eq!(host.get(MAX), "300000");
}

#[test]
fn a_journal_cannot_be_used_to_write_elsewhere() {
    let host = Host::new("hostile");
    let folder = host.root.join("run/host");
    fs::create_dir_all(&folder).unwrap();
    fs::write(host.root.join("victim"), "safe").unwrap();
    let step = r#"{"set":{"file":"proc/sys/../../../victim","old":"gone","new":"safe"},"became":null}"#;
    let book = format!(r#"{{"version":2,"pid":0,"pid_started":null,"steps":[{step}]}}"#);
    fs::write(folder.join("x.journal"), book).unwrap();
    let words = host.journal.restore_remains().unwrap();
    assert!(words[0].contains("is not a host setting"), "{words:?}");
    assert_eq!(fs::read_to_string(host.root.join("victim")).unwrap(), "safe");
}

#[test]
fn only_settings_can_be_changed() {
    for file in [
        "",
        "etc/passwd",
        "proc/sys",
        "proc/sys/kernel",
        "/proc/sys/a/b",
        "proc/sys/a/../b",
        "proc/sys//b",
        "proc/1/oom_score_adj",
        "sys/module/x/parameters/../../b",
        "sys/module/x/y/z",
        "sys/module/x/parameters/a\n",
        "proc/sys/a/b c",
    ] {
        assert!(check(file).is_err(), "{file:?}");
    }
    for (name, value) in
        [("net..x", "1"), ("/etc/passwd", "1"), ("net.a\nb", "1"), ("net.a.b", "1\n2"), ("net.a.b", "")]
    {
        assert!(Change::sysctl(name, value).is_err(), "{name:?} {value:?}");
    }
    for name in ["", "-r", "a b", "../x", "a;b"] {
        assert!(check_module(name).is_err(), "{name:?}");
    }
}

#[test]
fn the_user_is_told_what_to_do_by_hand() {
    let max = Change::sysctl("net.netfilter.nf_conntrack_max", "1000000").unwrap();
    assert_eq!(max.by_hand(), "sysctl -w net.netfilter.nf_conntrack_max=1000000");
    let hash = change("sys/module/nf_conntrack/parameters/hashsize", "1000000");
    assert_eq!(hash.by_hand(), "echo 1000000 > /sys/module/nf_conntrack/parameters/hashsize");
}

#[test]
fn settings_that_are_not_there_are_named() {
    let host = Host::new("missing");
    let error = host.journal.begin().set(&change("proc/sys/net/netfilter/no_such", "1")).unwrap_err();
    assert!(error.to_string().contains("no_such"), "{error}");
    assert!(host.books().is_empty());
    let all = [change(MAX, "262144"), change(MAX, "1").or_more(), change(HASH, "1")];
    assert_eq!(host.journal.outstanding(&all).unwrap(), [change(HASH, "1")]);
}

proptest! {
    #[test]
    fn hostile_journals_do_not_panic(text in "\\PC*", lines in "[{}:,\"a-z0-9\\[\\]\n]{0,400}") {
        let _ = parse(&text);
        let _ = parse(&lines);
    }
}
