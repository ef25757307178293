use super::*;
use proptest::prelude::*;

/// A host of files, and its journal.
struct Files {
    root: PathBuf,
    host: Host,
}

const MAX: &str = "proc/sys/net/netfilter/nf_conntrack_max";
const HASH: &str = "sys/module/nf_conntrack/parameters/hashsize";

impl Files {
    fn new(name: &str) -> Files {
        let root =
            std::env::temp_dir().join(format!("linerate-journal-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&root);
        let host = Files {
            host: Host::new(root.join("run"), root.join("host")),
            root,
        };
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
        self.host.read(file).unwrap()
    }

    /// The changes that are written down, and not undone.
    fn pending(&self) -> usize {
        let journal: Option<Journal<Written>> = Journal::open(&self.host.journal).unwrap();
        journal.map_or(usize::MAX, |journal| journal.pending().len())
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.root);
    }
}

fn change(file: &str, value: &str) -> Change {
    Change {
        file: file.into(),
        value: value.into(),
        at_least: false,
    }
}

#[test]
fn changes_are_undone_in_reverse_order_and_leave_no_journal() {
    let host = Files::new("undo");
    let mut changes = host.host.begin();
    assert!(
        !host.host.journal.exists(),
        "nothing is written before the first change"
    );
    changes.set(&change(MAX, "300000")).unwrap();
    changes.set(&change(HASH, "100000")).unwrap();
    changes.set(&change(MAX, "400000")).unwrap();
    changes.set(&change(MAX, "100").or_more()).unwrap();
    assert_eq!(
        (host.get(MAX), host.get(HASH)),
        ("400000".into(), "100000".into())
    );
    assert_eq!(host.pending(), usize::MAX, "it is held");
    let words = changes.undo().unwrap();
    assert_eq!(words.len(), 3, "{words:?}");
    assert_eq!(
        (host.get(MAX), host.get(HASH)),
        ("262144".into(), "65536".into())
    );
    assert_eq!(host.pending(), 0);
}

#[test]
fn a_dropped_lab_puts_back_what_it_changed() {
    let host = Files::new("drop");
    let mut changes = host.host.begin();
    changes.set(&change(MAX, "1000000")).unwrap();
    assert_eq!(host.get(MAX), "1000000");
    drop(changes);
    assert_eq!(host.get(MAX), "262144");
}

#[test]
fn a_card_that_cannot_stamp_is_left_as_it_is() {
    let host = Files::new("stamps");
    let mut changes = host.host.begin();
    for card in ["lo", "no-such-card"] {
        let error = changes
            .set(&Change::stamps(card, [1, 1]))
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("hardware time stamps") && error.contains(card),
            "{error}"
        );
    }
    assert!(changes.set(&Change::stamps("../x", [1, 1])).is_err());
    drop(changes);
    assert_eq!(host.pending(), 0);
}

#[test]
fn two_labs_cannot_change_the_host_at_once() {
    let host = Files::new("held");
    let (mut one, mut two) = (host.host.begin(), host.host.begin());
    one.set(&change(MAX, "300000")).unwrap();
    let error = two.set(&change(HASH, "70000")).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("are changed by another linerate"),
        "{error}"
    );
    assert!(
        two.set(&change(MAX, "300000").or_more()).is_err(),
        "it would change under the second lab's feet"
    );
    assert!(
        host.host.restore_remains().unwrap().is_empty(),
        "its owner lives"
    );
    assert_eq!(
        (host.get(MAX), host.get(HASH)),
        ("300000".into(), "65536".into())
    );
    drop(one);
    two.set(&change(HASH, "70000")).unwrap();
}

#[test]
fn what_somebody_else_has_changed_since_is_left_alone() {
    let host = Files::new("else");
    let mut changes = host.host.begin();
    changes.set(&change(MAX, "300000")).unwrap();
    host.put(MAX, "777777\n");
    let words = changes.undo().unwrap();
    assert!(
        words[0].ends_with("another program has set it to 777777 since: left alone"),
        "{words:?}"
    );
    assert_eq!(host.get(MAX), "777777");
}

/// The journals of a process that was killed: before and after each step, and while it wrote one down.
#[test]
fn a_process_killed_at_any_moment_is_cleaned_up_after() {
    let max = r#"{"file":"proc/sys/net/netfilter/nf_conntrack_max","old":"262144","new":"300000","became":null}"#;
    let hash = r#"{"file":"sys/module/nf_conntrack/parameters/hashsize","old":"65536","new":"100000","became":null}"#;
    let moments = [
        (String::new(), [None, None]),
        (max[..20].into(), [None, None]),
        (format!("{max}\n"), [None, None]),
        (format!("{max}\n"), [Some("300000"), None]),
        (format!("{max}\n\"300000\"\n"), [Some("300000"), None]),
        (
            format!("{max}\n\"300000\"\n{hash}\n"),
            [Some("300000"), None],
        ),
        (
            format!("{max}\n\"300000\"\n{hash}\n"),
            [Some("300000"), Some("100000")],
        ),
        (
            format!("{max}\n\"300000\"\n{hash}\n\"100352\"\n"),
            [Some("300000"), Some("100352")],
        ),
    ];
    for (number, (journal, values)) in moments.into_iter().enumerate() {
        let host = Files::new(&format!("killed-{number}"));
        fs::create_dir_all(host.root.join("run")).unwrap();
        fs::write(&host.host.journal, journal).unwrap();
        for (file, value) in [MAX, HASH].into_iter().zip(values) {
            value.into_iter().for_each(|value| host.put(file, value));
        }
        let words = host.host.restore_remains().unwrap();
        assert_eq!(
            (host.get(MAX), host.get(HASH)),
            ("262144".into(), "65536".into()),
            "{words:?}"
        );
        assert_eq!(host.pending(), 0, "{number}");
        assert!(host.host.restore_remains().unwrap().is_empty());
    }
}

