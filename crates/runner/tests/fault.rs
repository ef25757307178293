//! A panic ends the process at once, whatever thread it is in, and the successor begins when the process has ended.

use linerate_linux::net::Netns;
use linerate_runner::fault;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

const FOLDER: &str = "LINERATE_TEST_FAULT";

/// The process at fault, where [`a_panic_is_succeeded`] runs it.
#[test]
fn panics_in_a_namespace() {
    if std::env::var_os(FOLDER).is_none() {
        return;
    }
    fault::install();
    let pid = std::process::id().to_string();
    let command = ["/proc/self/exe", "--exact", "succeeds", &pid];
    fault::succeeded_by(command.map(OsString::from).into());
    let _ends_by_exit = Unreached;
    let namespace = Netns::anonymous().unwrap();
    namespace.enter(|| panic!("a fault")).unwrap();
}

/// The successor: notes its network namespace, and the state of the process at fault.
#[test]
fn succeeds() {
    let (folder, last) = (std::env::var_os(FOLDER), std::env::args().next_back());
    let Some((folder, faulty)) = folder.zip(last) else {
        return;
    };
    fault::succeed().unwrap();
    let here = std::fs::read_link("/proc/self/ns/net").unwrap();
    let stat = Path::new("/proc").join(faulty).join("stat");
    let state = std::fs::read_to_string(stat).unwrap_or(") Z".into());
    let (_, state) = state.rsplit_once(") ").unwrap();
    std::fs::write(
        Path::new(&folder).join("done"),
        format!("{} {}", here.display(), &state[..1]),
    )
    .unwrap();
}

/// A value whose destructor would run if the panic unwound.
struct Unreached;

impl Drop for Unreached {
    fn drop(&mut self) {
        eprintln!("a destructor ran");
    }
}

#[test]
#[ignore = "needs root: run by make test as root"]
fn a_panic_is_succeeded() {
    let folder = std::env::temp_dir().join(format!("linerate-fault-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let ran = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "panics_in_a_namespace", "--nocapture"])
        .env(FOLDER, &folder)
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&ran.stderr);
    assert_eq!(ran.status.code(), Some(101), "{told}");
    for words in ["a fault", "a fault of linerate itself"] {
        assert!(told.contains(words), "{told}");
    }
    assert!(!told.contains("destructor"), "{told}");
    // The output of the process ends with the last program that holds it: the successor.
    let done = std::fs::read_to_string(folder.join("done")).unwrap();
    let here = std::fs::read_link("/proc/self/ns/net").unwrap();
    assert_eq!(done, format!("{} Z", here.display()));
    std::fs::remove_dir_all(&folder).unwrap();
}