#[test]
fn a_damaged_journal_is_left_alone() {
    let host = Files::new("damaged");
    fs::create_dir_all(host.root.join("run")).unwrap();
    fs::write(&host.host.journal, "{}\n{}\n").unwrap();
    let words = host.host.restore_remains().unwrap();
    assert!(
        words.len() == 1 && words[0].ends_with("left alone"),
        "{words:?}"
    );
    assert!(host.host.begin().set(&change(MAX, "300000")).is_err());
    assert_eq!(host.get(MAX), "262144");
}

#[test]
fn a_journal_cannot_be_used_to_write_elsewhere() {
    let host = Files::new("hostile");
    fs::create_dir_all(host.root.join("run")).unwrap();
    fs::write(host.root.join("victim"), "safe").unwrap();
    let step = r#"{"file":"proc/sys/../../../victim","old":"gone","new":"safe","became":null}"#;
    fs::write(&host.host.journal, format!("{step}\n")).unwrap();
    let words = host.host.restore_remains().unwrap();
    assert!(words[0].contains("is not a host setting"), "{words:?}");
    assert_eq!(
        fs::read_to_string(host.root.join("victim")).unwrap(),
        "safe"
    );
    assert_eq!(host.pending(), 1, "the next start tries again");
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
        "sys/module/-r",
        "sys/module",
        "sys/module/x/parameters/a\n",
        "proc/sys/a/b c",
    ] {
        assert!(check(file).is_err(), "{file:?}");
    }
    for (name, value) in [
        ("net..x", "1"),
        ("/etc/passwd", "1"),
        ("net.a\nb", "1"),
        ("net.a.b", "1\n2"),
        ("net.a.b", ""),
    ] {
        assert!(Change::sysctl(name, value).is_err(), "{name:?} {value:?}");
    }
    for name in ["", "-r", "a b", "../x", "a;b"] {
        assert!(check_module(name).is_err(), "{name:?}");
    }
}

#[test]
fn a_module_is_a_setting_that_is_there_or_not() {
    let host = Files::new("module");
    assert_eq!(
        (
            host.get("sys/module/nf_conntrack"),
            host.get("sys/module/no_such")
        ),
        ("loaded".into(), String::new())
    );
    host.host
        .begin()
        .set(&Change::module("nf-conntrack"))
        .unwrap();
    assert!(
        !host.host.journal.exists() || host.pending() == 0,
        "it is there"
    );
    assert_eq!(
        host.host
            .outstanding(&[Change::module("no-such")])
            .unwrap()
            .len(),
        1
    );
}

#[test]
fn the_user_is_told_what_to_do_by_hand() {
    let max = Change::sysctl("net.netfilter.nf_conntrack_max", "1000000").unwrap();
    assert_eq!(
        max.by_hand(),
        "sysctl -w net.netfilter.nf_conntrack_max=1000000"
    );
    let hash = change("sys/module/nf_conntrack/parameters/hashsize", "1000000");
    assert_eq!(
        hash.by_hand(),
        "echo 1000000 > /sys/module/nf_conntrack/parameters/hashsize"
    );
}

#[test]
fn settings_that_are_not_there_are_named() {
    let host = Files::new("missing");
    let error = host
        .host
        .begin()
        .set(&change("proc/sys/net/netfilter/no_such", "1"))
        .unwrap_err();
    assert!(error.to_string().contains("no_such"), "{error}");
    assert_eq!(host.pending(), 0);
    let all = [
        change(MAX, "262144"),
        change(MAX, "1").or_more(),
        change(HASH, "1"),
    ];
    assert_eq!(host.host.outstanding(&all).unwrap(), [change(HASH, "1")]);
}

proptest! {
    #[test]
    fn hostile_journals_do_not_panic(text in "\\PC*", lines in "[{}:,\"a-z0-9\\[\\]\n]{0,400}") {
        let host = Files::new("random");
        fs::create_dir_all(host.root.join("run")).unwrap();
        for journal in [text, lines] {
            fs::write(&host.host.journal, journal).unwrap();
            let _ = host.host.restore_remains();
        }
    }
}
